"""One relation of one run, query by query: what each chunk covers, and which items were met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from karat.relation import Relation

ITEMS = 40  # of a query that are listed


@dataclass(frozen=True, slots=True)
class Mark:
    """What a chunk is to a relation."""

    kind: str  # hit, again (covers only what was covered before), repeated, rejected, none
    covers: tuple[int, ...]  # numbers of the items, from 1
    grade: float | None  # the highest of the items it covers
    parts: tuple[int, ...]  # where units are parts of chunks: the parts that cover, from 0


class Indexed:
    """Finds what belongs to a query without a look at the others."""

    def __init__(self, relation: Relation, level: float) -> None:
        self.relation = relation
        self.level = level
        self.judged_to = relation.judged_to  # what stands deeper was judged by nobody
        self.number = {query: at for at, query in enumerate(relation.queries)}
        every = np.arange(relation.n + 1)
        self._edges = np.searchsorted(relation.edge_query, every)
        self._units = np.searchsorted(relation.unit_query, every)
        self._members = np.searchsorted(
            relation.member_item, np.arange(len(relation.item_grade) + 1)
        )

    def sizes(self, at: int) -> list[int] | None:
        """Return how many units stand down to the end of each chunk; None: each is one."""
        offset, ends = self.relation.chunk_offset, self.relation.chunk_end
        if offset is None or ends is None:
            return None
        return [int(end) for end in ends[offset[at] : offset[at + 1]]]

    def edges(self, at: int) -> list[tuple[int, int]]:
        """Return rank and item, from 0 within the query, of each edge."""
        mine = slice(self._edges[at], self._edges[at + 1])
        items = self.relation.edge_item[mine] - self.relation.item_offset[at]
        return list(zip(self.relation.edge_rank[mine].tolist(), items.tolist(), strict=True))

    def marks(self, at: int, chunks: int) -> tuple[list[Mark], dict[int, int]]:
        """Return what each of the first chunks is, and the chunk at which each item was met."""
        relation, first_item = self.relation, int(self.relation.item_offset[at])
        ends = self.sizes(at)
        mine = slice(self._units[at], self._units[at + 1])
        ranks = relation.unit_rank[mine]
        repeats = set(ranks[relation.unit_repeat[mine] > 0].tolist())
        judged = set(ranks[relation.unit_judged[mine]].tolist())
        covers: dict[int, list[int]] = {}
        for rank, item in self.edges(at):
            covers.setdefault(rank, []).append(item)
        met: dict[int, int] = {}
        marks = []
        for chunk in range(1, chunks + 1):
            start, end = (chunk, chunk + 1)
            if ends is not None:
                start = (ends[chunk - 2] if chunk > 1 else 0) + 1
                end = ends[chunk - 1] + 1 if chunk <= len(ends) else start
            units = range(start, end)
            counted = [(unit, item) for unit in units for item in covers.get(unit, ())]
            good = [
                (unit, item)
                for unit, item in counted
                if relation.item_grade[first_item + item] >= self.level
            ]
            fresh = [item for _, item in good if item not in met]
            again = bool(units) and all(unit in repeats for unit in units)
            kind = _kind(again, good, fresh, judged=any(unit in judged for unit in units))
            for item in [] if again else fresh:
                met.setdefault(item, chunk)
            shown = sorted({item for _, item in counted})
            grades = [float(relation.item_grade[first_item + item]) for item in shown]
            parts = tuple(sorted({unit - start for unit, _ in good})) if ends is not None else ()
            numbers = tuple(item + 1 for item in shown)
            marks.append(Mark(kind, numbers, max(grades, default=None), parts))
        return marks, met

    def met(self, at: int) -> dict[int, int]:
        """Return the chunk at which each item was met, in the whole list."""
        chunks = self.sizes(at)
        depth = int(self.relation.depth[at]) if chunks is None else len(chunks)
        deepest = max((rank for rank, _ in self.edges(at)), default=0)
        return self.marks(at, min(depth, deepest) if chunks is None else depth)[1]

    def items(self, at: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return the relevant items of a query, and how many there are, met and not relevant."""
        relation = self.relation
        first, last = (int(place) for place in relation.item_offset[at : at + 2])
        met = self.met(at)
        listed = []
        relevant = [item for item in range(first, last) if relation.item_grade[item] >= self.level]
        for item in relevant[:ITEMS]:
            docs = relation.member_doc[int(self._members[item]) : int(self._members[item + 1])]
            listed.append(
                {
                    "number": item - first + 1,
                    "docs": docs.to_list(),
                    "grade": float(relation.item_grade[item]),
                    "rank": met.get(item - first),
                }
            )
        found = sum(item - first in met for item in relevant)
        counts = {"relevant": len(relevant), "met": found, "other": last - first - len(relevant)}
        return listed, counts


def _kind(repeated: bool, good: list[tuple[int, int]], fresh: list[int], *, judged: bool) -> str:
    if repeated:
        return "repeated"
    if good:
        return "hit" if fresh else "again"
    return "rejected" if judged else "none"
