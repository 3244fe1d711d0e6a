"""Labels from elsewhere: tables of findwell, any gold, annotations of Phoenix, another pool."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, InputError, choose
from findwell.core.findings import EXAMPLES, shorten
from findwell.io.read import load_gold
from findwell.io.read.by_document import records_of_pairs
from findwell.io.read.format import Look
from findwell.io.read.json import all_entries
from findwell.io.read.labels_database import INSERT_EVENT, database_at, reading, states
from findwell.io.read.record import one_line
from findwell.io.read.source import Source
from findwell.io.read.tables import frame, read_table
from findwell.io.read.values import grade as grade_of

if TYPE_CHECKING:
    import sqlite3

    import polars as pl

    from findwell.loop.labels.labels import Labels

IMPORTED = "imported"  # the design of a label whose own is not known
SPAN_COLUMNS = ("span_id", "context.span_id")
POSITION_COLUMN = "document_position"
TABLES = (None, "csv", "tsv", "parquet", "jsonl", "phoenix")  # formats of one row per label
DETECTED = ("ragas", "deepeval", "autorag", "beir", "spans")  # formats that a gold tells by itself


@dataclass(frozen=True, slots=True)
class ImportedLabel:
    """A label from elsewhere."""

    query: str
    doc: str
    grade: float
    annotator: str
    note: str = ""
    start: int | None = None
    end: int | None = None
    subtopic: str = ""
    probability: float | None = None
    stratum: str | None = None
    design: str = IMPORTED
    adjudicated: bool = False
    time: float | None = None
    question: str = ""
    text: str = ""


def read_labels(
    labels: Labels,
    data: Any,  # noqa: ANN401
    form: str | None,
    annotator: str,
    run: str | None,
) -> list[ImportedLabel]:
    """Read labels from elsewhere, and name their pairs as the pool does."""
    table = _table(data) if form in TABLES else None
    if table is None:
        return _from_gold(labels, data, form, annotator)
    if POSITION_COLUMN in table.columns and {*SPAN_COLUMNS} & {*table.columns}:
        return _from_phoenix(labels, table, annotator, run)
    return [
        _from_row(row, annotator)
        for row in table.iter_rows(named=True)
        if row["grade"] is not None and str(row["grade"]).strip()
    ]


def _table(data: object) -> pl.DataFrame | None:
    """Return the data as a table of one row per label, if it is one."""
    if isinstance(data, str | os.PathLike):
        database = database_at(data)
        if database is not None:
            with reading(database) as connection:
                return states(connection).drop("probability").rename({"planned": "probability"})
        found = None if os.path.isdir(data) else _from_file(Source.of(data))  # noqa: PTH112
    else:
        found = frame(data)
        if found is None and isinstance(data, Sequence):
            found = records_of_pairs(data)
    if found is None:
        return None
    names = {name.strip().casefold(): name for name in found.columns}
    rows = {"query", "doc", "grade"} <= names.keys()
    if not rows and not (POSITION_COLUMN in names and names.keys() & {*SPAN_COLUMNS}):
        return None
    return found.rename({name: key for key, name in names.items()})


def _from_file(source: Source) -> pl.DataFrame | None:
    look = Look.at(source)
    if look.opens_json:
        with contextlib.suppress(FindwellError):
            return records_of_pairs([entry.value for entry in all_entries(source)])
        return None
    if not look.binary or look.head.startswith(b"PAR1"):
        with contextlib.suppress(FindwellError):
            return read_table(source)[0]
    return None


def _from_row(row: Mapping[str, Any], annotator: str) -> ImportedLabel:
    """Read a row of a table that findwell wrote, or one with query, doc and grade."""
    given = {name: str(value) for name, value in row.items() if value not in (None, "")}
    planned = given.get("planned", given.get("probability"))
    start, end = (int(float(given[name])) if name in given else None for name in ("start", "end"))
    return ImportedLabel(
        query=str(row["query"]),
        doc=str(row["doc"]),
        grade=_number(row["grade"], f"query {row['query']}, document {row['doc']}"),
        annotator=given.get("annotator", annotator),
        note=given.get("note", ""),
        start=start,
        end=end,
        subtopic=given.get("subtopic", ""),
        probability=None if planned is None else float(planned),
        stratum=given.get("stratum"),
        design=given.get("design", IMPORTED),
        adjudicated=given.get("state") == "adjudicated",
        time=_seconds(row.get("time")),
        question=given.get("question", ""),
        text=given.get("text", ""),
    )


def _number(value: object, where: str) -> float:
    with contextlib.suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    try:
        return grade_of(value)
    except InputError as error:
        raise InputError(error.what, where=where, fix=error.fix) from None


def _seconds(value: object) -> float | None:
    """Return a time as seconds since 1970."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).timestamp()
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(value)).timestamp()
    return None


