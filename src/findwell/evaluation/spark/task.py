"""What a task does: its rows, cut into batches of whole queries, go through findwell as everywhere.

A batch is read by the readers of tables, and assessed by the same function as on one machine, over
`findwell.relations.pipeline.draw_batch`; so its values are those of any other engine.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.columns import whole_queries
from findwell.core.data import Gold, Run
from findwell.core.findings import finding_about, merge_findings
from findwell.core.frames import pl
from findwell.core.parts import working_on_part
from findwell.core.values import BOUNDS
from findwell.engines.part import PartEngine
from findwell.evaluation.evaluate import assess
from findwell.evaluation.inputs import unlabelled_gold, with_columns
from findwell.evaluation.results.store import tables_of
from findwell.evaluation.spark.arrow import to_batches
from findwell.evaluation.spark.columns import GOLD, QUERIES, QUERY, RUN, SIDE, SIDES
from findwell.io.read.by_document import gold_of, run_rows
from findwell.io.read.by_query import read_frame
from findwell.io.read.delimited import TablePlace
from findwell.io.read.format import ReadContext
from findwell.io.read.records import RUN as RUN_ROWS
from findwell.io.read.records import TEXT
from findwell.io.read.vocabulary import TABLE_COLUMNS
from findwell.judges.find import find_judge
from findwell.statistics.moments import name_hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from findwell.core.findings import Finding
    from findwell.evaluation.plan import Plan
    from findwell.evaluation.results.result import Result
    from findwell.evaluation.spark.columns import SideColumns
    from findwell.measures import Measure

ROWS = 1 << 18  # rows of a batch, but for a query that has more
BYTES = 64 << 20
SHARED = 1 << 53  # into how many parts the sampling of queries divides them
VALUES, NOTES, SAMPLE = 0, 1, 2  # what a row that a task returns holds
UNMET = "unmet-id"  # a finding that is never reported: ids of a batch that met nothing

# one row per query; notes and samples are one row per batch
SCHEMA = (
    "kind tinyint, query string, cluster string, slices array<string>, `values` array<double>, "
    "reasons array<string>, failed array<boolean>, lower array<double>, upper array<double>, "
    "data binary"
)
FRAME: dict[str, Any] = {
    "kind": pl.Int8,
    "query": pl.String,
    "cluster": pl.String,
    "slices": pl.List(pl.String),
    "values": pl.List(pl.Float64),
    "reasons": pl.List(pl.String),
    "failed": pl.List(pl.Boolean),
    "lower": pl.List(pl.Float64),
    "upper": pl.List(pl.Float64),
    "data": pl.Binary,
}


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """All that a task must know; it is sent to the executors."""

    run: str  # the name of the run
    plan: Plan  # without a judge: each task finds its own
    sides: dict[int, SideColumns | None]
    about: tuple[str, ...] = ()  # columns about the queries that may stand in the gold
    slices: tuple[str, ...] = ()
    cluster: str | None = None
    judge: object = None
    sample: int = 0  # of SHARED: the share of queries that are sampled
    rows: int = ROWS
    gold: Callable[[], bytes] | None = None  # the whole gold, where it was sent to every task
    corpus: Callable[[], bytes] | None = None
    token: str = field(default="")  # distinguishes plans: what is made for one serves its batches

    @property
    def unlabelled(self) -> bool:
        """Whether the records need no gold: a judge says all."""
        return self.sides[GOLD] is None


def evaluate_batches(task: TaskPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the values of all queries of a partition, and what is worth knowing about them."""
    work = _Work.of(task)
    for rows in whole_queries(_gathered(batches, task.rows)):
        frame = work.evaluate(rows)
        yield from to_batches(frame)


def _gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pl.DataFrame]:
    """Put the small batches of Spark together to some that are worth the trouble."""
    import pyarrow as pa  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= BYTES:
            yield pl.DataFrame(pa.Table.from_batches(held))
            held, count, size = [], 0, 0
    if count:
        yield pl.DataFrame(pa.Table.from_batches(held))


