"""Where chunks and gold texts stand: as their records say, as the corpus says, or as found."""

from __future__ import annotations

import polars as pl

from karat.core.data import EMPTY_ITEM, Gold
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.relate.match.texts import TEXT_AS_ID, TEXT_LIKE
from karat.spans.place import place

PLACE = {"place": pl.String, "from": pl.Int64, "to": pl.Int64}
NO_PLACE, LOST = "no-place", "lost-quote"


def placed(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, role: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return rows whose doc is a place, `document[start:end]`, with the findings.

    A row says its place itself (start and end in the document that doc names), or the corpus says
    where the chunk doc was cut from (source, start and end), or its text is looked for in the
    corpus; a document of the corpus without a text beside it is all of that document. What cannot
    be found keeps its id and covers nothing.
    """
    rows = rows.with_columns(
        pl.lit(None, kind).alias(name)
        for name, kind in {"text": pl.String, "start": pl.Int64, "end": pl.Int64}.items()
        if name not in rows.columns
    )
    found = rows.select(
        pl.when(pl.col("start").is_not_null()).then("doc").alias("place"),
        pl.col("start").alias("from"),
        pl.col("end").alias("to"),
    )
    if corpus is not None and {"source", "start", "end"} <= set(corpus.columns):
        found = _filled(found, _of_chunks(rows, corpus))
    findings: list[Finding] = []
    if corpus is not None:
        found = _filled(found, _whole(rows, corpus))
        rows = _with_quotes(rows, corpus)
        lacking = found["place"].is_null() & rows["text"].is_not_null()
        searched, findings = _searched(rows, lacking, corpus, role)
        found = _filled(found, searched)
    silent = rows["text"].is_null() if corpus is not None else pl.Series([True])
    findings += _unplaced(rows["doc"].filter(found["place"].is_null() & silent), role)
    if role == "gold":  # which comes whole, while a run comes in batches
        require_places(findings, rows.height, role)
    key = pl.format("{}[{}:{}]", "place", "from", "to")
    # what stands nowhere is told apart by its text, and is never taken for a place
    nowhere = pl.format("\0{}\0{}", "doc", pl.col("text").fill_null(""))
    named = pl.concat([rows, found], how="horizontal").with_columns(
        raw=pl.col("doc"),
        doc=pl.when(pl.col("place").is_null()).then(nowhere).otherwise(key),
    )
    return named, findings


def _filled(found: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Take places from another table where there is none yet."""
    lacking = found["place"].is_null()
    return found.select(
        column.zip_with(~lacking, more[column.name]) for column in found.iter_columns()
    )


def _of_chunks(rows: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Return where the corpus says that chunks were cut from."""
    chunks = corpus.select(
        "doc", pl.col("source").alias("place"), pl.col("start").alias("from"), to=pl.col("end")
    ).filter(pl.col("from").is_not_null())
    return (
        rows.select("doc")
        .join(chunks, on="doc", how="left", maintain_order="left")
        .select("place", "from", "to")
    )


def _whole(rows: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Return all of a document where a row names one and says no more."""
    documents = corpus.drop_nulls("text").select("doc", to=pl.col("text").str.len_chars())
    return (
        rows.select("doc", "text")
        .join(documents, on="doc", how="left", maintain_order="left")
        .select(
            pl.when(pl.col("text").is_null() & pl.col("to").is_not_null())
            .then("doc")
            .alias("place"),
            pl.lit(0, pl.Int64).alias("from"),
            pl.col("to").cast(pl.Int64),
        )
    )


def _with_quotes(rows: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Take an id that is a text, and no document, for the text to look for."""
    doc = pl.col("doc")
    quotes = doc.str.contains(TEXT_LIKE) & ~doc.is_in(corpus["doc"].implode())
    text = pl.col("text")
    return rows.with_columns(
        pl.when(text.is_null() & quotes).then(doc).otherwise(text).alias("text")
    )


def _unplaced(docs: pl.Series, role: str) -> list[Finding]:
    docs = docs.drop_nulls()
    if not len(docs):
        return []
    message = f"{role}: document without a place: it covers nothing"
    fix = "give start and end beside the document, or name the corpus that holds the texts"
    return [Finding(NO_PLACE, len(docs), _shown(docs), message, fix)]


def _shown(docs: pl.Series) -> tuple[str, ...]:
    return tuple(name[:60] for name in docs.head(EXAMPLES))


def require_places(findings: list[Finding], documents: int, role: str) -> None:
    """Refuse an input in which no document has a place."""
    mine = [found for found in findings if found.kind in (NO_PLACE, LOST)]
    if mine and sum(found.count for found in mine) >= documents:
        raise InputError(
            f"nothing says where {mine[0].examples[0]!r} stands, nor any other document",
            where=role,
            fix="give start and end beside the documents, or name the corpus that holds the texts",
        )


def _searched(
    rows: pl.DataFrame, lacking: pl.Series, corpus: pl.DataFrame, role: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Look for texts in the corpus; an ambiguous one is taken where it stands first."""
    wanted = rows.with_row_index("__row").filter(lacking)
    home = pl.when(pl.col("doc").is_in(corpus["doc"].implode())).then("doc")
    places = place(wanted.with_columns(doc=home), corpus.drop_nulls("text"))
    first = places.unique("number", keep="first", maintain_order=True)
    spread = wanted.select("__row", "doc").hstack(
        first.select("doc", "start", "end", "status").rename(
            {"doc": "place", "start": "from", "end": "to"}
        )
    )
    spread = _in_source(spread, corpus)
    empty = pl.DataFrame({"__row": pl.int_range(rows.height, eager=True, dtype=pl.UInt32)})
    table = empty.join(spread, on="__row", how="left", maintain_order="left")
    findings = []
    for status, what in (
        ("ambiguous", "text that stands in several places: taken where it stands first"),
        ("lost", "text that stands nowhere in the corpus: it covers nothing"),
        ("fuzzy", "text that stands in the corpus with differences: taken where it is most alike"),
    ):
        names = spread.filter(pl.col("status") == status)["doc"]
        if len(names):
            fix = "give start and end, or complete the corpus; see docs/spans.md"
            kind = f"{status}-quote"
            findings.append(Finding(kind, len(names), _shown(names), f"{role}: {what}", fix))
    return table.select("place", "from", "to"), findings


def _in_source(spread: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Say of what stands in a chunk where it stands in the document that was cut."""
    if not {"source", "start", "end"} <= set(corpus.columns):
        return spread
    as_cut = pl.col("text").str.len_chars() == pl.col("end") - pl.col("start")
    cut = corpus.filter(as_cut).select("source", pl.col("doc").alias("place"), first="start")
    joined = spread.join(cut, on="place", how="left", maintain_order="left")
    before = pl.col("first").fill_null(0)
    return joined.with_columns(
        pl.coalesce("source", "place").alias("place"),
        pl.col("from") + before,
        pl.col("to") + before,
    ).drop("source", "first")


def span_gold(gold: Gold, corpus: pl.DataFrame | None) -> Gold:
    """Return the gold whose items are places; `member_facts` tells them apart."""
    rows, findings = placed(gold.rows(), corpus, "gold")
    kept = [found for found in gold.findings if found.kind != TEXT_AS_ID]
    rows = (
        rows.with_columns(text=pl.col("place"), start=pl.col("from"), end=pl.col("to"))
        .drop("raw", *PLACE)
        .sort("grade", descending=True, maintain_order=True)
        .unique(["query", "doc", "group"], keep="first", maintain_order=True)
    )
    flaws = {query: flaw for query, flaw in gold.flaws.items() if flaw == EMPTY_ITEM}
    return Gold.build(rows, queries=gold.queries, findings=(*kept, *findings), flaws=flaws)
