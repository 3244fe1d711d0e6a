"""Judged: how much of what was retrieved anyone has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class JudgedShare(Measure):
    """The share of the first k units that carry a judgement, relevant or not.

    judged@k = judged units among the first k ÷ units among the first k. Where it is low, the other
    measures mostly tell which system the judgements were pooled from.

    Citation: Buckley, Dimmick, Soboroff, Voorhees: Bias and the limits of pooling (SIGIR 2006).

    >>> from karat import evaluate
    >>> evaluate({"q": ["a", "x"]}, {"q": {"a": 1, "b": 0}}, measures=["judged@2"])["judged@2"]
    0.5
    """

    name: ClassVar[str] = "judged"
    needs_relevant: ClassVar[bool] = False
    adds: ClassVar[str] = "Count the judged units"

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        return Terms(*relation.judged(self.k))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the units there are to judge."""
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))
