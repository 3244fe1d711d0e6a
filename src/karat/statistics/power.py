"""How many queries: what a paired comparison can see, before it is made.

All depends on the standard deviation of the differences between two systems, `sd`: take it from
two saved results (`spread`), or guess it (`sd_of_difference`). The power is that of the two-sided
paired t test, which the sign-flip test shares but for the smallest samples.

A hit-or-miss measure has few p-values to reach, so that a test of it sees less. Say on which share
of the queries it changes, `changed`, and the power is that of the exact test of wins and losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import OptionError
from karat.statistics.values import Quantity, as_columns, check_share, scipy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

MOST = 1_000_000_000  # queries; nobody has more
FEW_CHANGES = 10_000  # beyond, a hit-or-miss measure has p-values enough
POINTS = 12  # of a curve, if its sizes are not given

TOO_FEW = "a comparison needs two queries or more"
NO_SPREAD = "the differences do not vary, so two queries show any difference"
NO_DIFFERENCE = "no number of queries shows a difference of 0"
OUT_OF_REACH = "the power is not reached even if every change is a win"
TOO_MANY = f"more than {MOST:,} queries"


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


def power_at(
    queries: int,
    difference: float,
    sd: float,
    *,
    alpha: float = 0.05,
    changed: float | None = None,
) -> Quantity:
    """Return the chance that `queries` queries show a true difference at the level `alpha`.

    >>> round(power_at(100, 0.03, 0.1).value, 2)
    0.84
    """
    _check(difference=abs(difference), sd=sd)
    check_share("error rate", alpha)
    if queries < 2:
        return Quantity(None, TOO_FEW)
    if sd == 0:
        return Quantity(1.0 if difference else alpha, NO_SPREAD)
    return Quantity(power_of_test(queries, abs(difference), sd, alpha, changed))


def queries_needed(
    difference: float,
    sd: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    changed: float | None = None,
) -> Quantity:
    """Return the smallest number of queries that show a true difference with this power.

    >>> queries_needed(0.02, 0.1).value
    199.0
    """
    _check(difference=abs(difference), sd=sd)
    check_share("power", power)
    check_share("error rate", alpha)
    if difference == 0:
        return Quantity(None, NO_DIFFERENCE)
    if sd == 0:
        return Quantity(2.0, NO_SPREAD)

    def enough(queries: int) -> bool:
        return power_of_test(queries, abs(difference), sd, alpha, changed) >= power

    top = 2
    while not enough(top):
        top *= 2
        if top > MOST:
            return Quantity(None, TOO_MANY)
    return Quantity(float(_first(enough, 2, top)))


def detectable_difference(
    queries: int,
    sd: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    changed: float | None = None,
) -> Quantity:
    """Return the smallest true difference that these queries show with this power.

    >>> round(detectable_difference(100, 0.1).value, 4)
    0.0283
    """
    _check(sd=sd)
    check_share("power", power)
    check_share("error rate", alpha)
    if queries < 2:
        return Quantity(None, TOO_FEW)
    if sd == 0:
        return Quantity(0.0, NO_SPREAD)
    if power <= alpha:
        return Quantity(0.0, f"chance alone has a power of {alpha}")

    def missing(difference: float) -> float:
        return power_of_test(queries, difference, sd, alpha, changed) - power

    top = sd if changed is None else changed
    while changed is None and missing(top) < 0:
        top *= 2
    if missing(top) < 0:
        return Quantity(None, OUT_OF_REACH)
    return Quantity(float(scipy("optimize").brentq(missing, 0.0, top)))


def expected_width(
    queries: int, sd: float, *, level: float = 0.95, changed: float | None = None
) -> Quantity:
    """Return how wide the interval of the difference will be, on average over samples.

    That of `karat.statistics.paired`, to a few per cent from 10 queries on; for fewer it is said to
    be wider than it will be. Differences are taken to be 1 at most, if that fits their spread.

    >>> round(expected_width(100, 0.1).value, 4)
    0.0416
    """
    _check(sd=sd)
    check_share("level", level)
    if queries < 2:
        return Quantity(None, TOO_FEW)
    z = NormalDist().inv_cdf((1 + level) / 2)
    most = 1.0 if sd <= 1 else 3 * sd
    moved = queries * (1.0 if changed is None else changed)
    further = sqrt((queries * sd**2 + most**2) / (moved + 1))  # the change of the further query
    variance = ((queries - 1) * sd**2 + further**2 * queries / (queries + 1)) / (queries + 1)
    reach = z + (z**2 - 1) / 3 * further**3 / ((queries + 1) * variance) ** 1.5
    width = 2 * (further / (queries + 1) + reach * sqrt(variance / (queries + 2)))
    return Quantity(min(width, 2 * most))


def curve(
    difference: float,
    sd: float,
    *,
    sizes: Sequence[int] | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    changed: float | None = None,
) -> tuple[PowerPoint, ...]:
    """Return what growing numbers of queries can show, up to twice what the difference needs."""
    needed = queries_needed(difference, sd, power=power, alpha=alpha, changed=changed).value
    chosen = sizes if sizes is not None else _sizes(needed)
    return tuple(
        PowerPoint(
            queries=size,
            power=power_at(size, difference, sd, alpha=alpha, changed=changed).value,
            detectable=detectable_difference(
                size, sd, power=power, alpha=alpha, changed=changed
            ).value,
            width=expected_width(size, sd, level=1 - alpha, changed=changed).value,
        )
        for size in chosen
    )


def _sizes(needed: float | None) -> list[int]:
    last = max(20, round(2 * (needed or 5_000)))
    return sorted({round(size) for size in np.geomspace(10, last, POINTS)})


def _first(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number that is enough; `high` is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 <= number < np.inf:
            raise OptionError(f"the {name} is {number}", fix="give a finite number from 0 up")


def power_of_test(
    queries: int, difference: float, sd: float, alpha: float, changed: float | None
) -> float:
    """Return the power of the two-sided t test, or of the exact test where `changed` is given."""
    if changed is not None:
        _check_changed(difference, changed)
        if queries * changed <= FEW_CHANGES:
            return _power_of_hits(queries, difference, changed, alpha)
    stats, shift, freedom = scipy("stats"), difference / sd * sqrt(queries), queries - 1
    limit = float(stats.t.isf(alpha / 2, freedom))
    found = float(stats.nct.sf(limit, freedom, shift) + stats.nct.cdf(-limit, freedom, shift))
    if np.isnan(found):
        found = _power_by_integral(limit, shift, freedom)
    return min(1.0, max(0.0, found))


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
    return float(binomial.pmf(changes, queries, changed) @ rejected)


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


def _check_changed(difference: float, changed: float) -> None:
    if not 0 < changed <= 1:
        raise OptionError(
            f"the share of queries that change is {changed}", fix="give a number from 0 to 1"
        )
    if difference > changed:
        raise OptionError(
            f"a difference of {difference} needs more than {changed} of the queries to change",
            fix="give a larger share of changes, or a smaller difference",
        )
