"""Queries: joining those of records without ids with the gold, and tables that describe them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from findwell.core.errors import InputError
from findwell.core.findings import FindingKind, finding_about, shorten
from findwell.core.frames import pl
from findwell.io.read.delimited import TablePlace, record_lines
from findwell.io.read.format import Look, Source
from findwell.io.read.json import all_entries
from findwell.io.read.records import one_line
from findwell.io.read.tables import frame, read_table
from findwell.io.read.values import describing, flat, identifier, plain_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from findwell.core.data import Gold, NamedBy, RunStream


def join_queries(
    stream: RunStream, gold: Gold, reopen: Callable[[NamedBy], RunStream]
) -> RunStream:
    """Return a run whose queries are named as the gold names them.

    Where one side has ids and the other only questions, the questions join them; where one side
    has neither, the first record goes with the first query and so on. `reopen` reads the run again
    with queries that are named by something else.
    """
    if stream.named_by == gold.named_by or not gold.queries.height:
        return stream
    if stream.named_by == "id":
        asking = reopen("question") if gold.named_by == "question" else stream
        return asking if asking.named_by == "question" else stream
    if stream.named_by == "question" and gold.named_by == "id":
        if "question" in gold.queries.columns:
            return _by_question(stream, gold)
        first = next(iter(stream.batches()), None)
        if first is not None and (gold.find(first["query"]) >= 0).any():
            return stream  # the ids of the gold are the questions
    return _by_position(reopen("position"), gold)


def _by_question(stream: RunStream, gold: Gold) -> RunStream:
    """Give the records of a run the ids under which the gold asks the same questions."""
    names = gold.queries["query"]
    asked = pl.Series(
        [text and one_line(text) for text in gold.queries["question"].cast(pl.String)],
        dtype=pl.String,
    )
    nth = pl.int_range(1, pl.len() + 1).over("asked")
    numbered = pl.when(nth == 1).then("asked").otherwise(pl.format("{} ({})", "asked", nth))
    table = pl.DataFrame({"asked": asked, "name": names}).select(numbered, "name").drop_nulls()
    if stream.whole is not None and not stream.whole["query"].is_in(table["asked"].implode()).any():
        first, asked = str(stream.whole["query"][0]), table["asked"]
        raise InputError(
            f"no question of the run is one of the gold: the run has {shorten(first, 60)!r}"
            + (f", the gold has {shorten(asked[0], 60)!r}" if len(asked) else ""),
            where=f"run {stream.name} and gold",
            fix="make the questions equal, or give both the ids of the queries",
        )

    def named(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(query=rows["query"].replace(table["asked"], table["name"]))

    return _renamed(stream, named, "question", names)


def _by_position(stream: RunStream, gold: Gold) -> RunStream:
    """Give the records of a run the ids of the gold, the first to the first and so on.

    If the ids of the gold are such positions themselves, there is nothing to do. If broken records
    were left out, the last ones may be among them.
    """
    names = gold.queries["query"]
    if stream.named_by != "position" or _are_numbers(names):
        return stream
    skipped = any(found.kind == FindingKind.SKIPPED_RECORD for found in stream.findings)

    def named(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(query=names.gather(rows["query"].cast(pl.Int64) - 1))

    def batches() -> Iterator[pl.DataFrame]:
        last = 0
        for rows in stream.batches():
            last = max(last, int(rows["query"].cast(pl.Int64).max() or 0))  # type: ignore[arg-type]
            if last > len(names):
                raise _uneven(stream.name, f"more than {len(names)}", len(names))
            yield rows
        if last < len(names) and not skipped:
            raise _uneven(stream.name, str(last), len(names))

    return _renamed(replace(stream, batches=batches), named, "position", names)


def _renamed(
    stream: RunStream, named: Callable[[pl.DataFrame], pl.DataFrame], by: NamedBy, names: pl.Series
) -> RunStream:
    """Return the run with other names, and the finding that reports it."""

    def about() -> pl.DataFrame | None:
        found = stream.about()
        return None if found is None else named(found)

    joined = finding_about(
        f"joined-by-{by}",
        names,
        f"# record|records of the run has|have no id and is|are joined with the gold by the {by}.",
        "give every record the id of its query",
    )
    return replace(
        stream,
        batches=lambda: map(named, stream.batches()),
        findings=(*stream.findings, *joined),
        whole=None,
        about=about,
        named_by="id",
    )


def _are_numbers(names: pl.Series) -> bool:
    """Tell whether ids are what positions are called: 1, 2, … perhaps with gaps."""
    numbers = names.cast(pl.Int64, strict=False)
    if numbers.null_count() or (numbers.cast(pl.String) != names).any():
        return False
    return bool(numbers[0] == 1 and (np.diff(numbers.to_numpy()) > 0).all())


def _uneven(run: str, found: str, gold: int) -> InputError:
    what = f"its records carry no id, and they are {found} where the gold has {gold} queries"
    fix = "give every record the id of its query, or as many records as the gold has, in order"
    return InputError(what, where=f"run {run} and gold", fix=fix)


def load_queries(data: object, ids: Sequence[str] = ("query",)) -> pl.DataFrame:
    """Return a table with a column `query` of texts, from a path, a table, records or a dict.

    The ids of the queries are in the first of the columns `ids` that the table has.
    """
    place = TablePlace("queries")
    if isinstance(data, str | os.PathLike):
        table, place = _read(Source.of(data))
    elif isinstance(data, Mapping):
        table = pl.DataFrame(
            [
                {"query": query, **({"question": about} if isinstance(about, str) else about)}
                for query, about in data.items()
            ]
        )
    else:
        found = frame(data)
        table = pl.DataFrame(cast("Any", data)) if found is None else found
    if not table.height:
        fix = "write one row for each query"
        raise InputError("the table has no rows", where=place.where, fix=fix)
    named = next((name for name in ids if name in table.columns), None)
    if named is None:
        what = f"no column 'query', only {shorten(', '.join(table.columns[:12]), 200)}"
        raise InputError(what, where=place.where, fix="name the column of the query ids 'query'")
    names = pl.Series(_names(table[named], place), dtype=pl.String)
    return plain_columns(table.with_columns(query=names))


def _names(column: pl.Series, place: TablePlace) -> list[str]:
    names = []
    for number, value in enumerate(column, start=1):
        try:
            names.append(identifier(value))
        except InputError as error:
            what = f"{error.what} (column {column.name!r})"
            raise InputError(what, where=place.row(number), fix=error.fix) from None
    return names


def _read(source: Source) -> tuple[pl.DataFrame, TablePlace]:
    """Read a table, and what messages call its rows; blank lines of a text table do not count."""
    if not Look.at(source).opens_json:
        table, place = read_table(source)
        return place.without_blank(table)
    with contextlib.suppress(pl.exceptions.PolarsError), source.plain_file() as path:
        table = pl.read_ndjson(path, infer_schema_length=None)
        if table.height and table.width:
            return table, TablePlace(source.where, record_lines(source))
    records = []
    for entry in all_entries(source):
        if not isinstance(entry.value, Mapping):
            what = f"a {type(entry.value).__name__} is not an object"
            fix = 'write one JSON object per line, such as {"query": "q1", "topic": "billing"}'
            raise InputError(what, where=entry.where(), fix=fix)
        records.append({str(name): flat(value) for name, value in entry.value.items()})
    names = dict.fromkeys(chain.from_iterable(records))
    columns = {name: describing(name, [each.get(name) for each in records]) for name in names}
    return pl.DataFrame(columns), TablePlace(source.where, record_lines(source))
