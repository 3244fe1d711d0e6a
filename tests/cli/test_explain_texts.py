"""`findwell explain` over texts: which sentence met which gold, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import findwell
from tests.sample import jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

RECORD = {
    "query": "q1",
    "question": "How long does it charge?",
    "retrieved": [
        {"doc": "manual#2", "text": "Press the red button. Charging takes about four hours."},
        {"doc": "faq#1", "text": "The battery is full after four hours of charging. Then ride."},
        {"doc": "faq#9", "text": "Then ride."},
    ],
    "gold": [
        {"doc": "manual", "text": "Charging takes about four hours. Do not charge below zero."}
    ],
}


@pytest.fixture
def path(save: Save) -> Path:
    return save("samples.jsonl", jsonl([RECORD]))


def cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in line.split(separator) if cell.strip()]


def test_the_terminal_shows_sentences_and_scores(path: Path, cli: Findwell) -> None:
    done = cli("explain", path, "-q", "q1", "--by", "rouge-sentence", "-m", "P@1", "-m", "recall@2")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "the list (5 units, by rouge-sentence(threshold=0.8))" in lines
    (hit,) = (line for line in lines if "✓ hit  " in line)
    assert cells(hit, "   ") == [
        "2", "manual#2", "1", "Charging takes about four hours.", "✓ hit", "item 1",
        "1.0000 item 1", "0.5000", "1.0000", "1.0000",
    ]  # fmt: skip
    (near,) = (line for line in lines if "after four hours" in line)
    assert cells(near, "   ")[2:] == [
        "2", "The battery is full after four hours of charging.", "·", "0.4000 item 1", "0.3333",
    ]  # fmt: skip
    assert any("= repeated" in line for line in lines)
    assert "the gold (1 of 2 relevant items found, by rouge-sentence(threshold=0.8))" in lines
    assert "P@1 (findwell) = (1.0000) ÷ 2 units retrieved = 0.5000" in done.out


def test_markdown(path: Path, cli: Findwell) -> None:
    done = cli("explain", path, "--by", "rouge-sentence", "-m", "recall@1", "--format", "markdown")
    hit = (
        "| 2 | manual#2 | 1 | Charging takes about four hours. | ✓ hit | item 1 | 1.0000 item 1 |"
        " 0.5000 | 1.0000 |"
    )
    assert hit in done.out.splitlines()
    assert "| 2 | Do not charge below zero. | 1 | missed |" in done.out.splitlines()


def test_json(path: Path, cli: Findwell) -> None:
    by = "rouge-sentence(threshold=0.4)"
    done = cli("explain", path, "--by", by, "-m", "recall@2", "--format", "json")
    (told,) = done.answer["explanations"]
    (ranking,) = told["rankings"]
    assert ranking["relation"] == by
    assert ranking["read_by"] == [["recall@2", "findwell"]]
    assert [item["docs"] for item in ranking["items"]] == [
        ["Charging takes about four hours."],
        ["Do not charge below zero."],
    ]
    steps: list[dict[str, Any]] = ranking["steps"]
    assert [(step["chunk"], step["mark"], step["covers"], step["scores"]) for step in steps] == [
        (1, "miss", [], []),
        (1, "hit", [1], [[1, 1.0]]),
        (2, "again", [1], [[1, 0.4]]),
        (2, "miss", [], []),
        (3, "repeated", [], []),
    ]
    assert steps[1]["text"] == "Charging takes about four hours."
    assert told["calculations"][0]["value"] == 0.5


def test_chunks_show_their_best_scores() -> None:
    golds = ["a b c d", "a b x y", "a z z z", "q r s t", "a b c z"]
    record = {"query": "q", "retrieved": ["a b c d"], "gold": golds}
    (told,) = findwell.explain([record], measures="recall", by="rouge(threshold=0.75)")
    (step,) = told.ranking
    assert step.covers == (1, 5)
    assert step.scores == ((1, 1.0), (5, 0.75), (2, 0.5))
    assert step.chunk is None


def test_under_a_dialect_the_scores_are_its_own() -> None:
    record = {"retrieved_context": ["d e. a b c"], "ground_truth_context": ["a b c d"]}
    for dialect, score in (("findwell", 0.75), ("continuous-eval", 1.0)):
        (told,) = findwell.explain([record], measures="recall", by="rouge", dialects=dialect)
        assert told.ranking[0].scores == ((1, score),)


def test_spans_show_the_share_of_characters() -> None:
    chunks = [{"doc": "d", "start": 0, "end": 6}, {"doc": "d", "start": 6, "end": 20}]
    record = {"query": "q", "retrieved": chunks, "gold": [{"doc": "d", "start": 2, "end": 12}]}
    (told,) = findwell.explain([record], measures="recall", by="spans")
    assert [step.text for step in told.ranking] == ["d[0:6]", "d[6:20]"]
    assert [step.covers for step in told.ranking] == [(), (1,)]
    shares = [share for step in told.ranking for _, share in step.scores]
    assert shares == pytest.approx([0.4, 0.6])


def test_equal_texts_have_no_scores() -> None:
    record = {"query": "q", "retrieved": ["A text."], "gold": ["a text"]}
    (told,) = findwell.explain([record], measures="recall", by="exact")
    assert told.ranking[0].scores == ()
    assert told.ranking[0].covers == (1,)
