"""What tells units apart belongs to the relation: texts or places for texts, ids for ids."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.evaluation.plan import grouped
from tests.sample import kinds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Save

MANUAL = ("Press the red button.", "Press the red button.", "Charging takes four hours.")
SAMPLE = {
    "query": "q",
    "question": "How long does charging take?",
    "reference": "Charging takes four hours.",
    "retrieved": [{"doc": "manual.md", "text": text} for text in MANUAL],
    "gold": [{"doc": "manual.md", "text": MANUAL[2]}],
}
TEXT_RELATIONS = [
    "exact",
    "exact-sentence",
    "rouge",
    "rouge-sentence",
    "containment",
    "words",
    "semantic",
]


@pytest.mark.parametrize("by", TEXT_RELATIONS)
def test_chunks_that_share_a_document_are_not_repetitions(by: str) -> None:
    """Also when another query of the batch repeats a text."""
    other = SAMPLE | {"query": "other"}
    plain = SAMPLE | {"query": "plain", "retrieved": SAMPLE["retrieved"][1:]}
    result = findwell.evaluate([SAMPLE, other, plain], measures="recall@5", by=by)
    assert result["recall@5"] == 1
    assert kinds(result).get("duplicate-document", 0) == 2


def test_places_in_one_document_are_not_repetitions() -> None:
    corpus = {"manual.md": " ".join(MANUAL)}
    places = [(0, 21), (0, 21), (44, 70)]
    retrieved = [{"doc": "manual.md", "start": start, "end": end} for start, end in places]
    sample = {"query": "q", "retrieved": retrieved, "gold": retrieved[2:]}
    for by in ("spans", "span-words"):
        assert findwell.evaluate([sample], measures="recall", by=by, corpus=corpus)["recall"] == 1


def test_a_judge_sees_chunks_that_share_a_document() -> None:
    result = findwell.judges.judge(
        [SAMPLE], ["context_recall", "context_precision"], judge="local:text"
    )
    assert result.values == {"context_recall": 1, "context_precision": pytest.approx(1 / 3)}


def test_lost_quotes_of_one_document_are_items_of_their_own() -> None:
    corpus = {"manual.md": " ".join(MANUAL)}
    gold = [{"doc": "manual.md", "text": text} for text in (MANUAL[2], "Never said.", "Nor this.")]
    sample = {"query": "q", "retrieved": [{"doc": "manual.md", "text": MANUAL[2]}], "gold": gold}
    result = findwell.evaluate([sample], measures="recall", by="spans", corpus=corpus)
    assert result["recall"] == pytest.approx(1 / 3)


def test_what_stands_nowhere_is_not_taken_for_a_place() -> None:
    sample = {
        "query": "q",
        "retrieved": ["a[0:9]", {"doc": "b", "start": 0, "end": 9}],
        "gold": [{"doc": "a", "start": 0, "end": 9}],
    }
    assert findwell.evaluate([sample], measures="recall", by="spans")["recall"] == 0


QUOTES = {
    "query": "q",
    "retrieved": [{"doc": "m#1", "text": "a b"}],
    "gold": [
        {"doc": "m#1", "text": "a b"},
        {"doc": "m#1", "text": "c d"},
        {"doc": "x#1", "text": "e f"},
    ],
}


@pytest.mark.parametrize("ids", ["identity", "chunk-to-doc"])
def test_a_document_that_the_gold_quotes_twice_is_one_id(ids: str) -> None:
    """Whether or not texts are read for another measure, or kept for a report."""
    values = [
        findwell.evaluate([QUOTES], measures="recall", reading=findwell.Reading(ids=ids))["recall"],
        findwell.evaluate([QUOTES], measures="recall", reading=findwell.Reading(ids=ids, keep=5))[
            "recall"
        ],
        findwell.evaluate(
            [QUOTES], measures=["recall", "recall/exact"], reading=findwell.Reading(ids=ids)
        )["recall"],
    ]
    assert values == [0.5, 0.5, 0.5]


def test_normalised_ids_leave_texts_alone() -> None:
    for ids in ("identity", "chunk-to-doc", lambda _: "all the same"):
        result = findwell.evaluate(
            [QUOTES], measures="recall", by="exact", reading=findwell.Reading(ids=ids)
        )
        assert result["recall"] == pytest.approx(1 / 3)


def test_a_changed_relation_is_worked_out_anew() -> None:
    relation = findwell.evaluate({"q": ["a", "x"]}, {"q": {"a": 1, "b": 1}}, "recall").relation(
        "run"
    )
    assert relation.relevant(1).tolist() == [2]
    changed = replace(relation, item_grade=np.array([1.0, 0.0]))
    assert changed.relevant(1).tolist() == [1]


# lists of gold in which a group holds one document only, perhaps after it was normalised; and how
# many items there are for a list that has all of them but z
COLLAPSED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "as given": ([["a b", "a b"], "a b", "z z"], {}),
    "a group of one, twice": ([["a b"], ["a b"], "z z"], {}),
    "normalised ids": ([["a b", "A B"], "A b", "z z"], {"ids": "lower"}),
    "one in a group": ([["a b", "A B"], ["A b"], "z z"], {"ids": "lower"}),
    "tidied texts": ([["A b!", "a  B"], "“a b”", "z z"], {"by": "exact"}),
    "words": ([["A b!", "a  B"], "“a b”", "z z"], {"by": "rouge"}),
    "contained": ([["A b!", "a  B"], "“a b”", "z z"], {"by": "containment"}),
}


@pytest.mark.parametrize("name", COLLAPSED)
@pytest.mark.parametrize("company", [False, True], ids=["alone", "in company"])
def test_a_group_of_one_document_is_that_document(name: str, company: bool, tmp_path: Path) -> None:
    gold, options = COLLAPSED[name]
    records = [{"query": "q", "retrieved": ["a b", "x y"], "gold": gold}]
    if company:  # of support, which makes items stay apart in its own query only
        told = [{"docs": {"b b": 0.5}}, {"docs": {"b b": 1}}]
        records.append({"query": "r", "retrieved": ["b b"], "gold": told})
    lists = [{**each, "gold": [[e] if isinstance(e, str) else e for e in gold]} for each in records]
    forms: list[Any] = [records]
    if not company:
        forms += [lists, pl.DataFrame(lists), tmp_path / "a.jsonl"]
        (tmp_path / "a.jsonl").write_text(json.dumps(lists[0]) + "\n", encoding="utf-8")
    for given in forms:
        found = findwell.evaluate(given, None, ["recall", "num_rel"], **grouped(options)).per_query
        values = found.filter(pl.col("query") == "q")["value"].to_list()
        assert values == [0.5, 2.0], given


def test_subtopics_of_one_document_stay_items_of_their_own(save: Save) -> None:
    gold = save("gold.qrels", "q 1 a 1\nq 2 a 1\nq 3 B 1\nq 4 b 1\n")
    for ids in ("identity", "lower"):
        result = findwell.evaluate(
            {"q": ["a"]}, gold, ["recall", "num_rel"], reading=findwell.Reading(ids=ids)
        )
        assert list(result.values.values()) == [0.5, 4.0]
    named = save("gold.csv", "query,doc,grade,group\nq,a,1,one\nq,a,1,two\nq,A,1,\nq,a,1,\n")
    for ids, items in (("identity", 4.0), ("lower", 3.0)):
        assert (
            findwell.evaluate({"q": ["a"]}, named, "num_rel", reading=findwell.Reading(ids=ids))[
                "num_rel"
            ]
            == items
        )
