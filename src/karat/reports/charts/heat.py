"""Slices of the queries as a heat map: where a system is weak."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.reports.charts import Chart
from karat.reports.charts.svg import HEAT, SYSTEMS, centered, drawing, element, label, title
from karat.reports.tables import Grid, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.reports.panel import Panel

CELL, ROW, SIDE, TOP = 66.0, 30.0, 190.0, 62.0
COLUMNS = 14  # cells in a row at most


def heat(panel: Panel, column: str) -> Chart:
    """Draw the mean of each measure in each slice of a column, by system."""
    names = panel.names[:SYSTEMS]
    measures = range(min(len(panel.measures), max(COLUMNS // len(names), 1)))
    labels = panel.labels(column)
    rows: list[tuple[str, str, list[float | None]]] = []  # slice, queries, means
    for value in panel.facets[column]:
        inside = (labels == value).to_numpy()
        mine = panel.pairing.values[inside]
        means = [_mean(mine[:, s, m]) for m in measures for s in range(len(names))]
        rows.append((value, str(int(inside.sum())), means))
    parts = [label(f"by {column}", 12, 18, most=24, class_="strong")]
    parts += _heads([str(panel.measures[m]) for m in measures], names)
    for at, (value, count, means) in enumerate(rows):
        y = TOP + ROW * at
        parts.append(label(value, 12, y + 19, most=20))
        parts.append(label(count, SIDE - 8, y + 19, class_="muted", text_anchor="end"))
        parts += (_cell(each, SIDE + CELL * x, y) for x, each in enumerate(means))
    says = f"Means by {column}: " + "; ".join(
        f"{value} ({count} queries) {', '.join(map(number, means[: len(names)]))}"
        for value, count, means in rows
    )
    several = len(names) > 1
    header = [f"{panel.measures[m]}" + f" {n}" * several for m in measures for n in names]
    cells = [[value, count, *map(number, means)] for value, count, means in rows]
    width = SIDE + CELL * len(header) + 12
    svg = drawing(width, TOP + ROW * len(rows) + 10, says, parts)
    table = Grid("", [column, "queries", *header], cells)
    return Chart(f"heat {column}", f"By {column}", says, svg, table)


def _heads(measures: list[str], names: list[str]) -> Iterator[str]:
    wide = CELL * len(names)
    for at, measure in enumerate(measures):
        left = SIDE + wide * at
        place = {"x": left + wide / 2, "y": 34.0}
        yield label(measure, **place, most=int(wide / 7), class_="strong", text_anchor="middle")
        for system, name in enumerate(names if len(names) > 1 else []):
            x = left + CELL * (system + 0.5)
            yield label(name, x, 52, most=9, class_="muted small", text_anchor="middle")
    yield label("queries", SIDE - 8, 52, class_="muted small", text_anchor="end")


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _cell(value: float | None, x: float, y: float) -> str:
    shape = {"x": x + 1, "y": y + 1, "width": CELL - 2, "height": ROW - 2, "rx": 3}
    if value is None:
        inner = centered("–", x + CELL / 2, y + 19)
        return element("rect", class_="blank", **shape) + inner
    step = min(int(max(value, 0.0) * HEAT), HEAT - 1)
    shade = "on-dark" if step >= 6 else "on-light"
    inner = centered(f"{value:.3f}", x + CELL / 2, y + 19, shade)
    return element("rect", title(number(value)), class_=f"h{step}", **shape) + inner
