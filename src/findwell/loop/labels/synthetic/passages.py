"""The passages of a corpus, and in which order questions are written about them.

A passage is a stretch of a document, or the whole of a short one. Where the corpus holds chunks
that say where they were cut (source, start, end), its place is that in the source, so that two
chunks that overlap have their common characters in one place. Passages are found by a lexical
search: BM25, by the words that a question and a passage share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.core.texts.words import words
from findwell.io.read.labels_database import typed
from findwell.judges.client.budget import ASCII_PER_TOKEN
from findwell.judges.llm.prompts import cut_text
from findwell.judges.local.terms import column_of

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

# characters that a question can be written about; shorter passages are only searched
PASSAGE_LENGTH = 40
BM25_SATURATION, BM25_LENGTH = 1.2, 0.75  # k1 and b
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

    def overlaps(self, other: Passage) -> bool:
        """Tell whether the two have a character in common."""
        return self.doc == other.doc and self.start < other.end and other.start < self.end


def cut_passages(corpus: pl.DataFrame, tokens: int, where: str) -> tuple[list[Passage], list[str]]:
    """Cut all texts of a corpus into passages of at most this many tokens, sorted by their places.

    The second list names chunks whose offsets do not fit their texts, which are left out.
    """
    table = corpus.select(typed(corpus, ("doc", "text", "source", "start", "end")))
    rows: list[tuple[str, int, int, str, str]] = []
    misfits: list[str] = []
    for doc, text, source, first, last in table.drop_nulls("text").iter_rows():
        known = source is not None and first is not None
        if known and last - first != len(text):
            misfits.append(doc)
            continue
        home, offset = (source, first) if known else (doc, 0)
        rows += [
            (home, offset + start, offset + end, text[start:end], source or doc)
            for start, end in cut(text, tokens)
        ]
    if not any(len(text) >= PASSAGE_LENGTH for *_, text, _ in rows):
        what = f"no passage has {PASSAGE_LENGTH} characters, which a question needs"
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
            for pattern in ENDS:
                ends = [found.end() for found in pattern.finditer(piece, len(piece) // 2)]
                if ends:
                    end = start + ends[-1]
                    break
        bare = text[start:end].strip()
        if bare:
            first = text.index(bare[0], start)
            yield first, first + len(bare)
        start = end


def spread(passages: Sequence[Passage], rng: np.random.Generator) -> list[Passage]:
    """Return the passages that are long enough, in a random order that takes turns of documents.

    A document comes again only when all others have had their turn.

    >>> import numpy as np
    >>> given = [Passage(n, "abbb"[n], n, n + 50, "x" * 50, "abbb"[n]) for n in range(4)]
    >>> sorted(passage.doc for passage in spread(given, np.random.default_rng(0))[:2])
    ['a', 'b']
    """
    able = [passage for passage in passages if len(passage.text) >= PASSAGE_LENGTH]
    shuffled = [able[place] for place in rng.permutation(len(able))]
    families = sorted({passage.family for passage in able})
    order = dict(zip(families, rng.permutation(len(families)).tolist(), strict=True))
    turns: dict[str, int] = {}
    keyed = []
    for passage in shuffled:
        turn = turns[passage.family] = turns.get(passage.family, 0) + 1
        keyed.append((turn, order[passage.family], passage))
    return [passage for _, _, passage in sorted(keyed, key=lambda each: each[:2])]


class PassageIndex:
    """Finds texts by shared words.

    >>> index = PassageIndex(["Ferries carry cars.", "The battery lasts.", "Cars have a battery."])
    >>> list(index.search("Which battery do cars have?"))
    [2, 0, 1]
    >>> list(index.search("nothing"))
    []
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        listed = words(column_of(texts), "plain")
        table = pl.DataFrame({"text": np.arange(len(texts)), "word": listed})
        sizes = table["word"].list.len().to_numpy().astype(np.float64)
        postings = (
            table.filter(pl.col("word").list.len() > 0)
            .explode("word")
            .group_by("word", "text")
            .agg(often=pl.len())
            .sort("word", "text")
        )
        runs = postings["word"].rle()
        starts = np.concatenate(([0], np.cumsum(runs.struct.field("len").to_numpy())))
        names = runs.struct.field("value").to_list()
        self._terms = {name: number for number, name in enumerate(names)}
        self._starts: Ints = starts.astype(np.int64)
        self._texts: Ints = postings["text"].to_numpy()
        often = postings["often"].to_numpy().astype(np.float64)
        usual = max(sizes.mean() if len(sizes) else 0.0, 1.0)
        long = 1 - BM25_LENGTH + BM25_LENGTH * sizes[self._texts] / usual
        held = np.repeat(np.diff(self._starts), np.diff(self._starts))
        rarity = np.log1p((self._count - held + 0.5) / (held + 0.5))
        self._weights: Floats = (
            rarity * often * (BM25_SATURATION + 1) / (often + BM25_SATURATION * long)
        )

    def search(self, query: str) -> Iterator[int]:
        """Yield the numbers of the texts that share a word with a query, the best first."""
        scores = np.zeros(self._count)
        for word in dict.fromkeys(words(column_of([query]), "plain")[0]):
            term = self._terms.get(word)
            if term is not None:
                place = slice(self._starts[term], self._starts[term + 1])
                scores[self._texts[place]] += self._weights[place]
        found = np.flatnonzero(scores)
        yield from map(int, found[np.argsort(-scores[found], kind="stable")])
