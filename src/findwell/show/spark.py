"""Results of the Spark engine as text: the summary and slices, in the formats of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted, name_relations
from findwell.show.document import Document, Line
from findwell.show.grid import Grid
from findwell.show.result import judge_line, with_relation
from findwell.show.tables import interval, number, to_json, to_rows
from findwell.show.writers import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from findwell.evaluation.spark.result import SparkResult

EXTRA = ("lower", "upper", "undefined", "failed")


def render(
    result: SparkResult,
    how: str,
    *,
    by: Iterable[str] = (),
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the result in one of FORMATS, with a line break at the end."""
    import polars as pl  # noqa: PLC0415

    by = list(by)
    if how == "json":
        return to_json(result.as_dict(by=by))
    if how in ("markdown", "table", "latex"):
        judge = [Line(judge_line(result.judge), in_papers=True)] if result.judge else []
        return write(Document([*_grids(result, by), *judge]), how, color=color, width=width)
    rows = result.summary
    if by:
        sliced = (result.by(name).insert_column(1, pl.lit(name).alias("column")) for name in by)
        rows = pl.concat(sliced)
    return to_rows(with_relation(rows, result.matched_by), how)


def _grids(result: SparkResult, by: list[str]) -> Iterator[Grid]:
    rows = result.summary.to_dicts()
    level = result.level
    extra = [name for name in EXTRA if any(row.get(name) for row in rows)]
    matched = name_relations(result.matched_by.values())
    title = f"{result.run} · {counted(result.queries)} · dialect {result.dialect}{matched} · Spark"
    header = ["measure", "value", *([] if level is None else [f"{level:.0%} interval"]), "n"]
    cells = [
        [row["measure"], number(row["value"])]
        + ([] if level is None else [interval(row["low"], row["high"])])
        + [str(row["n"])]
        + [number(row[name]) if name in EXTRA[:2] else str(row[name]) for name in extra]
        for row in rows
    ]
    yield Grid(title, [*header, *extra], cells)
    names = [str(measure) for measure in result.measures]
    for column in by:
        table = result.by(column)
        lines = []
        for value in table["slice"].unique(maintain_order=True):
            mine = table.filter(table["slice"].eq_missing(value))
            count = max(n + undefined for n, undefined in mine.select("n", "undefined").rows())
            label = "(none)" if value is None else value
            lines.append([label, str(count), *(number(cell) for cell in mine["value"])])
        yield Grid(f"by {column}", [column, "queries", *names], lines)
