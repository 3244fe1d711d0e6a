"""What a task of Spark does, without Spark: its batches have the values of the local engine."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.evaluation.plan import Plan, PlanOptions
from findwell.evaluation.spark.arrow import to_batches
from findwell.evaluation.spark.columns import (
    GOLD,
    POSITION,
    QUERIES,
    QUERY,
    RUN,
    SIDE,
    SideColumns,
    mapped,
)
from findwell.evaluation.spark.comparing import _Paired
from findwell.evaluation.spark.session import failure_of
from findwell.evaluation.spark.summary import (
    ALL,
    Notes,
    SummaryPlan,
    Tally,
    merge_batches,
    summarise_batches,
)
from findwell.evaluation.spark.task import NOTES, VALUES, TaskPlan, evaluate_batches
from findwell.evaluation.spark.worker import error_of, evaluate_part
from findwell.measures.dialects import resolve_measures
from findwell.statistics.values import from_scale
from tests.spark.frames import EVERY, STRICT, assert_same, hard_case, records

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

DIALECTS = list(findwell.plugins.known_dialects())


def side(rows: pl.DataFrame, number: int, key: str = "query") -> pl.DataFrame:
    """Return rows as a side of the stacked frame."""
    rest = [name for name in rows.columns if name != key]
    return rows.select(
        pl.col(key).cast(pl.String).alias(QUERY),
        pl.lit(number, pl.Int8).alias(SIDE),
        pl.int_range(pl.len()).alias(POSITION),
        pl.struct(rest).alias({GOLD: "gold", RUN: "run", QUERIES: "queries"}[number]),
    )


def stacked(*sides: pl.DataFrame, batch: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Return all sides, sorted as Spark sorts them, in batches that cut queries."""
    rows = pl.concat(sides, how="diagonal").sort(QUERY, SIDE, POSITION)
    for part in rows.iter_slices(batch):
        yield from to_batches(part)


def plan_of(measures: Any, dialect: str = "findwell", **more: Any) -> TaskPlan:
    """Return what a task is sent; `more` are options of an evaluation, or fields of it."""
    options = {name: more.pop(name) for name in PlanOptions.__optional_keys__ & more.keys()}
    judge = options.get("judge")
    plan = Plan.of(resolve_measures(measures, dialect), dialect=dialect, **options)
    chosen: dict[str, Any] = {
        "run": "run",
        "plan": replace(plan, judge=None),
        "judge": judge,
        "sides": {
            GOLD: SideColumns("document", "query"),
            RUN: SideColumns("document", "query"),
            QUERIES: None,
        },
    }
    return TaskPlan(**chosen | more)


