"""How far settings along one axis are behind the best, with the chosen and the current one."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING

from findwell.show.charts import Chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import limits, number, signed, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.loop.tuning.tuning import TuningCurve, TuningPoint
    from findwell.show.charts.svg import Scale

WIDTH, NARROW, HIGH, LEFT, RIGHT, TOP = 620.0, 340.0, 240.0, 52.0, 20.0, 34.0
COLUMNS, ROWS = 64, 11  # of the chart in a terminal, without its margin
MARGIN = 15  # letters next to it: numbers before, half a number behind
BAND, CURVE, CHOSEN, CURRENT = "░", "•", "◆", "○"
TICKS = 6  # of the differences, about
LEGEND_ROW = 20.0
AIR = 0.04  # share of the values that is left blank above and below


def tuning_chart(
    found: TuningCurve, measure: str, level: float, queries: str, width: float = WIDTH
) -> Chart:
    """Draw how far the settings along an axis are behind the best one."""
    low, high = _range(found.points)
    key, tall = _legend(found, level, queries, width)
    top = TOP + tall
    up = svg.linear((low, high), (top + HIGH, top))
    across = _across(found, LEFT, width - RIGHT)
    heading = title_of(found, measure)
    letters = int((width - LEFT) / svg.LETTER)
    parts = [svg.label(heading, 0, 16, most=letters + 8, class_="strong"), key]
    for tick in svg.ticks(low, high, TICKS):
        y = up(tick)
        paint = "axis" if tick == 0 else "grid"
        parts.append(svg.element("line", x1=LEFT, x2=width - RIGHT, y1=y, y2=y, class_=paint))
        parts.append(svg.label(_tick(tick), LEFT - 8, y + 4, class_="muted", text_anchor="end"))
    parts += [svg.centered(f"{at:g}", across(at), top + HIGH + 30) for at in _ticks(found, across)]
    known = [
        (across(point.at), up(point.behind.low), up(point.behind.high))
        if point.behind.low is not None and point.behind.high is not None
        else (across(point.at), up(_height(point)), up(_height(point)))
        for point in found.points
    ]
    edge = [(x, high) for x, _, high in known] + [(x, low) for x, low, _ in reversed(known)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
    parts.append(svg.element("polygon", points=path, class_=f"band {svg.color(0)}"))
    for begin, end in stretches([point.in_plateau for point in found.points]):
        left, right = across(found.points[begin].at), across(found.points[end].at)
        bar = {"x": left, "y": top + HIGH + 6, "width": max(right - left, 3.0), "height": 5}
        parts.append(svg.element("rect", class_=f"bar {svg.color(0)}", **bar))
    curve = [(across(each.at), up(_height(each))) for each in found.points]
    parts.append(svg.line(curve, f"plot {svg.color(0)}"))
    marked = [("chosen", found.chosen, 3, svg.color(1))]
    if found.current is not None:
        marked.append(("current", found.current, 0, f"hollow {svg.color(5)}"))
    for name, at, shape, paint in marked:
        point = nearest_point(found, at)
        value = number(point.value.value, 3)
        hint = svg.title(f"{name}: {found.axis} {at:g}, {measure} {value}")
        dot = svg.marker(shape, across(at), up(_height(point)), 6.0, class_=paint)
        parts.append(svg.element("g", dot + hint))
    parts.append(svg.centered(found.axis, (LEFT + width - RIGHT) / 2, top + HIGH + 50))
    first, last = found.points[0], found.points[-1]
    says = (
        f"{heading}: {signed(_height(first), 3)} at {first.at:g}, {signed(_height(last), 3)} at "
        f"{last.at:g}; chosen {found.chosen:g}; {plateau_in_words(found, queries)}"
    )
    if found.current is not None:
        says += f"; current {found.current:g}"
    columns = {
        found.axis: lambda each: f"{each.at:g}",
        measure: lambda each: number(each.value.value, 3),
        "to the best": lambda each: signed(_height(each), 3),
        f"{level:.0%} interval": lambda each: limits(each.behind.low, each.behind.high),
        "as good as the best?": lambda each: "perhaps" if each.in_plateau else "no",
    }
    drawn = svg.drawing(width, top + HIGH + 58, says, parts)
    table = Grid.of("", columns, found.points, left=1)
    return Chart(f"tuning {found.axis}", heading, says, drawn, table)


def title_of(found: TuningCurve, measure: str) -> str:
    """Say what a chart shows."""
    return f"{measure} against the best, by {found.axis}"


def plateau_in_words(found: TuningCurve, queries: str) -> str:
    """Say which settings could be the best."""
    begin, end = found.plateau
    if begin == end:
        return f"with {queries}, every other setting is worse than {found.axis} {begin:g}"
    gaps = ", with gaps," if found.gaps else ""
    return (
        f"{found.axis} {begin:g} to {end:g}{gaps} cannot be distinguished from the best "
        f"setting with {queries}"
    )


def _tick(difference: float) -> str:
    """Write a number of the axis of differences; 0 is the best setting."""
    return f"{difference:+g}".replace("-", "−") if difference else "best"


def _height(point: TuningPoint) -> float:
    return point.behind.value or 0.0


def nearest_point(found: TuningCurve, at: float) -> TuningPoint:
    """Return the point of a curve nearest to a place of its axis."""
    return min(found.points, key=lambda point: abs(point.at - at))


def _legend(found: TuningCurve, level: float, queries: str, width: float) -> tuple[str, float]:
    """Return what the marks mean, in rows as wide as the chart, and how high they are."""
    blue = svg.color(0)
    entries = [
        (svg.marker(3, 0, -4, 5.0, class_=svg.color(1)), "chosen"),
        (
            svg.element("rect", x=-6, y=-11, width=12, height=11, class_=f"band {blue}"),
            f"{level:.0%} interval",
        ),
        (
            svg.element("rect", x=-6, y=-8, width=12, height=4, class_=f"bar {blue}"),
            f"cannot be ruled out with {queries}",
        ),
    ]
    if found.current is not None:
        dot = svg.marker(0, 0, -4, 5.0, class_=f"hollow {svg.color(5)}")
        entries.insert(1, (dot, "current"))
    parts, x, row = [], 6.0, 0
    for mark, name in entries:
        size = 34 + svg.LETTER * len(name)
        if x > 6 and x + size > width:
            x, row = 6.0, row + 1
        place = f"translate({x:.0f},{TOP + 6 + LEGEND_ROW * row:.0f})"
        parts.append(svg.element("g", mark + svg.label(name, 12, 0), transform=place))
        x += size
    return "".join(parts), LEGEND_ROW * (row + 1)


def stretches(marks: Sequence[bool]) -> list[tuple[int, int]]:
    """Return where marked places begin and end.

    >>> stretches([True, True, False, True])
    [(0, 1), (3, 3)]
    """
    found: list[tuple[int, int]] = []
    for place, mark in enumerate(marks):
        if mark and found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        elif mark:
            found.append((place, place))
    return found


def _range(points: Sequence[TuningPoint]) -> tuple[float, float]:
    """Return what the axis covers: all of the curve and its band, and 0, which is the best."""
    values = [
        value
        for each in points
        for value in (0.0, _height(each), each.behind.low, each.behind.high)
        if value is not None
    ]
    low, high = min(values), max(values)
    margin = (high - low) * AIR or 0.05
    return low - margin, high + margin


def _across(found: TuningCurve, left: float, right: float) -> Scale:
    """Return the way from the axis to places: of shares by size, of constants by their logarithm.

    A constant of 0 has none: then they stand side by side.
    """
    order = [point.at for point in found.points]
    if found.even:
        return svg.linear((0.0, 1.0), (left, right))
    if order[0] > 0:
        by_logarithm = svg.linear((log10(order[0]), log10(order[-1])), (left, right))
        return lambda at: by_logarithm(log10(min(max(at, order[0]), order[-1])))
    by_number = svg.linear((0.0, max(len(order) - 1.0, 1.0)), (left, right))

    def place(at: float) -> float:
        below = max((number for number, each in enumerate(order) if each <= at), default=0)
        return by_number(float(below))

    return place


def _ticks(found: TuningCurve, across: Scale) -> list[float]:
    """Return the numbers below the axis; those that would touch the one before are left out."""
    kept: list[float] = []
    for at in svg.ticks(0, 1) if found.even else [point.at for point in found.points]:
        wide = svg.LETTER * (len(f"{at:g}") + 2)
        if not kept or across(at) - across(kept[-1]) > wide:
            kept.append(at)
    return kept


def terminal_chart(
    found: TuningCurve, measure: str, level: float, queries: str, width: int = 80
) -> str:
    """Draw how far settings are behind the best one with letters, no wider than a terminal.

    The band is the interval, `◆` the chosen setting, `○` the current one; the line below marks the
    plateau.
    """
    columns = max(min(COLUMNS, width - MARGIN), 10)
    low, high = _range(found.points)
    across = _across(found, 0.0, columns - 1.0)
    up = svg.linear((low, high), (ROWS - 1.0, 0.0))
    field = [[" "] * columns for _ in range(ROWS)]
    below = [" "] * columns

    def row(value: float) -> int:
        return round(up(value))

    for column, point in _by_column(found, across, columns):
        bottom, top = point.behind.low, point.behind.high
        if bottom is not None and top is not None:
            first = row(top) if point.in_plateau else max(row(top), row(0.0) + 1)
            for at in range(first, row(bottom) + 1):
                field[at][column] = BAND
        if point.in_plateau:
            below[column] = "═"
    for column, point in _by_column(found, across, columns):
        field[row(_height(point))][column] = CURVE
    for mark, place in ((CURRENT, found.current), (CHOSEN, found.chosen)):
        if place is not None:
            field[row(_height(nearest_point(found, place)))][round(across(place))] = mark
    ticks = {row(each): _tick(each) for each in svg.ticks(low, high)}
    lines = wrap(title_of(found, measure), width).splitlines()
    for at, cells in enumerate(field):
        lines.append(f"{ticks.get(at, ''):>7} │{''.join(cells).rstrip()}")
    lines.append(" " * 8 + "└" + "─" * columns)
    lines.append(" " * 9 + "".join(below).rstrip())
    lines.append(" " * 9 + _axis(found, across, columns))
    key = f"{CHOSEN} chosen   " + (f"{CURRENT} current   " if found.current is not None else "")
    key = f"{' ' * 9}{key}{BAND} {level:.0%} interval"
    lines += [key, *wrap(f"{' ' * 9}═ cannot be ruled out with {queries}", width).splitlines()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _by_column(found: TuningCurve, across: Scale, columns: int) -> list[tuple[int, TuningPoint]]:
    """Return the point of each column: between points of shares, the nearest one."""
    if not found.even:
        return [(round(across(point.at)), point) for point in found.points]
    every = range(columns)
    return [(column, nearest_point(found, column / (columns - 1))) for column in every]


def _axis(found: TuningCurve, across: Scale, columns: int) -> str:
    """Write the labels of the axis where they belong."""
    cells = [" "] * (columns + 6)
    last = -2
    for at in (0.0, 0.25, 0.5, 0.75, 1.0) if found.even else [each.at for each in found.points]:
        text = f"{at:g}"
        begin = max(round(across(at)) - len(text) // 2, 0)
        if begin > last + 1:
            cells[begin : begin + len(text)] = text
            last = begin + len(text) - 1
    return "".join(cells)
