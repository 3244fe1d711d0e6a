"""Measures of the context as a whole: redundancy, near-duplicates, position, forbidden, age."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

LONG = "Charging the battery takes four hours at room temperature and longer in winter"


def value(run: Any, gold: Any, measure: str, **options: Any) -> float | None:
    return findwell.evaluate({"q": run}, {"q": gold}, measure, **options)[measure]


@pytest.mark.parametrize(
    ("run", "measure", "expected"),
    [
        ("abxc", "redundancy", 1 / 4),  # b covers what a did
        ("abxc", "redundancy@1", 0),
        ("aaxx", "redundancy", 2 / 4),  # repetitions, of noise too
        ("xyz", "redundancy", 0),  # noise is not redundant
        ("xaycz", "position", 1 / 4),
        ("xaycz", "position(of=last)", 3 / 4),
        ("xaycz", "position@2", 1),
        ("xyz", "position", 1),
        ("a", "position", 0),
        ("xaybz", "position(of=last)", 1 / 4),  # b only repeats the item
        ("axxcxx", "in_third", 1 / 2),
        ("axxcxx", "in_third(third=first)", 1 / 2),
        ("axxcxx", "in_third(third=last)", 0),
        ("xxxc", "in_third(third=last)", 1),
        ("c", "in_third", 1),
        ("xx", "in_third", 0),
    ],
)
def test_worked_examples(run: str, measure: str, expected: float) -> None:
    assert value(list(run), [["a", "b"], ["c"]], measure) == pytest.approx(expected)


def test_thirds_part_the_found_items() -> None:
    pick = np.random.default_rng(3)
    docs = [f"d{number}" for number in range(20)]
    run = {f"q{at}": list(pick.permutation(docs)[: 1 + at % 11]) for at in range(40)}
    gold = {query: listed[::2] for query, listed in run.items()}
    thirds = [f"in_third(third={each})" for each in ("first", "middle", "last")]
    table = findwell.evaluate(run, gold, thirds).per_query
    sums = table.group_by("query").agg(pl.col("value").sum())["value"]
    assert sums.to_list() == pytest.approx([1.0] * 40)


def test_near_duplicates() -> None:
    texts = {
        "a": LONG,
        "b": LONG.upper() + "!",  # case and punctuation do not count
        "c": LONG.replace("four", "five"),  # three of eleven sequences differ
        "d": "",
        "e": "—",
        "f": "Call us.",
        "g": "call  us",
    }
    run = list("abcdefg")
    assert value(run, ["a"], "near_duplicates", corpus=texts) == pytest.approx(2 / 7)  # b and g
    assert value(run, ["a"], "near_duplicates@2", corpus=texts) == pytest.approx(1 / 2)
    # with an id of its own, but in another list it repeats nothing
    result = findwell.evaluate(
        {"q": ["a"], "r": ["b"]}, {"q": ["a"], "r": ["a"]}, "near_duplicates", corpus=texts
    )
    assert result.values == {"near_duplicates": 0.0}


def test_forbidden_by_query_and_by_corpus() -> None:
    gold = [
        {"query": "q", "gold": ["a"], "forbidden": ["x", "y"]},
        {"query": "r", "gold": ["a"], "forbidden": []},
    ]
    run = {"q": ["a", "x", "x"], "r": ["x", "y"]}
    found = findwell.evaluate(run, gold, ["forbidden@1", "forbidden@2", "forbidden"])
    assert list(found.values.values()) == [0.0, 1.0, 2.0]
    corpus = [{"doc": doc, "text": doc, "forbidden": doc == "y"} for doc in "axy"]
    found = findwell.evaluate(run, {"q": ["a"], "r": ["a"]}, ["forbidden"], corpus=corpus)
    assert found.values == {"forbidden": 1.0}
    with pytest.raises(FindwellError, match="nothing says which documents are forbidden"):
        findwell.evaluate(run, {"q": ["a"]}, "forbidden")
    corpus[0]["forbidden"] = "maybe"
    with pytest.raises(FindwellError, match="'maybe' does not say"):
        findwell.evaluate(run, {"q": ["a"]}, "forbidden", corpus=corpus)


def test_forbidden_after_normalising() -> None:
    gold = [{"query": "q", "gold": ["a"], "forbidden": ["x#2"]}]
    run = {"q": ["a#1", "x#1", "x#2"]}
    found = findwell.evaluate(
        run, gold, ["forbidden@2", "forbidden@3"], reading=findwell.Reading(ids="chunk-to-doc:#")
    )
    assert list(found.values.values()) == [0.0, 1.0]


@pytest.mark.parametrize(("docs", "code"), [(["a", "b"], 0), (["a", "x"], 1)])
def test_forbidden_is_a_gate(cli: Findwell, save: Save, docs: list[str], code: int) -> None:
    record = {"query": "q", "retrieved": docs, "gold": ["a"], "forbidden": ["x"]}
    done = cli("score", save("a.jsonl", json.dumps(record)), "--require", "forbidden@10<=0")
    assert done.code == code


DATED = [
    {"doc": "a", "text": "A", "date": "2026-05-01"},
    {"doc": "b", "text": "B", "date": "2026-04-01T12:00:00Z"},
    {"doc": "c", "text": "C", "date": "2026-04-21"},
    {"doc": "d", "text": "D", "date": None},
]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("age", (0 + 30 + 10) / 3),  # d has no date
        ("age@2", 15),
        ("age(of=median)", 10),
        ("age(on=2026-05-11)@1", 10),
        ("age(on=2026-04-21)", (0 + 20 + 0) / 3),  # what is newer is of age 0
    ],
)
def test_age(measure: str, expected: float) -> None:
    assert value(list("abcd"), ["a"], measure, corpus=DATED) == pytest.approx(expected)


def test_age_that_is_not_known() -> None:
    result = findwell.evaluate({"q": ["d"], "r": []}, {"q": ["d"], "r": ["d"]}, "age", corpus=DATED)
    assert result.per_query["reason"].to_list() == ["no date is known"] * 2
    with pytest.raises(FindwellError, match="nothing says from when the documents are"):
        value(["a"], ["a"], "age", corpus={"a": "A"})
    with pytest.raises(FindwellError, match="'May' is not a date"):
        value(["a"], ["a"], "age", corpus=[{"doc": "a", "text": "A", "date": "May"}])
    with pytest.raises(FindwellError, match="on is a date"):
        findwell.plugins.parse_measure("age(on=yesterday)")


def test_units_of_costs() -> None:
    with pytest.raises(FindwellError, match="unit is one of"):
        findwell.plugins.parse_measure("cost_to(unit=bytes)")
    texts = {"a": "one two three", "x": "four"}
    found = findwell.evaluate(
        {"q": ["x", "a"]},
        {"q": ["a"]},
        ["tokens@1", "chars", "items_per", "tokens_to", "context_cost(unit=ranks)"],
        corpus=texts,
    ).values
    assert list(found.values()) == [1, 17, 250, 4, 2]


def test_large_values_are_compared() -> None:
    texts = {"a": "word " * 3000, "b": "word " * 9000}
    gold = {f"q{at}": ["a"] for at in range(4)}
    runs = {
        "short": {query: ["a"] for query in gold},
        "long": {query: ["a", "b"] for query in gold},
    }
    found = findwell.compare(runs, gold=gold, measures=["tokens"], corpus=texts)  # no overflow
    assert found["context_cost"]["difference"] == 9000


def test_near_duplicates_in_a_chain() -> None:
    words = [f"w{number}" for number in range(40)]
    windows = {"a": words[:30], "b": words[3:33], "c": words[6:36]}  # a is like b, b is like c
    texts = {name: " ".join(each) for name, each in windows.items()}
    assert value(["a", "c"], ["a"], "near_duplicates", corpus=texts) == 0.0
    assert value(["a", "b", "c"], ["a"], "near_duplicates", corpus=texts) == pytest.approx(2 / 3)
    assert value(["c", "b", "a"], ["a"], "near_duplicates", corpus=texts) == pytest.approx(2 / 3)
