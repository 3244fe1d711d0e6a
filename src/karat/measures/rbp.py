"""Rank-biased precision: what a reader of a given patience gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import AT_MOST_ONE, Limit, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class RankBiasedPrecision(Measure):
    """The gain of a reader who goes on to the next rank with probability p.

    RBP(p) = (1 − p) · Σ p^(rank−1) over the relevant units. What unjudged and unseen units could
    still add is `RBP_residual`. p is .8 unless said otherwise; in trec_eval it is .9, and a unit
    weighs as much as its grade.

    Citation: Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness
    (ACM TOIS 27(1), 2008).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]}, measures=["RBP(p=0.5)"])["RBP(p=0.5)"]
    0.625
    """

    rel: float = 1.0
    p: float = 0.8

    name: ClassVar[str] = "RBP"
    aliases: ClassVar = {
        "rbp{p}": {},
        "rbp_p={p}": {},
        "rbp.p={p}": {},
        "rank_biased_precision": {},
    }
    limit: ClassVar[Limit | None] = AT_MOST_ONE  # rounding may lift a long perfect list over it
    adds: ClassVar[str] = "Add up the weights of the relevant units"

    def __post_init__(self) -> None:
        """Check the patience."""
        super().__post_init__()
        self.require(0 < self.p < 1, "p", "is a probability between 0 and 1")

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank, (1 - self.p) * np.power(self.p, hits.rank - 1.0))
