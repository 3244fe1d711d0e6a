"""Recall: how much of what should be found was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class Recall(Measure):
    """The share of relevant items that were found.

    recall@k = relevant items covered by the first k units ÷ relevant items. An item is one
    relevant document, or a group of which any document is enough; over subtopic judgements it is
    subtopic recall. An item covered twice counts once; a unit that covers several items finds
    them all.

    Citation: Kent, Berry, Luehrs, Perry: Machine literature searching VIII (American
    Documentation 6(2), 1955); for subtopics Zhai, Cohen, Lafferty (SIGIR 2003).

    >>> from karat import evaluate
    >>> gold = {"q": [["a", "b"], ["c"]]}  # (a or b) and c
    >>> evaluate({"q": ["b", "a", "x"]}, gold, measures=["recall@3"])["recall@3"]
    0.5
    """

    rel: float = 1.0

    name: ClassVar[str] = "recall"
    aliases: ClassVar = {
        "R": {},
        "context_recall": {"relation": "claims"},
        "context_entities_recall": {"relation": "entities"},
        "context_entity_recall": {"relation": "entities"},
        "context_sufficiency": {"relation": "sufficiency"},
        "contextual_recall": {"relation": "claims"},
        "set_recall": {},
        "SetR": {},
        "StRecall": {},
        "strec": {},
        "subtopic_recall": {},
        "recall_multi_hit": {},
    }
    adds: ClassVar[str] = "Count the items covered"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items."""
        return Divisor("relevant items", relation.relevant(self.rel))
