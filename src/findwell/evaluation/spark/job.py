"""`findwell.spark.evaluate`: run and gold as Spark frames in, a result out; lists stay in Spark."""

from __future__ import annotations

import io
import math
import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from findwell.core.errors import InputError, OptionError, choose
from findwell.core.frames import pl
from findwell.evaluation.inputs import default_relation
from findwell.evaluation.plan import (
    READING_FIELDS,
    InputReading,
    Plan,
    RunOptions,
    flat_options,
    takes_plan,
)
from findwell.evaluation.spark import columns as sides
from findwell.evaluation.spark.gateway import ModelGateway
from findwell.evaluation.spark.result import SparkResult
from findwell.evaluation.spark.session import (
    is_connect,
    naming_errors,
    open_session,
    read_frame,
    require_pyspark,
)
from findwell.evaluation.spark.task import BATCH_ROWS, SAMPLED_PARTS, TaskPlan
from findwell.evaluation.spark.value_rows import SAMPLE, SCHEMA
from findwell.evaluation.spark.worker import evaluate_part
from findwell.io.read.by_query import is_by_query
from findwell.io.read.corpus import load_corpus
from findwell.io.read.vocabulary import TABLE_COLUMNS
from findwell.judges.find import on_server
from findwell.measures import DEFAULTS, Measure
from findwell.relations.preflight import SYNTHETIC_COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


BROADCAST_ROWS = 1_000_000  # of gold that is sent to every executor, at most
BROADCAST_BYTES = 64 << 20
JOINS = ("auto", "broadcast", "shuffle")
KEPT_DOCUMENTS = 50  # of each list that a sampled query remembers
ABOUT = ("question", "reference", SYNTHETIC_COLUMN)  # columns of the gold, read where present
# fields of `Reading` that mean something where no file is read
READING_ON_SPARK = frozenset({"base_url", "ids", "missing", "skip_bad", "tokenizer"})
LOCAL_OPTIONS = {*READING_FIELDS, "progress"} - READING_ON_SPARK


class SparkOptions(RunOptions, total=False):
    """The options of `findwell.evaluate` that `findwell.spark.evaluate` hands on."""

    rel: float | None
    level: float | None
    cluster: str | None


