"""The list of one query as explanations show it: what stands at each rank, and what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.align import Aligned
    from karat.match.matcher import Drawing, Units
    from karat.relation import Relation

SHOWN = 3  # scores of a unit that are shown


@dataclass(frozen=True, slots=True)
class Step:
    """One rank of the list: what stands there and what it covers."""

    rank: int
    doc: str
    mark: str  # hit, again (covers only what was covered before), repeated, rejected, unjudged
    covers: tuple[int, ...]  # numbers of the items, from 1
    precision: float  # relevant units down to here ÷ rank
    text: str | None = None  # where texts are compared
    chunk: int | None = None  # the rank of its chunk, where the unit is a part of one
    scores: tuple[tuple[int, float], ...] = ()  # items and how well they are met, best first


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that should be found, and the rank at which it was."""

    number: int
    docs: tuple[str, ...]
    grade: float
    rank: int | None


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of the list, before it is known what it covers."""

    doc: str
    text: str | None = None
    chunk: int | None = None
    scores: tuple[tuple[int, float], ...] = ()


def units_of(aligned: Aligned, drawing: Drawing) -> list[Unit]:
    """Return the units of one query that a rule compares with the gold."""
    units = drawing.units(aligned)
    scores = _scores(drawing, units)
    names = aligned.rows["raw" if "raw" in aligned.rows.columns else "doc"].gather(units.row)
    chunk = aligned.rank[units.row].tolist() if units.sizes is not None else [None] * len(names)
    return [
        Unit(doc, text if drawing.blank_is_unit else None, chunk[at], scores.get(at, ()))
        for at, (doc, text) in enumerate(zip(names, units.text, strict=True))
    ]


def lay_out(units: list[Unit], relation: Relation) -> tuple[tuple[Step, ...], tuple[Item, ...]]:
    """Lay out the units of one query with what they cover, and the items."""
    covers: dict[int, list[int]] = {}
    for rank, item in zip(relation.edge_rank.tolist(), relation.edge_item.tolist(), strict=True):
        covers.setdefault(rank, []).append(item)
    repeats = set(relation.unit_rank[relation.unit_repeat > 0].tolist())
    judged = set(relation.unit_rank[relation.unit_judged].tolist())
    first: dict[int, int] = {}
    steps, hits = [], 0
    for rank, unit in enumerate(units, start=1):
        items = covers.get(rank, [])
        relevant = [item for item in items if relation.item_grade[item] >= 1]
        mark = _mark(relevant, first, repeated=rank in repeats, judged=rank in judged)
        hits += mark in ("hit", "again")
        if rank not in repeats:
            for item in items:
                first.setdefault(item, rank)
        numbers = tuple(item + 1 for item in items)
        more = (unit.text, unit.chunk, unit.scores)
        steps.append(Step(rank, unit.doc, mark, numbers, hits / rank, *more))
    return tuple(steps), tuple(_items(relation, first))


def _items(relation: Relation, first: dict[int, int]) -> list[Item]:
    docs: dict[int, list[str]] = {}
    for item, doc in zip(relation.member_item.tolist(), relation.member_doc, strict=True):
        docs.setdefault(item, []).append(doc)
    return [
        Item(item + 1, tuple(docs[item]), grade, first.get(item))
        for item, grade in enumerate(relation.item_grade.tolist())
    ]


def _scores(drawing: Drawing, units: Units) -> dict[int, tuple[tuple[int, float], ...]]:
    """Return the items that each unit meets best, with the scores."""
    found = drawing.scores(units)
    if found is None:
        return {}
    best: dict[int, dict[int, float]] = {}
    pairs = zip(found.unit.tolist(), found.item.tolist(), found.score.tolist(), strict=True)
    for unit, item, score in pairs:
        mine = best.setdefault(unit, {})
        mine[item] = max(score, mine.get(item, 0.0))
    return {
        unit: tuple(
            (item + 1, score)
            for item, score in sorted(mine.items(), key=lambda entry: -entry[1])[:SHOWN]
        )
        for unit, mine in best.items()
    }


def _mark(relevant: list[int], first: dict[int, int], *, repeated: bool, judged: bool) -> str:
    if repeated:
        return "repeated"
    if relevant:
        return "hit" if any(item not in first for item in relevant) else "again"
    return "rejected" if judged else "unjudged"
