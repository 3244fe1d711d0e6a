"""Scores of pairs: every unit of a query with every text of its gold, equal pairs once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from karat.relate.match.ids import edges_of
from karat.relate.match.matcher import Scores
from karat.relate.match.texts import BoundTexts

if TYPE_CHECKING:
    from karat.core.data import Floats, Gold, Ints
    from karat.relate.match.matcher import Edges, MatchContext, Units
    from karat.texts.sentences import Splitter

    # distinct unit texts, distinct gold texts, pairs of them, the least score that matters
    Compare: TypeAlias = Callable[[Sequence[str], Sequence[str], tuple[Ints, Ints], float], Floats]

PAIRS = 1 << 20  # pairs compared at once, so that memory stays bounded


class BoundPairs(BoundTexts):
    """Draws an edge from a unit to an item where their texts score at least the threshold."""

    def __init__(  # noqa: PLR0917
        self,
        gold: Gold,
        context: MatchContext,
        compare: Compare,
        threshold: float,
        policy: str,
        splitter: Splitter | None = None,
    ) -> None:
        super().__init__(gold, context, policy, splitter)
        self._compare = compare
        self._threshold = threshold
        self._texts, self._text_of_member = number_texts(self.gold.member_doc)
        self._member_query = self.gold.member_query

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units whose score reaches the threshold."""
        unit, member, _ = self._scored(units, self._threshold)
        pairs = distinct_pairs(unit, self.gold.member_item[member], len(self.gold.item_grade))
        return edges_of(units, pairs, self.gold.item_grade >= 0)

    def scores(self, units: Units) -> Scores:
        """Return the score of every unit with every item that it has to do with."""
        unit, member, score = self._scored(units, float(np.nextafter(0, 1)))
        return Scores(unit, self.gold.member_item[member], score)

    def _scored(
        self, units: Units, least: float, compare: Compare | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Return unit, member and score of the pairs that score at least this, sorted by unit."""
        compare = compare or self._compare
        texts, text_of_unit = number_texts(units.text)
        first = np.searchsorted(self._member_query, units.query)
        last = np.searchsorted(self._member_query, units.query, side="right")
        found: list[tuple[Ints, Ints, Floats]] = []
        for begin, end in _slices(last - first):
            counts = (last - first)[begin:end]
            row = np.repeat(np.arange(begin, end), counts)
            start = np.cumsum(counts) - counts
            member = np.arange(len(row)) + np.repeat(first[begin:end] - start, counts)
            key = text_of_unit[row] * max(len(self._texts), 1) + self._text_of_member[member]
            distinct, which = np.unique(key, return_inverse=True)
            pairs = np.divmod(distinct, max(len(self._texts), 1))
            score = compare(texts, self._texts, pairs, least)[which]
            hit = np.flatnonzero(score >= least)
            found.append((row[hit], member[hit], score[hit]))
        if not found:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none.astype(np.float64)
        rows, members, scores = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(members), np.concatenate(scores)


def number_texts(texts: pl.Series) -> tuple[list[str], Ints]:
    """Return the distinct texts, and the number of each text among them."""
    distinct = texts.unique(maintain_order=True)
    frame = pl.DataFrame({"text": texts}).join(
        pl.DataFrame({"text": distinct}).with_row_index("number"),
        on="text",
        how="left",
        maintain_order="left",
    )
    return distinct.to_list(), frame["number"].to_numpy().astype(np.int64)


def distinct_pairs(row: Ints, item: Ints, items: int) -> tuple[Ints, Ints]:
    """Return each pair of a unit and an item once, sorted by unit, then item."""
    found = np.unique(row * max(items, 1) + item)
    first, second = np.divmod(found, max(items, 1))
    return first, second


def _slices(counts: Ints) -> list[tuple[int, int]]:
    """Cut rows into slices with a bounded number of pairs each."""
    upto = np.cumsum(counts)
    slices, begin = [], 0
    while begin < len(counts):
        before = int(upto[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(upto, before + PAIRS, side="right")), begin + 1)
        slices.append((begin, end))
        begin = end
    return slices
