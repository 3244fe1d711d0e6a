"""The options of `evaluate`, and the functions that hand them on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.evaluation.plan import EvaluationOptions, Plan, PlanOptions, flat_options, grouped

RUN, GOLD = {"q1": ["a"]}, {"q1": ["a"], "q2": ["b"]}


def test_the_options_that_are_handed_on_are_those_of_evaluate() -> None:
    own = set(inspect.signature(findwell.evaluate).parameters) - {"run", "gold", "measures"}
    assert EvaluationOptions.__optional_keys__ == own
    assert len(own) <= 12


def test_a_plan_takes_those_of_a_reading_by_themselves() -> None:
    named = {each.name for each in fields(findwell.Reading)}
    assert PlanOptions.__optional_keys__ == EvaluationOptions.__optional_keys__ | named
    one = Plan.of("RR", reading=findwell.Reading(ids="lower", keep=3, skip_bad=True))
    two = Plan.of("RR", ids="lower", keep=3, skip_bad=True)
    assert vars(one) == vars(two)


def test_options_in_groups_and_flat() -> None:
    flat = {"by": "ids", "keep": 0, "missing": "skip", "base_url": "http://h/v1"}
    assert flat_options(grouped(flat)) == flat
    assert grouped({"by": "ids"}) == {"by": "ids"}


def test_check_takes_any_of_them() -> None:
    (found,) = findwell.io.check(RUN, GOLD, dialect="course", rel=1)
    assert found.kind == "missing-query"


TAKE_READING: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (findwell.evaluate, (RUN, GOLD)),
    (findwell.compare, (RUN, RUN)),
    (findwell.explain, (RUN, GOLD)),
    (findwell.report, (RUN,)),
    (findwell.io.check, (RUN, GOLD)),
    (findwell.judges.judge, (RUN,)),
    (findwell.labels.ppi, (RUN, GOLD)),
    (findwell.spark.evaluate, (RUN, GOLD)),
    (findwell.statistics.power, (RUN, RUN)),
    (findwell.tuning.tune, ([RUN, RUN], GOLD)),
]


@pytest.mark.parametrize(("function", "given"), TAKE_READING)
@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("skip_bad", "did you mean Reading(skip_bad=…)?"),
        ("skip_bads", "did you mean Reading(skip_bad=…)?"),
        ("base_url", "did you mean Judge(base_url=…) or Reading(base_url=…)?"),
        ("max_cost", "did you mean Judge(max_cost=…)?"),
    ],
)
def test_an_option_of_a_reading_or_a_judge_is_suggested(
    function: Callable[..., Any], given: tuple[Any, ...], option: str, meant: str
) -> None:
    with pytest.raises(OptionError, match=f"has no option '{option}'") as refused:
        function(*given, **{option: True})
    assert refused.value.fix == meant


def test_a_reading_is_one() -> None:
    with pytest.raises(OptionError, match="reading is of type dict"):
        findwell.evaluate(RUN, GOLD, reading={"keep": 3})  # type: ignore[arg-type]
