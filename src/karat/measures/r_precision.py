"""R-precision: precision at the number of relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
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
    aliases: ClassVar = {"r_precision": {}}
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = "Count the relevant units among the first R"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel)
        inside = hits.rank <= relation.relevant(self.rel)[hits.query]
        return Terms(hits.query[inside], hits.rank[inside])

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by R."""
        return Divisor("relevant items", relation.relevant(self.rel))
