"""The reference of commands, from click."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from findwell.cli import COMMANDS, cli
from findwell.cli.command import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

INTRODUCTION = """# Commands

What `findwell COMMAND --help-all` prints, and the settings of options such as `-J`. Data goes to
standard output, all else to standard error;
[exit codes](../running.md#exit-codes).
""".splitlines()


def page() -> str:
    """Return the page."""
    context = click.Context(cli, info_name="findwell")
    lines = [*INTRODUCTION]
    for name in COMMANDS:
        if (command := cli.get_command(context, name)) is not None:
            lines += section(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(lines)


def section(command: click.Command, context: click.Context, level: int = 2) -> Iterator[str]:
    """Go through the lines about a command, and about the commands in it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"{'#' * level} {context.command_path}"
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
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                yield from section(
                    inner, click.Context(inner, info_name=name, parent=context), level + 1
                )


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
