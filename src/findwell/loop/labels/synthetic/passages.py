"""The passages of a corpus, and in which order questions are written about them.

A passage is a stretch of a document, or the whole of a short one. Where the corpus holds chunks
that say where they were cut (source, start, end), its place is that in the source, so that two
chunks that overlap have their common characters in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from findwell.core.errors import InputError
from findwell.judges.client.budget import ASCII_PER_TOKEN
from findwell.judges.llm.prompts import cut_text

if TYPE_CHECKING:
    import numpy as np

COLUMNS = ("doc", "text", "source", "start", "end")
LEAST = 40  # characters that a question can be written about; shorter passages are only searched
# where a document may be cut, the best places first: paragraphs, lines, sentences, words
ENDS = tuple(map(re.compile, (r"\n[^\S\n]*\n\s*", r"\n\s*", r"[.!?]\s+|[。！？]\s*", r"\s+")))


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document: the characters `start` to `end`, the end not part of it."""

    number: int  # its place among all passages
    doc: str  # what gold spans name
    start: int
    end: int
    text: str
    family: str  # the document that the passages are spread over

    def overlaps(self, doc: str, start: int, end: int) -> bool:
        """Tell whether it has a character in common with a place."""
        return self.doc == doc and self.start < end and start < self.end


def cut_passages(corpus: pl.DataFrame, tokens: int, where: str) -> tuple[list[Passage], list[str]]:
    """Cut all texts of a corpus into passages of at most this many tokens, sorted by their places.

    The second list names chunks whose offsets do not fit their texts, which are left out.
    """
    absent = [name for name in ("source", "start", "end") if name not in corpus.columns]
    table = corpus.with_columns(pl.lit(None).alias(name) for name in absent)
    rows: list[tuple[str, int, int, str, str]] = []
    misfits: list[str] = []
    for doc, text, source, first, last in table.select(COLUMNS).drop_nulls("text").iter_rows():
        known = source is not None and first is not None
        if known and last - first != len(text):
            misfits.append(doc)
            continue
        home, offset = (source, first) if known else (doc, 0)
        rows += [
            (home, offset + start, offset + end, text[start:end], source or doc)
            for start, end in cut(text, tokens)
        ]
    if not any(len(text) >= LEAST for *_, text, _ in rows):
        what = f"no passage has {LEAST} characters, which a question needs"
        raise InputError(
            "the offsets of the chunks do not fit their texts" if misfits else what,
            where=where,
            fix="give the documents themselves, as a folder, a file or {id: text}",
        )
    ordered = sorted(set(rows))
    return [Passage(number, *row) for number, row in enumerate(ordered)], misfits


def cut(text: str, tokens: int) -> Iterator[tuple[int, int]]:
    """Yield where the passages of a text start and end, without white space around them.

    A passage ends where a paragraph does, or else a line, a sentence, a word, in its second half.

    >>> text = "One two three four. Five six seven. Eight nine ten."
    >>> [text[start:end] for start, end in cut(text, 9)]
    ['One two three four. Five six seven.', 'Eight nine ten.']
    """
    start = 0
    while start < len(text):
        piece = cut_text(text[start : start + ASCII_PER_TOKEN * tokens + 1], tokens) or text[start]
        end = start + len(piece)
        if end < len(text):
            end = start + _good_end(piece)
        bare = text[start:end].strip()
        if bare:
            first = text.index(bare[0], start)
            yield first, first + len(bare)
        start = end


def _good_end(piece: str) -> int:
    """Return where to cut a piece that goes on."""
    for pattern in ENDS:
        ends = [found.end() for found in pattern.finditer(piece, len(piece) // 2)]
        if ends:
            return ends[-1]
    return len(piece)


def spread(passages: Sequence[Passage], rng: np.random.Generator) -> list[Passage]:
    """Return the passages that are long enough, in a random order that takes turns of documents.

    A document comes again only when all others have had their turn.

    >>> import numpy as np
    >>> given = [Passage(n, "abbb"[n], n, n + 50, "x" * 50, "abbb"[n]) for n in range(4)]
    >>> sorted(passage.doc for passage in spread(given, np.random.default_rng(0))[:2])
    ['a', 'b']
    """
    able = [passage for passage in passages if len(passage.text) >= LEAST]
    shuffled = [able[place] for place in rng.permutation(len(able))]
    families = sorted({passage.family for passage in able})
    order = dict(zip(families, rng.permutation(len(families)).tolist(), strict=True))
    turns: dict[str, int] = {}
    keyed = []
    for passage in shuffled:
        turn = turns[passage.family] = turns.get(passage.family, 0) + 1
        keyed.append((turn, order[passage.family], passage))
    return [passage for _, _, passage in sorted(keyed, key=lambda each: each[:2])]
