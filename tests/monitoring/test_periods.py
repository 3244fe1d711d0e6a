"""Periods: how calls are put together, how long they have to be, seasons, and false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.dependent_calls import WORLDS, World, late_runs, runs
from findwell.loop.monitoring.alerts import parse_alert
from findwell.loop.monitoring.detectors import (
    DAY,
    HOUR,
    BoundedSignal,
    against_calls,
    calls_per_period,
    cut_calls,
    period_length,
    seasonal_profile,
)

RNG = np.random.default_rng(3)


def hourly(values: np.ndarray, calls: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return calls of hours, each with a chance of its own to be 1."""
    times = np.arange(len(values) * calls) * (HOUR // calls)
    return times, (RNG.random(len(times)) < np.repeat(values, calls)).astype(np.float64)


def test_periods_are_over_and_have_the_same_number_of_calls() -> None:
    times = np.array([0, 1, 2, 13, 14, 31, 45, 46, 47, 48, 52])
    values = np.arange(11.0)
    cut = cut_calls(times, values, 10, 3, until=59)
    assert list(zip(cut.starts, cut.ends, strict=True)) == [(0, 3), (3, 6), (6, 10)]
    assert cut.means(values).tolist() == [1.0, 4.0, np.mean([6, 8, 9])]
    whole = cut_calls(times, values, 10)
    assert len(whole) == 5
    assert whole.means(np.where(values == 5, np.nan, values))[2:3].tolist() != [5.0]
    assert not len(cut_calls(times[:0], values[:0], 10))


def test_the_baseline_shows_how_long_a_period_has_to_be() -> None:
    assert period_length(*hourly(np.full(28 * 24, 0.7))) <= 3 * HOUR
    days = np.repeat(RNG.normal(0.7, 0.1, 28), 24).clip(0, 1)
    assert period_length(*hourly(days)) == DAY
    assert period_length(*hourly(np.full(10, 0.7))) == DAY  # nothing can be seen in 10 hours
    times, _ = hourly(np.full(24, 0.7))
    assert calls_per_period(times, HOUR) == 9


def test_less_traffic_is_no_change() -> None:
    """Means of fewer calls would scatter more."""
    times, values = hourly(np.full(28 * 24, 0.7))
    bets = against_calls(parse_alert("context_relevancy drops"), times, values, HOUR)
    assert isinstance(bets, BoundedSignal)
    few = bets.cut(times[::4], values[::4])
    spreads = [np.std(bets.levels(bets.bounds[0], cut)) for cut in (few, bets.cut(times, values))]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.15)


def test_a_season_is_the_mean_of_the_same_hour_on_other_days() -> None:
    times = np.array([0, 1, DAY, 2 * DAY, 2 * DAY + HOUR])
    values = np.array([1.0, 2.0, 4.0, 6.0, 5.0])
    usual, without = seasonal_profile(times, values, "day")
    assert usual[:2].tolist() == [13 / 4, 5.0]
    np.testing.assert_allclose(without, [-4, -3, 1, 6 - 7 / 3, np.nan])


def test_a_signal_that_was_higher_in_between_has_not_dropped() -> None:
    """A drop is one below the baseline, not below the best days since."""
    times, values = hourly(
        np.concatenate([np.full(28 * 24, 0.5), np.full(400, 0.9), np.full(200, 0.5)])
    )
    old = times < 28 * DAY
    bets = against_calls(parse_alert("context_relevancy drops"), times[old], values[old], HOUR)
    assert isinstance(bets, BoundedSignal)
    assert bets.evidence(bets.cut(times[~old], values[~old])) < np.log(20)


def of(name: str) -> World:
    return next(each for each in WORLDS if each.name.startswith(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hours keep 0.8", "days differ (", "cycle and weekends"])
def test_alarms_keep_their_promise_where_calls_depend_on_each_other(name: str) -> None:
    """Some of the runs of docs/alarms-promise.md: 5 % are promised."""
    before, now = (runs(of(name), 4, 50, now=each) for each in (False, True))
    assert np.isfinite(before).mean() > 0.2
    assert np.isfinite(now).mean() <= 0.12  # 6 of 50 by chance: one time in 100


@pytest.mark.slow
def test_a_season_finds_changes_in_hours() -> None:
    found = runs(of("the same, `--season week`"), 4, 20, drop=True)
    assert np.median(found[found > 48] - 48) <= 36


@pytest.mark.slow
def test_late_calls_need_time_to_settle() -> None:
    soon, settled = (np.isfinite(late_runs(20, hours, days=7)).mean() for hours in (0, 12))
    assert settled <= 0.15
    assert settled <= soon
