"""Bpref: preference of relevant over judged non-relevant, blind to the unjudged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Divisor, Measure, Terms, register_measure
from karat.measures.nonrelevant import rejected_above

if TYPE_CHECKING:
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class Bpref(Measure):
    """How seldom judged non-relevant units stand above relevant ones; unjudged ones are ignored.

    With R relevant and N judged non-relevant items, each relevant unit found adds
    1 − min(n, R) ÷ min(N, R), where n counts the judged non-relevant units above it; the sum is
    divided by R.

    Citation: Buckley, Voorhees: Retrieval evaluation with incomplete information (SIGIR 2004).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["x", "u", "a", "b"]}, {"q": {"a": 1, "b": 1, "x": 0, "y": 0}}
    >>> evaluate(run, gold, measures=["bpref"])["bpref"]
    0.5
    """

    rel: float = 1.0

    name: ClassVar[str] = "bpref"
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = "Add up how far each relevant item found is preferred"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel)
        relevant = relation.relevant(self.rel)
        rejected = relation.relevant(0) - relevant
        # documents of one group are one item, so there may be more units than items
        above = np.minimum(rejected_above(relation, self.rel, hits), rejected[hits.query])
        limit = relevant[hits.query]
        most = np.maximum(np.minimum(rejected, relevant)[hits.query], 1)
        preferred = 1 - np.minimum(above, limit) / most
        return Terms(hits.query, hits.rank, preferred)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items."""
        return Divisor("relevant items", relation.relevant(self.rel))
