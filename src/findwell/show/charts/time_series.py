"""A signal over time: values with the band of their intervals, marks, alarms, links to calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted
from findwell.loop.monitoring.alarm_report import amount
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
from findwell.show.signals import amounts, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from findwell.loop.monitoring.alarm_report import KnownAlarm
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark

WIDTH, HIGH, LEFT, RIGHT, TOP = 340.0, 118.0, 46.0, 10.0, 20.0
SMALL_WIDTH, SMALL_HIGH = 150.0, 32.0  # of a line in a table
DRAWN_BANDS = 3  # slices whose intervals are drawn
MARK_ROWS = 3  # rows of names of marks
MARK_LETTERS = 18  # of such a name
SMALLEST_TOP = 0.02  # share that fills a chart, at least
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
STEPS = (  # between two times below a chart
    *(timedelta(minutes=each) for each in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(DAY * each for each in (1, 2, 4, 7, 14, 28, 91, 365, 3650)),
)

Row = dict[str, Any]  # of Monitor.buckets


@dataclass(frozen=True)
class TimeAxis:
    """What all charts of a page have in common."""

    since: datetime
    until: datetime
    length: timedelta  # of a bucket
    by: str
    slices: Sequence[str]
    marks: Sequence[Mark]
    link: Callable[[Signal, datetime], str] | None  # from a bucket to its calls, if it has any

    @cached_property
    def across(self) -> Callable[[datetime], float]:
        """The function from times to places across."""
        whole = max((self.until - self.since) / SECOND, 1.0)
        place = linear((0.0, whole), (LEFT, WIDTH - RIGHT))
        return lambda time: place((time - self.since) / SECOND)

    @cached_property
    def shown_marks(self) -> list[Mark]:
        """The marks within the time."""
        return [mark for mark in self.marks if self.since <= mark.time <= self.until]

    def middle(self, row: Row) -> float:
        """Return the place of the middle of a bucket."""
        start: datetime = row["time"]
        return self.across(start + (min(start + self.length, self.until) - start) / 2)

    def ticks(self, bottom: float) -> Iterator[str]:
        """Yield some times below the chart: days, or hours where there are few days."""
        span = self.until - self.since
        step = next((each for each in STEPS if span / each <= 5), STEPS[-1])
        start = self.since.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = start + step * -(-(self.since - start) // step)
        while begin < self.until:
            x = self.across(begin)
            yield element("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis")
            if LEFT + 6 <= x <= WIDTH - RIGHT - 12 or begin == self.since:
                text = f"{begin:%H:%M}" if span <= 2 * DAY else f"{begin:%b} {begin.day}"
                text = f"{begin:%Y}" if span > 900 * DAY else text
                yield label(text, x, bottom + 17, class_="muted small", text_anchor="middle")
            begin += step


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
    first_mark = TOP + tall
    top = first_mark + 11 * min(len(axis.shown_marks), MARK_ROWS)
    plot = SeriesPlot(signal, by_slice, axis, top)
    parts = [key, *plot.frame(), *plot.alarms(alarms), *axis.ticks(top + HIGH), *plot.lines()]
    parts += [*plot.marks(first_mark), *plot.hits()]
    table = [[time_text(row["time"]), amount(row["value"], signal.unit)] for row in plot.shown]
    svg = drawing(WIDTH, top + HIGH + 24, plot.says, parts, linked=axis.link is not None)
    grid = Grid("", ["time (UTC)", "value"], table)
    return Chart(f"signal {signal.name}", signal.name, plot.says, svg, grid)


def sparkline(signal: Signal, rows: Sequence[Row], axis: TimeAxis) -> str:
    """Draw a signal as a small line, with its last value as a dot and the marks behind it."""
    known = [row for row in rows if row["value"] is not None and isfinite(row["value"])]
    values = [row["value"] for row in known] or [0.0]
    low, high = min([0.0, *values] if signal.bounds[0] == 0 else values), max(values)
    up = linear((low, high if high > low else low + 1.0), (SMALL_HIGH - 4.0, 4.0))
    whole = max((axis.until - axis.since) / SECOND, 1.0)
    across = linear((0.0, whole), (4.0, SMALL_WIDTH - 4.0))
    points = [(across((row["time"] - axis.since) / SECOND), up(row["value"])) for row in known]
    parts = [
        element("line", x1=x, x2=x, y1=0.0, y2=SMALL_HIGH, class_="release")
        for x in (across((mark.time - axis.since) / SECOND) for mark in axis.shown_marks)
    ]
    parts.append(line(points, f"plot thread {color(0)}"))
    parts += [marker(0, *points[-1], 2.6)] if points else []
    first, last = (amount(values[at], signal.unit) for at in (0, -1))
    return drawing(
        SMALL_WIDTH, SMALL_HIGH, f"{signal.name}: {first} at first, {last} at last", parts
    )


@dataclass(frozen=True)
class SeriesPlot:
    """The parts of one chart."""

    signal: Signal
    by_slice: dict[str, list[Row]]
    axis: TimeAxis
    top: float

    @cached_property
    def shown(self) -> list[Row]:
        """The rows of all slices."""
        return [row for each in self.by_slice.values() for row in each]

    @cached_property
    def domain(self) -> tuple[float, float]:
        """What the axis reaches from and to: from 0 on, unless there is something below."""
        values = [row["value"] for row in self.shown] or [0.0]
        lows, highs = (
            sorted(row[side] for row in self.shown if row[side] is not None)
            for side in ("low", "high")
        )
        # intervals of few calls may be wide: they are cut, so that the rest can be seen
        high = max([*values, *highs[: 1 + len(highs) * 4 // 5]])
        if self.signal.bounds[0] == 0:
            most = self.signal.bounds[1]
            high = max(high, SMALLEST_TOP if most == 1 else 0.0) or 1.0
            return 0.0, min(high * 1.06, most)
        low = min([0.0, *values, *lows[len(lows) // 5 :]])
        room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
        return low - room if low < 0 else 0.0, high + room

    @cached_property
    def up(self) -> Callable[[float], float]:
        """The function from values to places from the bottom to the top."""
        return linear(self.domain, (self.top + HIGH, self.top))

    def frame(self) -> Iterator[str]:
        """Yield lines at round values, with these in few letters: 0.25, 12.5k."""
        for tick in ticks(*self.domain):
            y, text = self.up(tick), f"{tick / 1000:g}k" if abs(tick) >= 10_000 else f"{tick:g}"
            text = f"{100 * tick:g}%" if self.signal.unit == "share" else text
            yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
            yield label(text, LEFT - 6, y + 4, class_="muted small", text_anchor="end")

    def lines(self) -> Iterator[str]:
        """Yield the values of each slice; where nothing was asked, nothing is drawn."""
        for at, rows in enumerate(self.by_slice.values()):
            runs: list[list[Row]] = []
            for row in rows:
                if not runs or row["time"] - runs[-1][-1]["time"] > self.axis.length:
                    runs.append([])
                runs[-1].append(row)
            if at < DRAWN_BANDS:
                yield from (self.band(run, at) for run in runs)
            for run in runs:
                points = [(self.axis.middle(row), self.up(row["value"])) for row in run]
                yield line(points, f"plot {color(at)}")
                size = 1.6 if len(rows) > 40 and len(run) > 1 else 2.6
                yield from (marker(at, x, y, size) for x, y in points)

    def band(self, run: Sequence[Row], at: int) -> str:
        """Return the intervals of rows that follow each other."""
        known = [row for row in run if row["low"] is not None or row["high"] is not None]
        if not known:
            return ""
        lowest, highest = self.domain

        def place(row: Row, side: str, end: float) -> tuple[float, float]:
            value = end if row[side] is None else min(max(row[side], lowest), highest)
            return self.axis.middle(row), self.up(value)

        above = [place(row, "high", highest) for row in known]
        below = [place(row, "low", lowest) for row in reversed(known)]
        if len(known) == 1:
            (x, top), (_, bottom) = above[0], below[0]
            return element("line", x1=x, x2=x, y1=top, y2=bottom, class_=f"thin {color(at)}")
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*above, *below))
        return element("polygon", points=points, class_=f"band {color(at)}")

    def marks(self, first: float) -> Iterator[str]:
        """Yield the marks, with their names in some rows above the chart."""
        for at, mark in enumerate(self.axis.shown_marks):
            x, y = self.axis.across(mark.time), first + 11 * (at % MARK_ROWS)
            yield element("line", x1=x, x2=x, y1=y - 6, y2=self.top + HIGH, class_="release")
            side = {"x": x - 4, "text_anchor": "end"} if x > WIDTH * 0.6 else {"x": x + 4}
            yield label(mark.name, y=y + 2, most=MARK_LETTERS, class_="small release-name", **side)

    def alarms(self, alarms: Sequence[KnownAlarm]) -> Iterator[str]:
        """Shade the times of alarms; those of several slices as one."""
        since, until = self.axis.since, self.axis.until
        ends = ((each.since, each.resolved or until) for each in alarms)
        reached = since
        for start, last in sorted((max(start, since), min(end, until)) for start, end in ends):
            first, reached = max(start, reached), max(reached, last)
            if first < last:
                x = self.axis.across(first)
                wide = max(self.axis.across(last) - x, 2.0)
                yield element("rect", class_="alarmed", x=x, y=self.top, width=wide, height=HIGH)

    def hits(self) -> Iterator[str]:
        """Yield what the mouse or a finger meets: a bucket from top to bottom.

        The keyboard has the same links in the table below each chart.
        """
        times: dict[datetime, list[str]] = {}
        for name, rows in self.by_slice.items():
            for row in rows:
                inside = amounts(row["low"], row["high"], self.signal.unit)
                inside = "" if inside == "–" else f" ({inside})"
                of = counted(row["n"], "call", "calls")
                text = f"{amount(row['value'], self.signal.unit)}{inside}, {of}"
                times.setdefault(row["time"], []).append(f"{name}: {text}" if name else text)
        for time, lines in times.items():
            x = self.axis.across(max(time, self.axis.since))
            end = min(time + self.axis.length, self.axis.until)
            wide = max(self.axis.across(end) - x, 2.0)
            hint = title("\n".join([f"{self.signal.name} · {time_text(time)}", *lines]))
            rect = element("rect", x=x, y=self.top, width=wide, height=HIGH, class_="hit")
            if self.axis.link is None:
                yield element("g", rect + hint)
                continue
            yield element("a", rect + hint, href=self.axis.link(self.signal, time), tabindex="-1")

    @cached_property
    def says(self) -> str:
        """What the chart shows, in a sentence."""
        parts = []
        for name, rows in self.by_slice.items():
            unit = self.signal.unit
            if values := [amount(row["value"], unit) for row in rows]:
                lowest, highest = (
                    amount(f(row["value"] for row in rows), unit) for f in (min, max)
                )
                text = f"{values[0]} at first, {values[-1]} at last, {lowest} to {highest}"
                parts.append(f"{name}: {text}" if name else text)
        when = f"from {time_text(self.axis.since)} to {time_text(self.axis.until)}"
        found = f"{self.signal.name} {when}: " + ("; ".join(parts) or "no values")
        marks = (f"{mark.name} at {time_text(mark.time)}" for mark in self.axis.shown_marks)
        return "; marks: ".join(filter(None, [found, ", ".join(marks)]))
