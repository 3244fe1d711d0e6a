"""findwell on a real Spark, in an environment of its own: `make .venv/spark` makes it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.spark.cases import CASES

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv" / "spark-env" / "bin" / "python"


@functools.cache
def outcomes() -> dict[str, str]:
    """Run all cases in one process, with one session, and return what went wrong in each."""
    done = subprocess.run(
        [PYTHON, "-W", "error::UserWarning:findwell", "-m", "tests.spark.cases"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYSPARK_PYTHON": str(PYTHON)},
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_on_spark(name: str) -> None:
    if not PYTHON.exists():
        pytest.skip("Spark is not installed: make .venv/spark")
    assert not outcomes()[name], outcomes()[name]
