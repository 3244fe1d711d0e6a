"""`findwell.spark.evaluate`: run and gold as Spark frames in, a summary out; rows stay in Spark."""

from __future__ import annotations

import io
import math
import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from findwell.core.errors import InputError, OptionError, choose
from findwell.core.frames import pl
from findwell.evaluation.inputs import default_relation
from findwell.evaluation.plan import (
    EvaluationOptions,
    InputReading,
    Plan,
    flat_options,
    takes_plan,
)
from findwell.evaluation.spark import columns as sides
from findwell.evaluation.spark.gateway import ModelGateway
from findwell.evaluation.spark.result import Made, SparkResult
from findwell.evaluation.spark.session import (
    is_connect,
    naming_errors,
    open_session,
    read_frame,
    require_pyspark,
)
from findwell.evaluation.spark.task import ROWS, SCHEMA, SHARED, TaskPlan
from findwell.evaluation.spark.worker import evaluate_part
from findwell.io.read.corpus import load_corpus
from findwell.io.read.vocabulary import TABLE_COLUMNS
from findwell.judges.find import on_server
from findwell.judges.settings import Judge
from findwell.measures import DEFAULTS, Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from findwell.evaluation.plan import Reading
    from findwell.measures.dialects import Dialect
    from findwell.relations.match import Matcher

BROADCAST_ROWS = 1_000_000  # of a gold that is sent to every executor, at most
BROADCAST_BYTES = 64 << 20
JOINS = ("auto", "broadcast", "shuffle")
KEPT = 50  # documents of each list that a sampled query remembers
ABOUT = ("question", "reference", "synthetic")  # columns of a gold that are read where present
READING_ON_SPARK = frozenset({"base_url", "ids", "missing", "skip_bad", "tokenizer"})


