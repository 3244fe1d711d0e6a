"""Retrievers of real frameworks are asked as they are, and the recipes of the docs work."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.retrievers.real_frameworks import FRAMEWORKS, TEXTS

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv" / "frameworks-env" / "bin" / "python"
needs_frameworks = pytest.mark.skipif(
    not PYTHON.exists(), reason="the frameworks are not installed: make .venv/frameworks"
)


def in_frameworks(*arguments: object) -> str:
    """Run Python where the frameworks are, and return what it prints."""
    done = subprocess.run(
        [PYTHON, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@needs_frameworks
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_is_asked_as_it_is(name: str) -> None:
    printed = in_frameworks("-m", "tests.retrievers.real_frameworks", name)
    for form, found in json.loads(printed.splitlines()[-1]).items():
        assert found["values"] == {"RR": 1.0, "recall@2": 1.0}, form
        assert found["docs"][0] == "battery-4", form
        assert len(found["docs"]) == 2, form
        assert found["texts"][0] == TEXTS["battery-4"], form
        assert found["n"] == 3, form
        assert found["p50"] > 0, form
        assert found["findings"] == [], form


@pytest.mark.slow
@needs_frameworks
def test_the_example_shows_quality_and_latency() -> None:
    example = ROOT / "examples" / "frameworks.py"
    code = example.read_text().partition('"""\n\n')[2].splitlines()
    written = [line for line in code if line.strip() and not line.lstrip().startswith('"""')]
    assert len(written) < 15
    printed = in_frameworks(example)
    assert printed.startswith("llama-index is not clearly different from langchain\n  recall@5 ")
    assert "latency p50" in printed
    assert "nDCG@10" in printed
