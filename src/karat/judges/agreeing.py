"""How far two judges of a panel agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat.statistics.agreement import kappa

if TYPE_CHECKING:
    from karat.judges.verdicts import Verdict


def agreement(votes: Sequence[Sequence[Verdict | None]], one: int, other: int) -> dict[str, Any]:
    """Return how often two judges gave the same verdict, and κ; `votes` has a row a question.

    >>> from karat.judges.verdicts import Verdict
    >>> votes = [[Verdict(1), Verdict(1)], [Verdict(0), Verdict(1)], [Verdict(0), Verdict(0)]]
    >>> agreement(votes, 0, 1)
    {'verdicts': 3, 'same': 0.6667, 'kappa': 0.4}
    """
    pairs = [(_value(row[one]), _value(row[other])) for row in votes]
    both = [pair for pair in pairs if None not in pair]
    same = sum(first == second for first, second in both) / len(both) if both else None
    counted = {"verdicts": len(both), "same": same if same is None else round(same, 4)}
    found = kappa(*([pair[side] for pair in both] for side in (0, 1)))
    value = found.value if found.value is None else round(found.value, 4)
    return {**counted, "kappa": value} | ({"reason": found.reason} if value is None else {})


def _value(verdict: Verdict | None) -> int | None:
    return None if verdict is None else verdict.value
