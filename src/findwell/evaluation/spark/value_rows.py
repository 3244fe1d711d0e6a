"""`Values` as rows of a Spark frame: tasks hand them over, and the driver puts them together.

A row is one query, with lists in the order of the measures. In addition a task returns what is
worth knowing about a batch (`NOTES`), and the sampled queries of it (`SAMPLE`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.frames import pl
from findwell.core.values import BOUNDS, Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from findwell.core.data import Floats
    from findwell.core.measure import Measure

VALUES, NOTES, SAMPLE = 0, 1, 2  # the kinds of rows
FLOATS = ("array<double>", pl.List(pl.Float64))
VALUE_COLUMNS: dict[str, tuple[str, Any]] = {  # by name: the type of Spark, and that of polars
    "kind": ("tinyint", pl.Int8),
    "query": ("string", pl.String),
    "labels": ("array<string>", pl.List(pl.String)),  # what is known about the query
    "values": FLOATS,
    "reasons": ("array<string>", pl.List(pl.String)),
    "failed": ("array<boolean>", pl.List(pl.Boolean)),
    **dict.fromkeys(BOUNDS, FLOATS),
    "data": ("binary", pl.Binary),
}
SCHEMA = ", ".join(f"`{name}` {kind}" for name, (kind, _) in VALUE_COLUMNS.items())
ROW = {name: kind for name, (_, kind) in VALUE_COLUMNS.items()}


def rows_of(values: Values, labels: Sequence[str] = ()) -> pl.DataFrame:
    """Return the values of one run as rows, with these columns about the queries.

    Columns in which all rows would be null are left out.
    """
    inside = values.was_asked(values.runs[0])
    about = values.queries if isinstance(inside, slice) else values.queries.filter(inside)

    def lists(table: np.ndarray) -> pl.Series:
        flat = np.ascontiguousarray(table[0][:, inside].T)
        found = pl.Series(flat.reshape(-1)).reshape(flat.shape).arr.to_list()
        return found.list.eval(pl.element().fill_nan(None)) if flat.dtype == float else found

    columns = {"query": about["query"], "values": lists(values.table)}
    if labels:
        known = [
            pl.col(name).cast(pl.String) if name in about.columns else pl.lit(None, pl.String)
            for name in labels
        ]
        columns["labels"] = about.select(pl.concat_list(known)).to_series()
    if np.isnan(values.table).any():
        why = values.frame()["reason"]
        each = (why.slice(at * about.height, about.height) for at in range(len(values.measures)))
        named = pl.DataFrame([reason.alias(str(at)) for at, reason in enumerate(each)])
        columns["reasons"] = named.select(pl.concat_list(pl.all())).to_series()
    if values.failed is not None:
        columns["failed"] = lists(values.failed)
    columns |= {name: lists(side) for name, side in zip(BOUNDS, values.bounds or (), strict=False)}
    return pl.DataFrame(columns).with_columns(kind=pl.lit(VALUES, pl.Int8))


def values_of(
    rows: pl.DataFrame, run: str, measures: tuple[Measure, ...], labels: Sequence[str] = ()
) -> Values:
    """Return the values of rows of all tasks, in the order of the queries' names."""
    rows = rows.filter(pl.col("kind") == VALUES).sort("query")

    def table_of(column: str) -> Floats | None:
        lists = rows[column]
        known = lists.is_not_null()
        if not known.any():
            return None
        table = np.full((len(lists), len(measures)), math.nan)
        flat = lists.filter(known).explode(empty_as_null=False).cast(pl.Float64)
        table[known.to_numpy()] = flat.fill_null(math.nan).to_numpy().reshape(-1, len(measures))
        return np.ascontiguousarray(table.T)[np.newaxis]

    table, failed, low, high = map(table_of, ("values", "failed", *BOUNDS))
    if table is None:
        table = np.empty((1, len(measures), 0))
    bounds = None
    if low is not None and high is not None:
        # of a batch without bounds for a measure, its values are all that is possible
        bounded = ~(np.isnan(low) & np.isnan(high)).all(axis=2, keepdims=True)
        low, high = (np.where(bounded & np.isnan(side), table, side) for side in (low, high))
        bounds = low, high
    reasons = {}
    for at, measure in enumerate(measures):
        why = rows["reasons"].list.get(at, null_on_oob=True)
        special = (why != measure.why_undefined).fill_null(value=False).arg_true()
        if len(special):
            reasons[run, measure] = dict(zip(special, why.gather(special), strict=True))
    label = pl.col("labels").list
    about = [label.get(at, null_on_oob=True).alias(name) for at, name in enumerate(labels)]
    return Values(
        queries=rows.select("query", *about),
        runs=(run,),
        measures=measures,
        table=table,
        reasons=reasons,
        failed=None if failed is None else failed > 0,
        bounds=bounds,
    )


def to_batches(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield a frame as the batches that Spark takes: it knows no lists and texts of 64-bit size."""
    import pyarrow as pa  # noqa: PLC0415

    def small(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_large_list(kind):
            return pa.list_(small(kind.value_type))
        if pa.types.is_large_string(kind):
            return pa.string()
        return pa.binary() if pa.types.is_large_binary(kind) else kind

    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [pa.field(each.name, small(each.type)) for each in table.schema]
    yield from table.cast(pa.schema(fields)).to_batches()
