"""`karat score --judge`: the local judge, a language model on loopback, dry runs, bad options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Karat, Save

RECORDS = [
    {
        "user_input": "What is the capital of Brazil?",
        "retrieved_contexts": [
            "Brasília is the capital of Brazil. It was founded on April 21, 1960.",
            "Cats purr when they are content.",
        ],
        "reference": "The capital of Brazil is Brasília, established on April 21, 1960.",
    }
]
FOUR = ("context_precision", "context_recall", "context_entities_recall", "context_relevancy")


@pytest.fixture
def samples(save: Save) -> Path:
    return save("samples.jsonl", "\n".join(map(json.dumps, RECORDS)))


def _measures(*names: str) -> list[str]:
    return [part for name in names for part in ("-m", name)]


def test_the_four_metrics_without_key_or_network(cli: Karat, samples: Path) -> None:
    done = cli("score", samples, *_measures(*FOUR), "--judge", "local:text", "--format", "json")
    assert done.code == 0, done
    shown = json.loads(done.out)
    values = {row["measure"]: row["value"] for row in shown["summary"]}
    assert values["AP(over=retrieved)/relevance"] == 1.0
    assert values["recall/entities"] == 1.0
    assert values["P/statements"] < 1.0


def test_the_judge_is_named(cli: Karat, samples: Path) -> None:
    done = cli("score", samples, "-m", "context_precision", "--judge", "local:text")
    assert "judge local:text" in done.out


def test_a_dry_run_asks_nobody(cli: Karat, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    command: list[Any] = ["score", samples, *_measures(*FOUR), "--dry-run", "--no-cache"]
    command += ["--judge", "openai:some-model", "--base-url", "http://127.0.0.1:9/v1"]
    done = cli(*command, "--format", "json")
    assert done.code == 0, done
    forecast = json.loads(done.out)["forecast"]
    assert 1 <= forecast["calls"] <= 3
    assert forecast["prompt_tokens"] > 100
    table = cli(*command)
    assert "nothing was asked" in table.out
    assert "sk-not" not in done.out + done.err + table.out + table.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge", "locl"], "did you mean local?"),
        (["--judge", "local:text", "--dry-run"], "asks nobody"),
        (["--judge", "local:text", "--votes", "3"], "takes no votes"),
        (["--judge", "openai:m", "--refresh", "--no-cache"], "exclude each other"),
        (["--judge", "replay:nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_options(options: list[str], said: str, cli: Karat, samples: Path) -> None:
    done = cli("score", samples, "-m", "context_precision", *options)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_the_card_of_a_model_can_be_rehearsed(
    cli: Karat, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    label = {"question": "Why?", "chunk": "Because.", "label": 1}
    labels = save("labels.jsonl", json.dumps(label))
    judge = ("--judge", "openai:some-model", "--base-url", "http://127.0.0.1:9/v1")
    done = cli("judge-card", labels, *judge, "--dry-run", "--no-cache", "--format", "json")
    assert done.code == 0, done
    assert json.loads(done.out)["forecast"]["calls"] == 1
