"""A plan makes every choice of an evaluation before anything is read."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError, OptionError
from findwell.evaluation.evaluate import execute
from findwell.evaluation.plan import (
    InputReading,
    Plan,
    PlanOptions,
    grouped,
)
from findwell.io.read import Kind, each_input, kind_of
from findwell.io.read.format import Source

if TYPE_CHECKING:
    from collections.abc import Callable

RUN, GOLD = {"q1": ["a", "b"]}, {"q1": ["b"]}
NOWHERE = "there/is/no/such.file"


def test_every_option_of_an_evaluation_is_a_choice_of_the_plan() -> None:
    made_of = {
        "rel",
        "missing",
        "progress",
        "reading",
    }  # part of others
    chosen = {each.name for kind in (Plan, InputReading) for each in fields(kind)}
    assert PlanOptions.__optional_keys__ - made_of <= chosen


def test_a_plan_does_not_change() -> None:
    plan = Plan.of("P@2")
    with pytest.raises(FrozenInstanceError):
        plan.level = 0.5  # type: ignore[misc]


def test_a_plan_serves_several_evaluations() -> None:
    plan = Plan.of(["P@2", "RR"], missing="zero")
    for run in (RUN, {"q1": ["b"]}):
        assert execute(plan, run, GOLD).values == findwell.evaluate(run, GOLD, ["P@2", "RR"]).values


WRONG: list[dict[str, Any]] = [
    {"measures": "ndgc"},
    {"by": "roug"},
    {"by": "relevance", "judge": "locl"},
    {"by": "sufficiency"},
    {"missing": "zeros"},
]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        *((each, wrong) for each in (findwell.evaluate, findwell.explain) for wrong in WRONG),
        (findwell.evaluate, {"dialect": "trec_evl"}),
        (findwell.evaluate, {"level": 2}),
        (findwell.explain, {"dialects": "trec_evl"}),
    ],
)
def test_a_wrong_choice_is_refused_before_anything_is_read(
    function: Callable[..., Any], options: dict[str, Any]
) -> None:
    with pytest.raises(FindwellError) as refused:
        function(NOWHERE, NOWHERE, **grouped(options))
    assert NOWHERE not in str(refused.value)


@pytest.mark.parametrize(
    ("by", "measures", "relations", "is_open"),
    [
        (None, "P@2", ["ids"], True),
        (None, "P@2/rouge", ["rouge"], False),
        ("ids", "P@2", ["ids"], False),
        ("rouge", ["P@2", "RR/exact"], ["rouge", "exact"], False),
        ("rouge", ["P@2", "RR/rouge"], ["rouge"], False),
    ],
)
def test_the_relations_of_a_plan(
    by: str | None, measures: Any, relations: list[str], is_open: bool
) -> None:
    plan = Plan.of(measures, by=by)
    assert ([*plan.matchers], plan.is_open, plan.chosen) == (relations, is_open, by is not None)
    assert [*plan.over("spans").matchers] == (["spans"] if is_open else relations)


RESULT = findwell.evaluate(RUN, GOLD, "P@2")
GIVEN: list[tuple[object, Kind, int]] = [
    ("run.trec", Kind.PATH, 1),
    (Path("run.trec"), Kind.PATH, 1),
    (["run.trec", Path("other.trec")], Kind.LISTED, 2),
    ([findwell.io.load_run(RUN)], Kind.LISTED, 1),
    ({"old": "run.trec", "new": RUN}, Kind.NAMED, 2),
    ({"old": RUN, "new": RUN}, Kind.NAMED, 2),
    ({"old": RUN, "new": lambda _: ["a"]}, Kind.NAMED, 2),
    ({"old": RESULT}, Kind.NAMED, 1),
    (RESULT, Kind.RESULT, 1),
    (lambda _: ["a"], Kind.RETRIEVER, 1),
    (findwell.retrievers.Retriever(lambda _: ["a"]), Kind.RETRIEVER, 1),
    (iter([{"query": "q1", "retrieved": ["a"]}]), Kind.ITERATOR, 1),
    (RUN, Kind.BY_QUERY, 1),
    ({}, Kind.BY_QUERY, 1),
    ({"q1": {"a": 1.0}}, Kind.BY_QUERY, 1),
    ([{"query": "q1", "retrieved": ["a"]}], Kind.RECORDS, 1),
    ([], Kind.RECORDS, 1),
    (pl.DataFrame({"query": ["q1"], "doc": ["a"]}), Kind.TABLE, 1),
    (pl.LazyFrame({"query": ["q1"], "doc": ["a"]}), Kind.TABLE, 1),
    (findwell.io.load_run(RUN), Kind.RUN, 1),
    (findwell.io.load_gold(GOLD), Kind.GOLD, 1),
    (Source.of(__file__), Kind.SOURCE, 1),
    (b"run.trec", Kind.OTHER, 1),
    (5, Kind.OTHER, 1),
]


@pytest.mark.parametrize(("data", "kind", "count"), GIVEN)
def test_what_was_given(data: object, kind: Kind, count: int) -> None:
    assert kind_of(data) is kind
    assert len(each_input(data)) == count


def test_a_judged_measure_needs_a_judge() -> None:
    with pytest.raises(OptionError, match="RR/relevance needs a judge, and none was named") as told:
        Plan.of(["P@2", "RR/relevance"])
    assert all(
        each in told.value.fix for each in ('"local"', '"openai:MODEL"', "function", "Judge(")
    )
    assert Plan.of("P@2").judge is None
    with pytest.raises(OptionError, match="no judge was named"):
        findwell.judges.card([{"question": "Why?", "chunk": "So.", "label": 1}])
