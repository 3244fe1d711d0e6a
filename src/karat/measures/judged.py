"""Judged: how much of what was retrieved anyone has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, register

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class Judged(Measure):
    """The share of the first k units that carry a judgement, relevant or not.

    judged@k = judged units among the first k ÷ k; without a cutoff ÷ the number retrieved. Where
    it is low, the other measures mostly tell which system the judgements were pooled from.

    Citation: Buckley, Dimmick, Soboroff, Voorhees: Bias and the limits of pooling (SIGIR 2006).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x"]}, {"q": {"a": 1, "b": 0}}, measures=["judged@2"])["judged@2"]
    0.5
    """

    name: ClassVar[str] = "judged"
    needs_relevant: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return judged units ÷ k, or ÷ the number retrieved."""
        query = relation.judged_query
        if self.k is not None:
            query = query[relation.judged_rank <= self.k]
        return relation.count(query) / (self.k or np.maximum(relation.depth, 1))
