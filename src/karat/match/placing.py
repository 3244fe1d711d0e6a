"""Where chunks and gold texts stand: as their records say, as the corpus says, or as found."""

from __future__ import annotations

import polars as pl

from karat.data import EMPTY_ITEM, Gold
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.match.place import place
from karat.match.texts import TEXT_AS_ID

PLACE = {"place": pl.String, "from": pl.Int64, "to": pl.Int64}


def placed(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, role: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return rows whose doc is a place, `document[start:end]`, with the findings.

    A row says its place itself (start and end in the document that doc names), or the corpus says
    where the chunk doc was cut from (source, start and end), or its text is looked for in the
    corpus. What cannot be found keeps its id and covers nothing.
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
    lacking = found["place"].is_null() & rows["doc"].is_not_null()
    findings: list[Finding] = []
    if lacking.any() and corpus is not None:
        searched, findings = _searched(rows, lacking, corpus, role)
        found = _filled(found, searched)
        lacking = found["place"].is_null() & rows["doc"].is_not_null()
    if lacking.any() and lacking.sum() == rows["doc"].is_not_null().sum():
        raise InputError(
            f"nothing says where {rows['doc'].drop_nulls()[0]!r} stands",
            where=role,
            fix="give start and end beside the document, or name the corpus that holds the texts",
        )
    key = pl.format("{}[{}:{}]", "place", "from", "to")
    named = pl.concat([rows, found], how="horizontal").with_columns(
        raw=pl.col("doc"),
        doc=pl.when(pl.col("place").is_null()).then("doc").otherwise(key),
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


def _searched(
    rows: pl.DataFrame, lacking: pl.Series, corpus: pl.DataFrame, role: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Look for texts in the corpus; an ambiguous one is taken where it stands first."""
    wanted = rows.with_row_index("__row").filter(lacking & rows["text"].is_not_null())
    home = pl.when(pl.col("doc").is_in(corpus["doc"].implode())).then("doc")
    places = place(wanted.with_columns(doc=home), corpus.drop_nulls("text"))
    first = places.unique("number", keep="first", maintain_order=True)
    spread = wanted.select("__row", "doc").hstack(
        first.select("doc", "start", "end", "status").rename(
            {"doc": "place", "start": "from", "end": "to"}
        )
    )
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
            shown = tuple(name[:60] for name in names.head(EXAMPLES))
            findings.append(Finding(f"{status}-quote", len(names), shown, f"{role}: {what}", fix))
    return table.select("place", "from", "to"), findings


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
