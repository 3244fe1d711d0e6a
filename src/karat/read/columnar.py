"""Records in bulk without a Python loop: a frame with a row a record becomes rows of run and gold.

This is the fast path for records that are all alike. Whatever is not certainly read as
`karat.read.record` would read it (other types, nulls, blanks, repetitions) is left to that.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.data import blank_ids
from karat.read.parts import GOLD, RUN, Part
from karat.read.shapes import ROLES

if TYPE_CHECKING:
    from karat.read.parts import State
    from karat.read.shapes import Shape

# what polars makes of a number, a truth or an object among texts
COERCED = r"^(?:[\[{]|true$|false$|-?\d+[.eE]|-0$|-?inf|NaN)"
IDS = (pl.String, pl.Int64, pl.Null)
NUMBERS = (pl.Int64, pl.Float64, pl.Null)
PLAIN = (pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Null)
HALF_PAIR = re.compile(  # one half of a surrogate pair, which no text holds
    rb"\\u[dD][89aAbB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB]..)\\u[dD][c-fC-F]"
)


class _DoubtError(Exception):
    """The frame holds something that needs care."""


def frame_of(data: bytes, like: pl.Schema | None, shape: Shape) -> pl.DataFrame | None:
    """Parse lines of JSON; None where polars cannot, or where the lines are not a record each.

    `like` is the schema of earlier lines. Finding out the schema of all lines takes as long as
    parsing them, so it is first assumed that the first lines are like the others, and checked.
    """
    if b"\\" in data and HALF_PAIR.search(data):
        return None
    frame = _parsed(data, like)
    if frame is not None and _has_keys(data, frame):
        return frame
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    whole = frame.height == _lines(data) and _names_once(data, frame, shape)
    return frame if whole else None


def _parsed(data: bytes, like: pl.Schema | None) -> pl.DataFrame | None:
    try:
        frame = pl.read_ndjson(data, schema=like)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    return frame if frame.height == _lines(data) else None


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _has_keys(data: bytes, frame: pl.DataFrame) -> bool:
    """Tell whether the lines hold the keys of the frame and no others; if in doubt, say no."""
    keys = 0
    for column in frame.iter_columns():
        absent = column.null_count()
        keys += data.count(b'"%s":' % column.name.encode()) if absent else frame.height
        inner = getattr(column.dtype, "inner", column.dtype)
        if isinstance(inner, pl.Struct):
            if inner == column.dtype:
                return False
            elements = column.list.explode(empty_as_null=False, keep_nulls=False)
            fields = elements.struct.unnest()
            if any(field.null_count() for field in fields.iter_columns()):
                return False
            keys += fields.height * fields.width
    codes = np.frombuffer(data, np.uint8)
    colons = np.flatnonzero(codes == ord(":"))
    ends = (codes[colons - 1] == ord('"')) & (codes[colons - 2] != ord("\\"))
    return int(np.count_nonzero(ends)) == keys


def _names_once(data: bytes, frame: pl.DataFrame, shape: Shape) -> bool:
    """Tell whether no record names one of its main fields twice: polars and Python differ there."""
    picked = shape.pick(frame.columns)
    main = (picked[name] for name in ("query", "retrieved", "gold") if name in picked)
    return all(data.count(b'"%s"' % name.encode()) <= frame.height for name in main)


def columnar_part(frame: pl.DataFrame, state: State) -> Part | None:
    """Return what the records of a frame make, or None if they need care."""
    shape = state.shape
    present = [name for name, kind in frame.schema.items() if kind != pl.Null]
    picked = shape.pick(present)
    if state.last_wins or any(side not in picked for side in ROLES[state.role]):
        return None
    try:
        query = _queries(frame, picked.get("query", ""), shape.query, state)
        run, gold = pl.DataFrame(schema=RUN), pl.DataFrame(schema=GOLD)
        if "retrieved" in ROLES[state.role]:
            run = _run(frame, query, picked["retrieved"], picked.get("scores", ""))
        if "gold" in ROLES[state.role]:
            grouped = shape.items is not None
            gold = _gold(query, frame[picked["gold"]], state.items, grouped=grouped)
            about = _about(frame, query, shape)
        else:
            about = query.to_frame()
    except _DoubtError:
        return None
    state.records += frame.height
    state.pending.append(query)
    if "gold" in ROLES[state.role]:
        state.items += int(frame[picked["gold"]].list.len().sum())
    return Part(run, gold, about)


def _queries(frame: pl.DataFrame, name: str, names: tuple[str, ...], state: State) -> pl.Series:
    """Return the ids of the records, or their numbers where they carry none."""
    if not name:
        if any(known in frame.columns for known in names):  # but all null
            raise _DoubtError
        first = state.records + 1
        numbers = pl.int_range(first, first + frame.height, eager=True)
        query = numbers.cast(pl.String).alias("query")
    else:
        query = _ids(frame[name]).alias("query")
        if query.null_count() or blank_ids(query).any():
            raise _DoubtError
    if query.n_unique() < len(query):
        raise _DoubtError
    if (state.broken.skip or state.queries) and not state.known().isdisjoint(query):
        raise _DoubtError
    return query


def _ids(column: pl.Series) -> pl.Series:
    """Return a column of ids as text, if all of them are texts or all whole numbers."""
    if column.dtype not in IDS:
        raise _DoubtError
    if column.dtype == pl.String:
        # comparing is faster than searching, and most ids begin with a letter before t
        unusual = (column < ":") | (column >= "t") | ((column >= "[") & (column < "]"))
        if (unusual.any() and column.str.contains(COERCED).any()) or (column == "false").any():
            raise _DoubtError
    return column.cast(pl.String)


def _run(frame: pl.DataFrame, query: pl.Series, name: str, scores: str) -> pl.DataFrame:
    """Make the rows of a run; an empty list is a row without a document."""
    lists = _lists(frame[name])
    columns = {"query": query, "unit": lists}
    if scores:
        columns["score"] = _lists(frame[scores])
        if (columns["score"].list.len() != lists.list.len()).any():
            raise _DoubtError
    rows = pl.DataFrame(columns).explode(list(columns)[1:], empty_as_null=True)
    doc, score = _unit_columns(rows["unit"])
    if doc.null_count() != (lists.list.len() == 0).sum():  # a null among the documents
        raise _DoubtError
    if scores:
        score = _numbers(rows["score"])
    if score is None:
        score = pl.repeat(None, len(doc), dtype=pl.Float64, eager=True)
    return pl.DataFrame({"query": rows["query"], "doc": doc, "score": score})


def _unit_columns(units: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    if not isinstance(units.dtype, pl.Struct):
        return _ids(units), None
    names = {entry.name for entry in units.dtype.fields}
    if "doc" not in names or "id" in names:
        raise _DoubtError
    score = _numbers(units.struct.field("score")) if "score" in names else None
    return _ids(units.struct.field("doc")), score


def _gold(query: pl.Series, lists: pl.Series, before: int, *, grouped: bool) -> pl.DataFrame:
    """Make the rows of a gold; `before` items were numbered already."""
    columns = {"query": query, "item": _lists(lists)}
    rows = pl.DataFrame(columns).explode("item", empty_as_null=False)
    if rows["item"].null_count():
        raise _DoubtError
    item = rows["item"]
    grade = pl.repeat(1.0, len(item), eager=True)
    if isinstance(item.dtype, pl.Struct):
        item, grade = _graded(item, grade)
    if grouped and not isinstance(item.dtype, pl.List):
        raise _DoubtError
    rows = pl.DataFrame({"query": rows["query"], "doc": item, "grade": grade})
    if isinstance(item.dtype, pl.List):
        sizes = _lists(item).list.len()
        if (sizes == 0).any():
            raise _DoubtError
        number = pl.int_range(before + 1, before + 1 + len(item), eager=True)
        rows = rows.with_columns(group=number.set(sizes == 1, None)).explode("doc")
    else:
        rows = rows.with_columns(group=pl.lit(None, pl.Int64))
    doc = _ids(rows["doc"])
    if doc.null_count() or blank_ids(doc).any():
        raise _DoubtError
    return rows.with_columns(doc=doc)


def _graded(item: pl.Series, grade: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the documents and the grades of items that are objects."""
    names = {entry.name for entry in item.dtype.fields}  # type: ignore[attr-defined]
    docs = names & {"docs", "doc"}
    if len(docs) != 1:
        raise _DoubtError
    if "grade" in names:
        grade = _numbers(item.struct.field("grade"))
        if grade.null_count():
            raise _DoubtError
    return item.struct.field(docs.pop()), grade


