"""`findwell questions`: a model on loopback writes, and what it wrote is scored."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.server import Barrier, serve
from tests.labels.author import corpus, kind_of, spoilt, well
from tests.sample import jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client.server import Server
    from tests.conftest import Findwell, Save

ROOT = Path(__file__).parents[2]


@pytest.fixture
def documents(save: Save) -> Path:
    for name, text in corpus().items():
        save(f"docs/{name}.md", text)
    return save("docs/short.md", "Nothing.").parent


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-not-to-be-seen-0123456789")
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    with serve(well) as started:
        monkeypatch.setenv("FINDWELL_BASE_URL", started.url)
        yield started


def asked(documents: Path, *more: object) -> list[object]:
    return ["questions", "--corpus", documents, "--judge", "openai:some-model", *more]


@pytest.mark.usefixtures("server")
def test_what_is_written_can_be_scored(
    cli: Findwell, documents: Path, tmp_path: Path, save: Save
) -> None:
    file = tmp_path / "questions.jsonl"
    done = cli(*asked(documents, "-n", 10, "-o", file))
    assert (done.code, done.err) == (0, "")
    assert "synthetic questions · 10 · openai:some-model" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    records = [json.loads(line) for line in file.read_text().splitlines()]
    run = [
        {"query": each["query"], "retrieved": [span["doc"] for span in each["gold"]] or ["doc1.md"]}
        for each in records
    ]
    score = ["score", save("run.jsonl", jsonl(run)), "--gold", file, "--by", "spans"]
    score += ["--corpus", documents, "-m", "recall@5"]
    shown = cli(*score, "--slice", "kind", "--format", "json")
    result = shown.answer
    assert result["summary"][0]["value"] == 1.0
    assert (result["summary"][0]["n"], result["summary"][0]["undefined"]) == (9, 1)
    assert result["synthetic"] == 10
    assert "synthetic-question" in [each["kind"] for each in result["findings"]]
    values = {row["slice"]: row["value"] for row in result["slices"]}
    assert values == {
        "single-hop": 1.0, "paraphrased": 1.0, "multi-hop": 1.0, "unanswerable": None
    }  # fmt: skip
    table = cli(*score)
    assert "10 queries (10 synthetic)" in table.out
    assert "written by openai:some-model" in table.err
    text = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-not" not in text + done.out.encode()


@pytest.mark.usefixtures("server")
def test_printed_questions_are_the_only_data(cli: Findwell, documents: Path) -> None:
    done = cli(*asked(documents, "-n", 4, "-o", "-", "--share", "single-hop=1"))
    assert done.code == 0
    assert [json.loads(line)["kind"] for line in done.out.splitlines()] == ["single-hop"] * 4


def test_json_says_how_they_were_made(
    cli: Findwell, documents: Path, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "questions.jsonl"
    server.script = spoilt(
        lambda call, said: said | {"question": ""} if kind_of(call) == "multi-hop" else said
    )
    done = cli(*asked(documents, "-n", 10, "-o", file, "--format", "json", "--seed", 3))
    shown = done.answer
    reason = "the model found nothing to ask"
    assert shown["dropped"] == [{"kind": "multi-hop", "reason": reason, "count": 6}]
    assert shown["summary"][2] == {"kind": "multi-hop", "wanted": 2, "drafts": 6, "kept": 0}
    assert shown["judge"]["calls"] == len(server.calls)
    assert (shown["seed"], shown["synthetic"]) == (3, True)
    [found] = shown["findings"]
    assert (found["kind"], found["count"]) == ("too-few-questions", 2)
    assert "multi-hop: 0 of 2" in done.err
    table = cli(*asked(documents, "-n", 10, "-o", file, "--seed", 3))
    assert reason in table.out
    manifest = json.loads((tmp_path / "questions.manifest.json").read_text())
    assert manifest["judge"]["calls"] == 0  # the second time all was in the cache


def test_a_dry_run_asks_nobody(cli: Findwell, documents: Path, server: Server) -> None:
    done = cli(*asked(documents, "-n", 10, "--dry-run", "-J", "prices=1,2"))
    assert done.code == 0, done
    assert done.out.startswith("calls: 31 (0 more are in the cache)")
    assert "nothing was asked" in done.out
    assert not server.calls
    assert cli(*asked(documents, "-n", 10, "-o", "-")).code == 0
    assert len(server.calls) == 31
    again = cli(*asked(documents, "-n", 10, "--dry-run", "--format", "json"))
    assert again.answer["forecast"]["calls"] == 0


def test_without_a_question_nothing_is_written(
    cli: Findwell, documents: Path, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "questions.jsonl"
    done = cli(*asked(documents, "-n", 4, "-o", file, "-J", "max_calls=0"))
    assert done.code == 3, done
    assert not file.exists()
    assert not server.calls
    assert "not written: budget" in done.out
    assert "with a higher limit" in done.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--judge", "local", "-o", "-"), "the judge local cannot write questions"),
        (("--judge", "openai:m"), "no file for the questions"),
        (("--judge", "openai:m", "-o", "no/such/file"), "there is no folder 'such'"),
        (("--judge", "openai:m", "-o", "."), "it is a folder"),
        (("--judge", "openai:m", "-o", "-", "--share", "x"), "is not KIND=SHARE"),
        (("--judge", "openai:m", "-o", "-", "--share", "multihop=1"), "did you mean multi-hop"),
        (("--judge", "openai:m", "-o", "-", "-n", "0"), "0 must be at least 1"),
        (("--judge", "openai:m", "-o", "-", "--corpus", "nowhere"), "nowhere"),
        (
            ("--judge", "openai:m", "-o", "-", "-J", "cache=never"),
            "-J cache: 'never' is not one of",
        ),
        (("--judge", "openai:m", "-o", "-", "-J", "max_cost=1"), "needs prices"),
    ],
)
def test_mistakes_cost_nothing(
    more: tuple[str, ...], message: str, cli: Findwell, documents: Path, server: Server
) -> None:
    done = cli("questions", "--corpus", documents, *more)
    assert done.code == 2, done
    assert message in done.err
    assert "Traceback" not in done.err
    assert not server.calls


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_killed_it_goes_on_where_it_was(
    documents: Path, server: Server, tmp_path: Path, cli: Findwell
) -> None:
    file, concurrency = tmp_path / "questions.jsonl", 4
    command = asked(documents, "-n", 10, "-o", file, "-J", f"concurrency={concurrency}")
    server.script = barrier = Barrier(13, well)
    arguments: list[Any] = [sys.executable, "-m", "findwell", *map(str, command)]
    process = subprocess.Popen(arguments, cwd=ROOT)
    assert barrier.reached.wait(60)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not file.exists()
    barrier.opened.set()
    server.script = well
    assert cli(*command).code == 0
    assert len(file.read_text().splitlines()) == 10
    # only what was under way when it was killed is asked a second time
    assert 31 <= len(server.calls) <= 31 + concurrency
    assert max(server.prompts.values()) <= 2
