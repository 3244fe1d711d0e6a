"""What a task of Spark does, without Spark: its batches have the values of the local engine."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError
from findwell.evaluation.plan import Plan, PlanOptions
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
from findwell.evaluation.spark.result import BatchNotes, SparkResult
from findwell.evaluation.spark.session import failure_of
from findwell.evaluation.spark.task import TaskPlan, evaluate_batches
from findwell.evaluation.spark.value_rows import NOTES, VALUES, to_batches, values_of
from findwell.evaluation.spark.worker import error_of, evaluate_part
from findwell.measures.dialects import resolve_measures
from tests.members import quick
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


def every(found: list[pa.RecordBatch]) -> pl.DataFrame:
    """Return the rows of all batches that tasks returned."""
    return pl.concat([pl.DataFrame(batch) for batch in found])


def values(task: TaskPlan, found: list[pa.RecordBatch]) -> pl.DataFrame:
    """Return one row per query and measure."""
    return values_of(every(found), task.run, task.plan.measures).frame()


@pytest.mark.parametrize("dialect", quick(DIALECTS, "findwell", "trec_eval"))
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
        labels=("group",),
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
    plan = plan_of(["RR"], about=("lang", "reference"), labels=("lang",), skip_bad=True)
    rows = stacked(side(gold.reverse() if reverse else gold, GOLD), side(run, RUN))
    found = every(list(evaluate_batches(plan, rows)))
    labels = found.filter(pl.col("kind") == VALUES).select("query", "labels").sort("query")
    assert labels["labels"].to_list() == [["de"], [None]]


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
        labels=("topic",),
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


def _notes(found: list[pa.RecordBatch]) -> BatchNotes:
    notes = BatchNotes()
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


@pytest.mark.parametrize("clusters", [0, 7])
def test_summaries_do_not_depend_on_how_the_queries_are_cut(clusters: int) -> None:
    """Means and intervals are those of one machine that reads the queries in order of name."""
    run, gold = hard_case(5, queries=80)
    gold = gold.sort("query", maintain_order=True)
    about = gold.select("query").unique(maintain_order=True)
    about = about.with_columns(part=pl.col("query").hash(1) % max(clusters, 1))
    options: dict[str, Any] = {"cluster": "part"} if clusters else {}
    measures = ["nDCG@10", "GMAP", "relevant", "RR"]
    plan = plan_of(
        measures,
        sides={number: SideColumns("document", "query") for number in (GOLD, RUN)}
        | {QUERIES: SideColumns("query", "query")},
        labels=("part",),
        rows=25,
    )
    rows = stacked(side(gold, GOLD), side(run, RUN), side(about, QUERIES))
    batches = list(evaluate_batches(plan, rows))
    local = findwell.evaluate(run, gold, measures, queries=about, **options)
    made = replace(plan.plan, cluster=options.get("cluster"))
    for seed in range(3):
        shuffled = random.Random(seed).sample(batches, len(batches))
        found = SparkResult.of(every(shuffled), made, plan, task_rows=None)
        assert found.summary.equals(local.summary)
        assert found.values == local.values
        assert found.interval == local.interval


def test_errors_of_tasks_come_back_as_they_were() -> None:
    run, gold = hard_case(1)
    broken = run.with_columns(doc=pl.lit(None, pl.String))
    with pytest.raises(RuntimeError) as caught:
        list(evaluate_part(plan_of(["RR"]), stacked(side(broken, RUN), side(gold, GOLD))))
    found = failure_of(f"org.apache.spark.SparkException: Job aborted\n{caught.value}")
    assert isinstance(found, InputError)
    assert found.where.startswith("run run, query 'q")
    assert str(error_of(str(caught.value))) == str(found)


def test_a_failed_job_says_what_to_do() -> None:
    said = "Traceback\nModuleNotFoundError: No module named 'findwell.spark'\n"
    assert "the executors cannot import findwell" in str(failure_of(said))
    assert "memoryOverhead" in str(failure_of("Job aborted: worker crashed"))
    large = "Total size of serialized results of 9 tasks is bigger than spark.driver.maxResultSize"
    assert "fix: raise spark.driver.maxResultSize" in str(failure_of(large))


def test_columns_are_named_for_one_side_or_both() -> None:
    names = {"query": "qid", "gold.doc": "pid", "run.doc": "chunk"}
    assert mapped(names, "gold") == {"query": "qid", "doc": "pid"}
    assert mapped(names, "run") == {"query": "qid", "doc": "chunk"}
    with pytest.raises(findwell.FindwellError, match="did you mean query"):
        mapped({"qury": "x"}, "run")


assert set(STRICT) <= set(DIALECTS)


def test_objects_with_and_without_ids_are_refused_as_on_one_machine() -> None:
    """Also where each batch has only one of the two kinds; not where the gold names hashes."""
    given: list[dict[str, Any]] = [
        {"query": "p", "retrieved": [{"id": "d1", "page_content": "Tea."}], "gold": ["d1"]},
        {"query": "q", "retrieved": [{"id": None, "page_content": "Ink."}], "gold": ["d2"]},
    ]
    hashed = findwell.io.load_run({"q": [{"page_content": "Ink."}]}).collect().rows["doc"][0]
    sides = {number: SideColumns("query", "query") for number in (GOLD, RUN)} | {QUERIES: None}
    for named, by in ((["d2"], None), (["d2"], "ids"), ([hashed], None)):
        given[1]["gold"] = named
        frame = pl.DataFrame(given)
        plan = plan_of(["recall"], by=by, sides=sides, rows=1)
        rows = stacked(side(frame.drop("gold"), RUN), side(frame.drop("retrieved"), GOLD), batch=1)
        found = every(list(evaluate_batches(plan, rows)))
        if named == ["d2"] and by is None:
            refused = pytest.raises(AlignError, match="1 retrieved object has no id, where others")
            with refused:
                SparkResult.of(found, plan.plan, plan, task_rows=None)
            with refused:
                findwell.evaluate(given, measures="recall")
        else:
            local = findwell.evaluate(given, measures="recall", by=by)
            made = SparkResult.of(found, plan.plan, plan, task_rows=None)
            assert made["recall"] == local["recall"] == (0.5 if by else 1.0)
