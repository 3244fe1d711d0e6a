"""Means and their intervals from sums alone: what many machines can add up without the values.

Sums are kept exactly, as a few numbers that add up to them, so that neither the order nor the
machines in which values are added make a difference in the last digit.

Where queries are clustered, limits come from the Poisson bootstrap: each unit is drawn as often as
a Poisson variable of mean 1 says. Unlike other bootstraps it needs no list of all units, so that
every machine weighs the units that it has, and the weighted sums of all machines are added up. How
often a unit is drawn depends on its name and the number of the sample alone: a task that is tried
again, or another cut of the data, draws the same samples.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.estimate import Estimate
from findwell.statistics.intervals import EQUAL, NONE_DEFINED, ONE
from findwell.statistics.values import from_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from findwell.core.data import Floats
    from findwell.statistics.values import Bounds

METHOD = "moments"
MOST_PARTS = 64  # numbers that a sum is kept as, at most


@dataclass(slots=True)
class ExactSum:
    """A sum of floats without rounding errors, until it is read.

    >>> total = ExactSum()
    >>> for values in ([1e16], [1.0], [-1e16]):
    ...     total.add(values)
    >>> total.value
    1.0
    """

    parts: list[float] = field(default_factory=list)

    def add(self, values: Iterable[float]) -> None:
        """Add values."""
        self.parts += exact_parts(values)
        if len(self.parts) > MOST_PARTS:
            self.parts = self.compact()

    def compact(self) -> list[float]:
        """Return the same sum as a few numbers, mostly two."""
        return exact_parts(self.parts)

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return math.fsum(self.parts)


def exact_parts(values: Iterable[float]) -> list[float]:
    """Return few numbers that add up to the same: the sum rounded, what that lost, and so on.

    >>> exact_parts([1e20, 1.0, 1e-20])
    [1e+20, 1.0, 1e-20]
    """
    rest, parts = list(values), list[float]()
    while whole := math.fsum(rest):
        parts.append(whole)
        if not math.isfinite(whole):
            break
        rest.append(-whole)
    return parts


@dataclass(slots=True)
class Moments:
    """How many values there are, and the sums of their first three powers."""

    n: int = 0
    sums: tuple[ExactSum, ExactSum, ExactSum] = field(
        default_factory=lambda: (ExactSum(), ExactSum(), ExactSum())
    )
    least: float = math.inf
    most: float = -math.inf

    def add(self, values: Floats) -> None:
        """Add values, none of which is NaN."""
        if not len(values):
            return
        self.n += len(values)
        for power, total in enumerate(self.sums, start=1):
            total.add((values**power).tolist())
        self.least = min(self.least, float(values.min()))
        self.most = max(self.most, float(values.max()))

    def merge(self, other: Moments) -> None:
        """Add the values of another."""
        self.n += other.n
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.add(theirs.parts)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return self.sums[0].value / self.n if self.n else math.nan

    def interval(
        self, level: float, bounds: Bounds, *, statistic: str = "mean", undefined: int = 0
    ) -> Estimate:
        """Return the interval of the mean of values on the scale of a statistic, and its value.

        The studentised mean is normal but for the skewness of the values, for which both limits are
        corrected (Johnson, 1978). For either limit one value more is thought to lie at the bound on
        that side, so that a handful of equal values does not look certain; among thousands it makes
        no difference.

        >>> found = Moments()
        >>> found.add(np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1.0]))
        >>> limits = found.interval(0.95, (0.0, 1.0))
        >>> print(f"{limits.value} [{limits.low:.2f}, {limits.high:.2f}]")
        0.8 [0.40, 0.98]
        """
        value = from_scale(self.mean, statistic, self.n) if self.n else None
        low = high = None
        reason = NONE_DEFINED if not self.n else ONE if self.n == 1 else ""
        least, most = min(bounds[0], self.least), max(bounds[1], self.most)
        if not reason and self.least == self.most and not math.isfinite(most - least):
            reason = EQUAL
        if not reason:
            limits = self._limit(level, least, -1.0), self._limit(level, most, 1.0)
            low = from_scale(max(limits[0], least), statistic, self.n)
            high = from_scale(min(limits[1], most), statistic, self.n)
        method = "" if reason else METHOD
        return Estimate(value, low, high, level, method, self.n, undefined, reason=reason)

    def _limit(self, level: float, bound: float, side: float) -> float:
        """Return the limit on one side, with one value more at the bound there."""
        further = [] if math.isinf(bound) else [bound]
        n = self.n + len(further)
        one, two, three = (
            total.value + sum(each**power for each in further)
            for power, total in enumerate(self.sums, start=1)
        )
        mean = one / n
        variance = max(two / n - mean**2, 0.0) * n / (n - 1)
        if not variance:
            return self.mean
        z = NormalDist().inv_cdf((1 + level) / 2)
        skewness = (three / n - 3 * mean * two / n + 2 * mean**3) / variance**1.5
        shift = side * skewness * (2 * z**2 + 1) / (6 * math.sqrt(n))
        reach = z + min(max(shift, -z / 2), z)
        return float(mean + side * reach * math.sqrt(variance / n))


def bootstrap_limits(means: Sequence[float] | Floats, level: float) -> tuple[float, float] | None:
    """Return the limits between which this share of the means of samples lies; None if unknown.

    >>> [round(limit, 6) for limit in bootstrap_limits(np.arange(1001), 0.95)]
    [25.0, 975.0]
    """
    known = np.asarray(means, dtype=np.float64)
    known = known[np.isfinite(known)]
    if len(known) < 2:
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


MOST_DRAWS = 16  # draws of a unit in a sample; more have a probability of 1e-15
_CHANCES = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(MOST_DRAWS)])
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of the generator splitmix64, as are the constants below


def name_hashes(names: Iterable[object]) -> NDArray[np.uint64]:
    """Return a number for each name that looks random and is the same everywhere, always.

    >>> name_hashes(["q1"]).tolist() == name_hashes(["q1", "q2"]).tolist()[:1]
    True
    """
    digest = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digest), dtype="<u8").astype(np.uint64)


def poisson_weights(units: NDArray[np.uint64], samples: int) -> Floats:
    """Return how often each unit is drawn in each sample: units × samples.

    >>> weights = poisson_weights(name_hashes(range(2000)), 50)
    >>> weights.shape, abs(float(weights.mean()) - 1) < 0.02, abs(float(weights.var()) - 1) < 0.05
    ((2000, 50), True, True)
    """
    with np.errstate(over="ignore"):
        number = np.arange(1, samples + 1, dtype=np.uint64) * _STEP
        mixed = units[:, np.newaxis] + number[np.newaxis, :]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    chance = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    drawn: Floats = np.searchsorted(_CHANCES, chance, side="right").astype(np.float64)
    return drawn
