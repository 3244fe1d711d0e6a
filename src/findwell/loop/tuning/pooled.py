"""The values of many settings from one relation: candidates are drawn once, settings reorder them.

What a setting changes is the order of candidates that are known beforehand, so their relation is
drawn (and judged) once. Where the edges of a unit do not depend on what stands above it, a setting
only moves the units; the others, such as spans that several chunks complete, are drawn again for
each setting. Either way the values are those that `findwell.evaluate` gives to the fused run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.keys import sort_rows
from findwell.loop.tuning.engines import Setting
from findwell.loop.tuning.once import OnceJudge
from findwell.loop.tuning.ranks import Comparisons, TopRows, comparisons, count_ranks
from findwell.relations.align import positions
from findwell.relations.judged.judging import Judging
from findwell.relations.match.matcher import BoundByRule
from findwell.relations.pipeline import Drawn, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.core.data import Bools, Floats, Gold, Ints, Run, RunStream
    from findwell.core.findings import Finding
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.core.relation import Relation
    from findwell.evaluation.results.result import Result
    from findwell.loop.tuning.engines import Engine, Prepared
    from findwell.loop.tuning.pool import Pool
    from findwell.measures import Measure
    from findwell.relations.align import Aligned
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher, Edges, Units
    from findwell.relations.preflight import UnmetRun


@dataclass(slots=True, eq=False)
class FusedLists:
    """The lists that an engine makes of a pool, one for each setting."""

    engine: Engine
    pool: Pool  # arranged, so that equal scores keep the order of the rows
    settings: Sequence[Setting]
    _prepared: dict[Setting, Prepared] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many lists there are: one for each setting, then the single runs as they are."""
        return len(self.settings) + len(self.pool.runs)

    def scores(self, number: int) -> Floats:
        """Return the fused score of each candidate; NaN for one that the engine drops."""
        if number >= len(self.settings):
            rank = self.pool.rank[number - len(self.settings)]
            return np.where(rank > 0, -rank.astype(np.float64), np.nan)
        setting = self.settings[number]
        alike = replace(setting, weights=())
        if alike not in self._prepared:
            self._prepared[alike] = self.engine.prepare(self.pool, setting)
        return self.engine.combine(self._prepared[alike], setting)

    def order(self, number: int) -> Ints:
        """Return the candidates of a setting best first, query by query."""
        single = number >= len(self.settings)
        # no window cuts a single run
        setting = Setting() if single else self.settings[number]
        return self.engine.order(self.pool, self.scores(number), setting)

    def run(self, number: int, name: str = "fused") -> Run:
        """Return the fused run of a setting, as `findwell.fuse` does, with all that is known."""
        order = self.order(number)
        return self.as_run(order, self.scores(number), name)

    def as_run(self, order: Ints, scores: Floats, name: str = "fused") -> Run:
        """Return the run that lists these candidates in this order."""
        return replace(self.pool.as_run(order, scores), name=name)

    def candidates(self) -> Run:
        """Return all candidates as one run, in the order of the pool."""
        every = np.arange(len(self.pool.query))
        return self.as_run(every, np.zeros(len(every)), "candidates")

    def limit(self, number: int) -> int | None:
        """Return how long the lists of a setting are at most."""
        single = number >= len(self.settings)
        return None if single or not self.engine.cut else self.settings[number].window


