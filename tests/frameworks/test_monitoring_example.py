"""The example of monitoring: a real application sends its traces, and a broken index is noticed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from findwell.loop.monitoring.alarm_report import known_alarms
from findwell.loop.monitoring.store import TraceStore
from tests.frameworks.test_answers import PYTHON, ROOT

WATCH = ROOT / "examples" / "monitoring" / "watch.py"
LIBRARIES = "import openinference.instrumentation.langchain, opentelemetry.exporter.otlp.proto.http"


@pytest.mark.slow
def test_a_broken_index_is_noticed(tmp_path: Path) -> None:
    python = os.environ.get("APP_PYTHON", str(PYTHON))
    if (
        not Path(python).exists()
        or subprocess.run([python, "-c", LIBRARIES], check=False).returncode
    ):
        pytest.skip("the frameworks are not installed: make .venv/frameworks")
    done = subprocess.run(
        [sys.executable, WATCH, tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"APP_PYTHON": python, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    assert "healthy: 300 calls\nbroken: 300 calls" in done.stdout
    told = re.search(r"alarm after (\d+) questions: context_precision drops", done.stdout)
    assert told is not None, done.stdout
    assert f"after {told[1]} questions" in (ROOT / "docs" / "monitoring.md").read_text("utf-8")
    with TraceStore.open(tmp_path / "store") as store:
        (alarm,), _ = known_alarms(store)
        (mark,) = store.marks()
        calls = store.scan(alarm.since).collect()
    assert alarm.since >= mark.time
    assert {*calls["service"]} == {"help-desk"}
    assert calls["docs"].list.len().to_list() == [5] * calls.height
