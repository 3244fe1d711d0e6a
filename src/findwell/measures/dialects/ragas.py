"""ragas' context precision and its id-based metrics (0.2 to 0.4).

Quirks that the dialect keeps:

- context precision, which is AP here, adds up over every relevant unit, also one that repeats
  another or covers nothing new, and divides by their number + 0.0000000001, so that a perfect list
  scores 0.9999999999;
- id-based precision and recall are over plain sets: repetitions count neither above nor below;
- without any reference id, id-based recall has no value.

Two things are not kept. Where texts are compared, ragas' recall counts a reference text twice that
is listed twice; findwell counts it once, as both do with ids. Where nothing was retrieved, ragas'
id-based precision has no value, so that the mean does not see it; findwell's is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, Terms
from findwell.core.policy import Policy
from findwell.measures.average_precision import AveragePrecision
from findwell.measures.dialects.dialect import Dialect, register_dialect
from findwell.measures.fscore import FScore
from findwell.measures.precision import Precision

if TYPE_CHECKING:
    from findwell.core.relation import Relation


class ContextPrecision(AveragePrecision):
    """Average precision over the relevant units retrieved, plus a little."""

    adds: ClassVar[str] = "Add up the precision at the rank of each relevant unit, repetitions too"
    counts_items: ClassVar[bool] = False  # whatever `over` says

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k, repeats=True)
        return Terms(hits.query, hits.rank, hits.nth / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant units retrieved + 1e-10."""
        found = relation.count(relation.units(self.rel, self.k, repeats=True).query)
        return Divisor("relevant units retrieved + 1e-10", found.astype(float) + 1e-10)


class SetPrecision(Precision):
    """Relevant units ÷ distinct units."""

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the distinct units among the first k."""
        distinct = relation.shown(self.k) - relation.repeats(self.k)
        return Divisor("distinct units retrieved", np.maximum(distinct, 1))


class SetF(FScore):
    """The harmonic mean with precision over sets."""

    precision: ClassVar[type[Precision]] = SetPrecision


RAGAS = register_dialect(
    Dialect(
        "ragas",
        "ragas 0.2–0.4",
        Policy(missing="skip"),
        {"P": SetPrecision, "F": SetF, "AP": ContextPrecision},
    )
)
