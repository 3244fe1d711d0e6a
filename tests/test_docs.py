"""The shell examples of README and docs are run, and print what they say."""

import doctest
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import Findwell
from tests.lazy import lazy

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += [ROOT / "src" / "findwell" / "skill" / "SKILL.md"]
# without shell examples; those of RECIPES.md are recipes, see tests/test_contributing.py
OTHERS = [*sorted(ROOT.glob("[!R]*.md")), ROOT / "examples" / "README.md"]
QUIET = " > /dev/null 2>&1"
OPERATORS = {*"|&;<>"}
CONSOLE = re.compile(r"^( *)```console\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Go through the commands of a page and what they should print."""
    for _, block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", dedent(block), flags=re.MULTILINE)[1:]:
            lines = part.splitlines(keepends=True)
            # a command goes on in lines that begin as a shell shows them
            more = [*takewhile(lambda line: line[:2] in ("> ", ">\n"), lines[1:])]
            command = lines[0] + "".join(line[1:].removeprefix(" ") for line in more)
            yield command.removesuffix("\n"), "".join(lines[1 + len(more) :])


def printed(command: str, cli: Findwell) -> str:
    """Run a command and return what it prints.

    findwell runs in this process where the shell has nothing to do: to start it tells nothing more.
    """
    plain = command.removesuffix(QUIET).replace("\\\n", "")
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    name, *words = lexer
    if name != "findwell" or any(OPERATORS.issuperset(word) for word in words):
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        return subprocess.check_output(["bash", "-c", command], env=env, text=True)
    done = cli(*words)
    assert done.code == 0, done.err
    return "" if command.endswith(QUIET) else done.out


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
    names = [*lazy("website.__main__").PAGES, f"{lazy('website.measures').FOLDER}.md"]
    made = {(ROOT / "docs" / name).resolve() for name in names}  # when the site is built
    for page in PAGES + OTHERS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            assert path.exists() or path in made, f"{page.name}: {target}"


def test_every_name_of_the_package_that_a_page_writes_exists() -> None:
    """Dotted names of Python, without files (findwell.toml) and groups of entry points."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    groups = {name for text in sources for name in re.findall(r'group="(findwell\.\w+)"', text)}
    unknown = set()
    for page in [page for page in PAGES + OTHERS if page.parent.name != "decisions"]:
        if page.name == "CHANGELOG.md":  # names of its day
            continue
        for name in re.findall(r"(?<![\w/.-])findwell(?:\.\w+)+", page.read_text(encoding="utf-8")):
            if name not in groups and not name.endswith((".toml", ".xml", ".prom", ".md")):
                try:
                    pkgutil.resolve_name(name)
                except (AttributeError, ImportError):
                    unknown.add(f"{page.name}: {name}")
    assert not unknown


# what is not a paragraph: a heading, list, quote, table, code, admonition, tab, picture or element
NOT_PROSE = ("#", "- ", "* ", ">", "|", "`" * 3, "    ", "!", "===", "<", "1. ")
# docs/benchmarks.md is written by `make bench`
OPENINGS = [
    page
    for page in PAGES
    if page.is_relative_to(ROOT / "docs")
    and page.parent.name != "decisions"
    and page.name != "benchmarks.md"
]


@pytest.mark.parametrize("page", OPENINGS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_opens_by_saying_when_it_is_needed(page: Path) -> None:
    title, opening, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert title.startswith("# ")
    assert not opening.startswith(NOT_PROSE), opening
    sentences = re.split(r"(?<=[.?!])[*\"]* ", " ".join(opening.split()))
    assert len(sentences) <= 2, opening
    assert len(opening.split()) <= 60, opening


def test_the_decisions_are_all_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}[^)]+)\)", (folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("0*.md")}
