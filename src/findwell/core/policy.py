"""What to do where tools differ: every choice has a name and is printed with the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from findwell.core.errors import takes_options

Missing: TypeAlias = Literal["zero", "skip", "error"]


@takes_options()
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do where tools differ; the defaults are findwell's."""

    scores: Literal["float64", "float32"] = "float64"  # how precisely scores are compared
    duplicates: Literal["first", "error"] = "first"  # a document again: noise, or refused
    missing: Missing = "zero"  # a query of the gold the run lacks
    no_relevant: Literal["undefined", "zero"] = "undefined"  # a query without a relevant item
    nothing: Literal["zero", "undefined"] = "zero"  # a query for which nothing was retrieved
    # a blank id, or a group without any; a blank text is kept, as a unit that covers nothing
    blank: Literal["error", "undefined", "kept"] = "error"
    grades: Literal["any", "integer"] = "any"

    def as_dict(self) -> dict[str, str]:
        """Return the choices by name."""
        return asdict(self)
