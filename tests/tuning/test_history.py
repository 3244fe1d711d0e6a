"""Held-out queries that several tunings use: each later one says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

GOLD = {f"q{number}": [f"d{number}"] for number in range(30)}
RUNS = [
    {query: {docs[0]: 3.0 - at, "x": 2.0, "y": 1.0 - at} for query, docs in GOLD.items()}
    for at in range(2)
]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "memory" / "tunings.sqlite"
    monkeypatch.setenv("FINDWELL_TUNINGS", str(path))
    return path


def reused(found: Any) -> list[findwell.types.Finding]:
    return [each for each in found.findings if each.kind == "reused-held-out"]


def tune(engine: str = "elasticsearch-linear", runs: Any = RUNS, gold: Any = GOLD) -> Any:
    return findwell.tuning.tune(runs, gold, "RR", engine=engine, permutations=50)


def test_the_second_tuning_of_the_same_queries_says_so() -> None:
    first = tune()
    assert not reused(first)
    assert not reused(tune())  # the same again
    (found,) = reused(tune("qdrant-rrf"))
    assert (found.count, len(found.examples)) == (30, 1)
    assert "also used by 1 earlier tuning." in found.message
    assert f"elasticsearch-linear by RR: {first.choice.held_out.value:.4f}" in found.examples[0]
    better = [{query: dict(reversed(docs.items())) for query, docs in run.items()} for run in RUNS]
    (found,) = reused(tune(runs=better))  # the same values, and so the first tuning again
    assert "also used by 1 earlier tuning." in found.message
    better[0]["q1"]["d1"] = 0.5
    (found,) = reused(tune(runs=better))
    assert "also used by 2 earlier tunings." in found.message
    backwards = dict(reversed(GOLD.items()))
    (found,) = reused(tune(gold=backwards))
    assert "also used by 2 earlier tunings." in found.message


def test_other_queries_are_not_reused() -> None:
    tune()
    other = {query: [*docs, "z"] for query, docs in GOLD.items()}  # the same ids, other questions
    assert not reused(tune("qdrant-rrf", gold=other))
    half = {query: GOLD[query] if at < 16 else ["w"] for at, query in enumerate(GOLD)}
    assert reused(tune("qdrant-rrf", gold=half))


def test_spaces_and_retrievers_are_remembered() -> None:
    space = {"knobs": {"engine": ["qdrant-rrf", "course-rrf"], "k": [2, 60]}}
    findwell.tuning.tune(RUNS, GOLD, "RR", space=space)
    (found,) = reused(tune())
    assert "a space by RR" in found.examples[0]
    records = [
        {"query": query, "question": query[1:], "gold": docs} for query, docs in GOLD.items()
    ]

    def ask(*shifts: int) -> Any:
        def make(shift: int) -> Any:
            return lambda question: [f"d{int(question) + shift}", "x"]

        return findwell.tuning.tune(make, records, "RR", space={"knobs": {"shift": list(shifts)}})

    assert not reused(ask(0, 1))
    assert not reused(ask(0, 1))
    (found,) = reused(ask(0, 1, 2))
    assert "make by RR" in found.examples[0]


def test_it_can_be_switched_off_and_never_stops_a_tuning(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_TUNINGS", "none")
    tune()
    assert not memory.parent.exists()
    memory.parent.write_text("no folder")
    monkeypatch.setenv("FINDWELL_TUNINGS", str(memory))
    (found,) = [each for each in tune().findings if each.kind == "not-remembered"]
    assert "could not be remembered" in found.message


def test_only_hashes_of_queries_are_kept(memory: Path) -> None:
    secret = {f"secret question {query}": docs for query, docs in GOLD.items()}
    runs = [{f"secret question {query}": docs for query, docs in run.items()} for run in RUNS]
    tune(runs=runs, gold=secret)
    written = b"".join(path.read_bytes() for path in memory.parent.iterdir())
    assert b"elasticsearch-linear" in written
    assert b"secret" not in written


def test_the_command_says_it(cli: Findwell, tmp_path: Path) -> None:
    files = []
    for name, content in (("a", RUNS[0]), ("b", RUNS[1]), ("gold", GOLD)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(content))
    for engine, said in (("qdrant-rrf", False), ("elasticsearch-rrf", True)):
        done = cli("tune", *files[:2], "--gold", files[2], "-m", "RR", "--engine", engine)
        assert (
            "note: 30 held-out queries were also used by 1 earlier tuning (" in done.err
        ) == said
