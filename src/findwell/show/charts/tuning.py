"""Values of settings along one axis, with the plateau, the chosen setting and the current one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.show.charts import Chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import interval, number, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.loop.tuning.tuning import TuningCurve, TuningPoint
    from findwell.show.charts.svg import Scale

WIDTH, HIGH, LEFT, RIGHT, TOP = 620.0, 240.0, 52.0, 20.0, 66.0
COLUMNS, ROWS = 64, 11  # of the chart in a terminal, without its margin
MARGIN = 15  # letters next to it: numbers before, half a number behind
BAND, CURVE, CHOSEN, CURRENT = "░", "•", "◆", "○"


def tuning_chart(found: TuningCurve, measure: str, level: float) -> Chart:
    """Draw the values along an axis."""
    low, high = _range(found.points)
    up = svg.linear((low, high), (TOP + HIGH, TOP))
    across = _across(found, LEFT, WIDTH - RIGHT)
    heading = f"{measure} by {found.axis}"
    parts = [svg.label(heading, LEFT, 18, most=70, class_="strong"), _legend(found, level)]
    for tick in svg.ticks(low, high):
        y = up(tick)
        parts.append(svg.element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(svg.label(f"{tick:g}", LEFT - 8, y + 4, class_="muted", text_anchor="end"))
    below = svg.ticks(0, 1) if found.even else [point.at for point in found.points]
    parts += [svg.centered(f"{at:g}", across(at), TOP + HIGH + 30) for at in below]
    known = [
        (across(point.at), up(point.value.low), up(point.value.high))
        for point in found.points
        if point.value.low is not None and point.value.high is not None
    ]
    edge = [(x, high) for x, _, high in known] + [(x, low) for x, low, _ in reversed(known)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
    parts.append(svg.element("polygon", points=path, class_=f"band {svg.color(0)}"))
    parts += _plateau(found, across)
    parts.append(
        svg.line(
            [(across(each.at), up(_height(each))) for each in found.points], f"plot {svg.color(0)}"
        )
    )
    marked = [(CHOSEN, "chosen", found.chosen, 3, svg.color(1))]
    if found.current is not None:
        marked.append((CURRENT, "current", found.current, 0, f"hollow {svg.color(2)}"))
    for _, name, at, shape, paint in marked:
        point = nearest_point(found, at)
        hint = svg.title(f"{name}: {found.axis} {at:g}, {measure} {number(_height(point))}")
        dot = svg.marker(shape, across(at), up(_height(point)), 6.0, class_=paint)
        parts.append(svg.element("g", dot + hint))
    parts.append(svg.centered(found.axis, (LEFT + WIDTH - RIGHT) / 2, TOP + HIGH + 50))
    begin, end = found.plateau
    first, last = found.points[0], found.points[-1]
    says = (
        f"{measure} by {found.axis}, from {number(_height(first))} at {first.at:g} to "
        f"{number(_height(last))} at {last.at:g}; "
        f"chosen {found.chosen:g}; settings that cannot be ruled out as the best: {begin:g} to "
        f"{end:g}"
    )
    if found.current is not None:
        says += f", current {found.current:g}"
    rows = [
        [
            f"{each.at:g}",
            number(_height(each)),
            interval(each.value.low, each.value.high),
            "yes" if each.in_plateau else "",
        ]
        for each in found.points
    ]
    table = Grid(
        "", [found.axis, measure, f"{level:.0%} interval", "cannot be ruled out"], rows, left=1
    )
    drawn = svg.drawing(WIDTH, TOP + HIGH + 58, says, parts)
    return Chart(f"tuning {found.axis}", heading, says, drawn, table)


def _height(point: TuningPoint) -> float:
    return point.value.value or 0.0


def nearest_point(found: TuningCurve, at: float) -> TuningPoint:
    """Return the point of a curve nearest to a place of its axis."""
    return min(found.points, key=lambda point: abs(point.at - at))


def _legend(found: TuningCurve, level: float) -> str:
    entries = [
        (svg.marker(3, 0, -4, 5.0, class_=svg.color(1)), "chosen"),
        (
            svg.element("rect", x=-6, y=-8, width=12, height=4, class_=f"bar {svg.color(1)}"),
            "cannot be ruled out",
        ),
        (
            svg.element("rect", x=-6, y=-11, width=12, height=11, class_=f"band {svg.color(0)}"),
            f"{level:.0%} interval",
        ),
    ]
    if found.current is not None:
        dot = svg.marker(0, 0, -4, 5.0, class_=f"hollow {svg.color(2)}")
        entries.insert(1, (dot, "current"))
    parts, x = [], LEFT + 6
    for mark, name in entries:
        moved = svg.element("g", mark + svg.label(name, 12, 0), transform=f"translate({x:.0f},44)")
        parts.append(moved)
        x += 44 + 6.4 * len(name)
    return "".join(parts)


def _plateau(found: TuningCurve, across: Scale) -> list[str]:
    """Draw the stretches of settings that cannot be ruled out as the best."""
    bars, y = [], TOP + HIGH + 6
    for begin, end in stretches([point.in_plateau for point in found.points]):
        left, right = across(found.points[begin].at), across(found.points[end].at)
        width = max(right - left, 3.0)
        bars.append(
            svg.element("rect", x=left, y=y, width=width, height=5, class_=f"bar {svg.color(1)}")
        )
    return bars


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
    """Return what the axis of values covers: all of the curve and its band."""
    values = [
        value for each in points for value in (_height(each), each.value.low, each.value.high)
    ]
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    margin = (high - low) * 0.04 or 0.05
    return low - margin, high + margin


def _across(found: TuningCurve, left: float, right: float) -> Scale:
    """Return the way from the axis to places: shares by size, constants side by side."""
    if found.even:
        return svg.linear((0.0, 1.0), (left, right))
    order = [point.at for point in found.points]
    by_number = svg.linear((0.0, max(len(order) - 1.0, 1.0)), (left, right))

    def place(at: float) -> float:
        below = max((number for number, each in enumerate(order) if each <= at), default=0)
        return by_number(float(below))

    return place


def terminal_chart(found: TuningCurve, measure: str, level: float, width: int = 80) -> str:
    """Draw the values along an axis with letters, no wider than a terminal.

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
        bottom, top = point.value.low, point.value.high
        if bottom is not None and top is not None:
            for at in range(row(top), row(bottom) + 1):
                field[at][column] = BAND
        if point.in_plateau:
            below[column] = "═"
    for column, point in _by_column(found, across, columns):
        field[row(_height(point))][column] = CURVE
    for mark, place in ((CURRENT, found.current), (CHOSEN, found.chosen)):
        if place is not None:
            field[row(_height(nearest_point(found, place)))][round(across(place))] = mark
    lines = [f"{measure} by {found.axis}"]
    for at, cells in enumerate(field):
        value = svg.linear((0.0, ROWS - 1.0), (high, low))(at)
        tick = f"{value:7.3f}" if at % 5 == 0 else " " * 7
        lines.append(f"{tick} │{''.join(cells).rstrip()}")
    lines.append(" " * 8 + "└" + "─" * columns)
    lines.append(" " * 9 + "".join(below).rstrip())
    lines.append(" " * 9 + _axis(found, across, columns))
    key = f"{CHOSEN} chosen   " + (f"{CURRENT} current   " if found.current is not None else "")
    key = f"{' ' * 9}{key}{BAND} {level:.0%} interval   ═ cannot be ruled out"
    lines += wrap(key, width).splitlines()
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
