"""What a corpus or the queries say about documents: forbidden ones, and dates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from findwell.core.errors import InputError
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Iterator

YES = ("true", "1", "1.0", "yes", "y", "x")
NO = ("false", "0", "0.0", "no", "n", "")
DAY = "%Y-%m-%d"


def marked_forbidden(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, queries: pl.DataFrame
) -> pl.Series:
    """Tell which rows of a run hold a document that must not be shown.

    The corpus marks it for every query (a column forbidden: true or false), or a query names it
    (a column forbidden: an id, or a list of them), as where each user may see other documents.
    """
    everywhere = corpus is not None and "forbidden" in corpus.columns
    if not everywhere and "forbidden" not in queries.columns:
        raise InputError(
            "nothing says which documents are forbidden",
            fix='give the records of the gold a list "forbidden" of ids, or the corpus a column '
            "forbidden with true and false",
        )
    found = pl.repeat(value=False, n=rows.height, eager=True)
    if corpus is not None and everywhere:
        marks = corpus["forbidden"].str.strip_chars().str.to_lowercase().fill_null("")
        unclear = marks.filter(~marks.is_in([*YES, *NO]))
        if len(unclear):
            raise InputError(
                f"{unclear[0]!r} does not say whether a document is forbidden",
                where="corpus",
                fix="write true or false in the column forbidden",
            )
        found |= rows["doc"].is_in(corpus["doc"].filter(marks.is_in(YES)).implode())
    if "forbidden" in queries.columns:
        pairs = pl.DataFrame(
            [pair for row in queries.select("query", "forbidden").rows() for pair in _pairs(*row)],
            schema={"query": pl.String, "doc": pl.String},
            orient="row",
        ).unique()
        marked = pairs.with_columns(__marked=True)
        joined = rows.select("query", "doc")
        joined = joined.join(marked, on=["query", "doc"], how="left", maintain_order="left")
        found |= joined["__marked"].fill_null(value=False)
    return found.fill_null(value=False)


def _pairs(query: str, given: object) -> Iterator[tuple[str, str]]:
    """Go through the documents that a query forbids: one id, or a list that was kept as JSON."""
    text = "" if given is None else str(given).strip()
    docs = [text] if text else []
    if text.startswith("["):
        try:
            docs = json.loads(text)
        except ValueError:
            raise InputError(
                f"{text[:40]!r} is not a list of forbidden documents",
                where=f"query {query}",
                fix='write a list of ids, such as ["d7", "d9"]',
            ) from None
    yield from ((query, str(doc)) for doc in docs)


def days(rows: pl.DataFrame, corpus: pl.DataFrame | None) -> tuple[pl.Series, pl.Series]:
    """Return the date of each row of a run, in days since 1970, and the newest of the corpus.

    The date is null where it is unknown.
    """
    if corpus is None or "date" not in corpus.columns:
        raise InputError(
            "nothing says from when the documents are",
            fix="name a corpus with a column date, such as 2026-05-31 (--corpus, corpus=)",
        )
    written = corpus["date"].str.strip_chars().str.head(10)
    date = written.str.to_date(DAY, strict=False)
    wrong = corpus["date"].filter(date.is_null() & written.is_not_null() & (written != ""))
    if len(wrong):
        what = f"{wrong[0]!r} is not a date"
        raise InputError(what, where="corpus", fix="write dates as YYYY-MM-DD, such as 2026-05-31")
    known = pl.DataFrame({"doc": corpus["doc"], "day": date.to_physical().cast(pl.Float64)})
    joined = rows.select("doc").join(known, on="doc", how="left", maintain_order="left")
    return joined["day"], pl.repeat(known["day"].max(), rows.height, dtype=pl.Float64, eager=True)
