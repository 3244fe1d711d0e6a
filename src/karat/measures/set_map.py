"""Set average precision: precision times recall of the whole list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.measures.measure import Measure, register_measure
from karat.measures.precision import Precision
from karat.measures.recall import Recall

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class SetAveragePrecision(Measure):
    """Precision × recall of all that was retrieved, whatever its order.

    Average precision of a set: every relevant item found adds the precision of the set, every
    item missed adds 0.

    Citation: trec_eval, measure `set_map`.

    >>> from karat import evaluate
    >>> evaluate({"q": ["x", "a"]}, {"q": ["a", "b"]}, measures=["set_map"])["set_map"]
    0.25
    """

    rel: float = 1.0

    name: ClassVar[str] = "set_map"
    aliases: ClassVar = {"SetAP": {}}
    at: ClassVar[str | None] = None

    def parts(self) -> tuple[Measure, ...]:
        """Return precision and recall."""
        return (
            Precision(rel=self.rel, relation=self.relation),
            Recall(rel=self.rel, relation=self.relation),
        )

    def compute(self, relation: Relation) -> Floats:
        """Return the product."""
        precision, recall = (part.compute(relation) for part in self.parts())
        return precision * recall
