"""What the local judge sees of a text and a chunk: shared words and, with a model, similarity.

Thousands of pairs are compared at once. All sums of words are of whole numbers, so a pair has
the same numbers whatever other pairs there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.embeddings import cosine
from karat.judges.local.pieces import Pieces, cut, windows
from karat.judges.local.terms import terms_of
from karat.languages import ENGLISH, known, languages_of

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints
    from karat.embeddings import Embedder

Codes: TypeAlias = NDArray[np.object_]  # of languages

TYPICAL = 150  # words of a chunk of usual length
LONGEST = 300  # a longer chunk counts as one of this length: what is in it is in it
SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b
FINE = 1000
MANY = 8  # windows; of a longer chunk the model reads only the one that shares most words
FIRST = 8  # pieces of a chunk that tell its language


@dataclass(frozen=True, slots=True)
class Overlap:
    """What pairs of a needle (a question, a claim) and a chunk share; shares are 0…1."""

    words: Ints  # terms of the needle, counted once
    cover: Floats  # the share of the needle's weight that the chunk has
    often: Floats  # the same, but a term counts the more, the more often it occurs (BM25), 0…2.2
    place: Ints  # the piece with the largest share, the first of equals, within the chunk
    language: Codes  # as which words were compared


def overlap(needles: Sequence[str], pieces: Pieces, pairs: tuple[Ints, Ints]) -> Overlap:
    """Compare needles with chunks; a pair is the number of a needle and of a chunk.

    Words are compared as the language of the pair has them: that of the needle, or where it tells
    nothing, that of the chunk.
    """
    codes = languages_of(needles)
    bare = [known(code).bare(text) for text, code in zip(needles, codes, strict=True)]
    language = _of_pairs(codes, pieces, pairs)
    found = np.unique(language)
    if len(found) <= 1:
        return _overlap(bare, pieces, pairs, str(next(iter(found), ENGLISH)))
    count = len(language)
    words, place = np.zeros((2, count), dtype=np.int64)
    cover, often = np.zeros((2, count))
    for code in found:
        mine = np.flatnonzero(language == code)
        chunks, chunk = np.unique(pairs[1][mine], return_inverse=True)
        part = _overlap(bare, pieces.only(chunks), (pairs[0][mine], chunk), str(code))
        words[mine], place[mine] = part.words, part.place
        cover[mine], often[mine] = part.cover, part.often
    return Overlap(words, cover, often, place, language)


def _of_pairs(codes: list[str], pieces: Pieces, pairs: tuple[Ints, Ints]) -> Codes:
    """Return the language of each pair; an unknown one is read as English."""
    found = _codes(codes)[pairs[0]]
    silent = np.flatnonzero(np.array([not code for code in codes], dtype=bool)[pairs[0]])
    if len(silent):
        chunks, place = np.unique(pairs[1][silent], return_inverse=True)
        texts = [" ".join(pieces.of(chunk)[:FIRST]) for chunk in chunks.tolist()]
        found[silent] = _codes(languages_of(texts))[place]
    return found


def _codes(codes: list[str]) -> Codes:
    return np.array([code if known(code).inflects else ENGLISH for code in codes], dtype=object)


def _overlap(
    needles: Sequence[str], pieces: Pieces, pairs: tuple[Ints, Ints], language: str
) -> Overlap:
    count = len(needles)
    table = terms_of([*needles, *pieces.texts], language)
    wanted = _wanted(table.filter(pl.col("text") < count))
    chunk_of = np.repeat(np.arange(len(pieces.offset) - 1), np.diff(pieces.offset))
    held = _held(table.filter(pl.col("text") >= count), chunk_of, count, wanted)
    asked = pl.DataFrame({"needle": pairs[0], "chunk": pairs[1]}).with_row_index("pair")
    asked = asked.with_columns(pl.col("pair").cast(pl.Int64))
    sought = asked.join(wanted, on="needle")
    shared = sought.join(_counted(held), on=["chunk", "term"])
    total, words = (_each(sought, len(asked), what) for what in (pl.col("weight").sum(), pl.len()))
    cover = _each(shared, len(asked), pl.col("weight").sum())
    often = _each(shared, len(asked), (pl.col("weight") * pl.col("often")).sum())
    place = _best_place(shared, held, pieces, len(asked))
    whole = np.maximum(total, 1).astype(np.float64)
    everywhere = np.full(len(asked), language, dtype=object)
    return Overlap(words, cover / whole, often / whole / FINE, place, everywhere)


def _wanted(terms: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct terms of each needle; words without meaning count where all are."""
    distinct = terms.group_by(needle="text", term="term").agg(pl.col("weight").max())
    heaviest = pl.col("weight").max().over("needle")
    weight = pl.when(heaviest == 0).then(1).otherwise("weight")
    return distinct.with_columns(weight=weight).filter(pl.col("weight") > 0)


