"""How the queries are spread over the values of a measure: a histogram per system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.spelling import counted
from findwell.show.charts import Chart, register_chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import decimals, interval, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import Floats, Ints
    from findwell.measures import Measure
    from findwell.show.charts.svg import Scale
    from findwell.show.panel import Panel

BINS = 20
WIDTH, ROW, TOP, SIDE, FOOT = 340.0, 72.0, 30.0, 12.0, 22.0
AXIS = 30.0  # for the counts
HIGH = 40.0  # of the highest bar


@register_chart("distribution", section="distributions")
def distributions(panel: Panel) -> Iterator[Chart | str]:
    """Draw how the queries are spread over the values of the main measure."""
    measure = panel.measures[panel.lead]
    if not np.isnan(panel.pairing.table[:, panel.lead]).all():
        about = panel.caption(measure, level=panel.level)
        yield distribution(panel, panel.lead).with_about(about)


def distribution(panel: Panel, at: int) -> Chart:
    """Draw the values of one measure, the mean and its interval, for the first systems."""
    measure, shown = panel.measures[at], panel.names[: svg.SYSTEMS]
    values = [panel.pairing.table[system, at] for system in range(len(shown))]
    known = [each[~np.isnan(each)] for each in values]
    low, high = _domain(measure, known)
    edges = np.linspace(low, high, BINS + 1)
    place = svg.linear((low, high), (SIDE + AXIS, WIDTH - SIDE))
    counts = [np.histogram(each, edges)[0] for each in known]
    most = max([1, *(int(each.max(initial=0)) for each in counts)])
    height = TOP + ROW * len(shown) + FOOT
    parts = [svg.label(str(measure), SIDE, 16, most=40, class_="strong")]
    names = svg.distinct(shown, 25)
    for system, each in enumerate(counts):
        base = TOP + ROW * (system + 1) - 10
        parts += _counts(most, base)
        parts += _bars(each, edges, system, place, base=base, most=most)
        parts += _mean(panel, system, at, place, base=base, name=names[system])
    foot = height - FOOT
    parts += (svg.centered(f"{tick:g}", place(tick), foot + 14) for tick in svg.ticks(low, high))
    says = f"{measure}, how many queries have which value: " + "; ".join(
        _sentence(name, each) for name, each in zip(shown, known, strict=True)
    )
    return Chart(
        f"distribution {measure}",
        str(measure),
        says,
        svg.drawing(WIDTH, height, says, parts),
        _table(shown, known),
    )


def _domain(measure: Measure, values: list[Floats]) -> tuple[float, float]:
    every = np.concatenate([*values, np.zeros(0)])
    if measure.unit_interval or not len(every):
        return 0.0, 1.0
    low, high = min(0.0, float(every.min())), float(every.max())
    return low, high if high > low else low + 1.0


def _counts(most: int, base: float) -> list[str]:
    """Draw the axis: how many queries a bar of full height is, the same for all systems."""
    parts = []
    for count in (0, most):
        y = base - HIGH * count / most
        ends = {"x1": SIDE + AXIS, "x2": WIDTH - SIDE}
        parts.append(svg.element("line", y1=y, y2=y, class_="grid" if count else "axis", **ends))
        parts.append(
            svg.label(f"{count:,}", SIDE + AXIS - 5, y + 4, class_="muted small", text_anchor="end")
        )
    return parts


def _bars(
    counts: Ints, edges: Floats, system: int, place: Scale, *, base: float, most: int
) -> list[str]:
    parts = []
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if not count:
            continue
        tall = max(HIGH * count / most, 1.5)
        x = place(left) + 0.5
        hint = svg.title(f"{counted(count)} from {left:.2f} to {right:.2f}")
        shape = {"x": x, "y": base - tall, "width": place(right) - x - 0.5, "height": tall}
        parts.append(svg.element("rect", hint, class_=f"{svg.color(system)} bar", **shape))
    return parts


def _mean(panel: Panel, system: int, at: int, place: Scale, *, base: float, name: str) -> list[str]:
    row = panel.summary[panel.names[system], str(panel.measures[at])]
    y = base - HIGH - 11
    parts = [svg.label(name, SIDE, y, class_="small")]
    if row["value"] is None:
        return [
            *parts,
            svg.label("no value", WIDTH - SIDE, y, text_anchor="end", class_="muted small"),
        ]
    value = row["value"]
    written = number(value, decimals(row["low"], row["high"]))
    if row["low"] is not None:
        written += f"  ({interval(row['low'], row['high'])})"
        x = place(row["low"])
        wide = max(place(row["high"]) - x, 1)
        band = f"{svg.color(system)} band"
        parts.append(svg.element("rect", x=x, y=base - HIGH, width=wide, height=HIGH, class_=band))
    x = place(value)
    parts.append(
        svg.element("line", x1=x, x2=x, y1=base - HIGH, y2=base, class_=f"plot {svg.color(system)}")
    )
    return [*parts, svg.label(written, WIDTH - SIDE, y, text_anchor="end", class_="small")]


def _sentence(name: str, values: Floats) -> str:
    if not len(values):
        return f"{name} has no value"
    zero, one = float((values == 0).mean()), float((values == 1).mean())
    return (
        f"{name} ({counted(len(values))}) mean {values.mean():.3f}, "
        f"median {np.median(values):.3f}, "
        f"{zero:.0%} of queries at 0, {one:.0%} at 1"
    )


def _table(names: list[str], values: list[Floats]) -> Grid:
    header = ["system", "queries", "at 0", "25%", "median", "75%", "at 1"]
    rows = []
    for name, each in zip(names, values, strict=True):
        if not len(each):
            rows.append([name, "0", *["–"] * 5])
            continue
        quarters = [number(float(value), 3) for value in np.percentile(each, (25, 50, 75))]
        zero, one = (f"{float((each == limit).mean()):.1%}" for limit in (0, 1))
        rows.append([name, str(len(each)), zero, *quarters, one])
    return Grid("", header, rows)