def _lists(column: pl.Series) -> pl.Series:
    if not isinstance(column.dtype, pl.List) or column.null_count():
        raise _DoubtError
    return column


def _numbers(column: pl.Series) -> pl.Series:
    if column.dtype not in NUMBERS:
        raise _DoubtError
    return column.cast(pl.Float64)


def _about(frame: pl.DataFrame, query: pl.Series, shape: Shape) -> pl.DataFrame:
    """Return what describes the queries: lists as JSON, objects only with care."""
    picked = shape.pick(frame.columns)
    named: list[str] = [name for name in ("question", "reference") if name in picked]
    columns = {name: _described(_only(frame[picked[name]])) for name in named}
    columns |= {name: _described(frame[name]) for name in shape.rest(frame.columns)}
    return pl.DataFrame({"query": query} | columns)


def _only(column: pl.Series) -> pl.Series:
    """Take answers out of lists of one, as `Shape.native` does."""
    if not isinstance(column.dtype, pl.List):
        return column
    if (column.list.len() != 1).any():
        raise _DoubtError
    return column.list.first()


def _described(column: pl.Series) -> pl.Series:
    kind = column.dtype
    if kind == pl.String and column.str.contains(r"^[\[{]").any():  # or is it an object?
        raise _DoubtError
    if kind in PLAIN:
        return column
    if kind not in (pl.List(pl.String), pl.List(pl.Null)):
        raise _DoubtError
    texts = column.list.explode(empty_as_null=False, keep_nulls=False).cast(pl.String)
    if texts.str.contains(r"^[-\d\[{tf]").any():  # or is it a number?
        raise _DoubtError
    rows = column.to_list()
    listed = [None if row is None else json.dumps(row, ensure_ascii=False) for row in rows]
    return pl.Series(column.name, listed, dtype=pl.String)