def _held(terms: pl.DataFrame, chunk_of: Ints, skip: int, wanted: pl.DataFrame) -> pl.DataFrame:
    """Return the terms of chunks that any needle has, with piece, chunk and length of the chunk."""
    chunk = pl.Series("chunk", chunk_of, dtype=pl.Int64).gather(terms["text"] - skip)
    size = int(chunk_of.max(initial=0)) + 1
    length = np.bincount(chunk.to_numpy(), terms["halves"].to_numpy(), size).astype(np.int64) // 2
    held = terms.select("term", piece=pl.col("text") - skip).with_columns(chunk)
    held = held.join(wanted.select("term").unique(), on="term", how="semi")
    return held.with_columns(length=pl.Series(length, dtype=pl.Int64).gather(held["chunk"]))


def _counted(held: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct terms of each chunk, and how much their number counts, in thousandths."""
    counts = held.group_by("chunk", "term").agg(count=pl.len(), length=pl.col("length").first())
    heavy = SATURATION * (
        1 - LENGTH + LENGTH * pl.col("length").clip(upper_bound=LONGEST) / TYPICAL
    )
    often = pl.col("count") * (SATURATION + 1) / (pl.col("count") + heavy)
    return counts.select("chunk", "term", often=(FINE * often).round().cast(pl.Int64))


def _best_place(shared: pl.DataFrame, held: pl.DataFrame, pieces: Pieces, count: int) -> Ints:
    """Return the piece with the largest weight of shared terms; 0 if nothing is shared."""
    here = held.select("chunk", "term", "piece").unique()
    met = shared.select("pair", "chunk", "term", "weight").join(here, on=["chunk", "term"])
    sums = met.group_by("pair", "chunk", "piece").agg(pl.col("weight").sum())
    best = sums.sort("pair", "weight", "piece", descending=[False, True, False])
    best = best.unique("pair", keep="first", maintain_order=True)
    place = np.zeros(count, dtype=np.int64)
    place[best["pair"].to_numpy()] = (
        best["piece"].to_numpy() - pieces.offset[best["chunk"].to_numpy()]
    )
    return place


def _each(table: pl.DataFrame, count: int, what: pl.Expr) -> Ints:
    """Return a sum for each pair, 0 where there is nothing to sum."""
    sums = table.group_by("pair").agg(what.alias("sum"))
    values = np.zeros(count, dtype=np.int64)
    values[sums["pair"].to_numpy()] = sums["sum"].to_numpy()
    return values


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of pairs, and where their best pieces are."""

    overlap: Overlap
    similarity: Floats | None  # cosine with the chunk, or with the likest window of a long one
    closest: Floats | None  # the same, or with the best piece if that is more
    pieces: Pieces
    chunk: Ints  # of each pair

    def columns(self) -> dict[str, Floats]:
        """Return the signals by name, as weights are given for them."""
        named = {"cover": self.overlap.cover, "often": self.overlap.often}
        likeness = {"similarity": self.similarity, "closest": self.closest}
        return named | {name: each for name, each in likeness.items() if each is not None}

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
    similarity = np.full(len(text), -1.0)  # the largest of each pair's windows
    found = cosine(list(texts), read, (text[pair], np.arange(len(read))), embedder)
    np.maximum.at(similarity, pair, found)
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


def _best_pieces(pieces: Pieces, chunk: Ints, place: Ints) -> list[str]:
    first, end = pieces.offset[chunk], pieces.offset[chunk + 1]
    where = np.where(first < end, first + place, len(pieces.texts))  # behind the last: no piece
    texts = [*pieces.texts, ""]
    return [texts[at] for at in where.tolist()]
