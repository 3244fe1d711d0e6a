"""Rndcg: nDCG where the ideal list changes its gain, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.dcg import DCG
from karat.measures.gain import gains, ndcg_at
from karat.measures.measure import AT_MOST_ONE, Divisor, Limit, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class NDCGByLevel(DCG):
    """The mean of nDCG at the ranks where the ideal list goes from one gain to the next.

    With 2 items of grade 3 and 5 of grade 1 these are the ranks 2 and 7, and the end of the list
    where it lies more than one rank further down: R-precision's idea for graded gains. A query
    needs an item of grade ≥ rel; every grade above 0 gains.

    `gain` is that of nDCG: linear (default), exp, or a table such as 0:1:3.

    Citation: trec_eval, measure `Rndcg` (Buckley, 2008).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> round(evaluate(run, gold, measures=["Rndcg"])["Rndcg"], 6)  # 1 ÷ 1.63 at rank 2
    0.613147
    """

    rel: float = 1.0

    name: ClassVar[str] = "Rndcg"
    aliases: ClassVar = {"R_nDCG": {}}
    at: ClassVar[str | None] = None
    unit_interval: ClassVar[bool] = True
    limit: ClassVar[Limit | None] = AT_MOST_ONE  # rounding may lift it over 1
    adds: ClassVar[str] = (
        "Add up nDCG at the ranks where the ideal list changes its gain, and at the end"
    )

    def level(self) -> float:
        """Return the grade that a query needs an item of."""
        return self.rel

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
