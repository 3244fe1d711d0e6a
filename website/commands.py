"""The reference of commands, from click."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from findwell.cli import SECTIONS, cli
from findwell.cli.command import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "reference/commands"
INTRODUCTION = """# Commands

Look here for every option of a command. `findwell COMMAND --help` shows the usual ones,
`--help-all` all of them. Data goes to standard output, everything else to standard error; see
[exit codes](../../running.md#exit-codes).
""".splitlines()


def pages() -> dict[str, str]:
    """Return the pages: an overview by the sections of `findwell --help`, and one per command."""
    context = click.Context(cli, info_name="findwell")
    overview, found = [*INTRODUCTION], {}
    for title, names in SECTIONS.items():
        overview += [f"## {title}", "", "| command | what it does |", "|---|---|"]
        for name in names:
            command = cli.get_command(context, name)
            if command is None:
                continue
            short = cell(command.get_short_help_str(limit=200))
            overview.append(f"| [`findwell {name}`]({name}.md) | {short} |")
            inner = click.Context(command, info_name=name, parent=context)
            found[f"{FOLDER}/{name}.md"] = "\n".join(section(command, inner))
            for part, own, place in members(command, inner):
                found[f"{FOLDER}/{name}-{part}.md"] = "\n".join(section(own, place))
        overview.append("")
    return {f"{FOLDER}/README.md": "\n".join(overview), **found}


def members(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Go through the commands of a group, each with its name and its context."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        if (inner := command.get_command(context, name)) is not None:
            yield name, inner, click.Context(inner, info_name=name, parent=context)


def section(command: click.Command, context: click.Context) -> Iterator[str]:
    """Go through the lines about a command; those of a group have pages of their own."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"# {context.command_path}"
    yield from ("", *described(command.help or ""), "")
    yield from ("```text", f"{context.command_path} {usage}", "```", "")
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    rows = [record for each in options if (record := each.get_help_record(context))]
    if rows:
        yield from ("| option | what it does |", "|---|---|")
        yield from (f"| `{cell(names)}` | {cell(text)} |" for names, text in rows)
        yield ""
    for settings in settings_of(command):
        yield from (f"| setting of `{settings.flag}` | what it does |", "|---|---|")
        records = settings.help_records()
        yield from (f"| `{cell(names)}` | {cell(text)} |" for names, text in records)
        yield ""
    if inside := [*members(command, context)]:
        yield from ("| command | what it does |", "|---|---|")
        for name, inner, place in inside:
            short = cell(inner.get_short_help_str(limit=200))
            yield f"| [`{place.command_path}`]({context.info_name}-{name}.md) | {short} |"
        yield ""


def described(text: str) -> Iterator[str]:
    """Go through the lines of a help text; what click keeps as it is stands in a block of code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        kept, *lines = paragraph.split("\n")
        if kept == "\b":
            yield from ("```text", *lines, "```", "")
        else:
            yield from (paragraph, "")


def cell(text: str) -> str:
    """Return a text that may stand in a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")
