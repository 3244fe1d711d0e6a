"""From values of a signal to bets: what is taken of each period, and what is bet against.

| the alert is about | what is bet on, of each period | against |
|---|---|---|
| a baseline of calls | the mean, ranked among the periods of the baseline and earlier ones | ½ |
| a number, or a saved result | the mean | the number, or a limit of the result's interval |

For a percentile the mean is that of 1 beyond the line, else 0: the share of calls beyond it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from findwell.loop.monitoring.periods import (
    HOUR,
    CutCalls,
    calls_per_period,
    cut_calls,
    length_in_words,
    period_length,
    season_cells,
    seasonal_profile,
)
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
    from collections.abc import Callable

    from findwell.core.data import Floats, Ints
    from findwell.loop.monitoring.alerts import Alert
    from findwell.loop.monitoring.signals import Signal

FEWEST, FEWEST_PERIODS = 2, 16  # values, and periods, of a baseline
MOST_REFERENCE = 1000  # periods of a baseline that are kept, for ranks
MANY = 10_000  # periods that are as good as any number of them
FEW_IN_BASELINE = "the baseline has too few values"
AT_THE_END = "the baseline is at the limit of this signal: it cannot go further in that direction"


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

    def evidence(self, cut: CutCalls, *, run_length: bool = False, earlier: int = 0) -> float:
        """Return the logarithm of the evidence after the last period: the mean over the bounds.

        `earlier` periods were watched before these, and are not there any longer.
        """
        if not len(cut):
            return 0.0 if not run_length else -np.inf
        method = _method(earlier, run_length=run_length)
        found = [
            float(method(self.stream(bound, cut), bound.against, side=bound.side)[-1])
            for bound in self.bounds
        ]
        return float(np.logaddexp.reduce(found) - log(len(found)))

    def most_evidence(self, count: int, *, run_length: bool = False, earlier: int = 0) -> float:
        """Return what the evidence would be, had all of this many periods been as bad as can be."""
        count = min(count, MANY)
        method = _method(earlier, run_length=run_length)
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

    def as_dict(self) -> dict[str, Any]:
        """Return it for the state that is kept with a store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return what was saved."""
        scale = saved["scale"]
        known = {"bounds": tuple(map(bound_of, saved["bounds"])), "scale": scale and tuple(scale)}
        return cls(**(saved | known))


def bound_of(saved: dict[str, Any]) -> Bound:
    """Return a bound that was saved."""
    lists = {name: saved[name] and tuple(saved[name]) for name in ("reference", "profile")}
    return Bound(**(saved | lists))


def _method(earlier: int, *, run_length: bool) -> Callable[..., Floats]:
    # the gamblers of Shiryaev and Roberts each begin with 1: no one's money is part of another's
    return shiryaev_roberts if run_length else partial(change_evidence, earlier=earlier)


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
    """Return the bets on an alert against the queries of a saved result, or why there are none.

    The limits of its interval are wrong with a chance of `error` at most, all together.
    """
    known = known[~np.isnan(known)]
    if len(known) < FEWEST:
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
    """Return the bets on an alert against the calls of a baseline, or why there are none."""
    defined = ~np.isnan(values)
    times, values = times[defined], values[defined]
    if len(values) < FEWEST:
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
                return f"season={season} needs a baseline of at least two {season}s, better more"
            profile = tuple(None if np.isnan(each) else float(each) for each in usual)
        chosen = chosen or period_length(times, plain)
        size = calls_per_period(times, chosen)
        means = cut_calls(times, plain, chosen, size).means(plain)
        means = means[~np.isnan(means)]
        if len(means) < FEWEST_PERIODS:
            return (
                f"the baseline has {len(means)} periods of {length_in_words(chosen)}, too few to "
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
