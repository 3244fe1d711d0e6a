"""Frames with one row per query and lists in the rows, as AutoRAG and LiveRAG write them.

Rows that are all alike are read in bulk, without a Python loop; so are lines of JSON. Whatever is
not certainly read as `findwell.io.read.records` would read it (other types, nulls, blanks,
repetitions) is read row by row.
"""

from __future__ import annotations

import functools
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from findwell.core.columns import blank_ids
from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.core.timing import TIME_COLUMNS
from findwell.io.read.alike import DoubtError, doubt_if
from findwell.io.read.by_document import known_columns, undoubled
from findwell.io.read.mapping import NO_FIELDS, SIDES, Fields, reach, renamed
from findwell.io.read.records import (
    FIRST_RECORDS,
    GOLD,
    RUN,
    TEXT,
    Collected,
    Entry,
    RecordRows,
    RecordScan,
    find_shape,
    is_own_entry,
    name_of,
    note_rivals,
    one_line,
    read_part,
    texts_as_ids,
)
from findwell.io.read.shapes import ROLES, shape_of
from findwell.io.read.vocabulary import GRADE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.io.read.delimited import TablePlace
    from findwell.io.read.format import ReadContext
    from findwell.io.read.shapes import Shape

# what polars makes of a number, a truth or an object among texts
COERCED = r"^(?:[\[{]|true$|false$|-?\d+[.eE]|-0$|-?inf|NaN)"
COERCED_WHOLE = r"^(?:[\[{].*|true|false|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|-?inf|NaN)$"
IDS = (pl.String, pl.Int64, pl.Null)
NUMBERS = (pl.Int64, pl.Float64, pl.Null)
PLAIN = (pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Null)


def is_by_query(columns: list[str], role: str, mapped: Fields = NO_FIELDS) -> bool:
    """Tell a table with one row per query from one with one row per document."""
    named = known_columns(list(renamed(columns, mapped).values())).keys()
    by_document = {"query", "doc"} <= named and SIDES.isdisjoint(mapped.values())
    found = {name.partition(".")[0] for name in mapped if name not in columns} <= set(columns)
    paths = [name for name in mapped if found and name not in columns]  # inside objects
    return not by_document and shape_of([*columns, *paths], role, mapped) is not None


def read_frame(
    frame: pl.DataFrame, role: str, place: TablePlace, reading: ReadContext, *, cells: bool = False
) -> Collected:
    """Read the rows in bulk where they are alike, otherwise one by one.

    With `cells` every value is a text, as in a CSV file.
    """
    mapped = reading.fields
    rows = functools.partial(_rows, frame, place, mapped)
    shape = find_shape(islice(rows(), FIRST_RECORDS), role, mapped=mapped)
    _refuse_doubled(frame.columns, shape, place.where)
    state = RecordScan(shape, role, reading)
    inside = any(name not in frame.columns for name in mapped)
    part = None if cells or inside else columnar_part(frame, state)
    if part is None:
        part = read_part(rows(cells=cells), state)
    first = list(islice(rows(cells=cells), FIRST_RECORDS))
    return Collected([part], state, first, texts_as_ids(state, rows() if shape.texts else ()))


def _refuse_doubled(columns: list[str], shape: Shape, where: str) -> None:
    """Refuse two columns of one name that counts: one of them would be lost."""
    names = [name for name in map(undoubled, columns) if name in shape.main()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"the column {twice!r} occurs more than once", where=where, fix="keep one of them"
        )


def _rows(
    frame: pl.DataFrame, place: TablePlace, mapped: Fields, *, cells: bool = False
) -> Iterator[Entry]:
    """Go through the rows as records, without empty rows."""
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        if any(value is not None for value in row.values()):
            yield Entry(reach(row, mapped), number, functools.partial(place.row, number), cells)


def columnar_part(frame: pl.DataFrame, state: RecordScan) -> RecordRows | None:
    """Return what the records of a frame make, or None if they need care."""
    shape = state.shape
    present = [name for name, kind in frame.schema.items() if kind != pl.Null]
    picked = shape.pick(present)
    if state.last_wins or any(side not in picked for side in ROLES[state.role]):
        return None
    try:
        query = _queries(frame, picked, state)
        run, gold = (pl.DataFrame(schema=rows | _kept(state)) for rows in (RUN, GOLD))
        if "retrieved" in ROLES[state.role]:
            run = _run(frame, query, picked, state)
        if "gold" in ROLES[state.role]:
            gold = _gold(frame, query, picked["gold"], state)
        if "gold" in ROLES[state.role] or state.reading.about:
            about = _about(frame, query, shape)
        else:
            times = [_described(frame[name]) for name in TIME_COLUMNS if name in frame.schema]
            about = query.to_frame().with_columns(times)
    except DoubtError:
        return None
    for chosen, other in shape.rivals(present):
        both = frame[chosen].is_not_null() & frame[other].is_not_null()
        note_rivals(state, chosen, other, int(both.sum()))
    state.records += frame.height
    state.pending.append(query)
    if "gold" in ROLES[state.role]:
        state.items += int(frame[picked["gold"]].list.len().sum())
    return RecordRows(run, gold, about)


