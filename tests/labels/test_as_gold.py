"""Labels are accepted wherever a gold is, whatever they come in."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.judges.cards.labels import load_labels

if TYPE_CHECKING:
    from pathlib import Path

RUN = {"q1": ["a", "b"], "q2": ["c", "d"]}
TEXTS = {"a": "Press the red button.", "b": "Call us.", "c": "It costs 5.", "d": "Two."}
QUESTIONS = {"q1": "How do I start it?", "q2": "What does it cost?"}
GRADES = {("q1", "a"): 2, ("q1", "b"): 0, ("q2", "c"): 0, ("q2", "d"): 1}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    findwell.labels.pool([RUN], tmp_path / "pool", queries=QUESTIONS, corpus=TEXTS)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        for (query, doc), grade in GRADES.items():
            labels.set(query, doc, grade)
    return tmp_path / "pool"


def test_a_pool_its_file_and_the_object_are_the_same_gold(pool: Path) -> None:
    expected = {"q1": {"a": 2, "b": 0}, "q2": {"c": 0, "d": 1}}
    values = findwell.evaluate(RUN, expected, ["RR", "nDCG@2", "P@1"]).values
    assert values["RR"] == 0.75
    with findwell.labels.Labels.open(pool) as labels:
        for gold in (pool, str(pool), pool / "labels.db", labels, labels.gold()):
            assert findwell.evaluate(RUN, gold, ["RR", "nDCG@2", "P@1"]).values == values


def test_a_query_whose_labels_are_all_irrelevant_is_in_the_gold(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q2", "d", 0)
    gold = findwell.io.load_gold(pool)
    assert gold.queries["query"].to_list() == ["q1", "q2"]
    assert gold.queries["question"].to_list() == list(QUESTIONS.values())


def test_labels_that_another_process_has_not_closed_are_read(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q1", "b", 3)
        assert findwell.io.load_gold(pool).rows().sort("doc")["grade"].to_list() == [
            2.0,
            3.0,
            0.0,
            1.0,
        ]


def test_selected_characters_become_places(tmp_path: Path) -> None:
    run = [
        {
            "query": "q1",
            "question": "How?",
            "retrieved": [
                {
                    "id": "c7",
                    "text": "Press the red button.",
                    "source": "d",
                    "start": 100,
                    "end": 121,
                }
            ],
        }
    ]
    findwell.labels.pool([run], tmp_path / "pool")
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        labels.set("q1", "c7", 1, start=10, end=20)
    rows = findwell.io.load_gold(tmp_path / "pool", texts=True).rows()
    assert rows.select("text", "start", "end", "source").row(0) == ("red button", 110, 120, "d")
    other = [{"query": "q1", "retrieved": [{"id": "x", "source": "d", "start": 90, "end": 125}]}]
    found = findwell.evaluate(other, tmp_path / "pool", ["recall@1/spans"]).values
    assert found == {"recall@1/spans": 1.0}


PAIRS = [
    {"question": QUESTIONS[query], "chunk": TEXTS[doc], "label": grade}
    for (query, doc), grade in GRADES.items()
]


def test_what_a_judge_card_takes_is_a_gold(tmp_path: Path) -> None:
    run = [
        {"question": QUESTIONS[query], "contexts": [TEXTS[doc] for doc in docs]}
        for query, docs in RUN.items()
    ]
    lines = tmp_path / "pairs.jsonl"
    lines.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    (tmp_path / "pairs.json").write_text(json.dumps(PAIRS))
    pl.DataFrame(PAIRS).write_csv(tmp_path / "pairs.csv")
    given: list[object] = [PAIRS, pl.DataFrame(PAIRS), lines]
    for gold in (*given, tmp_path / "pairs.json", tmp_path / "pairs.csv"):
        assert findwell.evaluate(run, gold, ["RR", "P@1"]).values == {"RR": 0.75, "P@1": 0.5}  # type: ignore[arg-type]
    for gold in given:
        assert load_labels(gold).labels == (2, 0, 0, 1)


def test_pairs_without_a_label_are_left_out() -> None:
    gold = findwell.io.load_gold([*PAIRS, {"question": "Why?", "chunk": "So.", "label": None}])
    assert gold.queries.height == 2
    assert [found.count for found in gold.findings if found.kind == "no-label"] == [1]


def test_rows_of_several_annotators_are_one_label(tmp_path: Path) -> None:
    rows = [
        {"query": "q", "doc": "a", "grade": grade, "annotator": name, "state": "labelled"}
        for name, grade in (("ann", 0), ("ben", 0), ("eva", 3))
    ]
    assert findwell.io.load_gold(rows).rows()["grade"].to_list() == [0.0]
    rows.append(rows[0] | {"grade": 3, "annotator": "kim", "state": "adjudicated"})
    pl.DataFrame(rows).write_csv(tmp_path / "labels.csv")
    assert findwell.io.load_gold(tmp_path / "labels.csv").rows()["grade"].to_list() == [3.0]


def test_a_judge_card_takes_a_pool(pool: Path) -> None:
    found = load_labels(pool)
    assert found.labels == (2, 0, 0, 1)
    assert found.chunks[0] == TEXTS["a"]
    card = findwell.judges.card(pool, judge=lambda sample: {"relevance": [1] * len(sample.chunks)})
    assert card.pairs == 4


def test_another_database_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    with pytest.raises(InputError, match="it is an SQLite database"):
        findwell.io.load_gold(tmp_path / "other.db")
    with pytest.raises(InputError, match="holds no labels of findwell"):
        findwell.io.load_gold(tmp_path / "other.db", format="labels")
    with pytest.raises(InputError, match="holds no labels of findwell"):
        findwell.labels.Labels.open(tmp_path / "other.db")
