"""The residual of rank-biased precision: what is not known could still add it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, register_measure

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class RankBiasedPrecisionResidual(Measure):
    """The weight of all ranks whose unit is unjudged or was never retrieved.

    RBP_residual(p) = 1 − (1 − p) · Σ p^(rank−1) over the judged units. The true RBP lies between
    RBP and RBP + residual; a residual larger than the difference of two systems says that the
    judgements cannot tell them apart.

    Citation: Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness
    (ACM TOIS 27(1), 2008).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 0}}
    >>> evaluate(run, gold, measures=["RBP_residual(p=0.5)"])["RBP_residual(p=0.5)"]
    0.375
    """

    p: float = 0.8

    name: ClassVar[str] = "RBP_residual"
    aliases: ClassVar = {"rbp_resid": {}, "rbp_resid_p={p}": {}, "rbp_resid.p={p}": {}}
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the patience."""
        super().__post_init__()
        self.require(0 < self.p < 1, "p", "is a probability between 0 and 1")

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def compute(self, relation: Relation) -> Floats:
        """Return 1 − the weight of the judged ranks."""
        query, rank = relation.judged(self.k)
        judged = (1 - self.p) * relation.total(query, np.power(self.p, rank - 1.0))
        return np.maximum(1 - judged, 0)
