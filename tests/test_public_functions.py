"""What holds for the whole public API: unknown options are refused, and loops make sense."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.core.namespaces import NAMESPACES, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def _public() -> Iterator[tuple[str, Any]]:
    for namespace in NAMESPACES:
        for name in names_of(namespace):
            public = getattr(importlib.import_module(namespace), name)
            yield f"{namespace}.{name}", public
            if inspect.isclass(public):
                yield from (
                    (f"{namespace}.{name}.{each}", getattr(public, each))
                    for each in dir(public)
                    if not each.startswith("_")
                )


# classes whose objects findwell makes, or from which plugins derive: Python refuses what they lack
MADE = {
    "Comparison",
    "FindwellError",
    "Measure",
    "Result",
    "judges.JudgeCard",
    "judges.JudgeCheck",
    "judges.JudgeComparison",
    "judges.Sample",
    "judges.Teaching",
    "labels.Agreement",
    "labels.Estimates",
    "labels.LabelPool",
    "spark.SparkResult",
    "statistics.PowerAnalysis",
    "tuning.Engine",
    "tuning.Pool",
    "tuning.Tuned",
    "tuning.Tuning",
    "types.Explanation",
    "types.Finding",
    "types.GateReport",
    "types.Relation",
}


def _is_method(name: str) -> bool:
    return any(part[0].isupper() for part in name.split(".")[:-1])


def _takes_options(name: str, function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not a function, or one of Python's own
        return False
    named = any(
        each.kind is each.KEYWORD_ONLY
        or (inspect.isclass(function) and each.default is not each.empty)
        for each in parameters
    )
    any_name = any(each.kind is each.VAR_KEYWORD for each in parameters)
    own = not _is_method(name) and name.removeprefix("findwell.") not in MADE
    return any_name or (own and named)


TAKE_OPTIONS = {
    name: each for name, each in _public() if callable(each) and _takes_options(name, each)
}


def test_there_are_functions_to_look_at() -> None:
    known = "explain tuning.tune compare report monitor.Monitor.check retrievers.HttpRetriever"
    known += " types.Policy judges.LLMJudge plugins.register_aspect plugins.register_detector"
    assert {f"findwell.{name}" for name in known.split()} <= TAKE_OPTIONS.keys()
    classes = {name for name, each in _public() if inspect.isclass(each)}
    assert {f"findwell.{name}" for name in MADE} <= classes


@pytest.mark.parametrize("name", TAKE_OPTIONS)
def test_an_unknown_option_is_refused(name: str) -> None:
    function: Callable[..., Any] = TAKE_OPTIONS[name]
    given = ("rouge",) if name.endswith("find_matcher") else (None,) if _is_method(name) else ()
    with pytest.raises(OptionError) as refused:
        function(*given, zzz_not_an_option=1)
    assert "'zzz_not_an_option'" in str(refused.value)
    assert refused.value.fix


RUN, GOLD = {"q": ["a"]}, {"q": ["a"]}
MISTYPED: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (findwell.explain, (RUN, GOLD), {"dialect": "autorag"}, "dialects"),
    (findwell.tuning.tune, ([RUN, RUN], GOLD), {"engin": "rrf"}, "engine"),
    (findwell.evaluate, (RUN, GOLD), {"dialct": "autorag"}, "dialect"),
    (findwell.io.check, (RUN, GOLD), {"id": "lower"}, "ids"),
    (findwell.compare, (RUN, RUN), {"gold": GOLD, "slice": "x"}, "slices"),
    (findwell.labels.ppi, (RUN, {"q": {"a": 1}}), {"level_": None}, "level"),
    (findwell.Reading, (), {"id_frm": "x"}, "id_from"),
    (findwell.Judge, ("local",), {"vote": 3}, "votes"),
    (findwell.retrievers.Retriever, (len,), {"timout": 3}, "timeout"),
    (findwell.statistics.curve, (RUN,), {"cutofs": [1]}, "cutoffs"),
    (findwell.monitor.Monitor, (), {"stor": "x"}, "store"),
    (findwell.judges.check, ("local",), {"progres": None}, "progress"),
]


@pytest.mark.parametrize(("function", "given", "options", "meant"), MISTYPED)
def test_the_option_that_was_meant(
    function: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any], meant: str
) -> None:
    with pytest.raises(OptionError, match=f"did you mean .*{meant}"):
        function(*given, **options)


def test_a_judge_is_a_name() -> None:
    with pytest.raises(OptionError, match="not a function") as refused:
        findwell.Judge(lambda _: {}, votes=3)  # type: ignore[arg-type]
    assert "judge=function" in refused.value.fix


def test_what_is_read_by_name_is_not_read_by_number() -> None:
    """Without `__iter__` a loop asks for the items 0, 1, 2, which no such class has."""
    by_name = {
        name: each
        for name, each in _public()
        if inspect.isclass(each) and "__getitem__" in vars(each)
    }
    known = {"findwell.labels.Estimates", "findwell.Result", "findwell.Comparison"}
    assert known <= by_name.keys()
    assert [name for name, each in by_name.items() if not hasattr(each, "__iter__")] == []


def test_docstrings_name_no_files_of_the_repository() -> None:
    """Who reads `help()` has no docs/."""
    shown = {name: inspect.getdoc(each) or "" for name, each in _public()}
    assert [name for name, text in shown.items() if re.search(r"docs/[\w-]+\.md", text)] == []


def test_loops() -> None:
    run = {"q1": ["a", "b"], "q2": ["c", "d"], "q3": ["e", "f"]}
    labels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0, "d": 0}, "q3": {"e": 1, "f": 1}}
    found = findwell.labels.ppi(run, labels, "P@2")
    assert tuple(found) == found.rows
    assert [each.method for each in found] == ["labels"]
    planned = findwell.statistics.power(sd=0.3, difference=0.05)
    assert tuple(planned) == planned.plans
    with pytest.raises(TypeError, match="not iterable"):
        iter(findwell.evaluate(run, labels))  # type: ignore[call-overload]
