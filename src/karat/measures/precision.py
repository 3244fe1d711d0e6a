"""Precision: how much of what was retrieved is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
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
    aliases: ClassVar = {
        "precision": {},
        "set_P": {},
        "context_relevancy": {"relation": "statements"},
        "context_relevance": {"relation": "statements"},
        "contextual_relevancy": {"relation": "statements"},
    }
    adds: ClassVar[str] = "Count the relevant units"

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by k, or by the number retrieved; sentences are counted in the first k chunks."""
        if self.k is not None and relation.chunk_end is None:
            return Divisor("ranks (k)", self.k)
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))
