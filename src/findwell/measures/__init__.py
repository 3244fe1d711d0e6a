"""Measures: formulas over a relation, one file each, variants beside what they vary.

A measure is a value: immutable, hashable, `str()` is its canonical name and
`parse_measure(str(m)) == m`. It only reads the relation; it never knows who drew the edges.

To add one, write a subclass of `Measure` under `@register_measure`: in a file here, in your own
package under an entry point of the group `findwell.measures`, or anywhere with
`findwell.register_measure`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, dataclass_transform

from findwell.core import measure
from findwell.core.errors import MeasureError
from findwell.core.measure import REGISTRY, M, Measure
from findwell.core.plugins import entry_points
from findwell.measures import grammar

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS = ("recall@5", "recall@10", "P@5", "RR", "AP", "nDCG@10")


def parse_measure(
    spec: str | Measure, formulas: Mapping[str, type[Measure]] | None = None
) -> Measure:
    """Return the measure of this name; `formulas` are those that a dialect computes otherwise.

    >>> parse_measure("ndcg_cut_10") == parse_measure("nDCG@10")
    True
    """
    known_measures()
    return grammar.parse_measure(spec, formulas)


def expand(spec: str) -> list[str]:
    """Return the names that a list of cutoffs stands for: `expand("recall@1,5")`."""
    known_measures()
    return grammar.expand(spec)


def known_measures() -> dict[str, type[Measure]]:
    """Return every known measure by its canonical name: built in, from plugins, registered."""
    _load_built_in()
    _load_plugins()
    return dict(sorted(REGISTRY.items(), key=lambda entry: entry[0].casefold()))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register_measure(cls: M) -> M:
    """Class decorator: make a measure of yours a frozen dataclass, known by name and aliases."""
    _load_built_in()
    return measure.register_measure(cls)


@functools.cache
def _load_built_in() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


@functools.cache
def _load_plugins() -> None:
    for plugin in entry_points(group="findwell.measures"):
        try:
            loaded = plugin.load()
        except Exception as error:
            raise MeasureError(
                f"the measure plugin {plugin.name!r} ({plugin.value}) does not load: {error}",
                fix="update or uninstall the package that brings it",
            ) from error
        if isinstance(loaded, type) and issubclass(loaded, Measure):
            register_measure(loaded)


__all__ = ["DEFAULTS", "Measure", "expand", "known_measures", "parse_measure", "register_measure"]
