"""The shapes of records karat reads without glue, and how one is told from the others.

A plugin adds one with `register_shape` in a module that an entry point of the group
`karat.formats` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karat.errors import InputError, nearest
from karat.read.shapes import tools  # registers the shapes
from karat.read.shapes.shape import ROLES, SHAPES, Shape, register_shape

NATIVE = tools.NATIVE
GIVE_GOLD = "--gold FILE (in Python gold=)"
MEANS = {"retrieved": "what was retrieved", "gold": "what should be found"}


def shape_of(names: Iterable[str], role: str) -> Shape | None:
    """Return the shape that a record with these fields has, the one with most of them.

    >>> shape_of(["qid", "query", "retrieval_gt"], "gold").name
    'autorag'
    >>> shape_of(["query", "vector"], "gold") is None
    True
    """
    given = list(names)
    fitting = [shape for shape in SHAPES.values() if shape.fits(given, role)]
    return max(fitting, key=lambda shape: len(shape.present(given)), default=None)


def unknown_shape(names: Iterable[str], role: str, where: str) -> InputError:
    """Return the error for a record that has no known shape, with those that come closest."""
    given = [str(name) for name in names]
    missing = [side for side in ROLES[role] if not _holds(given, side)] or list(ROLES[role])
    guesses = list(filter(None, (nearest(name, [side]) for side in missing for name in given)))[:1]
    return InputError(
        f"the record has no field {' and no field '.join(map(repr, missing))}"
        f" ({', '.join(MEANS[side] for side in missing)}), nor what other tools call it; "
        f"found only {', '.join(given[:20]) or 'nothing'}",
        where=where,
        fix="; ".join([*guesses, *_advice(given, missing, role)]),
    )


def _advice(given: list[str], missing: list[str], role: str) -> Iterator[str]:
    if role == "samples" and "gold" in missing:
        yield f"give what should be found: {GIVE_GOLD}"
    yield _closest(given, role)
    if missing == ["gold"] and _holds(given, "question"):
        yield "or let a judge say what is relevant: -m context_precision"


def _holds(given: list[str], side: str) -> bool:
    return any(set(given).intersection(getattr(shape, side)) for shape in SHAPES.values())


def _closest(given: list[str], role: str) -> str:
    """List the shapes that share most fields with a record, and what they would need."""
    ranked = sorted(SHAPES.values(), key=lambda shape: -len(shape.present(given)))
    lines = [
        f"{shape.name} ({len(shape.present(given))} of its {len(shape.known())} fields"
        f"; it needs {' and '.join(_wanted(shape, given, role))})"
        for shape in ranked[:3]
        if shape.present(given)
    ]
    if not lines:
        return f"known shapes: {', '.join(SHAPES)}; see docs/inputs.md"
    return "closest shapes: " + ", ".join(lines)


def _wanted(shape: Shape, given: list[str], role: str) -> list[str]:
    sides = [getattr(shape, side) for side in ROLES[role]]
    wanted = [" or ".join(side) for side in sides if not set(given).intersection(side)]
    return wanted + sorted(shape.needs.difference(given)) or ["another field"]


__all__ = [
    "GIVE_GOLD",
    "NATIVE",
    "ROLES",
    "SHAPES",
    "Shape",
    "register_shape",
    "shape_of",
    "unknown_shape",
]
