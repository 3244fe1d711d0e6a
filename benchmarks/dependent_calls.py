"""How often alarms are false where calls depend on each other: a table of docs/alarms-promise.md.

    python -m benchmarks.dependent_calls

Each run is some weeks of calls as a baseline, and four weeks that are watched, looked at after
every call (before) or every period (now). A call finds something (1) or not (0); the chance is
0.70 on average, and in some worlds it moves: by the hour, by the day, at weekends. *Before* is the
method that took single calls for independent: the limit of the baseline's interval, and bets on
each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

from findwell.loop.monitoring.alerts import parse_alert
from findwell.loop.monitoring.detectors import (
    ALL_TIMES,
    HOUR,
    RUN_LENGTH,
    BoundedSignal,
    against_calls,
)
from findwell.statistics.intervals import interval
from findwell.statistics.sequential import change_evidence, shiryaev_roberts

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

ALPHA = 0.05
RUN_LENGTHS = (10_000, 1_000)  # calls, before; periods, now: 50 days or so of each
ALERT = parse_alert("context_relevancy drops")
MEAN, CALLS = 0.70, 12  # of an hour
WATCHED = 28  # days
CHANGE, DROP = 48, 0.20  # hours after the baseline, and how far
DAY, WEEK = 24, 168  # hours


def autoregression(rng: np.random.Generator, hours: int, keeps: float, spread: float) -> Floats:
    """Return effects of hours, each of which keeps a part of the one before."""
    noise = rng.normal(0, spread * (1 - keeps**2) ** 0.5, hours)
    noise[0] = rng.normal(0, spread)
    found = [0.0]
    for each in noise:
        found.append(keeps * found[-1] + each)
    return np.array(found[1:])


Effects = Callable[[np.random.Generator, "Ints"], "Floats"]


@dataclass(frozen=True, slots=True)
class World:
    """How the chance moves by the hour, and whether traffic does."""

    name: str
    effects: Effects
    traffic: Callable[[Ints], Floats] | None = None  # calls of an hour, as parts of what is usual
    season: str = ""


def _days(rng: np.random.Generator, hours: Ints, spread: float) -> Floats:
    return np.asarray(rng.normal(0, spread, len(hours) // DAY + 1)[hours // DAY])


def _cycle(hours: Ints) -> Floats:
    return np.asarray(0.1 * np.sin(2 * np.pi * hours / DAY))


def _busy_days(hours: Ints) -> Floats:
    return np.asarray(1 + 0.8 * np.sin(2 * np.pi * hours / DAY - 1))


def _fewer(hours: Ints) -> Floats:
    return np.where(hours < 0, 1.0, 0.3)


def _weekend(hours: Ints) -> Floats:
    return np.where(hours // DAY % 7 >= 5, -0.1, 0.0)


WORLDS = (
    World("independent calls", lambda _, hours: np.zeros(len(hours))),
    World("traffic falls to a third", lambda _, hours: np.zeros(len(hours)), traffic=_fewer),
    World("hours keep 0.5 of the one before", lambda r, h: autoregression(r, len(h), 0.5, 0.08)),
    World("hours keep 0.8", lambda r, h: autoregression(r, len(h), 0.8, 0.08)),
    World("hours keep 0.95", lambda r, h: autoregression(r, len(h), 0.95, 0.08)),
    World("days differ (±0.06)", lambda r, h: _days(r, h, 0.06)),
    World("days differ a little (±0.025)", lambda r, h: _days(r, h, 0.025)),
    World("weekends are lower by 0.10", lambda _, h: _weekend(h)),
    World("a daily cycle (±0.10), of traffic too", lambda _, h: _cycle(h), traffic=_busy_days),
    World("the same, `--season day`", lambda _, h: _cycle(h), traffic=_busy_days, season="day"),
    World("cycle and weekends", lambda _, h: _cycle(h) + _weekend(h), traffic=_busy_days),
    World(
        "the same, `--season week`", lambda _, h: _cycle(h) + _weekend(h), traffic=_busy_days,
        season="week",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calls:
    """Times in microseconds, in order, and values; those before `begin` are the baseline."""

    times: Ints
    values: Floats
    begin: int


def made_calls(world: World, weeks: int, rng: np.random.Generator, *, drop: bool) -> Calls:
    """Return calls of a baseline and of the days that are watched."""
    hours = np.arange(weeks * WEEK + WATCHED * DAY)
    chance = MEAN + world.effects(rng, hours)
    begin = weeks * WEEK
    rate = CALLS * (np.ones(len(hours)) if world.traffic is None else world.traffic(hours - begin))
    chance = np.where(drop & (hours >= begin + CHANGE), chance - DROP, chance)
    each = np.repeat(hours, rng.poisson(rate, len(hours)))
    times = np.sort(each * HOUR + rng.integers(0, HOUR, len(each)))
    values = (rng.random(len(times)) < chance[times // HOUR]).astype(np.float64)
    return Calls(times, values, begin * HOUR)


def first_before(calls: Calls, *, run_length: bool = False) -> float:
    """Return after how many hours the old method raised an alarm; infinite if it did not."""
    old = calls.times < calls.begin
    limit = interval(calls.values[old], level=1 - ALPHA, bounds=(0.0, 1.0)).low or 0.0
    method = shiryaev_roberts if run_length else change_evidence
    line = log(RUN_LENGTHS[0]) if run_length else log(2 / ALPHA)
    raised = np.flatnonzero(method(calls.values[~old], limit) >= line)
    later = calls.times[~old]
    return float(later[raised[0]] - calls.begin) / HOUR if len(raised) else np.inf


def bets_of(calls: Calls, season: str) -> BoundedSignal | str:
    """Return how `findwell monitor check` bets against the baseline."""
    old = calls.times < calls.begin
    return against_calls(ALERT, calls.times[old], calls.values[old], season=season)


def first_now(calls: Calls, season: str, *, run_length: bool = False) -> float:
    """Return after how many hours `findwell monitor check` raises an alarm; NaN: it never could."""
    bets = bets_of(calls, season)
    line = log(RUN_LENGTHS[1]) if run_length else log(1 / ALPHA)
    if isinstance(bets, str):
        return np.nan
    new = calls.times >= calls.begin
    cut = bets.cut(calls.times[new], calls.values[new])
    if bets.most_evidence(len(cut), RUN_LENGTH if run_length else ALL_TIMES) < line:
        return np.nan
    method = shiryaev_roberts if run_length else change_evidence
    stream = bets.stream(bets.bounds[0], cut)
    raised = np.flatnonzero(method(stream, None) >= line)
    if not len(raised):
        return np.inf
    last = cut.times[cut.ends[raised[0]] - 1]
    return float((last // bets.length + 1) * bets.length - calls.begin) / HOUR


def runs(
    world: World,
    weeks: int,
    count: int,
    *,
    drop: bool = False,
    now: bool = True,
    run_length: bool = False,
) -> Floats:
    """Return the first alarms of some runs, in hours."""
    found = []
    for number in range(count):
        rng = np.random.default_rng([WORLDS.index(world), weeks, drop, number])
        calls = made_calls(world, weeks, rng, drop=drop)
        if now:
            found.append(first_now(calls, world.season, run_length=run_length))
        else:
            found.append(first_before(calls, run_length=run_length))
    return np.array(found)


def late_runs(count: int, settle: int | None, *, days: int = 14) -> Floats:
    """Return first alarms where half of the hits arrive up to 12 hours late, of a check every hour.

    `settle` is how many hours a period has to be over; None is the method before.
    """
    found = []
    for number in range(count):
        rng = np.random.default_rng([99, number])
        calls = made_calls(WORLDS[0], 1, rng, drop=False)
        late = np.where(
            rng.random(len(calls.times)) < 0.5, rng.integers(0, 12 * HOUR, len(calls.times)), 0
        )
        arrived = calls.times + np.where(calls.values > 0, late, 0)
        new = calls.times >= calls.begin
        bets, first = bets_of(calls, ""), np.inf
        if isinstance(bets, str):
            found.append(np.nan)
            continue
        for hour in range(1, days * DAY + 1):
            moment = calls.begin + hour * HOUR
            seen = new & (arrived <= moment)
            if settle is None:
                part = Calls(calls.times[seen | ~new], calls.values[seen | ~new], calls.begin)
                raised = first_before(part) < np.inf
            else:
                cut = bets.cut(calls.times[seen], calls.values[seen], moment - settle * HOUR)
                raised = bets.evidence(cut) >= log(1 / ALPHA)
            if raised:
                first = hour
                break
        found.append(first)
    return np.array(found)


def _false(found: Floats) -> str:
    share, never = np.isfinite(found).mean(), np.isnan(found).mean()
    shown = f"{100 * share:.0f} %"
    return f"{shown} ({100 * never:.0f} % undecided)" if never else shown


def _late(found: Floats) -> str:
    """Write the median delay of the runs in which there was no false alarm before."""
    found = np.where(np.isnan(found), np.inf, found)
    after = found[found > CHANGE] - CHANGE
    middle = np.sort(after)[len(after) // 2]
    return f"{middle:.0f} h" if np.isfinite(middle) else f"> {(WATCHED * DAY - CHANGE) // DAY} d"


def table(count: int) -> str:
    """Return the table in Markdown."""
    head = "| | false alarms before | now, 1 week | now, 4 weeks | by run length before "
    head += "| now, 4 weeks | found after, before | now, 1 week | now, 4 weeks |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    ways = ((1, False), (1, True), (4, True))
    for world in WORLDS:
        row: list[str] = []
        for drop, write in ((False, _false), (True, _late)):
            for weeks, now in ways:
                row.append(write(runs(world, weeks, count, drop=drop, now=now)))
            if not drop:
                for weeks, now in ((1, False), (4, True)):
                    found = runs(world, weeks, count, now=now, run_length=True)
                    row.append(write(found))
        lines.append(f"| {world.name} | {' | '.join(row)} |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
    for hours in (None, 0, 12):
        name = "before" if hours is None else f"settle {hours} h"
        print(f"late hits, {name}: {_false(late_runs(60, hours))}")