@takes_plan(SparkOptions)
def evaluate(
    run: DataFrame | str,
    gold: DataFrame | str | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    queries: DataFrame | str | None = None,
    slices: Iterable[str] | str = (),
    columns: Mapping[str, str] | None = None,
    name: str = "run",
    run_id: str | None = None,
    sample: float = 0.0,
    partitions: int | None = None,
    gold_join: Literal["auto", "broadcast", "shuffle"] = "auto",
    keep_at: str | None = None,
    gateway_host: str | None = None,
    gateway_port: int = 0,
    calls_per_minute: float | None = None,
    master: str | None = None,
    batch_rows: int = BATCH_ROWS,
    **options: Unpack[SparkOptions],
) -> SparkResult:
    """Measure how well a run found the gold, both Spark frames, on Spark.

    Frames have one row per retrieved document (query, doc, and score or rank) or one row per query
    with lists, as everywhere; a text is a path or `table:NAME`. Without `gold` the records of the
    run hold both. `columns` says what columns are called where their names do not say it:
    `{"query": "qid", "gold.doc": "pid"}`. Further options (`by`, `dialect`, `judge`, …) are those
    of `findwell.evaluate`, and every value of a query is the same, bit for bit.

    `slices` are columns of the gold or of `queries` to slice by. `sample` is the share of the
    queries, chosen by their names, whose lists are brought to the driver: `result.sample` is then
    a `findwell.Result` of them for reports and explanations.

    `partitions` is how many parts the rows are cut into, by query (by default as Spark's setting
    `spark.sql.shuffle.partitions` says). `gold_join` sends a small gold to every executor
    (`broadcast`) or brings its rows together with those of the run (`shuffle`). `keep_at` is a
    path to which the values are written before they are collected, so that nothing is computed
    twice if an executor is lost; otherwise Spark keeps them in memory and on local disks.

    A language model that judges is asked by the driver alone: the tasks send it their questions, at
    `gateway_host` and `gateway_port` (by default where Spark's driver is). So limits and budget of
    the judge hold for the whole job, `calls_per_minute` too, and the key stays where it is. What
    was answered is kept in the cache folder of the driver; a job that is run again asks only the
    rest.
    """
    require_pyspark()
    choose("way to join the gold", gold_join, JOINS)
    if not 0 <= sample <= 1:
        raise OptionError(f"the sample is {sample}", fix="give the share of the queries, 0 to 1")
    given = flat_options(options)
    for idle in sorted(LOCAL_OPTIONS & given.keys()):
        raise OptionError(f"{idle} has no effect on Spark, which reads tables", fix="leave it out")
    plan = Plan.of(measures, **given)
    session = _session([each for each in (run, gold, queries) if each is not None], master)
    run, gold, queries = (
        read_frame(session, each) if isinstance(each, str) else each
        for each in (run, gold, queries)
    )
    corpus = options.get("corpus")
    if plan.is_open:
        theirs = (run, "run") if gold is None else (gold, "gold")
        carried = sides.carried_by(run, sides.mapped(columns, "run"), "run")
        wanted = sides.carried_by(theirs[0], sides.mapped(columns, theirs[1]), "gold")
        plan = plan.over(default_relation({name: carried}, wanted, corpus))
    texts = sample > 0 or plan.reads_texts
    sliced = [slices] if isinstance(slices, str) else list(slices)
    named = dict.fromkeys([*sliced, *([] if plan.cluster is None else [plan.cluster])])
    taken = _sides(plan, run, gold, queries, columns, {*named, *ABOUT}, texts=texts)
    known = _about_queries(taken)
    for column in named:
        choose("column about the queries", column, sorted(known), none="there are none")
    with ExitStack() as held:
        judge, gateway = None, None
        if plan.judge is not None:
            from findwell.judges.llm.judge import LLMJudge  # noqa: PLC0415 - few jobs have a judge

            judge, _ = on_server(given.get("judge"), given.get("base_url"))
            if isinstance(plan.judge, LLMJudge):
                if gateway_host is None and not is_connect(session):
                    gateway_host = session.sparkContext.getConf().get("spark.driver.host")
                pace = calls_per_minute
                gateway = ModelGateway(
                    plan.judge, host=gateway_host, port=gateway_port, calls_per_minute=pace
                )
                judge = held.enter_context(gateway).settings()
        whole = taken[sides.GOLD]
        task = TaskPlan(
            run=name,
            plan=_of_a_part(plan, texts=texts, keep=KEPT_DOCUMENTS if sample else 0),
            sides={at: None if side is None else side.columns for at, side in taken.items()},
            about=tuple(sorted({*named, *ABOUT})),
            labels=tuple(named | dict.fromkeys(sorted(known & {sides.CLUSTERS, SYNTHETIC_COLUMN}))),
            judge=judge,
            sample=math.floor(sample * SAMPLED_PARTS),
            rows=batch_rows,
            gold=_broadcast(session, whole, gold_join),
            corpus=_corpus(session, corpus),
            token=secrets.token_hex(8),
        )
        if task.gold is not None and whole is not None:  # tasks have all but the names
            names = whole.frame.select(sides.QUERY, sides.POSITION).dropDuplicates([sides.QUERY])
            taken[sides.GOLD] = sides.Side(names, whole.columns)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return evaluate_part(task, batches)

        with naming_errors():
            rows = sides.stack(taken, partitions).mapInArrow(work, SCHEMA)
            rows = _kept(session, rows, keep_at)
            return SparkResult.of(
                pl.DataFrame(rows.filter(rows["kind"] != SAMPLE).toArrow()),
                plan,
                task,
                # tasks know what they asked themselves; the driver knows what all of them took
                about_judge=dict if gateway is None else gateway.about,
                task_rows=rows,
                run_id=run_id or secrets.token_hex(8),
                sampled=sample,
            )


