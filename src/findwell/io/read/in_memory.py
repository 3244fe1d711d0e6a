"""Python objects: dicts by query, lists of records and data frames; and the types of all inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from findwell.core.columns import blank_ids
from findwell.core.data import Gold, Run, RunStream
from findwell.core.errors import InputError
from findwell.core.findings import finding_about, shorten
from findwell.core.frames import pl
from findwell.io.read import Kind, kind_of
from findwell.io.read.alike import alike_part
from findwell.io.read.by_document import records_of_pairs
from findwell.io.read.by_query import read_frame
from findwell.io.read.delimited import TablePlace
from findwell.io.read.format import STRICT, ReadContext
from findwell.io.read.mapping import NO_FIELDS, Fields, reach
from findwell.io.read.objects import is_answer
from findwell.io.read.packed import rising_scores
from findwell.io.read.records import (
    Collected,
    Entry,
    RecordScan,
    entries,
    find_shape,
    read_part,
    texts_as_ids,
)
from findwell.io.read.shapes import GIVE_GOLD
from findwell.io.read.tables import frame, frame_gold, frame_run
from findwell.io.read.values import identifier, refuse_repeated

if TYPE_CHECKING:
    from findwell.core.findings import Finding
    from findwell.io.read.format import Samples


class DataFrameLike(Protocol):
    """A data frame of any library: polars, pandas, and others with named columns."""

    @property
    def columns(self) -> Any:  # noqa: ANN401
        """The names of the columns."""


class ArrowTableLike(Protocol):
    """A table of any library that exports Arrow, such as pyarrow's or DuckDB's."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# What `findwell.io.load_run` and `findwell.io.load_gold` take. A dict maps queries to documents; a
# list holds one record per query.
PathLike: TypeAlias = str | os.PathLike[str]
TableLike: TypeAlias = DataFrameLike | ArrowTableLike
ByQuery: TypeAlias = Mapping[Any, Any]  # to lists, dicts by document, or what a retriever answered
Records: TypeAlias = Iterable[Any]  # of dicts; type checkers see lists of unlike dicts as objects
RunLike: TypeAlias = Run | RunStream | PathLike | TableLike | ByQuery | Records
GoldLike: TypeAlias = Gold | PathLike | TableLike | ByQuery | Records

BY_KEY = {Kind.BY_QUERY, Kind.NAMED}  # what looks like several inputs may be by query after all


def run_from_objects(
    data: Any,  # noqa: ANN401
    name: str,
    where: str = "",
    reading: ReadContext = STRICT,
) -> RunStream:
    """Return the run of {query: {doc: score}}, {query: [doc]}, a table, or records."""
    where = where or name
    if kind_of(data) in BY_KEY:
        _refuse_repeated_ids(data, where)
        if any(isinstance(docs, Mapping) and not is_answer(docs) for docs in data.values()):
            return _scored(data, name, where).stream()
        records = ({"query": query, "retrieved": docs} for query, docs in data.items())
        read = read_records(entries(records, where, ""), "run", reading).run(name)
        return replace(read, findings=_id_mix(data), about=lambda: None, named_by="id")
    table = frame(data)
    if table is not None:
        return frame_run(table, name, TablePlace(where), reading)
    if _holds_records(data):
        return read_records(entries(data, where), "run", reading, reading.fields).run(name)
    raise _not_understood(data, "run", "{query: {doc: score}}, {query: [doc]}")


def gold_from_objects(
    data: Any,  # noqa: ANN401
    where: str = "gold",
    reading: ReadContext = STRICT,
) -> Gold:
    """Return the gold of {query: {doc: grade}}, {query: [doc or [doc, …]]}, a table, or records."""
    if kind_of(data) in BY_KEY:
        _refuse_repeated_ids(data, where)
        if data.keys() >= {"queries", "relevant_docs"}:
            records = _llama_index(data, where)
        elif data and all(
            isinstance(docs, Mapping) and not is_answer(docs) for docs in data.values()
        ):
            known = pl.DataFrame({"query": _ids(data, where)}).unique(maintain_order=True)
            return Gold.build(_flatten(data, where, "grade"), queries=known, findings=_id_mix(data))
        else:
            records = [{"query": query, "gold": items} for query, items in data.items()]
        return read_records(entries(records, where, ""), "gold", reading).gold()
    table = frame(data)
    if table is None and _holds_records(data):
        listed = list(data)
        table = records_of_pairs(listed, reading.fields)
        if table is None:
            return read_records(entries(listed, where), "gold", reading, reading.fields).gold()
    if table is None:
        raise _not_understood(data, "gold", "{query: {doc: grade}}, {query: [doc, [doc, doc]]}")
    return frame_gold(table, TablePlace(where), reading)


