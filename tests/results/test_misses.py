"""Why relevant items were missed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import findwell

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

RANKED = st.lists(st.sampled_from("abcdefgh"), max_size=8)
GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2), min_size=1, max_size=6)


def causes(run: Any, gold: Any, measure: str, **more: Any) -> list[tuple[Any, ...]]:
    found = findwell.evaluate(run, gold, measure, **more).misses()
    return found.select("item", "cause", "rank").rows()


@pytest.mark.parametrize(
    ("ranked", "gold", "measure", "expected"),
    [
        ("ax", {"a": 1}, "recall@1", []),
        ("xa", {"a": 1}, "recall@1", [("a", "below the cutoff", 2)]),
        ("xy", {"a": 1}, "recall", [("a", "not retrieved", None)]),
        ("xyb", {"a": 1, "b": 0}, "recall@2", [("a", "unjudged", None)]),
        ("xyb", {"a": 1, "b": 0}, "recall@3", [("a", "not retrieved", None)]),
        ("", {"a": 1, "b": 0}, "recall@3", [("a", "not retrieved", None)]),
        ("xa", {"a": 2, "b": 1}, "recall(rel=2)@1", [("a", "below the cutoff", 2)]),
        ("xa", {"a": 1}, "nDCG@1", [("a", "below the cutoff", 2)]),
        ("xa", {"a": 1}, "AP", []),
    ],
)
def test_each_cause(
    ranked: str, gold: dict[str, int], measure: str, expected: list[tuple[Any, ...]]
) -> None:
    assert causes({"q": list(ranked)}, {"q": gold}, measure) == expected


def test_behind_duplicates() -> None:
    """One of a group is enough: the second document of it takes the place of another item."""
    gold = {"q": [["a", "b"], ["c"]]}
    assert causes({"q": ["a", "b", "c"]}, gold, "recall@2") == [("c", "behind duplicates", 3)]
    assert causes({"q": ["a", "x", "c"]}, gold, "recall@2") == [("c", "below the cutoff", 3)]
    assert causes({"q": ["x", "a", "b", "c"]}, gold, "recall@2") == [("c", "below the cutoff", 4)]
    assert causes({"q": ["x", "y"]}, gold, "recall@2") == [
        ("a | b", "not retrieved", None),
        ("c", "not retrieved", None),
    ]


def test_over_the_budget() -> None:
    records = [
        {
            "id": "q",
            "retrieved": [{"id": "x", "text": "a text of words"}, {"id": "a", "text": "word"}],
            "gold": ["a"],
        }
    ]
    assert causes(records, None, "recall@15chars") == [("a", "over the budget", 2)]


def test_a_query_without_a_value_misses_nothing() -> None:
    result = findwell.evaluate({"q": ["x"], "r": ["x"]}, {"q": {"a": 0}, "r": {"b": 1}}, "recall@1")
    assert result.misses()["query"].to_list() == ["r"]
    assert result.as_dict(misses=True)["misses"] == result.misses().to_dicts()


def test_the_command_counts_causes_and_lists_items(cli: Findwell, save: Save) -> None:
    files = (
        save("run.json", '{"q": ["x", "a"]}'),
        "--gold",
        save("gold.json", '{"q": ["a", "b"]}'),
    )
    asked = ("score", *files, "-m", "recall@1", "--misses")
    shown = cli(*asked)
    assert "relevant items missed, by cause (recall@1)" in shown.out
    assert shown.out.strip().splitlines()[-1].split() == ["run", "1", "1"]
    listed = cli(*asked, "--format", "csv").out.splitlines()
    assert listed[1:] == [
        "run,recall@1,q,a,below the cutoff,2",
        "run,recall@1,q,b,not retrieved,",
    ]
    found = cli(*asked, "--format", "json").answer["misses"]
    assert [row["cause"] for row in found] == ["below the cutoff", "not retrieved"]


def test_several_runs_and_measures() -> None:
    runs = {"one": {"q": ["x", "a"]}, "two": {"q": ["a"]}}
    result = findwell.evaluate(runs, {"q": ["a"]}, ["recall@1", "recall@2"])
    assert result.misses().rows() == [("one", "recall@1", "q", "a", "below the cutoff", 2)]
    assert not result.misses("recall@2").height


@given(
    st.dictionaries(st.sampled_from("pqr"), st.tuples(RANKED, GRADES), min_size=1),
    st.integers(1, 6),
)
def test_every_relevant_item_is_found_or_missed(
    drawn: dict[str, tuple[list[str], dict[str, int]]], k: int
) -> None:
    """Recall is 1 − missed ÷ relevant, query by query; a miss below the cutoff stands there."""
    run = {query: list(dict.fromkeys(ranked)) for query, (ranked, _) in drawn.items()}
    gold = {query: grades for query, (_, grades) in drawn.items()}
    assume(any(grade > 0 for grades in gold.values() for grade in grades.values()))
    result = findwell.evaluate(run, gold, f"recall@{k}")
    rows = result.misses().rows(named=True)
    missed = Counter(row["query"] for row in rows)
    for row in result.per_query.rows(named=True):
        relevant = sum(grade > 0 for grade in gold[row["query"]].values())
        if relevant:
            assert row["value"] == pytest.approx(1 - missed[row["query"]] / relevant)
        else:
            assert not missed[row["query"]]
    for row in rows:
        ranked = run[row["query"]]
        if row["rank"] is None:
            assert row["item"] not in ranked
        else:
            assert ranked.index(row["item"]) + 1 == row["rank"] > k