@dataclass(slots=True, eq=False)
class PooledEngine:
    """Draws the relation of the candidates of a pool, and keeps what reorders it.

    It is an engine as `findwell.engines.Engine` has them.
    """

    lists: FusedLists
    last_rank: int | None  # that any measure looks at; None: all
    _orders: list[tuple[Relation, Callable[[int], Relation]]] = field(default_factory=list)

    def draw(
        self,
        run: RunStream,
        bound: BoundMatcher,
        policy: Policy,
        *,
        keep: int = 0,
        progress: Report | None = None,
        facts: FactReader | None = None,
    ) -> Drawn:
        """Draw the relation of the candidates; see `findwell.engines.Engine`."""
        del progress  # one batch
        rows = run.collect()
        settled = facts is None or "copies" not in facts.names
        if bound.finds_items:
            drawn, at = self._judged(rows, bound, policy, keep, facts)
        elif isinstance(bound, BoundByRule) and settled and not bound.order_matters:
            watched = _Watched(bound)
            drawn = _drawn(rows, watched, policy, keep, facts)
            moved = MovedUnits.of(self.lists, watched, drawn.relation, policy, self.last_rank)
            at = moved.relation if moved is not None else self._again(bound, policy, facts)
        else:
            drawn = _drawn(rows, bound, policy, keep, facts)
            at = self._again(bound, policy, facts)
        self._orders.append((drawn.relation, at))
        return drawn

    def relation(self, drawn: Relation, number: int) -> Relation:
        """Return the relation of a setting, from that of the candidates."""
        at = next(at for relation, at in self._orders if relation is drawn)
        return at(number)

    def _again(
        self, bound: BoundMatcher, policy: Policy, facts: FactReader | None, last: int | None = None
    ) -> Callable[[int], Relation]:
        """Return what draws the relation of a setting from scratch, as deep as measures look."""
        last = self.last_rank if last is None else last

        def at(number: int) -> Relation:
            order = self.lists.order(number)
            if last is not None and not bound.finds_items:
                order = order[positions(self.lists.pool.query[order]) <= last]
            run = self.lists.as_run(order, self.lists.scores(number))
            return _drawn(run, bound, policy, 0, facts).relation

        return at

    def _judged(
        self,
        rows: Run,
        bound: BoundMatcher,
        policy: Policy,
        keep: int,
        facts: FactReader | None,
    ) -> tuple[Drawn, Callable[[int], Relation]]:
        """Let a judge look once at what stands high enough with any setting."""
        from findwell.relations.judged.bound import BoundJudged  # noqa: PLC0415 - few are judged

        if not isinstance(bound, BoundJudged):  # pragma: no cover - nothing else finds items
            return _drawn(rows, bound, policy, keep, facts), self._again(bound, policy, facts)
        judging, task = bound.judging, bound.task
        if not isinstance(judging.judge, OnceJudge):
            judging.judge = OnceJudge(judging.judge)
        apart = Judging(judging.judge, judging.tasks)  # so that `judging` keeps the candidates
        whole = {matcher: replace(each, depth=None) for matcher, each in judging.tasks.items()}
        reached = self._reached(task.depth)
        asked = replace(judging, tasks=whole)
        drawn = _drawn(
            self.lists.as_run(reached, np.zeros(len(self.lists.pool.query)), rows.name),
            replace(bound, judging=asked, task=replace(task, depth=None)),
            policy,
            keep,
            facts,
        )
        return drawn, self._again(replace(bound, judging=apart), policy, facts)

    def _reached(self, depth: int | None) -> Ints:
        """Return the candidates among the first few of the list of any setting."""
        query = self.lists.pool.query
        reached = np.zeros(len(query), dtype=bool)
        for number in range(self.lists.count):
            order = self.lists.order(number)
            reached[order if depth is None else order[positions(query[order]) <= depth]] = True
        return np.flatnonzero(reached)


def _drawn(
    run: Run, bound: BoundMatcher, policy: Policy, keep: int, facts: FactReader | None
) -> Drawn:
    batch = draw_batch(run, bound, policy, keep, facts)
    return join(run.stream(), [batch], bound, policy)


class _Watched:
    """A matcher by rule whose units can be seen afterwards."""

    def __init__(self, inner: BoundByRule) -> None:
        self._inner = inner
        self.gold: Gold = inner.gold
        self.blank_is_unit = inner.blank_is_unit
        self.finds_items = inner.finds_items
        self.needed = inner.needed
        self.depth = inner.depth
        self.order_matters = inner.order_matters
        self.plain_ids = inner.plain_ids
        self.check_rows = inner.check_rows
        self.seen: tuple[Aligned, Units] | None = None

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with the key of each unit in the column doc."""
        return self._inner.rows(rows)

    def nothing_met(self, run: UnmetRun) -> list[Finding]:
        """Look at a run that met no item."""
        return self._inner.nothing_met(run)

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch."""
        units = self._inner.units(aligned)
        self.seen = aligned, units
        return self._inner.draw(units)


