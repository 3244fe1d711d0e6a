"""Calls put together by time: what an alarm counts as one observation.

Calls of the same hour resemble each other: one user asks several questions, one index is broken,
one machine is slow. A test that takes them for independent is surer than it may be. So an alarm
looks at the means of periods, and the baseline says how long a period has to be: the shortest whose
means do not resemble those before them, or else a day.

The mean of few calls scatters more than that of many, and less traffic alone would look like a
change. So a period with few calls is joined with the next ones, and of every period the same number
of calls is looked at, spread over it. A season is the usual course of a day or a week; it is
subtracted from each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

HOUR = 3_600_000_000  # microseconds
DAY = 24 * HOUR
SINGLE = 1  # each call is a period
LENGTHS = (HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR)  # that are tried before a day
ENOUGH = 25  # periods of a baseline from which on it can be seen whether they depend on each other
LAGS = (1, 4, 12)  # periods over which the resemblance is added up
SUSPICIOUS = 1.0  # standard errors; a longer period costs time, one that is too short the promise
SEASONS = {"day": 24, "week": 168}  # hours after which the course begins again


@dataclass(frozen=True, slots=True)
class CutCalls:
    """Calls in the order of time, cut into periods: from `starts` up to `ends`.

    `size` calls of each period count, or all of them.
    """

    times: Ints  # microseconds since 1970
    values: Floats
    starts: Ints
    ends: Ints
    size: int | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def means(self, values: Floats) -> Floats:
        """Return the mean of each period over values that are defined."""
        edges = self.starts, self.ends
        if self.size is not None:
            spread = (np.arange(self.size) + 0.5) / self.size
            chosen = self.starts[:, np.newaxis] + np.floor(
                spread * (self.ends - self.starts)[:, np.newaxis]
            ).astype(np.int64)
            values = values[chosen.ravel()]
            edges = (np.arange(len(self)) * self.size, np.arange(1, len(self) + 1) * self.size)
        defined = ~np.isnan(values)
        sums, counts = (
            np.concatenate([[0.0], np.cumsum(each)])
            for each in (np.where(defined, values, 0.0), defined)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            total, count = (each[edges[1]] - each[edges[0]] for each in (sums, counts))
            return np.asarray(total / count)


def cut_calls(
    times: Ints, values: Floats, length: int, size: int | None = None, until: int | None = None
) -> CutCalls:
    """Cut calls into periods that are over; with `size`, that many calls of each one count.

    >>> found = cut_calls(np.array([0, 1, 12, 25, 31]), np.ones(5), 10, 2, until=40)
    >>> found.starts.tolist(), found.ends.tolist()
    ([0, 2], [2, 4])
    """
    numbers, first = np.unique(times // length, return_index=True)
    ends = np.append(first, len(times))[1:]
    starts, stops, begin = [], [], 0
    for number, end in zip(numbers.tolist(), ends.tolist(), strict=True):
        if until is not None and (number + 1) * length > until:
            break
        if end - begin >= (size or 1):
            starts.append(begin)
            stops.append(end)
            begin = end
    first, last = (np.array(each, dtype=np.int64) for each in (starts, stops))
    return CutCalls(times, values, first, last, size)


def calls_per_period(times: Ints, length: int) -> int:
    """Return how many calls of a period count: three quarters of what is usual."""
    usual = np.median(np.unique(times // length, return_counts=True)[1]) if len(times) else 1
    return max(1, int(0.75 * usual))


def period_length(times: Ints, values: Floats) -> int:
    """Return the shortest period whose means do not depend on those before them."""
    for length in LENGTHS:
        means = cut_calls(times, values, length, calls_per_period(times, length)).means(values)
        means = means[~np.isnan(means)]
        if len(means) >= ENOUGH and resemblance(means) <= SUSPICIOUS:
            return length
    return DAY


def resemblance(means: Floats) -> float:
    """Return how far neighbouring values resemble each other, in standard errors.

    It is the largest of several sums of autocorrelations, over one lag and over more.
    """
    off = means - means.mean()
    spread, count = float((off * off).sum()), len(means)
    if not spread:
        return 0.0
    by_lag = np.cumsum([(off[lag:] * off[:-lag]).sum() / spread for lag in range(1, max(LAGS) + 1)])
    return float(max(by_lag[lags - 1] * (count / lags) ** 0.5 for lags in LAGS))


def season_cells(times: Ints, season: str) -> Ints:
    """Return the hour of the day, or of the week, of each call."""
    return np.asarray(times // HOUR % SEASONS[season])


def seasonal_profile(times: Ints, values: Floats, season: str) -> tuple[Floats, Floats]:
    """Return the mean of each hour of a season, and the values without the season.

    What is subtracted from a value is the mean of the same hour on other days. With its own day
    in that mean, the baseline would scatter less than what comes after it.
    """
    cells, size = season_cells(times, season), SEASONS[season]
    days = times // DAY
    days = days - (days.min() if len(days) else 0)
    defined = ~np.isnan(values)
    known = np.where(defined, values, 0.0)
    sums, counts = (np.bincount(cells, each, size) for each in (known, defined))
    own = cells + size * days
    own_sums, own_counts = (np.bincount(own, each)[own] for each in (known, defined))
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (sums[cells] - own_sums) / (counts[cells] - own_counts)
        return np.asarray(sums / counts), np.asarray(values - others)


def length_in_words(length: int) -> str:
    """Write the length of a period.

    >>> length_in_words(HOUR), length_in_words(DAY), length_in_words(15 * 60_000_000)
    ('1h', '1d', '15m')
    """
    if length == SINGLE:
        return "1 call"
    for unit, size in (("d", DAY), ("h", HOUR)):
        if length % size == 0:
            return f"{length // size}{unit}"
    return f"{length // 60_000_000}m"
