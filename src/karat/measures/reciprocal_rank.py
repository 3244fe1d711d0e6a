"""Reciprocal rank: how soon does the first relevant unit come?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.measures.measure import Measure, register

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class ReciprocalRank(Measure):
    """1 ÷ the rank of the first relevant unit, 0 when none is in the list; the mean is MRR.

    Citation: Kantor, Voorhees: The TREC-5 confusion track (Information Retrieval 2, 2000).

    >>> from karat import evaluate
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"]}
    >>> round(evaluate(run, {"q1": ["a"], "q2": ["a"]}, measures=["MRR"])["RR"], 6)
    0.666667
    """

    rel: float = 1.0

    name: ClassVar[str] = "RR"
    aliases: ClassVar = {"MRR": {}, "recip_rank": {}, "reciprocal_rank": {}, "recip_rank_{k}": {}}

    def compute(self, relation: Relation) -> Floats:
        """Return the reciprocal of the rank of each query's first hit."""
        hits = relation.units(self.rel, self.k)
        first = hits.nth == 1
        return relation.total(hits.query[first], 1 / hits.rank[first])
