"""How the queries are spread over the values of a measure: a histogram per system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.reports.charts import Chart
from karat.reports.charts.svg import (
    SYSTEMS,
    centered,
    color,
    drawing,
    element,
    label,
    linear,
    ticks,
    title,
)
from karat.reports.tables import Grid, number

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.measures import Measure
    from karat.reports.charts.svg import Scale
    from karat.reports.panel import Panel

BINS = 20
WIDTH, ROW, TOP, SIDE, FOOT = 340.0, 66.0, 30.0, 12.0, 22.0
HIGH = 40.0  # of the highest bar


def distribution(panel: Panel, at: int) -> Chart:
    """Draw the values of one measure, the mean and its interval, for the first systems."""
    measure, shown = panel.measures[at], panel.names[:SYSTEMS]
    values = [panel.pairing.values[:, system, at] for system in range(len(shown))]
    known = [each[~np.isnan(each)] for each in values]
    low, high = _domain(measure, known)
    edges = np.linspace(low, high, BINS + 1)
    place = linear((low, high), (SIDE, WIDTH - SIDE))
    height = TOP + ROW * len(shown) + FOOT
    parts = [label(str(measure), SIDE, 16, most=40, class_="strong")]
    for system, each in enumerate(known):
        base = TOP + ROW * (system + 1) - 10
        parts += _bars(each, edges, system, place, base)
        parts += _mean(panel, system, at, place, base)
    foot = height - FOOT
    parts += (centered(f"{tick:g}", place(tick), foot + 14) for tick in ticks(low, high))
    says = f"{measure}, how many queries have which value: " + "; ".join(
        _sentence(name, each) for name, each in zip(shown, known, strict=True)
    )
    return Chart(
        f"distribution {measure}",
        str(measure),
        says,
        drawing(WIDTH, height, says, parts),
        _table(shown, known),
    )


def _domain(measure: Measure, values: list[Floats]) -> tuple[float, float]:
    every = np.concatenate([*values, np.zeros(0)])
    if measure.unit_interval or not len(every):
        return 0.0, 1.0
    low, high = min(0.0, float(every.min())), float(every.max())
    return low, high if high > low else low + 1.0


def _bars(values: Floats, edges: Floats, system: int, place: Scale, base: float) -> list[str]:
    counts, _ = np.histogram(values, edges)
    top = max(int(counts.max(initial=0)), 1)
    parts = [
        element("line", x1=place(edges[0]), x2=place(edges[-1]), y1=base, y2=base, class_="axis")
    ]
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if not count:
            continue
        tall = max(HIGH * count / top, 1.5)
        x = place(left) + 0.5
        hint = title(f"{count} queries from {left:.2f} to {right:.2f}")
        shape = {"x": x, "y": base - tall, "width": place(right) - x - 0.5, "height": tall}
        parts.append(element("rect", hint, class_=f"{color(system)} bar", **shape))
    return parts


def _mean(panel: Panel, system: int, at: int, place: Scale, base: float) -> list[str]:
    name, measure = panel.names[system], str(panel.measures[at])
    row = panel.summary[name, measure]
    y = base - HIGH - 6
    parts = [label(name, SIDE, y, most=25, class_="small")]
    if row["value"] is None:
        return [*parts, label("no value", WIDTH - SIDE, y, text_anchor="end", class_="muted small")]
    value = row["value"]
    written = number(value)
    if row["low"] is not None:
        written += f"  ({number(row['low'])} … {number(row['high'])})"
        x = place(row["low"])
        wide = max(place(row["high"]) - x, 1)
        band = f"{color(system)} band"
        parts.append(element("rect", x=x, y=base - HIGH, width=wide, height=HIGH, class_=band))
    x = place(value)
    parts.append(
        element("line", x1=x, x2=x, y1=base - HIGH, y2=base, class_=f"plot {color(system)}")
    )
    return [*parts, label(written, WIDTH - SIDE, y, text_anchor="end", class_="small")]


def _sentence(name: str, values: Floats) -> str:
    if not len(values):
        return f"{name} has no value"
    zero, one = float((values == 0).mean()), float((values == 1).mean())
    return (
        f"{name} mean {values.mean():.3f}, median {np.median(values):.3f}, "
        f"{zero:.0%} of queries at 0, {one:.0%} at 1"
    )


def _table(names: list[str], values: list[Floats]) -> Grid:
    header = ["system", "queries", "at 0", "25 %", "median", "75 %", "at 1"]
    rows = []
    for name, each in zip(names, values, strict=True):
        if not len(each):
            rows.append([name, "0", *["–"] * 5])
            continue
        quarters = [number(float(value)) for value in np.percentile(each, (25, 50, 75))]
        zero, one = (f"{float((each == limit).mean()):.1%}" for limit in (0, 1))
        rows.append([name, str(len(each)), zero, *quarters, one])
    return Grid("", header, rows)
