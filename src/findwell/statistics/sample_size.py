"""How many queries: what a paired comparison can see, before it is made.

All depends on the standard deviation of the differences between two systems, `sd`: take it from
two saved results (`spread`), or guess it (`sd_of_difference`). The power is that of the two-sided
paired t test, which the sign-flip test shares except for the smallest samples.

The test of a hit-or-miss measure has few possible p-values and so sees less. With the share of
queries on which it changes, `changed`, the power is that of the exact test of wins and losses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from operator import mul
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, check_share
from findwell.statistics.intervals import Quantity, as_columns, scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_QUERIES = 1_000_000_000  # more than anyone has
FEW_CHANGES = 10_000  # beyond, a hit-or-miss measure has p-values enough
MANY_QUERIES = 50  # queries from which on the power is computed without SciPy
CURVE_POINTS = 12  # of a curve, if its sizes are not given

TOO_FEW = "a comparison needs two queries or more"
NO_SPREAD = "the differences do not vary, so two queries show any difference"
NO_DIFFERENCE = "no number of queries shows a difference of 0"
OUT_OF_REACH = "the power is not reached even if every change is a win"
TOO_MANY = f"more than {MOST_QUERIES:,} queries"


@dataclass(frozen=True, slots=True)
class PowerPoint:
    """What this many queries can show."""

    queries: int
    power: float | None  # the chance to see the difference asked for
    detectable: float | None  # the smallest difference seen with the power asked for
    width: float | None  # of the interval of the difference, expected


@dataclass(frozen=True, slots=True)
class Spread:
    """How observed differences vary; `changed` only if all are −1, 0 or 1."""

    sd: float | None
    changed: float | None = None
    reason: str = ""


def spread(differences: ArrayLike) -> Spread:
    """Return how observed differences vary; NaN is left out.

    >>> spread([0.0, 0.1, np.nan, 0.2])
    Spread(sd=0.1, changed=None, reason='')
    >>> spread([0.0, 1.0, 0.0, 1.0, -1.0]).changed
    0.6
    """
    values = as_columns(differences).ravel()
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Spread(None, reason=TOO_FEW)
    steps = np.isin(values, (-1, 0, 1)).all() and values.any()
    return Spread(float(values.std(ddof=1)), float((values != 0).mean()) if steps else None)


def sd_of_difference(sd: float, correlation: float) -> float:
    """Return the standard deviation of differences from that of the values of each system.

    `correlation` is that between the systems over the queries: well above 0, as what is hard for
    one is mostly hard for the other.

    >>> sd_of_difference(0.3, 0.5)
    0.3
    """
    if not -1 <= correlation <= 1:
        raise OptionError(f"the correlation is {correlation}", fix="give a number from -1 to 1")
    _check(sd=sd)
    return sd * sqrt(2 * (1 - correlation))


@dataclass(frozen=True, slots=True)
class PlannedComparison:
    """A paired comparison that is yet to be made.

    >>> planned = PlannedComparison(sd=0.1)
    >>> planned.queries_needed(0.02).value
    199.0
    >>> round(planned.power_at(100, 0.03).value, 2)
    0.84
    >>> round(planned.detectable_difference(100).value, 4)
    0.0283
    >>> round(planned.expected_width(100).value, 4)
    0.0416
    """

    sd: float  # of the differences
    changed: float | None = None  # of a hit-or-miss measure: the share of queries that change
    power: float = 0.8  # the wanted chance to see a difference
    alpha: float = 0.05  # the chance to see one by mistake

    def __post_init__(self) -> None:
        _check(sd=self.sd)
        check_share("power", self.power)
        check_share("error rate", self.alpha)
        if self.changed is not None and not 0 < self.changed <= 1:
            raise OptionError(
                f"the share of queries that change is {self.changed}",
                fix="give a number from 0 to 1",
            )

    def power_at(self, queries: int, difference: float) -> Quantity:
        """Return the chance that this many queries show a true difference."""
        _check(difference=abs(difference))
        if queries < 2:
            return Quantity(None, TOO_FEW)
        if self.sd == 0:
            return Quantity(1.0 if difference else self.alpha, NO_SPREAD)
        return Quantity(self._power(queries, abs(difference)))

    def queries_needed(self, difference: float, *, more_than: int = 1) -> Quantity:
        """Return the smallest number of queries that show a true difference with the power.

        Where that is `more_than` or fewer, it returns one more than that. From many queries on, no
        SciPy is needed.
        """
        _check(difference=abs(difference))
        if difference == 0:
            return Quantity(None, NO_DIFFERENCE)
        if self.sd == 0:
            return Quantity(2.0, NO_SPREAD)
        least = max(2, more_than + 1)

        def enough(queries: int) -> bool:
            if least < MANY_QUERIES or self.changed is not None:
                return self._power(queries, abs(difference)) >= self.power
            return _power_of_many(queries, abs(difference) / self.sd, self.alpha) >= self.power

        top = least
        while not enough(top):
            top *= 2
            if top > MOST_QUERIES:
                return Quantity(None, TOO_MANY)
        return Quantity(float(bisect_left(range(top), True, least, key=enough)))

    def detectable_difference(self, queries: int) -> Quantity:
        """Return the smallest true difference that these queries show with the power."""
        if queries < 2:
            return Quantity(None, TOO_FEW)
        if self.sd == 0:
            return Quantity(0.0, NO_SPREAD)
        if self.power <= self.alpha:
            return Quantity(0.0, f"chance alone has a power of {self.alpha}")

        def missing(difference: float) -> float:
            return self._power(queries, difference) - self.power

        top = self.sd if self.changed is None else self.changed
        while self.changed is None and missing(top) < 0:
            top *= 2
        if missing(top) < 0:
            return Quantity(None, OUT_OF_REACH)
        return Quantity(float(scipy("optimize").brentq(missing, 0.0, top)))

    def expected_width(self, queries: int) -> Quantity:
        """Return how wide the interval of the difference will be, on average over samples.

        It is right to a few per cent from 10 queries on, and too wide for fewer; the level is
        1 − alpha. Differences are taken to be 1 at most, if that fits their spread.
        """
        if queries < 2:
            return Quantity(None, TOO_FEW)
        z = NormalDist().inv_cdf(1 - self.alpha / 2)
        sd, changed = self.sd, 1.0 if self.changed is None else self.changed
        most = 1.0 if sd <= 1 else 3 * sd
        # the change of the further query
        further = sqrt((queries * sd**2 + most**2) / (queries * changed + 1))
        variance = ((queries - 1) * sd**2 + further**2 * queries / (queries + 1)) / (queries + 1)
        reach = z + (z**2 - 1) / 3 * further**3 / ((queries + 1) * variance) ** 1.5
        width = 2 * (further / (queries + 1) + reach * sqrt(variance / (queries + 2)))
        return Quantity(min(width, 2 * most))

    def curve(
        self, difference: float, sizes: Sequence[int] | None = None
    ) -> tuple[PowerPoint, ...]:
        """Return what growing numbers of queries show, up to twice what the difference needs."""
        if sizes is None:
            last = max(20, round(2 * (self.queries_needed(difference).value or 5_000)))
            sizes = sorted({round(size) for size in np.geomspace(10, last, CURVE_POINTS)})
        return tuple(
            PowerPoint(
                queries=size,
                power=self.power_at(size, difference).value if difference else None,
                detectable=self.detectable_difference(size).value,
                width=self.expected_width(size).value,
            )
            for size in sizes
        )

    def _power(self, queries: int, difference: float) -> float:
        """Return the power of the two-sided t test, or of the exact test of wins and losses."""
        if self.changed is not None:
            if difference > self.changed:
                raise OptionError(
                    f"a difference of {difference} needs more than {self.changed} of the queries "
                    "to change",
                    fix="give a larger share of changes, or a smaller difference",
                )
            if queries * self.changed <= FEW_CHANGES:
                return _power_of_hits(queries, difference, self.changed, self.alpha)
        stats, freedom = scipy("stats"), queries - 1
        shift, limit = difference / self.sd * sqrt(queries), stats.t.isf(self.alpha / 2, freedom)
        found = stats.nct.sf(limit, freedom, shift) + stats.nct.cdf(-limit, freedom, shift)
        if np.isnan(found):
            found = _power_by_integral(float(limit), shift, freedom)
        return min(1.0, max(0.0, float(found)))


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 <= number < np.inf:
            raise OptionError(f"the {name} is {number}", fix="give a finite number from 0 up")


def _power_of_hits(queries: int, difference: float, changed: float, alpha: float) -> float:
    """Return the power of the exact test: how many queries change, and how many for the better."""
    binomial = scipy("stats").binom
    least, most = binomial.ppf([1e-10, 1 - 1e-10], queries, changed)
    changes = np.arange(int(least), int(most) + 1)
    # up to this many of the rarer kind, an exact p is below alpha
    rare = binomial.ppf(alpha / 2, changes, 0.5)
    rare -= binomial.cdf(rare, changes, 0.5) > alpha / 2
    won = (1 + difference / changed) / 2
    rejected = binomial.cdf(rare, changes, won) + binomial.cdf(rare, changes, 1 - won)
    return float((binomial.pmf(changes, queries, changed) * rejected).sum())


def _power_of_many(queries: int, effect: float, alpha: float) -> float:
    """Return the power of the two-sided t test, without SciPy, whose import takes a second.

    The sample's standard deviation follows the chi distribution, which is smooth and narrow for
    many queries, so that sums over a grid are integrals to the last digits.
    """
    freedom = queries - 1
    grid = np.linspace(-9, 9, 181) / sqrt(2 * freedom) + 1
    grid = grid[grid > 0]
    log = (freedom - 1) * np.log(grid) - freedom * grid**2 / 2
    weight = np.exp(log - log.max())
    shares: list[float] = (weight / weight.sum()).tolist()

    def passes(limit: float, shift: float) -> float:
        bars: list[float] = (limit * grid).tolist()
        tails = (erfc((bar - shift) / sqrt(2)) + erfc((bar + shift) / sqrt(2)) for bar in bars)
        return float(sum(map(mul, shares, tails)) / 2)

    # the limit that chance alone passes with alpha, by the secant method
    before = NormalDist().inv_cdf(1 - alpha / 2)
    limit, last = before * (1 + 1 / freedom), passes(before, 0.0)
    for _ in range(50):
        found = passes(limit, 0.0)
        if abs(found - alpha) <= 1e-14 or found == last:
            break
        step = (alpha - found) * (limit - before) / (found - last)
        before, last, limit = limit, found, limit + step
    return passes(limit, effect * sqrt(queries))


def _power_by_integral(limit: float, shift: float, freedom: int) -> float:
    """Return the power where SciPy's non-central t is NaN: far out, or with few queries.

    |T| passes the limit if a normal variable with mean `shift` passes it times the sample's
    standard deviation, which follows the chi distribution.
    """
    stats = scipy("stats")

    def passes(deviation: float) -> float:
        bar = limit * deviation
        return float(stats.norm.sf(bar - shift) + stats.norm.cdf(-bar - shift))

    if freedom > 1_000:  # the deviation is 1 but for some per cent
        return passes(1.0)
    spread_of = stats.chi(freedom, scale=1 / sqrt(freedom))
    ends = [float(end) for end in spread_of.ppf([1e-12, 1 - 1e-12])]
    bend = min(max(shift / limit, ends[0]), ends[1])
    parts = [
        scipy("integrate").quad(lambda x: passes(x) * spread_of.pdf(x), low, high)[0]
        for low, high in ((ends[0], bend), (bend, ends[1]))
        if low < high
    ]
    return float(sum(parts))
