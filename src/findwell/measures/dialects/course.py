"""The notes of a course on retriever quality, and the functions of its labs.

Quirks that the dialect keeps:

- average precision divides by the relevant documents retrieved in the top k, not by all relevant
  ones: it says how well what was found is ranked, and nothing about what was missed;
- a query without a relevant document scores 0 and counts in the mean, as in the labs.

Its rank fusion is `findwell.loop.tuning.reciprocal_rank_fusion`.
"""

from __future__ import annotations

from dataclasses import dataclass

from findwell.core.policy import Policy
from findwell.measures.average_precision import AveragePrecision
from findwell.measures.dialects.dialect import Dialect, register_dialect


@dataclass(frozen=True, kw_only=True)
class AveragePrecisionOverRetrieved(AveragePrecision):
    """Average precision over the relevant items retrieved."""

    over: str = "retrieved"


COURSE = register_dialect(
    Dialect(
        "course",
        "retriever-quality course notes",
        Policy(no_relevant="zero"),
        {"AP": AveragePrecisionOverRetrieved},
    )
)
