"""What real retrieval frameworks answer, findwell reads: in every form the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.answers import FRAMEWORKS, NUMBERS, TEXTS

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv" / "frameworks-env" / "bin" / "python"
IDS = {
    "qdrant": [str(NUMBERS[doc]) for doc in TEXTS],
    "milvus": [str(NUMBERS[doc]) for doc in TEXTS],
    "weaviate": [f"00000000-0000-0000-0000-{NUMBERS[doc]:012}" for doc in TEXTS],
}
UNKNOWN = {"without ids"}  # a form of LangChain's documents that has none


def ask(name: str, module: str = "tests.frameworks.answers") -> Any:
    """Let a framework answer in its own environment."""
    if not PYTHON.exists():
        pytest.skip("the frameworks are not installed: make .venv/frameworks")
    done = subprocess.run(
        [PYTHON, "-m", module, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_answers_of_a_framework(name: str) -> None:
    forms = ask(name)
    assert forms
    for form, found in forms.items():
        entries = found["entries"]
        assert [entry["text"] for entry in entries] == list(TEXTS.values()), form
        if form in UNKNOWN:
            assert found["findings"] == ["text-as-id"], form
            assert len({entry["doc"] for entry in entries}) == 3, form
        elif form == "cut":
            assert [entry["doc"] for entry in entries] == [f"{doc}.md:4" for doc in TEXTS]
        else:
            assert [entry["doc"] for entry in entries] == IDS.get(name, list(TEXTS)), form
            assert not found["findings"], form
        scores = [entry["score"] for entry in entries if "score" in entry]
        assert scores == sorted(set(scores), reverse=True), form
        assert len(scores) in (0, 3), form
        assert found["corpus"] in (None, list(TEXTS.values())), form
        assert {values["RR"] for values in found["values"]} == {0.5}, form


@pytest.mark.slow
def test_places_of_chunks() -> None:
    """LangChain and LlamaIndex say where in its document a chunk begins."""
    for name, form in (("langchain", "cut"), ("llama_index", "json")):
        for doc, entry in zip(TEXTS, ask(name)[form]["entries"], strict=True):
            source = f"{doc}.md" if form == "cut" else "guide"
            assert (entry["source"], entry["start"]) == (source, 4)
            assert entry["end"] == 4 + len(entry["text"])
