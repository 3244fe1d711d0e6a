"""`karat measures`: the list of measures, and what one of them means."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options

if TYPE_CHECKING:
    from karat.measures import Measure


@click.command("measures", short_help="List the measures, or explain one.")
@click.argument("name", required=False)
@click.option(
    "--relations",
    is_flag=True,
    help="List the relations instead: what makes a retrieved document match a gold item.",
)
@options.output(("table", "json"))
def command(name: str | None, how: str, output: str | None, *, relations: bool) -> None:
    """List all measures, or explain NAME: definition, parameters, citation and other names.

    \b
    karat measures
    karat measures nDCG
    karat measures --relations
    karat measures --relations rouge
    """
    from karat.measures import known_measures, parse_measure  # noqa: PLC0415

    if relations:
        options.write(_relations(name, how), output)
        return
    classes = list(known_measures().values()) if name is None else [type(parse_measure(name))]
    if how == "json":
        text = json.dumps([_facts(cls) for cls in classes], indent=1, ensure_ascii=False) + "\n"
    else:
        text = _list(classes) if name is None else _explanation(classes[0]) + "\n"
    options.write(text, output)


def _relations(name: str | None, how: str) -> str:
    from karat.relate.match import find_matcher, known_matchers  # noqa: PLC0415
    from karat.reports.tables import Grid, terminal  # noqa: PLC0415

    classes = list(known_matchers().values()) if name is None else [type(find_matcher(name))]
    facts = [
        {
            "name": cls.name,
            "about": cls.about,
            "definition": _definition(cls),
            "parameters": cls.parameters(),
        }
        for cls in classes
    ]
    if how == "json":
        return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    if name is not None:
        parameters = "".join(
            f"\n  {parameter} = {default}" for parameter, default in classes[0].parameters().items()
        )
        given = f"\nParameters and defaults:{parameters}\n" if parameters else ""
        return f"{classes[0].name}: {classes[0].about}\n\n{_definition(classes[0])}\n{given}"
    rows = [
        [
            cls.name,
            ", ".join(f"{key}={value}" for key, value in cls.parameters().items()),
            cls.about,
        ]
        for cls in classes
    ]
    title = "relations · use one with --by NAME or MEASURE/NAME"
    return terminal(Grid(title, ["relation", "parameters", "what matches"], rows, left=3))


def _facts(cls: type[Measure]) -> dict[str, Any]:
    return {
        "name": cls.name,
        "spelling": _spelling(cls),
        "definition": _definition(cls),
        "parameters": cls.parameters(),
        "aliases": list(cls.aliases),
        "aggregation": cls.aggregation,
    }


def _list(classes: list[type[Measure]]) -> str:
    from karat.reports.tables import Grid, terminal  # noqa: PLC0415

    rows = [[_spelling(cls), _definition(cls).splitlines()[0]] for cls in classes]
    title = "measures · `karat measures NAME` explains one"
    return terminal(Grid(title, ["measure", "what it says"], rows, left=2))


def _explanation(cls: type[Measure]) -> str:
    parameters = "".join(f"\n  {name} = {default}" for name, default in cls.parameters().items())
    return (
        f"{_spelling(cls)}\n\n{_definition(cls)}\n"
        + (f"\nParameters and defaults:{parameters}\n" if parameters else "")
        + f"\nAggregated by: {cls.aggregation}"
        + (f"\nAlso known as: {', '.join(cls.aliases)}" if cls.aliases else "")
    )


def _spelling(cls: type[Measure]) -> str:
    parameters = ",".join(name for name in cls.parameters() if name != cls.at)
    at = {"k": "@K", None: ""}.get(cls.at, f"@{cls.at}")
    return cls.name + (f"({parameters})" if parameters else "") + at


def _definition(cls: type[object]) -> str:
    """Return the docstring up to its doctest."""
    return inspect.cleandoc(cls.__doc__ or "").partition("\n>>>")[0].strip()
