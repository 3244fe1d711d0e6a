"""What the local judge sees of a text and a chunk: shared words and, with a model, similarity.

All sums of words are of whole numbers in the order of the text, so a pair has the same numbers
whatever other pairs there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.judges.embeddings import cosine
from findwell.judges.local.reading import WHOLE, Forms, Needle, ReadChunk, Reader, windows

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.judges.embeddings import Embedder

Pairs: TypeAlias = Sequence[tuple[str, str]]  # a question or a claim, and a chunk

TYPICAL = 150  # words of a chunk of usual length
LONGEST = 300  # a longer chunk counts as one of this length: what is in it is in it
SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b
FINE = 1000
MANY = 8  # windows; of a longer chunk the model reads only the one that shares most words


@dataclass(frozen=True, slots=True)
class Overlap:
    """What pairs of a needle (a question, a claim) and a chunk share; shares are 0…1."""

    words: Ints  # terms of the needle, counted once
    cover: Floats  # the share of the needle's weight that the chunk has
    often: Floats  # the same, but a term counts the more, the more often it occurs (BM25), 0…2.2
    place: Ints  # the piece with the largest share, the first of equals, within the chunk
    lacking: Ints  # 1 where a chunk lacks the entry of a list that a claim is about
    language: list[str]  # as which words were compared


def overlap(
    pairs: Pairs,
    reader: Reader | None = None,
    entries: Sequence[str] | None = None,
    *,
    related: bool = True,
    counted: bool = True,
) -> tuple[Overlap, list[ReadChunk]]:
    """Compare needles with chunks; return the chunks as they were read, too."""
    read = (reader or Reader()).read(pairs, entries, related=related)
    rows = list(map(partial(_shared, counted=counted), *read))
    cover, frequency, place, lacking = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    whole = np.array([max(needle.total, 1) for needle in read.needles], dtype=np.float64)
    found = Overlap(
        words=np.array([len(needle.terms) for needle in read.needles], dtype=np.int64),
        cover=cover / WHOLE / whole,
        often=frequency / WHOLE / whole / FINE,
        place=place,
        lacking=lacking,
        language=read.languages,
    )
    return found, read.chunks


def _shared(
    needle: Needle, forms: Forms, chunk: ReadChunk, language: str, *, counted: bool
) -> tuple[int, int, int, int]:
    """Return the weight that a chunk has of a needle, the same by frequency, and the best piece.

    Frequencies are only `counted` where they are used. The last number is 1 if the chunk lacks the
    entry of a list that the needle is about.
    """
    met = chunk.meet(needle, forms, language)
    lacking = int(needle.entry.isdisjoint(met)) if needle.entry else 0
    if not met:
        return 0, 0, 0, lacking
    cover = frequency = place = 0
    weighed = []
    for number, (share, held) in met.items():
        weight = needle.terms[number][1] * share
        cover += weight
        if counted:
            frequency += weight * often(sum(map(chunk.count, held)), chunk.length)
        weighed.append((weight, held))
    if len(chunk.terms) > 1:
        place = _best_place(weighed, chunk, cover)
    return cover, frequency, place, lacking


def often(count: int, length: int) -> int:
    """Return how much a number of occurrences counts, in thousandths."""
    heavy = SATURATION * (1 - LENGTH + LENGTH * min(length, LONGEST) / TYPICAL)
    return floor(FINE * (count * (SATURATION + 1) / (count + heavy)) + 0.5)


def _best_place(met: list[tuple[int, list[str]]], chunk: ReadChunk, most: int) -> int:
    """Return the piece with the largest weight of shared terms, the first of equals.

    `most` is the weight of all terms: no piece has more.
    """
    best = place = 0
    for number, terms in enumerate(chunk.terms):
        weight = 0
        for each, held in met:
            if held[0] in terms or (len(held) > 1 and not terms.isdisjoint(held)):
                weight += each
        if weight > best:
            best, place = weight, number
            if weight == most:
                break
    return place


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of pairs, and where their best pieces are."""

    overlap: Overlap
    similarity: Floats | None  # cosine with the chunk, or with the likest window of a long one
    closest: Floats | None  # the same, or with the best piece if that is more
    chunks: list[ReadChunk]  # of each pair

    def columns(self) -> dict[str, Floats]:
        """Return the signals by name, as weights are given for them."""
        named = {"cover": self.overlap.cover, "often": self.overlap.often}
        likeness = {"similarity": self.similarity, "closest": self.closest}
        return named | {name: each for name, each in likeness.items() if each is not None}

    def quotes(self) -> list[str]:
        """Return the best piece of each pair's chunk: the one that shares most words."""
        places = self.overlap.place.tolist()
        return [
            chunk.pieces[place] if chunk.pieces else ""
            for chunk, place in zip(self.chunks, places, strict=True)
        ]


def compare(
    pairs: Pairs,
    embedder: Embedder | None,
    *,
    closest: bool = False,
    related: bool = True,
    counted: bool = True,
    reader: Reader | None = None,
    entries: Sequence[str] | None = None,
) -> Signals:
    """Return the signals of pairs of a text (a question, a claim) and a chunk.

    `related` words count for relevance and claims, where this agrees better with people; of single
    statements it does not.
    """
    shared, chunks = overlap(pairs, reader, entries, related=related, counted=counted)
    signals = Signals(shared, None, None, chunks)
    if embedder is None:
        return signals
    texts = {text: number for number, text in enumerate(dict.fromkeys(text for text, _ in pairs))}
    text = np.array([texts[text] for text, _ in pairs], dtype=np.int64)
    read, pair = _read(pairs, chunks, shared.place)
    similarity = np.full(len(text), -1.0)  # the largest of each pair's windows
    found = cosine(list(texts), read, (text[pair], np.arange(len(read))), embedder)
    np.maximum.at(similarity, pair, found)
    nearest = None
    if closest:
        best = signals.quotes()
        nearest = cosine(list(texts), best, (text, np.arange(len(best))), embedder)
        nearest = np.maximum(nearest, similarity)
    return Signals(shared, similarity, nearest, chunks)


def _read(pairs: Pairs, chunks: Sequence[ReadChunk], place: Ints) -> tuple[list[str], Ints]:
    """Return the texts that the model reads for pairs, and the pair of each."""
    cuts: dict[str, list[tuple[str, int, int]]] = {}
    read: list[str] = []
    pair: list[int] = []
    for number, ((_, chunk), best) in enumerate(zip(pairs, place.tolist(), strict=True)):
        if chunk not in cuts:
            cuts[chunk] = windows(chunk, chunks[number].pieces)
        found = cuts[chunk]
        if len(found) > MANY:
            found = [window for window in found if window[1] <= best < window[2]]
        read += (text for text, _, _ in found)
        pair += [number] * len(found)
    return read, np.array(pair, dtype=np.int64)
