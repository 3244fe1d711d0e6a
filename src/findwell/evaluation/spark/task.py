"""What a task does: its rows, cut into batches of whole queries, go through findwell as everywhere.

A batch is read by the readers of tables, and assessed by the same function as on one machine, over
`findwell.relations.pipeline.draw_batch`; so its values are those of any other engine.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from findwell.core.columns import whole_queries
from findwell.core.data import Gold, Run
from findwell.core.findings import finding_about, merge_findings
from findwell.core.frames import pl
from findwell.core.parts import working_on_part
from findwell.engines.part import PartEngine
from findwell.evaluation.evaluate import assess
from findwell.evaluation.inputs import unlabelled_gold, with_columns
from findwell.evaluation.results.store import tables_of
from findwell.evaluation.spark.columns import GOLD, QUERIES, QUERY, RUN, SIDE, SIDES
from findwell.evaluation.spark.value_rows import NOTES, ROW, SAMPLE, rows_of, to_batches
from findwell.io.read.by_document import gold_of, run_rows
from findwell.io.read.by_query import read_frame
from findwell.io.read.delimited import TablePlace
from findwell.io.read.format import ReadContext
from findwell.io.read.records import RUN as RUN_ROWS
from findwell.io.read.records import TEXT
from findwell.io.read.vocabulary import TABLE_COLUMNS
from findwell.judges.find import find_judge
from findwell.relations.align import extra_queries
from findwell.relations.preflight import has_hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from findwell.core.findings import Finding
    from findwell.evaluation.plan import Plan
    from findwell.evaluation.results.result import Result
    from findwell.evaluation.spark.columns import SideColumns

BATCH_ROWS = 1 << 18  # a query that has more is a batch by itself
BATCH_BYTES = 64 << 20
SAMPLED_PARTS = 1 << 53  # into which the sampling of queries divides them
UNMET_ID = "unmet-id"  # a finding that is never reported: ids of a batch that met nothing
NO_GOLD: dict[str, Any] = {"query": pl.String, "doc": pl.String, "grade": pl.Float64}


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """All that a task must know; it is sent to the executors."""

    run: str  # the name of the run
    plan: Plan  # without a judge: each task finds its own
    sides: dict[int, SideColumns | None]
    about: tuple[str, ...] = ()  # columns about the queries that may stand in the gold
    labels: tuple[str, ...] = ()  # those that are returned with the values
    judge: object = None
    sample: int = 0  # of SAMPLED_PARTS: the share of queries that are sampled
    rows: int = BATCH_ROWS
    gold: Callable[[], bytes] | None = None  # the whole gold, where it was sent to every task
    corpus: Callable[[], bytes] | None = None
    token: str = ""  # distinguishes plans: what is made for one serves its batches

    @property
    def unlabelled(self) -> bool:
        """Whether the records need no gold: a judge says all."""
        return self.sides[GOLD] is None

    def of_side(self, rows: pl.DataFrame, side: int) -> tuple[pl.DataFrame, pl.Series] | None:
        """Return the rows of a side under their own columns, and their queries; None: no side."""
        columns = self.sides.get(side)
        if columns is None:
            return None
        mine = rows.filter(rows[SIDE] == side) if SIDE in rows.columns else rows
        struct = SIDES[side] if SIDES[side] in rows.columns else "what"
        named = mine.select(pl.col(QUERY).alias(columns.query))
        if struct in mine.columns:
            named = named.hstack(mine[struct].struct.unnest())
        return named, named[columns.query]


def evaluate_batches(task: TaskPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the values of all queries of a partition, and what is worth knowing about them."""
    if task.judge is not None:
        task = replace(task, plan=replace(task.plan, judge=find_judge(task.judge)))
    corpus = None if task.corpus is None else pl.read_ipc(io.BytesIO(task.corpus()))
    for rows in whole_queries(_gathered(batches, task.rows)):
        yield from to_batches(_evaluate(task, rows, corpus))


def _gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pl.DataFrame]:
    """Put the small batches of Spark together to some that are worth the trouble."""
    import pyarrow as pa  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= BATCH_BYTES:
            yield pl.DataFrame(pa.Table.from_batches(held))
            held, count, size = [], 0, 0
    if count:
        yield pl.DataFrame(pa.Table.from_batches(held))


