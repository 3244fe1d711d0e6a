"""The shell examples of README and docs are run, and print what they say."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Go through the commands of a page and what they should print."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.parametrize("page", [page for page in PAGES if "```console" in page.read_text()])
def test_shell_examples(page: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command, expected in commands(page):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        checker = doctest.OutputChecker()
        assert checker.check_output(expected, done.stdout, doctest.ELLIPSIS), (
            f"$ {command}\n{done.stdout}"
        )


def test_links_of_the_docs_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_decisions_are_all_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}[^)]+)\)", (folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("0*.md")}
