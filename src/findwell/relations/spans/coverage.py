"""How much of the documents chunks hold, and where they leave something out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from findwell.core.findings import EXAMPLES, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_LETTER = re.compile(r"\W+")  # what chunkers may drop without a loss
SCHEMA = {"doc": pl.String, "letters": pl.Int64, "held": pl.Int64}
SCHEMA |= {"start": pl.Int64, "end": pl.Int64, "chunks": pl.Int64}
BLANK = re.compile(r"\s*")
# what findings say of a label, by how chunks cut it: see `findwell.relations.spans.place.cover`
CUT = {
    "none": ("label that is in no chunk: nothing can find it", "check the chunker"),
    "partly": ("label that is partly in no chunk", "check the chunker"),
    "split": ("label that no single chunk holds", "retrieving one of its chunks is not enough"),
}
WORST = 10  # documents that a finding names
CHANCE = 0.001  # that a chunker which drops nothing looks as if it did


def coverage(chunks: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Tell for each document how many of its letters and digits are in some chunk.

    Both have the column doc, the chunks also start and end, the documents also text. The result has
    one row per document: its letters, those that chunks hold, the first stretch that no chunk
    holds (null if there is none), and how many different chunks it has.

    >>> documents = pl.DataFrame({"doc": ["d"], "text": ["Press it. Twice."]})
    >>> chunks = pl.DataFrame({"doc": ["d"], "start": [0], "end": [9]})
    >>> coverage(chunks, documents).rows()
    [('d', 12, 7, 10, 16, 1)]
    """
    places: dict[str, list[tuple[int, int]]] = {}
    distinct = chunks.select("doc", "start", "end").drop_nulls().unique().sort("start", "end")
    for doc, start, end in distinct.iter_rows():
        places.setdefault(doc, []).append((start, end))
    rows = []
    for doc, text in documents.select("doc", "text").drop_nulls().iter_rows():
        mine = places.get(doc, [])
        gaps = [gap for gap in _gaps(mine, text) if _letters(text[slice(*gap)])]
        letters = _letters(text)
        missing = sum(_letters(text[start:end]) for start, end in gaps)
        first = gaps[0] if gaps else (None, None)
        rows.append((doc, letters, letters - missing, *first, len(mine)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _letters(text: str) -> int:
    return len(NO_LETTER.sub("", text))


def _gaps(places: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Return the stretches that no place holds, without the blanks around them."""
    found, upto = [], 0
    for start, end in [*places, (len(text), len(text))]:
        gap = text[upto:start]
        if gap.strip():
            begin = upto + len(gap) - len(gap.lstrip())
            found.append((begin, begin + len(gap.strip())))
        upto = max(upto, end)
    return found


def left_out(chunks: pl.DataFrame, documents: pl.DataFrame, run: str = "") -> list[Finding]:
    """Report the documents of which a part is in no chunk, those that lack most first."""
    table = coverage(chunks, documents)
    share = pl.col("held") / pl.col("letters")
    lacking = table.filter(pl.col("held") < pl.col("letters")).sort(share, maintain_order=True)
    if not lacking.height:
        return []
    held, letters = (int(table[name].sum()) for name in ("held", "letters"))
    return [
        Finding(
            "left-out-text",
            lacking.height,
            tuple(
                f"{row['doc']}: {_percent(row['held'], row['letters'])}, "
                f"nothing at {row['start']}–{row['end']}"
                for row in lacking.head(WORST).iter_rows(named=True)
            ),
            f"document of which a part is in no chunk, so that nothing can find it; of all "
            f"{table.height:,} documents the chunks hold {_percent(held, letters)} of the letters",
            "check the chunker: it may drop the last chunk, or short ones",
            run,
        )
    ]


def _percent(part: int, whole: int) -> str:
    """Return a share that is only called 100 % if it is."""
    return f"{min(part / max(whole, 1), 0.999 if part < whole else 1.0):.1%}"


def never_reached(chunks: pl.DataFrame, documents: pl.DataFrame, run: str = "") -> list[Finding]:
    """Report documents of whose beginnings, or ends, none was ever retrieved.

    The chunks are those that were retrieved, which need not be all. If every chunk of a document
    were retrieved alike, the last one would be missing by chance alone from all documents with a
    probability that is easily computed; only what is too rare for chance is reported.
    """
    texts = dict(documents.select("doc", "text").iter_rows())
    known = chunks.drop_nulls(["doc", "start", "end"]).unique(["doc", "start", "end"])
    size = max(float(known.select((pl.col("end") - pl.col("start")).mean()).item() or 1.0), 1.0)
    reached = known.group_by("doc", maintain_order=True).agg(
        pl.col("start").min(), pl.col("end").max(), count=pl.len()
    )
    missed: dict[str, list[str]] = {"beginning": [], "end": []}
    chances = {"beginning": 1.0, "end": 1.0}
    for doc, start, end, count in reached.iter_rows():
        text = texts[doc]
        for name, rest in (("beginning", text[:start]), ("end", text[end:])):
            if _letters(rest):
                missed[name].append(doc)
                chances[name] *= max(1 - count * size / len(text), 0.0)
    return [
        Finding(
            f"no-{name}",
            len(docs),
            tuple(docs[:EXAMPLES]),
            f"document of which chunks were retrieved, but never its {name}; this is so for every "
            "document that was found, so the chunker probably drops it",
            "check the chunker; --chunks (chunks=) compares all its chunks with the corpus",
            run,
        )
        for name, docs in missed.items()
        if docs and len(docs) == reached.height and chances[name] < CHANCE
    ]


def widened(chunks: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Let chunks reach over the white space behind them, which is in no chunk otherwise."""
    texts = dict(documents.select("doc", "text").iter_rows())
    ends = [BLANK.match(texts[doc], end).end() for doc, end in chunks.select("doc", "end").rows()]  # type: ignore[union-attr]
    return chunks.with_columns(end=pl.Series(ends, dtype=pl.Int64))
