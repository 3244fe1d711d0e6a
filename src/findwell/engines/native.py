"""A TREC run against ids, by compiled code: parsed, ranked and matched in one pass per block.

It draws the same batches as `findwell.relations.pipeline.draw_batch` does. Where the kernel
declines a block, that function draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.data import Run
from findwell.core.frames import unmade
from findwell.engines.spread import PARTS
from findwell.io.native import DeclinedError, Piece, each_piece, in_threads, kernel
from findwell.io.read.trec import TrecLines
from findwell.relations.align import Ties, extra_queries, unsorted_lists
from findwell.relations.match.matcher import Edges
from findwell.relations.pipeline import DrawnBatch, draw_batch, ties_that_matter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import Bools, Ints, RunStream
    from findwell.core.policy import Policy
    from findwell.engines.spread import Spread
    from findwell.io.native._kernel import Index
    from findwell.relations.match.matcher import BoundMatcher

    Outcome = tuple[tuple[bytes, ...], list[str], int]


class ScatteredError(Exception):
    """The rows of a query are scattered."""


class NativeDrawing:
    """Draws the batches of one run."""

    def __init__(
        self, run: RunStream, lines: TrecLines, bound: BoundMatcher, policy: Policy
    ) -> None:
        self._run, self._lines, self._bound, self._policy = run, lines, bound, policy
        self._narrow = policy.scores == "float32"
        self._index = _index(bound)

    @classmethod
    def of(
        cls, run: RunStream, bound: BoundMatcher, policy: Policy, keep: int
    ) -> NativeDrawing | None:
        """Return the drawing of a run, or None if it is nothing for the kernel."""
        lines = run.batches
        if kernel() is None or keep or not bound.plain_ids or not isinstance(lines, TrecLines):
            return None
        if bound.gold.member_item.dtype != np.int32:  # more than two billion items
            return None
        if bound.gold.member_weight is not None:  # which the kernel does not know
            return None
        return cls(run, lines, bound, policy)

    def batches(self) -> Iterator[DrawnBatch]:
        """Draw a run whose queries stand together; raise ScatteredError if one comes back."""
        self._lines.source.reading.begin()
        seen = np.zeros(self._bound.gold.n, dtype=bool)
        extra: set[str] = set()
        rows = 0
        for piece, outcome in each_piece(self._lines.source.open(), self._draw):
            if outcome is None:
                part, names = self._by_python(piece)
            else:
                part, names = self._part(outcome), outcome[1]
            if not part.documents:  # comments and blank lines
                continue
            if seen[part.queries].any() or not extra.isdisjoint(names):
                raise ScatteredError
            seen[part.queries] = True
            extra.update(names)
            rows += part.documents
            yield part
        if not rows:
            raise DeclinedError

    def spread_batches(self, spread: Spread) -> Iterator[DrawnBatch]:
        """Draw a run whose queries are scattered, by parts of some queries each."""
        for block in self._lines.source.blocks():
            for part, lines in enumerate(self._index.split(block.data, PARTS)):
                if lines:
                    spread.add(part, lines)
        pieces = (Piece(memoryview(b"".join(lines)), 0) for lines in spread)
        for _, outcome in in_threads(self._draw, pieces):
            if outcome is None:
                raise DeclinedError  # its lines have lost their numbers
            yield self._part(outcome)

    def _draw(self, data: memoryview) -> Outcome | None:
        return self._index.draw(data, len(self._lines.names), self._narrow)

    def _by_python(self, piece: Piece) -> tuple[DrawnBatch, list[str]]:
        """Draw lines that are not plain, and return the queries that the gold does not have."""
        rows = self._lines.parse(piece.data, piece.offset)
        names = rows["query"].unique(maintain_order=True)
        part = draw_batch(Run(self._run.name, rows, self._run.order), self._bound, self._policy)
        return part, names.filter(self._bound.gold.find(names) < 0).to_list()

    def _part(self, outcome: Outcome) -> DrawnBatch:
        """Return what the kernel drew."""
        arrays, extra, documents = outcome
        query, retrieved, edge_query, edge_rank, edge_item, unit_query, unit_rank, *other = (
            np.frombuffer(array, np.int32) for array in arrays
        )
        *ties, rising = (array.astype(np.int64) for array in other)
        if np.array_equal(unit_rank, edge_rank) and np.array_equal(unit_query, edge_query):
            unit_query, unit_rank = edge_query, edge_rank  # held once
        edges = Edges(
            query=edge_query,
            rank=edge_rank,
            item=edge_item,
            unit_query=unit_query,
            unit_rank=unit_rank,
            unit_judged=np.ones(len(unit_query), dtype=bool),
            unit_repeat=np.zeros(len(unit_query), dtype=np.int8),
        )
        found = [*extra_queries(extra), *unsorted_lists(rising, self._bound.gold)]
        return DrawnBatch(
            query=query.astype(np.int64),
            retrieved=retrieved.astype(np.int64),
            edges=edges,
            chunks=None,
            asked=_NONE,
            blank=_NONE,
            ties=ties_that_matter(_sorted_ties(*ties), edges) if len(ties[0]) else None,
            findings=tuple(found),
            documents=documents,
        )


_NONE = np.zeros(0, dtype=np.int64)


def _sorted_ties(query: Ints, first: Ints, last: Ints) -> Ties:
    order = np.argsort(query, kind="stable")
    return Ties(query[order], first[order], last[order])


def _index(bound: BoundMatcher) -> Index:
    native = kernel()
    assert native is not None  # noqa: S101 - see `of`
    gold = bound.gold
    judged: Bools = gold.item_grade >= 0
    first = np.searchsorted(gold.member_item, gold.item_offset)  # members are sorted by item
    docs = unmade(gold, "member_doc")
    index: Index = native.Index(
        gold.queries["query"] if gold.names is None else gold.names.pieces,
        gold.member_doc if docs is None or docs.strings is None else docs.strings.pieces,
        np.ascontiguousarray(first, np.int64),
        np.ascontiguousarray(gold.member_item),
        judged,
    )
    return index