@takes_plan(EvaluationOptions)
def evaluate(
    run_df: DataFrame | str,
    gold_df: DataFrame | str | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    by: str | Matcher | None = None,
    dialect: str | Dialect = "findwell",
    slices: Iterable[str] | str = (),
    queries: DataFrame | str | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "run",
    run_id: str | None = None,
    rel: float | None = None,
    corpus: object = None,
    embedder: object = None,
    judge: object = None,
    bounds: bool = False,
    level: float | None = 0.95,
    cluster: str | None = None,
    bootstrap: int = 0,
    reading: Reading | None = None,
    sample: float = 0.0,
    partitions: int | None = None,
    gold_join: Literal["auto", "broadcast", "shuffle"] = "auto",
    keep_at: str | None = None,
    gateway_host: str | None = None,
    gateway_port: int = 0,
    calls_per_minute: float | None = None,
    master: str | None = None,
    batch_rows: int = ROWS,
) -> SparkResult:
    """Measure how well a run found the gold, both Spark frames, on Spark.

    Frames have one row per retrieved document (query, doc, and score or rank) or one row per query
    with lists, as everywhere; a text is a path or `table:NAME`. Without `gold_df` the records of
    the run hold both. `columns` says what columns are called where it cannot be told:
    `{"query": "qid", "gold.doc": "pid"}`. The options that `findwell.evaluate` has mean the same,
    and every value of a query is the same, bit for bit.

    `slices` are columns of the gold or of `queries`. `level` is that of the intervals, which are
    made from moments, or with `bootstrap=200` from so many samples of a Poisson bootstrap, which
    draws queries that share the value of the column `cluster` together. `sample` is the share of
    the queries, chosen by their names, whose relations are brought to the driver:
    `result.sample` is then a `findwell.Result` of them for reports and comparisons.

    `partitions` is how many parts the rows are cut into, by query (by default as Spark's setting
    `spark.sql.shuffle.partitions` says). `gold_join` sends a small gold to every executor
    (`broadcast`) or brings its rows together with those of the run (`shuffle`). `keep_at` is a
    path to which the values are written before they are summarised, so that nothing is computed
    twice if an executor is lost; otherwise Spark keeps them in memory and on local disks.

    A language model that judges is asked by the driver alone: the tasks send it their questions, at
    `gateway_host` and `gateway_port` (by default where Spark's driver is). So limits and budget of
    the judge hold for the whole job, `calls_per_minute` too, and the key stays where it is. What
    was answered is kept in the cache folder of the driver; a job that is run again asks only the
    rest.
    """
    require_pyspark()
    choose("way to join the gold", gold_join, JOINS)
    _check_shares(sample, bootstrap)
    if cluster is not None and not bootstrap:
        bootstrap = 200
    read = flat_options({"reading": reading})
    for option in read.keys() - READING_ON_SPARK:
        raise OptionError(
            f"Reading({option}=…) has no effect: Spark reads the frames",
            fix=f"leave it out; these have one: {', '.join(sorted(READING_ON_SPARK))}",
        )
    plan = Plan.of(
        measures,
        by=by,
        dialect=dialect,
        rel=rel,
        corpus=corpus,
        embedder=embedder,
        judge=judge,
        bounds=bounds,
        level=level,
        cluster=cluster,
        **read,
    )
    unlabelled = gold_df is None and plan.unlabelled
    sliced = (slices,) if isinstance(slices, str) else tuple(slices)
    frames = [each for each in (run_df, gold_df, queries) if each is not None]
    session = _session(frames, master)
    run, gold, about = (
        read_frame(session, each) if isinstance(each, str) else each
        for each in (run_df, gold_df, queries)
    )
    if run is None:
        raise OptionError("there is no run")
    if plan.is_open:
        plan = plan.over(_default_relation(run, gold, columns, name, corpus))
    texts = sample > 0 or plan.reads_texts
    named = {*sliced, *((cluster,) if cluster else ()), *ABOUT}
    taken: dict[int, sides.Side | None] = {
        sides.GOLD: None,
        sides.QUERIES: None
        if about is None
        else sides.take_queries(about, sides.mapped(columns, "queries")),
        sides.RUN: sides.take_run(run, sides.mapped(columns, "run"), texts=texts, about=unlabelled),
    }
    if not unlabelled:
        taken[sides.GOLD] = sides.take_gold(
            _require_gold(run if gold is None else gold, gold is None),
            sides.mapped(columns, "gold" if gold is not None else "run"),
            texts=texts,
            wanted=named,
        )
    _require_columns(sliced, cluster, taken)
    with ExitStack() as held:
        gateway, sent_judge = None, None
        if plan.judge is not None:
            sent_judge, _ = on_server(judge, read.get("base_url"))
            gateway = _gateway(
                sent_judge, session, held, gateway_host, gateway_port, calls_per_minute
            )
            sent_judge = sent_judge if gateway is None else gateway.settings()
        sent = _broadcast(session, taken[sides.GOLD], gold_join)
        task = TaskPlan(
            run=name,
            plan=_of_a_part(plan, texts=texts, keep=KEPT if sample else 0),
            sides={at: None if side is None else side.columns for at, side in taken.items()},
            about=tuple(sorted(named)),
            slices=sliced,
            cluster=cluster,
            judge=sent_judge,
            sample=math.floor(sample * SHARED),
            rows=batch_rows,
            gold=sent,
            corpus=_corpus(session, corpus),
            token=secrets.token_hex(8),
        )
        if sent is not None and (whole := taken[sides.GOLD]) is not None:
            taken[sides.GOLD] = sides.names_only(whole)
        with naming_errors():
            values = sides.stack(taken, partitions).mapInArrow(_work(task), SCHEMA)
            values = _kept(session, values, keep_at)
            made = Made(
                plan=replace(plan, judge=None),
                run=name,
                run_id=run_id or secrets.token_hex(8),
                slices=sliced,
                bootstrap=bootstrap,
                sampled=sample,
            )
            result = SparkResult.summarise(values, made)
        # tasks know what they asked themselves; what all of them took is known to the driver
        return result if gateway is None else replace(result, judge=gateway.about(result.judge))


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


