"""Several runs whose records carry the gold: one gold, the same for the same queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError
from tests.sample import jsonl, kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Findwell, Save

Record = dict[str, Any]

GOLD: dict[str, list[Any]] = {
    "q1": ["a", ["b", "c"]],
    "q2": [{"doc": "d", "grade": 2}, {"docs": ["e"], "grade": 0}],
    "q3": [],
}
# the same gold, written otherwise
AGAIN: dict[str, list[Any]] = {
    "q3": [],
    "q2": [{"docs": ["e"], "grade": 0}, {"docs": ["d"], "grade": 2}],
    "q1": [["c", "b"], "a"],
}
FIRST = {"q1": ["a", "x"], "q2": ["x", "d"], "q3": ["x"]}
SECOND = {"q1": ["x", "c"], "q2": ["d"], "q3": ["y"]}
MEASURES = ["RR", "recall", "nDCG@2"]


def records(run: dict[str, list[str]], gold: dict[str, list[Any]], **more: Any) -> list[Record]:
    return [
        {"query": query, "retrieved": run[query], "gold": gold[query], **more} for query in gold
    ]


FORMS: dict[str, Callable[[list[Record]], Any]] = {
    "records": list,
    "tuples": lambda given: [{**each, "retrieved": tuple(each["retrieved"])} for each in given],
    "frame": lambda given: pl.DataFrame(
        [{**each, "gold": json.dumps(each["gold"])} for each in given]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_numbers_are_those_of_a_gold_beside(form: str) -> None:
    runs = {"one": records(FIRST, GOLD), "two": records(SECOND, AGAIN)}
    together = findwell.evaluate(
        {name: FORMS[form](run) for name, run in runs.items()}, None, MEASURES
    )
    beside = findwell.evaluate({"one": FIRST, "two": SECOND}, GOLD, MEASURES)
    assert together.values == beside.values
    assert together.per_query.equals(beside.per_query)
    assert kinds(together) == kinds(beside) == {"no-relevant-item": 1}


def test_files(cli: Findwell, save: Save) -> None:
    one = save("one.jsonl", jsonl(records(FIRST, GOLD)))
    two = save("two.json", json.dumps(records(SECOND, AGAIN)))
    expected = findwell.evaluate({"one": FIRST, "two": SECOND}, GOLD, "RR").values
    for paths in ([one, two], {"one": one, "two": str(two)}):
        assert findwell.evaluate(paths, None, "RR").values == expected
    done = cli("score", one, two, "-m", "RR", "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert {f"{row['run']}: RR": row["value"] for row in rows} == expected
    same = cli("score", one, one, "-m", "RR", "--format", "jsonl")
    assert [json.loads(line)["run"] for line in same.out.splitlines()] == ["one", "one-2"]
    assert cli("check", one, two).code == 0


OTHERS: dict[str, tuple[Any, str]] = {
    "another document": (["a", ["b", "x"]], "gold"),
    "one less": (["a"], "gold"),
    "no group": (["a", "b", "c"], "gold"),
    "another grade": ([{"doc": "a", "grade": 2}, ["b", "c"]], "gold"),
    "none": ([], "gold"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_gold_is_refused(other: str, cli: Findwell, save: Save) -> None:
    wrong = records(SECOND, AGAIN | {"q1": OTHERS[other][0]})
    with pytest.raises(
        AlignError, match="run two: 1 query has a different gold than in one"
    ) as stop:
        findwell.evaluate({"one": records(FIRST, GOLD), "two": wrong}, None, "RR")
    assert "'q1'" in stop.value.what
    paths = [save("one", jsonl(records(FIRST, GOLD))), save("two", jsonl(wrong))]
    done = cli("score", *paths)
    assert done.code == 2
    assert "--gold" in done.err


@pytest.mark.parametrize("column", ["question", "reference"])
def test_another_question_or_reference_is_refused(column: str) -> None:
    one, two = records(FIRST, GOLD, **{column: "x"}), records(SECOND, GOLD, **{column: "x"})
    unsaid = records(SECOND, GOLD)
    assert findwell.evaluate({"one": one, "two": two, "three": unsaid}, None, "RR").runs
    two[0][column] = "y"
    with pytest.raises(AlignError, match=f"1 query has a different {column}"):
        findwell.evaluate({"one": one, "two": two}, None, "RR")


def test_records_without_ids_are_told_by_their_questions() -> None:
    one = [{"question": each, "retrieved": [each], "gold": ["x"]} for each in "xy"]
    result = findwell.evaluate({"one": one, "two": one[::-1]}, None, "RR")
    assert result["one", "RR"] == result["two", "RR"] == 0.5
    numbered = [{key: value for key, value in each.items() if key != "question"} for each in one]
    named = [{"query": each["question"], **each} for each in one]
    for other in (numbered, named):
        with pytest.raises(AlignError, match="its records are known by their"):
            findwell.evaluate({"one": one, "two": other}, None, "RR")
    other = [{**each, "gold": each["retrieved"]} for each in numbered]
    with pytest.raises(AlignError, match="2 queries have a different gold"):
        findwell.evaluate({"one": other, "two": other[::-1]}, None, "RR")


def test_every_run_is_held_against_all_queries() -> None:
    one, two = records(FIRST, GOLD, topic="t"), records(SECOND, GOLD, lang="en")
    result = findwell.evaluate({"one": one[:2], "two": two[1:]}, None, ["RR"])
    assert result.queries["query"].to_list() == ["q1", "q2", "q3"]
    assert result.queries.select("topic", "lang").rows() == [("t", None), ("t", "en"), (None, "en")]
    assert (result["one", "RR"], result["two", "RR"]) == (0.75, 0.5)
    missing = {found.run: found.examples for found in result.findings if "missing" in found.kind}
    assert missing == {"one": ("q3",), "two": ("q1",)}


def test_every_run_has_its_own_time() -> None:
    runs = {"one": records(FIRST, GOLD, latency_ms=10), "two": records(SECOND, GOLD)}
    for given in (runs, dict(reversed(runs.items()))):
        result = findwell.evaluate(given, None, "RR")
        assert {run: found.p50 for run, found in result.timing.items()} == {"one": 10}


def test_texts_are_part_of_the_gold() -> None:
    def sample(text: str) -> list[Record]:
        item = {"doc": "a", "text": text}
        return [{"query": "q", "retrieved": [{"doc": "b", "text": "one two"}], "gold": [item]}]

    runs = {"one": sample("one two"), "two": sample("one two")}
    assert findwell.evaluate(runs, None, "recall", by="exact")["two", "recall"] == 1
    runs["two"] = sample("three")
    with pytest.raises(AlignError, match="a different gold"):
        findwell.evaluate(runs, None, "recall", by="exact")


def test_runs_for_a_judge_need_no_gold() -> None:
    question = {"query": "q", "question": "How long does the battery last?"}
    runs = {
        name: [{**question, "retrieved": [{"doc": "d", "text": text}]}]
        for name, text in (("one", "The battery lasts six hours."), ("two", "It is red."))
    }
    result = findwell.evaluate(runs, None, "context_precision", judge="local")
    assert result.runs == ["one", "two"]
    assert result.queries["question"].to_list() == [question["question"]]


def test_what_is_odd_is_counted_once(save: Save) -> None:
    twice = [{"query": "q", "retrieved": ["a"], "gold": ["a", "a"]}]
    result = findwell.evaluate({"one": twice, "two": twice}, None, "RR")
    assert kinds(result) == {"gold-duplicate": 1}
    broken = jsonl(twice) + "{\n"
    paths = [save("one", broken), save("two", broken)]
    result = findwell.evaluate(paths, None, "RR", reading=findwell.Reading(skip_bad=True))
    assert kinds(result)["skipped-record"] == 2


def test_runs_that_tell_another_support_contradict_each_other() -> None:
    def records(support: float) -> list[dict[str, object]]:
        return [{"query": "q", "retrieved": ["a"], "gold": [{"docs": {"a": support}}]}]

    same = findwell.evaluate({"one": records(0.5), "other": records(0.5)}, None, "recall")
    assert set(same.values.values()) == {0.5}
    with pytest.raises(findwell.FindwellError, match="a different gold"):
        findwell.evaluate({"one": records(0.5), "other": records(1)}, None, "recall")
