"""The options of `evaluate`, and the functions that hand them on."""

from __future__ import annotations

import inspect

import findwell
from findwell.evaluation.plan import EvaluationOptions


def test_the_options_that_are_handed_on_are_those_of_evaluate() -> None:
    own = set(inspect.signature(findwell.evaluate).parameters) - {"run", "gold", "measures"}
    assert EvaluationOptions.__optional_keys__ == own


def test_check_takes_any_of_them() -> None:
    run, gold = {"q1": ["a"]}, {"q1": ["a"], "q2": ["b"]}
    (found,) = findwell.io.check(run, gold, dialect="course", rel=1)
    assert found.kind == "missing-query"