def _from_phoenix(
    labels: Labels, table: pl.DataFrame, annotator: str, run: str | None
) -> list[ImportedLabel]:
    """Read annotations of documents: a span is a query, and a position a rank of the run."""
    span = next(name for name in SPAN_COLUMNS if name in table.columns)
    ranks = labels.ranks()
    names = ranks["run"].unique(maintain_order=True).to_list()
    chosen = names[0] if run is None else choose("run", run, names)
    mine = ranks.filter(run=chosen).select("query", "doc", "rank")
    docs = {(query, rank - 1): doc for query, doc, rank in mine.rows()}
    found = []
    for row in table.iter_rows(named=True):
        given = row.get("label") if row.get("score") in (None, "") else row["score"]
        if given in (None, ""):
            continue
        query, at = str(row[span]), int(row[POSITION_COLUMN])
        if (query, at) not in docs:
            raise InputError(
                f"span {query!r} has no document at position {at} in run {chosen!r} of the pool",
                fix="name the run whose documents were annotated, or make the pool of it",
            )
        grade = _number(given, f"span {query}, position {at}")
        who, note = str(row.get("identifier") or annotator), str(row.get("explanation") or "")
        found.append(ImportedLabel(query, docs[query, at], grade, who, note))
    return found


def _from_gold(
    labels: Labels,
    data: Any,  # noqa: ANN401
    form: str | None,
    annotator: str,
) -> list[ImportedLabel]:
    """Read any gold: queries that it names by question, and documents that it names by text."""
    if isinstance(data, str | os.PathLike) and form == "autorag" and os.path.isdir(data):  # noqa: PTH112
        data = os.path.join(data, "qa.parquet")  # noqa: PTH118
    gold = load_gold(data, format=None if form in DETECTED else form, texts=True)
    rows = gold.rows()
    texts = labels.texts()
    names = {one_line(asked): query for query, asked in texts.select("query", "question").rows()}
    ids = set(texts["query"])
    by_text: dict[tuple[str, str], str] = {}
    pairs = set(texts.select("query", "doc").rows())
    for query, doc, text in texts.select("query", "doc", "text").iter_rows():
        by_text.setdefault((query, one_line(text)), doc)
    groups = "group" in rows.columns and rows["group"].count()
    found = []
    for row in rows.iter_rows(named=True):
        query = row["query"] if row["query"] in ids else names.get(row["query"], row["query"])
        doc = row["doc"]
        if (query, doc) not in pairs:
            text = row.get("text") or doc
            doc = by_text.get((query, one_line(str(text))), doc)
        topic = f"{row['group']}" if groups and row["group"] is not None else ""
        text = str(row.get("text") or "")
        found.append(ImportedLabel(query, doc, row["grade"], annotator, subtopic=topic, text=text))
    return found


def add_labels(
    connection: sqlite3.Connection,
    given: Sequence[ImportedLabel],
    *,
    highest: int,
    add: bool,
    where: str,
) -> int:
    """Save labels from elsewhere, all or none; pairs that the pool lacks are an error, or added."""
    pairs = _numbers(connection)
    unknown = [each for each in given if (each.query, each.doc) not in pairs]
    if unknown and not add:
        some = unknown[:EXAMPLES]
        shown = ", ".join(f"{shorten(each.query, 40)} / {shorten(each.doc, 40)}" for each in some)
        raise InputError(
            f"{len(unknown)} of {len(given)} labels are for pairs that are not in the pool: "
            f"{shown}; nothing was imported",
            where=where,
            fix="import them with add=True (--add), or pool the runs that they belong to",
        )
    for each in unknown:
        connection.execute(
            "INSERT OR IGNORE INTO query (query, question) VALUES (?, ?)",
            (each.query, each.question or each.query),
        )
        connection.execute(
            "INSERT OR IGNORE INTO pair (query, doc, text, design) "
            "SELECT number, ?, ?, ? FROM query WHERE query = ?",
            (each.doc, each.text, IMPORTED, each.query),
        )
    pairs = _numbers(connection)
    for each in given:
        value = max(0.0, each.grade)  # below 0 is not relevant, as in some qrels
        if not value.is_integer() or value > highest:
            raise InputError(
                f"the grade of query {each.query!r}, document {each.doc!r} is {each.grade:g}; "
                "nothing was imported",
                where=where,
                fix=f"grades of this pool are whole numbers from 0 to {highest} "
                "(findwell pool --highest)",
            )
        connection.execute(
            INSERT_EVENT,
            (
                time.time() if each.time is None else each.time, each.annotator,
                "adjudicate" if each.adjudicated else "label", pairs[each.query, each.doc],
                each.subtopic, value, each.note, each.start, each.end, each.probability,
                each.stratum, each.design,
            ),
        )  # fmt: skip
    return len(given)


def _numbers(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    rows = connection.execute(
        "SELECT query.query, doc, pair.number FROM pair JOIN query ON query.number = pair.query"
    )
    return {(query, doc): number for query, doc, number in rows}
