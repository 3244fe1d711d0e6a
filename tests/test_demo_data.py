"""The demo's task is consistent, and its BM25 run is what the script in the repository makes."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

import findwell

DEMO = Path(findwell.__file__).parent / "demo"


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


def test_size() -> None:
    passages, questions = records("passages.jsonl"), records("questions.jsonl")
    assert len(passages) >= 100
    assert len(questions) >= 40
    assert len({passage["doc"] for passage in passages}) == len(passages)
    items = [question["gold"] for question in questions]
    assert sum(any(len(item["docs"]) > 1 for item in gold) for gold in items) >= 10
    assert {item["grade"] for gold in items for item in gold} == {0, 1, 2, 3}
    assert all(question["reference"] for question in questions)


def test_gold_names_passages_that_exist_once() -> None:
    known = {passage["doc"] for passage in records("passages.jsonl")}
    for question in records("questions.jsonl"):
        docs = [doc for item in question["gold"] for doc in item["docs"]]
        assert set(docs) <= known, question["query"]
        assert len(docs) == len(set(docs)), question["query"]


@pytest.mark.parametrize("name", ["bm25", "minilm"])
def test_runs_are_clean(name: str) -> None:
    findings = findwell.io.check(DEMO / f"{name}.trec", DEMO / "questions.jsonl")
    assert {finding.kind for finding in findings} <= {"no-relevant-item", "tied-scores"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make both runs anew."""
    path = DEMO.parents[2] / "examples" / "maintenance" / "make_demo_runs.py"
    folder = tmp_path_factory.mktemp("demo")
    runpy.run_path(str(path))["main"](folder)
    return folder


@pytest.mark.slow
def test_bm25_run_is_what_the_script_makes(made: Path) -> None:
    assert (made / "bm25.trec").read_text() == (DEMO / "bm25.trec").read_text()


@pytest.mark.slow
def test_minilm_run_is_what_the_script_makes(made: Path) -> None:
    # int8 kernels differ in the last digits from CPU to CPU, so the numbers may move a little
    old, new = (
        findwell.evaluate(folder / "minilm.trec", DEMO / "questions.jsonl")
        for folder in (DEMO, made)
    )
    assert new.values == pytest.approx(old.values, abs=0.02)
