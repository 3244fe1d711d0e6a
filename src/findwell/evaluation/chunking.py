"""What chunks hold of the documents that they were cut from, and of the labels in these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.findings import Finding, finding_about, shorten
from findwell.core.frames import pl
from findwell.evaluation.inputs import collect_runs
from findwell.io.read import Kind, each_input, kind_of, load_gold, load_samples
from findwell.io.read.corpus import load_corpus
from findwell.relations.match.spans import placed
from findwell.relations.spans.place import CUT_MESSAGES, cover, left_out, never_reached, widened

if TYPE_CHECKING:
    from findwell.evaluation.plan import InputReading

CHUNK = ("doc", "text", "source", "start", "end")


def check_chunks(run: object, gold: object, chunks: object, reading: InputReading) -> list[Finding]:
    """Compare chunks with the documents of the corpus, and with the labels that have a place there.

    The chunks are those given, one file for each way of chunking. Without any they are those that
    the runs retrieved, which need not be all: then only what is too rare for chance is reported.
    """
    if reading.corpus is None:
        return []
    corpus: Any = reading.corpus
    documents = load_corpus(corpus, id_from=reading.id_from)
    if "text" not in documents.columns or "source" in documents.columns:
        return []  # these are chunks, and not the documents that they were cut from
    documents = documents.drop_nulls("text")
    labels = None
    if _readable_again(run, gold):
        labels = label_places(_gold_rows(run, gold, reading), documents)
    findings: list[Finding] = []
    for name, table in _several(chunks).items():
        held, lost = chunk_places(load_corpus(table), documents, name)
        findings += lost
        if held.height:
            findings += left_out(held, documents, name)
            findings += [] if labels is None else cut_labels(labels, held, name)
    if chunks is None and labels is not None:
        for name, each in collect_runs(run, reading)[0].items():
            held, _ = chunk_places(each.rows, documents, name)
            findings += never_reached(held, documents, name) if held.height else []
            findings += cut_in_lists(labels, held, name)
    return findings


def _readable_again(run: object, gold: object) -> bool:
    """Tell whether inputs are still there after they were read once."""
    for data in (*(each for _, each in each_input(run)), gold):
        kind = kind_of(data)
        if kind in (Kind.ITERATOR, Kind.RETRIEVER):
            return False
        if kind is Kind.PATH and not (Path(data).is_file() or Path(data).is_dir()):
            return False
    return True


def _several(chunks: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Return each way of chunking by its name."""
    if chunks is None:
        return {}
    if kind_of(chunks) in (Kind.PATH, Kind.LISTED):
        return {Path(each).stem: each for _, each in each_input(chunks)}
    return {"chunks": chunks}


def chunk_places(
    rows: pl.DataFrame, documents: pl.DataFrame, name: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return where chunks stand in the documents: at their offsets, or where their text is."""
    rows = rows.select(name for name in CHUNK if name in rows.columns).unique(maintain_order=True)
    said = [pl.col(name).is_not_null() for name in ("text", "start") if name in rows.columns]
    rows = rows.drop_nulls("doc").filter(pl.any_horizontal(said) if said else pl.lit(value=False))
    if not rows.height:
        return pl.DataFrame(schema={"chunk": pl.String, "doc": pl.String}), []
    if "start" in rows.columns:  # offsets in what the corpus does not have lead nowhere
        home = pl.coalesce("source", "doc") if "source" in rows.columns else pl.col("doc")
        known = home.is_in(documents["doc"].implode())
        rows = rows.with_columns(pl.when(known).then(each).alias(each) for each in ("start", "end"))
    found, _ = placed(rows, documents, "run")
    held = found.select(chunk="raw", doc="place", start="from", end="to").drop_nulls()
    held = held.filter(pl.col("doc").is_in(documents["doc"].implode()))
    lost = found.filter(pl.col("place").is_null())["raw"]
    return widened(held, documents), finding_about(
        "lost-chunk",
        list(map(shorten, lost)),
        "# chunk|chunks has|have a text that is in no document of the corpus and is|are left out.",
        "check that these are the chunks of these documents",
        name,
    )


def _gold_rows(run: object, gold: object, reading: InputReading) -> pl.DataFrame:
    whole: Any = gold
    if gold is None:
        return load_samples(each_input(run)[0][1], **reading.with_texts().samples).gold.rows()
    return load_gold(whole, **reading.with_texts().gold).rows()


def label_places(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return the relevant labels that are a part of a document: query, doc, start and end."""
    said = [pl.col(name).is_not_null() for name in ("text", "start") if name in rows.columns]
    rows = rows.filter(
        pl.col("grade") > 0, pl.any_horizontal(said) if said else pl.lit(value=False)
    )
    empty = pl.DataFrame(schema={"query": pl.String, "doc": pl.String}).with_columns(
        start=pl.lit(0), end=pl.lit(0)
    )
    if not rows.height:
        return empty
    places = placed(rows, documents, "run")[0]
    named = places.select("query", doc="place", start="from", end="to").drop_nulls()
    texts = dict(documents.select("doc", "text").iter_rows())
    trimmed = []
    for query, doc, start, end in named.iter_rows():
        quote = texts.get(doc, "")[start:end]
        if quote.strip():
            begin = start + len(quote) - len(quote.lstrip())
            trimmed.append((query, doc, begin, begin + len(quote.strip())))
    return pl.DataFrame(trimmed, schema=empty.schema, orient="row")


def _named(labels: pl.DataFrame) -> list[str]:
    return [f"{row[0]}: {row[1]} {row[2]}–{row[3]}" for row in labels.iter_rows()]


def cut_labels(labels: pl.DataFrame, held: pl.DataFrame, name: str) -> list[Finding]:
    """Report the labels that a way of chunking cuts, or leaves out."""
    cut = cover(labels, held)["cut"]
    return [
        replace(found, template=f"{found.template} The gold has {labels.height:,} labels.")
        for kind, (message, fix) in CUT_MESSAGES.items()
        for found in finding_about(
            f"{kind}-label", _named(labels.filter(cut == kind)), message, fix, name
        )
    ]


def cut_in_lists(labels: pl.DataFrame, held: pl.DataFrame, name: str) -> list[Finding]:
    """Report the labels of which retrieved chunks hold parts, and none all of it."""
    if not labels.height or not held.height:
        return []
    parts = labels.filter(cover(labels, held)["cut"].is_in(["split", "partly"]))
    return finding_about(
        "cut-label",
        _named(parts),
        f"# of {labels.height:,} labels is|are only partly in retrieved chunks, and whole in none.",
        "larger or overlapping chunks cut fewer; --chunks (chunks=) looks at all chunks",
        name,
    )
