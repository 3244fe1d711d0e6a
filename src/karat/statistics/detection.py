"""The chance that a test of paired differences sees a true one."""

from __future__ import annotations

from math import sqrt

import numpy as np

from karat.errors import OptionError
from karat.statistics.quantity import extra

FEW_CHANGES = 10_000  # beyond, a hit-or-miss measure has p-values enough


def power_of_test(
    queries: int, difference: float, sd: float, alpha: float, changed: float | None
) -> float:
    """Return the power of the two-sided t test, or of the exact test where `changed` is given."""
    if changed is not None:
        _check_changed(difference, changed)
        if queries * changed <= FEW_CHANGES:
            return _power_of_hits(queries, difference, changed, alpha)
    effect = difference / sd
    found = float(extra("statsmodels.stats.power").TTestPower().power(effect, queries, alpha))
    if np.isnan(found):
        found = _power_by_integral(effect * sqrt(queries), queries - 1, alpha)
    return min(1.0, max(0.0, found))


def _power_of_hits(queries: int, difference: float, changed: float, alpha: float) -> float:
    """Return the power of the exact test: how many queries change, and how many for the better."""
    binomial = extra("scipy.stats").binom
    least, most = binomial.ppf([1e-10, 1 - 1e-10], queries, changed)
    changes = np.arange(int(least), int(most) + 1)
    # up to so many of the rarer kind, an exact p is below alpha
    rare = binomial.ppf(alpha / 2, changes, 0.5)
    rare -= binomial.cdf(rare, changes, 0.5) > alpha / 2
    won = (1 + difference / changed) / 2
    rejected = binomial.cdf(rare, changes, won) + binomial.cdf(rare, changes, 1 - won)
    return float(binomial.pmf(changes, queries, changed) @ rejected)


def _power_by_integral(shift: float, freedom: int, alpha: float) -> float:
    """Return the power where SciPy's non-central t gives up: far out, or with few queries.

    |T| passes the limit if a normal variable with mean `shift` passes it times the sample's
    standard deviation, which follows the chi distribution.
    """
    stats = extra("scipy.stats")
    limit = float(stats.t.isf(alpha / 2, freedom))

    def passes(deviation: float) -> float:
        bar = limit * deviation
        return float(stats.norm.sf(bar - shift) + stats.norm.cdf(-bar - shift))

    if freedom > 1_000:  # the deviation is 1 but for some per cent
        return passes(1.0)
    spread_of = stats.chi(freedom, scale=1 / sqrt(freedom))
    ends = [float(end) for end in spread_of.ppf([1e-12, 1 - 1e-12])]
    bend = min(max(shift / limit, ends[0]), ends[1])
    parts = [
        extra("scipy.integrate").quad(lambda x: passes(x) * spread_of.pdf(x), low, high)[0]
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
