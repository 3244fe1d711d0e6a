"""What is made of the sums that tasks return: summary, slices, gates and tables, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError, MeasureError, OptionError
from findwell.core.findings import finding_about
from findwell.evaluation.spark.arrow import to_batches
from findwell.evaluation.spark.columns import GOLD, QUERIES, RUN, SideColumns
from findwell.evaluation.spark.result import Made, SparkResult, _checked
from findwell.evaluation.spark.summary import NOTED, Notes, SummaryPlan, Tally, summarise_batches
from findwell.evaluation.spark.task import UNMET, TaskPlan, evaluate_batches
from findwell.measures.dialects import resolve_measures
from findwell.show.spark import render
from findwell.show.tables import FORMATS
from findwell.statistics.intervals import ONE_CLUSTER
from findwell.statistics.moments import name_hashes, poisson_weights
from tests.spark.frames import hard_case, records
from tests.spark.test_tasks import plan_of, side, stacked

MEASURES = ["nDCG@10", "GMAP", "relevant", "RR"]


def result_of(made: Made, rows: list[Any], adding: SummaryPlan) -> SparkResult:
    """Return what Spark would make of the rows of tasks, in batches of its own."""
    every = pl.concat([pl.DataFrame(each) for each in rows])
    (summed,) = summarise_batches(adding, to_batches(every.rechunk()))
    tallies: dict[Any, Tally] = {}
    notes = Notes()
    for row in pl.DataFrame(summed).iter_rows(named=True):
        if row["column"] == NOTED:
            notes.add(json.loads(row["notes"]))
        else:
            tallies[row["column"], row["slice"], row["measure"]] = Tally.of(row)
    rowless: Any = None
    return SparkResult(rowless, made, tallies, _checked(notes, made), notes.facts)


def made_of(task: TaskPlan, **more: Any) -> Made:
    """Return how a result is made by such a plan."""
    return Made(plan=task.plan, run="run", run_id="monday", **more)


def planned(made: Made, **changes: Any) -> Made:
    """Return it with another plan."""
    return replace(made, plan=replace(made.plan, **changes))


@pytest.fixture(scope="module")
def both() -> tuple[SparkResult, findwell.Result]:
    """Return what Spark would, and the result of the local engine."""
    run, gold = hard_case(12)
    about = gold.select("query").unique(maintain_order=True)
    about = about.with_columns(topic=pl.col("query").str.slice(-1).replace({"3": None}))
    plan = plan_of(
        MEASURES,
        slices=("topic",),
        bounds=True,
        sides={
            GOLD: SideColumns("document", "query"),
            RUN: SideColumns("document", "query"),
            QUERIES: SideColumns("query", "query"),
        },
    )
    rows = stacked(side(gold, GOLD), side(run, RUN), side(about, QUERIES))
    statistics = tuple(measure.aggregation for measure in plan.plan.measures)
    adding = SummaryPlan(statistics, slices=("topic",), samples=50)
    made = made_of(plan, slices=("topic",), bootstrap=50)
    found = result_of(made, list(evaluate_batches(plan, rows)), adding)
    local = findwell.evaluate(run, gold, MEASURES, queries=about, bounds=True)
    return found, local


def test_summary_and_slices_are_those_of_one_machine(
    both: tuple[SparkResult, findwell.Result],
) -> None:
    found, local = both
    for mine, theirs in (
        (found.summary, local.summary),
        (
            found.by("topic").sort("slice", "measure", nulls_last=True),
            local.by("topic").sort("slice", "measure", nulls_last=True),
        ),
    ):
        for name in ("measure", "n", "undefined", "failed"):
            assert mine[name].to_list() == theirs[name].to_list()
        for name in ("value", "lower", "upper"):
            assert mine[name].to_list() == pytest.approx(theirs[name].to_list(), rel=1e-12)
    assert found["RR"] == pytest.approx(local["RR"], rel=1e-14)
    assert found.queries == local.queries.height
    limits = found.summary.filter(pl.col("measure") != "relevant")
    assert (limits["low"] < limits["value"]).all()
    assert (limits["high"] > limits["value"]).all()
    with pytest.raises(MeasureError, match="was not measured"):
        found["P@7"]
    with pytest.raises(OptionError, match="no queries were sampled"):
        _ = found.sample


def test_every_format_has_the_numbers(both: tuple[SparkResult, findwell.Result]) -> None:
    found, _ = both
    for how in FORMATS:
        for by in ([], ["topic"]):
            text = render(found, how, by=by, width=60 if how == "table" else None)
            assert "nDCG" in text, how
    said = json.loads(render(found, "json", by=["topic"]))
    assert said["run_id"] == "monday"
    assert {row["slice"] for row in said["slices"]} >= {"1", None}
    assert "SparkResult(run" in repr(found)


def test_requirements_are_decided_by_all_queries(both: tuple[SparkResult, findwell.Result]) -> None:
    found, local = both
    texts = ["RR>=0.01", "RR>=0.99", "undefined<=0", "relevant>=1", "failed<=0"]
    ours, theirs = findwell.spark.gate(found, texts), findwell.gate(local, texts)
    assert [each.outcome for each in ours.verdicts] == [each.outcome for each in theirs.verdicts]
    for text in ("RR>=baseline", "p90<=3ms"):
        with pytest.raises(OptionError):
            findwell.spark.gate(found, text)
    with pytest.raises(MeasureError):
        findwell.spark.gate(found, "P@3>=0.1")


def test_a_gate_makes_the_interval_that_a_result_was_not_to_have(
    both: tuple[SparkResult, findwell.Result],
) -> None:
    found, _ = both
    without = replace(found, made=planned(found.made, level=None))
    assert without.summary["low"].null_count() == len(MEASURES)
    ours, theirs = (findwell.spark.gate(each, "RR>=0.1").verdicts[0] for each in (without, found))
    assert ours == theirs
    assert ours.low is not None


@pytest.mark.parametrize("clusters", [1, 2, 20])
def test_one_cluster_says_nothing_about_the_spread(clusters: int) -> None:
    values = np.linspace(0.1, 0.9, 40)
    weights = poisson_weights(name_hashes(at % clusters for at in range(40)), 60)
    tally = Tally()
    tally.moments.add(values)
    tally.draw(values @ weights, weights.sum(axis=0))
    plain = tally.moments.interval(0.95, (0.0, 1.0))
    found = tally.bootstrapped(plain, clustered=True)
    assert (found.low is None) == (found.reason == ONE_CLUSTER) == (clusters == 1)
    assert (tally.sampled_variance() == 0) == (clusters == 1)


def test_what_all_parts_found_is_looked_at(both: tuple[SparkResult, findwell.Result]) -> None:
    found, _ = both
    notes = Notes()
    notes.add({"findings": [], "facts": {"documents": 5, "shared": 0}})
    with pytest.raises(AlignError, match="share no query"):
        _checked(notes, found.made)
    notes.add({"findings": [], "facts": {"shared": 1, "told": 3}})
    with pytest.raises(InputError, match="no query of this table is in the gold"):
        _checked(notes, found.made)
    unmet = [finding_about(UNMET, docs, side) for side, docs in (("run", ["a"]), ("gold", ["b"]))]
    seen = [each.as_dict() for (each,) in unmet]
    notes.add({"findings": seen, "facts": {"told_of_gold": 1}})
    assert [each.kind for each in _checked(notes, found.made)] == ["no-shared-document"]
    notes.add({"findings": [], "facts": {"queries": 10}})
    with pytest.raises(AlignError, match="share no document id: the run has 'a', the gold has 'b'"):
        _checked(notes, found.made)
    chosen = planned(found.made, chosen=True)
    assert [each.kind for each in _checked(notes, chosen)] == ["no-shared-document"]


def test_verdicts_that_failed_in_some_batches_bound_the_values_as_on_one_machine() -> None:
    given = records(3)
    frame = pl.DataFrame(given, strict=False).drop("gold", "reference", "topic")

    def judge(sample: Any) -> dict[str, Any]:
        if sample.query in ("r04", "r31"):
            raise RuntimeError("no answer")
        return {"relevance": [int("blue" in text) * 3 for text in sample.chunks]}

    measures = ["P@2", "nDCG@3"]
    plan = plan_of(
        measures,
        by="relevance",
        judge=judge,
        sides={GOLD: None, QUERIES: None, RUN: SideColumns("query", "query")},
        rows=8,
    )
    rows = list(evaluate_batches(plan, stacked(side(frame, RUN), batch=5)))
    found = result_of(made_of(plan), rows, SummaryPlan(("mean", "mean")))
    local = findwell.judges.judge(given, measures, by="relevance", judge=judge).summary
    assert found.summary["failed"].to_list() == local["failed"].to_list() == [2, 2]
    for name in ("value", "lower", "upper"):
        assert found.summary[name].to_list() == pytest.approx(local[name].to_list(), rel=1e-12)


def test_a_gold_without_a_relevant_item_is_refused_when_all_parts_were_seen() -> None:
    run, gold = hard_case(12)
    for low, level in ((gold.with_columns(grade=pl.lit(0)), 1.0), (gold, 9.0)):
        plan = plan_of(
            [measure.with_level(level) for measure in resolve_measures("RR", "findwell")]
        )
        rows = list(evaluate_batches(plan, stacked(side(low, GOLD), side(run, RUN))))
        for work in (
            lambda rows=rows, plan=plan: result_of(made_of(plan), rows, SummaryPlan(("mean",))),
            lambda low=low, plan=plan: findwell.evaluate(run, low, plan.plan.measures),
        ):
            with pytest.raises(AlignError, match="the gold has no relevant item for RR"):
                work()
