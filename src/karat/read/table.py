"""Tables with a row a document, as any data frame that speaks Arrow.

Columns are found by the names people give them; ids stay text, so that 007 does not become 7.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.data import FACTS, Gold
from karat.errors import InputError, nearest
from karat.keys import blank_ids
from karat.read.reading import STRICT, Reading

if TYPE_CHECKING:
    from karat.data import Order

# what people call the columns; the first is karat's own name
COLUMNS = {
    "query": "query query_id query-id queryid qid q_id topic topic_id",
    "doc": "doc doc_id doc-id docid docno document document_id corpus-id corpus_id passage_id pid "
    "chunk_id",
    "score": "score sim similarity",
    "rank": "rank position",
    "grade": "grade rel relevance label judgment judgement score",
    "group": "group item subtopic",
    "text": "text quote contents content passage page_content chunk",
    "start": "start start_index",
    "end": "end end_index",
}
IDS = ("query", "doc")
TEXTS = (*IDS, "group", "text")
MAY_LACK = ("group", *FACTS)  # columns in which a row may have nothing
ROWS = 1 << 20  # rows of a table handled at once


def run_rows(
    table: pl.DataFrame, where: str, reading: Reading = STRICT
) -> tuple[pl.DataFrame, Order]:
    """Return the rows of a run, and what their order means.

    A score decides the order; without one the rank column does, and without that the position.
    """
    names = _names(table.columns, ("score", "rank"), where, reading)
    rows = _typed(table, names, where, reading)
    kept = ("query", "doc", *(name for name in FACTS if name in names))
    if "score" in names:
        return rows.select(*kept, "score"), "scored"
    if "rank" in names:
        # rank order is score order: the rank, negated, stands in for the score
        return rows.select(*kept, score=-pl.col("rank")), "mapped"
    return rows, "listed"


def gold_of(table: pl.DataFrame, where: str, reading: Reading = STRICT) -> Gold:
    """Return the gold of a table; without a grade column every document is relevant."""
    names = _names(table.columns, ("grade", "group"), where, reading)
    rows = _typed(table, names, where, reading)
    if "grade" not in names:
        rows = rows.with_columns(grade=pl.lit(1.0))
    queries = rows.select("query").unique(maintain_order=True)
    return replace(Gold.build(rows, queries=queries), carries=carried(table.columns))


def carried(columns: list[str]) -> frozenset[str]:
    """Tell what a table carries beside ids."""
    known = known_columns(columns).keys()
    kinds = {"texts": {"doc", "text"}, "places": {"doc", "start", "end"}}
    return frozenset(kind for kind, names in kinds.items() if names <= known)


def frame(data: object) -> pl.DataFrame | None:
    """Return any table as a polars frame: polars, pandas, Arrow, whatever exports Arrow."""
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # pandas, with or without pyarrow
        return pl.DataFrame(
            {str(name): _values(data[name]) for name in data.columns},  # type: ignore[index]
            strict=False,
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data)
    return None


def _values(column: Any) -> Any:  # noqa: ANN401
    """Return a column of pandas; what is missing is None, but among numbers it is NaN."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    return column.astype(object).where(column.notna(), None).tolist()


def known_columns(columns: list[str]) -> dict[str, str]:
    """Map karat's names to the columns of a table."""
    folded = {name.strip().casefold(): name for name in reversed(columns)}
    found = {}
    for name, spellings in COLUMNS.items():
        present = [folded[word] for word in spellings.split() if word in folded]
        if present:
            found[name] = present[0]
    return found


def _names(
    columns: list[str], optional: tuple[str, ...], where: str, reading: Reading
) -> dict[str, str]:
    """Map karat's names to the columns that are wanted; where texts are, one may be the id."""
    known = known_columns(columns)
    if reading.texts:
        optional = (*optional, *FACTS)
        if "doc" not in known and "text" in known:
            known["doc"] = known["text"]
    for name in IDS:
        if name not in known:
            spellings = COLUMNS[name].split()
            close = next((nearest(c, spellings) for c in columns if nearest(c, spellings)), "")
            raise InputError(
                f"no column for the {name}; found {', '.join(map(repr, columns[:12]))}",
                where=where,
                fix=f"name it {spellings[0]!r} (also understood: {', '.join(spellings[1:5])})"
                + (f"; {close}" if close else ""),
            )
    return {name: known[name] for name in (*IDS, *optional) if name in known}


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
    rows = picked.with_columns(pl.col(name).cast(_type(name), strict=False) for name in names)
    return _checked(rows, picked, names, where, reading)


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
    return InputError(
        f"{what} (column {column!r})",
        where=f"{where}, row {at + 1}",
        fix=f"give every row a {name}",
    )


def _type(name: str) -> type[pl.DataType]:
    if name in TEXTS:
        return pl.String
    return pl.Int64 if name in FACTS else pl.Float64


def _kind(name: str) -> str:
    return "text" if name in TEXTS else "number"
