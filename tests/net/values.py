"""The value of every measure over every relation, in every dialect, query by query."""

from __future__ import annotations

from typing import TypeAlias

from tests.test_invariances import DIALECTS, measured

Rows: TypeAlias = dict[str, list[str]]  # measure → the value of each query, as Python spells it
DEFAULT = DIALECTS[0]
SEED = 1


def rows(dialect: str) -> Rows:
    """Return the values of a dialect, without those that only repeat another cutoff's budget."""
    found: Rows = {}
    for (_, measure), value in sorted(measured(SEED, dialect)[1].items()):
        if "tokens" not in measure and "chars" not in measure.partition("@")[2]:
            found.setdefault(measure, []).append(repr(value))
    return found


def recorded() -> dict[str, Rows]:
    """Return the rows of the default dialect, and of the others what differs from them."""
    default = rows(DEFAULT)
    others = {
        dialect: {
            measure: values
            for measure, values in rows(dialect).items()
            if default.get(measure) != values
        }
        for dialect in DIALECTS
        if dialect != DEFAULT
    }
    return {DEFAULT: default, **others}


def spelled(found: Rows) -> str:
    """Write rows as a table."""
    return "".join("\t".join([measure, *values]) + "\n" for measure, values in found.items())
