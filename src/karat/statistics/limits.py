"""The limits of an interval: one function a method, all from the same estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from karat.statistics.quantity import extra

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.data import Floats

NORMAL = NormalDist()

Limits: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A number, what each unit does to it, and what bootstrap samples made of it."""

    value: float
    influence: Floats  # by unit; sums to 0; (value + influence) are values with this mean
    draws: Floats | None  # only where a method asks for them
    n: int  # queries

    @property
    def error(self) -> float:
        """The standard error; units, not queries, count as independent."""
        units = len(self.influence)
        return sqrt(float(self.influence @ self.influence) / (units * (units - 1)))

    @property
    def acceleration(self) -> float:
        """How the standard error moves with the value: skewness ÷ 6 √units."""
        second = float(self.influence @ self.influence)
        return float((self.influence**3).sum()) / (6 * second * sqrt(second))


def normal(estimate: Estimate, level: float) -> Limits:
    """Value ± normal quantile × standard error."""
    reach = _quantile(level) * estimate.error
    return estimate.value - reach, estimate.value + reach


def student(estimate: Estimate, level: float) -> Limits:
    """Value ± quantile of Student's t × standard error, from SciPy."""
    stats = extra("scipy.stats")
    test = stats.ttest_1samp(estimate.value + estimate.influence, 0.0)
    low, high = test.confidence_interval(level)
    return float(low), float(high)


def bca(estimate: Estimate, level: float) -> Limits:
    """Bias-corrected and accelerated bootstrap (Efron 1987), as `scipy.stats.bootstrap` has it."""
    return _bca(estimate, _quantile(level))


def bca_wide(estimate: Estimate, level: float) -> Limits:
    """BCa at the levels that make a percentile interval as wide as Student's t.

    A bootstrap sample varies less than a fresh one, by √((n−1)/n), and normal quantiles ignore
    that the spread is estimated; together a fifth of the width is missing with 10 queries.
    Hesterberg (2015, What teachers should know about the bootstrap) moves the percentiles out by
    just that; here the same is done to those of BCa.
    """
    units = len(estimate.influence)
    return _bca(estimate, student_quantile(level, units - 1) * sqrt(units / (units - 1)))


def wilson(estimate: Estimate, level: float) -> Limits:
    """Score interval of a rate (Wilson 1927), for values that are all 0 or 1.

    Of clusters, the queries count as so many independent ones as give the same standard error;
    if all values are equal, as one for each cluster.
    """
    rate, z = estimate.value, _quantile(level)
    spread = rate * (1 - rate)
    n: float = len(estimate.influence)
    if n < estimate.n and spread > 0 and estimate.error > 0:
        n = min(spread / estimate.error**2, estimate.n)
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * sqrt(spread / n + z * z / (4 * n * n))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def agresti_min(estimate: Estimate, level: float) -> Limits:
    """Difference of two paired rates (Agresti and Min 2005), for differences −1, 0 and 1.

    Half a query is added to each of the four outcomes, then the normal interval is taken. This
    covers where few queries differ, as BCa and t do not.
    """
    n = estimate.n
    differences = estimate.value + estimate.influence
    wins, losses = (differences > 0.5).sum(), (differences < -0.5).sum()
    middle = float(wins - losses) / (n + 2)
    reach = _quantile(level) * sqrt((float(wins + losses) + 1) / (n + 2) - middle**2)
    reach /= sqrt(n + 2)
    return max(-1.0, middle - reach), min(1.0, middle + reach)


LIMITS: dict[str, Callable[[Estimate, float], Limits]] = {
    "normal": normal,
    "t": student,
    "bca": bca,
    "bca-wide": bca_wide,
    "wilson": wilson,
    "agresti-min": agresti_min,
}
BOOTSTRAPPED = ("bca", "bca-wide")
COUNTED = ("wilson", "agresti-min")  # know the spread from counts, even if all values are equal


def student_quantile(level: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t, by its expansion around the normal one.

    Abramowitz and Stegun 26.7.5, three terms: right to 0.1 % from 6 degrees of freedom on. The
    core has no SciPy; with fewer, BCa reaches for the extremes of its draws either way.
    """
    z = _quantile(level)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _quantile(level: float) -> float:
    return NORMAL.inv_cdf((1 + level) / 2)


def _bca(estimate: Estimate, z: float) -> Limits:
    draws = estimate.draws
    if draws is None:
        raise TypeError("BCa needs bootstrap draws")
    same = 1e-12 * max(1.0, float(np.abs(draws).max()))
    below = float((draws < estimate.value - same).mean())
    equal = float((np.abs(draws - estimate.value) <= same).mean())
    half = 0.5 / len(draws)
    bias = NORMAL.inv_cdf(min(max(below + equal / 2, half), 1 - half))
    levels = [_adjusted(bias, bias + side * z, estimate.acceleration) for side in (-1, 1)]
    low, high = np.quantile(draws, levels)
    return float(low), float(high)


def _adjusted(bias: float, reach: float, acceleration: float) -> float:
    """Return the percentile to read a limit at; past the pole of the formula, the outermost."""
    room = 1 - acceleration * reach
    if room <= 0:
        return 1.0 if reach > 0 else 0.0
    return NORMAL.cdf(bias + reach / room)
