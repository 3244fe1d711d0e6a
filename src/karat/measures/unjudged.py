"""Unjudged: how much of what was retrieved nobody has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, register_measure

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class Unjudged(Measure):
    """The share of the first k units that carry no judgement.

    unjudged@k = unjudged units among the first k ÷ k; without a cutoff ÷ the number retrieved.

    Citation: trec_eval 10, measure `unj`.

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "y"]}, {"q": {"a": 1, "b": 0}}
    >>> evaluate(run, gold, measures=["unjudged@2"])["unjudged@2"]
    0.5
    """

    name: ClassVar[str] = "unjudged"
    aliases: ClassVar = {"unj": {}}
    needs_relevant: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def compute(self, relation: Relation) -> Floats:
        """Return unjudged units ÷ k, or ÷ the number retrieved."""
        judged = relation.count(relation.judged(self.k)[0])
        retrieved = relation.shown(self.k)
        if self.k is not None and relation.chunk_end is None:
            return (retrieved - judged) / self.k
        return (retrieved - judged) / np.maximum(retrieved, 1)
