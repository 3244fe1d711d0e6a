"""The waist: which retrieved unit covers which gold item, for all queries at once.

Matchers and judges draw a `Relation`, measures read it. Only the edges are stored, so a measure
costs what was hit, not what was retrieved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from karat.data import Bools, Floats, Gold, Ints

ANY_GAIN = np.nextafter(0.0, 1.0)  # the level of graded measures: every positive grade counts


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The edges to relevant items, by query and rank.

    A unit that covers several items has several edges, and an item may be covered again further
    down; `new_unit` and `credited` mark the one edge that counts for each.
    """

    query: Ints
    rank: Ints
    item: Ints
    new_unit: Bools  # the first edge of its unit
    credited: Bools  # the first edge to its item: credit is given once, at the first rank
    nth: Ints  # how many relevant units stand at or above this rank

    def within(self, k: int | None) -> Hits:
        """Keep what the first `k` ranks hold."""
        return self if k is None else self.where(self.rank <= k)

    def where(self, mask: Bools) -> Hits:
        """Keep the edges of the mask."""
        return Hits(
            self.query[mask],
            self.rank[mask],
            self.item[mask],
            self.new_unit[mask],
            self.credited[mask],
            self.nth[mask],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Retrieved units × gold items, columnar.

    The items of query `q` are `item_offset[q]:item_offset[q+1]`, highest grade first: grade > 0
    is relevant, 0 is judged not relevant, < 0 is in the pool but unjudged. Edges are sorted by
    query, rank and item; ranks count from 1.
    """

    queries: pl.Series  # n     query ids, in the order of the gold
    depth: Ints  # n     how many units were retrieved
    item_offset: Ints  # n+1
    item_grade: Floats  # m
    edge_query: Ints  # e
    edge_rank: Ints  # e
    edge_item: Ints  # e     index into the items of all queries
    judged_query: Ints  # j     the retrieved units that carry a judgement, sorted
    judged_rank: Ints  # j
    member_item: Ints  # d     the documents that satisfy each item, for ideals and explanations
    member_doc: pl.Series  # d
    _views: dict[object, object] = field(default_factory=dict, repr=False)

    @classmethod
    def build(
        cls,
        gold: Gold,
        *,
        depth: Ints,
        edges: tuple[Ints, Ints, Ints],
        judged: tuple[Ints, Ints],
    ) -> Relation:
        """Make the relation of a gold and the edges (query, rank, item) drawn to its items."""
        edge_query, edge_rank, edge_item = edges
        judged_query, judged_rank = judged
        if not _is_sorted(edge_query, edge_rank, edge_item):
            order = np.lexsort((edge_item, edge_rank, edge_query))
            edge_query, edge_rank, edge_item = (column[order] for column in edges)
        if not _is_sorted(judged_query, judged_rank):
            order = np.lexsort((judged_rank, judged_query))
            judged_query, judged_rank = judged_query[order], judged_rank[order]
        return cls(
            queries=gold.queries["query"],
            depth=depth,
            item_offset=gold.item_offset,
            item_grade=gold.item_grade,
            edge_query=edge_query,
            edge_rank=edge_rank,
            edge_item=edge_item,
            judged_query=judged_query,
            judged_rank=judged_rank,
            member_item=gold.member_item,
            member_doc=gold.member_doc,
        )

    @property
    def n(self) -> int:
        """How many queries."""
        return len(self.depth)

    @property
    def item_query(self) -> Ints:
        """The query of each item."""
        if "item_query" not in self._views:
            self._views["item_query"] = np.repeat(np.arange(self.n), np.diff(self.item_offset))
        view: Ints = self._views["item_query"]  # type: ignore[assignment]
        return view

    def relevant(self, rel: float) -> Ints:
        """Count the items of each query with at least this grade."""
        return self.count(self.item_query[self.item_grade >= rel])

    def count(self, query: Ints) -> Ints:
        """Count how often each query occurs."""
        return np.bincount(query, minlength=self.n)

    def total(self, query: Ints, value: Floats) -> Floats:
        """Add up values by query, in the order given."""
        return np.bincount(query, weights=value, minlength=self.n)

    def hits(self, rel: float) -> Hits:
        """Return the edges to items with at least this grade."""
        relevant = self.item_grade >= rel
        key = ("hits", int(np.count_nonzero(relevant)))  # the same count is the same mask
        if key not in self._views:
            self._views[key] = self._hits(relevant[self.edge_item])
        view: Hits = self._views[key]  # type: ignore[assignment]
        return view

    def _hits(self, mask: Bools) -> Hits:
        query, rank, item = self.edge_query[mask], self.edge_rank[mask], self.edge_item[mask]
        edges = np.arange(len(query))
        first_edge = np.zeros(len(self.item_grade), dtype=np.int64)
        first_edge[item[::-1]] = edges[::-1]  # the last assignment wins: the earliest edge
        new_unit = np.ones(len(query), dtype=bool)
        new_unit[1:] = (query[1:] != query[:-1]) | (rank[1:] != rank[:-1])
        units = self.count(query[new_unit])
        before = np.cumsum(units) - units  # relevant units of the queries before
        nth = np.cumsum(new_unit) - before[query]
        return Hits(query, rank, item, new_unit, first_edge[item] == edges, nth)

    def rejected_above(self, rel: float, hits: Hits) -> Ints:
        """Count, for each hit, the units above it that were judged and are not relevant."""
        grade = self.item_grade[self.edge_item]
        rejected = self._units((grade >= 0) & (grade < rel))
        return self._above(np.setdiff1d(rejected, self._units(grade >= rel)), hits)

    def pooled_above(self, hits: Hits) -> Ints:
        """Count, for each hit, the units above it that are in the pool but unjudged."""
        return self._above(self._units(self.item_grade[self.edge_item] < 0), hits)

    def _units(self, mask: Bools) -> Ints:
        """Return the units of these edges, each once, as sorted numbers."""
        return np.unique(self._unit(self.edge_query[mask], self.edge_rank[mask]))

    def _above(self, units: Ints, hits: Hits) -> Ints:
        first = np.searchsorted(units, self._unit(hits.query, 0))
        return np.searchsorted(units, self._unit(hits.query, hits.rank)) - first

    def _unit(self, query: Ints, rank: Ints | int) -> Ints:
        return query * (int(self.depth.max(initial=0)) + 1) + rank

    def ideal_rank(self) -> Ints:
        """Return the rank that an ideal list of single-item units gives each item."""
        return np.arange(len(self.item_grade)) - self.item_offset[self.item_query] + 1

    def select(self, keep: Bools) -> Relation:
        """Return the relation of the queries of the mask, numbered anew."""
        if keep.all():
            return self
        items = keep[self.item_query]
        edges, judged = keep[self.edge_query], keep[self.judged_query]
        members = items[self.member_item]
        new_query, new_item = np.cumsum(keep) - 1, np.cumsum(items) - 1
        return Relation(
            queries=self.queries.filter(keep),
            depth=self.depth[keep],
            item_offset=np.concatenate(([0], np.cumsum(np.diff(self.item_offset)[keep]))),
            item_grade=self.item_grade[items],
            edge_query=new_query[self.edge_query[edges]],
            edge_rank=self.edge_rank[edges],
            edge_item=new_item[self.edge_item[edges]],
            judged_query=new_query[self.judged_query[judged]],
            judged_rank=self.judged_rank[judged],
            member_item=new_item[self.member_item[members]],
            member_doc=self.member_doc.filter(members),
        )

    def with_unjudged(self, grade: float) -> Relation:
        """Return the relation in which every unjudged unit satisfies an item of this grade.

        With grade 0 they are all judged not relevant, with a high grade all relevant: the two
        extremes between which the truth about unjudged units lies.
        """
        query = np.repeat(np.arange(self.n), self.depth)
        start = np.cumsum(self.depth) - self.depth
        rank = np.arange(len(query)) - start[query] + 1
        unjudged = np.ones(len(query), dtype=bool)
        unjudged[start[self.judged_query] + self.judged_rank - 1] = False
        query, rank = query[unjudged], rank[unjudged]

        old, new = len(self.item_grade), len(query)
        item_query = np.concatenate((self.item_query, query))
        item_grade = np.concatenate((self.item_grade, np.full(new, grade)))
        order = np.lexsort((-item_grade, item_query))
        place = np.empty(old + new, dtype=np.int64)
        place[order] = np.arange(old + new)
        edge_query = np.concatenate((self.edge_query, query))
        edge_rank = np.concatenate((self.edge_rank, rank))
        edge_item = place[np.concatenate((self.edge_item, np.arange(old, old + new)))]
        edge_order = np.lexsort((edge_item, edge_rank, edge_query))
        every = np.repeat(np.arange(self.n), self.depth)
        member_item = np.concatenate((place[self.member_item], place[old:]))
        member_order = np.argsort(member_item, kind="stable")
        names = pl.Series(np.char.add("\0unjudged ", rank.astype(str)), dtype=pl.String)
        return Relation(
            queries=self.queries,
            depth=self.depth,
            item_offset=np.concatenate(([0], np.cumsum(self.count(item_query)))),
            item_grade=item_grade[order],
            edge_query=edge_query[edge_order],
            edge_rank=edge_rank[edge_order],
            edge_item=edge_item[edge_order],
            judged_query=every,
            judged_rank=np.arange(len(every)) - start[every] + 1,
            member_item=member_item[member_order],
            member_doc=pl.concat([self.member_doc, names]).gather(member_order),
        )


def _is_sorted(*columns: Ints) -> bool:
    """Tell whether the rows stand in ascending order, the first column deciding first."""
    after = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in reversed(columns):
        after = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & after)
    return bool(after.all())


__all__ = ["ANY_GAIN", "Hits", "Relation"]
