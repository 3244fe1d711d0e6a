"""Success: was anything found?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from findwell.core.measure import AT_MOST_ONE, Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class Success(Measure):
    """1 when the first k units hold a relevant one, else 0; the mean is the hit rate.

    When to use: where one relevant document is enough: the share of questions with at least one
    hit. It says nothing about questions that need several passages; use recall or all_found there.

    Citation: Craswell, Hawking, Wilkinson, Wu: Overview of the TREC 2003 web track.

    >>> from findwell import evaluate
    >>> run = {"q": ["x", "a"]}
    >>> evaluate(run, {"q": ["a"]}, measures=["success@1", "hit_rate@2"]).values
    {'success@1': 0.0, 'success@2': 1.0}
    """

    rel: float = 1.0

    name: ClassVar[str] = "success"
    formula: ClassVar[str] = r"[\text{some }d_i\text{ with }i\le k\text{ is relevant}]"
    aliases: ClassVar = known_as(
        "hit_rate hit hit_ratio HR accuracy top_k_accuracy recall_single_hit"
    )
    limit: ClassVar = AT_MOST_ONE
    adds: ClassVar[str] = "Count the relevant units"
    counts_items: ClassVar[bool] = False
    only_grows: ClassVar[bool] = True

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank)
