"""A lexical search over passages: BM25, by the words that a question and a passage share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.texts.words import words
from findwell.judges.local.terms import column_of

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

SATURATION, LENGTH = 1.2, 0.75  # k1 and b


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
        long = 1 - LENGTH + LENGTH * sizes[self._texts] / usual
        held = np.repeat(np.diff(self._starts), np.diff(self._starts))
        rarity = np.log1p((self._count - held + 0.5) / (held + 0.5))
        self._weights: Floats = rarity * often * (SATURATION + 1) / (often + SATURATION * long)

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
