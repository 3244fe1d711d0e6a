"""`findwell schema`: the JSON Schema of what a command prints with `--format json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import options
from findwell.cli.command import Command
from findwell.core.errors import choose

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).with_name("schemas")
PLACE = "https://findwell-eval.github.io/findwell/schemas"
OMITTED = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "where the answer was too long: rows that are missing from each table (with a / "
    "before the name: of the envelope), and fields of objects that are missing; -o FILE has all",
}


@click.command("schema", cls=Command, short_help="Print the JSON Schema of a command's output.")
@click.argument("name", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(context: click.Context, name: tuple[str, ...]) -> None:
    """Print the JSON Schema of what COMMAND prints with `--format json`.

    \b
    findwell schema score
    findwell schema labels agree
    findwell schema                    list the commands that print JSON

    Every answer is one object with the same nine keys; what a command found is under `result`.
    """
    known = dict(commands_with_json(context.find_root()))
    if not name:
        options.write("".join(f"{each}\n" for each in known), None)
        return
    chosen = choose("command with --format json", " ".join(name), known)
    options.write(json.dumps(schema_of(chosen, known[chosen]), indent=1) + "\n", None)


def commands_with_json(root: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that have `--format json`, by name."""
    for name, each in all_commands(root.command, root):
        formats = next((option for option in each.params if option.name == "how"), None)
        if formats is not None and "json" in getattr(formats.type, "choices", ()):
            yield name, each


def all_commands(
    found: click.Command, context: click.Context, name: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Yield a command, or all commands inside a group, by name."""
    if not isinstance(found, click.Group):
        yield name, found
        return
    for key in found.list_commands(context):
        if (inner := found.get_command(context, key)) is not None:
            yield from all_commands(inner, context, f"{name} {key}".strip())


def schema_of(name: str, described: click.Command) -> dict[str, Any]:
    """Return the schema of one command: the envelope, with what its result holds."""
    file = f"{name.replace(' ', '-')}.json"
    schema, result = _read("envelope.json"), _read(file)
    result["properties"]["omitted"] = OMITTED
    results = [result, {"type": "null"}]
    if name == "compare":
        results.insert(1, _read("score.json"))  # with --labels: estimates, which are a result
    if any(each.name == "dry_run" for each in described.params):
        results.insert(1, _read("forecast.json"))
    schema["properties"]["command"] = {"const": name}
    schema["properties"]["result"] = {"anyOf": results}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{PLACE}/{file.removesuffix('.json')}.schema.json",
        "title": f"What `findwell {name} --format json` prints",
        **schema,
    }


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found
