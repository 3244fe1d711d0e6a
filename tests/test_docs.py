"""The shell examples of README and docs are run, and print what they say."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.conftest import Findwell
from website.__main__ import PAGES as MADE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# without shell examples; those of CONTRIBUTING.md are recipes, see tests/test_contributing.py
OTHERS = [*sorted(ROOT.glob("[!R]*.md")), ROOT / "examples" / "README.md"]
QUIET = " > /dev/null 2>&1"
OPERATORS = {*"|&;<>"}
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Go through the commands of a page and what they should print."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines(keepends=True)
            # a command goes on in lines that begin as a shell shows them
            more = [*takewhile(lambda line: line[:2] in ("> ", ">\n"), lines[1:])]
            command = lines[0] + "".join(line[1:].removeprefix(" ") for line in more)
            yield command.removesuffix("\n"), "".join(lines[1 + len(more) :])


def printed(command: str, cli: Findwell) -> str:
    """Run a command and return what it prints.

    findwell runs in this process where the shell has nothing to do: to start it tells nothing more.
    """
    plain = command.removesuffix(QUIET)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    name, *words = lexer
    if name != "findwell" or any(OPERATORS.issuperset(word) for word in words):
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        return subprocess.check_output(["bash", "-c", command], env=env, text=True)
    done = cli(*words)
    assert done.code == 0, done.err
    return done.out if plain == command else ""


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text()], ids=lambda page: page.name
)
def test_shell_examples(
    page: Path, cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, expected in commands(page):
        found = printed(command, cli)
        checker = doctest.OutputChecker()
        assert checker.check_output(expected, found, doctest.ELLIPSIS), f"$ {command}\n{found}"


def test_links_of_the_docs_lead_somewhere() -> None:
    made = {(ROOT / "docs" / name).resolve() for name in MADE}  # when the site is built
    for page in PAGES + OTHERS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            assert path.exists() or path in made, f"{page.name}: {target}"


def test_the_decisions_are_all_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}[^)]+)\)", (folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("0*.md")}
