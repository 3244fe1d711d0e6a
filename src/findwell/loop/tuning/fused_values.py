"""The values of fused runs: candidates are matched and judged once, and settings reorder them.

What a setting changes is the order of candidates that are known beforehand, so their relation is
drawn (and judged) once. Where the edges of a unit do not depend on what stands above it, a setting
only moves the units; the others, such as spans that several chunks complete, are drawn again for
each setting. Either way the values are those that `findwell.evaluate` gives to the fused run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from findwell.core.columns import sort_rows
from findwell.core.errors import InputError, OptionError, naming_files
from findwell.core.frames import pl
from findwell.core.values import Values
from findwell.evaluation.evaluate import assess
from findwell.evaluation.inputs import files_of, read_inputs
from findwell.evaluation.plan import Plan, PlanOptions
from findwell.io.read import Kind, kind_of, several_inputs
from findwell.judges.aspects import VerdictShape, find_aspect
from findwell.judges.limits import limit_findings
from findwell.judges.verdicts import AspectVerdicts, Judged
from findwell.loop.tuning.engines import Setting, find_engine
from findwell.loop.tuning.pool import Pool
from findwell.relations.align import positions
from findwell.relations.judged.judging import Judging
from findwell.relations.match.matcher import BoundByRule
from findwell.relations.pipeline import Drawn, draw_batch, join

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints, Run, RunStream
    from findwell.core.findings import Finding
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.core.relation import Edges, Relation, Units
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.judges.verdicts import JudgeFailure, JudgeProtocol, Sample
    from findwell.loop.tuning.engines import Engine, Prepared
    from findwell.measures import Measure
    from findwell.relations.align import Aligned
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher

ListName: TypeAlias = "Setting | int"  # a list fused with a setting, or the number of a run alone
MOST_RUNS = 5  # that are tuned together
COUNTED_ROWS = 8  # comparisons for each row of a pool, beyond which sorting is faster


class RecordedRuns:
    """Runs that were recorded, to be fused with any setting of any engine, and measured.

    Inputs are read once, and a judge is asked once about each document. `engine` is that of
    settings that name none.
    """

    def __init__(
        self,
        named: Mapping[str, Any],
        gold: GoldLike | None,
        measures: Iterable[str | Measure] | str,
        options: Mapping[str, Any],
        engine: Engine | None = None,
    ) -> None:
        self._engine, self._options = engine, options
        given = {key: options[key] for key in PlanOptions.__optional_keys__ & options.keys()}
        plan = Plan.of(measures, **given)
        for matcher in plan.matchers.values():
            if matcher.about_list:
                raise OptionError(
                    f"{matcher.name} is about the list as a whole: each setting would be judged "
                    "again",
                    fix="tune by a measure over chunks, such as nDCG@10 or context_precision",
                )
        if plan.judge is not None:
            plan = replace(plan, judge=RememberingJudge(plan.judge))
        files = all(kind_of(data) is Kind.PATH for data in named.values())
        given_runs = list(named.values()) if files else dict(named)  # files under their own names
        with ExitStack() as held:
            self._data = read_inputs(plan, given_runs, gold, held)
            loaded = [stream.collect() for stream in self._data.runs]
            self.pool = Pool.of(loaded, disjoint=options.get("disjoint", False))
            answered = self.pool.answered()
            for number, name in enumerate(self.pool.runs[1:], start=1):
                if not (answered[0] & answered[number]).any():
                    raise InputError(
                        f"it shares no query with {self.pool.runs[0]}",
                        where=f"run {name}",
                        fix="fuse runs of the same queries",
                    )
        self.measures, self.gold, self.runs = plan.measures, self._data.gold, self.pool.runs
        self._files = files_of(self._data.runs, self._data.sources)
        self._drawn: dict[str, PooledEngine] = {}  # by the engine of the settings
        self._results: dict[str, Result] = {}
        self._known: dict[ListName, list[Floats]] = {}  # values by measure

    @cached_property
    def result(self) -> Result:
        """The result over all candidates, which no setting has ordered."""
        return next(iter(self._results.values()))

    @cached_property
    def queries(self) -> pl.DataFrame:
        """What is known about the queries, in the order of their values."""
        names = pl.DataFrame({"query": self.result.relation(self.result.runs[0]).queries})
        return names.join(self.result.queries, on="query", how="left", maintain_order="left")

    @cached_property
    def findings(self) -> list[Finding]:
        """What is worth knowing about the inputs."""
        return [
            *(replace(each, run="") for each in self.result.findings),
            *self.pool.unshared_queries(),
            *limit_findings(self.result.judge, self.result.matched_by),
            *self._data.findings,
        ]

    def lists(self, setting: Setting) -> FusedLists:
        """Return the lists of the engine of a setting."""
        return self._drawn[setting.engine].lists

    def values(self, settings: Sequence[Setting]) -> Values:
        """Return what settings, and then each run alone, are worth on each query.

        Each is measured once.
        """
        lists = (*settings, *range(len(self.runs)))
        for engine in dict.fromkeys(each.engine for each in settings):
            if engine not in self._drawn:
                self._draw(engine, [each for each in settings if each.engine == engine])
        for which in lists:
            if which not in self._known:
                self._known[which] = self._measured(
                    which, which.engine if isinstance(which, Setting) else settings[0].engine
                )
        table = np.array([self._known[which] for which in lists])
        return Values(self.queries, (*map(str, settings), *self.runs), self.measures, table)

    def _draw(self, name: str, settings: Sequence[Setting]) -> None:
        """Draw the relations of all candidates for an engine."""
        engine = find_engine(name) if name or self._engine is None else self._engine
        ranks = [measure.last_rank for measure in self.measures]
        looked = [rank for rank in ranks if rank is not None]
        deepest = max(looked) if looked and len(looked) == len(ranks) else None
        drawing = PooledEngine(FusedLists(engine, engine.arranged(self.pool)), settings, deepest)
        every = np.arange(len(self.pool.query))
        candidates = drawing.lists.pool.as_run(every, np.zeros(len(every)), "candidates")
        with naming_files(self._files):
            self._results[name] = assess(
                self._data.plan,
                [candidates.stream()],
                self.gold,
                corpus=self._data.corpus,
                engine=drawing,
                progress=self._options.get("progress"),
            )
        self._drawn[name] = drawing

    def _measured(self, which: ListName, engine: str) -> list[Floats]:
        result, drawing = self._results[engine], self._drawn[engine]
        (run,) = result.runs
        relations = {id(each): each for each in result.relations.values()}
        with naming_files(self._files):
            moved = {name: drawing.relation(each, which) for name, each in relations.items()}
        found = []
        for measure in self.measures:
            drawn = result.relations[run, measure.relation or result.provenance.drawn_by]
            relation = moved[id(drawn)]
            found.append(result.defined(relation, measure, measure.values(relation)))
        return found


def name_runs(runs: Sequence[RunLike] | Mapping[str, RunLike]) -> dict[str, Any]:
    """Return the runs by name; a name that is empty is that of the file."""
    by_name = kind_of(runs) is Kind.NAMED
    given = enumerate(several_inputs(runs) or [("", runs)], start=1)
    named = {name if by_name else f"run {number}": data for number, (name, data) in given}
    if not 2 <= len(named) <= MOST_RUNS:
        raise OptionError(
            f"fusing needs 2 to {MOST_RUNS} runs; you gave {len(named)}", fix="name them all"
        )
    return named


@dataclass(frozen=True, slots=True, eq=False)
class FusedLists:
    """The lists that an engine makes of a pool, and the single runs as they are."""

    engine: Engine
    pool: Pool  # arranged, so that equal scores keep the order of the rows
    _prepared: dict[Setting, Prepared] = field(default_factory=dict)

    def scores(self, which: ListName) -> Floats:
        """Return the fused score of each candidate; NaN for one that the engine drops."""
        if isinstance(which, int):
            rank = self.pool.rank[which]
            return np.where(rank > 0, -rank.astype(np.float64), np.nan)
        alike = replace(which, weights=())
        if alike not in self._prepared:
            self._prepared[alike] = self.engine.prepare(self.pool, which)
        return self.engine.combine(self._prepared[alike], which)

    def order(self, which: ListName) -> Ints:
        """Return the candidates of a list best first, query by query; no window cuts a run."""
        return self.pool.order(self.scores(which), self.limit(which))

    def limit(self, which: ListName) -> int | None:
        """Return how long the lists of a setting are at most."""
        return None if isinstance(which, int) or not self.engine.cut else which.window

    def run(self, which: ListName) -> Run:
        """Return the fused run of a setting, as `findwell.tuning.fuse` does."""
        return self.pool.as_run(self.order(which), self.scores(which))


@dataclass(slots=True, eq=False)
class PooledEngine:
    """Draws the relation of the candidates of a pool, and keeps what reorders it.

    It is an engine as `findwell.engines.BatchEngine` has them.
    """

    lists: FusedLists
    settings: Sequence[Setting]  # that are known to be tried
    last_rank: int | None  # that any measure looks at; None: all
    _orders: list[tuple[Relation, Callable[[ListName], Relation]]] = field(default_factory=list)

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
        """Draw the relation of the candidates; see `findwell.engines.BatchEngine`."""
        del progress  # one batch
        rows = run.collect()
        if bound.finds_items:
            drawn, at = self._judged(rows, bound, policy, keep, facts)
        else:
            settled = facts is None or "copies" not in facts.names
            moved = None
            if isinstance(bound, BoundByRule) and settled and not bound.order_matters:
                watched = _WatchedMatcher(bound)
                drawn = _drawn(rows, cast("BoundMatcher", watched), policy, keep, facts)
                moved = MovedUnits.of(self.lists, watched, drawn.relation, policy)
            else:
                drawn = _drawn(rows, bound, policy, keep, facts)
            at = self._again(bound, policy, facts) if moved is None else moved.relation
        self._orders.append((drawn.relation, at))
        return drawn

    def relation(self, drawn: Relation, which: ListName) -> Relation:
        """Return the relation of a setting or of a run alone, from that of the candidates."""
        return next(at for relation, at in self._orders if relation is drawn)(which)

    def _again(
        self, bound: BoundMatcher, policy: Policy, facts: FactReader | None
    ) -> Callable[[ListName], Relation]:
        """Return what draws the relation of a list from scratch, as deep as measures look."""

        def at(which: ListName) -> Relation:
            order = self.lists.order(which)
            if self.last_rank is not None and not bound.finds_items:
                order = order[positions(self.lists.pool.query[order]) <= self.last_rank]
            run = self.lists.pool.as_run(order, self.lists.scores(which))
            return _drawn(run, bound, policy, 0, facts).relation

        return at

    def _judged(
        self, rows: Run, bound: BoundMatcher, policy: Policy, keep: int, facts: FactReader | None
    ) -> tuple[Drawn, Callable[[ListName], Relation]]:
        """Let a judge look once at what stands high enough with any setting."""
        from findwell.relations.judged.bound import BoundJudged  # noqa: PLC0415 - few are judged

        if not isinstance(bound, BoundJudged):  # pragma: no cover - nothing else finds items
            return _drawn(rows, bound, policy, keep, facts), self._again(bound, policy, facts)
        judging, task, query = bound.judging, bound.task, self.lists.pool.query
        reached = np.zeros(len(query), dtype=bool)
        for which in (*self.settings, *range(len(self.lists.pool.runs))):
            order = self.lists.order(which)
            inside = slice(None) if task.depth is None else positions(query[order]) <= task.depth
            reached[order[inside]] = True
        whole = {matcher: replace(each, depth=None) for matcher, each in judging.tasks.items()}
        drawn = _drawn(
            self.lists.pool.as_run(np.flatnonzero(reached), np.zeros(len(query)), rows.name),
            replace(bound, judging=replace(judging, tasks=whole), task=replace(task, depth=None)),
            policy,
            keep,
            facts,
        )
        apart = Judging(judging.judge, judging.tasks)  # so that `judging` keeps the candidates
        return drawn, self._again(replace(bound, judging=apart), policy, facts)


def _drawn(
    run: Run, bound: BoundMatcher, policy: Policy, keep: int, facts: FactReader | None
) -> Drawn:
    batch = draw_batch(run, bound, policy, keep, facts)
    return join(run.stream(), [batch], bound, policy)


class _WatchedMatcher:
    """A matcher by rule whose units can be seen afterwards."""

    def __init__(self, inner: BoundByRule) -> None:
        self._inner = inner
        self.seen: tuple[Aligned, Units] | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._inner, name)

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
    counter: RankCounter | None  # finds their ranks, where they are few
    _depth: list[tuple[Bools, Ints]] = field(default_factory=list)  # of lists with these rows

    @classmethod
    def of(
        cls, lists: FusedLists, watched: _WatchedMatcher, drawn: Relation, policy: Policy
    ) -> MovedUnits | None:
        """Return the units of a relation; None where a list may lose what policies look at."""
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
            pairs = pl.DataFrame({"query": units.query, "key": units.key})
            equal = pairs.select(pl.struct("query", "key").rank("dense")).to_series()
            group = equal.to_numpy().astype(np.int64)
            notable = np.union1d(notable, np.flatnonzero(np.bincount(group)[group] > 1))
        place = np.full(len(units.query), -1)
        place[notable] = np.arange(len(notable))
        size = units.sizes
        part = np.zeros(len(notable), dtype=np.int64)
        if size is not None:
            part = notable - (np.cumsum(size) - size)[units.row[notable]]
        unit = units.row[notable]
        counter = None
        if size is None and drawn.chunk_facts is None:
            counter = RankCounter.of(lists.pool.query, row[unit])
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
            counter=counter,
        )

    def relation(self, which: ListName) -> Relation:
        """Return the relation of a setting, or of a run alone."""
        scores, limit = self.lists.scores(which), self.lists.limit(which)
        if self.counter is not None:
            rank = self.counter.ranks(scores, limit)
            depth = self._depths(~np.isnan(scores))
            return self._moved(rank, depth if limit is None else np.minimum(depth, limit), {})
        order = self.lists.order(which)
        place = np.zeros(len(scores), dtype=np.int64)
        place[order] = positions(self.lists.pool.query[order])
        rank = place[self.row]
        there = np.flatnonzero(rank)
        there = there[np.lexsort((rank[there], self.query[there]))]  # chunks, best first
        chunks = np.bincount(self.query[there], minlength=self.drawn.n)
        offset = np.concatenate(([0], np.cumsum(chunks)))
        changes: dict[str, Any] = {}
        if self.drawn.chunk_facts is not None:
            begin = np.empty(len(self.row), dtype=np.int64)  # where facts about candidates stand
            begin[np.argsort(self.query, kind="stable")] = np.arange(len(self.row))
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


@dataclass(frozen=True, slots=True, eq=False)
class RankCounter:
    """Finds the ranks of a few rows of a pool without sorting the rest.

    Before a row stand those of its query that score higher, and those that score the same and come
    earlier in the pool.
    """

    row: Ints  # those whose rank is looked for
    line: Ints  # of each of them, in a table with one line for each query
    place: Ints  # of every row of the pool in that table
    shape: tuple[int, int]

    @classmethod
    def of(cls, query: Ints, row: Ints) -> RankCounter | None:
        """Return what finds the ranks of some rows; None where sorting is faster."""
        begins = np.flatnonzero(np.diff(query, prepend=-1))
        line = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(query)))
        column = np.arange(len(query)) - begins[line]
        width = int(column.max(initial=0)) + 1
        if len(row) * width > COUNTED_ROWS * len(query):
            return None
        return cls(row, line[row], line * width + column, (len(begins), width))

    def ranks(self, scores: Floats, limit: int | None) -> Ints:
        """Return the rank of each row, from 1; 0 where it is dropped, or below the limit."""
        table = np.full(self.shape, np.nan)  # a score that is NaN is neither higher nor equal
        table.ravel()[self.place] = scores
        mine, others = scores[self.row, np.newaxis], table[self.line]
        column = (self.place[self.row] - self.line * self.shape[1])[:, np.newaxis]
        tied = (others == mine) & (np.arange(self.shape[1]) < column)
        rank: Ints = 1 + ((others > mine) | tied).sum(axis=1)
        return np.where(np.isnan(mine[:, 0]) | (rank > (limit or len(scores))), 0, rank)


# a judge that is asked about each chunk once


@dataclass(slots=True)
class _KnownVerdicts:
    """What a judge said about one aspect of a query, chunk by chunk."""

    sample: Sample  # what it was asked about
    found: AspectVerdicts | JudgeFailure
    place: dict[str, int] = field(default_factory=dict)  # of each chunk


@dataclass(slots=True)
class RememberingJudge:
    """Asks a judge about a list, and answers about other orders and parts of it from memory.

    A verdict about a chunk does not depend on those around it; one about a whole list does, and is
    asked for again.
    """

    inner: JudgeProtocol
    # by query and aspect
    _known: dict[tuple[str, str], _KnownVerdicts] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What results call the judge that is asked."""
        return self.inner.name

    def about(self) -> dict[str, Any]:
        """Return what the manifest says about it."""
        return self.inner.about()

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample; only what is new is asked."""
        new = [
            sample
            for sample in samples
            if any(self._answer(sample, aspect) is None for aspect in aspects)
        ]
        if new:
            for sample, judged in zip(new, self.inner.judge(new, aspects, progress), strict=True):
                for aspect in aspects:
                    found = judged.failures.get(aspect) or judged[aspect]
                    places = {chunk: place for place, chunk in enumerate(sample.chunks)}
                    self._known[sample.query, aspect] = _KnownVerdicts(sample, found, places)
        return [self._judged(sample, aspects) for sample in samples]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Cut references as the judge that is asked does, where it has a way of its own."""
        if name.endswith("_of"):
            return getattr(self.inner, name)
        raise AttributeError(name)

    def findings(self) -> list[Any]:
        """Return what only the judge that is asked can know."""
        return list(getattr(self.inner, "findings", list)())

    def _judged(self, sample: Sample, aspects: frozenset[str]) -> Judged:
        verdicts, failures = {}, {}
        for aspect in sorted(aspects):
            answer = self._answer(sample, aspect)
            if isinstance(answer, AspectVerdicts):
                verdicts[aspect] = answer
            elif answer is not None:
                failures[aspect] = answer
        return Judged(verdicts, failures)

    def _answer(self, sample: Sample, aspect: str) -> AspectVerdicts | JudgeFailure | None:
        """Return what is known about an aspect of a sample; None if something is not."""
        known = self._known.get((sample.query, aspect))
        if known is None or not _same(known.sample, sample, aspect):
            return None
        found = known.found
        if known.sample.chunks == sample.chunks or not isinstance(found, AspectVerdicts):
            return found
        places = [known.place.get(chunk, -1) for chunk in sample.chunks]
        shape = find_aspect(aspect).shape
        if shape is VerdictShape.LIST or -1 in places:
            return None
        if shape is VerdictShape.PARTS:
            return replace(
                found,
                rows=tuple(found.rows[place] for place in places),
                parts=tuple(found.parts[place] for place in places),
            )
        return replace(
            found, rows=tuple(tuple(row[place] for place in places) for row in found.rows)
        )


def _same(known: Sample, asked: Sample, aspect: str) -> bool:
    """Tell whether two samples are about one question, with the same items."""
    return (known.question, known.reference, known.items[aspect]) == (
        asked.question,
        asked.reference,
        asked.items[aspect],
    )
