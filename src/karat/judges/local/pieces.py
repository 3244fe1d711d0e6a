"""Chunks cut into pieces of about a sentence, and into windows that an embedding model can read.

This cutting is quick and rough: it needs no library, and all it decides is which part of a chunk
is looked at and quoted. What is counted as a statement is cut by `karat.texts.sentences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.judges.local.terms import column_of

if TYPE_CHECKING:
    from karat.core.data import Ints

# a piece has 20 characters at least, so that abbreviations and headings stay with what follows
PIECE = r"""(?s).{20,}?(?:[.!?]["'”’)\]]*\s+|[。！？…]["'”’」』）]*|\n\s*|$)|.+"""
LONGEST = 600  # characters of a piece; text without any full stop is cut at spaces
READ = 1100  # characters that an embedding model reads at once, about 256 tokens of English
WINDOW = 900  # characters of a window of a longer chunk


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of several chunks, one chunk after the other."""

    texts: list[str]
    offset: Ints  # the pieces of chunk c are texts[offset[c] : offset[c + 1]]

    def of(self, chunk: int) -> list[str]:
        """Return the pieces of one chunk."""
        return self.texts[self.offset[chunk] : self.offset[chunk + 1]]

    def only(self, chunks: Ints) -> Pieces:
        """Return the pieces of some chunks."""
        texts = [self.of(chunk) for chunk in chunks.tolist()]
        sizes = [len(each) for each in texts]
        offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Pieces([text for each in texts for text in each], offset)


def cut(chunks: Sequence[str]) -> Pieces:
    """Cut chunks into pieces; a blank chunk has none.

    >>> pieces = cut(["Dr. Lee came to Brasília. He stayed for a month. ", " ", "No end"])
    >>> [pieces.of(chunk) for chunk in range(3)]
    [['Dr. Lee came to Brasília.', 'He stayed for a month.'], [], ['No end']]
    """
    texts = column_of(chunks)
    table = pl.DataFrame({"chunk": pl.int_range(len(texts), eager=True), "text": texts})
    table = table.with_columns(pl.col("text").str.extract_all(PIECE)).explode("text")
    table = table.with_columns(pl.col("text").str.strip_chars()).filter(pl.col("text") != "")
    table = _shortened(table)
    sizes = np.bincount(table["chunk"].to_numpy(), minlength=len(texts))
    return Pieces(table["text"].to_list(), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def _shortened(pieces: pl.DataFrame) -> pl.DataFrame:
    """Cut pieces that are too long at spaces."""
    length = pl.col("text").str.len_chars()
    long = pieces.with_row_index().filter(length > LONGEST)
    if not len(long):
        return pieces
    parts = pl.Series("text", [_parts(text) for text in long["text"]], dtype=pl.List(pl.String))
    short = pieces.with_row_index().filter(length <= LONGEST)
    return pl.concat([short, long.with_columns(parts).explode("text")]).sort("index").drop("index")


def _parts(text: str) -> list[str]:
    parts = []
    while len(text) > LONGEST:
        end = text.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return [part for part in [*parts, text] if part]


def windows(chunk: str, pieces: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the texts that stand for a chunk before an embedding model, and their pieces.

    A chunk that the model can read at once is one text. A longer one is cut between pieces.

    >>> windows("One two. Three.", ["One two.", "Three."])
    [('One two. Three.', 0, 2)]
    """
    if len(chunk) <= READ:
        return [(chunk, 0, len(pieces))]
    found = []
    first, length = 0, 0
    for place, piece in enumerate(pieces):
        if length and length + len(piece) > WINDOW:
            found.append((" ".join(pieces[first:place]), first, place))
            first, length = place, 0
        length += len(piece) + 1
    return [*found, (" ".join(pieces[first:]), first, len(pieces))]