def _check_shares(sample: float, bootstrap: int) -> None:
    if not 0 <= sample <= 1:
        raise OptionError(f"the sample is {sample}", fix="give the share of the queries, 0 to 1")
    if bootstrap < 0:
        raise OptionError(f"{bootstrap} samples were asked for", fix="ask for 200, or for 0")


def _default_relation(
    run: DataFrame,
    gold: DataFrame | None,
    columns: Mapping[str, str] | None,
    name: str,
    corpus: object,
) -> str:
    """Return what is compared where nothing was chosen; see `findwell.evaluate`."""
    mine = sides.carried_by(run, sides.mapped(columns, "run"), "run")
    if gold is None:
        theirs = sides.carried_by(run, sides.mapped(columns, "run"), "gold")
    else:
        theirs = sides.carried_by(gold, sides.mapped(columns, "gold"), "gold")
    return default_relation({name: mine}, theirs, corpus)


def _work(task: TaskPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return evaluate_part(task, batches)

    return work


def _session(frames: list[DataFrame | str], master: str | None) -> SparkSession:
    for frame in frames:
        if not isinstance(frame, str):
            if not hasattr(frame, "mapInArrow"):
                raise InputError(
                    f"a {type(frame).__name__} is no frame of Spark",
                    fix="give a DataFrame of Spark, a path or table:NAME; findwell.evaluate takes "
                    "polars and pandas",
                )
            return frame.sparkSession
    return open_session(master)


def _require_gold(frame: DataFrame, same: bool) -> DataFrame:
    from findwell.io.read.by_query import is_by_query  # noqa: PLC0415

    if same and not is_by_query(frame.columns, "gold"):
        raise InputError(
            "the run says nothing about what should be found",
            where="run",
            fix="name the gold: gold_df= (--gold PATH or table:NAME)",
        )
    return frame


def _require_columns(
    slices: tuple[str, ...], cluster: str | None, taken: Mapping[int, sides.Side | None]
) -> None:
    """Refuse a column to slice by that is nowhere."""
    known = {
        name
        for at in (sides.GOLD, sides.QUERIES)
        if (side := taken[at]) is not None
        for name in side.columns.columns
        if side.columns.kind != "document" or name not in TABLE_COLUMNS  # that is about a document
    }
    if taken[sides.GOLD] is None and (side := taken[sides.RUN]) is not None:
        known |= set(side.columns.columns)
    for name in (*slices, *((cluster,) if cluster else ())):
        choose("column about the queries", name, sorted(known), none="there are none")


def _gateway(  # noqa: PLR0917
    judge: object,
    session: SparkSession,
    held: ExitStack,
    host: str | None,
    port: int,
    calls_per_minute: float | None,
) -> ModelGateway | None:
    """Return what asks a model for all tasks; None for a judge that works in the tasks."""
    settings = Judge(judge) if isinstance(judge, str) else judge
    if isinstance(settings, Judge) and settings.asks_model:
        if host is None and not is_connect(session):
            host = session.sparkContext.getConf().get("spark.driver.host")
        return held.enter_context(
            ModelGateway(settings, host=host, port=port, calls_per_minute=calls_per_minute)
        )
    return None


def _kept(session: SparkSession, values: DataFrame, place: str | None) -> DataFrame:
    """Keep values on the executors, or at a place where nothing else stands."""
    if place is None:
        return values.persist()
    try:
        free = session.read.parquet(place).columns == values.columns  # of an earlier job
    except Exception as error:  # noqa: BLE001 - of many kinds, as anything may stand there
        free = "PATH_NOT_FOUND" in str(error)
    if not free:
        raise OptionError(
            "something else stands where values should be kept",
            where=place,
            fix="name a folder that does not exist (--keep-at, keep_at=)",
        )
    values.write.mode("overwrite").parquet(place)
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


def _corpus(session: SparkSession, corpus: object) -> Callable[[], bytes] | None:
    if corpus is None:
        return None
    if hasattr(corpus, "mapInArrow") and hasattr(corpus, "toArrow"):
        with naming_errors():
            corpus = pl.DataFrame(corpus.toArrow())
    table: Any = corpus
    return _sent(session, load_corpus(table))


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
