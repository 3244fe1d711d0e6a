"""`findwell skill`: the page for coding agents, and the pages behind it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.cli import COMMANDS
from findwell.cli.skill import PAGES

if TYPE_CHECKING:
    from tests.conftest import Findwell

ROOT = Path(__file__).parents[2]


def test_the_skill_names_its_pages_and_commands_that_exist(cli: Findwell) -> None:
    shown = cli("skill").out
    assert shown.startswith("---\nname: findwell\n")
    listed = shown.partition("`findwell skill PAGE`")[2].partition("`findwell measures")[0]
    assert sorted(re.findall(r"`([\w-]+)`", listed)) == sorted(PAGES)
    named = set(re.findall(r"findwell ([a-z-]+)", shown.partition("## 1.")[2]))
    assert named <= {*COMMANDS, "once"}


def test_the_pages_are_those_of_the_documentation(cli: Findwell) -> None:
    for page in PAGES:
        assert cli("skill", page).out == (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    missing = cli("skill", "input")
    assert missing.code == 2
    assert "did you mean inputs or inputs-tools?" in missing.err


def test_a_wheel_holds_the_pages() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {f"docs/{page}.md": f"findwell/skill/{page}.md" for page in sorted(PAGES)}
