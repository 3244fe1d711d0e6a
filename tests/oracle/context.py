"""What a language model is handed: what it costs, where the needed part stands, what repeats."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from tests.oracle.counting import found

if TYPE_CHECKING:
    from tests.oracle.lists import Formulas, Query, Unit


def spent(query: Query, units: list[Unit], unit: str) -> float:
    """Return what some units cost together; of searches, how many were made for them."""
    if unit == "hops":
        return float(max((each.hop for each in units), default=0))
    return float(sum(query.cost(each, unit) for each in units))


def price(query: Query, k: object, unit: str) -> float:
    """Return what the first k units cost; without a cutoff, searches that found nothing, too."""
    made = float(query.searches) if unit == "hops" and k is None else 0.0
    return max(made, spent(query, query.cut(k), unit))


def context_cost(query: Query, k: object, unit: str = "tokens") -> float:
    """What the first k units cost."""
    return price(query, k, unit)


def items_per(query: Query, k: object, unit: str = "tokens", rel: float = 1.0) -> float:
    """Relevant items found for each 1,000 tokens or characters, for each search or rank."""
    paid = price(query, k, unit)
    many = 1000 if unit in ("tokens", "chars") else 1
    return found(query, k, rel, 0.0) / paid * many if paid else 0.0


def cost_to(
    query: Query, k: object, recall: float = 1.0, unit: str = "ranks", rel: float = 1.0
) -> float | None:
    """What the list costs down to the first unit at which recall reaches a level."""
    needed = recall * len(query.relevant(rel))
    if needed <= 0:
        return 0.0
    for each in query.cut(k):
        if found(query, each.rank, rel, 0.0) >= needed - 1e-9:
            return spent(query, query.cut(each.rank), unit)
    return None


def position(query: Query, k: object, of: str = "first", rel: float = 1.0) -> float:
    """Where the first or the last needed item is met: 0 at the top, 1 at the end."""
    ranks = [rank for _, rank in query.first_ranks(rel, k)]
    if not ranks:
        return 1.0
    rank = min(ranks) if of == "first" else max(ranks)
    size = len(query.cut(k))
    return (rank - 1) / (size - 1) if size > 1 else 0.0


def in_third(query: Query, k: object, third: str = "middle", rel: float = 1.0) -> float:
    """The share of the found items that are met in one third of the list."""
    ranks = [rank for _, rank in query.first_ranks(rel, k)]
    size = len(query.cut(k))
    number = {"first": 0, "middle": 1, "last": 2}[third]
    inside = [rank for rank in ranks if (2 * rank - 1) * 3 // (2 * size) == number]
    return len(inside) / len(ranks) if ranks else 0.0


def redundancy(query: Query, k: object, rel: float = 1.0) -> float:
    """The share of units that are repetitions, or relevant without anything new."""
    units = query.cut(k)
    met = query.first_ranks(rel, k)
    useless = [
        unit.again
        or (bool(query.covers(unit, rel)) and not any(rank == unit.rank for _, rank in met))
        for unit in units
    ]
    return sum(useless) / len(units) if units else 0.0


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return the sequences of three words of a text; of a shorter one, all of it."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))} if words else set()


def near_duplicates(query: Query, k: object) -> float:
    """The share of units whose words nearly repeat those of a unit above."""
    units = query.cut(k)
    again = 0
    for place, unit in enumerate(units):
        mine = shingles(unit.text)
        for above in units[:place]:
            other = shingles(above.text)
            if mine and len(mine & other) >= 0.8 * len(mine | other):
                again += 1
                break
    return again / len(units) if units else 0.0


def age(query: Query, k: object, on: str = "", of: str = "mean") -> float | None:
    """How many days before a date, or before the newest of the corpus, the units are dated."""
    until = on or query.newest
    days = sorted(
        max(0, (dt.date.fromisoformat(until) - dt.date.fromisoformat(unit.date)).days)
        for unit in query.cut(k)
        if unit.date is not None and until is not None
    )
    if not days:
        return None
    if of == "mean":
        return sum(days) / len(days)
    middle = len(days) // 2
    return float(days[middle]) if len(days) % 2 else (days[middle - 1] + days[middle]) / 2


FORMULAS: Formulas = {
    "context_cost": context_cost,
    "items_per": items_per,
    "cost_to": cost_to,
    "position": position,
    "in_third": in_third,
    "redundancy": redundancy,
    "near_duplicates": near_duplicates,
    "age": age,
}
