"""Average precision: precision at every relevant item, averaged; and its geometric mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import (
    AT_MOST_ONE,
    Aggregation,
    Divisor,
    PerRelevantItem,
    Terms,
    known_as,
    register_measure,
)

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class AveragePrecision(PerRelevantItem):
    """The mean of the precision at the rank of each relevant item, 0 for items not found.

    AP@k = Σ precision(rank of item) over the relevant items found in the first k ÷ a divisor:
    `over=relevant`, all relevant items (trec_eval's map and map_cut); `over=retrieved`, those found
    in the first k (what ragas and the course notes call context precision, blind to what was
    missed); `over=min`, the smaller of k and the relevant items (so that a full list can reach 1).

    When to use: where order matters and every relevant item counts the same. It misleads where
    labels are incomplete (unjudged documents count as noise; see bpref), and where only the first
    few ranks are read (use nDCG@k).

    Citation: Buckley, Voorhees: Retrieval system evaluation, in TREC (MIT Press, 2005).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "y", "b", "c", "z"]}, {"q": ["a", "b", "c", "d"]}
    >>> result = evaluate(run, gold, measures=["AP", "AP(over=retrieved)"])
    >>> {name: round(value, 6) for name, value in result.values.items()}
    {'AP': 0.525, 'AP(over=retrieved)': 0.7}
    """

    over: str = "relevant"

    name: ClassVar[str] = "AP"
    formula: ClassVar[str] = r"\frac{1}{R}\sum_{j\text{ found}}P@r_j"
    aliases: ClassVar = known_as(
        "MAP map_cut_{k} average_precision mean_average_precision"
    ) | known_as(
        "context_precision contextual_precision llm_context_precision_with_reference",
        over="retrieved",
        relation="relevance",
    )
    limit: ClassVar = AT_MOST_ONE  # a unit with several items: more hits than k
    adds: ClassVar[str] = "Add up the precision at the first rank of each relevant item"

    def __post_init__(self) -> None:
        """Check the divisor's name."""
        super().__post_init__()
        self.require(
            self.over in ("relevant", "retrieved", "min"), "over", "is relevant, retrieved or min"
        )

    def depth(self, *, listed: bool) -> int | None:
        """Return the depth; over what was retrieved, no item matters that was not retrieved."""
        return super().depth(listed=listed and self.over != "retrieved")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank, hits.nth / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by what `over` says."""
        if self.over == "retrieved":
            found = relation.count(relation.credits(self.rel, self.k).query)
            return Divisor("relevant items retrieved", np.maximum(found, 1))
        ranks = relation.ranks(self.k)
        if self.over == "min" and ranks is not None:
            most = np.minimum(relation.relevant(self.rel), ranks)
            return Divisor("relevant items, at most k", most)
        return super().divisor(relation)


@register_measure
class GeometricAveragePrecision(AveragePrecision):
    """Average precision, aggregated by the geometric mean: gains on the worst queries count most.

    GMAP = exp(mean ln max(AP, 0.00001)). A query's own value is its AP.

    When to use: where the worst queries matter most, such as a search that must never fail. A
    single query at 0 pulls the value down strongly.

    Citation: Robertson: On GMAP, and other transformations (CIKM 2006).

    >>> from findwell import evaluate
    >>> run, gold = {"q1": ["a"], "q2": ["x", "a"]}, {"q1": ["a"], "q2": ["a"]}
    >>> round(evaluate(run, gold, measures=["GMAP"])["GMAP"], 6)
    0.707107
    """

    name: ClassVar[str] = "GMAP"
    formula: ClassVar[str] = r"\exp\left(\frac{1}{n}\sum_{q}\ln\max(\text{AP}_q,10^{-5})\right)"
    aliases: ClassVar = known_as("gm_map gm_ap geometric_map")
    aggregation: ClassVar[Aggregation] = "geometric"
