"""Failures that findwell does not know: exit code 70, what to report and where, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.cli import UNEXPECTED, failures

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Findwell, Outcome

RAISED = {
    "1 / 0": "ZeroDivisionError: division by zero",
    "{}['no']": "KeyError: 'no'",
    "[].fail": "AttributeError: 'list' object has no attribute 'fail'",
    "recurse()": "RecursionError: maximum recursion depth exceeded",
    "np.zeros(1 << 50)": "out of memory (MemoryError: Unable to allocate",
    "pl.int_range(0, 2**62, eager=True)": "PanicException: capacity overflow",
    "pl.DataFrame({'a': [1]}).select('b')": "ColumnNotFoundError: unable to find column",
    "stop(EOFError())": "EOFError",  # which click would take for Ctrl-C
    "open('/etc/passwd/x')": "NotADirectoryError: [Errno 20] Not a directory: '/etc/passwd/x'",
    "__import__('no_such_module')": "ModuleNotFoundError: No module named 'no_such_module'",
    "stop(GeneratorExit('odd'))": "GeneratorExit: odd",
}


@pytest.fixture
def run(cli: Findwell, files: tuple[Path, Path]) -> Callable[..., Outcome]:
    """Score with a measure of the user's own, which fails."""

    def score(failure: str, *options: str) -> Outcome:
        def recurse() -> None:
            recurse()

        def stop(error: BaseException) -> None:
            raise error

        @findwell.plugins.register_measure
        class Broken(findwell.Measure):
            """Fails."""

            name: ClassVar[str] = "broken"
            at: ClassVar = None

            def compute(self, relation: findwell.types.Relation) -> NoReturn:
                eval(failure, {"np": np, "pl": pl, "recurse": recurse, "stop": stop})
                raise AssertionError(relation)

        return cli("score", files[0], "-g", files[1], "-m", "broken", *options)

    return score


@pytest.mark.parametrize("failure", RAISED)
def test_an_unexpected_failure(
    failure: str, run: Callable[..., Outcome], files: tuple[Path, Path]
) -> None:
    done = run(failure)
    assert done.code == 70, done
    assert done.out == ""
    assert "Traceback" not in done.err
    first, place, versions, command, fix = done.err.splitlines()
    assert first.startswith(f"findwell: unexpected failure: {RAISED[failure]}")
    assert ", line " in place
    assert f"findwell {findwell.__version__} (" in versions
    assert f", Python {sys.version.split()[0]}, polars " in versions
    assert command == f"  command: findwell score {files[0]} -g {files[1]} -m broken"
    assert fix.startswith("  fix: score fewer runs" if "memory" in first else "  fix: report it at")


@pytest.mark.parametrize("how", ["option", "variable"])
def test_debug_shows_the_traceback(
    how: str, run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "variable":
        monkeypatch.setenv("FINDWELL_DEBUG", "1")
    done = run("1 / 0", *(["--debug"] if how == "option" else []))
    assert done.code == 70
    assert done.err.startswith("Traceback (most recent call last):\n")
    assert "\nZeroDivisionError: division by zero\nfindwell: unexpected failure" in done.err


@pytest.mark.parametrize("before", [True, False])
def test_debug_stands_before_or_behind_the_command(before: bool, cli: Findwell) -> None:
    words = ["score", "none.trec", "--gold", "none"]
    done = cli(*(["--debug", *words] if before else [*words, "--debug"]))
    assert done.code == 2  # a mistake stays one
    assert done.err.startswith("Traceback")
    assert "\nfindwell: none" in done.err
    assert "Traceback" not in cli("score", "--", "--debug", "none.trec").err  # a file's name


PANIC = """
import sys
import findwell, polars as pl
@findwell.plugins.register_measure
class Broken(findwell.Measure):
    '''Fails.'''
    name = "broken"
    at = None
    def compute(self, relation):
        pl.int_range(0, 2**62, eager=True)
sys.argv[0] = "findwell"
from findwell.__main__ import main
main()
"""


def test_a_process_that_panics(files: tuple[Path, Path]) -> None:
    path, gold = map(str, files)
    done = subprocess.run(
        [sys.executable, "-c", PANIC, "score", path, "-g", gold, "-m", "broken"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    assert (done.returncode, done.stdout) == (70, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 10  # polars adds four lines about its panic
    assert "\nfindwell: unexpected failure: PanicException: capacity overflow\n" in done.stderr


def test_a_file_that_the_user_named(
    run: Callable[..., Outcome], files: tuple[Path, Path], tmp_path: Path
) -> None:
    path = f"{files[0]}/x"
    done = run(f"open({path!r})")
    assert done.code == 2
    assert done.err == (
        f"findwell: {path}: Not a directory\n"
        "  fix: check that it is there, and who may read and write it\n"
    )
    inside = f"open({str(tmp_path / 'saved' / 'file')!r})"
    assert run(inside, f"--save={tmp_path / 'saved'}").code == 2
    assert run(inside).code == UNEXPECTED


def test_a_full_disk_names_the_file(run: Callable[..., Outcome]) -> None:
    done = run("stop(OSError(28, 'No space left on device', '/somewhere/table'))")
    assert done.code == 2
    assert done.err.startswith("findwell: /somewhere/table: No space left on device\n  fix: free")


def test_passwords_of_addresses_are_not_shown(run: Callable[..., Outcome]) -> None:
    done = run("1 / 0", "-J", "base_url=https://pass@host.example/v1?api-key=secret")
    assert done.code == 70
    assert "https://***@host.example/v1?***" in done.err
    assert "pass@" not in done.err
    assert "secret" not in done.err


def test_where_to_report_is_where_the_package_says() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Issues"] == failures.ISSUES
    assert project["scripts"]["findwell"] == "findwell.__main__:main"


def test_a_package_that_is_not_whole() -> None:
    code = "import sys; sys.modules['click'] = None; from findwell.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.startswith("findwell: findwell is not installed whole: ")
    assert "Traceback" not in done.stderr
