"""Normalised discounted cumulative gain: how close to the ideal order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from findwell.core.measure import (
    AT_MOST_ONE,
    Divisor,
    Ideal,
    Limit,
    gains,
    known_as,
    register_measure,
)
from findwell.measures.dcg import DCG

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class NDCG(DCG):
    """DCG ÷ the DCG of the ideal list, capped at 1.

    The ideal list shows one item per rank, highest grade first, over all items of the gold, and is
    cut at k too. Every grade above 0 counts.
    `gain=linear` (default) takes the grade as it is, as trec_eval does; `gain=exp` takes
    2^grade − 1, as in web search and Kaggle; `gain=0:1:3` names the gain of grade 0, 1, 2.

    Citation: Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques (ACM TOIS
    20(4), 2002).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 2, "b": 3}}
    >>> result = evaluate(run, gold, measures=["nDCG@3", "nDCG(gain=exp)@3"])
    >>> {name: round(value, 6) for name, value in result.values.items()}
    {'nDCG@3': 0.821238, 'nDCG(gain=exp)@3': 0.730929}
    """

    name: ClassVar[str] = "nDCG"
    formula: ClassVar[str] = (
        r"\min\left(1,\frac{\text{DCG}@k}{\text{DCG}@k\text{ of the ideal list}}\right)"
    )
    aliases: ClassVar = known_as(
        "ndcg_cut_{k} normalized_dcg normalized_discounted_cumulative_gain"
    ) | known_as("ndcg_burges", gain="exp")
    unit_interval: ClassVar[bool] = True
    counts_items: ClassVar[bool] = True  # in the ideal list
    limit: ClassVar[Limit | None] = AT_MOST_ONE  # a unit may be richer than one item

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the DCG of the ideal list."""
        query, rank, item = relation.ideal(self.k)
        gained = gains(self.gain, relation.item_grade.take(item))
        return Divisor.discounted("ideal DCG", relation, Ideal(query, rank, gained))
