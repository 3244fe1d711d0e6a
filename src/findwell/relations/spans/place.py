"""Where texts are in the documents, which chunks cover which spans, and what chunks leave out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.findings import EXAMPLES, Finding
from findwell.core.frames import pl
from findwell.relations.spans.locate import PLACE_COLUMNS, locate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Ints

    Places: TypeAlias = list[tuple[Any, ...]]  # doc, start, end, score, status, number of places

FOUND_COLUMNS: dict[str, type[pl.DataType]] = {"number": pl.Int64, **PLACE_COLUMNS}
FOUND_COLUMNS |= {"text": pl.String, "note": pl.String}
LOST_PLACE = (None, None, None, None, "lost", 0)
NOTED_PLACES = 3  # that a note names
NO_LETTER = re.compile(r"\W+")  # what chunkers may drop without a loss
BLANK = re.compile(r"\s*")
COVERAGE_COLUMNS = {"doc": pl.String} | dict.fromkeys(
    ("letters", "held", "start", "end", "chunks"), pl.Int64
)
# what findings say of a label, by how chunks cut it: see `cover`
CUT_MESSAGES = {
    "none": ("# label|labels is|are in no chunk: nothing can find it|them.", "check the chunker"),
    "partly": ("# label|labels is|are partly in no chunk.", "check the chunker"),
    "split": ("# label|labels is|are in no single chunk.", "one of its chunks is not enough"),
}
WORST_DOCUMENTS = 10  # that a finding names
FALSE_ALARM = 0.001  # chance that a chunker which drops nothing looks as if it did


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
            places[number] = [LOST_PLACE]
    rest = [number for number in range(len(given)) if number not in places]
    home = {number: given[number][1] for number in rest if given[number][1] in texts}
    places |= _look({number: given[number][0] for number in rest}, home, corpus, min_score)
    gone = {number: given[number][0] for number in home if places[number] == [LOST_PLACE]}
    places |= _look(gone, {}, corpus, min_score)
    rows = [
        (number, *row, _at(texts, *row[:3]), _note(given[number], places[number], texts))
        for number in range(len(given))
        for row in places[number]
    ]
    return pl.DataFrame(rows, schema=FOUND_COLUMNS, orient="row")


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
    if places == [LOST_PLACE]:
        if text is None and doc is None:
            return "unknown id"
        if doc is not None and doc not in texts:
            return "no such document"
        return "no such text" if text is not None else "the document ends before"
    if len(places) > 1:
        shown = ", ".join(f"{row[0]} {row[1]}–{row[2]}" for row in places[:NOTED_PLACES])
        return shown + (", …" if len(places) > NOTED_PLACES else "")
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


def overlapping(spans: pl.DataFrame, chunks: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the rows of spans and of chunks that have a character in common, as pairs.

    Both have the columns start and end, and those of `by`, which must be equal; what has a null
    there has nothing in common with anything. The chunks of about
    one size are sorted by where they begin: those that reach into a span begin inside it, or not
    more than their size before. So time grows with the rows and with the overlaps that there are,
    also where one chunk is as long as all others together.

    >>> spans = pl.DataFrame({"doc": ["d", "e"], "start": [3, 0], "end": [6, 9]})
    >>> chunks = pl.DataFrame({"doc": "d", "start": [0, 5, 6], "end": [5, 6, 9]})
    >>> [rows.tolist() for rows in overlapping(spans, chunks, ["doc"])]
    [[0, 0], [0, 1]]
    """
    span_group, chunk_group = _groups(spans, chunks, by)
    low, high = _ends(spans, by)
    start, end = _ends(chunks, by)
    wide = np.flatnonzero(low < high)
    sizes = np.frexp(np.maximum(end - start, 0).astype(np.float64))[1]  # below 2 to the power of it
    sizes[end <= start] = 0
    found = [(wide[:0], wide[:0])]
    for size in np.unique(sizes[sizes > 0]).tolist():
        alike = np.flatnonzero(sizes == size)
        alike = alike[np.lexsort((start[alike], chunk_group[alike]))]
        points = (start[alike], low[wide] - 2**size, high[wide])
        _, rank = np.unique(np.concatenate(points), return_inverse=True)
        width = rank.max(initial=0) + 1
        begins, before, until = np.split(rank, np.cumsum([len(each) for each in points])[:-1])
        key = chunk_group[alike] * width + begins
        first = np.searchsorted(key, span_group[wide] * width + before, side="right")
        last = np.searchsorted(key, span_group[wide] * width + until, side="left")
        count = np.maximum(last - first, 0)
        span = np.repeat(wide, count)
        place = np.arange(len(span)) + np.repeat(first - (np.cumsum(count) - count), count)
        chunk = alike[place]
        meets = end[chunk] > low[span]
        found.append((span[meets], chunk[meets]))
    span, chunk = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((chunk, span))
    return span[order], chunk[order]


def _ends(table: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Return where stretches start and end, 0 and 0 where that is not known."""
    known = pl.all_horizontal(pl.col("start", "end", *by).is_not_null())
    ends = table.select(pl.when(known).then(pl.col("start", "end")).fill_null(0).cast(pl.Int64))
    return ends["start"].to_numpy(), ends["end"].to_numpy()


def _groups(spans: pl.DataFrame, chunks: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Number what the tables have in the columns of `by`; the same number means the same."""
    both = pl.concat([spans.select(by), chunks.select(by)])
    numbers = both.unique(maintain_order=True).with_row_index("__group")
    group = both.join(numbers, on=by, how="left", maintain_order="left", nulls_equal=True)
    number = group["__group"].to_numpy().astype(np.int64)
    return number[: spans.height], number[spans.height :]


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
    return pl.DataFrame(rows, schema=COVERAGE_COLUMNS, orient="row")


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
                for row in lacking.head(WORST_DOCUMENTS).iter_rows(named=True)
            ),
            f"# of {table.height:,} documents has|have a part that is in no chunk, so that "
            f"nothing can find it. The chunks hold {_percent(held, letters)} of the letters.",
            "check the chunker: it may drop the last chunk, or short ones",
            run,
        )
    ]


def _percent(part: int, whole: int) -> str:
    """Return a share that is only called 100 % if it is.

    >>> _percent(99_999, 100_000), _percent(100_000, 100_000)
    ('99.9%', '100.0%')
    """
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
    ends = pl.col("start").min(), pl.col("end").max()
    reached = known.group_by("doc", maintain_order=True).agg(*ends, count=pl.len())
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
            f"# document|documents has|have retrieved chunks, but none with the {name}. This is "
            "so for every document that was found, so the chunker probably drops it.",
            "check the chunker; --chunks (chunks=) compares all its chunks with the corpus",
            run,
        )
        for name, docs in missed.items()
        if docs and len(docs) == reached.height and chances[name] < FALSE_ALARM
    ]


def widened(chunks: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Let chunks reach over the white space behind them, which is in no chunk otherwise."""
    texts = dict(documents.select("doc", "text").iter_rows())
    ends = [BLANK.match(texts[doc], end).end() for doc, end in chunks.select("doc", "end").rows()]  # type: ignore[union-attr]
    return chunks.with_columns(end=pl.Series(ends, dtype=pl.Int64))
