"""Where a list is cut: after k ranks, or where a budget of tokens, characters or calls is spent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from findwell.core.errors import MeasureError, choose

# the units of a budget, with the ways in which they are spelled
UNITS = {
    "tokens": "tokens token",
    "chars": "chars char characters character",
    "hops": "hops hop calls call searches",
}
COUNTED = ("tokens", "chars")  # what is counted in the texts of chunks
SPELLINGS = {word: unit for unit, words in UNITS.items() for word in words.split()}
_AMOUNT = re.compile(r"(?P<amount>\d{1,15})[\s_]*(?P<word>[a-z]+)|hop(?P<hop>\d{1,15})")


@dataclass(frozen=True, slots=True)
class Budget:
    """What the list of a query may cost: so many tokens, characters or hops.

    Chunks are taken in rank order as long as all of them together stay within the budget. The one
    that would cross it is left out, and so is everything below it.

    >>> str(Budget(2000, "tokens"))
    '2000tokens'
    """

    amount: int
    unit: str

    def __post_init__(self) -> None:
        """Check the amount and the unit."""
        choose("unit of a budget", self.unit, UNITS)
        if type(self.amount) is not int or self.amount < 1:
            raise MeasureError(
                f"the budget {self.amount}{self.unit} is not a whole number from 1",
                fix=f"for example recall@2000{self.unit}",
            )

    def __str__(self) -> str:
        return f"{self.amount}{self.unit}"


Cutoff: TypeAlias = "int | Budget"


def read_budget(text: str) -> Budget | None:
    """Return the budget that a cutoff spells; None if it spells none.

    >>> read_budget("2000tokens"), read_budget("hop2"), read_budget("10")
    (Budget(amount=2000, unit='tokens'), Budget(amount=2, unit='hops'), None)
    """
    found = _AMOUNT.fullmatch(text.strip().casefold())
    if found is None:
        return None
    if found["hop"]:
        return Budget(int(found["hop"]), "hops")
    unit = SPELLINGS.get(found["word"])
    return None if unit is None else Budget(int(found["amount"]), unit)
