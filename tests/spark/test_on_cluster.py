"""findwell on a standalone cluster of Spark, whose executors die while it works."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.spark.test_on_spark import PYTHON, ROOT

DEADLINE = 3600.0  # seconds; the test itself gives up earlier


@pytest.mark.slow
def test_an_executor_that_is_killed_changes_no_number() -> None:
    if not PYTHON.exists():
        pytest.skip("Spark is not installed: make .venv/spark")
    process = subprocess.Popen(
        [PYTHON, "-m", "tests.spark.cluster"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, said = process.communicate(timeout=DEADLINE)
    finally:
        if process.poll() is None:  # it stops its cluster when it is terminated
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert process.returncode == 0, said
    assert out.splitlines()[-1] == "the numbers are those of one machine"
