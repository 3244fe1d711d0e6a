"""Intersection over union: how far what was retrieved and what is gold are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class IntersectionOverUnion(Measure):
    """What retrieved and gold share ÷ what they hold together.

    IoU@k = relevant items covered by the first k ÷ (all relevant items + units among the first k
    that cover none). Over words it is the token IoU of chunking studies; over sets of documents
    the Jaccard index.

    Citation: Jaccard: The distribution of the flora in the alpine zone (New Phytologist 11(2),
    1912).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b", "c"]}, measures=["IoU"])["IoU"]
    0.5
    """

    rel: float = 1.0

    name: ClassVar[str] = "IoU"
    aliases: ClassVar = {"jaccard": {}}
    adds: ClassVar[str] = "Count the items covered"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items and the units that cover none."""
        useful = relation.count(relation.units(self.rel, self.k).query)
        union = relation.relevant(self.rel) + relation.shown(self.k) - useful
        return Divisor("relevant items and units without one", np.maximum(union, 1))
