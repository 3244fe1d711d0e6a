"""binG: each relevant item, discounted by the noise above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Measure, Terms, register_measure

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class BinaryGain(Measure):
    """The mean over the relevant items of 1 ÷ log2(2 + units above that are not relevant).

    An item that was not found adds 0. `G` for grades that are only relevant or not: what counts is
    the noise before a hit, not its rank, so that a long list of hits does not devalue the last.

    Citation: trec_eval, measure `binG` (Buckley, 2008).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": ["a", "b"]}
    >>> round(evaluate(run, gold, measures=["binG"])["binG"], 6)  # (1 + 1 ÷ log2 3) ÷ 2
    0.815465
    """

    rel: float = 1.0

    name: ClassVar[str] = "binG"
    aliases: ClassVar = {"binary_gain": {}}
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = (
        "Add up 1 ÷ log2(2 + units above that are not relevant) of each item found"
    )

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel)
        return Terms(hits.query, hits.rank, 1 / np.log2(2 + hits.rank - hits.nth))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items."""
        return Divisor("relevant items", relation.relevant(self.rel))
