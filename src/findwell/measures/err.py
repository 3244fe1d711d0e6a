"""Expected reciprocal rank: when does a reader stop, satisfied?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import ANY_GAIN, Measure, Terms, known_as, register_measure
from findwell.measures.running import running_products

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.core.relation import Relation


@register_measure
class ExpectedReciprocalRank(Measure):
    """The expected 1 ÷ rank at which a reader, who may be satisfied by every unit, stops.

    A unit of grade g satisfies with probability R = (2^g − 1) ÷ 2^max; ERR = Σ R · Π(1 − R of
    the units above) ÷ rank. `max` is the highest grade of the scale: 4 by default, as in gdeval
    and ir_measures; a higher grade counts as 4. Set it to the highest grade of your scale, for
    example max=1 if grades are 0 and 1. It is not taken from the gold labels, so no query's
    value depends on the grades of others.

    When to use: where a reader stops at the first satisfying document and grades say how satisfying
    it is. It hardly changes below the first good hit; use nDCG or recall where several documents
    are needed.

    Citation: Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance
    (CIKM 2009).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> evaluate(run, gold, measures=["ERR(max=1)@2"])["ERR(max=1)@2"]
    0.625
    """

    max: float = 4.0

    name: ClassVar[str] = "ERR"
    formula: ClassVar[str] = (
        r"\sum_{i\le k}\frac{1}{i}\,s_i\prod_{j<i}(1-s_j),\quad s_i=\frac{2^{g_i}-1}{2^{\max}}"
    )
    aliases: ClassVar = known_as("expected_reciprocal_rank")
    counts_items: ClassVar[bool] = False
    any_grade: ClassVar[bool] = True
    adds: ClassVar[str] = "Add up 1 ÷ rank, weighed by the probability of stopping there"

    def __post_init__(self) -> None:
        """Check the highest grade."""
        super().__post_init__()
        self.require(0 < self.max <= 1000, "max", "is the highest grade of the scale")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(ANY_GAIN, self.k)
        best = np.ones(len(hits.query), dtype=bool)  # a unit's first item has its highest grade
        best[1:] = (hits.query[1:] != hits.query[:-1]) | (hits.rank[1:] != hits.rank[:-1])
        hits = hits.take(np.flatnonzero(best))
        grade = np.minimum(relation.item_grade[hits.item], self.max)
        stop = np.exp2(grade - self.max) - np.exp2(-self.max)
        reached = _reached(relation, hits.query, stop)
        return Terms(hits.query, hits.rank, stop * reached / hits.rank)


def _reached(relation: Relation, query: Ints, stop: Floats) -> Floats:
    """Return the probability that a reader comes as far as each unit: Π(1 − R of those above)."""
    goes_on = np.ones(len(query))
    goes_on[1:] = np.where(query[1:] == query[:-1], 1 - stop[:-1], 1.0)
    return running_products(goes_on, relation.count(query))
