"""Fixtures for the input side and the command line."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from findwell.cli import main
from tests import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


class Save(Protocol):
    """Writes a file of the test's folder."""

    def __call__(self, name: str, content: str | bytes) -> Path: ...


class Findwell(Protocol):
    """Calls the command line."""

    def __call__(self, *arguments: object) -> Outcome: ...


class Process(Protocol):
    """Calls the command line in a process of its own."""

    def __call__(self, *arguments: object, **options: Any) -> Outcome: ...


@pytest.fixture(autouse=True)
def _no_servers_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the servers, keys and proxies of whoever runs the tests."""
    for name in ("FINDWELL_BASE_URL", "OPENAI_BASE_URL", "FINDWELL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def _trust_of_the_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Let the tests trust files in a folder of their own, not in that of the user."""
    monkeypatch.delenv("FINDWELL_TRUST", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "settings"))


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Collect no garbage while a test is at the end of the stack, where finalizers fail."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write files."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def files(save: Save) -> tuple[Path, Path]:
    """Write the sample as run.trec and qrels.txt."""
    return save("run.trec", sample.trec_run()), save("qrels.txt", sample.qrels())


@pytest.fixture
def cli() -> Findwell:
    """Call `findwell` in this process."""

    def call(*arguments: object) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with (
            _standard_output_kept(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as stop,
        ):
            main([str(argument) for argument in arguments])
        code = stop.value.code
        assert isinstance(code, int)
        return Outcome(code, out.getvalue(), err.getvalue())

    return call


@contextlib.contextmanager
def _standard_output_kept() -> Iterator[None]:
    """Undo what `main` does to file descriptor 1 when it fails."""
    kept = os.dup(1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@pytest.fixture
def process() -> Process:
    """Call `python -m findwell` in a process of its own."""

    def call(*arguments: object, **options: Any) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "findwell", *map(str, arguments)],
            capture_output=True,
            timeout=60,
            check=False,
            **options,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call
