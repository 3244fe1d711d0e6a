"""Labels in files of others: tables, qrels, BEIR, ragas, deepeval, AutoRAG, Phoenix, any gold.

A format is a function from labels to the contents of files: of one, or of those of a folder by
their names. They are written whole or not at all. What is written can be read back.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import shutil
import time
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.errors import InputError, OptionError, SaveError, choose
from findwell.core.findings import EXAMPLES, shorten
from findwell.core.frames import pl
from findwell.core.spreadsheets import to_csv
from findwell.io.read import load_gold, path_of
from findwell.io.read.labels_database import INSERT_EVENT, PAIR, final_grades, read_labels
from findwell.io.read.records import one_line
from findwell.io.read.values import grade as grade_of
from findwell.io.storage.files import not_written, removed_at_the_end, write_bytes, write_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from findwell.loop.labels.labels import Labels

    Content: TypeAlias = str | bytes
    Row: TypeAlias = dict[str, Any]  # one label

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".txt": "qrels",
    ".qrels": "qrels",
}
RELEVANT_GRADE = 1.0  # the lowest grade of what formats without grades list
LABEL_COLUMNS = (
    "query", "question", "doc", "text", "grade", "annotator", "time", "note", "start", "end",
    "probability", "planned", "stratum", "design", "state", "subtopic",
)  # fmt: skip
# what formats of one record per query call the columns of `_Exported.by_query`
RAGAS = {
    "user_input": "question",
    "retrieved_contexts": "texts",
    "retrieved_context_ids": "docs",
    "reference_contexts": "relevant_texts",
    "reference_context_ids": "relevant",
    "query_id": "query",
}
DEEPEVAL = {
    "input": "question",
    "retrieval_context": "texts",
    "context": "relevant_texts",
    "additional_metadata": "about",
}
IMPORTED_DESIGN = "imported"  # the design of a label whose own is not known
SPAN_COLUMNS = ("span_id", "context.span_id")
POSITION_COLUMN = "document_position"
PHOENIX_NOTES = {"annotator": "identifier", "note": "explanation"}  # what Phoenix calls these
LABEL_TABLES = (None, "csv", "tsv", "parquet", "jsonl", "phoenix")  # formats of one row per label
DETECTED_GOLDS = ("ragas", "deepeval", "autorag", "beir", "spans")  # detected by their contents


def export_labels(
    labels: Labels, path: str | os.PathLike[str], form: str | None, run: str | None
) -> None:
    """Write labels in a format, whole or not at all; see `Labels.export`."""
    target = Path(path)
    named = form or SUFFIXES.get(target.suffix.lower())
    if named is None:
        raise OptionError(
            f"the name {os.path.basename(os.fspath(path))!r} does not say which format it is",  # noqa: PTH119
            fix=f"name it with format= (--format): {', '.join(EXPORTS)}",
        )
    choose("format of labels", named, EXPORTS)
    if run is not None and named != "phoenix":
        raise OptionError("run= is for phoenix alone", fix="leave it out")
    exported = _Exported(labels, target, run)
    if not exported.said.height:
        fix = "label some pairs with `findwell labels serve`"
        raise InputError("there is no label to export", where=os.fspath(labels), fix=fix)
    content = EXPORTS[named](exported)
    if isinstance(content, dict):
        _write_folder(target, content)
    else:
        _write(target, content)


class _Exported:
    """What is exported, and to which file."""

    def __init__(self, labels: Labels, path: Path, run: str | None) -> None:
        self.labels, self.path, self.run = labels, path, run
        self.said = labels.frame().filter(pl.col("grade").is_not_null())

    @cached_property
    def texts(self) -> pl.DataFrame:
        return self.labels.texts()

    @cached_property
    def final(self) -> pl.DataFrame:
        """One row per pair and subtopic: the grade that counts, what is marked, the texts."""
        found = final_grades(self.said, [*PAIR, "subtopic"])
        found = found.select(*PAIR, "subtopic", "grade", "start", "end")
        return found.join(self.texts, on=PAIR, how="left", maintain_order="left")

    def by_query(self) -> pl.DataFrame:
        """Return the queries that have a label, with their candidates, best rank first."""
        relevant = self.final.filter(pl.col("grade") >= RELEVANT_GRADE).select(PAIR).unique()
        known = self.texts.filter(pl.col("query").is_in(self.said["query"].implode()))
        known = known.join(
            relevant.with_columns(good=True), on=PAIR, how="left", maintain_order="left"
        )
        return known.group_by("query", maintain_order=True).agg(
            pl.col("question").first(),
            docs="doc",
            texts="text",
            relevant=pl.col("doc").filter("good"),
            relevant_texts=pl.col("text").filter("good"),
            about=pl.struct(query_id="query").first(),
        )


def _labels(exported: _Exported) -> pl.DataFrame:
    """Return one row per label of every annotator, with question and text."""
    texts = exported.texts.select("query", "question", "doc", "text")
    joined = exported.said.join(texts, on=PAIR, how="left", maintain_order="left")
    time = pl.col("time").dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")
    blank = [pl.when(pl.col(name) != "").then(name).alias(name) for name in ("note", "subtopic")]
    return joined.with_columns(time, *blank).select(LABEL_COLUMNS)


def _qrels(exported: _Exported) -> str:
    rows = final_grades(exported.said, PAIR).select(*PAIR, "grade")
    _refuse_blanks(rows, exported.path)
    return "".join(f"{query} 0 {doc} {grade:g}\n" for query, doc, grade in rows.rows())


def _subtopic_qrels(exported: _Exported) -> str:
    rows = exported.final.select("query", "subtopic", "doc", "grade")
    if not (rows["subtopic"] != "").any():
        raise OptionError("no label has a subtopic", fix="export them as qrels")
    _refuse_blanks(rows, exported.path)
    named = rows.with_columns(pl.col("subtopic").replace("", "0")).rows()
    lines = (f"{query} {topic} {doc} {grade:g}\n" for query, topic, doc, grade in named)
    return "".join(lines)


def _refuse_blanks(rows: pl.DataFrame, path: Path) -> None:
    """Refuse ids that columns between blanks cannot hold."""
    for name in [name for name in ("query", "doc", "subtopic") if name in rows.columns]:
        bad = rows.filter(pl.col(name).str.contains(r"\s"))[name]
        if len(bad):
            raise InputError(
                f"the {name} {bad[0][:40]!r} holds white space, which qrels cannot",
                where=str(path),
                fix="export the labels as csv, parquet or ragas",
            )


def _beir(exported: _Exported) -> dict[str, Content]:
    final = exported.final.group_by(PAIR, maintain_order=True).agg(pl.col("grade").max())
    _refuse_blanks(final, exported.path)
    docs = exported.texts.unique("doc", keep="first", maintain_order=True)
    asked = exported.texts.unique("query", keep="first", maintain_order=True)
    lines = [f"{query}\t{doc}\t{grade:g}\n" for query, doc, grade in final.rows()]
    return {
        "corpus.jsonl": _json_lines(docs.select(_id="doc", title=pl.lit(""), text="text")),
        "queries.jsonl": _json_lines(asked.select(_id="query", text="question")),
        "qrels/test.tsv": "".join(["query-id\tcorpus-id\tscore\n", *lines]),
    }


def _records(names: dict[str, str], exported: _Exported) -> str:
    return _json_lines(exported.by_query().select(**names))


def _autorag(exported: _Exported) -> dict[str, Content]:
    group = pl.when(pl.col("subtopic") != "").then("subtopic").otherwise(pl.format("\0{}", "doc"))
    relevant = (
        exported.final.filter(pl.col("grade") >= RELEVANT_GRADE)
        .group_by("query", group.alias("group"), maintain_order=True)
        .agg("doc")
        .group_by("query", maintain_order=True)
        .agg(retrieval_gt="doc")
    )
    found = exported.by_query().join(relevant, on="query", how="left", maintain_order="left")
    answers = found.select(
        qid="query",
        query="question",
        retrieval_gt=pl.col("retrieval_gt").fill_null(pl.lit([], pl.List(pl.List(pl.String)))),
        generation_gt=pl.lit([], pl.List(pl.String)),
    )
    made = pl.lit(exported.labels.frame()["time"].max()).dt.replace_time_zone(None)
    corpus = exported.texts.unique("doc", keep="first", maintain_order=True).select(
        doc_id="doc",
        contents="text",
        path=pl.col("source").fill_null(""),
        start_end_idx=pl.concat_list(pl.lit(0), pl.lit(0)),
        metadata=pl.struct(last_modified_datetime=made, prev_id=pl.lit(""), next_id=pl.lit("")),
    )
    return {"qa.parquet": _parquet(answers), "corpus.parquet": _parquet(corpus)}


def _ranks_of(labels: Labels, run: str | None) -> pl.DataFrame:
    """Return query, doc, run and rank of a run of the pool, the first one by default."""
    ranks = labels.ranks()
    names = ranks["run"].unique(maintain_order=True).to_list()
    return ranks.filter(run=names[0] if run is None else choose("run", run, names))


def _phoenix(exported: _Exported) -> Content:
    """Return annotations of documents; the ids of the queries are those of retriever spans."""
    ranks = _ranks_of(exported.labels, exported.run)
    placed = exported.said.join(ranks, on=PAIR, how="inner", maintain_order="left")
    relevant = pl.when(pl.col("grade") >= RELEVANT_GRADE).then(pl.lit("relevant"))
    rows = placed.select(
        span_id="query",
        document_position=pl.col("rank") - 1,
        name=pl.lit("relevance"),
        annotator_kind=pl.lit("HUMAN"),
        label=relevant.otherwise(pl.lit("not relevant")),
        score="grade",
        explanation=pl.when(pl.col("note") != "").then("note"),
        identifier="annotator",
    )
    parquet = exported.path.suffix.lower() == ".parquet"
    return _parquet(rows) if parquet else to_csv(rows)


def _spans(exported: _Exported) -> str:
    """Return findwell's own gold, with quotes, in which `findwell labels anchor` finds places."""
    found: dict[str, dict[str, Any]] = {}
    for row in exported.final.iter_rows(named=True):
        record = found.setdefault(
            row["query"], {"query": row["query"], "question": row["question"], "gold": []}
        )
        quote = row["text"][row["start"] : row["end"]]
        entry = {"doc": row["source"] or row["doc"], "quote": quote, "grade": int(row["grade"])}
        origin = 0 if row["source"] is None else row["source_start"]
        if row["start"] is not None and origin is not None:
            entry |= {"start": origin + row["start"], "end": origin + row["end"]}
        elif origin is not None and row["source"] is not None:
            entry |= {"start": origin, "end": row["source_end"]}
        record["gold"].append(entry)
    return _json_lines(found.values())


