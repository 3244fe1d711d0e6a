"""Results as text: JSON, JSON lines, CSV, TSV, Markdown, and tables for the terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from karat.report.layout import Grid, grids, judge_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from karat.results.result import Result

BEST, GOOD, BAD, PLAIN = "\x1b[1;32m", "\x1b[32m", "\x1b[31m", "\x1b[0m"  # green, red, and back
FORMATS = ("table", "json", "jsonl", "csv", "tsv", "markdown", "latex")


def render(
    result: Result,
    how: str,
    *,
    per_query: bool = False,
    by: Iterable[str] = (),
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the result in one of FORMATS, with a line break at the end.

    `width` is that of the terminal; where it allows, a table shows how the queries are spread.

    Formats with one row a line hold one table: the queries if asked for, else the slices if asked
    for, else the summary.
    """
    by = list(by)
    if how == "json":
        shown = result.as_dict(per_query=per_query, by=by)
        return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    if how in ("markdown", "table", "latex"):
        spread = how == "table" and width is not None and _fits(result, width)
        tables = grids(result, per_query=per_query, by=by, spread=spread)
        judge = judge_line(result.judge)
        if how == "markdown":
            return "\n".join([*map(markdown, tables), *([f"{escape(judge)}\n"] if judge else [])])
        if how == "latex":
            from karat.report.latex import grid_table  # noqa: PLC0415

            return "\n".join(grid_table(grid) for grid in tables)
        drawn = "".join(terminal(grid, color=color) for grid in tables)
        return drawn + (f"{printable(judge)}\n\n" if judge else "")
    rows = _rows(result, per_query=per_query, by=by)
    if how == "jsonl":
        return "".join(
            json.dumps(row, ensure_ascii=False) + "\n" for row in rows.iter_rows(named=True)
        )
    return rows.write_csv(separator="\t" if how == "tsv" else ",")


def _fits(result: Result, width: int) -> bool:
    """Tell whether the summary with a column about the spread fits a terminal."""
    from rich.cells import cell_len  # noqa: PLC0415

    lines = terminal(next(grids(result, spread=True))).splitlines()
    return max(map(cell_len, lines)) <= width


def _rows(result: Result, *, per_query: bool, by: list[str]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    rows = result.summary
    if per_query:
        rows = result.per_query
    elif by:
        rows = pl.concat(
            [result.by(column).insert_column(1, pl.lit(column).alias("column")) for column in by]
        )
    return with_relation(rows, result.matched_by)


def with_relation(rows: pl.DataFrame, matched_by: Mapping[str, str]) -> pl.DataFrame:
    """Add to rows with a measure the relation that it reads."""
    import polars as pl  # noqa: PLC0415

    read = pl.col("measure").replace_strict(matched_by, return_dtype=pl.String)
    return rows.with_columns(relation=read)


def markdown(grid: Grid) -> str:
    """Return a table as GitHub Markdown."""
    grid = _shown(grid)

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    rules = ["---" if at < grid.left else "---:" for at in range(len(grid.header))]
    body = "".join(
        line([_bold(escape(cell), (y, x) in grid.best) for x, cell in enumerate(row)])
        for y, row in enumerate(grid.rows)
    )
    header = line([escape(cell) for cell in grid.header])
    return f"**{escape(grid.title)}**\n\n" + header + line(rules) + body


def terminal(grid: Grid, *, color: bool = False) -> str:
    """Return a table for the terminal; the best of a column is bold where colour is on."""
    from rich.cells import cell_len  # noqa: PLC0415

    grid = _shown(grid)
    columns = zip(grid.header, *grid.rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]

    def line(cells: list[str], row: int = -1) -> str:
        padded = []
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            paint = _paint(grid, row, at) if color else ""
            shown = f"{paint}{cell}{PLAIN}" if paint else cell
            padded.append(shown + blank if at < grid.left else blank + shown)
        return " " + "   ".join(padded).rstrip() + "\n"

    rule = " " + "─" * (sum(widths) + 3 * (len(widths) - 1)) + "\n"
    body = "".join(line(cells, row) for row, cells in enumerate(grid.rows))
    return f"{grid.title}\n\n{line(grid.header)}{rule}{body}\n"


def _paint(grid: Grid, row: int, column: int) -> str:
    if (row, column) in grid.best:
        return BEST
    if (row, column) in grid.good:
        return GOOD
    return BAD if (row, column) in grid.bad else ""


def _shown(grid: Grid) -> Grid:
    """Return the table with nothing in it that a terminal would obey."""
    return replace(
        grid,
        title=printable(grid.title),
        header=[printable(cell) for cell in grid.header],
        rows=[[printable(cell) for cell in row] for row in grid.rows],
    )


def _bold(cell: str, best: bool) -> str:
    return f"**{cell}**" if best else cell


def escape(cell: str) -> str:
    """Keep ids from being read as Markdown or HTML."""
    for mark in "\\`*_|<>[]":
        cell = cell.replace(mark, "\\" + mark)
    return cell
