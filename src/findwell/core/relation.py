"""The waist: which retrieved unit covers which gold item, for all queries at once.

Matchers and judges draw a `Relation`, measures read it. Only the edges are stored, so a measure
costs what was hit, not what was retrieved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from findwell.core.columns import GrowingColumn, narrowed, sort_rows
from findwell.core.errors import MeasureError
from findwell.core.frames import NamesAt, Viewed, changed, later, pl, strings_of
from findwell.core.measure import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from findwell.core.data import Bools, Floats, Ints, Numbers
    from findwell.core.measure import Cutoff


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


T = TypeVar("T")
BLOCK = 500_000  # items of a relation that are measured at once


@dataclass(frozen=True, eq=False)
class Relation(Viewed):
    """Retrieved units × gold items, columnar.

    The items of query `q` are `item_offset[q]:item_offset[q+1]`, highest grade first: grade > 0
    is relevant, 0 is judged not relevant, < 0 is in the pool but unjudged. Edges are sorted by
    query, rank and item; ranks count from 1. Of the retrieved units only the notable ones are
    listed: those that carry a judgement and those that occur before.

    Where units are parts of what was retrieved, such as the sentences of chunks, a cutoff still
    counts chunks: `chunk_end` says how many units stand down to the end of each chunk, and those
    of query `q` are `chunk_offset[q]:chunk_offset[q+1]`.

    Measures that cut by cost or look at more than edges need facts about every chunk: its tokens,
    characters or hop. They are there only where a measure asked for them.
    """

    queries: pl.Series  # n     query ids, in the order of the gold
    depth: Ints  # n     how many units were retrieved
    item_offset: Ints  # n+1
    item_grade: Floats  # m
    # edges and units may be narrow numbers: `Hits`, `judged` and `unit_key` give int64
    edge_query: Numbers  # e
    edge_rank: Numbers  # e
    edge_item: Numbers  # e     index into the items of all queries
    unit_query: Numbers  # u     the notable units, sorted
    unit_rank: Numbers  # u
    unit_judged: Bools  # u
    unit_repeat: Numbers  # u     0 new, 1 the same after normalising its id, 2 the very same id
    member_item: Numbers  # d     the documents that satisfy each item, for ideals and explanations
    member_doc: pl.Series  # d
    reasons: Mapping[int, str]  # why queries have no value at all, by their numbers
    chunk_offset: Ints | None = None  # n+1   None: every unit is a chunk
    chunk_end: Ints | None = None  # c
    needed: bool = False  # every query needs something, even where no item is relevant: then 0
    item_times: Ints | None = None  # m   how often the gold lists each item; None: all once
    # a judge was asked down to this rank only, and lists are longer: what follows is not in here
    judged_to: int | None = None
    failed_verdicts: Bools | None = None  # n   queries about which a judge failed; None: none
    lenient: Relation | None = None  # the same, were every verdict that failed a yes
    edge_weight: Floats | None = None  # e   how far a unit supports the item; None: fully
    chunk_facts: Mapping[str, Floats] | None = None  # c each, by name; None: not asked for
    # what was worked out so far; never handed on, so that `replace` starts afresh
    _worked_out: dict[object, Any] = field(init=False, default_factory=dict, repr=False)
    n: int = field(init=False)  # how many queries

    def __post_init__(self) -> None:
        """Count the queries."""
        super().__post_init__()
        self.__dict__["n"] = len(self.depth)

    def names_at(self, at: Bools | Ints) -> NamesAt:
        """Return the names of some queries."""
        return NamesAt(strings_of(self, "queries"), at)

    def why_undefined(self, otherwise: str | None = None) -> pl.Series:
        """Return why each query has no value at all, one row per query."""
        why = pl.repeat(otherwise, self.n, dtype=pl.String, eager=True)
        return why.scatter(list(self.reasons), list(self.reasons.values()))

    @property
    def failed(self) -> Bools:
        """Which queries have no value because a judge failed."""
        if self.failed_verdicts is None:
            return np.zeros(self.n, dtype=bool)
        return self.failed_verdicts

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
        return np.diff(np.concatenate(([0], np.cumsum(mask))).take(self.item_offset))

    def count(self, query: Numbers) -> Ints:
        """Count how often each query occurs."""
        return np.bincount(query, minlength=self.n)

    def total(self, query: Ints, value: Floats) -> Floats:
        """Add up values by query, in the order given."""
        sums: Floats = np.bincount(query, weights=value, minlength=self.n)  # type: ignore[assignment]
        return sums

    @property
    def chunks(self) -> Ints:
        """Where the chunks of each query begin among those of all, and at last where they end."""
        if self.chunk_offset is not None:
            return self.chunk_offset
        return self._once("chunks", lambda: np.concatenate(([0], np.cumsum(self.depth))))

    def fact(self, name: str) -> Floats:
        """Return what is known about each chunk under this name."""
        if self.chunk_facts is None or name not in self.chunk_facts:
            raise MeasureError(
                f"this result does not know the {name} of what was retrieved",
                fix=f"evaluate the run again with a measure that asks for the {name}",
            )
        return self.chunk_facts[name]

    def spent(self, unit: str) -> Floats:
        """Return what each chunk and those above it cost together; of hops, the last one."""
        if unit == "hops":
            return self.fact(unit)

        def upto() -> Floats:
            total = np.concatenate(([0.0], np.cumsum(self.fact(unit))))
            before: Floats = np.repeat(total.take(self.chunks[:-1]), np.diff(self.chunks))
            return total[1:] - before

        return self._once(("spent", unit), upto)

    def chunk_of(self, query: Ints, rank: Ints) -> Ints:
        """Return which chunk, counted over all queries, each of these units stands in."""
        if self.chunk_end is None:
            return self.chunks.take(query) + rank - 1
        of_query = np.repeat(np.arange(self.n), np.diff(self.chunks))
        ends = self.unit_key(of_query, self.chunk_end)
        return np.searchsorted(ends, self.unit_key(query, rank))

    def paid_last(self, name: str) -> Floats:
        """Return a fact of each query that all its chunks have in common; 0 without chunks."""
        last = np.concatenate(([0.0], self.fact(name))).take(self.chunks[1:])
        return np.where(np.diff(self.chunks) > 0, last, 0.0)

    def paid(self, unit: str, k: Cutoff | None = None) -> Floats:
        """Return what the chunks of each query cost together, those above a cutoff."""
        last = self.chunks[:-1] + self.chunks_within(k)
        upto = np.concatenate(([0.0], self.spent(unit)))
        return np.where(last > self.chunks[:-1], upto.take(last), 0.0)

    def chunks_within(self, k: Cutoff | None) -> Ints:
        """Count the chunks of each query that stand above a cutoff."""
        if k is None:
            return np.diff(self.chunks)
        if not isinstance(k, Budget):
            return np.minimum(np.diff(self.chunks), k)
        inside = np.concatenate(([0], np.cumsum(self.spent(k.unit) <= k.amount)))
        return np.diff(inside.take(self.chunks))

    def shown(self, k: Cutoff | None = None) -> Ints:
        """Count the units of each query down to the k-th that was retrieved, or in a budget."""
        if k is None:
            return self.depth
        if isinstance(k, int) and (self.chunk_end is None or self.chunk_offset is None):
            return np.minimum(self.depth, k)
        return self._once(("shown", k), lambda: self._units_of(self.chunks_within(k)))

    def _units_of(self, chunks: Ints) -> Ints:
        """Count the units in the first chunks of each query, as many as given."""
        if self.chunk_end is None or self.chunk_offset is None:
            return chunks
        ends = np.concatenate(([0], self.chunk_end))
        return np.where(chunks > 0, ends[self.chunk_offset[:-1] + chunks], 0)

    def ranks(self, k: Cutoff | None) -> int | None:
        """Return k where every list of that length has k units; None: that differs, or no cutoff.

        It differs where units are parts of chunks, and where a budget cuts.
        """
        return k if isinstance(k, int) and self.chunk_end is None else None

    def within(self, query: Numbers, rank: Numbers, k: Cutoff | None) -> Bools:
        """Tell which of these units stand among the first k that were retrieved."""
        if k is None:
            return np.ones(len(rank), dtype=bool)
        ranks = self.ranks(k)
        return rank <= (self.shown(k)[query] if ranks is None else ranks)

    def judged(self, k: Cutoff | None = None) -> tuple[Ints, Ints]:
        """Return query and rank of the units among the first k that carry a judgement."""
        at = self.unit_judged & self.within(self.unit_query, self.unit_rank, k)
        return self.unit_query[at].astype(np.int64), self.unit_rank[at].astype(np.int64)

    def repeats(self, k: Cutoff | None = None, *, exact: bool = False) -> Ints:
        """Count the units among the first k of each query that occur before."""
        at = self.unit_repeat > (1 if exact else 0)
        at &= self.within(self.unit_query, self.unit_rank, k)
        return self.count(self.unit_query[at])

    def units(self, rel: float, k: Cutoff | None = None, *, repeats: bool = False) -> Hits:
        """Return the relevant units among the first k, each with one of its items.

        A repetition of a unit is noise, unless `repeats` says that it counts again.
        """
        return self._hits("units", rel, k, repeats=repeats)

    def credits(self, rel: float, k: Cutoff | None = None) -> Hits:
        """Return the relevant items among the first k, each once, at its first rank."""
        return self._hits("credits", rel, k)

    def covers(self, rel: float, k: Cutoff | None = None, *, repeats: bool = False) -> Hits:
        """Return all edges to relevant items among the first k."""
        return self._hits("covers", rel, k, repeats=repeats)

    def supports(
        self, rel: float, k: Cutoff | None = None, *, least: float = 0.0, steps: bool = False
    ) -> tuple[Ints, Ints, Floats | None]:
        """Return query and rank of the units that support relevant items best, and how far.

        An item is worth what the best of the units among the first k supports of it, and stands at
        the rank of that unit; by `steps`, every unit that supports it better than those above adds
        the difference. Edges of less weight than `least` do not count. Without weights (None) every
        item counts 1, at its first rank.
        """
        weight = self.edge_weight
        if weight is None:
            hits = self.credits(rel, k)
            return hits.query, hits.rank, None
        counts = self._level(rel)[0][self.edge_item] & self.edge_counts & (weight >= least)
        at = np.flatnonzero(counts & self.within(self.edge_query, self.edge_rank, k))
        at = at[np.argsort(self.edge_item[at], kind="stable")]
        new = np.diff(self.edge_item[at], prepend=-1) != 0
        # weights as whole numbers, and those of each item above all of the item before: a maximum
        # stays in its item, and does not depend on the others
        level, code = np.unique(weight[at], return_inverse=True)
        best = np.maximum.accumulate(len(level) * np.cumsum(new) + code)
        better = np.diff(best, prepend=-1) > 0
        at, new, value = at[better], new[better], weight[at[better]]
        if steps:
            value -= np.where(new, 0.0, np.concatenate(([0.0], value[:-1])))
        else:  # the last, which is the best
            last = np.append(new[1:], True)[: len(new)]
            at, value = at[last], value[last]
        order = np.argsort(at)
        query, rank = (
            column[at[order]].astype(np.int64) for column in (self.edge_query, self.edge_rank)
        )
        return query, rank, value[order]

    def _hits(self, kind: str, rel: float, k: Cutoff | None, *, repeats: bool = False) -> Hits:
        """Return one of the three views, cut at k; in a plain relation they are the same."""
        mask, level = self._level(rel)
        key = ("views", level, repeats)
        hits = self._once(key, lambda: self._draw(mask, repeats=repeats))[kind]
        ranks = self.ranks(k)
        if k is None or (ranks is not None and ranks >= len(self.discount) - 2):
            return hits
        within = ("within", id(hits), k)  # `hits` lives as long as the cache that holds it
        return self._once(
            within, lambda: hits.take(np.flatnonzero(self.within(hits.query, hits.rank, k)))
        )

    def _draw(self, relevant: Bools, *, repeats: bool) -> dict[str, Hits]:
        mask = relevant[self.edge_item]
        at = np.flatnonzero(mask if repeats else mask & self.edge_counts)
        query, rank, item = (
            column.take(at).astype(np.int64, copy=False)
            for column in (self.edge_query, self.edge_rank, self.edge_item)
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
    def edge_counts(self) -> Bools:
        """Which edges count: those of a unit that does not occur before."""

        def table() -> Bools:
            again = self.unit_repeat > 0
            if not again.any():
                return np.ones(len(self.edge_query), dtype=bool)
            repeated = self.unit_key(self.unit_query[again], self.unit_rank[again])
            return ~np.isin(self.unit_key(self.edge_query, self.edge_rank), repeated)

        return self._once("edge_counts", table)

    @property
    def discount(self) -> Floats:
        """log2(rank + 1) by rank, long enough for every retrieved unit and every item."""

        def table() -> Floats:
            deepest = max(self.depth.max(initial=0), np.diff(self.item_offset).max(initial=0))
            return np.log2(np.arange(1, deepest + 3))

        return self._once("discount", table)

    def _once(self, key: object, compute: Callable[[], T]) -> T:
        """Compute a view the first time it is asked for."""
        if key not in self._worked_out:
            self._worked_out[key] = compute()
        return self._worked_out[key]  # type: ignore[no-any-return]

    def unit_key(self, query: Numbers, rank: Numbers | int) -> Ints:
        """Return a number for each unit, in the order of query and rank."""
        return query.astype(np.int64, copy=False) * (int(self.depth.max(initial=0)) + 1) + rank

    def unit_of(self, key: Ints) -> tuple[Ints, Ints]:
        """Return the query and the rank that a number of `unit_key` stands for."""
        return np.divmod(key, int(self.depth.max(initial=0)) + 1)

    def ideal(self, k: Cutoff | None = None) -> tuple[Ints, Ints, Ints]:
        """Return query, rank and item of the list that shows one item a rank, best grade first.

        Where a chunk holds several units, or a budget cuts, any number could be shown: the list is
        not cut.
        """
        ranks = self.ranks(k)
        if ranks is None:
            ranks = int(np.diff(self.item_offset).max(initial=0))
        shown = np.minimum(np.diff(self.item_offset), ranks)
        query = np.repeat(np.arange(self.n), shown)
        start = np.cumsum(shown) - shown
        place = np.arange(len(query)) - start.take(query)
        return query, place + 1, self.item_offset.take(query) + place

    def select(self, keep: Bools) -> Relation:
        """Return the relation of the queries of the mask, numbered from 0."""
        if keep.all():
            return self
        items = keep[self.item_query]
        return self._part(
            keep,
            items=items,
            edges=keep[self.edge_query],
            units=keep[self.unit_query],
            members=items[self.member_item],
            chunks=lambda: np.repeat(keep, np.diff(self.chunks)),
            new_query=(np.cumsum(keep) - 1).take,
            new_item=(np.cumsum(items) - 1).take,
            lenient=None if self.lenient is None else self.lenient.select(keep),
        )

    def blocks(self, size: int = BLOCK) -> Iterator[Relation]:
        """Cut the relation between queries into blocks of at least this many items, in their order.

        What is worked out over a block is bounded in memory; a small relation is one block.
        """
        cuts = np.flatnonzero(np.diff(self.item_offset[:-1] // size)) + 1
        if len(self.item_grade) < 2 * size or not len(cuts):
            yield self
            return
        for first, last in zip([0, *cuts], [*cuts, self.n], strict=True):
            yield self._between(int(first), int(last))

    def _between(self, first: int, last: int) -> Relation:
        """Return the relation of consecutive queries, numbered from 0."""
        ends = np.array([first, last])
        items = slice(*self.item_offset[ends].tolist())
        return self._part(
            slice(first, last),
            items=items,
            edges=_stretch(self.edge_query, ends),
            units=_stretch(self.unit_query, ends),
            members=_stretch(self.member_item, self.item_offset[ends]),
            chunks=lambda: slice(*self.chunks[ends].tolist()),
            new_query=lambda query: query - first,
            new_item=lambda item: item - items.start,
            lenient=None if self.lenient is None else self.lenient._between(first, last),  # noqa: SLF001
        )

    def _part(
        self,
        queries: Bools | slice,
        *,
        items: Bools | slice,
        edges: Bools | slice,
        units: Bools | slice,
        members: Bools | slice,
        chunks: Callable[[], Bools | slice],
        new_query: Callable[[Any], Any],
        new_item: Callable[[Any], Any],
        lenient: Relation | None,
    ) -> Relation:
        """Return the relation of some queries: what is theirs of each column, and its number."""
        kept = np.zeros(self.n, dtype=bool)
        kept[queries] = True
        fine: dict[str, Any] = {}
        if self.chunk_offset is not None and self.chunk_end is not None:
            sizes = np.diff(self.chunk_offset)[queries]
            fine["chunk_offset"] = np.concatenate(([0], np.cumsum(sizes)))
            fine["chunk_end"] = self.chunk_end[chunks()]
        if self.chunk_facts is not None:
            those = chunks()
            facts = {name: values[those] for name, values in self.chunk_facts.items()}
            fine["chunk_facts"] = facts
        return changed(
            self,
            queries=later(lambda: self.queries.filter(kept)),
            depth=self.depth[queries],
            item_offset=np.concatenate(([0], np.cumsum(np.diff(self.item_offset)[queries]))),
            item_grade=self.item_grade[items],
            edge_query=new_query(self.edge_query[edges]),
            edge_rank=self.edge_rank[edges],
            edge_item=new_item(self.edge_item[edges]),
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            unit_query=new_query(self.unit_query[units]),
            unit_rank=self.unit_rank[units],
            unit_judged=self.unit_judged[units],
            unit_repeat=self.unit_repeat[units],
            member_item=new_item(self.member_item[members]),
            member_doc=later(lambda: _rows(self.member_doc, members)),
            reasons={int(new_query(at)): why for at, why in self.reasons.items() if kept[at]},
            item_times=None if self.item_times is None else self.item_times[items],
            failed_verdicts=None if self.failed_verdicts is None else self.failed_verdicts[queries],
            lenient=lenient,
            **fine,
        )


def _rows(column: pl.Series, those: Bools | slice) -> pl.Series:
    return column[those] if isinstance(those, slice) else column.filter(those)


def _stretch(column: Numbers, ends: Ints) -> slice:
    """Return where the numbers from the first up to the second of two stand in a sorted column."""
    # numbers of two kinds would be copied for the search
    first, last = np.searchsorted(column, ends.astype(column.dtype)).tolist()
    return slice(first, last)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Stretches of lists in which all scores are equal: the ranks `first` to `last` of a query."""

    query: Ints
    first: Ints
    last: Ints

    def filter(self, keep: Bools) -> Ties:
        """Return the stretches of a mask."""
        return Ties(self.query[keep], self.first[keep], self.last[keep])

    def that_matter(self, edges: Edges) -> Ties | None:
        """Keep the stretches with an edge among them: only there does the order matter."""
        if edges.sizes is not None:
            return None
        tie = self.around(edges.query, edges.rank)
        return self.filter(np.isin(np.arange(len(self.query)), tie))

    @classmethod
    def joined(cls, parts: Sequence[Ties], seen: Bools | None) -> Ties | None:
        """Put the stretches of batches together, for the queries that are kept; None: no one."""
        if not any(len(part.query) for part in parts):
            return None
        columns = zip(*((part.query, part.first, part.last) for part in parts), strict=True)
        query, first, last = sort_rows(tuple(np.concatenate(column) for column in columns), 2)
        # a query that was seen keeps its ties; what was not has none
        return cls(query if seen is None else (np.cumsum(seen) - 1)[query], first, last)

    def around(self, query: Numbers, rank: Numbers) -> Ints:
        """Return the stretch in which each of these units stands, or -1 where it is in none."""
        if not len(self.query):
            return np.full(len(query), -1)
        span = int(max(self.last.max(), rank.max(initial=0))) + 1
        key = query.astype(np.int64) * span + rank
        at = np.searchsorted(self.query * span + self.first, key, side="right") - 1
        inside = (at >= 0) & (key <= (self.query * span + self.last)[at])
        return np.where(inside, at, -1)


