"""Rank-biased precision: what a reader of a given patience gains, and how much is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import AT_MOST_ONE, Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class RankBiasedPrecision(Measure):
    """The gain of a reader who goes on to the next rank with probability p.

    RBP(p) = (1 − p) · Σ p^(rank−1) over the relevant units. What unjudged and unseen units could
    still add is `RBP_residual`. p is .8 by default; in trec_eval it is .9, and a unit
    weighs as much as its grade.

    When to use: where readers go down the list with a known patience p, and labels are incomplete:
    its residual says how much the unjudged documents could add. Values with different p cannot be
    compared.

    Citation: Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness
    (ACM TOIS 27(1), 2008).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]}, measures=["RBP(p=0.5)"])["RBP(p=0.5)"]
    0.625
    """

    rel: float = 1.0
    p: float = 0.8

    name: ClassVar[str] = "RBP"
    formula: ClassVar[str] = r"(1-p)\sum_{i\le k}\text{rel}_i\,p^{\,i-1}"
    aliases: ClassVar = known_as("rbp{p} rbp_p={p} rbp.p={p} rank_biased_precision")
    limit: ClassVar = AT_MOST_ONE  # rounding may lift a long perfect list over it
    adds: ClassVar[str] = "Add up the weights of the relevant units"
    counts_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the patience."""
        super().__post_init__()
        self.require(0 < self.p < 1, "p", "is a probability between 0 and 1")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank, (1 - self.p) * np.power(self.p, hits.rank - 1.0))


@register_measure
class RankBiasedPrecisionResidual(Measure):
    """The weight of all ranks whose unit is unjudged or was never retrieved.

    RBP_residual(p) = 1 − (1 − p) · Σ p^(rank−1) over the judged units. The true RBP lies between
    RBP and RBP + residual; a residual larger than the difference of two systems means that the
    judgements cannot distinguish them.

    When to use: next to RBP: how far RBP could rise if all unjudged and unseen units were relevant.
    If it is larger than the difference of two systems, the labels are too few to compare them.

    Citation: Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness
    (ACM TOIS 27(1), 2008).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 0}}
    >>> evaluate(run, gold, measures=["RBP_residual(p=0.5)"])["RBP_residual(p=0.5)"]
    0.375
    """

    p: float = 0.8

    name: ClassVar[str] = "RBP_residual"
    formula: ClassVar[str] = r"1-(1-p)\sum_{i\le k,\text{ judged}}p^{\,i-1}"
    aliases: ClassVar = known_as("rbp_resid rbp_resid_p={p} rbp_resid.p={p}")
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the patience."""
        super().__post_init__()
        self.require(0 < self.p < 1, "p", "is a probability between 0 and 1")

    def compute(self, relation: Relation) -> Floats:
        """Return 1 − the weight of the judged ranks."""
        query, rank = relation.judged(self.k)
        judged = (1 - self.p) * relation.total(query, np.power(self.p, rank - 1.0))
        return np.maximum(1 - judged, 0)
