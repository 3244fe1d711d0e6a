"""The fuzz with and without the kernel, and the tests of all rooms that read runs without it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

import pytest

from findwell.io.native import SWITCH, kernel
from tests.fuzz.cases import Case, cases
from tests.fuzz.running import run

pytestmark = pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")

ROOT = Path(__file__).parents[2]
ROOMS = ("read", "align", "engines", "relate", "core", "evaluation", "dialects")


def outcome(case: Case) -> tuple[int, str, str]:
    with tempfile.TemporaryDirectory() as folder:
        done = run(case, Path(folder))
    return done.code, done.out, done.err.replace(folder, "folder")


def differing(case: Case, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a case with and without the kernel."""
    with_kernel = outcome(case)
    with monkeypatch.context() as patch:
        patch.setenv(SWITCH, "0")
        return outcome(case) != with_kernel


@pytest.mark.parametrize("only", ["trec", "qrels"])
def test_a_few_spoilt_files(only: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some = islice(cases(10, only=only), 20)
    assert [case.name for case in some if differing(case, monkeypatch)] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 15))
@pytest.mark.parametrize("only", ["trec", "qrels"])
def test_many_spoilt_files(only: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    some = islice(cases(seed, only=only), 250)
    assert [case.name for case in some if differing(case, monkeypatch)] == []


@pytest.mark.slow
def test_the_tests_pass_without_the_kernel() -> None:
    rooms = [f"tests/{room}" for room in ROOMS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *rooms],
        cwd=ROOT,
        env=os.environ | {SWITCH: "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-3000:]