def with_unjudged(relation: Relation, grade: float) -> Relation:
    """Return the relation in which every unjudged unit satisfies an item of this grade.

    With grade 0 they are all judged not relevant, with a high grade all relevant. Repetitions
    stay noise.
    """
    every = np.repeat(np.arange(relation.n), relation.depth)
    start = np.cumsum(relation.depth) - relation.depth
    every_rank = np.arange(len(every)) - start[every] + 1
    repeat = np.zeros(len(every), dtype=np.int64)
    listed = start[relation.unit_query] + relation.unit_rank - 1
    repeat[listed] = relation.unit_repeat
    unjudged = repeat == 0
    unjudged[listed[relation.unit_judged]] = False
    query, rank = every[unjudged], every_rank[unjudged]

    old, new = len(relation.item_grade), len(query)
    item_query = np.concatenate((relation.item_query, query))
    item_grade = np.concatenate((relation.item_grade, np.full(new, grade)))
    order = np.lexsort((-item_grade, item_query))
    place = np.empty(old + new, dtype=np.int64)
    place[order] = np.arange(old + new)
    edges = (
        np.concatenate((relation.edge_query, query)),
        np.concatenate((relation.edge_rank, rank)),
        place[np.concatenate((relation.edge_item, np.arange(old, old + new)))],
    )
    weight = relation.edge_weight
    if weight is not None:
        weight = sort_rows((*edges, np.concatenate((weight, np.ones(new)))), 3)[3]
    edge_query, edge_rank, edge_item = sort_rows(edges, 3)
    times = relation.item_times
    if times is not None:
        times = np.concatenate((times, np.ones(new, dtype=np.int64)))[order]
    member_item = np.concatenate((place[relation.member_item], place[old:]))
    member_order = np.argsort(member_item, kind="stable")
    names = pl.Series(np.char.add("\0unjudged ", rank.astype(str)), dtype=pl.String)
    return changed(
        relation,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(item_query)))),
        item_grade=item_grade[order],
        edge_query=edge_query,
        edge_rank=edge_rank,
        edge_item=edge_item,
        edge_weight=weight,
        unit_query=every,
        unit_rank=every_rank,
        unit_judged=np.ones(len(every), dtype=bool),
        unit_repeat=repeat,
        member_item=member_item[member_order],
        member_doc=pl.concat([relation.member_doc, names]).gather(member_order),
        item_times=times,
    )


