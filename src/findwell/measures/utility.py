"""Utility: what hits are worth, minus what noise costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Measure, known_as, register_measure
from findwell.measures.counts import Relevant, RelevantRetrieved, Retrieved

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class Utility(Measure):
    """The worth of all units retrieved and missed, each counted by its kind.

    utility = hit · relevant retrieved + noise · others retrieved + miss · relevant missed + rest ·
    others not retrieved. With the default weights 1, −1, 0, 0 it says how many more hits than
    noise were retrieved, and falls below 0 where noise prevails. `rest` needs the number of
    documents in the collection, `docs` (-N of trec_eval).

    It has no upper limit, and long lists outweigh short ones in its mean.

    When to use: where hits and noise have known values, such as in filtering or alerting. It has no
    upper limit, so compare it only on the same queries.

    Citation: Hull: The TREC-7 filtering track (TREC 1998); trec_eval, measure `utility`.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "y"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, measures=["utility", "utility(hit=2,miss=-1)"]).values
    {'utility': -1.0, 'utility(hit=2,miss=-1)': -1.0}
    """

    rel: float = 1.0
    hit: float = 1.0
    noise: float = -1.0
    miss: float = 0.0
    rest: float = 0.0
    docs: float = 0.0

    name: ClassVar[str] = "utility"
    formula: ClassVar[str] = (
        r"w_{\text{hit}}\,\text{hits}+w_{\text{noise}}\,\text{noise}+w_{\text{miss}}\,"
        r"\text{missed}+w_{\text{rest}}\,\text{rest}"
    )
    aliases: ClassVar = known_as("utility_{hit},{noise},{miss},{rest}")
    at: ClassVar[str | None] = None
    needs_relevant: ClassVar[bool] = False
    unit_interval: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the weights."""
        super().__post_init__()
        for weight in ("hit", "noise", "miss", "rest"):
            self.require(np.isfinite(getattr(self, weight)), weight, "is a number")
        self.require(0 <= self.docs < float("inf"), "docs", "is the size of the collection")

    def parts(self) -> tuple[Measure, ...]:
        """Return what was found, what was retrieved and what there is."""
        return (
            RelevantRetrieved(rel=self.rel, relation=self.relation),
            Retrieved(relation=self.relation),
            Relevant(rel=self.rel, relation=self.relation),
        )

    def compute(self, relation: Relation) -> Floats:
        """Return the sum of the four kinds, each with its weight."""
        hits = relation.count(relation.units(self.rel).query)
        found, retrieved, relevant = (part.compute(relation) for part in self.parts())
        missed, noise = relevant - found, retrieved - hits
        rest = self.docs - retrieved - missed
        return self.hit * hits + self.noise * noise + self.miss * missed + self.rest * rest