def _queries(frame: pl.DataFrame, picked: dict[str, str], state: RecordScan) -> pl.Series:
    """Return what names the queries of the records: ids, questions or positions."""
    named_by = name_of(dict.fromkeys(picked, "?"), state.reading.names)
    ids, questions = state.shape.query, state.shape.question
    better = {"id": (), "question": ids, "position": (*ids, *questions)}[named_by]
    all_null = any(name in frame.columns for name in better)  # otherwise it would be picked
    doubt_if(all_null and state.reading.names == "id")
    if named_by == "position":
        first = state.records + 1
        query = pl.int_range(first, first + frame.height, eager=True).cast(pl.String)
    elif named_by == "question":
        asked = frame[picked["question"]]
        doubt_if(asked.dtype != pl.String or asked.str.contains(COERCED_WHOLE).any())
        query = pl.Series([text and one_line(text) for text in asked], dtype=pl.String)
    else:
        query = _ids(frame[picked["query"]])
    doubt_if(query.null_count() or blank_ids(query).any() or query.n_unique() < len(query))
    looked_up = state.reading.skip or state.queries or named_by == "question"
    doubt_if(looked_up and not state.known().isdisjoint(query))
    return query.alias("query")


def _ids(column: pl.Series, *, text: bool = False) -> pl.Series:
    """Return a column of ids as text, if all of them are texts or all whole numbers."""
    doubt_if(column.dtype not in IDS or (text and column.dtype == pl.Int64))
    if column.dtype == pl.Null:  # every list is empty
        return column.cast(pl.String)
    if text:
        doubt_if(column.str.contains(COERCED_WHOLE).any())
    elif column.dtype == pl.String:
        # comparing is faster than searching, and most ids begin with a letter before t
        unusual = (column < ":") | (column >= "t") | ((column >= "[") & (column < "]"))
        doubt_if(unusual.any() and column.str.contains(COERCED).any())
        doubt_if((column == "false").any())
    return column.cast(pl.String)


def _kept(state: RecordScan) -> dict[str, Any]:
    """Return the columns that are kept next to the ids."""
    return TEXT if state.reading.texts else {}


def _run(
    frame: pl.DataFrame, query: pl.Series, picked: dict[str, str], state: RecordScan
) -> pl.DataFrame:
    """Make the rows of a run; an empty list is a row without a document."""
    lists = _lists(frame[picked["retrieved"]])
    columns = {"query": query, "unit": lists}
    if "scores" in picked:
        columns["score"] = _as_long(frame[picked["scores"]], lists)
    texts = _text_field(frame, "retrieved", state)
    if texts is not None and texts != picked["retrieved"]:
        columns["text"] = _as_long(frame[texts], lists)
    rows = pl.DataFrame(columns).explode(list(columns)[1:], empty_as_null=True)
    units = rows["unit"]
    fields = units.struct.unnest() if isinstance(units.dtype, pl.Struct) else pl.DataFrame()
    doubt_if(isinstance(units.dtype, pl.Struct) and ("doc" not in fields or "id" in fields))
    doubt_if(fields.width and not is_own_entry(tuple(fields.columns), state.reading.id_from))
    doubt_if("rank" in fields)
    doc = _ids(fields["doc"] if fields.width else units, text=texts == picked["retrieved"])
    doubt_if(doc.null_count() != (lists.list.len() == 0).sum())  # a null among the documents
    score = rows["score"] if "scores" in picked else fields.get_column("score", default=None)
    if score is None:
        score = pl.repeat(None, len(doc), dtype=pl.Float64, eager=True)
    made = pl.DataFrame({"query": rows["query"], "doc": doc, "score": _numbers(score)})
    state.carry("retrieved", fields)
    if not state.reading.texts:
        return made
    if texts is not None:
        fields = pl.DataFrame({"text": doc if texts == picked["retrieved"] else rows["text"]})
    return made.with_columns(_facts(fields, len(doc)))


def _gold(frame: pl.DataFrame, query: pl.Series, name: str, state: RecordScan) -> pl.DataFrame:
    """Make the rows of the gold."""
    lists = _lists(frame[name])
    columns = {"query": query, "item": lists}
    texts = _text_field(frame, "gold", state)
    if texts is not None and texts != name:
        columns["text"] = _as_long(frame[texts], lists)
    rows = pl.DataFrame(columns).explode(list(columns)[1:], empty_as_null=False)
    item = rows["item"]
    doubt_if(item.null_count())
    grade = pl.repeat(1.0, len(item), eager=True)
    fields = rows.select("text") if "text" in rows.columns else pl.DataFrame()
    if isinstance(item.dtype, pl.Struct):
        fields = item.struct.unnest()
        doubt_if(not is_own_entry(tuple(fields.columns), state.reading.id_from))
        item, grade = _graded(item, grade)
    state.carry("gold", fields)
    doubt_if(state.shape.items is not None and not isinstance(item.dtype, pl.List))
    made = pl.DataFrame({"query": rows["query"], "doc": item, "grade": grade})
    if state.reading.texts:
        made = made.with_columns(_facts(fields, len(item)))
    made = _grouped(made, state.items)
    doc = _ids(made["doc"], text=texts == name)
    doubt_if(doc.null_count() or blank_ids(doc).any())
    if texts == name:
        made = made.with_columns(text=doc)
    return made.with_columns(doc=doc).select([*GOLD, *_kept(state)])


