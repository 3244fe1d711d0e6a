"""What is seen in the documents of calls: copies, age, and which were never seen before."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.io.read.vocabulary import CORPUS_COLUMNS
from findwell.measures.age import EPOCH
from findwell.relations.copies import copies
from findwell.relations.marks import DAY

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.loop.monitoring.references import References

DATES = CORPUS_COLUMNS["date"]  # keys of metadata, the preferred one first
MILLISECONDS = 1e11  # from here on a number is no second of this century but a millisecond


def listed(**columns: pl.Series) -> pl.DataFrame:
    """Return one row per document: its call, and what columns of lists say about it.

    A list that is shorter than the first, as where texts were not kept, has nothing to say.
    """
    (name, first), *others = columns.items()
    table = pl.DataFrame({"call": np.arange(len(first)), name: first})
    size = first.list.len()
    fitting = [
        pl.select(pl.when(each.list.len() == size).then(each)).to_series().alias(key)
        for key, each in others
    ]
    full = [each.fill_null(first.list.eval(pl.lit(None, each.dtype.inner))) for each in fitting]  # type: ignore[attr-defined]
    return table.with_columns(full).explode(*columns, empty_as_null=False, keep_nulls=False)


def texts_by_document(
    docs: pl.Series, texts: pl.Series, corpus: pl.DataFrame | None
) -> pl.DataFrame:
    """Return call, doc and text of each document; what a trace lacks the corpus may have."""
    table = listed(doc=docs, text=texts)
    if corpus is not None and "text" in corpus.columns:
        known = corpus.select("doc", known="text")
        table = table.join(known, on="doc", how="left", maintain_order="left")
        table = table.with_columns(pl.coalesce("text", "known")).drop("known")
    return table


def near_duplicate_shares(docs: pl.Series, texts: pl.Series, given: References) -> Floats:
    """Return the share of the documents with a text that repeats one above."""
    table = texts_by_document(docs, texts, given.corpus).drop_nulls("text")
    call = table["call"].to_numpy()
    return _shares(call, copies(call, table["text"]), len(docs))


def unknown_shares(docs: pl.Series, given: References) -> Floats:
    """Return the share of the documents that the corpus does not have."""
    table = listed(doc=docs)
    known = pl.Series([], dtype=pl.String) if given.corpus is None else given.corpus["doc"]
    lacking = ~table["doc"].is_in(known.implode())
    return _shares(table["call"].to_numpy(), lacking.cast(pl.Float64).to_numpy(), len(docs))


def unseen_shares(time: pl.Series, docs: pl.Series, history: pl.DataFrame) -> Floats:
    """Return the share of the documents that no earlier call of the same history retrieved."""
    keys = [f"\1{name}" for name in history.columns]
    table = history.rename(dict(zip(history.columns, keys, strict=True)))
    table = table.with_columns(time.alias("time"), docs.alias("doc")).with_row_index("call")
    rows = table.explode("doc", empty_as_null=False, keep_nulls=False)
    first = rows.group_by(*keys, "doc").agg(pl.col("time").min().alias("first"))
    joined = rows.join(
        first, on=[*keys, "doc"], how="left", nulls_equal=True, maintain_order="left"
    )
    new = (joined["time"] == joined["first"]).cast(pl.Float64).to_numpy()
    return _shares(joined["call"].to_numpy(), new, len(docs))


def ages(time: pl.Series, docs: pl.Series, metadata: pl.Series, given: References) -> Floats:
    """Return the mean age of the documents, in days, at the time of each call."""
    table = listed(doc=docs, metadata=metadata)
    written = table["metadata"].drop_nulls().unique()
    days = pl.Series([_day(text, given.date_key) for text in written], dtype=pl.Float64)
    own = table["metadata"].replace_strict(written, days, default=None, return_dtype=pl.Float64)
    table = table.with_columns(day=own)
    corpus = given.corpus
    if corpus is not None and "date" in corpus.columns:
        given_dates = corpus["date"].str.strip_chars().str.head(10).str.to_date(DAY, strict=False)
        known = pl.DataFrame(
            {"doc": corpus["doc"], "known": given_dates.to_physical().cast(pl.Float64)}
        )
        table = table.join(known, on="doc", how="left", maintain_order="left")
        table = table.with_columns(day=pl.coalesce("day", "known"))
    asked = time.dt.date().to_physical().cast(pl.Float64).to_numpy()
    table = table.drop_nulls("day")
    call = table["call"].to_numpy()
    return _shares(call, np.maximum(asked[call] - table["day"].to_numpy(), 0.0), len(docs))


def _shares(call: np.ndarray, values: Floats, calls: int) -> Floats:
    """Return the mean of values by call; NaN where there is none."""
    count = np.bincount(call, minlength=calls)
    total = np.bincount(call, values, minlength=calls)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _day(text: str, key: str | None) -> float | None:
    """Return the date in the metadata of a document, in days since 1970.

    >>> _day('{"updated_at": "2026-05-31T10:00:00Z"}', None), _day('{"date": 1780185600}', None)
    (20604.0, 20604.0)
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    for name in (key,) if key else DATES:
        value = found.get(name)
        if isinstance(value, str):
            try:
                return float((date.fromisoformat(value.strip()[:10]) - EPOCH).days)
            except ValueError:
                continue
        if isinstance(value, int | float) and 1 < value < math.inf:
            seconds = value / 1000 if value >= MILLISECONDS else value
            return float(seconds // 86400)
    return None
