"""Reciprocal rank: how soon does the first relevant unit come?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from findwell.core.measure import Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class ReciprocalRank(Measure):
    """1 ÷ the rank of the first relevant unit, 0 when none is in the list; the mean is MRR.

    When to use: where one relevant document is enough and the reader takes the first. It ignores
    everything below the first hit, so it misleads where a question needs several passages.

    Citation: Kantor, Voorhees: The TREC-5 confusion track (Information Retrieval 2, 2000).

    >>> from findwell import evaluate
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"]}
    >>> round(evaluate(run, {"q1": ["a"], "q2": ["a"]}, measures=["MRR"])["RR"], 6)
    0.666667
    """

    rel: float = 1.0

    name: ClassVar[str] = "RR"
    formula: ClassVar[str] = r"\frac{1}{\min_{j}r_j}"
    aliases: ClassVar = known_as("MRR recip_rank reciprocal_rank mean_reciprocal_rank")
    adds: ClassVar[str] = "Add up 1 ÷ rank of the first relevant unit"
    counts_items: ClassVar[bool] = False
    only_grows: ClassVar[bool] = True

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        first = hits.nth == 1
        return Terms(hits.query[first], hits.rank[first], 1 / hits.rank[first])
