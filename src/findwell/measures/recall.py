"""Recall: how much of what should be found was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, Limit, PerRelevantItem, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class Recall(PerRelevantItem):
    """The share of relevant items that were found.

    recall@k = relevant items covered by the first k units ÷ relevant items. An item is one
    relevant document, or a group of which any document is enough; over subtopic judgements it is
    subtopic recall. An item covered twice counts once; a unit that covers several items finds
    them all.

    Where the gold tells how far documents support an item (`{"docs": {"a": 1, "b": 0.5}}`), an item
    counts by the best support found, and `support` is the least that counts at all: with vital
    items of grade 2, recall(rel=2,support=1) is the strict vital score of nugget evaluation.

    When to use: as the first measure, because a model cannot use what was not found. It ignores
    order and noise, and a longer list never lowers it, so fix k or a budget before you compare.

    Citation: Kent, Berry, Luehrs, Perry: Machine literature searching VIII (American
    Documentation 6(2), 1955); for subtopics Zhai, Cohen, Lafferty (SIGIR 2003); for support
    Pradeep et al.: The great nugget recall (SIGIR 2025).

    >>> from findwell import evaluate
    >>> gold = {"q": [["a", "b"], ["c"]]}  # (a or b) and c
    >>> evaluate({"q": ["b", "a", "x"]}, gold, measures=["recall@3"])["recall@3"]
    0.5
    >>> gold = [{"query": "q", "gold": [{"docs": {"a": 1, "b": 0.5}}, {"docs": {"b": 1}}]}]
    >>> evaluate({"q": ["b", "a"]}, gold, ["recall@1", "recall(support=1)@1", "recall@2"]).values
    {'recall@1': 0.75, 'recall(support=1)@1': 0.5, 'recall@2': 1.0}
    """

    support: float = 0.0

    name: ClassVar[str] = "recall"
    formula: ClassVar[str] = r"\frac{\left|\{j:r_j\le k\}\right|}{R}"
    aliases: ClassVar = (
        known_as("R set_recall SetR StRecall strec subtopic_recall recall_multi_hit")
        | known_as("id_based_context_recall", relation="ids")
        | known_as("context_recall contextual_recall llm_context_recall", relation="claims")
        | known_as("context_entities_recall context_entity_recall", relation="entities")
        | known_as("context_sufficiency", relation="sufficiency")
    )
    adds: ClassVar[str] = "Count the items covered"
    only_grows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the support."""
        super().__post_init__()
        self.require(0 <= self.support <= 1, "support", "is a number from 0 to 1")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        return Terms(*relation.supports(self.rel, self.k, least=self.support))


@register_measure
class AllFound(Recall):
    """1 when the first k units cover every relevant item, else 0.

    For questions that need several passages at once: with one of two facts missing, recall is
    .5 but the answer is wrong. Also known as complete recall or set-level accuracy in multi-hop
    question answering.

    When to use: for questions that cannot be half answered, such as those of several hops. It is
    strict: with many items per question it is 0 for nearly every list, and recall shows more.

    Citation: Yang et al.: HotpotQA (EMNLP 2018), where both supporting passages are required.

    >>> from findwell import evaluate
    >>> run = {"q": ["a", "x", "b"]}
    >>> evaluate(run, {"q": ["a", "b"]}, measures=["all-found@2", "all-found@3"]).values
    {'all_found@2': 0.0, 'all_found@3': 1.0}
    """

    name: ClassVar[str] = "all_found"
    formula: ClassVar[str] = r"[\text{recall}@k=1]"
    aliases: ClassVar = known_as("complete_recall")
    limit: ClassVar = Limit("all or nothing", np.floor)


@register_measure
class IntersectionOverUnion(Recall):
    """What the retrieved list and the gold labels have in common ÷ all that either holds.

    IoU@k = relevant items covered by the first k ÷ (all relevant items + units among the first k
    that cover none). Over words it is the token IoU of chunking studies; over sets of documents
    the Jaccard index.

    When to use: to compare chunkers by words or spans: it punishes both missed text and text that
    is not needed. By document ids it falls with every extra result, so it mostly reflects the
    length of the list.

    Citation: Jaccard: The distribution of the flora in the alpine zone (New Phytologist 11(2),
    1912).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b", "c"]}, measures=["IoU"])["IoU"]
    0.5
    """

    name: ClassVar[str] = "IoU"
    only_grows: ClassVar[bool] = False
    formula: ClassVar[str] = (
        r"\frac{\left|\text{retrieved}\cap\text{gold}\right|}{\left|\text{retrieved}\cup"
        r"\text{gold}\right|}"
    )
    aliases: ClassVar = known_as("jaccard")

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items and the units that cover none."""
        useful = relation.count(relation.units(self.rel, self.k).query)
        union = relation.relevant(self.rel) + relation.shown(self.k) - useful
        return Divisor("relevant items and units without one", np.maximum(union, 1))
