"""Average precision: precision at every relevant item, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import AT_MOST_ONE, Divisor, Limit, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class AveragePrecision(Measure):
    """The mean of the precision at the rank of each relevant item, 0 for items not found.

    AP@k = Σ precision(rank of item) over the relevant items found in the first k ÷ a divisor:
    `over=relevant`, all relevant items (trec_eval's map and map_cut); `over=retrieved`, those found
    in the first k (what ragas and the course notes call context precision, blind to what was
    missed); `over=min`, the smaller of k and the relevant items (so that a full list can reach 1).

    Citation: Buckley, Voorhees: Retrieval system evaluation, in TREC (MIT Press, 2005).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "y", "b", "c", "z"]}, {"q": ["a", "b", "c", "d"]}
    >>> result = evaluate(run, gold, measures=["AP", "AP(over=retrieved)"])
    >>> {name: round(value, 6) for name, value in result.values.items()}
    {'AP': 0.525, 'AP(over=retrieved)': 0.7}
    """

    rel: float = 1.0
    over: str = "relevant"

    name: ClassVar[str] = "AP"
    aliases: ClassVar = {
        "MAP": {},
        "map_cut_{k}": {},
        "average_precision": {},
        "mean_average_precision": {},
        "context_precision": {"over": "retrieved", "relation": "relevance"},
        "contextual_precision": {"over": "retrieved", "relation": "relevance"},
    }
    limit: ClassVar[Limit | None] = AT_MOST_ONE  # a unit with several items: more hits than k
    adds: ClassVar[str] = "Add up the precision at the first rank of each relevant item"

    def __post_init__(self) -> None:
        """Check the divisor's name."""
        super().__post_init__()
        self.require(
            self.over in ("relevant", "retrieved", "min"), "over", "is relevant, retrieved or min"
        )

    def counts_items(self) -> bool:
        """Tell whether the divisor counts items that were not retrieved."""
        return self.over != "retrieved"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank, hits.nth / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by what `over` says."""
        relevant = relation.relevant(self.rel)
        if self.over == "retrieved":
            found = relation.count(relation.credits(self.rel, self.k).query)
            return Divisor("relevant items retrieved", np.maximum(found, 1))
        if self.over == "min" and self.k is not None and relation.chunk_end is None:
            return Divisor("relevant items, at most k", np.minimum(relevant, self.k))
        return Divisor("relevant items", relevant)
