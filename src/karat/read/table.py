"""Tables with a row a document, as any data frame that speaks Arrow.

Columns are found by the names people give them; ids stay text, so that 007 does not become 7.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.core.data import FACTS, Gold
from karat.core.keys import blank_ids
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.columns import IDS, carried, find_columns, is_text, named_by, note_columns
from karat.read.grades import UNDERSTOOD, grades
from karat.read.reading import STRICT, Reading, text_as_id

if TYPE_CHECKING:
    from karat.core.data import Order

COMMA = re.compile(r"[-+]?\d*,\d+")  # a decimal as some languages write it
TEXTS = (*IDS, "group", "text")
MAY_LACK = ("group", *FACTS)  # columns in which a row may have nothing
ROWS = 1 << 20  # rows of a table handled at once


def run_rows(
    table: pl.DataFrame, where: str, reading: Reading = STRICT, *, cells: bool = False
) -> tuple[pl.DataFrame, Order]:
    """Return the rows of a run, and what their order means.

    A score decides the order; without one the rank column does, and without that the position.
    In `cells` of a text table, blanks around an id are no part of it.
    """
    names = find_columns(table.columns, ("score", "rank"), where, reading)
    rows = _typed(_unpadded(table, names, reading) if cells else table, names, where, reading)
    _note_texts(rows, names, reading)
    kept = ("query", "doc", *(name for name in FACTS if name in names))
    if "score" in names:
        return rows.select(*kept, "score"), "scored"
    if "rank" in names:
        # rank order is score order: the rank, negated, stands in for the score
        return rows.select(*kept, score=-pl.col("rank")), "mapped"
    return rows, "listed"


def gold_of(
    table: pl.DataFrame, where: str, reading: Reading = STRICT, *, cells: bool = False
) -> Gold:
    """Return the gold of a table; without a grade column every document is relevant."""
    names = find_columns(table.columns, ("grade", "group"), where, reading)
    rows = _typed(_unpadded(table, names, reading) if cells else table, names, where, reading)
    _note_texts(rows, names, reading)
    note_columns(table.columns, "gold", reading)
    if "grade" not in names:
        rows = rows.with_columns(grade=pl.lit(1.0))
    queries = rows.select("query").unique(maintain_order=True)
    by = named_by(table.columns, reading)
    if by == "question":
        queries = queries.with_columns(question="query")
    return replace(Gold.build(rows, queries=queries), carries=carried(table.columns), named_by=by)


def _note_texts(rows: pl.DataFrame, names: dict[str, str], reading: Reading) -> None:
    """Say if texts serve as ids: something with a blank in it is no id."""
    if reading.texts or not is_text(names["doc"]):
        return
    texts = int(rows["doc"].str.contains(r"\s").sum())
    if texts:
        reading.note(text_as_id(texts, (names["doc"],), "row"))


def _unpadded(table: pl.DataFrame, names: dict[str, str], reading: Reading) -> pl.DataFrame:
    """Drop the blanks around ids, which please the eye in a text table."""
    for name in IDS:
        if is_text(names[name]):
            continue
        column = table[names[name]]
        bare = column.str.strip_chars()
        padded = column.ne_missing(bare)
        if not padded.any():
            continue
        table = table.with_columns(bare.replace("", None))
        ids = column.filter(padded & (bare != ""))
        if len(ids):
            reading.note(
                Finding(
                    "padded-id",
                    len(ids),
                    tuple(map(repr, ids.unique(maintain_order=True).head(EXAMPLES))),
                    f"row with blanks around the {name}: they are left out",
                    "write ids without blanks around them",
                )
            )
    return table


def frame(data: object) -> pl.DataFrame | None:
    """Return any table as a polars frame: polars, pandas, Arrow, whatever exports Arrow."""
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # pandas, with or without pyarrow
        return _from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data)
    return None


def _from_pandas(data: Any) -> pl.DataFrame:  # noqa: ANN401
    """Return a frame of pandas; equal names of columns are told apart as polars does."""
    seen: Counter[str] = Counter()
    names = []
    for name in map(str, data.columns):
        names.append(f"{name}_duplicated_{seen[name] - 1}" if seen[name] else name)
        seen[name] += 1
    values = [_values(data.iloc[:, at]) for at in range(len(names))]
    return pl.DataFrame(dict(zip(names, values, strict=True)), strict=False)


def _values(column: Any) -> Any:  # noqa: ANN401
    """Return a column of pandas; what is missing is None, but among numbers it is NaN."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    return column.astype(object).where(column.notna(), None).tolist()


def _typed(
    table: pl.DataFrame, names: dict[str, str], where: str, reading: Reading
) -> pl.DataFrame:
    """Return the columns under karat's names, ids as text and the rest as numbers."""
    picked = table.select(pl.col(column).alias(name) for name, column in names.items())
    if picked["query"].null_count():  # a blank line of a text file is a row of nothing
        picked = picked.filter(~pl.all_horizontal(pl.all().is_null()))
    for name, kind in picked.schema.items():
        number = kind.is_float() or kind == pl.Boolean
        if kind.is_nested() or kind == pl.Object or (number and name in TEXTS):
            raise InputError(
                f"the column {names[name]!r} holds {kind}, which is no {name}",
                where=where,
                fix="ids are texts or whole numbers; a row names one document",
            )
    rows = picked.with_columns(_cast(column) for column in picked.iter_columns())
    if named_by(table.columns, reading) == "question":
        rows = rows.with_columns(rows["query"].str.replace_all(r"\s+", " ").str.strip_chars())
    return _checked(rows, picked, names, where, reading)


def _cast(column: pl.Series) -> pl.Series:
    """Return a column with the type of its name; what does not fit is null."""
    kind = _type(column.name)
    if column.dtype != pl.String or kind == pl.String:
        return column.cast(kind, strict=False)
    if column.name == "grade":
        return grades(column)
    return column.str.strip_chars().cast(kind, strict=False)


def _checked(
    rows: pl.DataFrame, picked: pl.DataFrame, names: dict[str, str], where: str, reading: Reading
) -> pl.DataFrame:
    """Refuse missing and blank ids and numbers that are none, with the row, or leave it out."""
    good = pl.repeat(True, rows.height, eager=True)
    for column in rows.iter_columns():
        decides = column.name != "rank" or "score" not in names  # otherwise nobody reads the rank
        bad = column.is_null() if column.null_count() and decides else None
        if column.name in IDS and blank_ids(column).any():
            bad = blank_ids(column) | column.is_null()
        if bad is None or column.name in MAY_LACK:
            continue
        for at in (bad & good).arg_true():
            reading.meet(_wrong(column.name, names[column.name], picked, at, where))
        good &= ~bad
    return rows if good.all() else rows.filter(good)


def _wrong(name: str, column: str, picked: pl.DataFrame, at: int, where: str) -> InputError:
    value = picked[name][at]
    what = (
        f"the {name} is missing"
        if value is None or not str(value).strip()
        else f"the {name} {str(value)[:40]!r} is not a {_kind(name)}"
    )
    fix = f"give every row a {name}"
    if name == "grade":
        fix = f"give grades as {UNDERSTOOD}"
    elif COMMA.fullmatch(str(value)):
        fix = f"write decimals with a point: {str(value).replace(',', '.')}"
    return InputError(f"{what} (column {column!r})", where=f"{where}, row {at + 1}", fix=fix)


def _type(name: str) -> type[pl.DataType]:
    if name in TEXTS:
        return pl.String
    return pl.Int64 if name in FACTS else pl.Float64


def _kind(name: str) -> str:
    return "text" if name in TEXTS else "number"
