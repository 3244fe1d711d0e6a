"""The waist: which retrieved unit covers which gold item, for all queries at once.

Matchers and judges draw a `Relation`, measures read it. Only the edges are stored, so a measure
costs what was hit, not what was retrieved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.data import Bools, Floats, Gold, Ints

T = TypeVar("T")

ANY_GAIN = float(np.nextafter(0.0, 1.0))  # the level at which every positive grade counts


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Edges to relevant items, by query and rank."""

    query: Ints
    rank: Ints
    item: Ints
    nth: Ints  # how many relevant units stand at or above this rank

    def take(self, at: Ints) -> Hits:
        """Keep these rows."""
        return Hits(self.query.take(at), self.rank.take(at), self.item.take(at), self.nth.take(at))


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
    _views: dict[object, Any] = field(default_factory=dict, repr=False)

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
        return self._once(
            "item_query", lambda: np.repeat(np.arange(self.n), np.diff(self.item_offset))
        )

    def relevant(self, rel: float) -> Ints:
        """Count the items of each query with at least this grade."""
        mask, level = self._level(rel)
        return self._once(("relevant", level), lambda: self._count_items(mask))

    def _level(self, rel: float) -> tuple[Bools, int]:
        """Return which items reach a level, and their number: the same number, the same items."""
        mask = self._once(("level", rel), lambda: self.item_grade >= rel)
        return mask, self._once(("reach", rel), lambda: int(np.count_nonzero(mask)))

    def _count_items(self, mask: Bools) -> Ints:
        upto = np.concatenate(([0], np.cumsum(mask)))
        return np.diff(upto.take(self.item_offset))

    def count(self, query: Ints) -> Ints:
        """Count how often each query occurs."""
        return np.bincount(query, minlength=self.n)

    def total(self, query: Ints, value: Floats) -> Floats:
        """Add up values by query, in the order given."""
        sums: Floats = np.bincount(query, weights=value, minlength=self.n)  # type: ignore[assignment]
        return sums

    def units(self, rel: float, k: int | None = None) -> Hits:
        """Return the relevant units among the first k, each once, with one of its items."""
        return self._hits("units", rel, k)

    def credits(self, rel: float, k: int | None = None) -> Hits:
        """Return the relevant items among the first k, each once, at its first rank."""
        return self._hits("credits", rel, k)

    def covers(self, rel: float, k: int | None = None) -> Hits:
        """Return all edges to relevant items among the first k."""
        return self._hits("covers", rel, k)

    def _hits(self, kind: str, rel: float, k: int | None) -> Hits:
        """Return one of the three views, cut at k; in a plain relation they are the same."""
        mask, level = self._level(rel)
        hits = self._once(("views", level), lambda: self._draw(mask))[kind]
        if k is None or k >= len(self.discount) - 2:
            return hits
        key = ("within", id(hits), k)  # `hits` lives as long as the cache that holds it
        return self._once(key, lambda: hits.take(np.flatnonzero(hits.rank <= k)))

    def _draw(self, relevant: Bools) -> dict[str, Hits]:
        at = np.flatnonzero(relevant[self.edge_item])
        query, rank, item = (
            column.take(at) for column in (self.edge_query, self.edge_rank, self.edge_item)
        )
        new_unit = np.ones(len(at), dtype=bool)
        new_unit[1:] = (query[1:] != query[:-1]) | (rank[1:] != rank[:-1])
        rich = not new_unit.all()  # some unit covers several items
        units = self.count(query[new_unit] if rich else query)
        before = np.cumsum(units) - units  # relevant units of the queries before
        nth = np.cumsum(new_unit) - before.take(query)
        covers = Hits(query, rank, item, nth)
        edges = np.arange(len(at))
        first_edge = np.zeros(len(relevant), dtype=np.int64)
        first_edge[item[::-1]] = edges[::-1]  # the last assignment wins: the earliest edge
        credited = first_edge.take(item) == edges
        return {
            "covers": covers,
            "units": covers.take(np.flatnonzero(new_unit)) if rich else covers,
            "credits": covers if credited.all() else covers.take(np.flatnonzero(credited)),
        }

    @property
    def discount(self) -> Floats:
        """log2(rank + 1) by rank, long enough for every retrieved unit and every item."""

        def table() -> Floats:
            deepest = max(self.depth.max(initial=0), np.diff(self.item_offset).max(initial=0))
            return np.log2(np.arange(1, deepest + 3))

        return self._once("discount", table)

    def _once(self, key: object, compute: Callable[[], T]) -> T:
        """Compute a view the first time it is asked for."""
        if key not in self._views:
            self._views[key] = compute()
        return self._views[key]  # type: ignore[no-any-return]

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

    def ideal(self, k: int | None = None) -> tuple[Ints, Ints, Ints]:
        """Return query, rank and item of the list that shows one item a rank, best grade first."""
        if k is None:
            k = int(np.diff(self.item_offset).max(initial=0))
        shown = np.minimum(np.diff(self.item_offset), k)
        query = np.repeat(np.arange(self.n), shown)
        start = np.cumsum(shown) - shown
        place = np.arange(len(query)) - start.take(query)
        return query, place + 1, self.item_offset.take(query) + place

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
