"""How the numbers of every query come about: all queries at once, told one by one."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.explanation.explain import Account
from karat.report.account import sentence

if TYPE_CHECKING:
    from karat.data import Floats, Ints
    from karat.measures import Measure
    from karat.relation import Relation
    from karat.results.result import Result


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """The terms of a measure for all queries, and what they are divided by."""

    measure: Measure
    adds: str
    start: Ints  # n+1: where the terms of each query begin
    rank: Ints
    value: Floats
    divisor: Floats
    divided_by: str


class Steps:
    """Tells how each measure of a result comes about, for any of its queries."""

    def __init__(self, result: Result, run: str) -> None:
        self._result = result
        self._run = run
        every = (part for each in result.measures for part in (*each.parts(), each))
        self._measures = tuple(dict.fromkeys(every))
        self._scored = result.score(self._measures)
        self._sums: dict[Measure, _Sum] = {}
        relations = {each: self._scored.relation(run, each) for each in self._measures}
        self._numbers = {
            id(relation): {query: at for at, query in enumerate(relation.queries)}
            for relation in {id(each): each for each in relations.values()}.values()
        }

    def tell(self, query: str) -> list[str]:
        """Return a sentence a measure."""
        return [sentence(self._account(measure, query)) for measure in self._measures]

    def _account(self, measure: Measure, query: str) -> Account:
        relation = self._scored.relation(self._run, measure)
        at = self._numbers[id(relation)].get(query)
        if at is None:
            return _empty(measure, self._result.dialect, "the system was not asked this query")
        value = float(self._scored.arrays[self._run, measure][at])
        reason = None
        if np.isnan(value):
            reason = relation.void[at] or measure.why_undefined
        terms: tuple[tuple[int, float], ...] = ()
        divisor, divided_by, adds = None, "", ""
        if measure.is_sum():
            told = self._sum(measure, relation)
            mine = slice(told.start[at], told.start[at + 1])
            terms = tuple(zip(told.rank[mine].tolist(), told.value[mine].tolist(), strict=True))
            divisor, divided_by, adds = float(told.divisor[at]), told.divided_by, told.adds
        return Account(
            measure=str(measure),
            dialect=self._result.dialect,
            adds=adds,
            terms=terms,
            divisor=divisor,
            divided_by=divided_by,
            ideal=_ideal(measure, relation, at),
            value=None if reason else value,
            reason=reason,
        )

    def _sum(self, measure: Measure, relation: Relation) -> _Sum:
        if measure not in self._sums:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms, by = measure.terms(relation), measure.divisor(relation)
            values = np.ones(len(terms.rank)) if terms.value is None else terms.value
            order = np.lexsort((terms.rank, terms.query))
            count = np.bincount(terms.query, minlength=relation.n)
            self._sums[measure] = _Sum(
                measure,
                (inspect.getdoc(type(measure).terms) or "").splitlines()[0].rstrip("."),
                np.concatenate(([0], np.cumsum(count))),
                terms.rank[order],
                values[order],
                np.broadcast_to(np.asarray(by.value, dtype=np.float64), relation.n),
                by.name,
            )
        return self._sums[measure]


def _ideal(measure: Measure, relation: Relation, at: int) -> tuple[tuple[int, float], ...]:
    """Return the ranks and grades of the ideal list, for measures that have one."""
    if measure.name != "nDCG":
        return ()
    grades = relation.item_grade[relation.item_offset[at] : relation.item_offset[at + 1]]
    cut = len(grades) if measure.k is None or relation.chunk_end is not None else measure.k
    kept = [grade for grade in grades[:cut].tolist() if grade > 0]
    return tuple(enumerate(kept, start=1))


def _empty(measure: Measure, dialect: str, reason: str) -> Account:
    return Account(str(measure), dialect, "", (), None, "", (), None, reason)
