"""R-precision: precision at the number of relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.measures.measure import Measure, register

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class RPrecision(Measure):
    """Precision at rank R, where R is the query's number of relevant items.

    Rprec = relevant units among the first R ÷ R: the point where precision equals recall.

    Citation: Buckley, Voorhees: Retrieval system evaluation, in TREC (MIT Press, 2005).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]}, measures=["Rprec"])["Rprec"]
    0.5
    """

    rel: float = 1.0

    name: ClassVar[str] = "Rprec"
    aliases: ClassVar = {"r_precision": {}, "RPrecision": {}}
    at: ClassVar[str | None] = None

    def compute(self, relation: Relation) -> Floats:
        """Return relevant units among the first R ÷ R."""
        relevant = relation.relevant(self.rel)
        hits = relation.units(self.rel)
        inside = hits.rank <= relevant[hits.query]
        return relation.count(hits.query[inside]) / relevant