@dataclass(frozen=True, slots=True, eq=False)
class MovedUnits:
    """The notable units of candidates, which a setting only moves.

    Of the units only those matter that have an edge, or an equal in the same query; all others
    are noise, wherever they stand.
    """

    lists: FusedLists
    drawn: Relation
    row: Ints  # of the pool, by candidate that the relation knows
    query: Ints  # of the relation, by candidate
    size: Ints | None  # units of each candidate, where units are parts
    unit: Ints  # the candidate of each notable unit, by number in `row`
    part: Ints  # how many units of the candidate stand before it
    judged: Bools
    group: Ints  # units of one group are equal
    edge: Ints  # the unit of each edge
    compared: Comparisons | None  # whom to compare to count ranks
    top: TopRows | None  # what finds the first ranks, where nothing below is looked at
    _depth: list[tuple[Bools, Ints]] = field(default_factory=list)  # of lists with these rows

    @classmethod
    def of(
        cls,
        lists: FusedLists,
        watched: _Watched,
        drawn: Relation,
        policy: Policy,
        last: int | None = None,
    ) -> MovedUnits | None:
        """Return the units of a relation; None where a list may lose what policies look at.

        Nothing below the rank `last` is looked at.
        """
        if watched.seen is None:
            return None
        aligned, units = watched.seen
        if len(aligned.blank) or policy.nothing == "undefined":
            return None
        gold = watched.gold
        number = np.full(gold.queries.height, -1)
        number[gold.find(drawn.queries)] = np.arange(drawn.n)
        names = lists.pool.queries
        of_pool = gold.find(names)[lists.pool.query]
        row = np.flatnonzero(of_pool >= 0)
        query = number[of_pool[row]]
        if not np.array_equal(aligned.query, of_pool[row]):
            return None
        key = _unit_key(number[units.query], units.rank)
        order = np.argsort(key, kind="stable")
        edge_unit = order[np.searchsorted(key[order], _unit_key(drawn.edge_query, drawn.edge_rank))]
        listed = order[np.searchsorted(key[order], _unit_key(drawn.unit_query, drawn.unit_rank))]
        judged = np.zeros(len(units.query), dtype=bool)
        judged[listed] = drawn.unit_judged
        group = np.arange(len(units.query))
        notable = np.union1d(edge_unit, listed)
        if (drawn.unit_repeat > 0).any():
            group = _groups(units)
            notable = np.union1d(notable, np.flatnonzero(np.bincount(group)[group] > 1))
        place = np.full(len(units.query), -1)
        place[notable] = np.arange(len(notable))
        size = units.sizes
        part = np.zeros(len(notable), dtype=np.int64)
        if size is not None:
            part = notable - (np.cumsum(size) - size)[units.row[notable]]
        unit = units.row[notable]
        plain = size is None and drawn.chunk_facts is None
        top = TopRows.of(lists.pool.query, last) if plain and last is not None else None
        return cls(
            lists=lists,
            drawn=drawn,
            row=row,
            query=query,
            size=size,
            unit=unit,
            part=part,
            judged=judged[notable],
            group=group[notable],
            edge=place[edge_unit],
            compared=comparisons(lists.pool.query, row[unit]) if plain and not top else None,
            top=top,
        )

    def relation(self, number: int) -> Relation:
        """Return the relation of a setting."""
        scores = self.lists.scores(number)
        limit = self.lists.limit(number)
        if self.top is not None or self.compared is not None:
            if self.top is not None:
                rank = self.top.ranks(scores, limit)[self.row[self.unit]]
            else:
                rank = count_ranks(scores, self.compared, limit)
            depth = self._depths(~np.isnan(scores))
            return self._moved(rank, depth if limit is None else np.minimum(depth, limit), {})
        order = self.lists.order(number)
        place = np.zeros(len(scores), dtype=np.int64)
        place[order] = positions(self.lists.pool.query[order])
        rank = place[self.row]
        there = np.flatnonzero(rank)
        there = there[np.lexsort((rank[there], self.query[there]))]  # chunks, best first
        chunks = np.bincount(self.query[there], minlength=self.drawn.n)
        offset = np.concatenate(([0], np.cumsum(chunks)))
        changes: dict[str, Any] = {}
        if self.drawn.chunk_facts is not None:
            begin = self._begins()
            changes["chunk_facts"] = {
                name: values[begin[there]] for name, values in self.drawn.chunk_facts.items()
            }
        if self.size is None:
            return self._moved(rank[self.unit], chunks, changes)
        upto = np.concatenate(([0], np.cumsum(self.size[there])))
        first = upto[offset[:-1]]
        before = np.zeros(len(rank), dtype=np.int64)
        before[there] = upto[:-1] - first[self.query[there]]
        changes |= {"chunk_offset": offset, "chunk_end": upto[1:] - first[self.query[there]]}
        unit_rank = np.where(rank[self.unit] > 0, before[self.unit] + self.part + 1, 0)
        return self._moved(unit_rank, upto[offset[1:]] - first, changes)

    def _depths(self, kept: Bools) -> Ints:
        """Count the candidates of each query that are kept; settings mostly keep the same."""
        for known, depth in self._depth:
            if np.array_equal(known, kept):
                return depth
        depth = np.bincount(self.query[kept[self.row]], minlength=self.drawn.n)
        self._depth[:] = [(kept, depth)]
        return depth

    def _begins(self) -> Ints:
        """Return where the facts about each candidate stand."""
        place = np.empty(len(self.row), dtype=np.int64)
        place[np.argsort(self.query, kind="stable")] = np.arange(len(self.row))
        return place

    def _moved(self, rank: Ints, depth: Ints, changes: dict[str, Any]) -> Relation:
        """Return the relation with units at other ranks; 0 is nowhere."""
        drawn, query = self.drawn, self.query[self.unit]
        repeat = np.zeros(len(rank), dtype=np.int8)
        order = np.lexsort((rank, self.group))
        order = order[rank[order] > 0]
        again = self.group[order[1:]] == self.group[order[:-1]]
        repeat[order[1:][again]] = 1
        edge_rank = rank[self.edge]
        there = edge_rank > 0
        weight = drawn.edge_weight
        columns: tuple[Any, ...] = (
            drawn.edge_query[there],
            edge_rank[there],
            drawn.edge_item[there],
            *(() if weight is None else (weight[there],)),
        )
        edges = sort_rows(columns, 3)
        notable = (rank > 0) & (self.judged | (repeat > 0))
        units = sort_rows((query[notable], rank[notable], self.judged[notable], repeat[notable]), 2)
        return replace(
            drawn,
            depth=depth,
            edge_query=edges[0],
            edge_rank=edges[1],
            edge_item=edges[2],
            edge_weight=None if weight is None else edges[3],
            unit_query=units[0],
            unit_rank=units[1],
            unit_judged=units[2],
            unit_repeat=units[3],
            **changes,
        )