def _json_lines(records: pl.DataFrame | Iterable[dict[str, Any]]) -> str:
    listed = records.iter_rows(named=True) if isinstance(records, pl.DataFrame) else records
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in listed)


def _parquet(rows: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    rows.write_parquet(buffer)
    return buffer.getvalue()


def _write(path: Path, content: Content) -> None:
    if isinstance(content, str):
        write_text(path, content)
    else:
        write_bytes(path, content)


def _write_folder(path: Path, files: dict[str, Content]) -> None:
    """Write a new folder whole or not at all."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SaveError(
            "it already exists", where=str(path), fix="name a new folder for the export"
        )
    draft = path.with_name(f".findwell-{secrets.token_hex(8)}")
    try:
        with removed_at_the_end(draft):
            for name, content in files.items():
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                _write(draft / name, content)
            if path.exists():
                path.rmdir()
            shutil.move(draft, path)
    except OSError as error:
        raise not_written("folder", path, error) from None


EXPORTS: dict[str, Callable[[_Exported], Content | dict[str, Content]]] = {
    "csv": lambda exported: to_csv(_labels(exported)),
    "tsv": lambda exported: to_csv(_labels(exported), "\t"),
    "parquet": lambda exported: _parquet(_labels(exported)),
    "jsonl": lambda exported: _json_lines(_labels(exported)),
    "qrels": _qrels,
    "subtopic-qrels": _subtopic_qrels,
    "beir": _beir,
    "ragas": partial(_records, RAGAS),
    "deepeval": partial(_records, DEEPEVAL),
    "autorag": _autorag,
    "phoenix": _phoenix,
    "spans": _spans,
}


def import_labels(
    labels: Labels,
    data: Any,  # noqa: ANN401
    form: str | None,
    annotator: str,
    run: str | None,
) -> list[Row]:
    """Read labels from elsewhere, and name their pairs as the pool does.

    Each has query, doc, grade and annotator, and of the other LABEL_COLUMNS what is known.
    """
    table = read_labels(data) if form in LABEL_TABLES else None
    columns = set() if table is None else {*table.columns}
    if table is not None and POSITION_COLUMN in columns and columns & {*SPAN_COLUMNS}:
        return _from_phoenix(labels, table, annotator, run)
    if table is None or not columns >= {"query", "doc", "grade"}:
        return _from_gold(labels, data, form, annotator)
    return [
        _from_row(row, annotator)
        for row in table.iter_rows(named=True)
        if row["grade"] is not None and str(row["grade"]).strip()
    ]


def _from_row(row: Row, annotator: str) -> Row:
    """Read a row of a table that findwell wrote, or one with query, doc and grade."""
    given: Row = {name: str(value) for name, value in row.items() if value not in (None, "")}
    chance = given.get("planned" if "planned" in row else "probability")
    return {
        "annotator": annotator,
        **given,
        **{name: int(float(given[name])) for name in ("start", "end") if name in given},
        "grade": _number(row["grade"], f"query {row['query']}, document {row['doc']}"),
        "probability": None if chance is None else float(chance),
        "time": _seconds(row.get("time")),
    }


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
) -> list[Row]:
    """Read annotations of documents: a span is a query, and a position a rank of the run."""
    span = next(name for name in SPAN_COLUMNS if name in table.columns)
    ranks = _ranks_of(labels, run)
    docs = {(query, rank - 1): doc for query, doc, _, rank in ranks.rows()}
    found = []
    for row in table.iter_rows(named=True):
        given = row.get("label") if row.get("score") in (None, "") else row["score"]
        if given in (None, ""):
            continue
        query, at = str(row[span]), int(row[POSITION_COLUMN])
        if (query, at) not in docs:
            raise InputError(
                f"span {query!r} has no document at position {at} in run {ranks['run'][0]!r} "
                "of the pool",
                fix="name the run whose documents were annotated, or make the pool of it",
            )
        label = {"query": query, "doc": docs[query, at], "annotator": annotator}
        label |= {name: str(row[key]) for name, key in PHOENIX_NOTES.items() if row.get(key)}
        found.append(label | {"grade": _number(given, f"span {query}, position {at}")})
    return found


def _from_gold(
    labels: Labels,
    data: Any,  # noqa: ANN401
    form: str | None,
    annotator: str,
) -> list[Row]:
    """Read any gold: queries that it names by question, and documents that it names by text."""
    if form == "autorag" and os.path.isdir(path_of(data)):  # noqa: PTH112
        data = os.path.join(data, "qa.parquet")  # noqa: PTH118
    gold = load_gold(data, format=None if form in DETECTED_GOLDS else form, texts=True)
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
        label = {"query": query, "doc": doc, "grade": row["grade"], "annotator": annotator}
        label["subtopic"] = f"{row['group']}" if groups and row["group"] is not None else ""
        found.append(label | {"text": str(row.get("text") or "")})
    return found


def add_labels(
    connection: sqlite3.Connection, given: Sequence[Row], *, highest: int, add: bool, where: str
) -> int:
    """Save labels from elsewhere, all or none; pairs that the pool lacks are an error, or added."""
    pairs = _numbers(connection)
    unknown = [each for each in given if (each["query"], each["doc"]) not in pairs]
    if unknown and not add:
        shown = ", ".join(
            " / ".join(shorten(each[name], 40) for name in PAIR) for each in unknown[:EXAMPLES]
        )
        raise InputError(
            f"{len(unknown)} of {len(given)} labels are for pairs that are not in the pool: "
            f"{shown}; nothing was imported",
            where=where,
            fix="import them with add=True (--add), or pool the runs that they belong to",
        )
    for each in unknown:
        query = each["query"]
        connection.execute(
            "INSERT OR IGNORE INTO query (query, question) VALUES (?, ?)",
            (query, each.get("question", query)),
        )
        connection.execute(
            "INSERT OR IGNORE INTO pair (query, doc, text, design) "
            "SELECT number, ?, ?, ? FROM query WHERE query = ?",
            (each["doc"], each.get("text", ""), IMPORTED_DESIGN, query),
        )
    pairs = _numbers(connection)
    for each in given:
        value = max(0.0, each["grade"])  # below 0 is not relevant, as in some qrels
        if not value.is_integer() or value > highest:
            raise InputError(
                f"the grade of query {each['query']!r}, document {each['doc']!r} is "
                f"{each['grade']:g}; nothing was imported",
                where=where,
                fix=f"grades of this pool are whole numbers from 0 to {highest} "
                "(findwell labels pool --highest)",
            )
        seconds = each.get("time")
        kind = "adjudicate" if each.get("state") == "adjudicated" else "label"
        connection.execute(
            INSERT_EVENT,
            (
                time.time() if seconds is None else seconds, each["annotator"], kind,
                pairs[each["query"], each["doc"]], each.get("subtopic", ""), value,
                each.get("note", ""), each.get("start"), each.get("end"), each.get("probability"),
                each.get("stratum"), each.get("design", IMPORTED_DESIGN),
            ),
        )  # fmt: skip
    return len(given)


def _numbers(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    rows = connection.execute(
        "SELECT query.query, doc, pair.number FROM pair JOIN query ON query.number = pair.query"
    )
    return {(query, doc): number for query, doc, number in rows}
