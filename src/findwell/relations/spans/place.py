"""Where texts are in the documents, and which chunks cover which spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from findwell.relations.spans.locate import locate
from findwell.relations.spans.overlap import overlapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Places: TypeAlias = list[tuple[Any, ...]]  # doc, start, end, score, status, number of places

SCHEMA = {"number": pl.Int64, "doc": pl.String, "start": pl.Int64, "end": pl.Int64}
SCHEMA |= {"score": pl.Float64, "status": pl.String, "places": pl.Int64}
SCHEMA |= {"text": pl.String, "note": pl.String}
LOST = (None, None, None, None, "lost", 0)
SHOWN = 3  # places that a note names


def place(wanted: pl.DataFrame, corpus: pl.DataFrame, *, min_score: float = 0.85) -> pl.DataFrame:
    """Find texts in the documents: at their offsets, else in their document, else in all.

    `wanted` has the columns text, doc, start and end; whatever is not known is null. A text that is
    not known is the one at the offsets. The result is a table like that of `locate`, with the
    number of the row, the text at the place, and a note: why there is no place, which
    places there are if there are several, or that the place is not the one that was named.

    >>> corpus = pl.DataFrame({"doc": ["d"], "text": ["to be or not to be"]})
    >>> wanted = pl.DataFrame(
    ...     {"text": ["to be", "or not"], "doc": "d", "start": [13, 0], "end": [18, 6]}
    ... )
    >>> place(wanted, corpus).select("start", "end", "status", "note").rows()
    [(13, 18, 'exact', ''), (6, 12, 'exact', 'not at 0–6')]
    """
    texts = dict(corpus.select("doc", "text").iter_rows())
    given = wanted.select("text", "doc", "start", "end").rows()
    places: dict[int, Places] = {}
    for number, (text, doc, start, end) in enumerate(given):
        there = _at(texts, doc, start, end)
        if there is not None and text in (None, there):
            places[number] = [(doc, start, end, 1.0, "exact", 1)]
        elif text is None:
            places[number] = [LOST]
    rest = [number for number in range(len(given)) if number not in places]
    home = {number: given[number][1] for number in rest if given[number][1] in texts}
    places |= _look({number: given[number][0] for number in rest}, home, corpus, min_score)
    gone = {number: given[number][0] for number in home if places[number] == [LOST]}
    places |= _look(gone, {}, corpus, min_score)
    rows = [
        (number, *row, _at(texts, *row[:3]), _note(given[number], places[number], texts))
        for number in range(len(given))
        for row in places[number]
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _at(texts: Mapping[str, str], doc: Any, start: Any, end: Any) -> str | None:  # noqa: ANN401
    """Return the text at a place, or None if there is no such place."""
    text = texts.get(doc)
    return text[start:end] if text is not None and end is not None and end <= len(text) else None


def _look(
    quotes: Mapping[int, str], home: Mapping[int, str], corpus: pl.DataFrame, min_score: float
) -> dict[int, Places]:
    """Look for numbered texts in their documents, or in all where they have none."""
    numbers = list(quotes)
    docs = [home.get(number) for number in numbers]
    found: dict[int, Places] = {number: [] for number in numbers}
    for quote, *row in locate(quotes.values(), docs, corpus, min_score=min_score).iter_rows():
        found[numbers[quote]].append(tuple(row))
    return found


def _note(given: Sequence[Any], places: Places, texts: Mapping[str, str]) -> str:
    text, doc, start, end = given
    if places == [LOST]:
        if text is None and doc is None:
            return "unknown id"
        if doc is not None and doc not in texts:
            return "no such document"
        return "no such text" if text is not None else "the document ends before"
    if len(places) > 1:
        shown = ", ".join(f"{row[0]} {row[1]}–{row[2]}" for row in places[:SHOWN])
        return shown + (", …" if len(places) > SHOWN else "")
    if doc is not None and places[0][0] != doc:
        return f"not in {doc}"
    return f"not at {start}–{end}" if start is not None and places[0][1:3] != (start, end) else ""


def cover(spans: pl.DataFrame, chunks: pl.DataFrame) -> pl.DataFrame:
    """Tell for each span which chunks hold some of it, and how it was cut.

    Both have the columns doc, start and end, the chunks also chunk. The result has one row per
    span: the chunks in the order of the text, the share of its characters that they hold together,
    and the cut: `whole` if one chunk holds all of it, `split` if it takes several, `partly` if some
    of it is in no chunk, `none` if all of it is; null for a span without a place.

    >>> spans = pl.DataFrame({"doc": "d", "start": [0, 3, 8], "end": [4, 6, 12]})
    >>> chunks = pl.DataFrame({"doc": "d", "start": [0, 5], "end": [5, 10], "chunk": ["a", "b"]})
    >>> cover(spans, chunks).rows()
    [(['a'], 1.0, 'whole'), (['a', 'b'], 1.0, 'split'), (['b'], 0.5, 'partly')]
    """
    numbered = spans.select("doc", "start", "end").with_row_index("span")
    joined = numbered.join(_held(numbered, chunks), on="span", how="left", maintain_order="left")
    size = pl.col("end") - pl.col("start")
    share = pl.when(size > 0).then(pl.col("held").fill_null(0) / size).otherwise(size * 0.0)
    cut = (
        pl.when("whole")
        .then(pl.lit("whole"))
        .when(share >= 1)
        .then(pl.lit("split"))
        .when(share > 0)
        .then(pl.lit("partly"))
        .when(share == 0)
        .then(pl.lit("none"))
    )
    return joined.select(pl.col("chunks").fill_null([]), covered=share, cut=cut)


def _held(spans: pl.DataFrame, chunks: pl.DataFrame) -> pl.DataFrame:
    """Return for each span that meets a chunk which those are, and how much of it they hold."""
    span, chunk = overlapping(spans, chunks, ["doc"])
    others = chunks[chunk].select("chunk", low=pl.col("start"), high=pl.col("end"))
    pairs = pl.concat([spans[span], others], how="horizontal")
    whole = (pl.col("low") <= pl.col("start")) & (pl.col("end") <= pl.col("high"))
    begin, stop = pl.max_horizontal("start", "low"), pl.min_horizontal("end", "high")
    before = pl.col("stop").cum_max().shift(1).over("span").fill_null(0)  # held by earlier chunks
    return (
        pairs.sort("span", "low", "high", "chunk")
        .with_columns(begin=begin, stop=stop, whole=whole)
        .with_columns(held=(pl.col("stop") - pl.max_horizontal("begin", before)).clip(0))
        .group_by("span")
        .agg(
            pl.col("chunk").unique(maintain_order=True).alias("chunks"),
            pl.col("held").sum(),
            pl.col("whole").any(),
        )
    )
