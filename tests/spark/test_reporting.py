"""What is made of the values that tasks return: as of any other result, without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError, MeasureError, OptionError
from findwell.core.findings import finding_about
from findwell.evaluation.plan import Plan
from findwell.evaluation.spark.columns import GOLD, QUERIES, RUN, SideColumns
from findwell.evaluation.spark.result import BatchNotes, SparkResult
from findwell.evaluation.spark.task import UNMET_ID, TaskPlan, evaluate_batches
from findwell.measures.dialects import resolve_measures
from findwell.show import render
from findwell.show.document import document_of
from findwell.show.tables import FORMATS
from tests.spark.frames import assert_same, hard_case, records
from tests.spark.test_tasks import every, plan_of, side, stacked

MEASURES = ["nDCG@10", "GMAP", "relevant", "RR"]


def result_of(task: TaskPlan, rows: Any, **changes: Any) -> SparkResult:
    """Return what Spark would make of the rows of tasks."""
    found = every(list(evaluate_batches(task, rows)))
    plan = replace(task.plan, **changes)
    return SparkResult.of(found, plan, task, task_rows=None, run_id="monday")


def evaluated(run: pl.DataFrame, gold: pl.DataFrame) -> tuple[SparkResult, findwell.Result]:
    """Return what Spark would, and the result of the local engine."""
    gold = gold.sort("query", maintain_order=True)
    about = gold.select("query").unique(maintain_order=True)
    about = about.with_columns(topic=pl.col("query").str.slice(-1).replace({"3": None}))
    plan = plan_of(
        MEASURES,
        labels=("topic",),
        bounds=True,
        sides={
            GOLD: SideColumns("document", "query"),
            RUN: SideColumns("document", "query"),
            QUERIES: SideColumns("query", "query"),
        },
    )
    rows = stacked(side(gold, GOLD), side(run, RUN), side(about, QUERIES))
    local = findwell.evaluate(run, gold, MEASURES, queries=about, bounds=True)
    return result_of(plan, rows), local


@pytest.fixture(scope="module")
def both() -> tuple[SparkResult, findwell.Result]:
    return evaluated(*hard_case(12))


def test_summary_slices_and_values_are_those_of_one_machine(
    both: tuple[SparkResult, findwell.Result],
) -> None:
    found, local = both
    assert found.summary.equals(local.summary)
    assert found.by("topic").equals(local.by("topic"))
    assert found["RR"] == local["RR"]
    assert found.n == local.n
    assert found.metrics() == local.metrics()
    assert_same(found.per_query, local)
    assert found.per_query.equals(local.per_query)
    some = found.where("topic", "1")
    assert some.summary.equals(local.where("topic", "1").summary)
    assert found.score(["RR"]).summary.equals(local.score(["RR"]).summary)
    with pytest.raises(MeasureError, match="P@7 was not measured"):
        found["P@7"]
    with pytest.raises(MeasureError, match="P@7 was not measured"):
        _ = found.score("P@7").summary
    with pytest.raises(OptionError, match="no queries were sampled"):
        _ = found.sample
    with pytest.raises(OptionError, match="the retrieved lists, which stayed in Spark"):
        found.relation("run")


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("by", [[], ["topic"]])
def test_every_format_is_that_of_one_machine(
    both: tuple[SparkResult, findwell.Result], how: str, by: list[str]
) -> None:
    found, local = both
    if how == "json":
        said, wanted = (json.loads(json.dumps(document_of(each, by=by).data())) for each in both)
        own = {name: said.pop(name) for name in ("run_id", "queries", "documents")}
        assert own == {"run_id": "monday", "queries": local.n, "documents": found.documents}
        said.pop("findings")
        wanted.pop("findings")
        assert said == wanted
        return
    for per_query in (False, True):
        shown = [render(each, how, by=by, per_query=per_query, width=80) for each in both]
        assert shown[0] == shown[1]
    plain = [replace(each, findings=()) for each in both]  # they name other examples
    assert repr(plain[0]) == repr(plain[1])
    assert plain[0]._repr_html_() == plain[1]._repr_html_()


def test_gates_and_comparisons_are_those_of_one_machine(
    both: tuple[SparkResult, findwell.Result],
) -> None:
    run, gold = hard_case(12)
    others = evaluated(run.with_columns(score=-pl.col("score")), gold)
    texts = ["RR>=0.01", "RR>=0.99", "undefined<=0", "relevant>=1", "failed<=0"]
    texts += ["nDCG@10>=baseline-0.02", "GMAP>=baseline*0.9-0.02"]
    ours, theirs = (
        findwell.gate(each, texts, baseline=before)
        for each, before in zip(both, others, strict=True)
    )
    assert ours.verdicts == theirs.verdicts
    compared = [
        findwell.compare({"old": before, "new": each}, slices="topic")
        for each, before in zip(both, others, strict=True)
    ]
    for name in ("comparisons", "slices", "values", "moved"):
        assert getattr(compared[0], name).equals(getattr(compared[1], name)), name
    assert compared[0].verdicts == compared[1].verdicts
    mixed = findwell.compare({"old": others[1], "new": both[0]})  # one of each engine
    assert mixed.comparisons.equals(compared[1].comparisons)
    with pytest.raises(MeasureError):
        findwell.gate(both[0], "P@3>=0.1")
    without = both[0].with_options(level=None)
    assert without.summary["low"].null_count() == len(MEASURES)
    (verdict,) = findwell.gate(without, "RR>=0.1").verdicts
    assert verdict.low is not None


def test_what_all_parts_found_is_looked_at() -> None:
    plan = Plan.of("RR")

    def notes(*found: Any, highest: float | None = 1.0, **counts: int) -> BatchNotes:
        said = BatchNotes()
        findings = [asdict(each) for listed in found for each in listed]
        said.add({"findings": findings, "counts": counts, "highest": highest})
        said.add({"findings": [], "counts": {}})  # another batch
        return said

    extra = finding_about("extra-query", ["Q1"], "", run="run")
    missing = finding_about("missing-query", ["q1"], "", run="run")
    with pytest.raises(
        AlignError, match="share no query: the run has 'Q1', the gold has 'q1'"
    ) as e:
        notes(extra, missing, documents=5).check(plan, "run")
    assert "upper and lower case (then at least 1 would match)" in str(e.value)
    unknown = finding_about(UNMET_ID, ["z"], "queries")
    with pytest.raises(InputError, match="no query of this table is in the gold: it has 'z'"):
        notes(unknown, documents=5, shared=1).check(plan, "run")
    with pytest.raises(AlignError, match="no relevant item for RR: the highest grade is 0"):
        notes(highest=0.0, documents=5, shared=1).check(plan, "run")
    with pytest.raises(AlignError, match="1 query of the gold is missing, for example 'q1'"):
        notes(missing, documents=5, shared=1).check(Plan.of("RR", missing="error"), "run")
    ids = [finding_about(UNMET_ID, docs, side)[0] for side, docs in (("run", "a"), ("gold", "b"))]
    counts = {"documents": 5, "shared": 1, "described": 1}
    found = notes(ids, unknown, **counts).check(plan, "run")
    assert [each.kind for each in found] == ["no-shared-document"]
    with pytest.raises(AlignError, match="share no document id: the run has 'a', the gold has 'b'"):
        notes(ids, **counts, queries=10).check(plan, "run")
    found = notes(ids, **counts, queries=10).check(Plan.of("RR", by="ids"), "run")
    assert [each.kind for each in found] == ["no-shared-document"]


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
    found = result_of(plan, stacked(side(frame, RUN), batch=5))
    local = findwell.judges.judge(given, measures, by="relevance", judge=judge)
    assert found.summary["failed"].to_list() == [2, 2]
    assert found.summary.equals(local.summary)
    assert found.per_query.equals(local.per_query)


def test_a_gold_without_a_relevant_item_is_refused_when_all_parts_were_seen() -> None:
    run, gold = hard_case(12)
    for low, level in ((gold.with_columns(grade=pl.lit(0)), 1.0), (gold, 9.0)):
        plan = plan_of(
            [measure.with_level(level) for measure in resolve_measures("RR", "findwell")]
        )
        with pytest.raises(AlignError, match="the gold has no relevant item for RR") as ours:
            result_of(plan, stacked(side(low, GOLD), side(run, RUN)))
        with pytest.raises(AlignError) as theirs:
            findwell.evaluate(run, low, plan.plan.measures)
        assert str(ours.value) == str(theirs.value)
