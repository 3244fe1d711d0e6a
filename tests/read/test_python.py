"""Plain Python objects: dicts by query, lists in rank order, several runs, files of dicts."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError
from tests import sample
from tests.sample import kinds, ranked, score

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Save

RUNS: dict[str, Callable[[], object]] = {
    "dicts": lambda: sample.RUN,
    "lists": ranked,
    "tuples": lambda: {query: tuple(docs) for query, docs in ranked().items()},
    "dict subclasses": lambda: OrderedDict((q, OrderedDict(d)) for q, d in sample.RUN.items()),
    "defaultdicts": lambda: defaultdict(dict, sample.RUN),
    "read-only mappings": lambda: MappingProxyType(
        {query: MappingProxyType(docs) for query, docs in sample.RUN.items()}
    ),
    "numpy scores": lambda: {
        query: {doc: np.float32(score) for doc, score in docs.items()}
        for query, docs in sample.RUN.items()
    },
    "numpy ids": lambda: {
        np.str_(query): [np.str_(doc) for doc in docs] for query, docs in ranked().items()
    },
    "a stream": lambda: findwell.io.load_run(sample.RUN),
    "a run": lambda: findwell.io.load_run(sample.RUN).collect(),
    "a generator of records": lambda: (
        {"query": query, "retrieved": docs} for query, docs in ranked().items()
    ),
}
GOLDS: dict[str, Callable[[], object]] = {
    "dicts": lambda: sample.GOLD,
    "numpy grades": lambda: {
        query: {doc: np.int32(grade) for doc, grade in docs.items()}
        for query, docs in sample.GOLD.items()
    },
    "a gold": lambda: findwell.io.load_gold(sample.GOLD),
    "lists of objects": lambda: {
        query: [{"docs": [doc], "grade": grade} for doc, grade in docs.items()]
        for query, docs in sample.GOLD.items()
    },
    "a generator of records": lambda: (
        {"query": query, "gold": docs} for query, docs in sample.GOLD.items()
    ),
}


@pytest.mark.parametrize("gold", GOLDS)
@pytest.mark.parametrize("run", RUNS)
def test_every_form_gives_the_same_numbers(run: str, gold: str) -> None:
    assert score(RUNS[run](), GOLDS[gold]()) == score(sample.RUN, sample.GOLD)


@pytest.mark.parametrize("form", ["dicts", "lists"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["run.json", "run", "run.jsonl", "run.trec"])
def test_json_of_dicts(form: str, indent: int | None, name: str, save: Save) -> None:
    run = save(name, json.dumps(RUNS[form](), indent=indent))
    gold = save("gold-" + name, json.dumps(sample.GOLD, indent=indent))
    options = {"run_format": "json", "gold_format": "json"} if name == "run.jsonl" else {}
    assert score(run, gold, **options) == score(sample.RUN)


@pytest.mark.parametrize("kind", [int, np.int64, np.int16, np.uint64, str])
def test_ids_of_every_type_become_text(kind: Callable[[Any], Any]) -> None:
    run = {kind(1): {kind(10): 2.0, kind(11): 1.0}}
    for gold in ({"1": {"11": 1}}, {1: {11: 1}}, {np.int8(1): [np.int8(11)]}):
        assert findwell.evaluate(run, gold, ["RR"])["RR"] == 0.5


def test_text_keeps_its_zeros() -> None:
    assert findwell.evaluate({"q": ["007", "7"]}, {"q": ["7"]}, ["RR"])["RR"] == 0.5


def test_ids_of_mixed_types_are_a_finding() -> None:
    result = findwell.evaluate({"1": ["a"], 2: ["a"]}, {"1": ["a"], "2": ["a"]}, ["P@1"])
    assert result["P@1"] == 1
    assert kinds(result) == {"id-type-mix": 2}


NO_IDS: list[Any] = [None, 1.5, np.float64(1), True, np.bool_(True), b"d1", (1, 2), "", "  ", "\t"]


@pytest.mark.parametrize("bad", NO_IDS, ids=repr)
@pytest.mark.parametrize(
    "place",
    [
        lambda bad: ({"q1": {bad: 1.0}}, {"q1": ["d1"]}),
        lambda bad: ({bad: {"d1": 1.0}}, {"q1": ["d1"]}),
        lambda bad: ({"q1": ["d1", bad]}, {"q1": ["d1"]}),
        lambda bad: ({"q1": ["d1"]}, {"q1": {bad: 1}}),
        lambda bad: ({"q1": ["d1"]}, {bad: {"d1": 1}}),
        lambda bad: ({"q1": ["d1"]}, {"q1": [{"docs": ["d1", bad]}]}),
    ],
    ids=["scored doc", "run query", "listed doc", "graded doc", "gold query", "group doc"],
)
def test_what_is_no_id(bad: Any, place: Callable[[Any], tuple[Any, Any]]) -> None:
    with pytest.raises(InputError, match="is not an id"):
        score(*place(bad))


@pytest.mark.parametrize(
    "run",
    [
        {"q1": {"d1": "high"}},
        {"q1": {"d1": 10**400}},
        {"q1": {"d1": 1.0}, "q2": ["d1"]},
        {"q1": 5, "q2": {"d1": 1.0}},
    ],
    ids=repr,
)
def test_wrong_shapes_are_input_errors(run: Any, save: Save) -> None:
    path = save("run.json", json.dumps(run))
    for data in (run, path):
        with pytest.raises(InputError):
            score(data, {"q1": ["d1"]})


@pytest.mark.parametrize("numbers", [[1], {"x": 1}, [[1]], "high", {"x": {"y": 1}}], ids=repr)
def test_wrong_shapes_in_files(numbers: Any, save: Save) -> None:
    path = save("run.json", json.dumps({"q1": {"d1": numbers}}))
    with pytest.raises(InputError, match="not a number"):
        score(path, {"q1": ["d1"]})


@pytest.mark.parametrize("data", [5, 1.5, object()], ids=["int", "float", "object"])
def test_what_is_no_run_and_no_gold(data: Any) -> None:
    told = "no questions to ask a retriever" if callable(data) else "is not a run"
    with pytest.raises(InputError, match=told):
        score(data, {"q1": ["d1"]})
    with pytest.raises(InputError, match="is not a gold"):
        score({"q1": ["d1"]}, data)


@pytest.mark.parametrize("run", [{}, {"q1": []}, {"q1": {}}, []], ids=repr)
def test_an_empty_run_found_nothing(run: Any) -> None:
    result = findwell.evaluate(run, {"q1": ["d1"]}, ["recall"])
    assert result["recall"] == 0
    assert kinds(result) == {"retrieved-nothing" if run else "missing-query": 1}


def test_a_query_that_retrieved_nothing_scores_zero() -> None:
    for run in ({"q1": ["d1"], "q2": []}, {"q1": {"d1": 1.0}, "q2": {}}):
        values = findwell.evaluate(run, {"q1": ["d1"], "q2": ["d1"]}, ["P@1"])
        assert values["P@1"] == 0.5


def test_several_runs_keep_their_names(save: Save) -> None:
    runs: dict[str, Any] = {"scored": sample.RUN, "listed": ranked()}
    result = findwell.evaluate(runs, sample.GOLD, ["AP"])
    assert result.runs == ["scored", "listed"]
    assert result["scored", "AP"] == result["listed", "AP"]
    paths = [save("a/run.trec", sample.trec_run()), save("b/run.trec", sample.trec_run())]
    assert findwell.evaluate(paths, sample.GOLD, ["AP"]).runs == ["run", "run-2"]
    named = findwell.evaluate({"x": paths[0], "y": paths[1]}, sample.GOLD, ["AP"])
    assert named.runs == ["x", "y"]


def test_inputs_are_never_changed() -> None:
    run, gold = copy.deepcopy(sample.RUN), copy.deepcopy(sample.GOLD)
    lists, items = ranked(), {"q1": ["d1", ["d2", "d3"]], "q2": [{"docs": ["7"], "grade": 2}]}
    before = copy.deepcopy((run, gold, lists, items))
    findwell.evaluate(
        run, gold, ["AP"], reading=findwell.Reading(ids="chunk-to-doc:#"), bounds=True, rel=2
    )
    findwell.evaluate(lists, items, ["AP"], queries={"q1": {"topic": "x"}})
    assert (run, gold, lists, items) == before


@pytest.mark.parametrize("missing", ["drop", "", "Zero"])
def test_unknown_choices_are_named(missing: str) -> None:
    with pytest.raises(OptionError, match="missing queries"):
        score(sample.RUN, missing=missing)


@pytest.mark.parametrize(
    "queries",
    [
        {"q1": {"topic": "x"}, "q2": {"topic": "y"}, "q10": {"topic": "y"}},
        pl.DataFrame({"query": ["q1", "q2", "q10"], "topic": ["x", "y", "y"]}),
        [{"query": "q1", "topic": "x"}, {"query": "q2", "topic": "y"}],
    ],
    ids=["dict", "polars", "records"],
)
def test_a_table_about_the_queries_adds_slices(queries: Any) -> None:
    result = findwell.evaluate(sample.RUN, sample.GOLD, ["RR"], queries=queries)
    assert result.by("topic")["slice"].to_list()[:2] == ["x", "y"]
