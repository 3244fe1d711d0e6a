"""α-nDCG: nDCG that rewards new subtopics over more of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import (
    AT_MOST_ONE,
    Divisor,
    Ideal,
    Measure,
    Terms,
    known_as,
    register_measure,
)

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.core.relation import Relation


@register_measure
class AlphaNDCG(Measure):
    """Novelty-biased nDCG over groups (subtopics).

    A unit gains (1 − α)^c for each item it covers, where c counts the units above that cover the
    same item; gains are discounted by log2(rank + 1) and divided by those of an ideal list, which
    is built greedily from the documents of the gold (the optimum is NP-hard).

    Citation: Clarke et al.: Novelty and diversity in information retrieval evaluation (SIGIR
    2008).

    >>> from karat import evaluate
    >>> gold = {"q": [["a", "b"], ["c"]]}  # two subtopics
    >>> result = evaluate({"q": ["a", "b", "c"]}, gold, measures=["alpha_nDCG@3"])
    >>> round(result["alpha_nDCG@3"], 6)
    0.965195
    """

    alpha: float = 0.5
    rel: float = 1.0

    name: ClassVar[str] = "alpha_nDCG"
    aliases: ClassVar = known_as("a_nDCG")
    limit: ClassVar = AT_MOST_ONE  # a greedy list may fall short of the optimum
    adds: ClassVar[str] = "Add up the novelty-biased gains, discounted by rank"

    def __post_init__(self) -> None:
        """Check alpha."""
        super().__post_init__()
        self.require(0 <= self.alpha <= 1, "alpha", "is a number from 0 to 1")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.covers(self.rel, self.k)
        novelty = (1 - self.alpha) ** times_before(hits.item)
        return Terms(hits.query, hits.rank, novelty / relation.discount.take(hits.rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the gain of the greedy ideal list."""
        ideal = self._ideal(relation)  # of documents, of which there may be more than items
        gained = ideal.gain / np.log2(ideal.rank + 1)
        return Divisor("ideal gain", relation.total(ideal.query, gained), ideal)

    def _ideal(self, relation: Relation) -> Ideal:
        """Build the ideal list of all queries at once, one rank a step."""
        relevant = relation.item_grade[relation.member_item] >= self.rel
        item = relation.member_item[relevant]
        query = relation.item_query[item]
        # number the documents of each query, the greatest id first, as ndeval breaks ties
        ids = relation.member_doc.filter(relevant)
        names = ids.rank("dense", descending=True).to_numpy().astype(np.int64)
        _, doc = np.unique(query * (names.max(initial=0) + 1) + names, return_inverse=True)
        doc_query = np.zeros(doc.max(initial=-1) + 1, dtype=np.int64)
        doc_query[doc] = query
        worth = np.ones(len(relation.item_grade))  # what covering each item is worth now
        free = np.ones(len(doc_query), dtype=bool)
        found = [(doc_query[:0], doc_query[:0], worth[:0])]  # query, rank and gain
        ranks = relation.ranks(self.k)
        for rank in range(1, (len(doc_query) if ranks is None else ranks) + 1):
            gain = np.where(free, np.bincount(doc, weights=worth[item]), -1.0)
            best = np.lexsort((-gain, doc_query))  # by query, the most gainful document first
            chosen = best[np.unique(doc_query[best], return_index=True)[1]]
            chosen = chosen[free[chosen]]
            if not len(chosen):
                break
            found.append((doc_query[chosen], np.full(len(chosen), rank), gain[chosen]))
            free[chosen] = False
            covered = np.isin(doc, chosen)
            worth[item[covered]] *= 1 - self.alpha
        return Ideal(*map(np.concatenate, zip(*found, strict=True)))


def times_before(values: Ints) -> Ints:
    """Count for each value how often it occurred before.

    >>> times_before(np.array([7, 5, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    _, start, size = np.unique(values[order], return_index=True, return_counts=True)
    before = np.empty(len(values), dtype=np.int64)
    before[order] = np.arange(len(values)) - np.repeat(start, size)
    return before
