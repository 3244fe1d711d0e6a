"""Labels in the formats of others: tables, qrels, BEIR, ragas, deepeval, AutoRAG, Phoenix."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.core.errors import InputError, OptionError, SaveError, choose
from findwell.core.spreadsheets import to_csv
from findwell.io.read.labels_database import final_grades
from findwell.io.storage.files import removed_at_the_end, write_bytes, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from findwell.loop.labels.labels import Labels

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".txt": "qrels",
    ".qrels": "qrels",
}
RELEVANT = 1.0  # the lowest grade of what formats without grades list


def export_labels(
    labels: Labels, path: str | os.PathLike[str], form: str | None, run: str | None
) -> None:
    """Write labels in a format, whole or not at all; see `Labels.export`."""
    named = form or SUFFIXES.get(Path(path).suffix.lower())
    if named is None:
        raise OptionError(
            f"the name {os.path.basename(os.fspath(path))!r} does not tell the format",  # noqa: PTH119
            fix=f"name it with format= (--format): {', '.join(EXPORTS)}",
        )
    choose("format of labels", named, EXPORTS)
    if run is not None and named != "phoenix":
        raise OptionError("run= is for phoenix alone", fix="leave it out")
    if not labels.frame()["grade"].count():
        raise InputError("there is no label to export", where=os.fspath(labels), fix="label first")
    EXPORTS[named](labels, Path(path), run)


def labelled_rows(labels: Labels) -> pl.DataFrame:
    """Return one row per label of every annotator, with question and text, as tables hold them."""
    said = labels.frame().filter(pl.col("grade").is_not_null())
    texts = labels.texts().select("query", "question", "doc", "text")
    joined = said.join(texts, on=["query", "doc"], how="left", maintain_order="left")
    time = pl.col("time").dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")
    blank = [pl.when(pl.col(name) != "").then(name).alias(name) for name in ("note", "subtopic")]
    columns = (
        "query", "question", "doc", "text", "grade", "annotator", "time", "note", "start", "end",
        "probability", "planned", "stratum", "design", "state", "subtopic",
    )  # fmt: skip
    return joined.with_columns(time, *blank).select(columns)


def _final(labels: Labels) -> pl.DataFrame:
    """Return one row per pair and subtopic: the grade that counts, question and text."""
    said = labels.frame()
    found = final_grades(said, ["query", "doc", "subtopic"]).select(
        "query", "doc", "subtopic", "grade"
    )
    return found.join(labels.texts(), on=["query", "doc"], how="left", maintain_order="left")


def _csv(labels: Labels, path: Path, _: str | None) -> None:
    write_text(path, to_csv(labelled_rows(labels)))


def _tsv(labels: Labels, path: Path, _: str | None) -> None:
    write_text(path, to_csv(labelled_rows(labels), "\t"))


def _parquet(labels: Labels, path: Path, _: str | None) -> None:
    _write_parquet(labelled_rows(labels), path)


def _jsonl(labels: Labels, path: Path, _: str | None) -> None:
    _write_lines(labelled_rows(labels).iter_rows(named=True), path)


def _qrels(labels: Labels, path: Path, _: str | None) -> None:
    rows = final_grades(labels.frame(), ["query", "doc"]).select("query", "doc", "grade")
    _refuse_blanks(rows, path)
    lines = (f"{query} 0 {doc} {grade:g}\n" for query, doc, grade in rows.iter_rows())
    write_text(path, "".join(lines))


def _subtopic_qrels(labels: Labels, path: Path, _: str | None) -> None:
    rows = _final(labels).select("query", "subtopic", "doc", "grade")
    if not (rows["subtopic"] != "").any():
        raise OptionError("no label has a subtopic", fix="export them as qrels")
    _refuse_blanks(rows, path)
    named = rows.with_columns(pl.col("subtopic").replace("", "0"))
    lines = (f"{query} {topic} {doc} {grade:g}\n" for query, topic, doc, grade in named.rows())
    write_text(path, "".join(lines))


def _refuse_blanks(rows: pl.DataFrame, path: Path) -> None:
    """Refuse ids that columns between blanks cannot hold."""
    for name in ("query", "doc", "subtopic"):
        if name not in rows.columns:
            continue
        bad = rows.filter(pl.col(name).str.contains(r"\s"))[name]
        if len(bad):
            raise InputError(
                f"the {name} {bad[0][:40]!r} holds white space, which qrels cannot",
                where=str(path),
                fix="export the labels as csv, parquet or ragas",
            )


def _spans(labels: Labels, path: Path, _: str | None) -> None:
    """Write findwell's own gold, with quotes, from which `findwell anchor` finds places again."""
    final = final_grades(labels.frame(), ["query", "doc", "subtopic"])
    rows = final.select("query", "doc", "grade", "start", "end").join(
        labels.texts(), on=["query", "doc"], how="left", maintain_order="left"
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        record = found.setdefault(
            row["query"], {"query": row["query"], "question": row["question"], "gold": []}
        )
        part = slice(row["start"], row["end"])
        entry = {"doc": row["source"] or row["doc"], "quote": row["text"][part]}
        entry["grade"] = int(row["grade"])
        origin = 0 if row["source"] is None else row["source_start"]
        if row["start"] is not None and origin is not None:
            entry |= {"start": origin + row["start"], "end": origin + row["end"]}
        elif origin is not None and row["source"] is not None:
            entry |= {"start": origin, "end": row["source_end"]}
        record["gold"].append(entry)
    _write_lines(found.values(), path)


def _beir(labels: Labels, path: Path, _: str | None) -> None:
    final = _final(labels).group_by("query", "doc", maintain_order=True).agg(pl.col("grade").max())
    texts = labels.texts().unique("doc", keep="first", maintain_order=True)
    asked = labels.texts().unique("query", keep="first", maintain_order=True)

    def write(folder: Path) -> None:
        (folder / "qrels").mkdir()
        corpus = [
            {"_id": doc, "title": "", "text": text} for doc, text in _two(texts, "doc", "text")
        ]
        queries = [{"_id": name, "text": text} for name, text in _two(asked, "query", "question")]
        _write_lines(corpus, folder / "corpus.jsonl")
        _write_lines(queries, folder / "queries.jsonl")
        lines = [f"{query}\t{doc}\t{grade:g}\n" for query, doc, grade in final.rows()]
        write_text(folder / "qrels" / "test.tsv", "".join(["query-id\tcorpus-id\tscore\n", *lines]))

    _refuse_blanks(final, path)
    _write_folder(path, write)


def _ragas(labels: Labels, path: Path, _: str | None) -> None:
    records = [
        {
            "user_input": each["question"],
            "retrieved_contexts": each["texts"],
            "retrieved_context_ids": each["docs"],
            "reference_contexts": each["relevant_texts"],
            "reference_context_ids": each["relevant"],
            "query_id": each["query"],
        }
        for each in _by_query(labels)
    ]
    _write_lines(records, path)


def _deepeval(labels: Labels, path: Path, _: str | None) -> None:
    records = [
        {
            "input": each["question"],
            "retrieval_context": each["texts"],
            "context": each["relevant_texts"],
            "additional_metadata": {"query_id": each["query"]},
        }
        for each in _by_query(labels)
    ]
    _write_lines(records, path)


def _autorag(labels: Labels, path: Path, _: str | None) -> None:
    final = _final(labels).filter(pl.col("grade") >= RELEVANT)
    groups: dict[str, dict[str, list[str]]] = {}
    for query, doc, topic in final.select("query", "doc", "subtopic").iter_rows():
        groups.setdefault(query, {}).setdefault(topic or f"\0{doc}", []).append(doc)
    each = _by_query(labels)
    answers = pl.DataFrame(
        {
            "qid": [row["query"] for row in each],
            "query": [row["question"] for row in each],
            "retrieval_gt": [list(groups.get(row["query"], {}).values()) for row in each],
            "generation_gt": [[] for _ in each],
        },
        schema={
            "qid": pl.String, "query": pl.String, "retrieval_gt": pl.List(pl.List(pl.String)),
            "generation_gt": pl.List(pl.String),
        },
    )  # fmt: skip
    texts = labels.texts().unique("doc", keep="first", maintain_order=True)
    made = pl.lit(labels.frame()["time"].max()).dt.replace_time_zone(None)
    corpus = texts.select(
        doc_id="doc",
        contents="text",
        path=pl.col("source").fill_null(""),
        start_end_idx=pl.concat_list(pl.lit(0), pl.lit(0)),
        metadata=pl.struct(last_modified_datetime=made, prev_id=pl.lit(""), next_id=pl.lit("")),
    )

    def write(folder: Path) -> None:
        _write_parquet(answers, folder / "qa.parquet")
        _write_parquet(corpus, folder / "corpus.parquet")

    _write_folder(path, write)


PHOENIX = ("relevant", "not relevant")


def _phoenix(labels: Labels, path: Path, run: str | None) -> None:
    """Write annotations of documents; the ids of the queries are those of retriever spans."""
    ranks = labels.ranks()
    names = ranks["run"].unique(maintain_order=True).to_list()
    chosen = names[0] if run is None else choose("run", run, names)
    said = labels.frame().filter(pl.col("grade").is_not_null())
    placed = said.join(
        ranks.filter(run=chosen), on=["query", "doc"], how="inner", maintain_order="left"
    )
    relevant = pl.col("grade") >= RELEVANT
    rows = placed.select(
        span_id="query",
        document_position=pl.col("rank") - 1,
        name=pl.lit("relevance"),
        annotator_kind=pl.lit("HUMAN"),
        label=pl.when(relevant).then(pl.lit(PHOENIX[0])).otherwise(pl.lit(PHOENIX[1])),
        score="grade",
        explanation=pl.when(pl.col("note") != "").then("note"),
        identifier="annotator",
    )
    if path.suffix.lower() == ".parquet":
        _write_parquet(rows, path)
    else:
        write_text(path, to_csv(rows))


def _by_query(labels: Labels) -> list[dict[str, Any]]:
    """Return the queries that have a label, with their candidates, best rank first."""
    final = _final(labels).filter(pl.col("grade") >= RELEVANT)
    relevant = set(final.select("query", "doc").rows())
    known = set(labels.frame().filter(pl.col("grade").is_not_null())["query"])
    found: dict[str, dict[str, Any]] = {}
    for query, question, doc, text in (
        labels.texts().select("query", "question", "doc", "text").iter_rows()
    ):
        if query not in known:
            continue
        empty: dict[str, Any] = {"query": query, "question": question}
        empty |= {name: [] for name in ("docs", "texts", "relevant", "relevant_texts")}
        each = found.setdefault(query, empty)
        each["docs"].append(doc)
        each["texts"].append(text)
        if (query, doc) in relevant:
            each["relevant"].append(doc)
            each["relevant_texts"].append(text)
    return list(found.values())


def _two(rows: pl.DataFrame, first: str, second: str) -> list[tuple[Any, ...]]:
    return rows.select(first, second).rows()


def _write_lines(records: Iterable[dict[str, Any]], path: Path) -> None:
    write_text(path, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records))


def _write_parquet(rows: pl.DataFrame, path: Path) -> None:
    buffer = io.BytesIO()
    rows.write_parquet(buffer)
    write_bytes(path, buffer.getvalue())


def _write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Write a new folder whole or not at all."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SaveError(
            "there is something already", where=str(path), fix="name a new folder for the export"
        )
    draft = path.with_name(f".findwell-{secrets.token_hex(8)}")
    try:
        with removed_at_the_end(draft):
            draft.mkdir(parents=True)
            write(draft)
            if path.exists():
                path.rmdir()
            shutil.move(draft, path)
    except OSError as error:
        raise SaveError(
            f"the folder could not be written: {error.strerror}",
            where=str(path),
            fix="nothing was written; free some space or name another folder",
        ) from None


EXPORTS: dict[str, Callable[[Labels, Path, str | None], None]] = {
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
    "jsonl": _jsonl,
    "qrels": _qrels,
    "subtopic-qrels": _subtopic_qrels,
    "beir": _beir,
    "ragas": _ragas,
    "deepeval": _deepeval,
    "autorag": _autorag,
    "phoenix": _phoenix,
    "spans": _spans,
}
