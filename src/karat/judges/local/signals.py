"""What the local judge sees of a text and a chunk: shared words and, with a model, likeness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.embeddings import cosine
from karat.judges.local.overlap import Overlap, overlap
from karat.judges.local.pieces import Pieces, cut, windows

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints
    from karat.embeddings import Embedder

MANY = 8  # windows; of a longer chunk the model reads only the one that shares most words


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of pairs, and where their best pieces are."""

    overlap: Overlap
    similarity: Floats | None  # cosine with the chunk, or with the likest window of a long one
    closest: Floats | None  # the same, or with the best piece if that is more
    pieces: Pieces
    chunk: Ints  # of each pair

    def __len__(self) -> int:
        return len(self.chunk)

    def columns(self) -> dict[str, Floats]:
        """Return the signals by name, as weights are given for them."""
        named = {"cover": self.overlap.cover, "often": self.overlap.often}
        if self.similarity is not None:
            named["similarity"] = self.similarity
        if self.closest is not None:
            named["closest"] = self.closest
        return named

    def around(self, pair: int) -> tuple[str, str, str]:
        """Return the best piece of a pair's chunk between its neighbours."""
        place = int(self.overlap.place[pair])
        pieces = ["", *self.pieces.of(int(self.chunk[pair])), "", ""]
        return pieces[place], pieces[place + 1], pieces[place + 2]

    def quotes(self) -> list[str]:
        """Return the best piece of each pair's chunk: the one that shares most words."""
        return _best_pieces(self.pieces, self.chunk, self.overlap.place)


def compare(
    pairs: Sequence[tuple[str, str]], embedder: Embedder | None, *, closest: bool = False
) -> Signals:
    """Return the signals of pairs of a text (a question, a claim) and a chunk."""
    texts = {text: number for number, text in enumerate(dict.fromkeys(text for text, _ in pairs))}
    chunks = {chunk: number for number, chunk in enumerate(dict.fromkeys(it for _, it in pairs))}
    text = np.array([texts[text] for text, _ in pairs], dtype=np.int64)
    chunk = np.array([chunks[chunk] for _, chunk in pairs], dtype=np.int64)
    pieces = cut(list(chunks))
    shared = overlap(list(texts), pieces, (text, chunk))
    if embedder is None:
        return Signals(shared, None, None, pieces, chunk)
    read, pair = _read(list(chunks), pieces, chunk, shared.place)
    similarity = _largest(
        cosine(list(texts), read, (text[pair], np.arange(len(read))), embedder), pair, len(text)
    )
    nearest = None
    if closest:
        best = _best_pieces(pieces, chunk, shared.place)
        nearest = cosine(list(texts), best, (text, np.arange(len(best))), embedder)
        nearest = np.maximum(nearest, similarity)
    return Signals(shared, similarity, nearest, pieces, chunk)


def _read(chunks: list[str], pieces: Pieces, chunk: Ints, place: Ints) -> tuple[list[str], Ints]:
    """Return the texts that the model reads for pairs, and the pair of each."""
    cuts = [windows(text, pieces.of(number)) for number, text in enumerate(chunks)]
    read: list[str] = []
    pair: list[int] = []
    for number, (which, best) in enumerate(zip(chunk.tolist(), place.tolist(), strict=True)):
        found = cuts[which]
        if len(found) > MANY:
            found = [window for window in found if window[1] <= best < window[2]]
        read += (text for text, _, _ in found)
        pair += [number] * len(found)
    return read, np.array(pair, dtype=np.int64)


def _largest(values: Floats, pair: Ints, count: int) -> Floats:
    """Return the largest value of each pair."""
    largest = np.full(count, -1.0)
    np.maximum.at(largest, pair, values)
    return largest


def _best_pieces(pieces: Pieces, chunk: Ints, place: Ints) -> list[str]:
    first, end = pieces.offset[chunk], pieces.offset[chunk + 1]
    where = np.where(first < end, first + place, len(pieces.texts))  # behind the last: no piece
    texts = [*pieces.texts, ""]
    return [texts[at] for at in where.tolist()]
