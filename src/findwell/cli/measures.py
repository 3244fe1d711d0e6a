"""`findwell measures`: the list of measures, and what one of them means."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, options
from findwell.cli.command import Command, option
from findwell.show.grid import Grid
from findwell.show.tables import reading_width, render_grids, wrap

if TYPE_CHECKING:
    from findwell.measures import Measure
    from findwell.relations.match import Matcher

RELATION_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "relation": itemgetter("name"),
    "parameters": lambda facts: ", ".join(f"{k}={v}" for k, v in facts["parameters"].items()),
    "what matches": itemgetter("about"),
}
MEASURE_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "measure": itemgetter("spelling"),
    "what it says": lambda facts: facts["definition"].splitlines()[0],
}


@click.command("measures", cls=Command, short_help="List the measures, or explain one.")
@click.argument("name", required=False)
@option(
    "--relations", "List the relations instead: what makes a retrieved document match a gold item."
)
@options.output(("table", "json"))
def command(name: str | None, how: str, output: str | None, *, relations: bool) -> None:
    """List all measures, or explain NAME: definition, parameters, citation and other names.

    \b
    findwell measures
    findwell measures nDCG
    findwell measures --relations
    findwell measures --relations rouge
    """
    from findwell.measures import known_measures, parse_measure  # noqa: PLC0415
    from findwell.relations.match import find_matcher, known_matchers  # noqa: PLC0415

    known, find = (known_matchers, find_matcher) if relations else (known_measures, parse_measure)
    classes: list[Any] = [*known().values()] if name is None else [type(find(name))]
    facts = [_relation_facts(cls) if relations else facts_about(cls) for cls in classes]
    screen = options.screen(output)
    if how == "json":
        envelope.answer({"relations" if relations else "measures": facts}, output)
        return
    if name is not None:
        text = wrap(_explanation(facts[0]), reading_width(options.width(output)))
    elif relations:
        title = "relations · use one with --by NAME or MEASURE/NAME"
        text = render_grids([Grid.of(title, RELATION_COLUMNS, facts, left=3)], "table", **screen)
    else:
        title = "measures · `findwell measures NAME` explains one"
        text = render_grids([Grid.of(title, MEASURE_COLUMNS, facts, left=2)], "table", **screen)
    options.write(text, output, how)


def _relation_facts(cls: type[Matcher]) -> dict[str, Any]:
    return {
        "name": cls.name,
        "about": cls.about,
        "definition": _definition(cls),
        "parameters": cls.parameters(),
    }


def facts_about(cls: type[Measure]) -> dict[str, Any]:
    """Return what there is to say about a measure, as the JSON output prints it."""
    return {
        "name": cls.name,
        "spelling": _spelling(cls),
        "definition": _definition(cls),
        "formula": cls.formula,
        "parameters": cls.parameters(),
        "aliases": list(cls.aliases),
        "aggregation": cls.aggregation,
    }


def _explanation(facts: dict[str, Any]) -> str:
    """Say all about a measure or a relation."""
    head = facts.get("spelling") or f"{facts['name']}: {facts['about']}"
    parts = [head, facts["definition"]]
    if facts["parameters"]:
        lines = [f"  {name} = {default}" for name, default in facts["parameters"].items()]
        parts.append("\n".join(["Parameters and defaults:", *lines]))
    if "aggregation" in facts:
        names = f"\nAlso known as: {', '.join(facts['aliases'])}" if facts["aliases"] else ""
        parts.append(f"Aggregated by: {facts['aggregation']}{names}")
    return "\n\n".join(parts) + "\n"


def _spelling(cls: type[Measure]) -> str:
    parameters = ",".join(name for name in cls.parameters() if name != cls.at)
    at = {"k": "@K", None: ""}.get(cls.at, f"@{cls.at}")
    return cls.name + (f"({parameters})" if parameters else "") + at


def _definition(cls: type[object]) -> str:
    """Return the docstring up to its doctest."""
    text = inspect.cleandoc(cls.__doc__ or "").partition("\n>>>")[0].strip()
    return re.sub(r"(?<=\S)\n(?=[^\s|*-])", " ", text)  # a paragraph is a line
