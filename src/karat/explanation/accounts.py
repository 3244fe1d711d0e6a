"""How the numbers of every query come about: all queries at once, told one by one.

Terms, divisor and limit are those of the measure itself, so that what is shown is what was added
up.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from karat.explanation.marks import level_of, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karat.core.data import Bools, Floats, Ints
    from karat.core.relation import Relation
    from karat.measures import Measure
    from karat.results.result import Result

LACKING = {
    "zero": "the system was not asked this query",
    "skip": "the run lacks this query, which is left out (missing=skip)",
    "error": "the run lacks this query, which stops an evaluation (missing=error)",
}
COUNTED = "counts as 0"  # where a policy says so of what is undefined


@dataclass(frozen=True, slots=True)
class Account:
    """How a measure comes about under a dialect: terms, sum, divisor, limit, value."""

    measure: str
    dialect: str
    relation: str  # that the measure reads, with its parameters
    relevant: str | None  # which items count; None: it asks for no grade
    adds: str  # what is added up, in words; of what is no sum, what it is
    terms: tuple[tuple[int, float], ...]  # rank and value
    divisor: float | None  # None: the measure is no sum
    divided_by: str
    ideal: tuple[tuple[int, float], ...]  # rank and gain of the ideal list, where there is one
    limit: str  # what becomes of the quotient, if anything does
    value: float | None
    reason: str | None
    parts: tuple[str, ...] = ()  # the measures that it is made of

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return float(np.sum([value for _, value in self.terms]))

    @property
    def quotient(self) -> float | None:
        """The sum ÷ the divisor; None where there is none, or where it is 0."""
        return self.total / self.divisor if self.divisor else None


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """The terms of a measure for all queries, what they are divided by, and the ideal list."""

    start: Ints  # n+1: where the terms of each query begin
    rank: Ints
    value: Floats
    divisor: Floats
    divided_by: str
    ideal_start: Ints  # n+1
    ideal_rank: Ints
    ideal_gain: Floats

    @classmethod
    def of(cls, measure: Measure, relation: Relation) -> _Sum:
        """Take a measure at its word."""
        with np.errstate(divide="ignore", invalid="ignore"):
            terms, by = measure.terms(relation), measure.divisor(relation)
        values = np.ones(len(terms.rank)) if terms.value is None else terms.value
        order = np.argsort(terms.query, kind="stable")
        empty = np.zeros(0, dtype=np.int64)
        best = (empty, empty, np.zeros(0))
        if by.ideal is not None:
            gains = by.ideal.gain > 0
            best = (by.ideal.query[gains], by.ideal.rank[gains], by.ideal.gain[gains])
        ranked = np.lexsort((best[1], best[0]))
        return cls(
            start=_starts(relation, terms.query),
            rank=terms.rank[order],
            value=values[order],
            divisor=np.broadcast_to(np.asarray(by.value, dtype=np.float64), relation.n),
            divided_by=by.name,
            ideal_start=_starts(relation, best[0]),
            ideal_rank=best[1][ranked],
            ideal_gain=best[2][ranked],
        )


class Accounts:
    """Tells how each measure of a run comes about, for any of its queries."""

    def __init__(self, result: Result, run: str) -> None:
        self.names = with_parts(result.measures)
        self._scored = replace(result, measures=tuple(self.names))
        self._run = run
        self._sums: dict[Measure, _Sum] = {}
        self._voids: dict[Measure, Bools] = {}
        relations = {id(each): each for each in map(self._relation, self.names)}
        self._numbers = {
            key: {query: at for at, query in enumerate(relation.queries)}
            for key, relation in relations.items()
        }

    def tell(self, query: str) -> list[Account]:
        """Return the account of each measure, its parts before it."""
        return [self._account(measure, query) for measure in self.names]

    def _relation(self, measure: Measure) -> Relation:
        return self._scored.relation(self._run, measure)

    def _account(self, measure: Measure, query: str) -> Account:
        result, relation = self._scored, self._relation(measure)
        at = self._numbers[id(relation)].get(query)
        level = level_of(measure)
        account = Account(
            measure=self.names[measure],
            dialect=result.dialect,
            relation=result.relation_name(measure),
            relevant=None if level is None else words(level),
            adds=_first_line(type(measure).terms if measure.is_sum() else type(measure)),
            terms=(),
            divisor=None,
            divided_by="",
            ideal=(),
            limit="" if measure.limit is None else measure.limit.says,
            value=None,
            reason=LACKING[result.provenance.policy.missing],
            parts=tuple(self.names[part] for part in measure.parts()),
        )
        if at is None:
            return account
        value = float(result.arrays[self._run, measure][at])
        known = not np.isnan(value)
        if measure.is_sum():
            account = self._with_terms(account, measure, relation, at)
        if known and self._undefined(measure, relation)[at]:  # a policy gave it a value
            account = replace(account, limit=f"{measure.why_undefined} {COUNTED}")
        return replace(
            account,
            value=value if known else None,
            reason=None if known else relation.undefined_reason[at] or measure.why_undefined,
        )

    def _undefined(self, measure: Measure, relation: Relation) -> Bools:
        if measure not in self._voids:
            self._voids[measure] = measure.undefined(relation)
        return self._voids[measure]

    def _with_terms(
        self, account: Account, measure: Measure, relation: Relation, at: int
    ) -> Account:
        if measure not in self._sums:
            self._sums[measure] = _Sum.of(measure, relation)
        told = self._sums[measure]
        mine = slice(told.start[at], told.start[at + 1])
        best = slice(told.ideal_start[at], told.ideal_start[at + 1])
        return replace(
            account,
            terms=tuple(zip(told.rank[mine].tolist(), told.value[mine].tolist(), strict=True)),
            divisor=float(told.divisor[at]),
            divided_by=told.divided_by,
            ideal=tuple(
                zip(told.ideal_rank[best].tolist(), told.ideal_gain[best].tolist(), strict=True)
            ),
        )


def with_parts(measures: Iterable[Measure]) -> dict[Measure, str]:
    """Put before each measure those that it is made of; return them with their names.

    In a dialect a part may be karat's own formula, and another measure have its name: it is then
    named after the whole.
    """
    every = list(measures)
    own = {str(measure): measure for measure in every}
    found: dict[Measure, str] = {}
    for measure in every:
        for part in measure.parts():
            taken = own.get(str(part), part) != part or str(part) in found.values()
            found.setdefault(part, f"{part} in {measure}" if taken else str(part))
        found.setdefault(measure, str(measure))
    return found


def _starts(relation: Relation, query: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(relation.count(query))))


def _first_line(defined: object) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (inspect.getdoc(defined) or "").partition("\n")[0].rstrip(".")