def reordered(relation: Relation, ties: Ties, *, first: bool = False) -> Relation:
    """Return the relation in which the best units of every tie come first in it, or last."""
    edge = relation.unit_key(relation.edge_query, relation.edge_rank)
    unit = relation.unit_key(relation.unit_query, relation.unit_rank)
    key = np.union1d(edge, unit)
    query, rank = relation.unit_of(key)
    of_edge, of_unit = np.searchsorted(key, edge), np.searchsorted(key, unit)
    grade = np.full(len(key), -np.inf)
    np.maximum.at(grade, of_edge, relation.item_grade[relation.edge_item])
    grade[of_unit[relation.unit_repeat > 0]] = -np.inf
    tie = ties.around(query, rank)
    units = np.flatnonzero(tie >= 0)
    order = units[np.lexsort((rank[units], -grade[units], tie[units]))]
    nth = np.arange(len(order)) - np.searchsorted(tie[order], tie[order])
    moved = rank.copy()
    moved[order] = ties.first[tie[order]] + nth if first else ties.last[tie[order]] - nth
    edges = (relation.edge_query, moved[of_edge], relation.edge_item)
    weight = relation.edge_weight
    weight = None if weight is None else sort_rows((*edges, weight), 3)[3]
    edges = sort_rows(edges, 3)
    unit_query, unit_rank, judged, repeat = sort_rows(
        (relation.unit_query, moved[of_unit], relation.unit_judged, relation.unit_repeat), 2
    )
    return changed(
        relation,
        edge_query=edges[0],
        edge_rank=edges[1],
        edge_item=edges[2],
        edge_weight=weight,
        unit_query=unit_query,
        unit_rank=unit_rank,
        unit_judged=judged,
        unit_repeat=repeat,
        chunk_facts=None
        if relation.chunk_facts is None
        else _moved_facts(relation, ties, key, moved),
    )