class GoldTable:
    """The rows of a gold that every task has, found by query."""

    def __init__(self, data: bytes) -> None:
        rows = pl.read_ipc(io.BytesIO(data))
        key = rows[QUERY].hash().to_numpy()
        order = np.argsort(key, kind="stable")
        self._rows, self._key = rows[order], key[order]

    def of(self, queries: pl.Series) -> pl.DataFrame:
        """Return the rows of some queries, each query's in their order."""
        names = queries.unique(maintain_order=True)
        key = names.hash().to_numpy()
        first = np.searchsorted(self._key, key, side="left")
        last = np.searchsorted(self._key, key, side="right")
        sizes = last - first
        begin = np.repeat(first - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        found = self._rows[begin + np.arange(len(begin))]
        # hashes may be equal; a row without a query is refused by who reads it
        return found.filter(found[QUERY].is_in(names.implode(), nulls_equal=True))


@lru_cache(maxsize=1)
def _gold_table(token: str, load: Callable[[], bytes]) -> GoldTable:
    del token
    return GoldTable(load())


@dataclass(slots=True)
class _Work:
    """The evaluation of the batches of a partition."""

    task: TaskPlan
    plan: Plan
    corpus: pl.DataFrame | None

    @classmethod
    def of(cls, task: TaskPlan) -> _Work:
        judge = None if task.judge is None else find_judge(task.judge)
        corpus = None if task.corpus is None else pl.read_ipc(io.BytesIO(task.corpus()))
        return cls(task, replace(task.plan, judge=judge), corpus)

    def evaluate(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Evaluate a batch of whole queries: one row per query, and one of notes."""
        task, plan = self.task, self.plan
        with working_on_part():
            run, gold, noted = self._read(rows)
            documents = int(run.rows["doc"].count())
            facts: dict[str, Any] = {"documents": documents, "rows": rows.height}
            told = rows.filter(rows[SIDE] == QUERIES)[QUERY]
            facts |= {"told": len(told), "told_of_gold": int((gold.find(told) >= 0).sum())}
            if not gold.queries.height:  # queries that the gold does not have
                extra = run.rows["query"].unique(maintain_order=True)
                return _frame([_notes((*noted, *_extra(extra, task.run)), facts)])
            facts |= {
                relevant_fact(level): int((gold.item_grade >= level).sum())
                for level in {each.level() for each in plan.measures if each.needs_relevant}
            }
            result = assess(plan, [run.stream()], gold, corpus=self.corpus, engine=PartEngine())
        if not result.relation(task.run).n:  # all are missing, and those are left out
            return _frame([_notes((*noted, *result.findings), facts | {"queries": 0})])
        shared = int((gold.find(run.rows["query"].unique()) >= 0).sum())
        hit = sum(int(each.unit_judged.sum()) for each in result.relations.values())
        facts |= {"shared": shared, "judged": hit, "queries": gold.queries.height}
        if result.judge:
            facts["judge"] = dict(result.judge)
        found = merge_findings((*noted, *result.findings))
        if not hit:  # some ids, in case no part meets the gold
            for side, docs in (("run", run.rows["doc"].drop_nulls()), ("gold", gold.member_doc)):
                found += tuple(finding_about(UNMET, docs, side))
        return pl.concat(
            [
                self._values(result),
                _frame([_notes(found, facts), *self._sample(result)]),
            ]
        )

    def _read(self, rows: pl.DataFrame) -> tuple[Run, Gold, list[Finding]]:
        task = self.task
        noted: list[Finding] = []

        how = self.plan.reading

        def context() -> ReadContext:
            return ReadContext(skip=how.skip_bad, texts=how.texts, about=task.unlabelled)

        reading = context()
        run = self._run(_side_rows(rows, RUN, task), reading)
        noted += [replace(found, run=task.run) for found in reading.findings()]
        reading = context()
        gold = unlabelled_gold(run) if task.unlabelled else self._gold(rows, reading)
        noted += reading.findings()
        about = _side_rows(rows, QUERIES, task)
        if about is not None and about.height and gold.queries.height:
            known = about.filter(about[_key(task, QUERIES)].is_in(gold.queries["query"].implode()))
            gold = with_columns(gold, known) if known.height else gold
        return run, gold, noted

    def _run(self, frame: pl.DataFrame | None, reading: ReadContext) -> Run:
        task = self.task
        side = task.sides[RUN]
        place = QueryPlace(f"run {task.run}", names=_names(frame, task, RUN))
        if frame is None or side is None or not frame.height:
            kinds = RUN_ROWS | (TEXT if self.plan.reading.texts else {})
            listed = side is not None and side.kind == "query"
            return Run(task.run, pl.DataFrame(schema=kinds), "listed" if listed else "mapped")
        if side.kind == "query":
            return read_frame(frame, "run", place, reading).run(task.run).collect()
        # rows of a distributed table have no order of their own: the scores decide
        return Run(task.run, run_rows(frame, place, reading)[0], "mapped")

    def _gold(self, rows: pl.DataFrame, reading: ReadContext) -> Gold:
        task = self.task
        side = task.sides[GOLD]
        if task.gold is None:
            frame = _side_rows(rows, GOLD, task)
        else:
            asked = rows.filter(rows[SIDE] != QUERIES)[QUERY]
            frame = _unpacked(_gold_table(task.token, task.gold).of(asked), GOLD, task)
        if frame is None or side is None or not frame.height:
            return Gold.build(pl.DataFrame(schema=NO_GOLD))
        place = QueryPlace("gold", names=_names(frame, task, GOLD))
        if side.kind == "query":
            return read_frame(frame, "gold", place, reading).gold()
        # a column of the gold itself stays one, though one about the queries has its name
        about = [name for name in task.about if name in frame.columns and name not in TABLE_COLUMNS]
        gold = gold_of(frame.drop(about), place, reading)
        named = frame.with_columns(pl.col("query").cast(pl.String))
        named = named.filter(pl.col("query").is_in(gold.queries["query"].implode()))
        if not about or not named.height:
            return gold
        # rows have no order: where they say different things about a query, the least counts
        said = (
            known.first() if frame.schema[name].is_nested() else known.min()
            for name in about
            for known in [pl.col(name).drop_nulls()]
        )
        return with_columns(gold, named.group_by("query", maintain_order=True).agg(*said))

    def _values(self, result: Result) -> pl.DataFrame:
        """Return one row per query, with lists in the order of the measures."""
        task, measures = self.task, self.plan.measures
        columns = [result.arrays[task.run, measure] for measure in measures]
        relations = [result.relation(task.run, measure) for measure in measures]
        queries = relations[0].queries
        table = np.column_stack(columns) if columns else np.zeros((len(queries), 0))
        missing = np.isnan(table)
        frame = pl.DataFrame(
            {
                "query": queries,
                "values": _lists(table).list.eval(pl.element().fill_nan(None)),
            }
        )
        if missing.any():
            frame = frame.with_columns(reasons=_reasons(measures, relations, missing))
        failed = np.column_stack([each.failed for each in relations])
        if failed.any():
            frame = frame.with_columns(failed=_lists(failed))
        if result.measured.bounds is not None:
            both = [result.measured.bounds_of(task.run, each) for each in measures]
            for name, sides in zip(BOUNDS, zip(*both, strict=True), strict=True):
                limits = np.column_stack(sides)
                limits = np.where(np.isnan(limits), table, limits)  # a measure without bounds
                known = _lists(limits).list.eval(pl.element().fill_nan(None))
                frame = frame.with_columns(known.alias(name))
        about = frame.select("query").join(
            result.queries, on="query", how="left", maintain_order="left"
        )
        if task.slices:
            labels = [_label(about, name) for name in task.slices]
            frame = frame.with_columns(slices=pl.concat_list(labels))
        if task.cluster is not None:
            frame = frame.with_columns(_label(about, task.cluster).alias("cluster"))
        return _frame_of(frame.with_columns(kind=pl.lit(VALUES, pl.Int8)))

    def _sample(self, result: Result) -> list[dict[str, Any]]:
        """Return the sampled queries of a result, as the tables of a saved one."""
        if not self.task.sample:
            return []
        chosen = sampled(result.queries["query"], self.task.sample)
        if not chosen.any():
            return []
        part = result.among(result.queries["query"].filter(chosen))
        data = {name: _ipc(table) for name, table in tables_of(part).items()}
        return [{"kind": SAMPLE, "query": name, "data": blob} for name, blob in data.items()]


NO_GOLD: dict[str, Any] = {"query": pl.String, "doc": pl.String, "grade": pl.Float64}


@dataclass(frozen=True, slots=True)
class QueryPlace(TablePlace):
    """What messages call the rows of a distributed table: by their query.

    >>> QueryPlace("run", names=pl.Series(["q1", "q7"])).row(2)
    "run, query 'q7'"
    """

    names: pl.Series | None = None

    def row(self, number: int) -> str:
        """Name a row, counting from 1."""
        at = number if self.kept is None else self.kept[number - 1]
        name = None if self.names is None else self.names[at - 1]
        return f"{self.where}, query {name!r}"


def relevant_fact(level: float) -> str:
    """Name the fact how many items are relevant at a level."""
    return f"relevant from {level:g}"


def sampled(queries: pl.Series, share: int) -> np.ndarray:
    """Tell which queries are sampled: by their names alone, so that runs share their samples."""
    return np.asarray((name_hashes(queries) >> np.uint64(11)) < np.uint64(share))


def _side_rows(rows: pl.DataFrame, side: int, task: TaskPlan) -> pl.DataFrame | None:
    """Return the rows of a side under their own columns; None if there is no such side."""
    if task.sides.get(side) is None:
        return None
    return _unpacked(rows.filter(rows[SIDE] == side), side, task)


def _unpacked(rows: pl.DataFrame, side: int, task: TaskPlan) -> pl.DataFrame:
    struct = SIDES[side] if SIDES[side] in rows.columns else "what"
    named = rows.select(pl.col(QUERY).alias(_key(task, side)))
    if struct not in rows.columns:
        return named
    return named.hstack(rows[struct].struct.unnest())


def _key(task: TaskPlan, side: int) -> str:
    columns = task.sides[side]
    return QUERY if columns is None else columns.query


def _names(frame: pl.DataFrame | None, task: TaskPlan, side: int) -> pl.Series | None:
    return None if frame is None else frame[_key(task, side)]


def _extra(names: pl.Series, run: str) -> list[Finding]:
    from findwell.relations.align import extra_queries  # noqa: PLC0415

    return [replace(found, run=run) for found in extra_queries(names)]


def _label(about: pl.DataFrame, name: str) -> pl.Series:
    if name not in about.columns:  # in this batch no query has it
        return pl.repeat(None, about.height, dtype=pl.String, eager=True).alias(name)
    return about[name].cast(pl.String)


def _reasons(measures: tuple[Measure, ...], relations: list[Any], missing: np.ndarray) -> pl.Series:
    columns = []
    for at, (measure, relation) in enumerate(zip(measures, relations, strict=True)):
        why = relation.why_undefined(measure.why_undefined)
        columns.append(why.set(pl.Series(~missing[:, at]), None).alias(str(at)))
    return pl.DataFrame(columns).select(pl.concat_list(pl.all())).to_series()


def _lists(table: np.ndarray) -> pl.Series:
    """Return the rows of a table as lists."""
    rows, columns = table.shape
    flat = pl.Series(np.ascontiguousarray(table).reshape(-1))
    return (
        flat.reshape((rows, columns)).arr.to_list()
        if rows and columns
        else pl.Series([[]] * rows, dtype=pl.List(flat.dtype))
    )


def _notes(findings: Iterable[Finding], facts: dict[str, Any]) -> dict[str, Any]:
    said = {"findings": [each.as_dict() for each in findings], "facts": facts}
    return {"kind": NOTES, "data": json.dumps(said).encode()}


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=FRAME)


def _frame_of(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
        for name, kind in FRAME.items()
    )


def _ipc(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    table.write_ipc(file, compression="zstd")
    return file.getvalue()
