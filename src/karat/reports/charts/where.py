"""Where is a system better than the baseline? The difference in every slice of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.reports.charts import Chart
from karat.reports.charts.forest import (
    difference_point,
    difference_row,
    differences_axis,
    reach_of,
)
from karat.reports.charts.svg import LETTER, drawing, label, linear, link_to_queries, queries_link
from karat.reports.comparison import corrected
from karat.reports.grid import Grid
from karat.reports.tables import chance, number, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.comparison.compare import Comparison
    from karat.comparison.contrasts import Row

ROW, TOP, NAMES, PLOT = 26.0, 54.0, 12.0, 360.0
LONGEST = 34  # letters of a label
MOST = 16  # slices that are drawn; the table has all
ENOUGH = 5  # queries of a slice that is drawn, if there are such
SHOWN = {"n": 20.0, "difference": 62.0, "interval": 136.0, "p (BH)": 258.0, "verdict": 322.0}


def where_better(comparison: Comparison, rows: Sequence[Row], verdicts: Sequence[str]) -> Chart:
    """Draw the difference of a system to the baseline in each slice, the largest gain first.

    The rows are those of one system and one measure; what is shown to differ after the correction
    for the number of slices is filled.
    """
    system, measure = rows[0]["system"], rows[0]["measure"]
    (higher,) = (each.higher_is_better for each in comparison.measures if str(each) == measure)
    order = sorted(
        zip(rows, verdicts, strict=True),
        key=lambda each: (
            each[0]["difference"] is None,
            -(each[0]["difference"] or 0.0) * (1 if higher else -1),
        ),
    )
    drawn = _most_telling(order)
    named = [f"{row['column']}: {row['slice']}" for row, _ in drawn]
    start = NAMES + LETTER * min(max(map(len, named), default=0), LONGEST) + 20
    low, high = reach_of([row for row, _ in drawn])
    across = linear((low, high), (start, start + PLOT))
    foot = TOP + ROW * len(drawn)
    heading = f"{measure}: {system} − {comparison.baseline}"
    parts = [label(heading, NAMES, 18, most=80, class_="strong")]
    beside = {name: start + PLOT + x for name, x in SHOWN.items()}
    parts += (label(name, x, TOP - 14, class_="muted small") for name, x in beside.items())
    parts += differences_axis(across, (low, high), TOP, foot)
    for at, ((row, verdict), name) in enumerate(zip(drawn, named, strict=True)):
        y = TOP + ROW * at + 12
        text = label(name, NAMES, y + 4, most=LONGEST)
        parts.append(link_to_queries(text, row["column"], row["slice"]))
        parts += difference_point(row, verdict, y, across)
        parts += (
            label(cell, beside[key], y + 4, class_="strong" if key == "verdict" else None)
            for key, cell in zip(beside, _cells(row, verdict), strict=True)
        )
    if len(drawn) < len(order):
        more = f"{len(order) - len(drawn)} more slices are in the numbers"
        parts.append(label(more, NAMES, foot + 34, class_="muted small"))
    says = f"{heading}, by slice: " + "; ".join(
        f"{name} {signed(row['difference'])}, {verdict}"
        for (row, verdict), name in zip(drawn, named, strict=True)
    )
    svg = drawing(beside["verdict"] + 76, foot + 44, says, parts, linked=True)
    header = ["column", "slice", "before", "after", *SHOWN]
    cells = [
        [
            *(row["column"], row["slice"], number(row["baseline_value"])),
            *(number(row["system_value"]), *_cells(row, verdict)),
        ]
        for row, verdict in order
    ]
    table = Grid("", header, cells, left=2)
    alone = tuple(
        difference_row(row, name, verdict, (low, high), queries_link(row["column"], row["slice"]))
        for (row, verdict), name in zip(drawn, named, strict=True)
    )
    return Chart(f"where {system}", f"Where is {system} better?", says, svg, table, alone)


def _most_telling(order: list[tuple[Row, str]]) -> list[tuple[Row, str]]:
    """Return the slices that are drawn, in the same order: those of the smallest p."""
    known = [each for each in order if each[0]["difference"] is not None]
    drawn = [each for each in known if each[0]["n"] >= ENOUGH] or known
    by_chance = sorted(
        range(len(drawn)),
        key=lambda at: (drawn[at][0]["p_adjusted"] or 0.0, -drawn[at][0]["n"]),
    )
    return [drawn[at] for at in sorted(by_chance[:MOST])]


def _cells(row: Row, verdict: str) -> list[str]:
    p = chance(row["p_adjusted"])
    return [str(row["n"]), signed(row["difference"]), corrected(row), p, verdict]