def _moved_facts(relation: Relation, ties: Ties, key: Ints, moved: Ints) -> dict[str, Floats]:
    """Return the facts about chunks where some units of ties moved.

    The other units of a tie take the places that are left, in their order. Units of ties are whole
    chunks: see `findwell.relations.pipeline.ties_that_matter`.
    """
    query, rank = relation.unit_of(key)
    sizes = ties.last - ties.first + 1
    of_tie = np.repeat(np.arange(len(sizes)), sizes)
    nth = np.arange(len(of_tie)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = relation.chunks[:-1]
    places = first[ties.query[of_tie]] + ties.first[of_tie] + nth - 1
    old, new = first[query] + rank - 1, first[query] + moved - 1
    source = np.arange(relation.chunks[-1])
    source[new] = old
    source[np.setdiff1d(places, new)] = np.setdiff1d(places, old)
    return {name: values[source] for name, values in (relation.chunk_facts or {}).items()}


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Gold items that are found only while edges are drawn, such as the claims of an answer."""

    query: Ints
    text: pl.Series
    grade: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """What a batch of a run covers: its edges, and its notable units.

    `sizes` says how many units each row of the batch holds, where units are parts of rows. Where
    there are `items`, edges count those of this batch; otherwise those of the gold.
    """

    query: Numbers
    rank: Numbers
    item: Numbers
    unit_query: Numbers  # may be the very array of `query`, and `unit_rank` that of `rank`
    unit_rank: Numbers
    unit_judged: Bools
    unit_repeat: Numbers
    sizes: Ints | None = None
    items: Items | None = None
    failures: Mapping[int, str] = field(default_factory=dict)  # queries without a value, and why
    lenient: Edges | None = None  # the same, if every failure counted as a yes
    weight: Floats | None = None  # how far each edge supports its item; None: fully


NO_ROW = np.zeros(0, dtype=np.int32)
NO_EDGES = Edges(NO_ROW, NO_ROW, NO_ROW, NO_ROW, NO_ROW, NO_ROW.astype(bool), NO_ROW)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of a batch, by query and rank: chunks, or parts of chunks."""

    query: Ints
    rank: Ints
    text: pl.Series
    key: pl.Series  # the part of the text, or of the id, that counts
    repeat: Ints | None  # as in `Aligned`
    row: Ints  # of the batch
    sizes: Ints | None = None  # units in each row, where they are parts
    keys: pl.Series | None = None  # of `document_keys`, where they are known


def edges_of(
    units: Units, pairs: tuple[Ints, Ints], judged_item: Bools, weight: Floats | None = None
) -> Edges:
    """Return the edges of pairs of a unit and an item, which come sorted by unit.

    `weight` is how far each unit supports its item. With none there is no edge, but the unit is
    judged.
    """
    which, item = pairs
    unit = which[judged_item[item]]
    unit = unit[np.diff(unit, prepend=-1) > 0]  # each once
    judged, repeat = np.ones(len(unit), dtype=bool), np.zeros(len(unit), dtype=np.int8)
    if units.repeat is not None:
        notable = np.union1d(unit, np.flatnonzero(units.repeat))
        unit, judged = notable, np.isin(notable, unit)
        repeat = units.repeat[unit].astype(np.int8)
    if weight is not None:
        supports = np.flatnonzero(weight > 0)
        which, item, weight = which[supports], item[supports], weight[supports]
    query, rank = narrowed(units.query[which]), narrowed(units.rank[which])
    same = np.array_equal(unit, which)  # every unit with an edge is notable, and has one edge
    return Edges(
        query=query,
        rank=rank,
        item=narrowed(item),
        unit_query=query if same else narrowed(units.query[unit]),
        unit_rank=rank if same else narrowed(units.rank[unit]),
        unit_judged=judged,
        unit_repeat=repeat,
        sizes=units.sizes,
        weight=weight,
    )


EDGE_COLUMNS = ("query", "rank", "item")
UNIT_COLUMNS = ("unit_query", "unit_rank", "unit_judged", "unit_repeat")


class EdgeColumns:
    """The edges and notable units of a relation, in columns that grow batch by batch."""

    def __init__(self) -> None:
        self._columns = {name: GrowingColumn(np.int32) for name in (*EDGE_COLUMNS, *UNIT_COLUMNS)}
        self._columns["unit_judged"] = GrowingColumn(np.bool_)
        self._columns["unit_repeat"] = GrowingColumn(np.int8)
        self._weight: GrowingColumn | None = None  # of the edges, where any has one
        self._alike = True  # units are those of the edges, so far

    def append(self, edges: Edges) -> None:
        """Add the edges of a batch."""
        alike = edges.unit_query is edges.query and edges.unit_rank is edges.rank
        if self._alike and not alike:  # from now on the units have columns of their own
            self._alike = False
            for name in ("query", "rank"):
                self._columns[f"unit_{name}"].append(self._columns[name].values)
        if self._weight is None and edges.weight is not None:
            self._weight = GrowingColumn(np.float64)
            self._weight.append(np.ones(len(self._columns["query"].values)))
        if self._weight is not None:
            ones = np.ones(len(edges.query))
            self._weight.append(ones if edges.weight is None else edges.weight)
        for name, column in self._columns.items():
            if not self._alike or name not in ("unit_query", "unit_rank"):
                column.append(getattr(edges, name))

    def take(self) -> dict[str, Any]:
        """Return the columns of a relation: edges by query, rank and item, units by query, rank."""
        found = {name: column.take() for name, column in self._columns.items()}
        edges: tuple[str, ...] = EDGE_COLUMNS
        if self._weight is not None:
            found["weight"] = self._weight.take()
            edges = (*edges, "weight")
        if self._alike:  # every edge has a unit of its own
            _sort_in(found, (*edges, "unit_judged", "unit_repeat"), 3)
            found |= {"unit_query": found["query"], "unit_rank": found["rank"]}
        else:
            _sort_in(found, edges, 3)
            _sort_in(found, UNIT_COLUMNS, 2)
        return {f"edge_{name}" if name in edges else name: found[name] for name in found}


def _sort_in(columns: dict[str, Any], names: Sequence[str], keys: int) -> None:
    """Sort some of these columns by the first few of them."""
    rows = sort_rows(tuple(columns[name] for name in names), keys)
    columns.update(zip(names, rows, strict=True))
