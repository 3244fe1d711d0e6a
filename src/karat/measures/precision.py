"""Precision: how much of what was retrieved is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, register

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class Precision(Measure):
    """The share of retrieved units that are relevant.

    P@k = relevant units among the first k ÷ k, also when fewer than k were retrieved; without a
    cutoff the divisor is the number retrieved (`set_P` of trec_eval), and retrieving nothing
    scores 0. A unit is relevant when it covers an item of grade ≥ rel; a repetition of a unit
    is not, a second document of the same group is.

    Citation: Kent, Berry, Luehrs, Perry: Machine literature searching VIII (American
    Documentation 6(2), 1955).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b", "c"]}, measures=["P@4", "P"]).values
    {'P@4': 0.5, 'P': 0.6666666666666666}
    """

    rel: float = 1.0

    name: ClassVar[str] = "P"
    aliases: ClassVar = {"precision": {}, "P_{k}": {}, "set_P": {}, "SetP": {}}

    def compute(self, relation: Relation) -> Floats:
        """Return relevant units ÷ k, or ÷ the number retrieved."""
        found = relation.count(relation.units(self.rel, self.k).query)
        return found / (self.k or np.maximum(relation.depth, 1))
