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


class Estimated:
    """What a class hands on from the estimate that it holds, in its field `estimate`."""

    __slots__ = ()

    estimate: Estimate

    @property
    def value(self) -> float | None:
        """The value; None where it is not known."""
        return self.estimate.value

    @property
    def low(self) -> float | None:
        """The lower limit of the interval."""
        return self.estimate.low

    @property
    def high(self) -> float | None:
        """The upper limit of the interval."""
        return self.estimate.high

    @property
    def level(self) -> float:
        """The level of the interval."""
        return self.estimate.level

    @property
    def n(self) -> int:
        """How many have a value."""
        return self.estimate.n

    @property
    def reason(self) -> str:
        """Why there is no value, or no interval."""
        return self.estimate.reason
