"""How the numbers of a query come about, and why two dialects give two numbers.

Terms, divisor and limit are those of the measure itself, so that what is shown is what was added
up. Differences are read from the formulas and policies of the dialects, not written by hand.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.evaluation.explanation.ranking import grade_words, level_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from findwell.core.data import Floats, Ints
    from findwell.core.relation import Relation
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect

LACKING_REASONS = {
    "zero": "the system was not asked this query",
    "skip": "the run lacks this query, which is left out (missing=skip)",
    "error": "the run lacks this query, which stops an evaluation (missing=error)",
}
COUNTS_AS_ZERO = "counts as 0"  # where a policy says so of what is undefined
# What each choice of a policy does, in words.
POLICIES: dict[str, dict[str, str]] = {
    "scores": {
        "float64": "compares scores as 64-bit floats",
        "float32": "compares scores as 32-bit floats, so that close ones tie",
    },
    "duplicates": {
        "first": "counts the first of a repeated document",
        "error": "refuses repeated documents",
    },
    "missing": {
        "zero": "scores a query that the run lacks 0",
        "skip": "leaves out a query that the run lacks",
        "error": "stops at a query that the run lacks",
    },
    "no_relevant": {
        "undefined": "has no value for a query without a relevant item, unless documents were "
        "judged and the list is all that counts",
        "zero": "scores a query without a relevant item 0",
    },
    "nothing": {
        "zero": "scores a query for which nothing was retrieved 0",
        "undefined": "has no value for a query for which nothing was retrieved",
    },
    "blank": {
        "error": "refuses blank ids",
        "undefined": "has no value for a query with a blank id",
        "kept": "takes a blank text for a unit that covers nothing",
    },
    "grades": {"any": "takes any grade", "integer": "takes whole grades"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    """How a measure comes about under a dialect: terms, sum, divisor, limit, value."""

    measure: str
    dialect: str
    relation: str  # that the measure reads, with its parameters
    relevant: str | None  # which items count; None: it asks for no grade
    adds: str  # what is added up, in words; for a measure that is not a sum, what it is
    terms: tuple[tuple[int, float], ...] = ()  # rank and value
    divisor: float | None = None  # None: the measure is not a sum
    divided_by: str = ""
    ideal: tuple[tuple[int, float], ...] = ()  # rank and gain of the ideal list, if there is one
    limit: str  # what becomes of the quotient, if anything does
    value: float | None = None
    reason: str | None = None  # why there is no value
    parts: tuple[str, ...] = ()  # the measures that it is made of

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return float(np.sum([value for _, value in self.terms]))

    @property
    def quotient(self) -> float | None:
        """The sum ÷ the divisor; None where there is none, or where it is 0."""
        return self.total / self.divisor if self.divisor else None


Ranked: TypeAlias = "Callable[[int], tuple[tuple[int, float], ...]]"  # by number of the query


def _ranked(relation: Relation, query: Ints, rank: Ints, value: Floats) -> Ranked:
    """Return what gives the ranks of a query with their values."""
    order = np.lexsort((rank, query))
    ranks, values = rank[order], value[order]
    start = np.concatenate(([0], np.cumsum(relation.count(query))))

    def of(at: int) -> tuple[tuple[int, float], ...]:
        mine = slice(start[at], start[at + 1])
        return tuple(zip(ranks[mine].tolist(), values[mine].tolist(), strict=True))

    return of


def _sum(measure: Measure, relation: Relation) -> Callable[[int], dict[str, Any]]:
    """Return what gives the parts of a sum for a query, as the measure itself adds them up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms, by = measure.terms(relation), measure.divisor(relation)
    values = np.ones(len(terms.rank)) if terms.value is None else terms.value
    listed = _ranked(relation, terms.query, terms.rank, values)
    divisor = np.broadcast_to(np.asarray(by.value, dtype=np.float64), relation.n)
    ideal: Ranked | None = None
    if by.ideal is not None:
        gains = by.ideal.gain > 0
        best = (by.ideal.query[gains], by.ideal.rank[gains], by.ideal.gain[gains])
        ideal = _ranked(relation, *best)
    return lambda at: {
        "terms": listed(at),
        "divisor": float(divisor[at]),
        "divided_by": by.name,
        "ideal": () if ideal is None else ideal(at),
    }