def samples_from_objects(
    data: Any,  # noqa: ANN401
    name: str,
    where: str = "records",
    reading: ReadContext = STRICT,
) -> Samples:
    """Return run and gold of records that hold both, in a list or a table."""
    table = frame(data)
    if table is not None:
        return read_frame(table, "samples", TablePlace(where), reading).samples(name)
    if not _holds_records(data):
        what = f"without gold labels, one list of records is needed, not {type(data).__name__}"
        fix = f"give {GIVE_GOLD}, or records with the fields retrieved and gold"
        raise InputError(what, where=where, fix=fix)
    return read_records(entries(data, where), "samples", reading, reading.fields).samples(name)


def read_records(
    given: Iterable[Entry], role: str, reading: ReadContext, mapped: Fields = NO_FIELDS
) -> Collected:
    """Read records one by one; their shape is that of the first one that has any."""
    listed = list(given)
    if mapped:
        listed = [each._replace(value=reach(each.value, mapped)) for each in listed]
    state = RecordScan(find_shape(listed, role, skip=reading.skip, mapped=mapped), role, reading)
    part = alike_part(listed, state) or read_part(listed, state)
    texts = texts_as_ids(state, listed if state.shape.texts else ())
    return Collected([part], state, listed, texts)


def _holds_records(data: object) -> bool:
    """Tell whether records are read from this one by one."""
    return isinstance(data, Iterable) and kind_of(data) not in {Kind.PATH, Kind.OTHER, *BY_KEY}


def _refuse_repeated_ids(data: Mapping[Any, Any], where: str) -> None:
    """Refuse an id that is the name of two entries: one of them would be lost silently."""
    refuse_repeated(data, "the query", where=where)
    for query, docs in data.items():
        refuse_repeated(docs, f"in {query!r} the id", where=where)


def _llama_index(data: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Return the records of LlamaIndex's {queries, corpus, relevant_docs}."""
    queries, relevant = data["queries"], data["relevant_docs"]
    for name, part in (("queries", queries), ("relevant_docs", relevant)):
        if not isinstance(part, Mapping):
            what = f"{name!r} holds a {type(part).__name__}, not an object by query id"
            fix = "write {queries: {id: text}, corpus: {id: text}, relevant_docs: {id: [doc]}}"
            raise InputError(what, where=where, fix=fix)
    return [
        {"query": name, "question": queries.get(name), "gold": relevant.get(name)}
        for name in dict.fromkeys([*queries, *relevant])
    ]


def _scored(data: Mapping[Any, Any], name: str, where: str) -> Run:
    rows = _flatten(data, where, "score")
    empty = [query for query, docs in data.items() if not docs]
    if empty:  # a row without a document
        rows = pl.concat([rows, pl.DataFrame({"query": _ids(empty, where)})], how="diagonal")
    return Run(name, rows, "mapped", (*_id_mix(data), *rising_scores(data)))


def _flatten(data: Mapping[Any, Any], where: str, name: str) -> pl.DataFrame:
    """Turn {query: {doc: number}} into rows without a Python loop over the documents."""
    wrong = next((query for query, docs in data.items() if not isinstance(docs, Mapping)), None)
    if wrong is not None:
        raise InputError(
            f"query {wrong!r} holds a {type(data[wrong]).__name__} where others hold a dict",
            where=where,
            fix="give every query a dict {doc: number}, or every query a list",
        )
    sizes = [len(docs) for docs in data.values()]
    docs = _ids(chain.from_iterable(data.values()), where)
    numbers = chain.from_iterable(docs.values() for docs in data.values())
    try:
        column = pl.Series(np.fromiter(numbers, np.float64, sum(sizes)))
    except (TypeError, ValueError, OverflowError) as error:
        what = f"a document carries something that is not a number: {shorten(str(error), 120)}"
        raise InputError(what, where=where, fix="give every document a number") from None
    queries = _ids(data, where).gather(np.repeat(np.arange(len(sizes)), sizes))
    return pl.DataFrame({"query": queries, "doc": docs, name: column})


def _ids(values: Iterable[Any], where: str) -> pl.Series:
    """Return ids as a column of text."""
    listed = list(values)
    try:
        ids = pl.Series(listed, dtype=pl.String)
    except (TypeError, UnicodeEncodeError, pl.exceptions.PolarsError):
        ids = None
    if ids is None or ids.null_count() or blank_ids(ids).any():
        ids = pl.Series(list(map(identifier, listed, repeat(where))), dtype=pl.String)
    return ids


def _id_mix(data: Mapping[Any, Any]) -> tuple[Finding, ...]:
    """Notice queries given as texts and as numbers in one mapping: "1" and 1 become the same."""
    kinds = {type(query).__name__: query for query in data}
    names = sorted(kinds)
    found = finding_about(
        "id-type-mix",
        [repr(kinds[name]) for name in names] if len(names) > 1 else [],
        f"# types of query ids are mixed ({', '.join(names)}); all are read as text.",
        "use one type for all ids",
    )
    return tuple(found)


def _not_understood(data: object, role: str, forms: str) -> InputError:
    what = f"a {type(data).__name__} is not a {role}"
    return InputError(what, fix=f"pass a path, {forms}, a data frame, or a list of records")
