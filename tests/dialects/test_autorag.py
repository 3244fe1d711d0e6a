"""The numbers of AutoRAG, to the digit."""

import random
from math import log2
from typing import Any

import polars as pl
import pytest

import findwell
from tests.dialects.golden import cases, same

METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")
GOLDEN = cases("autorag", *(f"retrieval_{name}" for name in METRICS))
# the original compares the text "1" with the number 1, and a flat list letter by letter;
# findwell reads ids as text and every entry of a flat list as a document of its own
TRANSLATED = {"autorag-0120": 1.0, "autorag-0122": 1.0, "autorag-0124": 1.0, "autorag-0148": 0.25}


def values(name: str, gold: Any, retrieved: Any) -> list[float | None]:
    several = bool(retrieved) and isinstance(retrieved[0], list)
    pairs = zip(gold, retrieved, strict=True) if several else [(gold, retrieved)]
    records = [
        {"query": str(number), "gold": items, "retrieved": docs}
        for number, (items, docs) in enumerate(pairs)
    ]
    result = findwell.evaluate(records, measures=name, dialect="autorag")
    return result.per_query["value"].to_list()


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_golden(case: Any) -> None:
    name = case["metric"].removeprefix("retrieval_")
    found = values(name, case["inputs"]["retrieval_gt"], case["inputs"]["retrieved_ids"])
    expected = TRANSLATED.get(case["id"], case["expected"])
    listed = expected if isinstance(expected, list) else [expected]
    assert len(found) == len(listed)
    assert all(map(same, found, listed)), (found, listed)


def test_the_basic_example() -> None:
    records = [
        {
            "query": "q",
            "gold": [["test-1", "test-2"], ["test-3"]],
            "retrieved": ["test-1", "pred-1", "test-2", "pred-3"],
        }
    ]
    result = findwell.evaluate(records, measures=METRICS, dialect="autorag")
    assert result.values == {
        "P": 0.5,
        "recall": 0.5,
        "F": 0.5,
        "RR": 0.5,
        "AP": pytest.approx(5 / 12, abs=1e-15),
        "nDCG": 0.7039180890341347,
    }


def test_what_has_no_value_says_why() -> None:
    records = [
        {"query": "blank", "gold": [["a", ""]], "retrieved": ["a"]},
        {"query": "empty", "gold": [["a"], []], "retrieved": ["a"]},
        {"query": "nothing", "gold": [["a"]], "retrieved": []},
        {"query": "no gold", "gold": None, "retrieved": ["a"]},
        {"query": "blank hit", "gold": [["a"]], "retrieved": ["a", ""]},
        {"query": "fine", "gold": [["a"]], "retrieved": ["a"]},
    ]
    result = findwell.evaluate(records, measures="recall", dialect="autorag")
    reasons = dict(result.per_query.select("query", "reason").rows())
    assert reasons == {
        "blank": "in the gold '' is not an id",
        "empty": "in the gold an item names no document",
        "nothing": "nothing was retrieved",
        "no gold": "no gold",
        "blank hit": "a retrieved id is blank",
        "fine": None,
    }
    assert result["recall"] == 1.0
    assert result.summary["n"].to_list() == [1]


def test_repetitions_may_lift_ndcg_over_1() -> None:
    records = [{"query": "q", "gold": [["a"]], "retrieved": ["a", "a"]}]
    assert findwell.evaluate(records, measures="nDCG", dialect="autorag")["nDCG"] > 1  # type: ignore[operator]
    assert findwell.evaluate(records, measures="nDCG")["nDCG"] == 1


def test_a_saved_result_keeps_its_dialect(tmp_path: Any) -> None:
    records = [{"query": "q", "gold": [["a", "b"], ["c"]], "retrieved": ["a", "x", "b"]}]
    result = findwell.evaluate(records, measures=["map"], dialect="autorag")
    again = findwell.load(result.save(tmp_path / "r"))
    assert again["map"] == result["map"] != findwell.evaluate(records, measures="map")["map"]
    assert again.score("mrr")["mrr"] == 0.5


def by_hand(groups: list[list[str]], listed: list[str]) -> dict[str, float]:
    """Return the metrics of one query, as AutoRAG's `metric/retrieval.py` computes them."""
    sets = [set(group) for group in groups]
    recall = sum(bool(each & set(listed)) for each in sets) / len(sets)
    hits = [doc for doc in set(listed) if any(doc in each for each in sets)]
    precision = len(hits) / len(listed)
    ranks = [[rank for rank, doc in enumerate(listed, 1) if doc in each] for each in sets]
    average = [
        sum(nth / rank for nth, rank in enumerate(mine, 1)) / max(len(mine), 1) for mine in ranks
    ]
    gained = sum(1 / log2(rank + 1) for rank, doc in enumerate(listed, 1) if doc in hits)
    length = min(sum(map(len, groups)), len(listed))
    return {
        "P": precision,
        "recall": recall,
        "F": 2 * precision * recall / ((precision + recall) or 1),
        "RR": sum(1 / mine[0] for mine in ranks if mine) / len(sets),
        "AP": sum(average) / len(sets),
        "nDCG": gained / sum(1 / log2(rank + 1) for rank in range(1, length + 1)),
    }


def test_groups_that_are_listed_twice() -> None:
    records = [{"query": "q", "gold": [["a"], ["a"], ["z"]], "retrieved": ["a"]}]
    assert findwell.evaluate(records, measures="recall", dialect="autorag")["recall"] == 2 / 3
    assert findwell.evaluate(records, measures="recall")["recall"] == 1 / 2
    pick = random.Random(3)
    records, expected = [], []
    for number in range(400):
        groups = [pick.sample("abcd", pick.choice((1, 1, 2))) for _ in range(pick.randint(1, 5))]
        listed = pick.choices("abcdx", k=pick.randint(1, 6))
        records.append({"query": f"{number:03}", "gold": groups, "retrieved": listed})
        expected.append(by_hand(groups, listed))
    assert any(["a"] in each["gold"] and each["gold"].count(["a"]) > 1 for each in records)
    table = findwell.evaluate(records, measures=METRICS, dialect="autorag").per_query
    for name in METRICS:
        measure = str(findwell.plugins.parse_measure(name))
        found = table.filter(pl.col("measure") == measure)["value"].to_list()
        assert found == pytest.approx([each[measure] for each in expected], abs=1e-14), name
