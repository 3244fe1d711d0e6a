"""Success: was anything found?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.measure import Measure, Terms, register

if TYPE_CHECKING:
    from karat.data import Floats
    from karat.relation import Relation


@register
@dataclass(frozen=True, kw_only=True)
class Success(Measure):
    """1 when the first k units hold a relevant one, else 0; the mean is the hit rate.

    Citation: Craswell, Hawking, Wilkinson, Wu: Overview of the TREC 2003 web track.

    >>> from karat import evaluate
    >>> run = {"q": ["x", "a"]}
    >>> evaluate(run, {"q": ["a"]}, measures=["success@1", "hit_rate@2"]).values
    {'success@1': 0.0, 'success@2': 1.0}
    """

    rel: float = 1.0

    name: ClassVar[str] = "success"
    aliases: ClassVar = {"hit_rate": {}, "success_{k}": {}, "hit": {}, "accuracy": {}}

    def counts_items(self) -> bool:
        """Tell that only units down to k matter."""
        return False

    def terms(self, relation: Relation) -> Terms:
        """Count the relevant units."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def compute(self, relation: Relation) -> Floats:
        """Return 1.0 where a relevant unit is in the list."""
        return np.minimum(super().compute(relation), 1.0)
