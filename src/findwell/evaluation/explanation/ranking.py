"""The list of a query as measures see it: what each unit is, and which items were met."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.measure import ANY_GAIN
from findwell.relations.match import known_matchers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.relation import Relation
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

# a chunk is what the best of its units is
BEST_FIRST = ("hit", "again", "rejected", "unjudged", "miss", "repeated")


@dataclass(frozen=True, slots=True)
class UnitMark:
    """What a unit, or a chunk of units, is.

    `kind` is hit, again (covers only what was covered before), repeated (the unit itself stands
    higher up), rejected (judged, but not relevant), unjudged, or miss where texts are compared.
    """

    kind: str
    covers: tuple[int, ...]  # numbers of the items, from 1, whatever their grades
    grade: float | None  # the highest of these items
    relevant: bool  # one of them counts
    parts: tuple[int, ...] = ()  # of a chunk of several units: those that are relevant, from 0


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that should be found, and the rank at which it was."""

    number: int
    docs: tuple[str, ...]
    grade: float
    relevant: bool
    rank: int | None


@dataclass(frozen=True, slots=True)
class Unit:
    """What stands at one rank of a list, before it is known what it covers."""

    doc: str
    text: str | None = None  # where texts are compared
    chunk: int | None = None  # the rank of its chunk, where the unit is a part of one
    scores: tuple[tuple[int, float], ...] = ()  # items and how well they are met, best first


