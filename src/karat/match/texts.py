"""From ids to texts: what a text relation compares, and the gold whose items are texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align import positions, repeated
from karat.data import EMPTY_ITEM, Gold
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.match.matcher import Units
from karat.match.sentences import split
from karat.match.words import tidy

if TYPE_CHECKING:
    from karat.align import Aligned
    from karat.match.sentences import Splitter

TEXT_AS_ID = "text-as-id"  # a finding that only concerns matching by id


def with_texts(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, policy: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Put what counts of its text in the place of each document's id."""
    text, unknown = texts_of(rows, corpus, "run")
    key = tidy(text, policy)
    rows = rows.with_columns(raw=pl.col("doc"), doc=key, text=text)
    return rows, _unknown_texts(unknown)


def texts_of(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, role: str
) -> tuple[pl.Series, pl.Series]:
    """Return the text of each row: its own, the corpus's, or the id that is a text.

    A document without a text has the empty one, and is returned as unknown.
    """
    doc = rows["doc"]
    text = rows.get_column("text", default=pl.repeat(None, len(doc), dtype=pl.String, eager=True))
    if corpus is not None and text.null_count():
        found = rows.select("doc").join(
            corpus.select("doc", pl.col("text").alias("__text")),
            on="doc",
            how="left",
            maintain_order="left",
        )["__text"]
        text = text.zip_with(text.is_not_null(), found)
    if len(doc) > doc.null_count() and text.null_count() == len(text):
        _check_texts(doc.drop_nulls(), role, has_corpus=corpus is not None)
        return doc, doc.head(0)
    unknown = doc.filter(text.is_null() & doc.is_not_null())
    return text.zip_with(text.is_not_null() | doc.is_null(), pl.Series([""])), unknown


def _check_texts(ids: pl.Series, role: str, *, has_corpus: bool) -> None:
    """Refuse ids in the place of texts; what has a space or a letter beyond ASCII is no id."""
    if ids.str.contains(r"[\s\P{ascii}]").any():
        return
    raise InputError(
        f"no document has a text{' in the corpus' if has_corpus else ''}, only ids such as "
        f"{ids[0]!r}",
        where=role,
        fix="name a corpus that holds these ids (--corpus, corpus=), or give texts beside the ids",
    )


def _unknown_texts(unknown: pl.Series) -> list[Finding]:
    if not len(unknown):
        return []
    return [
        Finding(
            "unknown-text",
            len(unknown),
            tuple(unknown.head(EXAMPLES)),
            "document without a text: it matches nothing",
            "complete the corpus, or give texts beside the ids",
        )
    ]


def text_gold(
    gold: Gold, corpus: pl.DataFrame | None, policy: str, splitter: Splitter | None = None
) -> Gold:
    """Return the gold whose items are texts, or the sentences of texts; equal texts count once."""
    rows = gold.rows()
    text, unknown = texts_of(rows, corpus, "gold")
    findings = [found for found in gold.findings if found.kind != TEXT_AS_ID]
    findings += _unknown_texts(unknown)
    rows = rows.with_columns(doc=text).drop("text", "start", "end", strict=False)
    if splitter is not None:
        rows, dropped = first_alternatives(rows)
        findings += dropped
        sentences = pl.Series(split(rows["doc"].to_list(), splitter), dtype=pl.List(pl.String))
        rows = rows.with_columns(doc=sentences).explode("doc").drop_nulls("doc")
    rows = rows.with_columns(key=tidy(rows["doc"], policy))
    if policy != "raw":
        blank = rows.filter(pl.col("key") == "")
        rows = rows.filter(pl.col("key") != "")
        findings += _blank_texts(blank)
    rows = (
        rows.sort("grade", descending=True, maintain_order=True)
        .unique(["query", "key", "group"], keep="first", maintain_order=True)
        .drop("key")
    )
    flaws = {query: flaw for query, flaw in gold.flaws.items() if flaw == EMPTY_ITEM}
    return Gold.build(rows, queries=gold.queries, findings=findings, flaws=flaws)


def first_alternatives(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
    """Keep one text of each group: the sentences of alternatives cannot all be asked for."""
    again = rows["group"].is_not_null() & ~rows["group"].is_first_distinct()
    if not again.any():
        return rows, []
    dropped = rows.filter(again)
    finding = Finding(
        "alternatives-dropped",
        dropped.height,
        tuple(dropped["query"].unique(maintain_order=True).head(EXAMPLES)),
        "alternative of a group: by sentence or word only the first of a group is asked for",
        "match by chunk, or give one gold text an item",
    )
    return rows.filter(~again), [finding]


def _blank_texts(blank: pl.DataFrame) -> list[Finding]:
    if not blank.height:
        return []
    return [
        Finding(
            "blank-text",
            blank.height,
            tuple(blank["query"].unique(maintain_order=True).head(EXAMPLES)),
            "gold text in which nothing counts (blank, or punctuation only): left out",
            "remove it, or compare texts as they are with text=raw",
        )
    ]


def chunks(aligned: Aligned) -> Units:
    """Return the rows of a batch as units."""
    every = np.arange(len(aligned.query))
    text = aligned.rows["text"]
    return Units(aligned.query, aligned.rank, text, aligned.doc, aligned.repeat, every)


def parts(aligned: Aligned, pieces: pl.Series, policy: str) -> Units:
    """Return parts of the rows of a batch as units: `pieces` lists those of each row."""
    sizes = pieces.list.len().to_numpy().astype(np.int64)
    text = pieces.filter(sizes > 0).explode()
    row = np.repeat(np.arange(len(sizes)), sizes)
    query = aligned.query[row]
    key = tidy(text, policy)
    again = repeated(query, key)
    repeat = None if again is None else again.astype(np.int64)
    return Units(query, positions(query), text, key, repeat, row, sizes)


def sentences(aligned: Aligned, splitter: Splitter, policy: str) -> Units:
    """Return the sentences of the rows of a batch as units."""
    pieces = pl.Series(split(aligned.rows["text"].to_list(), splitter), dtype=pl.List(pl.String))
    return parts(aligned, pieces, policy)


__all__ = [
    "chunks",
    "first_alternatives",
    "parts",
    "sentences",
    "text_gold",
    "texts_of",
    "with_texts",
]
