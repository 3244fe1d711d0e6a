"""`findwell completion`, what a shell then completes, and pages that open in the browser."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from findwell.cli.completion import SHELLS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_gets_its_lines(shell: str, cli: Findwell) -> None:
    done = cli("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_FINDWELL_COMPLETE={shell}_complete" in done.out


def test_an_unknown_shell_is_refused(cli: Findwell) -> None:
    done = cli("completion", "cmd")
    assert (done.code, "'cmd' is not one of" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("findwell sc", "score"),
        ("findwell labels po", "pool"),
        ("findwell score --go", "--gold"),
        ("findwell score -J vo", "votes="),
        ("findwell score --read skip", "skip_bad="),
        ("findwell score --help-j", "--help-judge"),
        ("findwell score run.t", "run.t"),  # a shell completes the names of files itself
        ("findwell score a.trec --gold q", "q"),
    ],
)
def test_commands_options_and_settings_are_completed(
    words: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "findwell.toml").write_text('gold = "qrels.txt"\n')
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "findwell"],
        env=os.environ | asked | {"_FINDWELL_COMPLETE": "bash_complete"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    kind = "plain" if expected[0] == "-" or ("." not in expected and len(expected) > 1) else "file"
    assert f"{kind},{expected}" in done.stdout.splitlines(), done
    assert not done.stderr  # it would stand in the middle of the line


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is of Linux")
def test_a_page_is_opened(tmp_path: Path) -> None:
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/opened\n'
    )
    opener.chmod(0o755)
    (tmp_path / "both.jsonl").write_text('{"query": "q", "retrieved": ["a"], "gold": ["a"]}\n')
    done = subprocess.run(
        [sys.executable, "-m", "findwell", "report", "both.jsonl", "-o", "page.html", "--open"],
        env=os.environ | {"PATH": f"{opener.parent}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wait = f"until [ -s {tmp_path}/opened ]; do sleep 0.05; done"  # it goes on by itself
    subprocess.run(["sh", "-c", wait], timeout=60, check=True)
    opened = (tmp_path / "opened").read_text().strip()
    assert opened.removeprefix("file://") == str(tmp_path / "page.html")
