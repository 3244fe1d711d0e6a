"""`findwell skill`: how a coding agent works with findwell, in one page, and pages behind it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from findwell.cli import options
from findwell.cli.command import Command
from findwell.core.errors import choose

PAGES = (
    *("inputs", "inputs-tools", "comparing", "gates", "spans", "cost"),
    *("judging", "judge-trust", "tuning", "running", "glossary"),
)


@click.command("skill", cls=Command, short_help="Print how a coding agent works with findwell.")
@click.argument("page", default="", metavar="[PAGE]")
def command(page: str) -> None:
    """Print how to work with findwell in one page, for a coding agent, or a page behind it.

    \b
    findwell skill > .claude/skills/findwell/SKILL.md
    findwell skill inputs

    The pages are those of the documentation.
    """
    if page:
        choose("page", page, PAGES)
    options.write(text_of(page), None)


def text_of(page: str) -> str:
    """Return the skill, or a page of the documentation; a clone has the pages in its own folder."""
    folder = Path(str(files("findwell"))) / "skill"
    path = folder / (f"{page}.md" if page else "SKILL.md")
    if not path.exists():
        path = folder.parents[2] / "docs" / path.name
    return path.read_text(encoding="utf-8")
