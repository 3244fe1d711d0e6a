"""JSON objects in which a name may stand twice: Python would keep the last one in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from karat.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection


class Repeated(dict[str, Any]):
    """An object of JSON in which some names stand more than once; the last of each counts."""

    names: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    given = [name for name, _ in pairs]
    repeated = Repeated(found)
    repeated.names = tuple(name for name in found if given.count(name) > 1)
    return repeated


DECODER = json.JSONDecoder(object_pairs_hook=_object)


def loads(data: bytes | str) -> Any:  # noqa: ANN401
    """Parse JSON as `json.loads` does, but remember names that stand twice.

    >>> repeated(loads('{"a": 1, "b": 2, "a": 3}'))
    ('a',)
    """
    if isinstance(data, bytes):
        data = data.decode(json.detect_encoding(data), "surrogatepass")
    return DECODER.decode(data.removeprefix("\ufeff"))


def repeated(value: object) -> tuple[str, ...]:
    """Return the names that stand twice in an object."""
    return value.names if isinstance(value, Repeated) else ()


def refuse_repeated(
    value: object, what: str, among: Collection[str] | None = None, *, where: str = ""
) -> None:
    """Raise if a name stands twice in an object, of all names or of these; `what` names it."""
    for name in repeated(value):
        if among is None or name in among:
            raise InputError(
                f"{what} {name!r} stands more than once in the same object",
                where=where,
                fix="keep one of them; most programs would take the last in silence",
            )