class Calculations:
    """How each measure of a run comes about, for any of its queries."""

    def __init__(self, result: Result, run: str) -> None:
        self.names = with_parts(result.measures)
        self._scored = replace(result, measures=tuple(self.names))
        self._run = run
        self._relations = {each: self._scored.relation(run, each) for each in self.names}
        self._sums = {
            measure: _sum(measure, relation)
            for measure, relation in self._relations.items()
            if measure.is_sum()
        }
        self._undefined = {
            measure: measure.undefined(relation) for measure, relation in self._relations.items()
        }
        self._numbers = {
            id(relation): {query: at for at, query in enumerate(relation.queries)}
            for relation in {id(each): each for each in self._relations.values()}.values()
        }

    def of(self, query: str) -> list[Calculation]:
        """Return how each measure comes about for a query, its parts before it."""
        return [self._calculation(measure, query) for measure in self.names]

    def _calculation(self, measure: Measure, query: str) -> Calculation:
        result, relation = self._scored, self._relations[measure]
        level = level_of(measure)
        calculation = Calculation(
            measure=self.names[measure],
            dialect=result.dialect,
            relation=result.relation_name(measure),
            relevant=None if level is None else grade_words(level),
            adds=measure.adds if measure.is_sum() else _definition(measure),
            limit="" if measure.limit is None else measure.limit.says,
            reason=LACKING_REASONS[result.provenance.policy.missing],
            parts=tuple(self.names[part] for part in measure.parts()),
        )
        at = self._numbers[id(relation)].get(query)
        if at is None:
            return calculation
        if measure in self._sums:
            calculation = replace(calculation, **self._sums[measure](at))
        value = float(result.arrays[self._run, measure][at])
        if np.isnan(value):
            reason = relation.reasons.get(at) or measure.why_undefined
            return replace(calculation, reason=reason)
        if self._undefined[measure][at]:  # a policy gave it a value
            calculation = replace(calculation, limit=f"{measure.why_undefined} {COUNTS_AS_ZERO}")
        return replace(calculation, value=value, reason=None)


def with_parts(measures: Iterable[Measure]) -> dict[Measure, str]:
    """Put before each measure those that it is made of; return them with their names.

    In a dialect a part may be findwell's own formula, and another measure have its name: it is then
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


def _definition(measure: Measure) -> str:
    """Return what a measure is: the first line of its definition, without the full stop."""
    return (inspect.getdoc(type(measure)) or "").partition("\n")[0].rstrip(".")


def differences(calculations: list[Calculation], dialects: list[Dialect]) -> list[str]:
    """Say what makes the numbers of two dialects differ, from their formulas and policies."""
    base, *others = dialects
    own = {each.measure: each for each in calculations if each.dialect == base.name}
    return [
        f"{theirs.measure}: {cause}"
        for other in others
        for theirs in calculations
        if theirs.dialect == other.name and theirs.measure in own
        if theirs.value != own[theirs.measure].value
        for cause in _causes(own[theirs.measure], theirs, base, other)
    ]


def _causes(mine: Calculation, theirs: Calculation, base: Dialect, other: Dialect) -> list[str]:
    causes = []
    if theirs.parts:  # which come before, with their own causes
        causes.append(f"it is made of {' and '.join(theirs.parts)}, see there")
    elif theirs.adds != mine.adds:
        verb = _as_statement if theirs.divisor is not None else _as_choice
        causes.append(f"{other.name} {verb(theirs.adds)}; {base.name} {verb(mine.adds)}")
    if theirs.divided_by != mine.divided_by:
        causes.append(
            f"{other.name} divides by {theirs.divided_by}, {base.name} by {mine.divided_by}"
        )
    if theirs.relation != mine.relation:
        causes.append(f"{other.name} matches by {theirs.relation}, {base.name} by {mine.relation}")
    if None in (mine.value, theirs.value) or not causes:
        lacking = {mine.reason, theirs.reason} & set(LACKING_REASONS.values())
        for field, says in POLICIES.items():
            a, b = getattr(base.policy, field), getattr(other.policy, field)
            if a != b and bool(lacking) == (field == "missing"):
                causes.append(f"{other.name} {says[b]}; {base.name} {says[a]}")
    if base.run_ids != other.run_ids:
        causes.append(f"{other.name} normalises the ids of the run ({other.run_ids})")
    return causes


def _as_statement(words: str) -> str:
    """Turn an instruction into a statement: Count the units → counts the units."""
    verb, _, rest = words.partition(" ")
    return f"{verb.lower()}s {rest}"


def _as_choice(words: str) -> str:
    """Turn a definition into a statement: How many units → takes how many units."""
    return f"takes {words[:1].lower()}{words[1:]}"
