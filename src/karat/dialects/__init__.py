"""How other tools would have computed it: a dialect is a named set of policies, one file a tool.

A dialect never changes what the measures are called, only the choices that tools make silently;
the result says which dialect made its numbers.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from karat.dialects.dialect import DIALECTS, Dialect
from karat.errors import choose


def dialect(name: str | Dialect) -> Dialect:
    """Return the dialect of this name."""
    if isinstance(name, Dialect):
        return name
    known = known_dialects()
    return known[choose("dialect", name, known)]


def known_dialects() -> dict[str, Dialect]:
    """Return all dialects by name, karat's own first."""
    _load()
    return dict(sorted(DIALECTS.items(), key=lambda entry: (entry[0] != "karat", entry[0])))


@functools.cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


__all__ = ["Dialect", "dialect", "known_dialects"]
