"""nDCG averaged over several ranks: where items were found, or where the ideal gain changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import (
    ANY_GAIN,
    AT_MOST_ONE,
    Divisor,
    Terms,
    gains,
    known_as,
    register_measure,
)
from findwell.measures.dcg import DCG
from findwell.measures.running import running_sums

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.core.relation import Relation


@register_measure
class NDCGByItem(DCG):
    """The mean over the items of nDCG down to the rank where each was found.

    An item that was not found adds the nDCG of the whole list. Every item with a gain counts,
    whatever its grade. nDCG at a fixed rank rises and falls with the number of relevant items;
    its mean over the places where something was found does not depend on a rank chosen beforehand.

    `gain` is that of nDCG: linear (default), exp, or a table such as 0:1:3.

    When to use: to reproduce trec_eval's measure of that name. For new work use nDCG at a cutoff.

    Citation: trec_eval, measure `ndcg_rel` (Buckley, 2008).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> round(evaluate(run, gold, measures=["ndcg_rel"])["ndcg_rel"], 6)  # (1 + 1.5 ÷ 1.63) ÷ 2
    0.95986
    """

    name: ClassVar[str] = "ndcg_rel"
    formula: ClassVar[str] = r"\frac{1}{R}\sum_{j}\text{nDCG}@r_j"
    aliases: ClassVar = {}
    at: ClassVar[str | None] = None
    unit_interval: ClassVar[bool] = True
    counts_items: ClassVar[bool] = True  # in the ideal list
    limit: ClassVar = AT_MOST_ONE  # rounding may lift it over 1
    adds: ClassVar[str] = (
        "Add up nDCG at the rank of each item found, and at the end for each item missed"
    )

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(ANY_GAIN)
        worth = np.flatnonzero(gains(self.gain, relation.item_grade.take(hits.item)) > 0)
        found = ndcg_at(relation, self.gain, hits.query[worth], hits.rank[worth])
        missed = self._items(relation) - relation.count(hits.query[worth])
        short = np.flatnonzero((missed > 0) & (relation.depth > 0))
        items = np.diff(relation.item_offset)[short]
        whole = ndcg_at(relation, self.gain, short, np.maximum(items, relation.depth[short]))
        return Terms(
            np.concatenate((hits.query[worth], short)),
            np.concatenate((hits.rank[worth], relation.depth[short])),
            np.concatenate((found, missed[short] * whole)),
        )

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the items with a gain."""
        return Divisor("items with a gain", self._items(relation))

    def _items(self, relation: Relation) -> Ints:
        return relation.count(relation.item_query[gains(self.gain, relation.item_grade) > 0])


@register_measure
class NDCGByLevel(DCG):
    """The mean of nDCG at the ranks where the ideal list goes from one gain to the next.

    With 2 items of grade 3 and 5 of grade 1 these are the ranks 2 and 7. The end of the list is
    added if it is more than one rank further down. This extends R-precision to graded gains. A
    query needs an item of grade ≥ rel; every grade above 0 gains.

    `gain` is that of nDCG: linear (default), exp, or a table such as 0:1:3.

    When to use: to reproduce trec_eval's measure of that name. For new work use nDCG at a cutoff.

    Citation: trec_eval, measure `Rndcg` (Buckley, 2008).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> round(evaluate(run, gold, measures=["Rndcg"])["Rndcg"], 6)  # 1 ÷ 1.63 at rank 2
    0.613147
    """

    rel: float = 1.0

    name: ClassVar[str] = "Rndcg"
    formula: ClassVar[str] = r"\frac{1}{\left|T\right|}\sum_{t\in T}\text{nDCG}@t"
    aliases: ClassVar = known_as("R_nDCG")
    at: ClassVar[str | None] = None
    unit_interval: ClassVar[bool] = True
    counts_items: ClassVar[bool] = True  # in the ideal list
    any_grade: ClassVar[bool] = False  # a query needs an item of grade ≥ rel
    limit: ClassVar = AT_MOST_ONE  # rounding may lift it over 1
    adds: ClassVar[str] = (
        "Add up nDCG at the ranks where the ideal list changes its gain, and at the end"
    )

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        query, rank = self._places(relation)
        listed = relation.depth[query] > 0
        query, rank = query[listed], rank[listed]
        shown = np.minimum(rank, relation.depth[query])
        return Terms(query, shown, ndcg_at(relation, self.gain, query, rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the number of these ranks."""
        query, _ = self._places(relation)
        return Divisor("changes of gain", np.maximum(relation.count(query), 1))

    def _places(self, relation: Relation) -> tuple[Ints, Ints]:
        """Return the queries and ranks at which nDCG is taken."""
        gained = gains(self.gain, relation.item_grade)
        query = relation.item_query
        changes = np.ones(len(gained), dtype=bool)
        changes[:-1] = (gained[1:] != gained[:-1]) | (query[1:] != query[:-1])
        item = np.flatnonzero(changes & (gained > 0))
        rank = item - relation.item_offset[query[item]] + 1
        worth = relation.count(query[gained > 0])
        # trec_eval takes the end only where more than one rank is left
        longer = np.flatnonzero((worth > 0) & (relation.depth > worth + 1))
        return (
            np.concatenate((query[item], longer)),
            np.concatenate((rank, relation.depth[longer])),
        )


def ndcg_at(relation: Relation, gain: str, query: Ints, rank: Ints) -> Floats:
    """Return nDCG down to these ranks of these queries; beyond its end a list gains nothing."""
    hits = relation.credits(ANY_GAIN)
    found = relation.count(hits.query)
    gained = gains(gain, relation.item_grade.take(hits.item)) / relation.discount.take(hits.rank)
    down_to = relation.unit_key(query, np.minimum(rank, relation.depth[query]))
    end = np.searchsorted(relation.unit_key(hits.query, hits.rank), down_to, side="right")
    start = (np.cumsum(found) - found)[query]
    sums = np.concatenate(
        (running_sums(gained, found), [0.0])
    )  # [0.0]: where no query gained anything
    dcg = np.where(end > start, sums[end - 1], 0.0)
    _, place, item = relation.ideal()
    ideal = gains(gain, relation.item_grade.take(item)) / relation.discount.take(place)
    items = np.diff(relation.item_offset)
    last = relation.item_offset[query] + np.minimum(rank, items[query]) - 1
    return np.minimum(dcg / running_sums(ideal, items)[last], 1.0)
