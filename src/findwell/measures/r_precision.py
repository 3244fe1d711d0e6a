"""R-precision: precision at the number of relevant items, or at a multiple of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, PerRelevantItem, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.core.relation import Relation


@register_measure
class RPrecision(PerRelevantItem):
    """Precision at rank R, where R is the query's number of relevant items.

    Rprec = relevant units among the first R ÷ R: the point where precision equals recall.

    When to use: where queries have very different numbers of relevant items and no single k fits
    all. With one relevant item it only asks whether the first result is right.

    Citation: Buckley, Voorhees: Retrieval system evaluation, in TREC (MIT Press, 2005).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]}, measures=["Rprec"])["Rprec"]
    0.5
    """

    name: ClassVar[str] = "Rprec"
    formula: ClassVar[str] = r"P@R"
    aliases: ClassVar = known_as("r_precision")
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = "Count the relevant units among the first R"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel)
        inside = hits.rank <= self._rank(relation)[hits.query]
        return Terms(hits.query[inside], hits.rank[inside])

    def _rank(self, relation: Relation) -> Ints:
        """Return the rank of each query down to which units count."""
        return relation.relevant(self.rel)


@register_measure
class RPrecisionMultiple(RPrecision):
    """Precision at rank ⌊m · R + 0.9⌋, where R is the query's number of relevant items.

    The number behind @ is the multiple m, not a cutoff; at 1 it is R-precision. Several multiples
    side by side distinguish systems that are good at the top from those that find more further
    down. Where the rank is 0, the value is 0.

    When to use: to see precision at a depth that grows with the number of relevant items. It is
    known mainly from trec_eval; P@k is easier to explain.

    Citation: trec_eval, measure `Rprec_mult`.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, measures=["Rprec_mult@0.5", "Rprec_mult_2.00"]).values
    {'Rprec_mult@0.5': 1.0, 'Rprec_mult@2': 0.5}
    """

    multiple: float = 1.0

    name: ClassVar[str] = "Rprec_mult"
    formula: ClassVar[str] = r"P@\lfloor mR+0.9\rfloor"
    aliases: ClassVar = known_as("Rprec_mult_{multiple}")
    at: ClassVar[str | None] = "multiple"
    adds: ClassVar[str] = "Count the relevant units down to the multiple of R"

    def __post_init__(self) -> None:
        """Check the multiple."""
        super().__post_init__()
        self.require(0 < self.multiple < float("inf"), "multiple", "is a number above 0")

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the multiple of R, rounded."""
        return Divisor("relevant items × multiple, rounded", np.maximum(self._rank(relation), 1))

    def _rank(self, relation: Relation) -> Ints:
        rank: Floats = np.floor(self.multiple * relation.relevant(self.rel) + 0.9)
        return np.minimum(rank, 2.0**53).astype(np.int64)  # no more than an integer can hold
