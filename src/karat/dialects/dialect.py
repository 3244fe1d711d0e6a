"""What a dialect is, and the registry of those karat speaks."""

from __future__ import annotations

from dataclasses import dataclass, field

from karat.align import Policy


@dataclass(frozen=True, slots=True)
class Dialect:
    """A named set of policies."""

    name: str
    about: str
    policy: Policy = field(default_factory=Policy)


DIALECTS: dict[str, Dialect] = {}


def register_dialect(dialect: Dialect) -> Dialect:
    """Make a dialect known."""
    DIALECTS[dialect.name] = dialect
    return dialect