def _sides(  # noqa: PLR0917
    plan: Plan,
    run: DataFrame,
    gold: DataFrame | None,
    queries: DataFrame | None,
    columns: Mapping[str, str] | None,
    wanted: set[str],
    *,
    texts: bool,
) -> dict[int, sides.Side | None]:
    """Return the rows of gold, queries and run; None for gold that a judge does not need."""
    names = {side: sides.mapped(columns, side) for side in sides.SIDES.values()}
    unlabelled = gold is None and plan.unlabelled
    if gold is None and not unlabelled and not is_by_query(run.columns, "gold"):
        raise InputError(
            "the run says nothing about what should be found",
            where="run",
            fix="name the gold: gold= (--gold PATH or table:NAME)",
        )
    given, its_names = (run, names["run"]) if gold is None else (gold, names["gold"])
    return {
        sides.GOLD: None
        if unlabelled
        else sides.take_gold(given, its_names, texts=texts, wanted=wanted),
        sides.QUERIES: None if queries is None else sides.take_queries(queries, names["queries"]),
        sides.RUN: sides.take_run(run, names["run"], texts=texts, about=unlabelled),
    }


def _of_a_part(plan: Plan, *, texts: bool, keep: int) -> Plan:
    """Return the plan as a task executes it, which sees some of the queries only.

    Whether a query is missing, and how values are summarised, is known when all parts were seen.
    """
    zero = replace(plan.policy, missing="zero") if plan.policy.missing == "error" else plan.policy
    return replace(
        plan,
        by=plan.by or "ids",
        dialect=replace(plan.dialect, policy=zero),
        judge=None,
        reading=InputReading(skip_bad=plan.reading.skip_bad, texts=texts),
        keep=keep,
        level=None,
        cluster=None,
    )


def _session(frames: list[DataFrame | str], master: str | None) -> SparkSession:
    for frame in frames:
        if not isinstance(frame, str):
            if not hasattr(frame, "mapInArrow"):
                raise InputError(
                    f"a {type(frame).__name__} is not a frame of Spark",
                    fix="give a DataFrame of Spark, a path or table:NAME; findwell.evaluate takes "
                    "polars and pandas",
                )
            return frame.sparkSession
    return open_session(master)


def _about_queries(taken: Mapping[int, sides.Side | None]) -> set[str]:
    """Return the columns that say something about queries, not about documents."""
    known = {
        name
        for at in (sides.GOLD, sides.QUERIES)
        if (side := taken[at]) is not None
        for name in side.columns.columns
        if side.columns.kind != "document" or name not in TABLE_COLUMNS
    }
    if taken[sides.GOLD] is None and (side := taken[sides.RUN]) is not None:
        known |= set(side.columns.columns)
    return known


def _kept(session: SparkSession, rows: DataFrame, place: str | None) -> DataFrame:
    """Keep rows on the executors, or at a place where nothing else stands."""
    if place is None:
        return rows.persist()
    try:
        free = session.read.parquet(place).columns == rows.columns  # of an earlier job
    except Exception as error:  # noqa: BLE001 - of many kinds, as anything may stand there
        free = "PATH_NOT_FOUND" in str(error)
    if not free:
        raise OptionError(
            "this place already holds something other than values",
            where=place,
            fix="name a folder that does not exist (-S keep_at, keep_at=)",
        )
    rows.write.mode("overwrite").parquet(place)
    return session.read.parquet(place)


def _broadcast(
    session: SparkSession, side: sides.Side | None, how: str
) -> Callable[[], bytes] | None:
    """Return what gives a task the whole gold, where it is small; None: rows are shuffled."""
    if side is None or how == "shuffle" or is_connect(session):
        return None
    with naming_errors():
        if how == "auto" and side.frame.limit(BROADCAST_ROWS + 1).count() > BROADCAST_ROWS:
            return None
        rows = pl.DataFrame(side.frame.toArrow()).sort(sides.POSITION)
    if how == "auto" and rows.estimated_size() > BROADCAST_BYTES:
        return None
    return _sent(session, rows)


def _corpus(session: SparkSession, corpus: Any) -> Callable[[], bytes] | None:  # noqa: ANN401
    if corpus is None:
        return None
    if hasattr(corpus, "mapInArrow") and hasattr(corpus, "toArrow"):
        with naming_errors():
            corpus = pl.DataFrame(corpus.toArrow())
    return _sent(session, load_corpus(corpus))


def _sent(session: SparkSession, table: pl.DataFrame) -> Callable[[], bytes]:
    """Send a table to all executors, once to each."""
    file = io.BytesIO()
    table.write_ipc(file, compression="zstd")
    data = file.getvalue()
    if is_connect(session):
        return lambda: data
    shared = session.sparkContext.broadcast(data)

    def load() -> bytes:
        return bytes(shared.value)

    return load
