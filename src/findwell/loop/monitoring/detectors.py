"""From values of a signal to alarms: calls put together by time, and what is bet against.

Calls of the same hour resemble each other: one user asks several questions, one index is broken,
one machine is slow. A test that takes them for independent is too sure. So an alarm
looks at the means of periods, and the baseline says how long a period has to be: the shortest whose
means do not resemble those before them, or else a day.

The mean of few calls scatters more than that of many, and less traffic alone would look like a
change. So a period with few calls is joined with the next ones, and of every period the same number
of calls is looked at, spread over it. A season is the usual course of a day or a week; it is
subtracted from each call.

| the alert is about | what is bet on, of each period | against |
|---|---|---|
| a baseline of calls | the mean, ranked among the periods of the baseline and earlier ones | ½ |
| a number, or a saved result | the mean | the number, or a limit of the result's interval |

For a percentile the mean is that of 1 beyond the line, else 0: the share of calls beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from findwell.core.plugins import Registry
from findwell.loop.monitoring.times import MICROSECOND, spelled_length
from findwell.statistics.intervals import interval
from findwell.statistics.sequential import (
    ChangePoint,
    change_evidence,
    change_point,
    conformal_ranks,
    reference_ranks,
    shiryaev_roberts,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.loop.monitoring.alerts import Alert
    from findwell.loop.monitoring.signals import Signal

HOUR = 3_600_000_000  # microseconds
DAY = 24 * HOUR
SINGLE_CALLS = 1  # each call is a period
LENGTHS = (HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR)  # that are tried before a day
ENOUGH_PERIODS = 25  # of a baseline to see whether they depend on each other
LAGS = (1, 4, 12)  # periods over which the resemblance is added up
# standard errors; a longer period costs time, one that is too short the promise
SUSPICIOUS_RESEMBLANCE = 1.0
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

    @property
    def last_time(self) -> int:
        """When the last call of the last period began."""
        return int(self.times[self.ends[-1] - 1])

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
        if len(means) >= ENOUGH_PERIODS and resemblance(means) <= SUSPICIOUS_RESEMBLANCE:
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


def period_in_words(length: int) -> str:
    """Write the length of a period, in microseconds.

    >>> period_in_words(HOUR), period_in_words(DAY), period_in_words(15 * 60_000_000)
    ('1h', '1d', '15m')
    """
    return "1 call" if length == SINGLE_CALLS else spelled_length(length * MICROSECOND, "dhm")


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


FEWEST_VALUES, FEWEST_PERIODS = 2, 16  # values, and periods, of a baseline
MOST_REFERENCE = 1000  # periods of a baseline that are kept, for ranks
MOST_PERIODS = 10_000  # periods that are as good as any number of them
FEW_IN_BASELINE = "the baseline has too few values"
AT_THE_END = "the baseline is at the limit of this signal: it cannot go further in that direction"


Detector: TypeAlias = Callable[..., "Floats"]
ALL_TIMES, RUN_LENGTH = "all-times", "run-length"
# from values between 0 and 1 and the mean that they are bet against, None for ranks, to the
# logarithm of the evidence after each; `earlier` values were there before them
DETECTORS: Registry[Detector] = Registry("detector", group="findwell.detectors")
register_detector = DETECTORS.register
DETECTORS.register(ALL_TIMES, change_evidence)


# the gamblers of Shiryaev and Roberts each begin with 1: no one's money is part of another's
DETECTORS.register(
    RUN_LENGTH, lambda stream, mean, *, side, **_: shiryaev_roberts(stream, mean, side=side)
)


@dataclass(frozen=True, slots=True)
class Bound:
    """What the means of periods are bet against on one side.

    `beyond` turns values into 0 and 1 before. With `reference`, the means of the periods of a
    baseline, `shift` is added to a mean, which is then ranked; `profile` is the season.
    """

    side: str  # below: an alarm if the mean is less
    mean: float
    beyond: float | None = None  # values past this count as 1
    upward: bool = True  # past: above, or else below
    reference: tuple[float, ...] | None = None
    shift: float = 0.0
    profile: tuple[float | None, ...] | None = None

    @property
    def against(self) -> float | None:
        """The mean that bets are against; None: ranks are bet on."""
        return self.mean if self.reference is None else None

    @property
    def is_upward(self) -> bool:
        """Whether the signal is higher than it should be where this is an alarm."""
        return self.side == "above" if self.beyond is None else self.upward

    @property
    def usual(self) -> float:
        """Where the means of periods should be."""
        return self.mean if self.reference is None else float(np.mean(self.reference))


@dataclass(frozen=True, slots=True)
class BoundedSignal:
    """How a signal is bet on: what, in words, the bounds, and what a period is."""

    transform: str
    bounds: tuple[Bound, ...]
    scale: tuple[float, float] | None = (0.0, 1.0)  # 0 and 1 in the unit of the signal; None: as is
    length: int = HOUR  # of a period, in microseconds
    size: int | None = None  # calls of a period that count; None: all
    season: str = ""
    seed: int = 0

    def cut(self, times: Ints, values: Floats, until: int | None = None) -> CutCalls:
        """Cut calls that are watched into periods that are over."""
        return cut_calls(times, values, self.length, self.size, until)

    def levels(self, bound: Bound, cut: CutCalls) -> Floats:
        """Return the mean of each period, as it is compared."""
        values = _past(cut.values, bound.beyond, upward=bound.upward)
        if bound.beyond is None and self.scale is not None:
            low, high = self.scale
            values = np.clip((values - low) / (high - low), 0.0, 1.0)
        if bound.profile is not None:
            usual = np.array(bound.profile, dtype=np.float64)
            values = values - usual[season_cells(cut.times, self.season)]
        return cut.means(values) + bound.shift

    def stream(self, bound: Bound, cut: CutCalls) -> Floats:
        """Return a value between 0 and 1 for each period, which is bet on."""
        levels = self.levels(bound, cut)
        if bound.reference is None:
            return levels
        known = np.array(bound.reference)
        ranks = conformal_ranks(levels, known, seed=self.seed)
        # a signal that was better in between and is back has not become worse than the baseline; a
        # bet on a rank that is less extreme pays less, so that this costs no promise
        less_extreme = np.maximum if bound.side == "below" else np.minimum
        return np.asarray(less_extreme(ranks, reference_ranks(levels, known, seed=self.seed)))

    def level_stream(self, bound: Bound, cut: CutCalls) -> Floats:
        """Return a value between 0 and 1 for each period that says where the signal is.

        Ranks among earlier periods go back to ½ once a change has lasted: these are ranks among the
        baseline alone.
        """
        levels = self.levels(bound, cut)
        if bound.reference is None:
            return levels
        known = np.sort(bound.reference)
        below, upto = (np.searchsorted(known, levels, side=side) for side in ("left", "right"))
        return np.where(np.isnan(levels), np.nan, (below + upto + 1) / (2 * len(known) + 2))

    def evidence(self, cut: CutCalls, detector: str = ALL_TIMES, earlier: int = 0) -> float:
        """Return the logarithm of the evidence after the last period: the mean over the bounds.

        `earlier` periods were watched before these, and are not there any longer.
        """
        if not len(cut):
            return 0.0 if detector == ALL_TIMES else -np.inf
        method = partial(DETECTORS.find(detector), earlier=earlier)
        found = [
            float(method(self.stream(bound, cut), bound.against, side=bound.side)[-1])
            for bound in self.bounds
        ]
        return float(np.logaddexp.reduce(found) - log(len(found)))

    def most_evidence(self, count: int, detector: str = ALL_TIMES, earlier: int = 0) -> float:
        """Return what the evidence would be, had all of this many periods been as bad as can be."""
        count = min(count, MOST_PERIODS)
        method = partial(DETECTORS.find(detector), earlier=earlier)
        found = []
        for bound in self.bounds:
            worst = np.zeros(count)
            if bound.reference is not None:  # each lies below, or above, all of the reference
                numbers = np.arange(1, count + 1)
                worst = 0.5 * numbers / (len(bound.reference) + numbers)
            worst = worst if bound.side == "below" else 1 - worst
            if count:  # ranks go back to ½ in the end
                found.append(float(method(worst, bound.against, side=bound.side).max()))
        return max(found, default=-np.inf) - log(len(self.bounds))

    def change(self, cut: CutCalls) -> tuple[Bound, ChangePoint]:
        """Return since which period a bound has been kept no longer, and which."""
        best: tuple[Bound, ChangePoint] | None = None
        for bound in self.bounds:
            stream = self.level_stream(bound, cut)
            found = change_point(stream, bound.against, side=bound.side)
            if found is not None and (best is None or found.log_capital > best[1].log_capital):
                best = bound, found
        return best or (self.bounds[0], ChangePoint(0, 0.0))

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return what `asdict` gave for the state of a store."""
        scale = saved["scale"]
        known = {"bounds": tuple(map(bound_of, saved["bounds"])), "scale": scale and tuple(scale)}
        return cls(**(saved | known))


