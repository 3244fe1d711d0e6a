"""`findwell explain-config`: the effective settings of a project and their source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, options
from findwell.cli.command import Command, Settings
from findwell.cli.configuration import FILE, PROJECT, Configuration, commands_of, spelled
from findwell.core.errors import choose
from findwell.show.grid import Grid
from findwell.show.tables import render_grids

if TYPE_CHECKING:
    from collections.abc import Iterator

# what findwell reads from the environment; keys are never shown
VARIABLES = {
    "FINDWELL_CONFIG": "file with the settings of a project, or none",
    "FINDWELL_TRUST": "configuration files that are trusted: 1 (all), paths, or fingerprints",
    "FINDWELL_BASE_URL": "address of an OpenAI-compatible server, for judge and embedder",
    "OPENAI_BASE_URL": "the same, where FINDWELL_BASE_URL is not set",
    "FINDWELL_API_KEY": "key for the server of judge and embedder",
    "OPENAI_API_KEY": "key for OpenAI, where FINDWELL_API_KEY is not set",
    "FINDWELL_MONITOR_TOKEN": "token that `findwell monitor serve` asks for",
    "FINDWELL_WEBHOOK_SECRET": "secret with which `findwell monitor check` signs what it sends",
    "FINDWELL_CACHE_DIR": "folder in which answers, vectors and judge cards are kept",
    "FINDWELL_TUNINGS": "file that remembers which queries tunings held out, or none",
    "FINDWELL_SPOOL_LIMIT": "maximum size of the temporary file when reading from a pipe",
    "FINDWELL_MINILM": "folder of the embedding model, instead of the one from a package",
    "FINDWELL_NATIVE": "0 for no compiled code",
    "FINDWELL_DEBUG": "1 for the traceback of a failure",
    "NO_COLOR": "anything for no colour",
    "GITHUB_STEP_SUMMARY": "file to which a summary of gates is appended",
}
HIDDEN_VARIABLES = {each for each in VARIABLES if each.endswith(("_KEY", "_TOKEN", "_SECRET"))}
SECRET = ("token", "header", "headers", "webhook", "options", "extra-body")  # may hold keys


@click.command("explain-config", cls=Command, short_help="Show the settings of the project.")
@click.argument("name", metavar="[COMMAND]", required=False)
@options.output(("table", "json"))
@click.pass_context
def command(context: click.Context, name: str | None, how: str, output: str | None) -> None:
    """Show which configuration file is used, what it sets, and for which commands.

    \b
    findwell explain-config
    findwell explain-config score

    With a COMMAND: every option that has a value, and where the value comes from. Settings stand
    in findwell.toml or under [tool.findwell] in pyproject.toml; `findwell init` writes a file to
    start from.
    """
    parent = context.parent
    group = parent.command if parent is not None else None
    if parent is None or not isinstance(group, click.Group):
        raise click.UsageError("this command belongs to `findwell`")
    found = Configuration.find(parent.params.get("config"))
    if name is None:
        rows = list(_settings(found, group, parent))
        columns = {"setting": "setting", "value": "value", "commands": "sets it for"}
    else:
        rows = list(_values(found, group, parent, name))
        columns = {"setting": "option", "value": "value", "from": "from"}
    variables = [
        {
            "variable": each,
            "value": "(set)" if each in HIDDEN_VARIABLES else os.environ[each],
            "what": about,
        }
        for each, about in VARIABLES.items()
        if os.environ.get(each)
    ]
    if how == "json":
        place = None if found is None else str(found.path)
        envelope.answer({"file": place, "settings": rows, "environment": variables}, output)
        return
    title = (
        f"no {FILE} and no [tool.findwell] in a {PROJECT}, here or in a folder above"
        if found is None
        else f"settings of {found.shown}"
    )
    grids = [_grid(title, columns, rows)]
    if variables:
        named = {"variable": "variable", "value": "value", "what": "what it is"}
        grids.append(_grid("environment", named, variables))
    options.write(render_grids(grids, "table", **options.screen(output)), output, how)


def _settings(
    found: Configuration | None, group: click.Group, context: click.Context
) -> Iterator[dict[str, Any]]:
    """Go through what the file sets, and the commands that it is set for."""
    if found is None:
        return
    commands = commands_of(group, context)
    for name in commands:  # a mistake in any table is said
        found.defaults(group, context, name)
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, (_, keys, value) in found.sources_by_command(group, context):
        row = {"setting": ".".join(keys), "value": _hidden(keys[-1], value), "commands": []}
        users = rows.setdefault(keys, row)["commands"]
        if name not in users:
            users.append(name)
    yield from rows.values()


def _hidden(key: str, value: object) -> object:
    """Return a value that may be shown."""
    return "(set)" if spelled(key) in SECRET and value else value


def _values(
    found: Configuration | None, group: click.Group, context: click.Context, name: str
) -> Iterator[dict[str, Any]]:
    """Go through the options of a command, with their values and where these come from."""
    known = commands_of(group, context)
    chosen = known[choose("command with settings", name, known)]
    values = {} if found is None else found.defaults(group, context, name)
    yield from _rows(chosen, context, values, "" if found is None else found.shown)


def _rows(
    command: click.Command, context: click.Context, values: dict[str, Any], place: str, of: str = ""
) -> Iterator[dict[str, Any]]:
    """Go through the options of a command, or of all commands of a group."""
    if isinstance(command, click.Group):
        for name, inner in commands_of(command, context).items():
            yield from _rows(inner, context, values.get(name, {}), place, f"{name} ")
        return
    for each in command.params:
        if isinstance(each, Settings):
            for name, value in values.get(each.name or "", {}).items():
                setting = of + each.fields[name].spelling
                yield {"setting": setting, "value": _hidden(name, value), "from": place}
            continue
        setting = of + max(each.opts, key=len)
        if each.name in values:
            value = _hidden(each.name or "", values[each.name])
            yield {"setting": setting, "value": value, "from": place}
        elif not _is_unset(value := each.get_default(context)):
            yield {"setting": setting, "value": value, "from": "default"}


def _is_unset(value: object) -> bool:
    """Tell whether click means nothing by this."""
    return not isinstance(value, str | int | float | list | tuple) or value in (False, (), [])


def _grid(title: str, columns: dict[str, str], rows: list[dict[str, Any]]) -> Grid:
    cells = [[_shown(row[key]) for key in columns] for row in rows]
    return Grid(title, list(columns.values()), cells, left=len(columns), named_by=1)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
