"""The list of one query as explanations show it: what stands at each rank, and what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.explanation.marks import Item, View
    from karat.relate.match.matcher import BoundByRule, Units

SHOWN = 3  # scores of a unit that are shown


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of the list, before it is known what it covers."""

    doc: str
    text: str | None = None
    chunk: int | None = None
    scores: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One rank of the list: what stands there and what it covers."""

    rank: int
    doc: str
    mark: str  # hit, again, repeated, rejected, unjudged or miss: see `marks.Mark`
    covers: tuple[int, ...]  # numbers of the items, from 1
    grade: float | None  # the highest of these items
    precision: float  # relevant units down to here ÷ rank
    text: str | None = None  # where texts are compared
    chunk: int | None = None  # the rank of its chunk, where the unit is a part of one
    scores: tuple[tuple[int, float], ...] = ()  # items and how well they are met, best first


@dataclass(frozen=True, slots=True)
class Ranking:
    """The list and the gold of one query, as some measures see them."""

    relation: str  # with its parameters
    relevant: str  # which items count: grade >= 2
    steps: tuple[Step, ...]
    items: tuple[Item, ...]
    read_by: tuple[tuple[str, str], ...] = ()  # measure and dialect of the accounts that read it


def lay_out(view: View, relation: str, query: str, units: list[Unit]) -> Ranking:
    """Lay out the units of one query with what they cover, and the items."""
    at = view.marks.number.get(query)
    if at is None:
        return Ranking(relation, view.relevant, (), ())
    steps, relevant = [], 0
    for rank, (unit, mark) in enumerate(zip(units, view.marks.units(at), strict=True), start=1):
        relevant += mark.kind in ("hit", "again")
        more = (unit.text, unit.chunk, unit.scores)
        told = (mark.kind, mark.covers, mark.grade, relevant / rank)
        steps.append(Step(rank, unit.doc, *told, *more))
    return Ranking(relation, view.relevant, tuple(steps), tuple(view.marks.items(at)))


def units_of(aligned: Aligned, bound: BoundByRule) -> dict[int, list[Unit]]:
    """Return the units that a rule compares with the gold, by the number of their query."""
    units = bound.units(aligned)
    scores = _scores(bound, units)
    names = aligned.rows["raw" if "raw" in aligned.rows.columns else "doc"].gather(units.row)
    chunk = aligned.rank[units.row].tolist() if units.sizes is not None else [None] * len(names)
    first = bound.gold.item_offset.tolist()
    found: dict[int, list[Unit]] = {}
    rows = zip(units.query.tolist(), names, units.text, chunk, strict=True)
    for at, (query, doc, text, part) in enumerate(rows):
        told = tuple((item - first[query] + 1, score) for item, score in scores.get(at, ()))
        shown = text if bound.blank_is_unit else None
        found.setdefault(query, []).append(Unit(doc, shown, part, told))
    return found


def _scores(bound: BoundByRule, units: Units) -> dict[int, tuple[tuple[int, float], ...]]:
    """Return the items that each unit meets best, with the scores."""
    found = bound.scores(units)
    if found is None:
        return {}
    best: dict[int, dict[int, float]] = {}
    pairs = zip(found.unit.tolist(), found.item.tolist(), found.score.tolist(), strict=True)
    for unit, item, score in pairs:
        mine = best.setdefault(unit, {})
        mine[item] = max(score, mine.get(item, 0.0))
    return {
        unit: tuple(sorted(mine.items(), key=lambda entry: -entry[1])[:SHOWN])
        for unit, mine in best.items()
    }