def bound_of(saved: dict[str, Any]) -> Bound:
    """Return a bound that was saved."""
    lists = {name: saved[name] and tuple(saved[name]) for name in ("reference", "profile")}
    return Bound(**(saved | lists))


def _past(values: Floats, beyond: float | None, *, upward: bool) -> Floats:
    """Return 1 for values beyond a line, else 0; NaN stays."""
    if beyond is None:
        return values
    past = values > beyond if upward else values < beyond
    return np.where(np.isnan(values), np.nan, past.astype(np.float64))


def at_line(alert: Alert, line: float, length: int | None = None) -> BoundedSignal:
    """Return the bets on an alert about a number, moved by its margin; nothing is estimated."""
    signal = alert.about
    low, high = signal.bounds
    length = length or HOUR
    lines = {side: float(np.clip(_moved(alert, line, side), low, high)) for side in _sides(alert)}
    if alert.quantile is not None:
        bounds = tuple(
            _beyond(alert.quantile, moved, upward=side == "above") for side, moved in lines.items()
        )
        return BoundedSignal(_beyond_words(bounds[0], signal), bounds, length=length)
    means = {side: (moved - low) / (high - low) for side, moved in lines.items()}
    bounds = tuple(Bound(side, mean) for side, mean in means.items())
    return BoundedSignal("the mean", bounds, (low, high), length=length)


