"""Relative precision: precision against the best that was possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import AT_MOST_ONE, Divisor, Limit, register_measure
from karat.measures.precision import Precision

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class RelativePrecision(Precision):
    """Relevant units among the first k ÷ the most there could be: k or R, whichever is less.

    P@k of a query with two relevant items cannot pass 2 ÷ k; relative_P@k can reach 1 for every
    query. It is P@k down to rank R and recall@k from there on. Without a cutoff the list is taken
    as a set (`set_relative_P` of trec_eval). BEIR calls it capped recall (`R_cap@k`).

    Citation: trec_eval, measures `relative_P` and `set_relative_P`; Thakur et al.: BEIR (NeurIPS
    2021).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, measures=["relative_P@2", "relative_P@4"]).values
    {'relative_P@2': 0.5, 'relative_P@4': 1.0}
    """

    name: ClassVar[str] = "relative_P"
    aliases: ClassVar = {
        "relative_precision": {},
        "set_relative_P": {},
        "SetRelP": {},
        "R_cap": {},
        "recall_cap": {},
        "capped_recall": {},
    }
    # a group may have more relevant documents than it needs
    limit: ClassVar[Limit | None] = AT_MOST_ONE

    def counts_items(self) -> bool:
        """Say that relevant items are counted, also those beyond the cutoff."""
        return True

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the most relevant units that the first k could hold."""
        most = np.minimum(super().divisor(relation).value, relation.relevant(self.rel))
        return Divisor("k or relevant items, whichever is less", most)
