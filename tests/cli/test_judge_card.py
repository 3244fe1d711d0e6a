"""`findwell judge card` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.judges.cards.card import JudgeCard, find_cards
from tests.client.server import serve
from tests.judges.model import well

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

ROWS = [
    {
        "question": f"Where is city{n}?",
        "chunk": chunk,
        "label": label,
        "region": "north" if n % 2 else "south",
    }
    for n in range(12)
    for chunk, label in ((f"It is city{n}, where the river ends.", 1), ("Tea is brown.", 0))
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def labels(save: Save) -> Path:
    return save("labels.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))


def test_a_card_is_printed_and_kept(cli: Findwell, labels: Path) -> None:
    done = cli("judge", "card", labels, "--judge", "local:text")
    assert done.code == 0
    assert "local:text · relevance · 24 labels of labels.jsonl, 12 questions" in done.out
    for line in ("kappa", "accuracy", "precision", "recall", "bias", "judge 0", "people 1"):
        assert line in done.out
    assert "note: card saved in" in done.err
    [card] = find_cards("local:text")
    assert card["kappa"].value == 1.0


def test_json_markdown_and_files(cli: Findwell, labels: Path, tmp_path: Path) -> None:
    output, kept = tmp_path / "card.md", tmp_path / "kept.json"
    done = cli(
        "judge", "card", labels, "--judge", "local:text", "--save", "none", "--format", "json"
    )
    shown = done.answer
    assert shown["pairs"] == 24
    assert shown["figures"][0]["statistic"] == "kappa"
    assert find_cards("local:text") == []
    arguments = ("--format", "markdown", "-o", output, "--save", kept)
    done = cli("judge", "card", labels, "--judge", "local:text", *arguments)
    assert (done.code, done.out) == (0, "")
    assert "| kappa" in output.read_text()
    assert JudgeCard.load(kept).judge == "local:text"
    assert find_cards("local:text") == []


def test_slices(cli: Findwell, labels: Path) -> None:
    done = cli("judge", "card", labels, "--judge", "local:text", "--slice", "region")
    assert done.code == 0
    assert "by region" in done.out
    assert "north" in done.out


def test_no_card_of_the_labels_that_taught(cli: Findwell, labels: Path, tmp_path: Path) -> None:
    judge = tmp_path / "judge.json"
    assert cli("judge", "teach", "--labels", labels, "--judge", "local:text", "-o", judge).code == 0
    done = cli("judge", "card", labels, "--judge", judge, "--save", "none")
    assert done.code == 2
    assert "12 of the 12 questions taught" in done.err
    assert "held-out" in done.err


def test_calibration_is_shown_where_there_are_probabilities(cli: Findwell, labels: Path) -> None:
    done = cli("judge", "card", labels, "--judge", "local:text", "--save", "none")
    assert "calibration: 24 verdicts with a probability" in done.out
    assert "expected calibration error" in done.out
    shown = cli(
        "judge", "card", labels, "--judge", "local:text", "--save", "none", "--format", "json"
    ).answer
    found = findwell.judges.card(labels, judge="local:text").calibration
    assert found is not None
    assert shown["calibration"]["brier"] == found.brier
    assert sum(each["n"] for each in shown["calibration"]["bins"]) == 24


def test_judges_side_by_side(cli: Findwell, labels: Path) -> None:
    judges = ("--judge", "local:text", "--judge", "local:text(relevance=0.99)")
    done = cli("judge", "card", labels, *judges)
    assert done.code == 0
    first, second = (line for line in done.out.splitlines() if line.startswith(" local:text"))
    assert first.split()[:2] == ["local:text", "1.0000"]
    assert second.split()[:2] == ["local:text(relevance=0.99)", "0.0000"]
    assert "−1.0000" in second
    assert done.err.count("note: card saved in") == 2
    assert find_cards("local:text(relevance=0.99)")
    asked = ("judge", "card", labels, *judges, "--save", "none", "--format", "json", "-o", "-")
    shown = cli(*asked).answer
    assert [each["judge"] for each in shown["judges"]] == [*judges[1::2]]
    assert shown["differences"][0]["value"] == -1.0
    done = cli("judge", "card", labels, *judges, "--save", "x.json")
    assert done.code == 2
    assert "several judges were given" in done.err


def test_probing_says_before_what_it_takes(cli: Findwell, labels: Path) -> None:
    with serve(well) as server:
        asked = ("--judge", "openai:some-model", "-J", f"base_url={server.url}", "--probe-bias")
        planned = cli("judge", "card", labels, *asked, "--dry-run")
        assert planned.out.startswith("calls: 36 (0 more are in the cache)")
        assert not server.calls
        done = cli("judge", "card", labels, *asked, "--save", "none", "--judge", "local:text")
        assert done.code == 0
        assert "note: probing for bias takes about 24 calls more" in done.err
        assert len(server.calls) == 36
        assert "openai:some-model · probed for bias with 24 calls" in done.out
        assert "local:text · probed for bias with 0 calls" in done.out
    done = cli("judge", "card", labels, "--judge", "local:text", "--dry-run")
    assert done.code == 2
    assert "only applies to judges that ask a model" in done.err


def test_judgements_by_id(cli: Findwell, save: Save) -> None:
    done = cli(
        "judge",
        "card",
        save("qrels.txt", "q1 0 d1 1\nq1 0 d2 0\n"),
        "--corpus",
        save("corpus.tsv", "d1\tRome is in Italy.\nd2\tTea is brown.\n"),
        "--queries",
        save("queries.tsv", "q1\tWhere is Rome?\nq2\tWho?\n"),
        "--judge",
        "local:text",
    )
    assert done.code == 0
    assert "2 labels of qrels.txt, 1 question" in done.out


def test_pairs_without_a_label_are_told(cli: Findwell, save: Save) -> None:
    rows = [*ROWS, {**ROWS[0], "label": None}]
    path = save("labels.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = cli("judge", "card", path, "--judge", "local:text", "--save", "none")
    assert "1 pairs have no label" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "locl"], "did you mean local"),
        (["--judge", "local:text", "--slice", "regoin"], "did you mean region"),
        (["--aspect", "entities"], "--aspect: 'entities' is not one of"),
        (["--judge", "local:text", "--level", "3"], "the level is 3"),
        (
            ["--judge", "local:text", "--judge", "local:text(relevance=0.4)", "-J", "votes=3"],
            "votes",
        ),
        (
            ["--judge", "local:text", "--judge", "local:text"],
            "two different judges or more are compared",
        ),
    ],
)
def test_mistakes_are_named(
    cli: Findwell, labels: Path, arguments: list[str], message: str
) -> None:
    done = cli("judge", "card", labels, *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_a_file_that_is_not_there(cli: Findwell, tmp_path: Path) -> None:
    done = cli("judge", "card", tmp_path / "none.jsonl")
    assert done.code == 2
    assert "none.jsonl" in done.err