def values(task: TaskPlan, found: list[pa.RecordBatch]) -> pl.DataFrame:
    """Return one row per query and measure."""
    rows = pl.concat([pl.DataFrame(batch) for batch in found]).filter(pl.col("kind") == VALUES)
    names = [str(measure) for measure in task.plan.measures]
    none = pl.lit([None] * len(names), pl.List(pl.String))
    return (
        rows.select(
            "query",
            measure=pl.lit(names),
            value="values",
            reason=pl.col("reasons").fill_null(none),
        )
        .explode("measure", "value", "reason")
        .select("query", "measure", "value", "reason")
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_measure_of_every_dialect_bit_for_bit(dialect: str) -> None:
    run, gold = hard_case(7, dialect)
    plan = plan_of(EVERY, dialect, rows=50)
    found = list(evaluate_batches(plan, stacked(side(gold, GOLD), side(run, RUN), batch=9)))
    local = findwell.evaluate(run, gold, resolve_measures(EVERY, dialect), dialect=dialect)
    assert_same(values(plan, found), local)
    assert len(found) > 4  # and not all in one


def with_whole_gold(
    run: pl.DataFrame, gold: pl.DataFrame, measures: Any, **more: Any
) -> tuple[TaskPlan, list[pa.RecordBatch]]:
    """Evaluate with a gold that every task has."""
    packed = side(gold, GOLD).rename({"gold": "what"}).drop(SIDE)
    file = BytesIO()
    packed.write_ipc(file)
    plan = plan_of(measures, rows=40, gold=file.getvalue, **more)
    names = side(gold, GOLD).select(QUERY, SIDE, POSITION).unique(QUERY)
    return plan, list(evaluate_batches(plan, stacked(names, side(run, RUN), batch=11)))


def test_a_gold_that_every_task_has_gives_the_same() -> None:
    run, gold = hard_case(8)
    plan, found = with_whole_gold(run, gold, EVERY, token="here")
    assert_same(values(plan, found), findwell.evaluate(run, gold, EVERY))


def test_a_gold_that_every_task_has_loses_no_row_without_a_query() -> None:
    run, gold = hard_case(8)
    broken = gold.with_columns(query=pl.col("query").replace({"q7": None}))
    with pytest.raises(InputError, match="gold, query None: the query is missing"):
        with_whole_gold(run, broken, ["RR"], token="broken")


def test_a_column_about_queries_takes_none_from_the_gold() -> None:
    """A table of queries may call a column as the gold does its alternatives."""
    run, gold = hard_case(8)
    about = gold.select("query").unique(maintain_order=True).with_columns(group=pl.lit("x"))
    sides = {number: SideColumns("document", "query") for number in (GOLD, RUN)}
    plan = plan_of(
        ["recall@5"],
        sides=sides | {QUERIES: SideColumns("query", "query")},
        about=("group",),
        slices=("group",),
    )
    rows = stacked(side(gold, GOLD), side(run, RUN), side(about, QUERIES))
    assert_same(
        values(plan, list(evaluate_batches(plan, rows))), findwell.evaluate(run, gold, "recall@5")
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_labels_of_a_query_do_not_depend_on_the_order_of_its_rows(*, reverse: bool) -> None:
    gold = pl.DataFrame(
        {
            "query": ["a", "a", "a", "b", None],
            "doc": ["1", "2", "3", "1", "1"],
            "lang": [None, "en", "de", None, "fr"],
            "reference": [["x"], None, None, None, None],
        }
    )
    run = pl.DataFrame({"query": ["a", "b"], "doc": ["1", "1"], "score": [1.0, 1.0]})
    plan = plan_of(["RR"], about=("lang", "reference"), slices=("lang",), skip_bad=True)
    rows = stacked(side(gold.reverse() if reverse else gold, GOLD), side(run, RUN))
    found = pl.concat([pl.DataFrame(batch) for batch in evaluate_batches(plan, rows)])
    told = found.filter(pl.col("kind") == VALUES).select("query", "slices").sort("query")
    assert told["slices"].to_list() == [["de"], [None]]


@pytest.mark.parametrize(
    ("by", "measures"),
    [
        ("ids", ["recall@2", "AP", "nDCG@3", "recall@8tokens", "context_cost", "redundancy"]),
        ("rouge", ["recall@2", "P@3", "IoU"]),
        ("rouge-sentence", ["recall@2", "P@3"]),
        ("exact", ["recall@2", "P@3", "AP/ids"]),
        ("relevance", ["P@2", "nDCG@3"]),
        ("claims", ["recall@2", "recall@4"]),
    ],
)
def test_records_with_lists_texts_and_judges(by: str, measures: list[str]) -> None:
    given = records(3)
    frame = pl.DataFrame(given, strict=False)
    plan = plan_of(
        measures,
        by=by,
        judge="local:text" if by in ("relevance", "claims") else None,
        sides={
            GOLD: SideColumns("query", "query"),
            RUN: SideColumns("query", "query"),
            QUERIES: None,
        },
        rows=8,
        slices=("topic",),
    )
    run = side(frame.drop("gold", "topic", "reference"), RUN)
    gold = side(frame.drop("retrieved"), GOLD)
    found = list(evaluate_batches(plan, stacked(run, gold, batch=5)))
    local = findwell.evaluate(given, measures=measures, by=by, judge="local:text")
    assert_same(values(plan, found), local)


def test_bad_rows_are_named_by_their_query_or_left_out() -> None:
    run, gold = hard_case(9)
    broken = pl.concat(
        [run, pl.DataFrame({"query": ["q1", "q2"], "doc": [None, "d1"], "score": [1.0, None]})],
        how="vertical_relaxed",
    )
    rows = (side(broken, RUN), side(gold, GOLD))
    with pytest.raises(InputError, match="run run, query 'q1': the doc is missing"):
        list(evaluate_batches(plan_of(["RR"]), stacked(*rows)))
    plan = plan_of(["RR"], skip_bad=True)
    found = list(evaluate_batches(plan, stacked(*rows)))
    assert_same(values(plan, found), findwell.evaluate(run, gold, ["RR"]))
    noted = _notes(found)
    (skipped,) = [each for each in noted.findings if each.kind == "skipped-record"]
    assert skipped.count == 2


def _notes(found: list[pa.RecordBatch]) -> Notes:
    notes = Notes()
    for batch in found:
        frame = pl.DataFrame(batch)
        for data in frame.filter(frame["kind"] == NOTES)["data"]:
            notes.add(json.loads(data))
    return notes


def test_findings_are_counted_over_all_batches() -> None:
    run, gold = hard_case(4)
    found = list(
        evaluate_batches(plan_of(["AP"], rows=30), stacked(side(gold, GOLD), side(run, RUN)))
    )
    local = findwell.io.check(run, gold)
    ours = {each.kind: each.count for each in _notes(found).findings}
    theirs = {each.kind: each.count for each in local if each.kind != "unsorted"}
    assert {kind: ours[kind] for kind in theirs} == theirs


@pytest.mark.parametrize("samples", [0, 40])
def test_summaries_do_not_depend_on_how_the_queries_are_cut(samples: int) -> None:
    """However partitions and batches lie, every sum is the same to the last bit."""
    run, gold = hard_case(5, queries=80)
    measures = ["nDCG@10", "GMAP", "relevant", "RR"]
    plan = plan_of(measures, rows=25)
    batches = list(evaluate_batches(plan, stacked(side(gold, GOLD), side(run, RUN))))
    adding = SummaryPlan(("mean", "geometric", "sum", "mean"), samples=samples)

    def merged(parts: list[list[pa.RecordBatch]]) -> dict[Any, Tally]:
        summed = [batch for part in parts for batch in summarise_batches(adding, part)]
        (rows,) = [pl.DataFrame(batch) for batch in merge_batches(adding, summed)]
        return {
            row["measure"]: Tally.of(row)
            for row in rows.iter_rows(named=True)
            if row["column"] == ALL
        }

    one = merged([batches])
    many = merged([[batch] for batch in reversed(batches)])
    local = findwell.evaluate(run, gold, measures)
    for at, name in enumerate(measures):
        mine, other = one[at].moments, many[at].moments
        assert (mine.n, [each.value for each in mine.sums]) == (
            other.n,
            [each.value for each in other.sums],
        )
        value = from_scale(mine.mean, adding.statistics[at], mine.n)
        assert value == pytest.approx(local[name], rel=1e-14)
        limits = one[at].limits(0.95)
        assert (limits is None) == (samples == 0)
        if limits is not None:
            assert limits == pytest.approx(many[at].limits(0.95), rel=1e-12)


def test_errors_of_tasks_come_back_as_they_were() -> None:
    run, gold = hard_case(1)
    broken = run.with_columns(doc=pl.lit(None, pl.String))
    with pytest.raises(RuntimeError) as caught:
        list(evaluate_part(plan_of(["RR"]), stacked(side(broken, RUN), side(gold, GOLD))))
    found = failure_of(f"org.apache.spark.SparkException: Job aborted\n{caught.value}")
    assert isinstance(found, InputError)
    assert found.where.startswith("run run, query 'q")
    assert str(error_of(str(caught.value))) == str(found)


def test_executors_without_findwell_are_told_what_to_do() -> None:
    said = "Traceback\nModuleNotFoundError: No module named 'findwell.spark'\n"
    assert "the executors cannot import findwell" in str(failure_of(said))
    assert "memoryOverhead" in str(failure_of("Job aborted: worker crashed"))


def test_columns_are_named_for_one_side_or_both() -> None:
    names = {"query": "qid", "gold.doc": "pid", "run.doc": "chunk"}
    assert mapped(names, "gold") == {"query": "qid", "doc": "pid"}
    assert mapped(names, "run") == {"query": "qid", "doc": "chunk"}
    with pytest.raises(findwell.FindwellError, match="did you mean query"):
        mapped({"qury": "x"}, "run")


assert set(STRICT) <= set(DIALECTS)


@pytest.mark.parametrize("seed", range(40))
def test_verdict_interval_and_p_of_a_comparison_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 5, 10, 40, 300]))
    moved = np.round(rng.normal(0.02, 0.1, size) * (rng.random(size) < rng.choice([0.1, 1.0])), 3)
    sides = [np.zeros(size), moved]
    change, tested, before, after = (Tally() for _ in range(4))
    for tally, values in zip((change, tested, before, after), [moved, moved, *sides], strict=True):
        tally.moments.add(values)
    won, lost = int((moved > 0).sum()), int((moved < 0).sum())
    found = _Paired("mean", change, tested, before, after, 1.0, won, lost, unpaired=0)
    assert found.p is not None
    for level in (0.5, 0.8, 0.95):
        verdict = found.verdict(level)
        span = verdict.difference
        assert span.low is not None
        assert span.high is not None
        outside = not span.low <= 0 <= span.high
        assert outside == verdict.is_clear == (found.p <= 1 - level + 1e-12)
        assert (verdict.word == "same") == (not won and not lost)
    assert found.p >= min(1.0, 2 / 2 ** (won + lost))
