"""Interpolated precision: the best precision from a recall on; and its eleven-point average."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class InterpolatedPrecision(Measure):
    """The highest precision at any rank that reaches the given recall.

    IPrec@r = max precision over the ranks with recall ≥ r, 0 when the list never gets there. The
    number behind @ is the recall level, not a cutoff. A level asks for ⌊r · R + 0.9⌋ of the R
    relevant items, as in trec_eval 9 and the tools built on it (pytrec_eval, ir_measures);
    trec_eval 10, and its dialect, round r · R instead, so that .6 of 77 items are 46 and not 47.

    When to use: to read a precision-recall curve at one point. One value per recall level says
    little about a system; use AP for a summary.

    Citation: Manning, Raghavan, Schütze: Introduction to Information Retrieval (2008), chapter 8.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> values = evaluate(run, gold, measures=["IPrec@0.5", "iprec_at_recall_1.00"]).values
    >>> {name: round(value, 6) for name, value in values.items()}
    {'IPrec@0.5': 1.0, 'IPrec@1': 0.666667}
    """

    recall: float = 0.1
    rel: float = 1.0

    name: ClassVar[str] = "IPrec"
    formula: ClassVar[str] = r"\max_{i:\,\text{recall}@i\ge\rho}P@i"
    aliases: ClassVar = known_as("iprec_at_recall iprec_at_recall_{recall}")
    at: ClassVar[str | None] = "recall"
    adds: ClassVar[str] = (
        "Take the best precision from the rank on that has found recall · R + 0.9 items, cut off"
    )

    def __post_init__(self) -> None:
        """Check the recall level."""
        super().__post_init__()
        self.require(0 <= self.recall <= 1, "recall", "is a number from 0 to 1")

    def needed(self, relation: Relation) -> Floats:
        """Return how many of its relevant items each query needs for the recall."""
        items: Floats = np.floor(self.recall * relation.relevant(self.rel) + 0.9)
        return items

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        # a second document of a group raises the precision, too: look at units, count items
        units, items = relation.units(self.rel), relation.credits(self.rel)
        upto = np.searchsorted(
            relation.unit_key(items.query, items.rank),
            relation.unit_key(units.query, units.rank),
            side="right",
        )
        found = relation.count(items.query)
        found_there = upto - (np.cumsum(found) - found)[units.query]
        reached = units.take(np.flatnonzero(found_there >= self.needed(relation)[units.query]))
        precision = reached.nth / reached.rank
        best_first = np.lexsort((-precision, reached.query))
        best = best_first[np.unique(reached.query[best_first], return_index=True)[1]]
        return Terms(reached.query[best], reached.rank[best], precision[best])


@register_measure
class ElevenPoint(Measure):
    """The mean of the interpolated precision at recall 0, .1, .2, … 1.

    How many items a level asks for is that of `IPrec`, which trec_eval 10 has changed.

    When to use: to compare with older studies that report it. For new work use AP, which
    does not interpolate.

    Citation: Manning, Raghavan, Schütze: Introduction to Information Retrieval (2008), chapter 8.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> round(evaluate(run, gold, measures=["11pt"])["11pt"], 6)
    0.848485
    """

    rel: float = 1.0

    interpolated: ClassVar[type[InterpolatedPrecision]] = InterpolatedPrecision
    name: ClassVar[str] = "11pt"
    formula: ClassVar[str] = r"\frac{1}{11}\sum_{j=0}^{10}\max_{i:\,\text{recall}@i\ge j/10}P@i"
    aliases: ClassVar = known_as("11pt_avg eleven_point 11_point")
    at: ClassVar[str | None] = None

    def parts(self) -> tuple[Measure, ...]:
        """Return interpolated precision at the eleven levels."""
        return tuple(self.interpolated(recall=tenth / 10, rel=self.rel) for tenth in range(11))

    def compute(self, relation: Relation) -> Floats:
        """Return the mean over the eleven levels."""
        return np.asarray(sum(part.compute(relation) for part in self.parts())) / 11
