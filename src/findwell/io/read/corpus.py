"""Texts by id: the documents of a corpus, or the chunks that were cut from them.

A chunk may say which document it was cut from (`source`) and which characters of that it holds
(`start`, `end`; the end is not part of it). Offsets count Unicode characters of the text as it is:
line breaks are not translated, and only a byte-order mark at the beginning of a file is dropped. A
title next to the text is not read, since offsets count from the beginning of the text.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from findwell.core.columns import blank_ids
from findwell.core.errors import InputError, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.io.read.by_query import COERCED
from findwell.io.read.delimited import TablePlace
from findwell.io.read.format import BYTE_ORDER_MARK, EntryNotes, Source, not_readable, not_utf8
from findwell.io.read.json import all_entries as json_lines
from findwell.io.read.json import read as read_json
from findwell.io.read.objects import is_answer, is_result, known_source, make_entries, results_of
from findwell.io.read.records import Entry, entries
from findwell.io.read.tables import frame, read_table
from findwell.io.read.values import HALF_PAIR, identifier, loads, no_column, refuse_repeated
from findwell.io.read.vocabulary import CORPUS_COLUMNS

SCHEMA: dict[str, type[pl.DataType]] = {"doc": pl.String, "text": pl.String, "source": pl.String}
SCHEMA |= {"start": pl.Int64, "end": pl.Int64}
MARKS = ("date", "forbidden")  # what measures may ask about documents; kept as it is written
SCHEMA |= dict.fromkeys(MARKS, pl.String)
PAIR = "start_end_idx"  # AutoRAG's: its end is the last character, and (0, 0) means unknown
NESTED = ("metadata", PAIR)
PLACE = ("text", "source", "start", "end")
FILES = (".txt", ".md")
BEIR = "corpus.jsonl"


@takes_options()
def load_corpus(source: object, *, id_from: str | None = None) -> pl.DataFrame:
    """Return a table with one row per text: doc, text and, where given, source, start and end.

    Takes {id: text}, {id: {"text": …}}, LlamaIndex's {"corpus": {id: text}}, a frame, a list of
    records, and paths: JSON of these, JSON lines (BEIR's corpus.jsonl among them), Parquet
    (AutoRAG's corpus.parquet among them), CSV and TSV with a header, TSV of id and text without
    one, a text file, a folder of text files (*.txt, *.md; the id is the path inside it), and the
    folder of a BEIR dataset. The text may be missing where source, start and end are given.
    Documents, nodes and points of retrieval frameworks are records, too; `id_from` is the field
    that holds their ids, such as `metadata.chunk`, if not the usual one.

    >>> load_corpus({"a": "one", "b": {"title": "Two", "text": "two"}}).rows()
    [('a', 'one'), ('b', 'two')]
    """
    refuse_after_fork()
    if isinstance(source, str | os.PathLike):
        try:
            return _each_once(_read_path(Path(source), id_from), os.fspath(source))
        except OSError as error:
            raise not_readable(error, os.fspath(source)) from None
    return _each_once(_read_python(source, "corpus", id_from), "corpus")


def _read_path(path: Path, id_from: str | None) -> pl.DataFrame:
    if os.path.isdir(path):  # noqa: PTH112 - which never raises
        if not (path / BEIR).is_file():
            return _read_folder(path)
        path /= BEIR
    source = Source.of(path)
    if source.suffix in FILES:
        return _read_files({Path(source.where).name: source})
    if source.head().startswith(b"PAR1"):
        return _from_frame(*read_table(source), id_from)
    data = _decoded(source.read(), source.where).strip().encode()
    if not data:
        what = "the file contains only blank lines"
        raise InputError(what, where=source.where, fix="check what wrote the file")
    if data[:1] in (b"{", b"["):
        return _read_json(data, source, id_from)
    return _read_delimited(data, source)


def _read_folder(path: Path) -> pl.DataFrame:
    files = sorted(entry for entry in path.rglob("*") if entry.is_file())
    found = [entry for entry in files if entry.suffix.lower() in FILES]
    if not found:
        listed = ", ".join(entry.name for entry in files[:5]) or "nothing"
        what = f"no text file in this folder (*{', *'.join(FILES)}), only {listed}"
        fix = "name the file that holds the texts, or write each text into a file of its own"
        raise InputError(what, where=str(path), fix=fix)
    return _read_files({file.relative_to(path).as_posix(): Source(file) for file in found})


def _read_files(files: Mapping[str, Source]) -> pl.DataFrame:
    texts = [_decoded(file.read(), file.where) for file in files.values()]
    return pl.DataFrame({"doc": list(files), "text": texts})


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(error, f"{where}, line {line}") from None


def _read_delimited(data: bytes, source: Source) -> pl.DataFrame:
    """Read a text table; two columns between tabs need no header."""
    header = data.partition(b"\n")[0].decode().split("\t")
    if len(header) == 2 and "text" not in _names(tuple(header)):
        rows = [line.decode().rstrip("\r").split("\t", 1) for line in data.split(b"\n")]
        records = [dict(zip(("doc", "text"), row, strict=False)) for row in rows]
        return _from_records(entries(records, source.where, "line"))
    table, place = read_table(source)
    blank = pl.col(_names(tuple(table.columns)).get("text", [])).fill_null("")
    return _from_frame(table.with_columns(blank), place)


def _read_json(data: bytes, source: Source, id_from: str | None) -> pl.DataFrame:
    """Read one JSON value, or one per line, which is first tried without a Python loop."""
    first, _, rest = data.partition(b"\n")
    several = data.startswith(b"{") and rest.lstrip().startswith(b"{")
    try:
        record = loads(first) if several or not rest else None
    except (ValueError, RecursionError):
        record = None  # reported below
    names = _names(tuple(record)) if isinstance(record, dict) else {}
    if not several and not {"doc", "text"} <= names.keys():
        return _read_python(read_json(source), source.where, id_from)
    if (
        id_from is None
        and not names.keys() & set(NESTED)
        and not (b"\\" in data and HALF_PAIR.search(data))
    ):
        try:
            schema = {column: SCHEMA[name] for name, column in names.items()}
            table = _in_bulk(pl.read_ndjson(data, schema=schema))
        except (pl.exceptions.PolarsError, ValueError):
            table = None
        if table is not None and table.height == data.count(b"\n") + 1:
            return table
    return _from_records(json_lines(source), id_from=id_from)


def _read_python(data: object, where: str, id_from: str | None) -> pl.DataFrame:
    if is_answer(data) and frame(data) is None:
        return _from_records(entries(results_of(data)[0], where), id_from=id_from)
    if isinstance(data, Mapping):
        inner = data.get("corpus")
        given = inner if isinstance(inner, Mapping) else data
        refuse_repeated(given, "the id", where=where)
        records = (
            {**(text if isinstance(text, Mapping) else {"text": text}), "chunk_id": name}
            for name, text in given.items()
        )
        return _from_records(entries(records, where, ""))
    table = frame(data)
    if table is not None:
        return _from_frame(table, TablePlace(where), id_from)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _from_records(entries(data, where), id_from=id_from)
    what = f"a {type(data).__name__} is not a corpus"
    fix = "pass a path, {id: text}, a data frame, or a list of records"
    raise InputError(what, where=where, fix=fix)


@functools.lru_cache(maxsize=64)
def _names(columns: tuple[str, ...]) -> dict[str, str]:
    """Map findwell's names to the columns that hold them."""
    folded = {str(name).strip().casefold(): name for name in reversed(columns)}
    found = {name: name for name in NESTED if name in columns}
    for name, spellings in CORPUS_COLUMNS.items():
        present = [word for word in spellings if word in folded]
        if present:
            found[name] = folded.pop(present[0])
    return found


def _from_frame(table: pl.DataFrame, place: TablePlace, id_from: str | None = None) -> pl.DataFrame:
    names = _names(tuple(table.columns))
    if id_from is not None:
        return _from_records(_rows(table, place), id_from=id_from)
    if "doc" not in names:
        raise _missing("doc", "id", tuple(table.columns), where=place.where)
    found = None if names.keys() & set(NESTED) else _in_bulk(table)
    if found is not None:
        return found
    return _from_records(_rows(table.select(names.values()), place), tuple(table.columns))


def _rows(table: pl.DataFrame, place: TablePlace) -> Iterator[Entry]:
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        yield Entry(row, number, functools.partial(place.row, number))


def _in_bulk(table: pl.DataFrame) -> pl.DataFrame | None:
    """Return the columns under findwell's names; None if something in them needs care."""
    names = dict(_names(tuple(table.columns)))
    if not {"doc", "text"} <= names.keys() or ("start" in names) != ("end" in names):
        return None
    marks = [
        table[names.pop(name)].cast(pl.String, strict=False).alias(name)
        for name in MARKS
        if name in names
    ]
    plain = table.select(pl.col(column).alias(name) for name, column in names.items())
    if any(not kind.is_integer() and kind != pl.String for kind in plain.dtypes):
        return None
    found = plain.cast({name: SCHEMA[name] for name in names}, strict=False)
    ids = [found[name] for name in ("doc", "source") if name in names]
    doubt = sum(found.null_count().row(0)) > 0
    doubt |= any(blank_ids(each).any() or each.str.contains(COERCED).any() for each in ids)
    doubt |= bool(found["text"].str.contains(r"^[\[{]").any())  # or was it a list, or an object?
    if "start" in names:
        doubt |= not ((found["start"] >= 0) & (found["start"] <= found["end"])).all()
    return None if doubt else found.with_columns(marks)


def _from_records(
    listed: Iterable[Entry], columns: tuple[str, ...] = (), *, id_from: str | None = None
) -> pl.DataFrame:
    """Read records one by one; `columns` names all fields where records hold only the known."""
    rows = []
    for entry in listed:
        try:
            rows.append(_row(_own_record(entry.value, id_from), columns))
        except InputError as error:
            raise InputError(error.what, where=entry.where(), fix=error.fix) from None
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    optional = ("source", "start", "end", *MARKS)
    return table.drop(name for name in optional if not table[name].count())


def _own_record(record: object, id_from: str | None) -> object:
    """Return a document, node or point of a retrieval framework as a record; others stay."""
    foreign = known_source(record) is not None if isinstance(record, Mapping) else is_result(record)
    if not foreign and (id_from is None or not isinstance(record, Mapping)):
        return record
    (entry,) = make_entries([record], id_from=id_from, notes=EntryNotes())
    return {"chunk_id": entry["doc"], **{name: entry[name] for name in PLACE if name in entry}}


def _row(record: object, columns: tuple[str, ...]) -> tuple[object, ...]:
    if not isinstance(record, Mapping):
        what = f"a {type(record).__name__} is not a record with an id and a text"
        raise InputError(what, fix='write records such as {"doc": "d1", "text": "…"}')
    given = {name: record[column] for name, column in _names(tuple(record)).items()}
    inner = given.get("metadata")
    if isinstance(inner, Mapping):  # where LangChain and AutoRAG say where a chunk was cut
        found = _names(("doc", *inner))
        wanted = ("source", "start", "end", *MARKS)
        given = {name: inner[found[name]] for name in wanted if name in found} | given
    if "doc" not in given:
        raise _missing("doc", "id", columns or tuple(record))
    doc = identifier(given["doc"], "")
    text, source = given.get("text"), given.get("source")
    start, end = _span(given, doc)
    if text is None and (source is None or end is None):
        raise _missing("text", f"text of {doc!r}", columns or tuple(record))
    if text is not None and not isinstance(text, str):
        raise InputError(f"the text of {doc!r} is of type {type(text).__name__}", fix="give a text")
    if text and not text.isascii() and any("\ud800" <= each <= "\udfff" for each in set(text)):
        what = f"the text of {doc!r} holds half of a character (a lone surrogate)"
        raise InputError(what, fix="write it again")
    marks = (None if given.get(name) is None else str(given[name]) for name in MARKS)
    return doc, text, None if source is None else str(source), start, end, *marks


def _span(given: Mapping[str, Any], doc: str) -> tuple[int | None, int | None]:
    """Return the first character and the one after the last, if they are known."""
    start, end = given.get("start"), given.get("end")
    pair = given.get(PAIR)
    if pair is not None and len(pair) == 2 and tuple(pair) != (0, 0):
        start, end = pair[0], int(pair[1]) + 1
    if start is None:
        return None, None
    try:
        first = int(start)
        last = first + len(given["text"]) if end is None else int(end)
    except (KeyError, TypeError, ValueError):
        first, last = 1, 0
    if not 0 <= first <= last:
        what = f"the offsets of {doc!r} are {start!r} and {end!r}"
        fix = "give the first character, counted from 0, and the one after the last"
        raise InputError(what, fix=fix)
    return first, last


def _missing(name: str, what: str, columns: tuple[str, ...], *, where: str = "") -> InputError:
    return no_column(what, name, CORPUS_COLUMNS[name], columns, where=where)


def _each_once(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """Drop repetitions; an id with two texts is an error, and so is a table without texts."""
    if not table.height:
        raise InputError("there is no text", where=where, fix="give at least one text with its id")
    table = table.unique(maintain_order=True)
    twice = table.filter(table["doc"].is_duplicated())
    if twice.height:
        what = f"the id {twice['doc'][0]!r} has more than one text"
        raise InputError(what, where=where, fix="give every text an id of its own")
    return table
