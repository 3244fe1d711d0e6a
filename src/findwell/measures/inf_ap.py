"""Inferred average precision: average precision from a sample of judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import PerRelevantItem, Terms, register_measure
from findwell.measures.nonrelevant import pooled_above, rejected_above

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class InferredAveragePrecision(PerRelevantItem):
    """Average precision estimated when only a part of the pool was judged.

    At a relevant unit of rank j + 1 with r relevant, n non-relevant and u pooled but unjudged
    units above it, the expected precision is 1 ÷ (j+1) + (r+n+u) ÷ (j+1) · (r+ε) ÷ (r+n+2ε) with
    ε = 0.00001, and 1 for j = 0; the sum is divided by the relevant items. Documents that the
    pool holds without a judgement have a negative grade in the gold.

    When to use: where only a random sample of the pool was judged. It is biased where the judged
    documents were not drawn at random.

    Citation: Yilmaz, Aslam: Estimating average precision with incomplete and imperfect judgments
    (CIKM 2006).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "u", "x", "b"]}, {"q": {"a": 1, "u": -1, "x": 0, "b": 2}}
    >>> round(evaluate(run, gold, measures=["infAP"])["infAP"], 6)
    0.8125
    """

    name: ClassVar[str] = "infAP"
    formula: ClassVar[str] = (
        r"\frac{1}{R}\sum_{j\text{ found}}\left(\frac{1}{r_j}+\frac{r+n+u}{r_j}\cdot\frac{r+"
        r"\varepsilon}{r+n+2\varepsilon}\right)"
    )
    at: ClassVar[str | None] = None
    adds: ClassVar[str] = "Add up the expected precision at each relevant item found"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        epsilon = 0.00001
        hits = relation.credits(self.rel)
        r = hits.nth - 1
        n = rejected_above(relation, self.rel, hits)
        u = pooled_above(relation, hits)
        expected = 1 / hits.rank + (r + n + u) / hits.rank * (r + epsilon) / (r + n + 2 * epsilon)
        precision = np.where(hits.rank == 1, 1.0, expected)
        return Terms(hits.query, hits.rank, precision)
