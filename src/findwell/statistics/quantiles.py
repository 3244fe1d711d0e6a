"""Quantiles, such as the 90th percentile of latencies, with intervals from the ordered values.

How many of n values lie below the true quantile is binomial, whatever their distribution. So two of
the ordered values hold it with a known chance: nothing is drawn, and nothing is assumed about the
tail (David and Nagaraja: Order Statistics, 2003, chapter 7). Where there are too few values for a
limit on one side, as above the 99th percentile of 50, that limit is unknown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.estimate import Estimate
from findwell.statistics.intervals import NONE_DEFINED
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

METHOD = "order-statistics"
TOO_FEW = "there are too few queries for limits on both sides"


def quantile_interval(values: ArrayLike, share: float, level: float = 0.95) -> Estimate:
    """Return a quantile, linear between neighbours, and the ordered values that hold the true one.

    >>> found = quantile_interval(list(range(1, 101)), 0.5)
    >>> found.value, found.low, found.high
    (50.5, 40.0, 61.0)
    >>> quantile_interval([1.0, 2.0, 3.0], 0.99).high is None
    True
    """
    check_share("level", level)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if not n:
        return Estimate(None, None, None, level, METHOD, 0, 0, reason=NONE_DEFINED)
    at_most = np.cumsum(_binomial(n, share))  # chance that no more than i values lie below
    outside = (1 - level) / 2
    below = int(np.searchsorted(at_most, outside, side="right"))  # the value of this rank is below
    above = int(np.searchsorted(at_most, 1 - outside, side="left")) + 1  # and of this one above
    low = float(ordered[below - 1]) if below else None
    high = float(ordered[above - 1]) if above <= n else None
    value = float(np.quantile(ordered, share))
    reason = TOO_FEW if low is None or high is None else ""
    return Estimate(value, low, high, level, METHOD, n, 0, reason=reason)


def _binomial(n: int, share: float) -> Floats:
    """Return the chance of each number of successes in n trials."""
    counts = np.arange(n + 1)
    ways = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    logs = ways[-1] - ways - ways[::-1]
    chances: Floats = np.exp(logs + counts * math.log(share) + (n - counts) * math.log1p(-share))
    return chances
