"""Discounted cumulative gain: grades, discounted by rank; and how close it is to the ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from findwell.core.measure import (
    ANY_GAIN,
    AT_MOST_ONE,
    Divisor,
    Ideal,
    Limit,
    Measure,
    Terms,
    gains,
    known_as,
    register_measure,
)

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class DCG(Measure):
    """The sum of gains, each divided by log2(rank + 1).

    `gain=linear` (default) takes the grade as it is, as trec_eval does; `gain=exp` takes
    2^grade − 1, as in web search and Kaggle; `gain=0:1:3` names the gain of grade 0, 1, 2.
    A unit that covers several items gains them all; an item covered again gains nothing.

    When to use: inside other measures, or to compare lists for one query. Its scale depends on how
    many relevant items a query has, so its mean over queries is dominated by queries with many; use
    nDCG for that.

    Citation: Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques (ACM TOIS
    20(4), 2002); exponential gain Burges et al. (ICML 2005).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": {"a": 2, "b": 3}}, measures=["DCG@3"])["DCG@3"]
    3.5
    """

    gain: str = "linear"

    name: ClassVar[str] = "DCG"
    formula: ClassVar[str] = r"\sum_{i\le k}\frac{g_i}{\log_2(i+1)}"
    aliases: ClassVar = known_as("dcg_burges", gain="exp") | known_as("discounted_cumulative_gain")
    unit_interval: ClassVar[bool] = False
    adds: ClassVar[str] = "Add up the discounted gains of the items, each at its first rank"
    counts_items: ClassVar[bool] = False
    any_grade: ClassVar[bool] = True

    @classmethod
    def respell(cls, given: dict[str, str]) -> dict[str, str]:
        """Translate ir_measures' `dcg='exp-log2'`."""
        dcg = given.pop("dcg", None)
        names = {None: given.get("gain"), "log2": "linear", "exp-log2": "exp"}
        gain = names.get(dcg, dcg)
        return given if gain is None else {**given, "gain": gain}

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(ANY_GAIN, self.k)
        gained = gains(self.gain, relation.item_grade.take(hits.item))
        return Terms(hits.query, hits.rank, gained / relation.discount.take(hits.rank))


@register_measure
class NDCG(DCG):
    """DCG ÷ the DCG of the ideal list, capped at 1.

    The ideal list shows one item per rank, highest grade first, over all items of the gold, and is
    cut at k too. Every grade above 0 counts.
    `gain=linear` (default) takes the grade as it is, as trec_eval does; `gain=exp` takes
    2^grade − 1, as in web search and Kaggle; `gain=0:1:3` names the gain of grade 0, 1, 2.

    When to use: where order matters and some documents are better than others; it is the usual
    choice for graded labels. It misleads where the model reads all k chunks equally (use recall@k),
    and with incomplete labels (see judged@k).

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