def _evaluate(task: TaskPlan, rows: pl.DataFrame, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Evaluate a batch of whole queries: rows of values, and what is worth knowing about them."""
    with working_on_part():
        run, gold, found = _read(task, rows)
        described = rows.filter(rows[SIDE] == QUERIES)[QUERY]
        known = int((gold.find(described) >= 0).sum())
        counts = {"documents": int(run.rows["doc"].count()), "described": known}
        noted: dict[str, Any] = {"counts": counts}
        if not known:  # an example, in case no part knows any
            found += finding_about(UNMET_ID, described, "queries")
        names = run.rows["query"].unique(maintain_order=True)
        if not gold.queries.height:  # queries that the gold does not have
            found += (replace(each, run=task.run) for each in extra_queries(names))
            return _rows([], [_note(found, noted)])
        if len(gold.item_grade):
            noted["highest"] = float(gold.item_grade.max())
        result = assess(task.plan, [run.stream()], gold, corpus=corpus, engine=PartEngine())
    found = [*merge_findings([*found, *result.findings])]
    if not result.relation(task.run).n:  # all are missing, and those are left out
        return _rows([], [_note(found, noted)])
    judged = sum(int(each.unit_judged.sum()) for each in result.relations.values())
    shared = int((gold.find(names) >= 0).sum())
    counts |= {"shared": shared, "judged": judged, "queries": gold.queries.height}
    counts["hashes"] = int(has_hashes(gold))
    if not judged:  # some ids, in case no part meets the gold
        for side, docs in (("run", run.rows["doc"].drop_nulls()), ("gold", gold.member_doc)):
            found += finding_about(UNMET_ID, docs, side)
    if result.judge:
        noted["judge"] = dict(result.judge)
    values = rows_of(result.measured, task.labels)
    return _rows([values], [_note(found, noted), *(_sample(task, result) if task.sample else ())])


def _rows(values: list[pl.DataFrame], others: list[dict[str, Any]]) -> pl.DataFrame:
    empty = pl.DataFrame(schema=ROW)  # it says which columns there are, and their order
    return pl.concat([empty, *values, pl.DataFrame(others, schema=ROW)], how="diagonal")


def _note(findings: Iterable[Finding], noted: dict[str, Any]) -> dict[str, Any]:
    said = {"findings": [*map(asdict, findings)], **noted}
    return {"kind": NOTES, "data": json.dumps(said).encode()}


def _sample(task: TaskPlan, result: Result) -> list[dict[str, Any]]:
    """Return the sampled queries of a result, as the tables of a saved one."""
    names = [name for name in result.queries["query"] if is_sampled(name, task.sample)]
    if not names:
        return []
    part = result.among(pl.Series(names))
    found = []
    for name, table in tables_of(part).items():
        file = io.BytesIO()
        table.write_ipc(file, compression="zstd")
        found.append({"kind": SAMPLE, "query": name, "data": file.getvalue()})
    return found


def is_sampled(query: str, share: int) -> bool:
    """Tell whether a query is sampled: by its name alone, so that runs share their samples.

    >>> sum(is_sampled(f"q{at}", SAMPLED_PARTS // 10) for at in range(1000))
    96
    """
    digest = blake2b(query.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 11 < share


def _read(task: TaskPlan, rows: pl.DataFrame) -> tuple[Run, Gold, list[Finding]]:
    """Read the rows of a batch; what there is to say about their reading comes along."""
    how = task.plan.reading
    reading = [
        ReadContext(skip=how.skip_bad, texts=how.texts, about=task.unlabelled) for _ in range(2)
    ]
    run = _read_run(task, rows, reading[0])
    gold = unlabelled_gold(run) if task.unlabelled else _read_gold(task, rows, reading[1])
    described = task.of_side(rows, QUERIES)
    if described is not None and gold.queries.height:
        table, names = described
        known = table.filter(names.is_in(gold.queries["query"].implode()))
        gold = with_columns(gold, known) if known.height else gold
    about_run = (replace(found, run=task.run) for found in reading[0].findings())
    return run, gold, [*about_run, *reading[1].findings()]


def _read_run(task: TaskPlan, rows: pl.DataFrame, reading: ReadContext) -> Run:
    side, found = task.sides[RUN], task.of_side(rows, RUN)
    by_query = side is not None and side.kind == "query"
    if found is None or not found[0].height:
        kinds = RUN_ROWS | (TEXT if reading.texts else {})
        return Run(task.run, pl.DataFrame(schema=kinds), "listed" if by_query else "mapped")
    frame, names = found
    place = QueryPlace(f"run {task.run}", names=names)
    if by_query:
        return read_frame(frame, "run", place, reading).run(task.run).collect()
    # rows of a distributed table have no order of their own: the scores decide
    return Run(task.run, run_rows(frame, place, reading)[0], "mapped")


def _read_gold(task: TaskPlan, rows: pl.DataFrame, reading: ReadContext) -> Gold:
    if task.gold is not None:
        whole = _whole_gold(task.token, task.gold)
        asked = rows.filter(rows[SIDE] != QUERIES)[QUERY].unique()
        rows = whole.filter(whole[QUERY].is_in(asked.implode(), nulls_equal=True))
    side, found = task.sides[GOLD], task.of_side(rows, GOLD)
    if side is None or found is None or not found[0].height:
        return Gold.build(pl.DataFrame(schema=NO_GOLD))
    frame, names = found
    place = QueryPlace("gold", names=names)
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


@lru_cache(maxsize=1)
def _whole_gold(token: str, load: Callable[[], bytes]) -> pl.DataFrame:
    """Return the gold that every task has; it is read once for all partitions of a process."""
    del token
    return pl.read_ipc(io.BytesIO(load()))


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
