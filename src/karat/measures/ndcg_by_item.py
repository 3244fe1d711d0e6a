"""ndcg_rel: nDCG at every relevant item, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.core.relation import ANY_GAIN
from karat.measures.dcg import DCG
from karat.measures.gain import gains, ndcg_at
from karat.measures.measure import AT_MOST_ONE, Divisor, Limit, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class NDCGByItem(DCG):
    """The mean over the items of nDCG down to the rank where each was found.

    An item that was not found adds the nDCG of the whole list. Every item with a gain counts,
    whatever its grade. nDCG at a fixed rank rises and falls with the number of relevant items;
    its mean over the places where something was found does not depend on a rank chosen beforehand.

    `gain` is that of nDCG: linear (default), exp, or a table such as 0:1:3.

    Citation: trec_eval, measure `ndcg_rel` (Buckley, 2008).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> round(evaluate(run, gold, measures=["ndcg_rel"])["ndcg_rel"], 6)  # (1 + 1.5 ÷ 1.63) ÷ 2
    0.95986
    """

    name: ClassVar[str] = "ndcg_rel"
    aliases: ClassVar = {}
    at: ClassVar[str | None] = None
    unit_interval: ClassVar[bool] = True
    limit: ClassVar[Limit | None] = AT_MOST_ONE  # rounding may lift it over 1
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
