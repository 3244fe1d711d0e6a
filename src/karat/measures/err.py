"""Expected reciprocal rank: when does a reader stop, satisfied?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, register
from karat.relation import ANY_GAIN

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class ExpectedReciprocalRank(Measure):
    """The expected 1 ÷ rank at which a reader, who may be satisfied by every unit, stops.

    A unit of grade g satisfies with probability R = (2^g − 1) ÷ 2^max; ERR = Σ R · Π(1 − R of the
    units above) ÷ rank. `max` is the highest grade of the scale; 0 (default) takes the highest
    grade of the gold.

    Citation: Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance
    (CIKM 2009).

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "b"]}, {"q": {"a": 1, "b": 1}}
    >>> evaluate(run, gold, measures=["ERR@2"])["ERR@2"]
    0.625
    """

    max: float = 0.0

    name: ClassVar[str] = "ERR"
    aliases: ClassVar = {"expected_reciprocal_rank": {}}

    def __post_init__(self) -> None:
        """Check the highest grade."""
        super().__post_init__()
        self.require(0 <= self.max <= 1000, "max", "is the highest grade, or 0 for the gold's")

    def level(self) -> float:
        """Return the smallest positive grade: every grade above 0 counts."""
        return ANY_GAIN

    def compute(self, relation: Relation) -> Floats:
        """Return the expected reciprocal rank."""
        hits = relation.credits(ANY_GAIN, self.k)
        best = np.ones(len(hits.query), dtype=bool)  # a unit's first item has its highest grade
        best[1:] = (hits.query[1:] != hits.query[:-1]) | (hits.rank[1:] != hits.rank[:-1])
        hits = hits.take(np.flatnonzero(best))
        top = self.max or max(relation.item_grade.max(initial=1.0), 1.0)
        grade = np.minimum(relation.item_grade[hits.item], top)
        stop = (np.exp2(grade) - 1) / np.exp2(top)
        go_on = np.concatenate(([0.0], np.cumsum(np.log1p(-stop))))  # log Π(1 − R), all queries
        units = relation.count(hits.query)
        start = np.cumsum(units) - units
        reached = np.exp(go_on[:-1] - go_on[start[hits.query]])
        return relation.total(hits.query, stop * reached / hits.rank)
