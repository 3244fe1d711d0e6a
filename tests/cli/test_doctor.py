"""`findwell doctor`: what is installed, and whether the files of a project fit each other."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import tomllib
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.evaluation import installation
from findwell.io import doctor
from findwell.judges.client.providers import OPENAI

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.judges.client.endpoint import Endpoint
    from tests.conftest import Findwell, Save

DEMO = Path(findwell.__file__).parent / "demo"
WORDS = ["battery", "brake", "motor", "chain", "pedal", "cable", "tyre", "pump", "saddle", "light"]
TEXTS = [
    f"Check the {WORDS[n % 10]} before the {WORDS[n // 10]}, then wait {n} minutes and look again."
    for n in range(60)
]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, and leave out model servers on the usual ports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(installation, "PROVIDERS", {"openai": OPENAI})


def jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in records)


def lines(cli: Findwell, *arguments: object) -> dict[str, dict[str, str]]:
    """Return the last line about each thing of a project."""
    done = cli("doctor", *arguments, "--format", "json")
    assert done.code == 0, done.err
    return {each["about"]: each for each in done.answer["project"]}


def unlike_ids(save: Save) -> None:
    """Write a gold with UUIDs, and a run with the hashes of the same texts."""
    gold = [
        {"query": f"q{n}", "gold": [{"id": str(uuid.UUID(int=n + 2**100)), "text": TEXTS[n]}]}
        for n in range(30)
    ]
    save("gold.jsonl", jsonl(gold))
    run = [
        {
            "query": f"q{n}",
            "retrieved": [
                {"id": hashlib.md5(text.encode()).hexdigest(), "text": text}
                for text in TEXTS[n + (n % 5 == 0) : n + 6]
            ],
        }
        for n in range(30)
    ]
    save("dense.jsonl", jsonl(run))


def test_the_demo(cli: Findwell, tmp_path: Path) -> None:
    assert cli("demo", "--files", tmp_path).code == 0
    found = lines(cli, ".")
    assert found["relation"]["state"] == "ok"
    assert found["relation"]["sentence"].startswith("97% of the gold items are in a list by ids")
    assert found["baseline"]["sentence"] == "compare the others with bm25: its name says bm25"
    assert found["corpus"]["state"] == "ok"
    assert "1 of 95 of bm25" in found["lists"]["sentence"]
    assert found["power"]["sentence"].startswith("91 queries can show a difference of 0.14")
    for each in found.values():
        words = each["command"].split()
        if words and "RETRIEVER" not in words:
            assert cli(*words[1:]).code == 0, each


def test_ids_that_never_meet_are_said_with_the_relation_that_fits(
    cli: Findwell, save: Save, tmp_path: Path
) -> None:
    """The classic silent 0: hashes on one side, UUIDs on the other."""
    unlike_ids(save)
    found = lines(cli, tmp_path)["relation"]
    assert found["state"] == "broken"
    assert found["sentence"].startswith("0% of the gold items are in a list by ids, 80% by exact")
    assert found["command"].endswith("--by exact")
    assert cli(*found["command"].split()[1:]).code == 0
    assert cli("init").code == 0
    assert tomllib.loads((tmp_path / "findwell.toml").read_text())["by"] == "exact"
    assert (
        "# 80% of the gold items are in a list by exact, 0% by ids"
        in (tmp_path / "findwell.toml").read_text()
    )
    assert lines(cli)["relation"]["state"] == "ok"  # as the file now says it


def test_ids_without_texts_say_why(cli: Findwell, save: Save) -> None:
    gold = [{"query": f"q{n}", "gold": [str(uuid.UUID(int=n + 2**100))]} for n in range(12)]
    save("gold.jsonl", jsonl(gold))
    hashes = [hashlib.md5(text.encode()).hexdigest() for text in TEXTS]
    save("run.jsonl", jsonl([{"query": f"q{n}", "retrieved": hashes[n:]} for n in range(12)]))
    found = lines(cli, "run.jsonl", "--gold", "gold.jsonl")["relation"]
    assert found["state"] == "broken"
    assert "ids of the run are hashes, those of the gold are UUIDs" in found["sentence"]


def test_chunks_of_labelled_documents_are_normalised(cli: Findwell, save: Save) -> None:
    save("gold.jsonl", jsonl([{"query": f"q{n}", "gold": [f"doc{n}"]} for n in range(12)]))
    run = [{"query": f"q{n}", "retrieved": [f"doc{n}#3", f"doc{n + 1}#1"]} for n in range(12)]
    save("run.jsonl", jsonl(run))
    found = lines(cli, ".")["relation"]
    assert found["state"] == "broken"
    assert "100% by ids (with --read ids=chunk-to-doc:#)" in found["sentence"]
    assert cli("init").code == 0
    assert tomllib.loads(Path("findwell.toml").read_text())["read"] == {"ids": "chunk-to-doc:#"}
    assert (
        cli("score", "-m", "recall@5", "--format", "csv").out.splitlines()[1].split(",")[2] == "1.0"
    )


def test_places_and_the_labels_that_a_chunker_cuts(cli: Findwell, save: Save) -> None:
    """Chunks of 40 characters, whose ids no label has, and labels that cross a border."""
    text = " ".join(TEXTS[:10])
    save("docs.jsonl", jsonl([{"id": "manual", "text": text}]))
    label = text.index("before")  # from 18 on: the second label crosses 40
    gold = [{"doc": "manual", "start": label, "end": label + 10}]
    other = [{"doc": "manual", "start": 35, "end": 47}]
    records = [{"query": "q0", "gold": gold}, {"query": "q1", "gold": other}]
    save("gold.jsonl", jsonl(records))
    chunks = [
        {"id": f"c{n}", "source": "manual", "start": n * 40, "end": n * 40 + 40}
        for n in range(len(text) // 40)
    ]
    save("run.jsonl", jsonl([{"query": f"q{n}", "retrieved": chunks[:3]} for n in range(2)]))
    found = lines(cli, ".")
    assert found["relation"]["state"] == "ok"
    assert "by spans" in found["relation"]["sentence"]
    assert found["labels"]["state"] == "look"
    assert "the chunks of run cut 1 of 2 labels" in found["labels"]["sentence"]


def test_a_corpus_of_other_texts_is_broken(cli: Findwell, save: Save) -> None:
    unlike_ids(save)
    save("corpus.jsonl", jsonl([{"id": "x", "text": "Nothing of this was ever retrieved."}]))
    found = lines(cli, "dense.jsonl", "--gold", "gold.jsonl", "--corpus", "corpus.jsonl")["corpus"]
    assert found["state"] == "broken"
    assert found["sentence"].endswith("the corpus has 0 by id and 0 by text")
    save("corpus.jsonl", jsonl([{"id": "x", "text": " ".join(TEXTS)}]))
    found = lines(cli, "dense.jsonl", "--gold", "gold.jsonl", "--corpus", "corpus.jsonl")["corpus"]
    assert (found["state"], "by text" in found["sentence"]) == ("ok", True)


def test_lists_that_end_before_a_budget(cli: Findwell, save: Save) -> None:
    unlike_ids(save)
    arguments = ("dense.jsonl", "--gold", "gold.jsonl", "--by", "exact", "-m")
    found = lines(cli, *arguments, "recall@2000tokens")["lists"]
    assert (found["state"], "budget of 2,000 tokens" in found["sentence"]) == ("look", True)
    assert lines(cli, *arguments, "recall@3")["lists"]["state"] == "ok"


def test_queries_that_differ(cli: Findwell, save: Save) -> None:
    save("gold.jsonl", jsonl([{"query": f"Q{n}", "gold": ["d"]} for n in range(3)]))
    save("run.jsonl", jsonl([{"query": f"q{n}", "retrieved": ["d"]} for n in range(3)]))
    found = lines(cli, ".")
    assert found["queries"]["state"] == "broken"
    assert "they differ in upper and lower case" in found["queries"]["sentence"]
    assert "relation" not in found
    save("run.jsonl", jsonl([{"query": "Q1", "retrieved": ["d"]}]))
    assert "run answers 1 of 3 queries" in lines(cli, ".")["queries"]["sentence"]


def test_the_oldest_file_is_the_baseline_where_no_name_says_so(cli: Findwell, save: Save) -> None:
    save("gold.jsonl", jsonl([{"query": "q1", "gold": ["a"]}, {"query": "q2", "gold": ["b"]}]))
    for name in ("alpha", "beta"):
        save(f"{name}.jsonl", jsonl([{"query": f"q{n}", "retrieved": ["a"]} for n in (1, 2)]))
    os.utime("beta.jsonl", (1_600_000_000, 1_600_000_000))
    assert lines(cli, ".")["baseline"]["sentence"].startswith("compare the others with beta")
    assert cli("init").code == 0
    assert tomllib.loads(Path("findwell.toml").read_text())["runs"] == ["beta.jsonl", "alpha.jsonl"]
    os.utime("alpha.jsonl", (1_600_000_000, 1_600_000_000))
    assert lines(cli, ".")["baseline"]["state"] == "look"


def test_files_that_cannot_be_read(cli: Findwell, save: Save, tmp_path: Path) -> None:
    save("broken/run.jsonl", '{"query": "q1", "retr')
    assert cli("doctor", "broken").code == 2
    assert cli("doctor", "broken/run.jsonl", "--gold", "none.jsonl").code == 2
    unlike_ids(save)
    found = lines(cli, tmp_path)
    assert "could be read from run.jsonl" in found["files"]["sentence"]


def test_a_run_without_gold_needs_a_judge(cli: Findwell, save: Save) -> None:
    record = {"query": "q1", "question": "Why?", "retrieved": [{"id": "a", "text": "So."}]}
    save("run.jsonl", jsonl([record]))
    found = lines(cli, ".")["gold"]
    assert found["state"] == "look"
    assert "--judge local" in found["command"]


def test_80_columns_break_no_word_and_no_command(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlike_ids(save)
    monkeypatch.setattr("findwell.cli.options.width", lambda _: 80)
    done = cli("doctor", "dense.jsonl", "--gold", "gold.jsonl")
    assert done.code == 0
    for line in done.out.splitlines():
        assert len(line) <= 80 or line.startswith("    findwell "), line
    assert "    findwell score dense.jsonl --gold gold.jsonl --by exact\n" in done.out
    markdown = cli("doctor", "dense.jsonl", "--gold", "gold.jsonl", "--format", "markdown").out
    assert "`findwell score dense.jsonl --gold gold.jsonl --by exact`" in markdown


def test_every_extra_is_known() -> None:
    assert installation.EXTRAS.keys() == installation._packages().keys() - {"all"}


def test_an_extra_that_is_missing_or_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cracked.py").write_text("raise OSError('libfoo.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(installation.EXTRAS, "text", installation.Extra("texts", "cracked"))
    known = installation._packages() | {"web": ["no-such-package"]}
    monkeypatch.setattr(installation, "_packages", lambda: known)
    found = {each.about: each for each in doctor().installation}
    assert (found["text"].state, "libfoo.so" in found["text"].sentence) == ("broken", True)
    assert found["web"].sentence.startswith("not installed; it is for the pages of")
    assert "[web]" in found["web"].command


@contextmanager
def model_server(asked: list[str]) -> Iterator[str]:
    """Serve a list of models on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"data": [{"id": "tiny"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_on_this_machine_lists_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    with model_server(asked) as address:
        monkeypatch.setenv("FINDWELL_BASE_URL", address)
        found = [each for each in doctor().installation if each.about == "judge"]
        assert (found[0].state, found[0].command) == ("ok", "findwell judge check openai:tiny")
        other = doctor(judge=findwell.Judge("openai:large", base_url=address)).installation[-1]
        assert (other.state, "has no model large" in other.sentence) == ("broken", True)
    assert set(asked) == {"/v1/models"}
    gone = doctor(judge=findwell.Judge("openai:tiny", base_url=address)).installation[-1]
    assert (gone.state, "does not answer" in gone.sentence) == ("broken", True)


def test_nothing_leaves_the_machine_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def models(server: Endpoint) -> list[str]:
        called.append(server.identity)
        return []

    monkeypatch.setattr(installation, "_models", models)
    judge = findwell.Judge("openai:m", base_url="https://models.example.com/v1")
    found = doctor(judge=judge).installation[-1]
    assert (found.state, found.command, called) == ("look", "findwell doctor --ask", [])
    doctor(judge=judge, ask=True)
    assert called == ["https://models.example.com/v1"]
    assert doctor(judge="local:text").installation[-1].state == "ok"
    assert doctor(judge="replay:nowhere.jsonl").installation[-1].state == "broken"


def test_a_large_gold_is_tried_on_a_sample() -> None:
    gold = {f"q{n}": [f"d{n}"] for n in range(500)}
    run = {f"q{n}": [f"d{n}", "x"] for n in range(500)}
    found = doctor(run, gold)
    relation = next(each for each in found.project if each.about == "relation")
    assert relation.sentence == (
        "100% of the gold items are in a list by ids (tried on 100 of 500 queries)"
    )
    assert relation.command == "findwell score RUN --gold GOLD"
    assert "100% of the gold items" in repr(found)
