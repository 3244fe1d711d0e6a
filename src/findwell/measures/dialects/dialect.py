"""What a dialect is, and the registry of all dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from findwell.core.plugins import Registry
from findwell.core.policy import Policy

if TYPE_CHECKING:
    from findwell.core.measure import Measure


@dataclass(frozen=True, slots=True)
class Dialect:
    """A named set of policies, and the formulas that differ from findwell's by measure name."""

    name: str
    about: str
    policy: Policy = field(default_factory=Policy)
    formulas: Mapping[str, type[Measure]] = field(default_factory=dict)
    run_ids: str = "identity"  # how the ids of the run, and only of the run, are normalised
    # the parameters of relations that differ from findwell's, by name
    relations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # names that stand for several measures when they are asked for
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def formula(self, measure: Measure) -> Measure:
        """Return the measure as this tool computes it."""
        formula = self.formulas.get(measure.name)
        if formula is None or isinstance(measure, formula):
            return measure
        given = {entry.name: getattr(measure, entry.name) for entry in fields(measure)}
        plain = type(measure)()  # what was not asked for is the formula's own choice
        return formula(
            **{name: value for name, value in given.items() if value != getattr(plain, name)}
        )


def register_dialect(dialect: Dialect) -> Dialect:
    """Make a dialect known."""
    return DIALECTS.register(dialect.name, dialect)


DIALECTS: Registry[Dialect] = Registry(
    "dialect",
    package="findwell.measures.dialects",
    group="findwell.dialects",
    accept=register_dialect,
)


# findwell's own choices are the defaults of `Policy`, each explained in docs/policies.md
register_dialect(
    Dialect("findwell", "principled: nothing is dropped silently, no measure can pass 1")
)
