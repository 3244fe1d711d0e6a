"""The value of every measure over every relation, in every dialect, query by query."""

from __future__ import annotations

from typing import TypeAlias

from tests.test_invariances import DIALECTS, Values, measured, values

Rows: TypeAlias = dict[str, list[str]]  # measure → the value of each query, as Python spells it
DEFAULT = DIALECTS[0]
SEED = 1


def rows(dialect: str) -> Rows:
    """Return the values of a dialect."""
    return _without_budgets(measured(SEED, dialect)[1])


def rows_at_level(dialect: str) -> Rows:
    """Return the values of the measures that have a level, where grade 2 is needed."""
    found = values(measured(SEED, dialect)[0], dialect, ["ids"], rel=2.0)
    return {name: each for name, each in _without_budgets(found).items() if "rel=2" in name}


def _without_budgets(values: Values) -> Rows:
    """Leave out what only repeats another cutoff."""
    found: Rows = {}
    for (_, measure), value in sorted(values.items()):
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
    levels = {f"{dialect}-level-2": rows_at_level(dialect) for dialect in (DEFAULT, "trec_eval")}
    return {DEFAULT: default, **others, **levels}


def spelled(found: Rows) -> str:
    """Write rows as a table."""
    return "".join("\t".join([measure, *values]) + "\n" for measure, values in found.items())
