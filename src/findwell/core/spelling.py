"""How measures and relations are spelled: `name(parameter=value,…)`; how things are counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from findwell.core.errors import FindwellError, nearest


def counted(number: int, one: str = "query", several: str = "queries") -> str:
    """Write how many there are of something.

    >>> counted(1), counted(1234), counted(0, "slice", "slices")
    ('1 query', '1,234 queries', '0 slices')
    """
    return f"{number:,} {one if number == 1 else several}"


def split_parameters(text: str, spec: str, error: type[FindwellError]) -> Iterator[tuple[str, str]]:
    """Return the names and values between the parentheses of a spelling."""
    seen: set[str] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            raise error(
                f"{part!r} in {spec!r} is not a parameter", fix="write parameters as name=value"
            )
        if name in seen:
            raise error(f"{spec!r} gives {name} twice", fix="give it once")
        seen.add(name)
        yield name, value.strip("'\"")


def read_parameters(
    owner: str, texts: Mapping[str, str], defaults: Mapping[str, Any], error: type[FindwellError]
) -> dict[str, Any]:
    """Return the values of parameters, each of the type of its default."""
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in defaults:
            known = ", ".join(defaults) or "none"
            raise error(
                f"{owner} has no parameter {name!r}",
                fix=f"{nearest(name, defaults)} (it takes: {known})".strip(),
            )
        if isinstance(defaults[name], int | float):
            kind = type(defaults[name])
            values[name] = read_number(text, kind, f"{name}={text} of {owner}", error)
        else:
            values[name] = text
    return values


def read_number(text: str, kind: type[int | float], what: str, error: type[FindwellError]) -> float:
    """Return a number; `what` names it in the error."""
    pattern = r"-?\d{1,18}" if kind is int else r"-?\d*\.?\d+(?:e-?\d+)?"
    if re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE):
        return kind(text)
    number = "whole number" if kind is int else "number"
    raise error(f"{what} is not a {number}", fix=f"use a {number}")


def spell(value: object) -> str:
    """Write the value of a parameter as it is read: no `.0`, no quotes.

    >>> spell(2.0), spell(0.5), spell("min")
    ('2', '0.5', 'min')
    """
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def spell_parameters(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Write the parameters that differ from their defaults, in parentheses."""
    given = [f"{name}={spell(value)}" for name, value in values.items() if value != defaults[name]]
    return f"({','.join(given)})" if given else ""


def spell_relation(name: str, settings: Mapping[str, Any]) -> str:
    """Write a relation with its parameters: those that were chosen, and always the threshold.

    >>> spell_relation("rouge", {"threshold": 0.7, "text": "plain"})
    'rouge(threshold=0.7)'
    >>> spell_relation("containment(across=no)", {"text": "plain", "across": "no"})
    'containment(across=no)'
    """
    plain, _, inside = name.removesuffix(")").partition("(")
    given = {part.partition("=")[0] for part in inside.split(",")}
    shown = [
        f"{each}={spell(value)}"
        for each, value in settings.items()
        if each in given or each == "threshold"
    ]
    return f"{plain}({','.join(shown)})" if shown else name


def name_method(dialect: str, relations: Iterable[str]) -> str:
    """Name dialect and relations in a heading; findwell's own dialect and ids are not mentioned.

    >>> name_method("ragas", ["rouge"]), name_method("findwell", ["ids"])
    (' · dialect ragas · by rouge', '')
    """
    named = "" if dialect == "findwell" else f" · dialect {dialect}"
    return named + name_relations(relations)


def name_relations(relations: Iterable[str], before: str = " · by ") -> str:
    """Name what matched in a heading, each relation once; plain ids are not mentioned.

    >>> name_relations(["ids", "rouge(threshold=0.7)", "ids"]), name_relations(["ids"])
    (' · by ids, rouge(threshold=0.7)', '')
    """
    distinct = list(dict.fromkeys(relations))
    return "" if distinct in ([], ["ids"]) else before + ", ".join(distinct)
