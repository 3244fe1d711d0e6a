"""A signal over time: values with the band of their intervals, marks, alarms, links to calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any

from findwell.show.charts import Chart
from findwell.show.charts.svg import (
    color,
    drawing,
    element,
    label,
    legend,
    line,
    linear,
    marker,
    ticks,
    title,
)
from findwell.show.grid import Grid
from findwell.show.signals import figure, limits, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from findwell.loop.monitoring.alarm_report import KnownAlarm
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark
    from findwell.show.charts.svg import Scale

WIDTH, HIGH, LEFT, RIGHT, TOP = 340.0, 118.0, 46.0, 10.0, 20.0
BANDS = 3  # slices whose intervals are drawn
MARKS = 3  # rows of names of marks
LONG = 18  # letters of such a name
SMALLEST = 0.02  # share that fills a chart, at least
DAY = timedelta(days=1)

Row = dict[str, Any]  # of Monitor.buckets


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """What all charts of a page have in common."""

    since: datetime
    until: datetime
    length: timedelta  # of a bucket
    by: str
    slices: Sequence[str]
    marks: Sequence[Mark]
    link: Callable[[Signal, datetime], str]  # from a bucket to its calls

    def place(self) -> Callable[[datetime], float]:
        """Return the function from times to places across."""
        whole = (self.until - self.since) / timedelta(seconds=1)
        across = linear((0.0, max(whole, 1.0)), (LEFT, WIDTH - RIGHT))
        return lambda time: across((time - self.since) / timedelta(seconds=1))


def time_series(
    signal: Signal, rows: Sequence[Row], axis: TimeAxis, alarms: Sequence[KnownAlarm]
) -> Chart:
    """Draw a signal; a bucket leads to its calls."""
    names = list(axis.slices) if axis.by else [""]
    by_slice: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        if row["value"] is not None and isfinite(row["value"]):
            by_slice[row[axis.by] if axis.by else ""].append(row)
    key, tall = legend(names, LEFT, 14, WIDTH - LEFT - RIGHT) if axis.by else ("", 0.0)
    named = _named(axis)
    top = TOP + tall + 11 * min(len(named), MARKS)
    shown = [row for each in by_slice.values() for row in each]
    low, high = _domain(signal, shown)
    up, across = linear((low, high), (top + HIGH, top)), axis.place()
    parts = [key, *_frame(up, low, high)]
    parts += _alarms(alarms, axis, across, top)
    parts += _time_ticks(axis, across, top + HIGH)
    for at, each in enumerate(by_slice.values()):
        runs = list(_unbroken(each, axis.length))
        if at < BANDS:
            parts += [_band(run, axis, across, up, (low, high), at) for run in runs]
        for run in runs:
            points = [(across(_middle(row, axis)), up(row["value"])) for row in run]
            parts.append(line(points, f"plot {color(at)}"))
            many = len(each) > 40 and len(run) > 1
            parts += [marker(at, x, y, 1.6 if many else 2.6) for x, y in points]
    parts += _marks(named, across, top, tall)
    parts += _hits(signal, by_slice, axis, across, top)
    says = _says(signal, by_slice, axis)
    table = Grid(
        "", ["time (UTC)", "value"], [[time_text(r["time"]), figure(r["value"])] for r in shown]
    )
    svg = drawing(WIDTH, top + HIGH + 24, says, parts, linked=True)
    return Chart(f"signal {signal.name}", signal.name, says, svg, table)


def _domain(signal: Signal, rows: Sequence[Row]) -> tuple[float, float]:
    """Return what the axis reaches from and to: from 0 on, if there is nothing below."""
    values = [row["value"] for row in rows] or [0.0]
    highs = sorted(row["high"] for row in rows if row["high"] is not None)
    lows = sorted(row["low"] for row in rows if row["low"] is not None)
    # intervals of few calls may be wide: they are cut, so that the rest can be seen
    high = max([*values, *highs[: 1 + len(highs) * 4 // 5]])
    if signal.bounds[0] == 0:
        most = signal.bounds[1]
        high = max(high, SMALLEST if most == 1 else 0.0) or 1.0
        return 0.0, min(high * 1.06, most)
    low = min([*values, *lows[len(lows) // 5 :]])
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _middle(row: Row, axis: TimeAxis) -> datetime:
    start: datetime = row["time"]
    return start + (min(start + axis.length, axis.until) - start) / 2


def _unbroken(rows: Sequence[Row], length: timedelta) -> Iterator[list[Row]]:
    """Yield rows that follow each other: where nothing was asked, nothing is drawn."""
    run: list[Row] = []
    for row in rows:
        if run and row["time"] - run[-1]["time"] > length:
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _band(  # noqa: PLR0917
    run: Sequence[Row],
    axis: TimeAxis,
    across: Callable[[datetime], float],
    up: Scale,
    domain: tuple[float, float],
    at: int,
) -> str:
    known = [row for row in run if row["low"] is not None or row["high"] is not None]
    if not known:
        return ""

    def place(row: Row, side: str, end: float) -> tuple[float, float]:
        value = end if row[side] is None else min(max(row[side], domain[0]), domain[1])
        return across(_middle(row, axis)), up(value)

    above = [place(row, "high", domain[1]) for row in known]
    below = [place(row, "low", domain[0]) for row in reversed(known)]
    if len(known) == 1:
        (x, top), (_, bottom) = above[0], below[0]
        return element("line", x1=x, x2=x, y1=top, y2=bottom, class_=f"thin {color(at)}")
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*above, *below))
    return element("polygon", points=points, class_=f"band {color(at)}")


def _frame(up: Scale, low: float, high: float) -> Iterator[str]:
    for tick in ticks(low, high):
        y = up(tick)
        yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield label(_short(tick), LEFT - 6, y + 4, class_="muted small", text_anchor="end")


def _short(value: float) -> str:
    """Write a number of an axis in few letters.

    >>> _short(0.25), _short(12_500.0)
    ('0.25', '12.5k')
    """
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:g}"


def _time_ticks(
    axis: TimeAxis, across: Callable[[datetime], float], bottom: float
) -> Iterator[str]:
    """Yield some times below the chart: days, or hours where there are few days."""
    span = axis.until - axis.since
    hours = span <= 2 * DAY
    steps = [timedelta(minutes=each) for each in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720)]
    steps += [DAY * each for each in (1, 2, 4, 7, 14, 28, 91, 365, 3650)]
    step = next((each for each in steps if span / each <= 5), steps[-1])
    start = axis.since.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = start + step * -(-(axis.since - start) // step)
    while begin < axis.until:
        x = across(begin)
        yield element("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis")
        if LEFT + 6 <= x <= WIDTH - RIGHT - 12 or begin == axis.since:
            text = f"{begin:%H:%M}" if hours else f"{begin:%b} {begin.day}"
            text = f"{begin:%Y}" if span > 900 * DAY else text
            yield label(text, x, bottom + 17, class_="muted small", text_anchor="middle")
        begin += step


def _named(axis: TimeAxis) -> list[tuple[int, Mark]]:
    """Return the marks within the time, with their numbers on the page."""
    inside = enumerate(axis.marks, 1)
    return [(at, mark) for at, mark in inside if axis.since <= mark.time <= axis.until]


def _marks(
    named: Sequence[tuple[int, Mark]],
    across: Callable[[datetime], float],
    top: float,
    tall: float,
) -> Iterator[str]:
    rows = min(len(named), MARKS)
    for at, (_, mark) in enumerate(named):
        x, y = across(mark.time), TOP + tall + 11 * (at % MARKS) if rows else top
        yield element("line", x1=x, x2=x, y1=y - 6, y2=top + HIGH, class_="release")
        left = x > WIDTH * 0.6
        side = {"x": x - 4, "text_anchor": "end"} if left else {"x": x + 4}
        yield label(mark.name, y=y + 2, most=LONG, class_="small release-name", **side)


def _alarms(
    alarms: Sequence[KnownAlarm],
    axis: TimeAxis,
    across: Callable[[datetime], float],
    top: float,
) -> Iterator[str]:
    """Shade the times of alarms; those of several slices as one."""
    ends = ((each.since, each.resolved or axis.until) for each in alarms)
    spans = sorted((max(start, axis.since), min(end, axis.until)) for start, end in ends)
    reached = axis.since
    for start, last in spans:
        first, reached = max(start, reached), max(reached, last)
        if first < last:
            x = across(first)
            where = {"x": x, "y": top, "width": max(across(last) - x, 2.0), "height": HIGH}
            yield element("rect", class_="alarmed", **where)


def _hits(
    signal: Signal,
    by_slice: Mapping[str, Sequence[Row]],
    axis: TimeAxis,
    across: Callable[[datetime], float],
    top: float,
) -> Iterator[str]:
    """Yield what the mouse or a finger meets: a bucket from top to bottom.

    The keyboard has the same links in the table below each chart.
    """
    times: dict[datetime, list[str]] = {}
    for name, rows in by_slice.items():
        for row in rows:
            head = f"{name}: " if name else ""
            inside = limits(row["low"], row["high"])
            inside = "" if inside == "–" else f" ({inside})"
            times.setdefault(row["time"], []).append(
                f"{head}{figure(row['value'])}{inside}, {row['n']:,} calls"
            )
    for time, lines in times.items():
        x = across(max(time, axis.since))
        wide = max(across(min(time + axis.length, axis.until)) - x, 2.0)
        hint = title("\n".join([f"{signal.name} · {time_text(time)}", *lines]))
        rect = element("rect", x=x, y=top, width=wide, height=HIGH, class_="hit")
        yield element("a", rect + hint, href=axis.link(signal, time), tabindex="-1")


def _says(signal: Signal, by_slice: Mapping[str, Sequence[Row]], axis: TimeAxis) -> str:
    """Say in a sentence what the chart shows."""
    told = []
    for name, rows in by_slice.items():
        if rows:
            values = [row["value"] for row in rows]
            told.append(
                (f"{name}: " if name else "")
                + f"{figure(values[0])} at first, {figure(values[-1])} at last, "
                f"{figure(min(values))} to {figure(max(values))}"
            )
    marks = ", ".join(f"{mark.name} at {time_text(mark.time)}" for _, mark in _named(axis))
    when = f"from {time_text(axis.since)} to {time_text(axis.until)}"
    found = f"{signal.name} {when}: " + ("; ".join(told) or "no values")
    return found + (f"; marks: {marks}" if marks else "")
