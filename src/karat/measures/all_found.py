"""All found: was everything found?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Limit, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class AllFound(Measure):
    """1 when the first k units cover every relevant item, else 0.

    What a question that needs several passages at once really asks of retrieval: with one of two
    facts missing, recall is .5 but the answer is wrong. Also known as complete recall or
    set-level accuracy in multi-hop question answering.

    Citation: Yang et al.: HotpotQA (EMNLP 2018), where both supporting passages are required.

    >>> from karat import evaluate
    >>> run = {"q": ["a", "x", "b"]}
    >>> evaluate(run, {"q": ["a", "b"]}, measures=["all-found@2", "all-found@3"]).values
    {'all_found@2': 0.0, 'all_found@3': 1.0}
    """

    rel: float = 1.0

    name: ClassVar[str] = "all_found"
    aliases: ClassVar = {"complete_recall": {}}
    limit: ClassVar[Limit | None] = Limit("all or nothing", np.floor)
    adds: ClassVar[str] = "Count the items covered"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items."""
        return Divisor("relevant items", relation.relevant(self.rel))
