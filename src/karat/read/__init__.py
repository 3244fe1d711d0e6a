"""From bytes and Python objects to Run and Gold: one file a format, each registers itself.

The format is told from the content; naming one overrides that. A plugin adds a format with an
entry point of the group `karat.formats` that names a module which registers it.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, TypeAlias

from karat.data import Gold, Run, RunStream
from karat.errors import InputError, choose
from karat.read.format import FORMATS, Format, Look
from karat.read.source import Source

if TYPE_CHECKING:
    from karat.read.format import Samples

Path: TypeAlias = str | os.PathLike[str]


def load_run(data: object, *, name: str = "", format: str | None = None) -> RunStream:  # noqa: A002
    """Return a run: a path, a table, {query: {doc: score}}, {query: [doc]}, or records."""
    if isinstance(data, RunStream):
        return data
    if isinstance(data, Run):
        return data.stream()
    if isinstance(data, str | os.PathLike):
        source = Source.of(data)
        found = _format(source, "run", format)
        return found.run(source, name or source.name)
    from karat.read import python  # noqa: PLC0415

    return python.run(data, name or "run").stream()


def load_gold(data: object, *, format: str | None = None) -> Gold:  # noqa: A002
    """Return a gold: a path, a table, {query: {doc: grade}}, {query: [doc | [doc, …]]}, records."""
    if isinstance(data, Gold):
        return data
    if isinstance(data, str | os.PathLike):
        source = Source.of(data)
        return _format(source, "gold", format).gold(source)
    from karat.read import python  # noqa: PLC0415

    return python.gold(data)


def load_samples(data: object, *, name: str = "", format: str | None = None) -> Samples:  # noqa: A002
    """Return run and gold of records that hold both: a path or a list of dicts."""
    if isinstance(data, str | os.PathLike):
        source = Source.of(data)
        return _format(source, "samples", format).samples(source, name or source.name)
    from karat.read import records  # noqa: PLC0415

    return records.samples(data, name or "run")


def is_several(data: object) -> bool:
    """Tell whether this is a dict of named runs rather than one run.

    >>> is_several({"q1": {"d1": 0.5}}), is_several({"bm25": {"q1": {"d1": 0.5}}})
    (False, True)
    >>> is_several({"bm25": "bm25.trec"})
    True
    """
    if not isinstance(data, Mapping) or not data:
        return False
    first = next(iter(data.values()))
    if isinstance(first, Mapping):
        return isinstance(next(iter(first.values()), None), Mapping | list | tuple)
    if isinstance(first, list):  # of records, not of ids
        return bool(first) and isinstance(first[0], Mapping) and "retrieved" in first[0]
    return isinstance(first, str | os.PathLike | Run | RunStream) or hasattr(first, "columns")


def known_formats() -> dict[str, Format]:
    """Return the known formats by name, in the order in which they are tried."""
    _load()
    return dict(sorted(FORMATS.items(), key=lambda entry: (entry[1].order, entry[0])))


def _format(source: Source, role: str, named: str | None) -> Format:
    formats = known_formats()
    able = {name: entry for name, entry in formats.items() if role in entry.roles}
    if named is not None:
        return able[choose(f"{role} format", named, able)]
    look = Look.at(source)
    for entry in able.values():
        if entry.sniff(look, role):
            return entry
    if not look.binary and not look.lines:
        raise InputError(
            "there is nothing but blank lines and comments where records should begin",
            where=source.where,
            fix="check what wrote the file",
        )
    other = next((name for name, entry in formats.items() if entry.sniff(look, role)), "")
    raise InputError(
        f"cannot tell what format this {role} file has; it begins with {look.excerpt!r}"
        + (f" (it looks like {other}, which holds no {role})" if other else ""),
        where=source.where,
        fix=f"name it with --{role}-format: {', '.join(able)}",
    )


@functools.cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for plugin in metadata.entry_points(group="karat.formats"):
        plugin.load()


__all__ = ["is_several", "known_formats", "load_gold", "load_run", "load_samples"]
