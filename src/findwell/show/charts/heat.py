"""Slices of the queries as a heat map: where a system is weak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.spelling import counted
from findwell.show.charts import Chart, left_out, register_chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from findwell.core.data import Floats
    from findwell.show.panel import Panel

CELL, ROW, SIDE, TOP, KEY = 66.0, 30.0, 190.0, 62.0, 34.0
COLUMNS = 14  # cells in a row at most
FEW = 10  # queries below which a cell has no colour
MAPPED_COLUMNS = 6  # that have a heat map


@dataclass(frozen=True, slots=True)
class _Slice:
    """One row of the map: a slice, and the mean and queries of each cell."""

    name: str
    queries: int
    means: list[float | None]
    counts: list[int]


@register_chart("heat", section="slices")
def heats(panel: Panel) -> Iterator[Chart | str]:
    """Draw a heat map for each column that slices the queries."""
    columns = list(panel.facets)
    for column in columns[:MAPPED_COLUMNS]:
        yield from (chart.with_about(panel.caption()) for chart in heat(panel, column))
    yield from left_out("columns", columns[MAPPED_COLUMNS:])


def heat(panel: Panel, column: str) -> list[Chart]:
    """Draw the mean of each measure in each slice of a column, by system.

    Measures that do not fit next to each other are on further charts.
    """
    names = panel.names[: svg.SYSTEMS]
    every = range(len(panel.measures))
    step = max(COLUMNS // len(names), 1)
    return [_map(panel, column, names, every[first : first + step]) for first in every[::step]]


def _map(panel: Panel, column: str, names: Sequence[str], measures: range) -> Chart:
    labels = panel.labels(column)
    rows = []
    for value in panel.facets[column]:
        inside = (labels == value).to_numpy()
        mine = panel.pairing.table[..., inside]
        columns = [mine[s, m] for m in measures for s in range(len(names))]
        known = [int((~np.isnan(each)).sum()) for each in columns]
        rows.append(_Slice(value, int(inside.sum()), [_mean(each) for each in columns], known))
    heads = [str(panel.measures[m]) for m in measures]
    parts = [svg.label(f"by {column}", 12, 18, most=24, class_="strong"), *_heads(heads, names)]
    full = [
        1.0 if panel.measures[m].unit_interval else _largest(rows, at, len(names))
        for at, m in enumerate(measures)
    ]
    for at, row in enumerate(rows):
        y = TOP + ROW * at
        parts.append(
            svg.link_to_queries(svg.label(row.name, 12, y + 19, most=20), column, row.name)
        )
        parts.append(
            svg.label(str(row.queries), SIDE - 8, y + 19, class_="muted", text_anchor="end")
        )
        for x, (mean, count) in enumerate(zip(row.means, row.counts, strict=True)):
            cell = _cell(mean, count, SIDE + CELL * x, y, full[x // len(names)])
            parts.append(svg.link_to_queries(cell, column, row.name, reach=False))
    says = f"Means by {column}: " + "; ".join(
        f"{row.name} ({counted(row.queries)}) {', '.join(map(number, row.means[: len(names)]))}"
        for row in rows
    )
    several = len(names) > 1
    header = [f"{measure}" + f" {n}" * several for measure in heads for n in names]
    cells = [[row.name, str(row.queries), *map(number, row.means)] for row in rows]
    foot = TOP + ROW * len(rows)
    width = max(SIDE + CELL * len(header) + 12, SIDE + 330)
    plain = all(panel.measures[m].unit_interval for m in measures)
    drawn = svg.drawing(
        width, foot + KEY + 10, says, [*parts, *_key(foot + 12, plain=plain)], linked=True
    )
    table = Grid("", [column, "queries", *header], cells)
    first = not measures.start
    name = f"heat {column}" if first else f"heat {column} from {heads[0]}"
    shown = ", ".join(heads)
    return Chart(name, f"By {column}: {shown}", says, drawn, table, group=column)


def _heads(measures: list[str], names: Sequence[str]) -> Iterator[str]:
    wide = CELL * len(names)
    for at, (measure, whole) in enumerate(
        zip(svg.distinct(measures, int(wide / 7)), measures, strict=True)
    ):
        left = SIDE + wide * at
        text = svg.label(measure, left + wide / 2, 34.0, class_="strong", text_anchor="middle")
        yield svg.element("g", text + svg.title(whole))
        for system, name in enumerate(svg.distinct(names, 9) if len(names) > 1 else []):
            x = left + CELL * (system + 0.5)
            text = svg.label(name, x, 52, class_="muted small", text_anchor="middle")
            yield svg.element("g", text + svg.title(names[system]))
    yield svg.label("queries", SIDE - 8, 52, class_="muted small", text_anchor="end")


def _key(y: float, *, plain: bool) -> Iterator[str]:
    """Draw what the colours mean."""
    yield svg.label("0" if plain else "0, or the least", SIDE - 8, y + 10, text_anchor="end")
    for step in range(svg.HEAT):
        shape = {"x": SIDE + 14.0 * step, "y": y, "width": 14, "height": 12}
        yield svg.element("rect", class_=f"h{step}", **shape)
    x = SIDE + 14.0 * svg.HEAT + 8
    yield svg.label("1" if plain else "1, or the most", x, y + 10)
    x += 24 if plain else 96
    yield svg.element("rect", class_="few", x=x, y=y, width=14, height=12, rx=3)
    yield svg.label(f"fewer than {FEW} queries", x + 22, y + 10, class_="muted")


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _largest(rows: Sequence[_Slice], at: int, systems: int) -> float:
    """Return the largest mean of a measure without bounds, which gets the strongest colour."""
    mine = (mean for row in rows for mean in row.means[systems * at : systems * (at + 1)])
    return max((mean for mean in mine if mean is not None), default=1.0) or 1.0


def _cell(value: float | None, known: int, x: float, y: float, full: float) -> str:
    shape = {"x": x + 1, "y": y + 1, "width": CELL - 2, "height": ROW - 2, "rx": 3}
    if value is None:
        inner = svg.centered("–", x + CELL / 2, y + 19)
        return svg.element("rect", class_="blank", **shape) + inner
    shown = f"{value:.3f}" if full <= 1 else f"{value:.4g}"
    hint = svg.title(f"{number(value)} over {counted(known)}")
    if known < FEW:
        inner = svg.centered(shown, x + CELL / 2, y + 19)
        return svg.element("rect", hint, class_="few", **shape) + inner
    step = min(int(max(value, 0.0) / full * svg.HEAT), svg.HEAT - 1)
    shade = "on-dark" if step >= 6 else "on-light"
    return svg.element("rect", hint, class_=f"h{step}", **shape) + svg.centered(
        shown, x + CELL / 2, y + 19, shade
    )
