"""What cannot be read is refused with its place, or left out and counted if that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.io.read import load_gold, load_run, load_samples
from tests import sample
from tests.sample import delimited, gold_table, jsonl, kinds, run_table, score

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

RUNS: dict[str, tuple[str, str, str]] = {
    "trec": (sample.trec_run(), "q1 Q0 x\n", "line 10"),
    "trec, no number": (sample.trec_run(), "q1 Q0 x 1 high t\n", "line 10"),
    "csv": (delimited(run_table()), "q1,x,high\n", "line 11"),
    "csv without an id": (delimited(run_table()), "q1,,1\n", "line 11"),
    "tsv": (delimited(run_table(), "\t"), "q1\tx\thigh\n", "line 11"),
    "jsonl, broken": (
        jsonl({"query": q, "retrieved": docs} for q, docs in sample.ranked().items()),
        '{"query": "q11", "retrieved": ["x"\n',
        "line 4",
    ),
    "jsonl, no field": (
        jsonl({"query": q, "retrieved": docs} for q, docs in sample.ranked().items()),
        '{"query": "q11", "found": ["x"]}\n',
        "line 4",
    ),
    "jsonl, again": (
        jsonl({"query": q, "retrieved": docs} for q, docs in sample.ranked().items()),
        '{"query": "q1", "retrieved": ["x"]}\n',
        "line 4",
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_a_bad_line_of_a_run(case: str, cli: Findwell, save: Save) -> None:
    good, bad, place = RUNS[case]
    path = save("run", good + bad)
    with pytest.raises(InputError) as error:
        score(path)
    if "again" not in case:
        assert error.value.where == f"{path}, {place}"
    assert score(path, skip_bad=True) == score(sample.RUN)
    result = findwell.evaluate(path, sample.GOLD, ["RR"], reading=findwell.Reading(skip_bad=True))
    (found,) = [entry for entry in result.findings if entry.kind == "skipped-record"]
    assert (found.count, found.run) == (1, "run")
    assert found.examples[0].startswith(f"{path}, {place}: ")
    gold = save("qrels", sample.qrels())
    assert cli("check", path, "--gold", gold).code == 2
    assert (
        "skipped-record: run: 1 record cannot be read and is left out ("
        in cli("check", path, "--gold", gold, "--read", "skip_bad=yes").out
    )
    assert (
        "1 record cannot be read"
        in cli("score", path, "--gold", gold, "--read", "skip_bad=yes").err
    )


GOLDS: dict[str, tuple[str, str]] = {
    "qrels": (sample.qrels(), "q1 0 x high\n"),
    "csv": (delimited(gold_table()), "q1,x,high\n"),
    "jsonl": (
        jsonl({"query": q, "gold": docs} for q, docs in sample.GOLD.items()),
        '{"query": "q11", "gold": [{"docs": ["x"], "grade": "high"}]}\n',
    ),
}


@pytest.mark.parametrize("case", GOLDS)
def test_a_bad_line_of_a_gold(case: str, save: Save) -> None:
    good, bad = GOLDS[case]
    path = save("gold", good + bad)
    with pytest.raises(InputError, match="'high'"):
        load_gold(path)
    assert score(sample.RUN, path, skip_bad=True) == score(sample.RUN)
    assert [finding.kind for finding in load_gold(path, skip_bad=True).findings] == [
        "skipped-record"
    ]


BAD: list[Any] = [
    5,
    None,
    {"query": "b"},
    {"query": "b", "retrieved": ["x"]},
    {"query": "b", "retrieved": "x", "gold": ["x"]},
    {"query": "b", "retrieved": ["x"], "gold": [1.5]},
    {"query": ["b"], "retrieved": ["x"], "gold": ["x"]},
    {"query": "a", "retrieved": ["x"], "gold": ["x"]},
]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_record_is_left_out_of_run_and_gold(bad: Any, place: int, save: Save) -> None:
    records = [{"query": q, "retrieved": ["x", "y"], "gold": ["y"]} for q in ("a", "c")]
    repeats = isinstance(bad, dict) and bad.get("query") == "a" and place == 0
    given = [*records[:place], bad, *records[place:]]
    for data in (given, save("s.jsonl", jsonl(given))):
        with pytest.raises(InputError):
            load_samples(data)
        result = findwell.evaluate(data, measures=["RR"], reading=findwell.Reading(skip_bad=True))
        assert kinds(result) == {"skipped-record": 1}
        assert result.queries["query"].to_list() == ["a", "c"]
        assert result["RR"] == (0.75 if repeats else 0.5)


def test_positions_count_what_was_left_out(save: Save) -> None:
    run: list[Any] = [{"retrieved": ["a"]}, {"retrieved": 5}, {"retrieved": ["c"]}]
    gold = [{"gold": ["a"]}, {"gold": ["b"]}, {"gold": ["c"]}]
    for data in (run, save("run.jsonl", jsonl(run))):
        result = findwell.evaluate(data, gold, ["RR"], reading=findwell.Reading(skip_bad=True))
        assert result["RR"] == pytest.approx(2 / 3)
        assert kinds(result) == {"skipped-record": 1, "missing-query": 1}


def test_many_are_counted_and_a_few_shown() -> None:
    records: list[Any] = [{"query": "a", "retrieved": ["x"], "gold": ["x"]}, *range(50)]
    (found,) = load_samples(records, skip_bad=True).gold.findings
    assert found.count == 50
    assert found.examples[0] == "records, record 2: record 2 is of type int, not an object"
    assert len(found.examples) == 3


def test_nothing_but_bad_records_is_an_error_all_the_same(save: Save) -> None:
    for data in ([1, 2], save("s.jsonl", "[1]\n[2]\n{\n")):
        with pytest.raises(InputError, match="not an object"):
            load_samples(data, skip_bad=True, format=None if isinstance(data, list) else "jsonl")
    with pytest.raises(InputError, match="columns"):
        load_run(save("run", "q1 Q0 x 1\nq1 Q0 x 1\n"), skip_bad=True)


def test_frames_are_skipped_through_too() -> None:
    table = pl.DataFrame({"query": ["a", None, "b"], "doc": ["x", "y", "z"], "score": [1, 2, 3]})
    with pytest.raises(InputError, match="the query is missing"):
        load_run(table)
    stream = load_run(table, skip_bad=True)
    assert stream.collect().rows["doc"].to_list() == ["x", "z"]
    assert [finding.kind for finding in stream.findings] == ["skipped-record"]


def test_without_bad_records_nothing_is_said() -> None:
    assert kinds(
        findwell.evaluate(sample.RUN, sample.GOLD, ["RR"], reading=findwell.Reading(skip_bad=True))
    ) == kinds(findwell.evaluate(sample.RUN, sample.GOLD, ["RR"]))
