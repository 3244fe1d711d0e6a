"""Curves as text: a row a run and measure, a column a cutoff, and a line that shows the shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.report.layout import BARS, Grid, number
from karat.report.text import markdown, terminal
from karat.spelling import name_relations

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


def render(
    table: pl.DataFrame, enough: list[dict[str, Any]], how: str, matched_by: Mapping[str, str]
) -> str:
    """Return the curves as `table` or `markdown`, with what is enough below."""
    cutoffs = table["k"].unique(maintain_order=True).to_list()
    rows = []
    for (run, measure), part in table.group_by(["run", "measure"], maintain_order=True):
        values = part["value"].to_list()
        rows.append([str(run), str(measure), sparkline(values), *map(number, values)])
    header = ["run", "measure", "shape", *(f"@{k}" for k in cutoffs)]
    title = f"at each cutoff{name_relations(matched_by.values())}"
    grid = Grid(title, header, rows, left=3)
    text = markdown(grid) if how == "markdown" else terminal(grid)
    return text + "".join(_line(entry) for entry in enough)


def sparkline(values: list[float | None]) -> str:
    """Draw values between 0 and 1 as bars; what has no value is a blank.

    >>> sparkline([0.0, 0.5, None, 1.0])
    '▁▅ █'
    """
    return "".join(
        " " if value is None else BARS[min(int(max(value, 0) * len(BARS)), len(BARS) - 1)]
        for value in values
    )


def _line(entry: dict[str, Any]) -> str:
    goal = f"{entry['run']}: {entry['measure']} >= {entry['target']:g}"
    if entry["k"] is None:
        return f"{goal} is not reached at any cutoff\n"
    return f"{goal} is reached at K = {entry['k']}\n"
