"""Where is a system better or worse than the baseline? The difference in slices of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.core.verdict import BETTER, WORSE
from findwell.show.charts import Chart
from findwell.show.charts.forest import (
    difference_point,
    difference_row,
    differences_axis,
    reach_of,
)
from findwell.show.charts.svg import (
    LETTER,
    drawing,
    label,
    linear,
    link_to_queries,
    queries_link,
)
from findwell.show.comparison import corrected, numbers
from findwell.show.grid import Grid
from findwell.show.tables import chance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.evaluation.comparison.compare import Comparison, Row

ROW, TOP, NAMES, PLOT = 26.0, 54.0, 12.0, 360.0
LONGEST = 34  # letters of a label
MOST = 16  # slices that are drawn, unless more are worse; the table has all
ENOUGH = 5  # queries of a slice that is drawn, if there are such
COLUMNS = {"n": 20.0, "difference": 62.0, "interval": 136.0, "p (BH)": 258.0, "verdict": 322.0}
HEADINGS = {WORSE: "Where it got worse", BETTER: "Where it got better"}
OTHERWISE = "Where it is unclear"


def where_better(comparison: Comparison, rows: Sequence[Row]) -> Chart:
    """Draw the difference of a system to the baseline in slices: all losses, then gains.

    The rows are those of one system and one measure. Every slice that is worse after the correction
    for the number of slices is drawn; the others as far as there is room.
    """
    system, measure = rows[0]["system"], rows[0]["measure"]
    (higher,) = (each.higher_is_better for each in comparison.measures if str(each) == measure)
    order = _losses_first(rows, higher_is_better=higher)
    drawn = _most_telling(order)
    named = [f"{row['column']}: {row['slice']}" for row in drawn]
    start = NAMES + LETTER * min(max(map(len, named), default=0), LONGEST) + 20
    low, high = reach_of(drawn)
    across = linear((low, high), (start, start + PLOT))
    beside = {name: start + PLOT + x for name, x in COLUMNS.items()}
    heading = f"{measure}: {system} − {comparison.baseline}"
    inside: list[str] = []
    y, above = TOP, ""
    for row, name in zip(drawn, named, strict=True):
        if _heading(row) != above:
            above = _heading(row)
            inside.append(label(above, NAMES, y + 16, class_="strong"))
            y += ROW
        text = label(name, NAMES, y + 16, most=LONGEST)
        inside.append(link_to_queries(text, row["column"], row["slice"]))
        inside += difference_point(row, y + 12, across)
        inside += (
            label(cell, beside[key], y + 16, class_="strong" if key == "verdict" else None)
            for key, cell in zip(beside, _cells(row), strict=True)
        )
        y += ROW
    parts = [label(heading, NAMES, 18, most=80, class_="strong")]
    parts += (label(name, x, TOP - 14, class_="muted small") for name, x in beside.items())
    parts += [*differences_axis(across, (low, high), TOP, y), *inside]
    if len(drawn) < len(order):
        more = f"{counted(len(order) - len(drawn), 'more slice', 'more slices')} in the table"
        parts.append(label(more, NAMES, y + 34, class_="muted small"))
    says = f"{heading}, by slice: " + "; ".join(
        f"{name} {numbers(row)[2]}, {row['verdict']}"
        for row, name in zip(drawn, named, strict=True)
    )
    svg = drawing(beside["verdict"] + 76, y + 44, says, parts, linked=True)
    header = ["column", "slice", "before", "after", *COLUMNS]
    cells = [[row["column"], row["slice"], *numbers(row)[:2], *_cells(row)] for row in order]
    alone = tuple(
        difference_row(row, name, (low, high), queries_link(row["column"], row["slice"]))
        for row, name in zip(drawn, named, strict=True)
    )
    title = f"Where is {system} better or worse?"
    return Chart(f"where {system}", title, says, svg, Grid("", header, cells, left=2), alone)


def _losses_first(rows: Sequence[Row], *, higher_is_better: bool) -> list[Row]:
    """Return what is worse, the largest loss first; then what is better, then the rest, by gain."""
    place = {WORSE: 0, BETTER: 1}

    def key(row: Row) -> tuple[int, bool, float]:
        gain = (row["difference"] or 0.0) * (1 if higher_is_better else -1)
        group = place.get(row["verdict"], 2)
        return group, row["difference"] is None, gain if group == 0 else -gain

    return sorted(rows, key=key)


def _heading(row: Row) -> str:
    return HEADINGS.get(row["verdict"], OTHERWISE)


def _most_telling(order: list[Row]) -> list[Row]:
    """Return the slices that are drawn, in the same order: all losses, then the smallest p."""
    known = [row for row in order if row["difference"] is not None]
    losses = [row for row in known if row["verdict"] == WORSE]
    others = [row for row in known if row["verdict"] != WORSE]
    if any(row["n"] >= ENOUGH for row in known):
        others = [row for row in others if row["n"] >= ENOUGH]
    by_chance = sorted(
        range(len(others)),
        key=lambda at: (others[at]["verdict"] != BETTER, _p(others[at]), -others[at]["n"]),
    )
    return [*losses, *(others[at] for at in sorted(by_chance[: max(MOST - len(losses), 0)]))]


def _p(row: Row) -> float:
    return 1.0 if row["p_adjusted"] is None else row["p_adjusted"]


def _cells(row: Row) -> list[str]:
    return [
        str(row["n"]),
        numbers(row)[2],
        corrected(row),
        chance(row["p_adjusted"]),
        row["verdict"],
    ]