def _grouped(rows: pl.DataFrame, before: int) -> pl.DataFrame:
    """Take the documents of groups apart; `before` items were numbered already."""
    if not isinstance(rows["doc"].dtype, pl.List):
        return rows.with_columns(group=pl.lit(None, pl.Int64))
    sizes = _lists(rows["doc"]).list.len()
    doubt_if((sizes == 0).any() or isinstance(rows["doc"].dtype.inner, pl.Struct))
    second = rows["doc"].list.get(1, null_on_oob=True).cast(pl.String)
    doubt_if((second.str.contains(r"^-?\d+$") & (sizes == 2)).any())  # or is it a grade?
    number = pl.int_range(before + 1, before + 1 + rows.height, eager=True)
    return rows.with_columns(group=number.set(sizes == 1, None)).explode("doc")


def _text_field(frame: pl.DataFrame, side: str, state: RecordScan) -> str | None:
    """Return the field that holds the texts of a side, if they are wanted."""
    if not state.reading.texts:
        return None
    present = [name for name, kind in frame.schema.items() if kind != pl.Null]
    return state.shape.pick_text(present, side)


def _as_long(column: pl.Series, lists: pl.Series) -> pl.Series:
    """Return lists that are as long as others."""
    doubt_if((_lists(column).list.len() != lists.list.len()).any())
    return column


def _facts(fields: pl.DataFrame, height: int) -> list[pl.Series]:
    """Return text, start, end and source, null where an entry has none."""
    if "quote" in fields.columns and "text" not in fields.columns:
        fields = fields.rename({"quote": "text"})
    columns = []
    for name, kind in TEXT.items():
        given = fields.get_column(name, default=None)
        if given is None:
            given = pl.repeat(None, height, dtype=kind, eager=True)
        elif given.dtype not in (kind, pl.Null):
            raise DoubtError
        columns.append(given.cast(kind).alias(name))
    text, start, end, source = columns
    doubt_if(text.str.contains(COERCED_WHOLE).any() or (start.is_null() != end.is_null()).any())
    doubt_if((start > end).any() or (start < 0).any())
    return [text, start, end, source.set(start.is_null(), None)]


def _graded(item: pl.Series, grade: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the documents and the grades of items that are objects."""
    names = {entry.name for entry in item.dtype.fields}  # type: ignore[attr-defined]
    docs = names & {"docs", "doc"}
    doubt_if(len(docs) != 1 or names & {*GRADE_NAMES, "score"} - {"grade"})
    if "grade" in names:
        grade = _numbers(item.struct.field("grade"))
        doubt_if(grade.null_count())
    return item.struct.field(docs.pop()), grade


def _lists(column: pl.Series) -> pl.Series:
    doubt_if(not isinstance(column.dtype, pl.List) or column.null_count())
    return column


def _numbers(column: pl.Series) -> pl.Series:
    doubt_if(column.dtype not in NUMBERS)
    return column.cast(pl.Float64)


def _about(frame: pl.DataFrame, query: pl.Series, shape: Shape) -> pl.DataFrame:
    """Return what describes the queries: lists as JSON, objects only with care."""
    picked = shape.pick(frame.columns)
    named: list[str] = [name for name in ("question", "reference") if name in picked]
    columns = {}
    for name in named:
        column = frame[picked[name]]
        if isinstance(column.dtype, pl.List):  # answers in lists of one, as in `Shape.native`
            doubt_if((column.list.len() != 1).any())
            column = column.list.first()
        columns[name] = _described(column)
    known = {*columns, "retrieved", "gold"}  # none of the others replaces what was picked
    rest = (name for name in shape.rest(frame.columns) if name not in known)
    columns |= {name: _described(frame[name]) for name in rest}
    return pl.DataFrame({"query": query} | columns)


def _described(column: pl.Series) -> pl.Series:
    kind = column.dtype
    doubt_if(kind == pl.String and column.str.contains(r"^[\[{]").any())  # or is it an object?
    if kind in PLAIN:
        return column
    doubt_if(kind not in (pl.List(pl.String), pl.List(pl.Null)))
    texts = column.list.explode(empty_as_null=False, keep_nulls=False).cast(pl.String)
    doubt_if(texts.str.contains(r"^[-\d\[{tf]").any())  # or is it a number?
    rows = column.to_list()
    listed = [None if row is None else json.dumps(row, ensure_ascii=False) for row in rows]
    return pl.Series(column.name, listed, dtype=pl.String)
