"""`findwell score --judge`: the local judge, a model on loopback, dry runs, bad options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.server import Server, chat, serve
from tests.judges.model import well
from tests.judges.single_model import by_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Findwell, Save

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


def test_the_four_metrics_without_key_or_network(cli: Findwell, samples: Path) -> None:
    done = cli("score", samples, *_measures(*FOUR), "--judge", "local:text", "--format", "json")
    assert done.code == 0, done
    shown = done.answer
    values = {row["measure"]: row["value"] for row in shown["summary"]}
    assert values["context_precision"] == 1.0
    assert values["context_entities_recall"] == 1.0
    assert values["context_relevancy"] < 1.0


def test_the_judge_is_named(cli: Findwell, samples: Path) -> None:
    done = cli("score", samples, "-m", "context_precision", "--judge", "local:text")
    assert "judge local:text" in done.out


def test_a_dry_run_asks_nobody(
    cli: Findwell, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-not-to-be-seen")
    command: list[Any] = ["score", samples, *_measures(*FOUR), "--dry-run", "-J", "cache=off"]
    command += ["--judge", "openai:some-model", "-J", "base_url=http://127.0.0.1:9/v1"]
    done = cli(*command, "--format", "json")
    assert done.code == 0, done
    forecast = done.answer["forecast"]
    assert 1 <= forecast["calls"] <= 3
    assert forecast["prompt_tokens"] > 100
    table = cli(*command)
    assert "nothing was asked" in table.out
    assert "sk-not" not in done.out + done.err + table.out + table.err


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, list[str]]]:
    """Return a server with a sensible model, and how to ask it."""
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-not-to-be-seen")
    with serve(well) as server:
        yield (
            server,
            ["--judge", "openai:some-model", "-J", f"base_url={server.url}", "-J", "cache=off"],
        )


def test_a_model_is_asked(
    cli: Findwell, samples: Path, openai: tuple[Server, list[str]], tmp_path: Path
) -> None:
    server, judge = openai
    prices = ("-J", "prices=1000000,0", "--format", "json", "--save", tmp_path / "saved")
    done = cli("score", samples, *_measures(*FOUR), *judge, *prices)
    assert done.code == 0, done
    assert len(server.calls) == 3
    shown = done.answer
    assert {row["failed"] for row in shown["summary"]} == {0}
    about = shown["judge"]
    assert (about["calls"], about["cost"]) == (3, 30.0)
    assert {call.headers["authorization"] for call in server.calls} == {"Bearer sk-not-to-be-seen"}
    saved = b"".join(path.read_bytes() for path in (tmp_path / "saved").iterdir())
    assert b"sk-not" not in saved + done.out.encode() + done.err.encode()


def test_a_model_is_asked_as_the_options_say(
    cli: Findwell, samples: Path, openai: tuple[Server, list[str]]
) -> None:
    server, judge = openai
    fields = (
        "-J",
        "options.temperature=0.25",
        "-J",
        "options.seed=null",
        "-J",
        "options.effort=low",
    )
    limits = ("-J", "attempts=1", "-J", "timeout=9", "-J", "call_tokens=400", "-J", "concurrency=2")
    done = cli(
        "score", samples, *_measures(*FOUR), *judge, *fields, *limits, "-J", "separate_calls=yes"
    )
    assert done.code == 0, done
    assert len(server.calls) == 5
    body = server.calls[0].body
    assert (body["temperature"], body["effort"]) == (0.25, "low")
    assert "seed" not in body


def test_a_small_model_is_asked_one_by_one(
    cli: Findwell, samples: Path, openai: tuple[Server, list[str]], tmp_path: Path
) -> None:
    server, judge = openai
    server.script = by_token
    asked = ("score", samples, *_measures(*FOUR), *judge, "-J", "ask=single")
    done = cli(*asked, "--format", "json", "-o", "-", "--save", str(tmp_path / "saved"))
    assert done.code == 0, done
    about = done.answer["judge"]
    assert (about["ask"], about["calls"]) == ("single", len(server.calls))
    assert about["single"]["with_probability"] > 10
    query = RECORDS[0]["user_input"]
    shown = cli("explain", str(tmp_path / "saved"), "-q", query, "-m", FOUR[0])
    assert "yes with probability 0.79" in shown.out, shown


def test_what_a_model_did_not_judge_is_counted_and_shown(
    cli: Findwell, samples: Path, openai: tuple[Server, list[str]]
) -> None:
    server, judge = openai
    server.script = lambda _: chat("I would rather not say.")
    done = cli("score", samples, "-m", "context_recall", *judge, "--format", "json")
    assert done.code == 3, done
    assert "not measured: context_recall (samples): no query has a value (failed: " in done.err
    [row] = done.answer["summary"]
    assert (row["value"], row["failed"]) == (None, 1)
    assert len(server.calls) == 3
    gated = cli("score", samples, "-m", "context_recall", *judge, "--require", "failed<=0")
    assert gated.code == 1, gated


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge", "openai:m", "-J", "options.temperature"], "this is not NAME=VALUE"),
        (["--judge", "openai:m", "-J", "prices=1,2,3,4"], "1,2,3,4: cannot be read"),
        (["--judge", "openai:m", "-J", "attempts=0"], "attempts must be at least 1"),
        (["--judge", "openai:m", "-J", "timeout=0"], "timeout must be above 0"),
        (["--judge", "openai:m", "-J", "ask=singel"], "did you mean single?"),
        (["--judge", "openai:m", "-J", "max_failures=2"], "max_failures must be"),
        (["--judge", "local:text", "-J", "ask=single"], "takes no ask"),
        (["--judge", "local:text", "-J", "separate_calls=yes"], "takes no separate_calls"),
        (["--judge", "locl"], "did you mean local"),
        (["--judge", "openai"], "needs the name of a model: openai:MODEL"),
        (["--judge", "local:text", "--dry-run"], "only applies to judges that ask a model"),
        (["--judge", "local:text", "-J", "votes=3"], "takes no votes"),
        (["--judge", "openai:m", "-J", "cache=never"], "-J cache: 'never' is not one of"),
        (
            ["--judge", "openai:m", "-J", "vots=3"],
            "unknown setting 'vots' of -J\n  fix: did you mean votes",
        ),
        (["--judge", "openai:m", "--votes", "3"], "it is a setting: -J votes=N"),
        (["--judge", "replay:nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_options(options: list[str], said: str, cli: Findwell, samples: Path) -> None:
    done = cli("score", samples, "-m", "context_precision", *options)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_the_card_of_a_model_can_be_rehearsed(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-not-to-be-seen")
    label = {"question": "Why?", "chunk": "Because.", "label": 1}
    labels = save("labels.jsonl", json.dumps(label))
    judge = ("--judge", "openai:some-model", "-J", "base_url=http://127.0.0.1:9/v1")
    done = cli("judge", "card", labels, *judge, "--dry-run", "-J", "cache=off", "--format", "json")
    assert done.code == 0, done
    assert done.answer["forecast"]["calls"] == 1


@pytest.fixture
def two(save: Save) -> list[Path]:
    """Return the samples of two systems about the same question."""
    other = RECORDS[0] | {"retrieved_contexts": ["Rio was the capital of Brazil before."]}
    return [save("one.jsonl", json.dumps(RECORDS[0])), save("two.jsonl", json.dumps(other))]


def test_a_dry_run_counts_all_systems_and_the_same_request_once(
    cli: Findwell, two: list[Path], openai: tuple[Server, list[str]]
) -> None:
    server, judge = openai
    named = ("-m", "context_entities_recall", "--format", "json")
    done = cli("compare", *two, *named, *judge, "--dry-run")
    assert done.code == 0, done
    # the entities of the reference are listed once, and looked for in the chunks of both
    assert done.answer["forecast"]["calls"] == 3
    assert not server.calls


def test_one_budget_for_all_systems(
    cli: Findwell, two: list[Path], openai: tuple[Server, list[str]]
) -> None:
    server, judge = openai
    done = cli("compare", *two, "-m", "context_precision", *judge, "-J", "max_calls=1")
    assert done.code == 3, done
    assert "left out" in done.err
    assert "not measured: context_precision (two against one)" in done.err
    assert len(server.calls) == 1
    done = cli("compare", *two, "-m", "context_precision", *judge, "--format", "json")
    assert done.code == 0, done
    told = done.answer
    assert [row["n"] for row in told["comparisons"]] == [1]
    assert told["findings"] == []
    assert len(server.calls) == 3


def test_two_judges_are_not_compared_silently(
    cli: Findwell, two: list[Path], tmp_path: Path
) -> None:
    for name, path, judge in (("a", two[0], "local:text"), ("b", two[1], "local:text(claims=.9)")):
        spec = ("-m", "context_recall", "--judge", judge, "--save", tmp_path / name)
        assert cli("score", path, *spec).code == 0
    done = cli("compare", tmp_path / "a", tmp_path / "b")
    assert done.code == 0, done
    assert "judge: local:text(claims=0.9) instead of local:text" in done.err


def test_a_judged_number_is_explained(cli: Findwell, samples: Path) -> None:
    done = cli("explain", samples, "-m", "context_recall", "--judge", "local:text")
    assert done.code == 0, done
    assert "what the judge local:text said" in done.out
    assert "context_recall (findwell) = " in done.out


def test_a_judged_measure_at_many_cutoffs_is_asked_for_once(
    cli: Findwell, samples: Path, openai: tuple[Server, list[str]]
) -> None:
    server, judge = openai
    named = ("-m", "context_recall", "--at", "1,2,5", "--format", "json")
    guess = cli("curve", samples, *named, *judge, "--dry-run")
    assert (guess.answer["forecast"]["calls"], len(server.calls)) == (1, 0)
    done = cli("curve", samples, *named, *judge)
    assert done.code == 0, done
    assert [row["k"] for row in done.answer["curve"]] == [1, 2, 5]
    assert len(server.calls) == 1
