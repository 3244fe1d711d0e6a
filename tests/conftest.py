"""Fixtures for the input side and the command line."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from findwell.cli import main
from tests import sample

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path


PIPE = 65_536  # bytes that a pipe takes before somebody reads


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """What a command found, of the JSON that it printed: its result, and the findings."""
        found = json.loads(self.out)
        return {**found["result"], "findings": found["findings"]}


class Save(Protocol):
    """Writes a file of the test's folder."""

    def __call__(self, name: str, content: str | bytes) -> Path: ...


class Findwell(Protocol):
    """Calls the command line, if asked in a folder and with bytes on standard input."""

    def __call__(
        self, *arguments: object, cwd: Path | None = None, stdin: bytes | None = None
    ) -> Outcome: ...


class Process(Protocol):
    """Calls the command line in a process of its own."""

    def __call__(self, *arguments: object, **options: Any) -> Outcome: ...


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the sources, not in tests, which would be imported and read twice."""
    return [each for each in (yield) if type(each) is pytest.Module]


@pytest.fixture(scope="session", autouse=True)
def _environment_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave out the servers, keys, proxies and trusted files of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FINDWELL_BASE_URL", "OPENAI_BASE_URL", "FINDWELL_API_KEY", "OPENAI_API_KEY"):
            patch.delenv(name, raising=False)
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        patch.delenv("FINDWELL_TRUST", raising=False)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "settings"))
        yield


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Collect no garbage while a test is at the end of the stack, where finalizers fail."""
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

    def call(*arguments: object, cwd: Path | None = None, stdin: bytes | None = None) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with (
            _standard_output_kept(),
            contextlib.nullcontext() if cwd is None else _in_folder(cwd),
            contextlib.nullcontext() if stdin is None else _on_standard_input(stdin),
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
def _in_folder(folder: Path) -> Iterator[None]:
    """Work in a folder, and forget its modules, so that the next command reads them again."""
    path, modules = [*sys.path], set(sys.modules)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
        importlib.invalidate_caches()


@contextlib.contextmanager
def _on_standard_input(content: bytes) -> Iterator[None]:
    """Let file descriptor 0 be a pipe with some bytes, as many as a pipe takes at once."""
    assert len(content) <= PIPE
    kept, (end, begin) = os.dup(0), os.pipe()
    try:
        os.dup2(end, 0)
        os.write(begin, content)
        os.close(begin)
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(end)


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
