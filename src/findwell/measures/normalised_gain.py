"""G and binG: gains, discounted by what the list has lost so far instead of by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import (
    ANY_GAIN,
    AT_MOST_ONE,
    Divisor,
    PerRelevantItem,
    Terms,
    gains,
    known_as,
    register_measure,
)
from findwell.measures.dcg import DCG
from findwell.measures.running import running_sums

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class BinaryGain(PerRelevantItem):
    """The mean over the relevant items of 1 ÷ log2(2 + units above that are not relevant).

    An item that was not found adds 0. This is `G` for binary grades. The noise before a hit
    counts, not its rank, so a long list of hits does not devalue the last one.

    When to use: to see how much noise a reader passes on the way to each relevant item. It is
    rarely reported elsewhere; nDCG is easier to compare.

    Citation: trec_eval, measure `binG` (Buckley, 2008).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": ["a", "b"]}
    >>> round(evaluate(run, gold, measures=["binG"])["binG"], 6)  # (1 + 1 ÷ log2 3) ÷ 2
    0.815465
    """

    name: ClassVar[str] = "binG"
    formula: ClassVar[str] = r"\frac{1}{R}\sum_{j\text{ found}}\frac{1}{\log_2(2+n_j)}"
    aliases: ClassVar = known_as("binary_gain")
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = (
        "Add up 1 ÷ log2(2 + units above that are not relevant) of each item found"
    )

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel)
        return Terms(hits.query, hits.rank, 1 / np.log2(2 + hits.rank - hits.nth))


@register_measure
class NormalisedGain(DCG):
    """The gain of each item found ÷ log2(2 + what the list lost so far), ÷ all gain there is.

    The loss down to a rank is the gain of the ideal list so far, in which every rank counts at
    least 1, minus the gain of the list so far. A perfect list loses nothing and scores 1,
    however long; after it a miss costs 1 per rank. An experimental measure between AP and nDCG:
    what a hit is worth depends on the hits above it, not on its rank alone.

    `gain` is that of nDCG: linear (default), exp, or a table such as 0:1:3.

    When to use: with graded labels, where the noise above an item should count instead of its rank.
    It is rarely reported elsewhere; nDCG is easier to compare.

    Citation: trec_eval, measure `G` (Buckley, 2008).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": {"a": 2, "b": 2}}
    >>> round(evaluate(run, gold, measures=["G"])["G"], 6)  # (2 ÷ 1 + 2 ÷ log2 3) ÷ 4
    0.815465
    """

    name: ClassVar[str] = "G"
    formula: ClassVar[str] = r"\frac{1}{\sum g}\sum_{j\text{ found}}\frac{g_j}{\log_2(2+\ell_j)}"
    aliases: ClassVar = known_as("normalised_gain normalized_gain")
    at: ClassVar[str | None] = None
    unit_interval: ClassVar[bool] = True
    counts_items: ClassVar[bool] = True  # in the ideal list
    limit: ClassVar = AT_MOST_ONE  # rounding may lift a perfect list over it
    adds: ClassVar[str] = "Add up the gains of the items, each ÷ log2(2 + the gain lost so far)"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(ANY_GAIN)
        gained = gains(self.gain, relation.item_grade.take(hits.item))
        unit = relation.unit_key(hits.query, hits.rank)
        to_its_end = np.searchsorted(unit, unit, side="right") - 1  # all items of a unit count
        so_far = running_sums(gained, relation.count(hits.query)).take(to_its_end)
        _, _, item = relation.ideal()
        items = np.diff(relation.item_offset)
        above_one = np.maximum(gains(self.gain, relation.item_grade.take(item)) - 1, 0)
        last = relation.item_offset[hits.query] + np.minimum(hits.rank, items[hits.query]) - 1
        ideal = hits.rank + running_sums(above_one, items)[last]
        # a unit that covers several items may gain more than any one item of the ideal list
        lost = np.maximum(ideal - so_far, 0)
        return Terms(hits.query, hits.rank, gained / np.log2(2 + lost))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the gain of all items."""
        gained = gains(self.gain, relation.item_grade)
        return Divisor("gain of all items", relation.total(relation.item_query, gained))
