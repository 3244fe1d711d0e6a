"""Bpref: preference of relevant over judged non-relevant, blind to the unjudged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Aggregation, PerRelevantItem, Terms, register_measure
from findwell.measures.nonrelevant import rejected_above

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class Bpref(PerRelevantItem):
    """How rarely judged non-relevant units rank above relevant ones; unjudged ones are ignored.

    With R relevant and N judged non-relevant items, each relevant unit found adds
    1 − min(n, R) ÷ min(N, R), where n counts the judged non-relevant units above it; the sum is
    divided by R.

    When to use: where many retrieved documents are unjudged, as with an old pool and a new
    retriever. With complete labels AP uses more of the list.

    Citation: Buckley, Voorhees: Retrieval evaluation with incomplete information (SIGIR 2004).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["x", "u", "a", "b"]}, {"q": {"a": 1, "b": 1, "x": 0, "y": 0}}
    >>> evaluate(run, gold, measures=["bpref"])["bpref"]
    0.5
    """

    name: ClassVar[str] = "bpref"
    formula: ClassVar[str] = (
        r"\frac{1}{R}\sum_{j\text{ found}}\left(1-\frac{\min(n_j,R)}{\min(N,R)}\right)"
    )
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


@register_measure
class GeometricBpref(Bpref):
    """Bpref, aggregated by the geometric mean: gains on the worst queries count most.

    gm_bpref = exp(mean ln max(bpref, 0.00001)). A query's own value is its bpref.

    When to use: where labels are incomplete and the worst queries matter most. A single query at 0
    pulls the value down strongly.

    Citation: trec_eval, measure `gm_bpref`; Robertson: On GMAP, and other transformations (CIKM
    2006) for the geometric mean.

    >>> from findwell import evaluate
    >>> run = {"q1": ["a"], "q2": ["x", "a", "b"]}
    >>> gold = {"q1": {"a": 1}, "q2": {"a": 1, "b": 1, "x": 0, "y": 0}}
    >>> round(evaluate(run, gold, measures=["gm_bpref"])["gm_bpref"], 6)  # √(1 × ½)
    0.707107
    """

    name: ClassVar[str] = "gm_bpref"
    formula: ClassVar[str] = r"\exp\left(\frac{1}{n}\sum_{q}\ln\max(\text{bpref}_q,10^{-5})\right)"
    aliases: ClassVar = {}
    aggregation: ClassVar[Aggregation] = "geometric"
