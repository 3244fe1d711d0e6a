"""Ids as text: whole numbers are welcome, anything else is not an id."""

from __future__ import annotations

from karat.errors import InputError


def doc_id(value: object, where: str) -> str:
    """Return the id of a document; what a blank one means is decided later."""
    return value if isinstance(value, str) else identifier(value, where)


def identifier(value: object, where: str) -> str:
    """Return an id as text; whole numbers are welcome, anything else is not an id."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return identifier(value.item(), where)
    raise InputError(
        f"{str(value)[:40]!r} is not an id", where=where, fix="ids are texts or whole numbers"
    )
