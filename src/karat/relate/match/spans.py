"""The relation `spans`: chunks and gold as stretches of characters of the same documents.

Labels of this kind survive a new chunker: they name a place, not a chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from karat.relate.match.ids import edges_of
from karat.relate.match.matcher import BoundByRule, Matcher, Scores, Units, register_matcher
from karat.relate.match.pairs import distinct_pairs
from karat.relate.match.placing import placed, span_gold

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.core.data import Gold
    from karat.findings import Finding
    from karat.relate.match.matcher import Edges, MatchContext


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Spans(Matcher):
    """The share of the gold's characters that the chunk holds is at least the threshold.

    A gold span that was cut in pieces is covered, too, by the chunk with which all chunks down to
    it hold that share.
    """

    threshold: float = 0.5

    name: ClassVar[str] = "spans"
    about: ClassVar[str] = "a chunk covers the gold spans of whose characters it holds enough"

    def __post_init__(self) -> None:
        """Check the threshold."""
        self.require(0 < self.threshold <= 1, "threshold", "is a number above 0, at most 1")

    def bind(self, gold: Gold, context: MatchContext) -> BoundSpans:
        """Compare places with those of a gold."""
        return BoundSpans(gold, context, self.threshold)


class BoundSpans(BoundByRule):
    """Draws an edge from a chunk to the gold spans that it covers or completes."""

    blank_is_unit = True

    def __init__(self, gold: Gold, context: MatchContext, threshold: float) -> None:
        self.gold = span_gold(gold, context.corpus)
        self._corpus = context.corpus
        self._threshold = threshold
        facts = self.gold.member_facts
        self._members = pl.DataFrame(
            {
                "query": self.gold.member_query,
                "member": np.arange(len(self.gold.member_item)),
                "place": pl.Series([], dtype=pl.String) if facts is None else facts["text"],
                "from": pl.Series([], dtype=pl.Int64) if facts is None else facts["start"],
                "to": pl.Series([], dtype=pl.Int64) if facts is None else facts["end"],
            }
        )

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put places in the place of ids."""
        return placed(rows, self._corpus, "run")

    def units(self, aligned: Aligned) -> Units:
        """Return the chunks of a batch; their key is their place."""
        every = np.arange(len(aligned.query))
        return Units(
            aligned.query, aligned.rank, aligned.doc, aligned.doc, aligned.repeat, every, None
        )

    def draw(self, units: Units) -> Edges:
        """Return the edges of the chunks that cover a gold span, or complete one."""
        found = [
            (unit, member)
            for member, pieces in self._overlaps(units).items()
            for unit in _covering(pieces, self._threshold)
        ]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        items = self.gold.member_item[pairs[:, 1]]
        distinct = distinct_pairs(pairs[:, 0], items, len(self.gold.item_grade))
        return edges_of(units, distinct, self.gold.item_grade >= 0)

    def scores(self, units: Units) -> Scores:
        """Return the share of each gold span that a chunk holds."""
        rows = [
            (unit, self.gold.member_item[member], share)
            for member, pieces in self._overlaps(units).items()
            for unit, share, *_ in pieces
        ]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        return Scores(
            np.array(columns[0], dtype=np.int64),
            np.array(columns[1], dtype=np.int64),
            np.array(columns[2], dtype=np.float64),
        )

    def _overlaps(self, units: Units) -> dict[int, list[tuple[int, float, float, float]]]:
        """Return for each gold span the units that overlap it: share, and where it lies in it."""
        spans = pl.DataFrame({"query": units.query, "unit": units.row, "key": units.key})
        spans = spans.with_columns(
            place=pl.col("key").str.extract(r"(?s)^(.*)\[\d+:\d+\]$"),
            start=pl.col("key").str.extract(r"\[(\d+):\d+\]$").cast(pl.Int64),
            end=pl.col("key").str.extract(r":(\d+)\]$").cast(pl.Int64),
        ).drop_nulls("place")
        size = pl.col("to") - pl.col("from")
        low = pl.max_horizontal("start", "from") - pl.col("from")
        high = pl.min_horizontal("end", "to") - pl.col("from")
        pairs = (
            spans.join(self._members, on=["query", "place"])
            .filter(pl.min_horizontal("end", "to") > pl.max_horizontal("start", "from"))
            .select("member", "unit", share=(high - low) / size, low=low / size, high=high / size)
            .sort("member", "unit")
        )
        return {
            member: [row[1:] for row in rows]
            for member, rows in groupby(pairs.iter_rows(), key=lambda row: int(row[0]))
        }


def _covering(pieces: list[tuple[int, float, float, float]], threshold: float) -> list[int]:
    """Return the units that hold enough of a span alone, and the one that completes it.

    Each piece is a unit, the share it holds, and where that lies in the span, from 0 to 1.

    >>> _covering([(0, 0.3, 0.0, 0.3), (1, 0.4, 0.2, 0.6), (2, 0.8, 0.2, 1.0)], 0.5)
    [1, 2]
    """
    covering: list[int] = []
    held: list[tuple[float, float]] = []
    for unit, share, low, high in pieces:
        before = _union(held)
        held.append((low, high))
        completes = before < threshold - 1e-9 <= _union(held)
        if share >= threshold - 1e-9 or completes:
            covering.append(unit)
    return covering


def _union(stretches: list[tuple[float, float]]) -> float:
    """Return how much several stretches hold together."""
    total, upto = 0.0, 0.0
    for low, high in sorted(stretches):
        total += max(high - max(low, upto), 0.0)
        upto = max(upto, high)
    return total


__all__ = ["BoundSpans", "Spans"]
