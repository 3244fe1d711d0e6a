"""α-nDCG: nDCG that rewards new subtopics over more of the same."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import (
    AT_MOST_ONE,
    Divisor,
    Ideal,
    Measure,
    Terms,
    known_as,
    register_measure,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Ints
    from findwell.core.relation import Relation

UNSHARED_ITEM = -1  # stands for any item that one document alone covers


@register_measure
class AlphaNDCG(Measure):
    """Novelty-biased nDCG over groups (subtopics).

    A unit gains (1 − α)^c for each item it covers, where c counts the units above that cover
    the same item; gains are discounted by log2(rank + 1) and divided by those of an ideal list,
    which is built greedily from the documents of the gold (the optimum is NP-hard). The
    time to build it grows with the number of documents. Only if thousands of documents of one
    query share their items in thousands of combinations, it grows with the square of that
    number; with a cutoff, with k times that number.

    When to use: where one question has several aspects and repeating one of them is worth little.
    It needs gold labels with groups; without groups use nDCG.

    Citation: Clarke et al.: Novelty and diversity in information retrieval evaluation (SIGIR
    2008).

    >>> from findwell import evaluate
    >>> gold = {"q": [["a", "b"], ["c"]]}  # two subtopics
    >>> result = evaluate({"q": ["a", "b", "c"]}, gold, measures=["alpha_nDCG@3"])
    >>> round(result["alpha_nDCG@3"], 6)
    0.965195
    """

    alpha: float = 0.5
    rel: float = 1.0

    name: ClassVar[str] = "alpha_nDCG"
    formula: ClassVar[str] = (
        r"\frac{1}{\text{ideal}}\sum_{i\le k}\frac{\sum_{j\in d_i}(1-\alpha)^{c_{ij}}}{"
        r"\log_2(i+1)}"
    )
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

    def compute(self, relation: Relation) -> Floats:
        """Return the quotient, and 0 where no document holds what is asked for."""
        return np.nan_to_num(super().compute(relation))

    def _ideal(self, relation: Relation) -> Ideal:
        """Build the ideal list of each query, without the ranks that gain nothing."""
        relevant = relation.item_grade[relation.member_item] >= self.rel
        item = relation.member_item[relevant]
        query = relation.item_query[item]
        # number the documents of each query, the greatest id first, as ndeval breaks ties
        ids = relation.member_doc.filter(relevant)
        names = ids.rank("dense", descending=True).to_numpy().astype(np.int64)
        _, doc = np.unique(query * (names.max(initial=0) + 1) + names, return_inverse=True)
        doc_query = np.zeros(doc.max(initial=-1) + 1, dtype=np.int64)
        doc_query[doc] = query
        # what an item is worth falls only where a second document covers it
        shared = (np.bincount(item)[item] > 1) & (self.alpha > 0)
        falls = relation.count(query[shared]) > 0
        most = relation.ranks(self.k)
        fixed = np.flatnonzero(~falls[doc_query])
        count = np.bincount(doc, minlength=len(doc_query))[fixed].astype(np.float64)
        order = np.lexsort((-count, doc_query[fixed]))  # by query, the most gainful first
        lists = [(doc_query[fixed][order], count[order])]
        covers = _covers(doc, np.where(shared, item, UNSHARED_ITEM))
        bounds = np.searchsorted(doc_query, np.arange(relation.n + 1)).tolist()
        for number in np.flatnonzero(falls).tolist():
            gains = greedy_gains(covers[bounds[number] : bounds[number + 1]], self.alpha, most)
            lists.append((np.full(len(gains), number), np.array(gains)))
        listed, gain = map(np.concatenate, zip(*lists, strict=True))
        return _ranked(relation, listed, gain, most)


def _ranked(relation: Relation, query: Ints, gain: Floats, most: int | None) -> Ideal:
    """Number the ranks of lists, of which each comes in one piece, and cut them."""
    order = np.argsort(query, kind="stable")
    query, gain = query[order], gain[order]
    size = relation.count(query)
    rank = np.arange(len(query)) - (np.cumsum(size) - size)[query] + 1
    kept = rank <= (len(query) if most is None else most)
    return Ideal(query[kept], rank[kept], gain[kept])


def _covers(doc: Ints, item: Ints) -> list[tuple[int, ...]]:
    """Return the items of each document."""
    order = np.argsort(doc, kind="stable")
    items = item[order].tolist()
    ends = np.cumsum(np.bincount(doc)).tolist() if len(doc) else []
    return [tuple(items[first:last]) for first, last in pairwise([0, *ends])]


def greedy_gains(
    covers: Sequence[tuple[int, ...]], alpha: float, most: int | None = None
) -> list[float]:
    """Return what each rank gains if the document that gains most comes next, the first of equals.

    `covers` has the items of each document; those of no other document are `UNSHARED_ITEM`.
    A gain never rises, so that what a document gained when it was last looked at is the most that
    it can gain now: only the document on top is looked at again. Documents with the same items
    stand in one line, as they gain the same. Time grows with the documents, and with how often
    items shared by different lines are covered until they are worth nothing; where thousands of
    documents share their items in thousands of combinations, with the square of their number.

    >>> greedy_gains([(1, 2), (1,), (2, UNSHARED_ITEM)], 0.5)
    [2.0, 1.5, 0.5]
    """
    first: dict[tuple[int, ...], int] = {}  # of each line
    following = [0] * len(covers)  # in the line of each document; its own number: it is the last
    for document in range(len(covers) - 1, -1, -1):
        following[document] = first.get(covers[document], document)
        first[covers[document]] = document
    worth = dict.fromkeys(chain.from_iterable(first), 1.0)
    heap = [(-float(len(items)), document) for items, document in first.items()]
    heapify(heap)
    gains: list[float] = []
    while heap and (most is None or len(gains) < most):
        before, document = heap[0]
        gain = 0.0  # added up in order: `sum` is more exact in newer versions of Python
        for item in covers[document]:
            gain += worth[item]
        if gain != -before:
            heapreplace(heap, (-gain, document))
            continue
        if not gain:
            break
        gains.append(gain)
        for item in {*covers[document]}:
            if item != UNSHARED_ITEM:
                worth[item] *= 1 - alpha
        if following[document] == document:
            heappop(heap)
        else:
            heapreplace(heap, (-gain, following[document]))
    return gains


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