def _unit_key(query: Any, rank: Any) -> Ints:  # noqa: ANN401 - whole numbers of any width
    key: Ints = query.astype(np.int64) * (1 << 32) + rank
    return key


def _groups(units: Units) -> Ints:
    """Number the units of each query such that equal ones have one number."""
    pairs = pl.DataFrame({"query": units.query, "key": units.key})
    return (
        pairs.select(pl.struct("query", "key").rank("dense"))
        .to_series()
        .to_numpy()
        .astype(np.int64)
    )


def setting_values(
    result: Result, engine: PooledEngine, measures: Sequence[Measure], lists: int | None = None
) -> dict[Measure, Floats]:
    """Return the values of each measure, lists × queries, NaN where they are undefined.

    `lists` is how many, the first; None: all.
    """
    (run,) = result.runs
    found: dict[Measure, list[Floats]] = {measure: [] for measure in measures}
    relations = {id(each): each for each in result.relations.values()}
    for number in range(engine.lists.count if lists is None else lists):
        moved = {name: engine.relation(each, number) for name, each in relations.items()}
        for measure in measures:
            relation = moved[
                id(result.relations[run, measure.relation or result.provenance.drawn_by])
            ]
            found[measure].append(result.defined(relation, measure, measure.values(relation)))
    return {measure: np.array(values) for measure, values in found.items()}


def deepest(measures: Sequence[Measure]) -> int | None:
    """Return the last rank that any of the measures looks at; None: all are looked at."""
    ranks = [measure.last_rank for measure in measures]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if known and len(known) == len(ranks) else None


def refuse_lists(matchers: Sequence[Any]) -> None:
    """Refuse relations that are about a list as a whole: each setting would be judged anew."""
    for matcher in matchers:
        if matcher.about_list:
            raise OptionError(
                f"{matcher.name} is about the list as a whole: each setting would be judged anew",
                fix="tune by a measure over chunks, such as nDCG@10 or context_precision",
            )
