"""Support by degrees: nugget recall, strict and partial, vital and all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.core.errors import FindwellError
from findwell.core.relation import with_unjudged
from findwell.show import render

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Save

# the scores of castorini/nuggetizer, core/metrics.py, by the measure that gives them
SCORES = {
    "strict_vital_score": "recall(rel=2,support=1)",
    "strict_all_score": "recall(support=1)",
    "vital_score": "recall(rel=2)",
    "all_score": "recall",
}


def record(qid: str, *nuggets: str) -> dict[str, Any]:
    parts = [nugget.split() for nugget in nuggets]
    return {
        "qid": qid,
        "query": "what is it",
        "nuggets": [
            {"text": f"nugget {at}", "importance": importance, "assignment": assignment}
            for at, (importance, assignment) in enumerate(parts)
        ],
    }


RECORDS = [
    record(
        "1",
        "vital support",
        "vital partial_support",
        "vital not_support",
        "okay support",
        "okay partial_support",
    ),
    record("2", "vital support", "okay not_support"),
]
# by hand: 1 of 3 and 1 of 1; 2 of 5 and 1 of 2; 1.5 of 3 and 1 of 1; 3 of 5 and 1 of 2
EXPECTED = {
    "strict_vital_score": (1 / 3, 1.0),
    "strict_all_score": (2 / 5, 1 / 2),
    "vital_score": (1.5 / 3, 1.0),
    "all_score": (3 / 5, 1 / 2),
}


@pytest.mark.parametrize("score", SCORES)
def test_the_published_scores(score: str, save: Save, tmp_path: Path) -> None:
    lines = save("assignments.jsonl", "\n".join(map(json.dumps, RECORDS)))
    for given in (RECORDS, lines):
        result = findwell.evaluate(given, None, [SCORES[score]])
        assert result.per_query["value"].to_list() == pytest.approx(EXPECTED[score])
    result.save(tmp_path / "saved")
    again = findwell.load(tmp_path / "saved")
    assert again.values == result.values
    assert again.score("recall").values == findwell.evaluate(RECORDS, None, "recall").values


def test_no_vital_nugget_is_undefined() -> None:
    records = [record("1", "okay support"), record("2", "vital support")]
    found = findwell.evaluate(records, None, "recall(rel=2)")
    assert found.per_query["reason"].to_list() == ["no relevant item", None]  # nuggetizer says 0


def test_labels_that_are_none() -> None:
    with pytest.raises(FindwellError, match="the assignment of a nugget is 'maybe'"):
        findwell.evaluate([record("1", "vital maybe")], None, "recall")
    with pytest.raises(FindwellError, match="is not a number from 0 to 1"):
        findwell.evaluate({"q": ["a"]}, [{"query": "q", "gold": [{"docs": {"a": 2}}]}], "recall")
    with pytest.raises(FindwellError, match="support is a number from 0 to 1"):
        findwell.plugins.parse_measure("recall(support=2)")


def by_hand(run: list[str], items: list[dict[str, float]], k: int, least: float) -> float:
    best = [
        max((w for d, w in item.items() if d in run[:k] and w >= least), default=0.0)
        for item in items
    ]
    return sum(best) / len(items)


def test_lists_of_documents_against_a_loop() -> None:
    pick = np.random.default_rng(5)
    docs = [f"d{number}" for number in range(8)]
    run, gold, items = {}, [], {}
    for number in range(60):
        query = f"q{number}"
        run[query] = [str(doc) for doc in pick.permutation(docs)[:5]]
        items[query] = [
            {str(doc): float(pick.choice([0, 0.25, 0.5, 1])) for doc in pick.permutation(docs)[:3]}
            for _ in range(int(pick.integers(1, 5)))
        ]
        gold.append({"query": query, "gold": [{"docs": item} for item in items[query]]})
    for k, least in ((1, 0.0), (3, 0.0), (3, 0.5), (5, 1.0)):
        name = f"recall(support={least:g})@{k}" if least else f"recall@{k}"
        result = findwell.evaluate(run, gold, [name])
        expected = [by_hand(run[q], items[q], k, least) for q in run]
        assert result.per_query["value"].to_list() == pytest.approx(expected)
        (measure,) = result.measures
        relation = result.relation("run")
        parts = [measure.values(part) for part in relation.blocks(20)]
        assert len(parts) > 1
        assert np.concatenate(parts).tolist() == pytest.approx(expected)
        some = np.arange(60) % 2 == 0
        assert measure.values(relation.select(some)).tolist() == pytest.approx(expected[::2])
        low = measure.values(with_unjudged(relation, 0.0))
        assert low.tolist() == pytest.approx(expected)


def test_all_found_asks_for_full_support() -> None:
    gold = [{"query": "q", "gold": [{"docs": {"a": 0.5, "b": 1}}]}]
    found = findwell.evaluate({"q": ["a", "b"]}, gold, ["all_found@1", "all_found@2"])
    assert list(found.values.values()) == [0.0, 1.0]


def test_plain_gold_carries_no_weights() -> None:
    assert (
        findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "recall").relation("run").edge_weight is None
    )


EVERY = ["P@1", "RR", "AP", "nDCG@3", "recall@1", "judged@1"]


def test_a_document_without_support_is_no_hit() -> None:
    gold = [{"query": "q", "gold": [{"docs": {"a": 0, "b": 1}}, {"docs": ["z"]}]}]
    found = findwell.evaluate({"q": ["a", "x", "b"]}, gold, EVERY)
    # b alone is relevant, at rank 3 of 3; a is judged
    ideal = 1 + 1 / np.log2(3)
    expected = [0.0, 1 / 3, 1 / 3 / 2, 0.5 / ideal, 0.0, 1.0]
    assert list(found.values.values()) == pytest.approx(expected)


def test_an_item_without_any_support_is_still_asked_for(tmp_path: Path) -> None:
    gold = [{"query": "q", "gold": [{"docs": {"a": 0}}, {"docs": {"b": 1}}]}]
    found = findwell.evaluate({"q": ["a", "b"]}, gold, ["recall", "alpha_nDCG"])
    assert found.values == pytest.approx({"recall": 0.5, "alpha_nDCG": 1 / np.log2(3)})
    found.save(tmp_path / "saved")
    assert findwell.load(tmp_path / "saved").score(["recall", "alpha_nDCG"]).values == found.values
    (explained,) = findwell.explain({"q": ["a", "b"]}, gold, ["recall"])
    assert [step.mark for step in explained.rankings[0].steps] == ["rejected", "hit"]
    assert "(no document supports it)" in render(explained, "table")


COSTS = ["cost_to", "cost_to(recall=0.5)", "tokens_to", "tokens_to(recall=0.25)", "calls_to"]


def test_what_it_takes_counts_support_in_part() -> None:
    hops = [{"retrieved": ["a"]}, {"retrieved": ["x", "b"]}]
    record = {"query": "q", "hops": hops, "gold": [{"docs": {"a": 0.5, "b": 1}}]}
    texts = {"a": "one two", "x": "three", "b": "four five six"}
    found = findwell.evaluate([record], None, [*COSTS, "items_per_call@1hop"], corpus=texts)
    assert list(found.values.values()) == [3.0, 1.0, 6.0, 2.0, 2.0, 0.5]
    half = findwell.evaluate({"q": ["a"]}, [{"query": "q", "gold": record["gold"]}], "cost_to")
    assert half.per_query["value"].to_list() == [None]  # recall does not get there


def test_full_support_in_steps_is_exactly_full() -> None:
    steps = {"a": 0.1, "b": 0.7, "c": 0.8, "d": 1}
    gold = [{"query": "q", "gold": [{"docs": steps} for _ in range(7)]}]
    found = findwell.evaluate({"q": list(steps)}, gold, ["recall", "all_found", "cost_to"])
    assert list(found.values.values()) == [1.0, 1.0, 4.0]


def test_the_best_support_of_a_document_that_is_told_twice() -> None:
    gold = [{"query": "q", "gold": [[{"docs": {"a": 0.25}}, {"docs": {"a": 0.75}}, "b"]]}]
    assert findwell.evaluate({"q": ["a"]}, gold, "recall").values == {"recall": 0.75}
    upper = [{"query": "q", "gold": [{"docs": {"a": 0.25, "A": 0.75}}]}]
    assert findwell.evaluate(
        {"q": ["a"]}, upper, "recall", reading=findwell.Reading(ids="lower")
    ).values == {"recall": 0.75}


WHOLE = ("ids", "exact", "rouge", "containment", "spans", "semantic")  # which compare documents
PARTS = ("exact-sentence", "rouge-sentence", "words", "span-words")  # which compare parts of them


def _letters(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[text.lower().count(each) for each in "abcdefghij"] for text in texts], float)


@pytest.mark.parametrize("by", [*WHOLE, *PARTS])
def test_support_under_every_relation(by: str) -> None:
    texts = {"a": "Aa aa aa.", "b": "Bb bb bb.", "c": "Cc cc cc."}
    gold = [{"query": "q", "gold": [{"docs": {"c": 0, "a": 0.5, "b": 1}}]}]
    options: dict[str, Any] = {"by": by, "corpus": texts, "embedder": _letters}
    found = {
        doc: findwell.evaluate({"q": [doc]}, gold, ["recall", "RR"], **options).values
        for doc in texts
    }
    # a document counts as far as it supports the item; of its parts the best document's are asked
    expected = {"c": 0.0, "a": 0.5, "b": 1.0} if by in WHOLE else {"c": 0.0, "a": 0.0, "b": 1.0}
    assert {doc: each["recall"] for doc, each in found.items()} == expected
    assert {doc: each["RR"] for doc, each in found.items()} == {
        doc: float(support > 0) for doc, support in expected.items()
    }


def test_an_ideal_list_that_gains_nothing_leaves_0() -> None:
    gold = [{"query": "q", "gold": [{"docs": {"a": 0}}]}, {"query": "r", "gold": ["a"]}]
    found = findwell.evaluate({"q": ["a"], "r": ["a"]}, gold, ["alpha_nDCG", "recall"])
    assert found.arrays["run", found.measures[0]].tolist() == [0.0, 1.0]
    assert found.values == {"alpha_nDCG": 0.5, "recall": 0.5}
