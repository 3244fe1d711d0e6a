"""An estimate: a number that was measured on some queries, and where the true one may lie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and where the true one may lie; None where it is not known, and why."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str  # empty if there are no limits
    n: int  # queries with a value
    undefined: int = 0  # queries without one
    clusters: int | None = None  # if queries were clustered, how many clusters
    reason: str = ""  # why there are no limits, or no value
    failed: int = 0  # queries whose judge failed