@dataclass(frozen=True, slots=True)
class Step:
    """One rank of a list: what stands there and what it covers."""

    rank: int
    doc: str
    mark: str  # hit, again, repeated, rejected, unjudged or miss: see `UnitMark`
    covers: tuple[int, ...]  # numbers of the items, from 1
    grade: float | None  # the highest of these items
    precision: float  # relevant units down to here ÷ rank
    text: str | None = None
    chunk: int | None = None
    scores: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The list and the gold of one query, as some measures see them."""

    relation: str  # with its parameters
    relevant: str  # which items count: grade >= 2
    steps: tuple[Step, ...]
    items: tuple[Item, ...]
    read_by: tuple[tuple[str, str], ...] = ()  # measure and dialect of the numbers that read it


class Marks:
    """What the units and items of each query are, found query by query."""

    def __init__(self, relation: Relation, level: float, *, texts: bool = False) -> None:
        self.relation = relation
        self.level = level
        self.number = {query: at for at, query in enumerate(relation.queries)}
        self._nothing = "miss" if texts else "unjudged"  # texts are compared, not judged
        every = np.arange(relation.n + 1)
        self._edges = np.searchsorted(relation.edge_query, every)
        self._units = np.searchsorted(relation.unit_query, every)
        self._members = np.searchsorted(
            relation.member_item, np.arange(len(relation.item_grade) + 1)
        )

    def units(self, at: int, wanted: Iterable[int] | None = None) -> list[UnitMark]:
        """Return what the units of these ranks are, or those of the whole list."""
        relation, first = self.relation, int(self.relation.item_offset[at])
        mine = slice(self._units[at], self._units[at + 1])
        ranks = relation.unit_rank[mine]
        repeats = set(ranks[relation.unit_repeat[mine] > 0].tolist())
        judged = set(ranks[relation.unit_judged[mine]].tolist())
        met = self.met(at)
        covers: dict[int, list[int]] = {}
        for rank, item, _ in self._edges_of(at):
            covers.setdefault(rank, []).append(item)
        marks = []
        for rank in range(1, int(relation.depth[at]) + 1) if wanted is None else wanted:
            items = covers.get(rank, [])
            grades = [float(relation.item_grade[first + item]) for item in items]
            good = [item for item, grade in zip(items, grades, strict=True) if grade >= self.level]
            if rank in repeats:
                kind = "repeated"
            elif good:
                kind = "hit" if any(met[item] == rank for item in good) else "again"
            else:
                kind = "rejected" if rank in judged else self._nothing
            numbers = tuple(item + 1 for item in items)
            marks.append(UnitMark(kind, numbers, max(grades, default=None), bool(good)))
        return marks

    def chunks(self, at: int, count: int) -> list[UnitMark]:
        """Return what each of the first chunks is: the best of its units."""
        ends = self.ends(at)
        if ends is None:
            return self.units(at, range(1, count + 1))
        bounds = [0, *ends[:count], *([ends[-1] if ends else 0] * (count - len(ends)))]
        units = self.units(at, range(1, bounds[-1] + 1))
        return [self._join(units[low:high]) for low, high in pairwise(bounds)]

    def _join(self, units: list[UnitMark]) -> UnitMark:
        kinds = {unit.kind for unit in units} or {self._nothing}
        return UnitMark(
            kind=next(kind for kind in BEST_FIRST if kind in kinds),
            covers=tuple(sorted({item for unit in units for item in unit.covers})),
            grade=max((unit.grade for unit in units if unit.grade is not None), default=None),
            relevant=any(unit.relevant for unit in units),
            parts=tuple(place for place, unit in enumerate(units) if unit.relevant),
        )

    def ends(self, at: int) -> list[int] | None:
        """Return how many units stand down to the end of each chunk; None: each is one."""
        offset, ends = self.relation.chunk_offset, self.relation.chunk_end
        if offset is None or ends is None:
            return None
        return [int(end) for end in ends[offset[at] : offset[at + 1]]]

    def met(self, at: int) -> dict[int, int]:
        """Return the rank at which each item was met, items from 0; a repeated unit meets none."""
        first: dict[int, int] = {}
        for rank, item, counts in self._edges_of(at):
            if counts:
                first.setdefault(item, rank)
        return first

    def relevant(self, at: int) -> int:
        """Count the relevant items; they come first."""
        return int(self.relation.relevant(self.level)[at])

    def items(self, at: int, most: int | None = None) -> list[Item]:
        """Return the items of a query, the highest grade first, at most this many."""
        relation = self.relation
        first, last = (int(place) for place in relation.item_offset[at : at + 2])
        last = last if most is None else min(last, first + most)
        met, start = self.met(at), self._members
        return [
            Item(
                number=item - first + 1,
                docs=tuple(relation.member_doc[int(start[item]) : int(start[item + 1])]),
                grade=float(relation.item_grade[item]),
                relevant=bool(relation.item_grade[item] >= self.level),
                rank=met.get(item - first),
            )
            for item in range(first, last)
        ]

    def _edges_of(self, at: int) -> Iterable[tuple[int, int, bool]]:
        """Return rank and item, from 0 within the query, of each edge, and whether it counts."""
        mine = slice(self._edges[at], self._edges[at + 1])
        relation = self.relation
        items = relation.edge_item[mine] - relation.item_offset[at]
        counts = relation.edge_counts[mine]
        return zip(relation.edge_rank[mine].tolist(), items.tolist(), counts.tolist(), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class RelationView:
    """A relation of a run as some measures read it: from one grade on."""

    relation: str  # as the result calls it
    measures: tuple[Measure, ...]
    marks: Marks

    @property
    def relevant(self) -> str:
        """Which items count, in words."""
        return grade_words(self.marks.level)

    def rank(self, query: str, units: list[Unit], relation: str) -> Ranking:
        """Lay out the units of one query with what they cover, and the items."""
        at = self.marks.number.get(query)
        if at is None:
            return Ranking(relation, self.relevant, (), ())
        steps, relevant = [], 0
        for rank, (unit, mark) in enumerate(zip(units, self.marks.units(at), strict=True), 1):
            relevant += mark.kind in ("hit", "again")
            found = (mark.kind, mark.covers, mark.grade, relevant / rank)
            steps.append(Step(rank, unit.doc, *found, unit.text, unit.chunk, unit.scores))
        return Ranking(relation, self.relevant, tuple(steps), tuple(self.marks.items(at)))


def views(result: Result, run: str, measures: Iterable[Measure]) -> list[RelationView]:
    """Return the relations that measures read, one for each set of items that they count."""
    every = list(measures)
    readers: dict[tuple[str, int], list[Measure]] = {}
    relations = {name: each for (owner, name), each in result.relations.items() if owner == run}
    for measure in sorted(every, key=lambda each: level_of(each) is None):
        name = measure.relation or result.provenance.drawn_by
        level = level_of(measure)
        known = [key for key in readers if key[0] == name]
        if level is None and known:  # it asks for no grade, and fits any view
            readers[known[0]].append(measure)
            continue
        # items come by grade, so that equally many are the same ones
        count = int(relations[name].relevant(1.0 if level is None else level).sum())
        readers.setdefault((name, count), []).append(measure)
    found = [
        RelationView(
            name, tuple(mine), Marks(relations[name], mine[0].level(), texts=reads_texts(name))
        )
        for (name, _), mine in readers.items()
    ]
    return sorted(found, key=lambda view: min(map(every.index, view.measures)))


def level_of(measure: Measure) -> float | None:
    """Return the grade from which a measure counts an item; None if it asks for none.

    >>> from findwell.measures import parse_measure
    >>> [level_of(parse_measure(name)) for name in ("P(rel=2)@5", "judged@5")]
    [2.0, None]
    """
    asks = measure.needs_relevant or "rel" in measure.parameters()
    return measure.level() if asks else None


def grade_words(level: float) -> str:
    """Say which items count.

    >>> grade_words(2.0), grade_words(ANY_GAIN)
    ('grade >= 2', 'grade > 0')
    """
    return "grade > 0" if level == ANY_GAIN else f"grade >= {level:g}"


def reads_texts(relation: str) -> bool:
    """Return whether a relation compares texts; an unknown one may do so."""
    matcher = known_matchers().get(relation.partition("(")[0])
    return matcher is None or matcher.reads_texts
