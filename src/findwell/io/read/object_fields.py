"""Fields of results, attributes of objects or keys of dicts alike, and which source has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any
from uuid import UUID

from findwell.core.errors import InputError
from findwell.core.findings import shorten
from findwell.io.read.object_sources import ID_NAMES, OBJECT_SOURCES, TEXT_NAMES

if TYPE_CHECKING:
    from findwell.io.read.object_sources import ObjectSource

FIX = (
    'give ids, dicts such as {"doc": "d1", "text": "…"}, or results of a source that is listed in '
    "docs/inputs.md"
)
ABSENT = object()


def find_source(result: object) -> ObjectSource | None:
    """Return the source that a result comes from; None if it has no known fields at all."""
    known = known_source(result)
    if known is not None:
        return known
    record = OBJECT_SOURCES["record"]
    return record if first_named(result, (*ID_NAMES, *TEXT_NAMES)) is not None else None


_LAST: dict[type, ObjectSource] = {}  # the source of the last object of a type, tried first


def known_source(result: object) -> ObjectSource | None:
    """Return the source whose fields a result has, but for the one that takes any record."""
    last = _LAST.get(type(result))
    if last is not None and all(has_field(result, path) for path in last.needs):
        return last
    for source in OBJECT_SOURCES.values():
        if source.needs and all(has_field(result, path) for path in source.needs):
            if not isinstance(result, Mapping):
                _LAST[type(result)] = source
            return source
    return None


def is_result(value: object) -> bool:
    """Tell whether this is one result of a known source: an object or the dict of one."""
    if is_plain(value) or isinstance(value, list | tuple):
        return False
    return find_source(value) is not None


def not_readable(value: object) -> InputError:
    """Return the error for something that is no answer and no result."""
    fields = ", ".join(field_names(value))
    return InputError(
        f"{type_name(value)} is not an id, and no retrieved object that findwell knows: "
        + (f"it has only {fields}" if fields else shorten(repr(value), 80)),
        fix=FIX,
    )


def type_name(value: object) -> str:
    """Return the type of a value with its module, for messages.

    >>> type_name(UUID(int=1)), type_name([])
    ('uuid.UUID', 'list')
    """
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def is_plain(value: object) -> bool:
    """Tell whether a value is an id, a text or a number, and has no fields."""
    return isinstance(value, str | bytes | int | float | UUID) or hasattr(value, "item")


def is_number(value: object) -> bool:
    """Tell whether a value is a number of any kind; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, Number)


def is_list(value: object) -> bool:
    """Tell a list from objects that can be iterated over, such as the models of pydantic."""
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return True
    is_object = isinstance(value, Mapping | str | bytes) or hasattr(value, "model_fields")
    return isinstance(value, Iterable) and not is_object


def is_row(value: object) -> bool:
    """Tell whether a tuple has names for its values: a named tuple, or a row of SQLAlchemy."""
    return hasattr(value, "_asdict") or hasattr(value, "_mapping")


def by_key(value: object) -> object:
    """Return a row whose columns are keys, as of asyncpg and sqlite3, as a dict."""
    if isinstance(value, Mapping) or not hasattr(value, "keys"):
        return value
    return {str(name): value[name] for name in value.keys()}  # type: ignore[index] # noqa: SIM118


def get_field(value: object, name: str) -> Any:  # noqa: ANN401
    """Return what a dict or an object holds under a name, if it holds it."""
    if isinstance(value, dict | Mapping):
        return value.get(name, ABSENT)
    if value is None or isinstance(value, str | bytes | int | float | list | tuple | UUID):
        return getattr(value, name, ABSENT) if is_row(value) else ABSENT
    try:
        found = getattr(value, name, ABSENT)
    except Exception:  # noqa: BLE001 - a property of a framework that cannot be asked
        return ABSENT
    return ABSENT if callable(found) else found  # a method is no field


def has_field(value: object, path: str) -> bool:
    """Tell whether a dotted path leads to something, which may be None."""
    head, _, rest = path.partition(".")
    found = get_field(value, head)
    return found is not ABSENT and (not rest or has_field(found, rest))


def look_up(value: object, path: str) -> Any:  # noqa: ANN401
    """Return what stands under a dotted path, or under a name that itself has dots; else None."""
    whole = get_field(value, path)
    if whole is not ABSENT:
        return whole
    head, _, rest = path.partition(".")
    found = get_field(value, head) if rest else ABSENT
    return None if found is ABSENT else look_up(found, rest)


def first_of(value: object, paths: Iterable[str]) -> Any:  # noqa: ANN401
    """Return what stands under the first of these paths that has a value."""
    found = (look_up(value, path) for path in paths)
    return next((each for each in found if each is not None), None)


def first_named(value: object, names: Iterable[str]) -> Any:  # noqa: ANN401
    """Return what stands under the first of these names that has a value."""
    found = (get_field(value, name) for name in names)
    return next((each for each in found if each is not None and each is not ABSENT), None)


def field_names(value: object) -> list[str]:
    """Return the names of the first fields, for messages."""
    names = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    return [str(name) for name in names if not str(name).startswith("_")][:12]
