"""From values of a signal to bets: values between 0 and 1, and the means that are bet against.

| the alert is about | what is bet on | against |
|---|---|---|
| a signal between bounds | the value | the line, or a limit of the baseline's interval |
| a percentile | 1 beyond the line, else 0 | the share that may be beyond: 5 % for p95 |
| a signal without an upper bound | x ÷ (x + median of the baseline) | a limit of the baseline |
| a score | ranks among the baseline and earlier calls | ½ |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING

import numpy as np

from karat.statistics.change_points import (
    ChangePoint,
    change_evidence,
    change_point,
    conformal_ranks,
    shiryaev_roberts,
)
from karat.statistics.intervals import interval
from karat.statistics.quantiles import quantile_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.core.data import Floats
    from karat.monitoring.alerts import Alert
    from karat.monitoring.signals import Signal

FEWEST = 2  # values of a baseline
MOST_REFERENCE = 1000  # values of a baseline that are kept, for ranks
FEW_IN_BASELINE = "the baseline has too few values"
OPPOSITE = {"below": "above", "above": "below"}


@dataclass(frozen=True, slots=True)
class Bound:
    """A mean that is bet against on one side; `beyond` turns values into 0 and 1 before."""

    side: str  # below: an alarm if the mean is less
    mean: float
    beyond: float | None = None  # values past this count as 1
    upward: bool = True  # past: above, or else below


@dataclass(frozen=True, slots=True)
class BoundedSignal:
    """How a signal is bet on: the transform, in words, and the bounds of its mean."""

    transform: str
    bounds: tuple[Bound, ...]
    scale: tuple[float, float] = (0.0, 1.0)  # 0 and 1 in the unit of the signal, where that is so
    median: float | None = None  # of the baseline, for ratios
    reference: tuple[float, ...] | None = None  # values of the baseline, for ranks
    seed: int = 0

    def stream(self, bound: Bound, values: Floats) -> Floats:
        """Return values between 0 and 1; NaN stays."""
        if bound.beyond is not None:
            past = values > bound.beyond if bound.upward else values < bound.beyond
            return np.where(np.isnan(values), np.nan, past.astype(np.float64))
        if self.reference is not None:
            return conformal_ranks(values, np.array(self.reference), seed=self.seed)
        if self.median is not None:
            return as_ratio(values, self.median)
        low, high = self.scale
        return np.clip((values - low) / (high - low), 0.0, 1.0)

    def level_stream(self, bound: Bound, values: Floats) -> Floats:
        """Return values between 0 and 1 whose mean says where the signal is now.

        Ranks among earlier calls go back to ½ once a change has lasted: these are ranks among the
        baseline alone.
        """
        if self.reference is None or bound.beyond is not None:
            return self.stream(bound, values)
        known = np.sort(self.reference)
        below, upto = (np.searchsorted(known, values, side=side) for side in ("left", "right"))
        return np.where(np.isnan(values), np.nan, (below + upto) / (2 * len(known)))

    def evidence(self, values: Floats, *, run_length: bool = False, earlier: int = 0) -> float:
        """Return the logarithm of the evidence after the last value: the mean over the bounds.

        `earlier` values were watched before these, and are not there any longer.
        """
        if not len(values):
            return 0.0 if not run_length else -np.inf
        method = _method(earlier, run_length=run_length)
        found = [
            float(method(self.stream(bound, values), bound.mean, side=bound.side)[-1])
            for bound in self.bounds
        ]
        return float(np.logaddexp.reduce(found) - log(len(found)))

    def most_evidence(self, count: int, *, run_length: bool = False, earlier: int = 0) -> float:
        """Return what the evidence would be, had all of this many values been as bad as can be.

        Of more than 10,000 it is that of 10,000, which is as good as certain.
        """
        count = min(count, 10_000)
        method = _method(earlier, run_length=run_length)
        found = []
        for bound in self.bounds:
            worst = np.full(count, 0.0 if bound.side == "below" else 1.0)
            if self.reference is not None:  # each lies below, or above, all of the reference
                among = len(self.reference) + np.arange(1, count + 1)
                worst = 0.5 * np.arange(1, count + 1) / among
                worst = worst if bound.side == "below" else 1 - worst
            if count:
                found.append(float(method(worst, bound.mean, side=bound.side)[-1]))
        return max(found, default=-np.inf) - log(len(self.bounds))

    def change(self, values: Floats) -> tuple[Bound, ChangePoint]:
        """Return since when a mean has been kept no longer, and which."""
        best: tuple[Bound, ChangePoint] | None = None
        for bound in self.bounds:
            found = change_point(self.level_stream(bound, values), bound.mean, side=bound.side)
            if found is not None and (best is None or found.log_capital > best[1].log_capital):
                best = bound, found
        return best or (self.bounds[0], ChangePoint(0, 0.0))


def _method(earlier: int, *, run_length: bool) -> Callable[..., Floats]:
    # the gamblers of Shiryaev and Roberts each begin with 1: nobody's money is a part of another's
    return shiryaev_roberts if run_length else partial(change_evidence, earlier=earlier)


def as_ratio(values: Floats, median: float) -> Floats:
    """Return x ÷ (x + m): half at the median, and never more than 1."""
    positive = np.maximum(values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = positive / (positive + median)
    return np.where(np.isnan(values), np.nan, np.nan_to_num(found, nan=0.5))


def at_line(alert: Alert, line: float) -> BoundedSignal:
    """Return the bets on an alert about a number, moved by its margin; nothing is estimated."""
    signal = alert.about
    low, high = signal.bounds
    lines = {side: float(np.clip(_moved(alert, line, side), low, high)) for side in _sides(alert)}
    if alert.quantile is not None:
        bounds = tuple(
            _beyond(alert.quantile, moved, upward=side == "above") for side, moved in lines.items()
        )
        return BoundedSignal(_beyond_words(bounds[0], signal), bounds)
    means = {side: (moved - low) / (high - low) for side, moved in lines.items()}
    return BoundedSignal(
        "the value itself", tuple(Bound(side, mean) for side, mean in means.items()), (low, high)
    )


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
    return f"share of calls with {signal.name} {sign} {bound.beyond:.6g} {signal.unit}".rstrip()


def against_values(alert: Alert, reference: Floats, error: float, seed: int) -> BoundedSignal | str:
    """Return the bets on an alert against values of a baseline, or why there are none.

    The limits of the baseline are wrong with a chance of `error` at most, all together.
    """
    signal = alert.about
    known = reference[~np.isnan(reference)]
    if len(known) < FEWEST:
        return FEW_IN_BASELINE
    sides = _sides(alert)
    level = 1 - 2 * error / len(sides)  # of which the half is off on either side
    if alert.quantile is not None:
        return _against_quantile(alert, known, level)
    if signal.transform == "rank":
        sample = known
        if len(known) > MOST_REFERENCE:
            sample = np.random.default_rng(seed).choice(known, MOST_REFERENCE, replace=False)
        return BoundedSignal(
            "rank among the baseline and earlier calls",
            tuple(Bound(side, 0.5) for side in sides),
            reference=tuple(sample.tolist()),
            seed=seed,
        )
    bounds = []
    for side in sides:
        sign = -1 if side == "below" else 1
        if signal.transform == "ratio":
            median = float(np.median(known))
            moved = (
                known * (1 + sign * alert.margin) if alert.relative else known + sign * alert.margin
            )
            found = interval(as_ratio(moved, median), level=level)
            limit = found.low if side == "below" else found.high
            bounds.append(Bound(side, float(np.clip(limit or 0.0, 0.0, 1.0))))
            continue
        low, high = signal.bounds
        found = interval(known, level=level, bounds=signal.bounds)
        limit = found.low if side == "below" else found.high
        limit = _moved(alert, float(limit if limit is not None else 0.0), side)
        bounds.append(Bound(side, float(np.clip((limit - low) / (high - low), 0.0, 1.0))))
    if signal.transform == "ratio":
        median = float(np.median(known))
        words = f"{signal.name} ÷ ({signal.name} + {median:.4g}), the median of the baseline"
        return BoundedSignal(words, tuple(bounds), median=median)
    return BoundedSignal("the value itself", tuple(bounds), signal.bounds)


def _against_quantile(alert: Alert, known: Floats, level: float) -> BoundedSignal | str:
    """Hold values against the limit of a percentile of the baseline."""
    assert alert.quantile is not None  # noqa: S101 - the caller has looked
    found = quantile_interval(known, alert.quantile, level)
    bounds = []
    for side in _sides(alert):
        limit = found.low if side == "below" else found.high
        if limit is None:
            return FEW_IN_BASELINE
        bounds.append(_beyond(alert.quantile, _moved(alert, limit, side), upward=side == "above"))
    return BoundedSignal(_beyond_words(bounds[0], alert.about), tuple(bounds))


def _sides(alert: Alert) -> tuple[str, ...]:
    return ("below", "above") if alert.side == "both" else (alert.side,)
