"""Measures: formulas over a relation, one file each, variants next to what they vary.

A measure is a value: immutable, hashable, `str()` is its canonical name and
`parse_measure(str(m)) == m`. It only reads the relation; it never knows who drew the edges.

To add one, write a subclass of `Measure` under `@register_measure`: in a file here, in your own
package under an entry point of the group `findwell.measures`, or anywhere with
`findwell.plugins.register_measure`.
"""

from __future__ import annotations

from typing import dataclass_transform

from findwell.core import measure
from findwell.core.measure import MEASURES, M, Measure
from findwell.measures.grammar import expand, parse_measure

DEFAULTS = ("recall@5", "recall@10", "P@5", "RR", "AP", "nDCG@10")


def known_measures() -> dict[str, type[Measure]]:
    """Return every known measure by its canonical name: built in, from plugins, registered."""
    return dict(sorted(MEASURES.items(), key=lambda entry: entry[0].casefold()))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register_measure(cls: M) -> M:
    """Class decorator: make a measure of yours a frozen dataclass, known by name and aliases."""
    MEASURES.load_built_in()  # whose names are taken
    return measure.register_measure(cls)


__all__ = ["DEFAULTS", "Measure", "expand", "known_measures", "parse_measure", "register_measure"]