def _moved(alert: Alert, value: float, side: str) -> float:
    """Return how far a value may go on one side before it is an alarm."""
    sign = -1 if side == "below" else 1
    return value * (1 + sign * alert.margin) if alert.relative else value + sign * alert.margin


def _beyond(quantile: float, line: float, *, upward: bool) -> Bound:
    # p95 is above a line where more than 5 % of the values are; below it where more than 95 % are
    share = 1 - quantile if upward else quantile
    return Bound("above", round(share, 12), line, upward)


def _beyond_words(bound: Bound, signal: Signal) -> str:
    sign = ">" if bound.upward else "<"
    return f"the share of calls with {signal.name} {sign} {bound.beyond:.6g} {signal.unit}".rstrip()


def against_result(
    alert: Alert, known: Floats, error: float, length: int | None = None
) -> BoundedSignal | str:
    """Return the bets on an alert against the queries of a saved result, or why there can be none.

    The limits of its interval are wrong with a chance of `error` at most, all together.
    """
    known = known[~np.isnan(known)]
    if len(known) < FEWEST_VALUES:
        return FEW_IN_BASELINE
    sides, (low, high) = _sides(alert), alert.about.bounds
    found = interval(known, level=1 - 2 * error / len(sides), bounds=alert.about.bounds)
    bounds = []
    for side in sides:
        limit = found.low if side == "below" else found.high
        moved = _moved(alert, float(limit if limit is not None else 0.0), side)
        bounds.append(Bound(side, float(np.clip((moved - low) / (high - low), 0.0, 1.0))))
    return BoundedSignal("the mean", tuple(bounds), alert.about.bounds, length=length or HOUR)


def against_calls(  # noqa: PLR0917
    alert: Alert,
    times: Ints,
    values: Floats,
    length: int | None = None,
    season: str = "",
    seed: int = 0,
) -> BoundedSignal | str:
    """Return the bets on an alert against the calls of a baseline, or why there can be none."""
    defined = ~np.isnan(values)
    times, values = times[defined], values[defined]
    if len(values) < FEWEST_VALUES:
        return FEW_IN_BASELINE
    signal, bounds, chosen, size = alert.about, [], length or 0, 1
    for side in _sides(alert):
        upward, beyond, moved, shift = side == "above", None, None, 0.0
        if alert.quantile is not None:
            beyond = float(np.quantile(values, alert.quantile))
            moved = _moved(alert, beyond, side)
        else:
            shift = float(values.mean() - _moved(alert, float(values.mean()), side))
        plain = _past(values, beyond, upward=upward)
        profile = None
        if season:
            usual, plain = seasonal_profile(times, plain, season)
            if np.isnan(plain).mean() > 0.5:
                return f"season={season} needs a baseline of at least two {season}s; more is better"
            profile = tuple(None if np.isnan(each) else float(each) for each in usual)
        chosen = chosen or period_length(times, plain)
        size = calls_per_period(times, chosen)
        means = cut_calls(times, plain, chosen, size).means(plain)
        means = means[~np.isnan(means)]
        if len(means) < FEWEST_PERIODS:
            return (
                f"the baseline has {len(means)} periods of {period_in_words(chosen)}, too few to "
                f"compare with: take one of {FEWEST_PERIODS} or more, or a shorter period "
                "(--period) if you know that its calls do not depend on those of the period before"
            )
        # a mean beyond a percentile is a share, whose upper end is an alarm on either side
        where = side if beyond is None else "above"
        end = (signal.bounds if beyond is None else (0.0, 1.0))[where == "above"]
        if not shift and not season and (means == end).all():
            continue
        if len(means) > MOST_REFERENCE:
            means = np.random.default_rng(seed).choice(means, MOST_REFERENCE, replace=False)
        reference = tuple(means.tolist())
        bounds.append(Bound(where, 0.5, moved, upward, reference, shift, profile))
    if not bounds:
        return AT_THE_END
    what = "the mean" if alert.quantile is None else _beyond_words(bounds[0], signal)
    words = f"the rank of {what} among {len(bounds[0].reference or ())} periods of the baseline"
    words += " and earlier ones"
    return BoundedSignal(words, tuple(bounds), None, chosen, size, season, seed)


def _sides(alert: Alert) -> tuple[str, ...]:
    return ("below", "above") if alert.side == "both" else (alert.side,)
