"""Values of several systems side by side, query by query, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.errors import NO_COLUMN, AlignError, choose
from karat.findings import Finding, FindingKind, merge_findings

if TYPE_CHECKING:
    from karat.comparison.systems import System
    from karat.core.data import Bools, Floats, Ints
    from karat.core.relation import Relation
    from karat.measures import Measure
    from karat.results.result import Result

# findings about two systems, not about one
BETWEEN_SYSTEMS = (
    FindingKind.UNPAIRED_QUERY,
    FindingKind.OTHER_GOLD,
    FindingKind.OTHER_CHOICE,
)
LISTED = 10  # queries that a finding names
ONE_SIDED = "query that only the baseline or only this system has: left out of the comparison"
NO_VALUE = "query with a value for only one of the baseline and this system: left out"
# what changes the verdicts of a judge of the same name
ASKED = (
    "endpoint",
    "prompts",
    "options",
    "votes",
    "decompose",
    "separate_calls",
    "version",
    "entities",
)
OTHER_GOLD = "query with another gold than for the baseline: that makes a difference of its own"


@dataclass(frozen=True, eq=False)
class Pairing:
    """A value for each query, system and measure; NaN where there is none."""

    queries: pl.DataFrame  # query and the columns that describe it
    systems: tuple[str, ...]
    measures: tuple[Measure, ...]
    values: Floats  # queries × systems × measures
    present: Bools  # queries × systems: whether the system was asked the query
    findings: tuple[Finding, ...]

    def column(self, name: str) -> pl.Series:
        """Return a column that describes the queries."""
        known = [each for each in self.queries.columns if each != "query"]
        return self.queries[choose("column of the queries", name, known, none=NO_COLUMN)]


def pair(systems: Sequence[System], baseline: int = 0) -> Pairing:
    """Lay the values of the systems side by side, the queries in the order of the baseline.

    A query that a system was not asked has no value there, so that every pair of systems is
    compared on the queries that both were asked.
    """
    measures = systems[baseline].result.measures
    order = [systems[baseline], *(each for each in systems if each is not systems[baseline])]
    asked = [each.queries for system in order for each in _relations(system)]
    queries = pl.concat(asked).unique(maintain_order=True)
    values = np.full((len(queries), len(systems), len(measures)), np.nan)
    present = np.zeros((len(queries), len(systems)), dtype=bool)
    for at, system in enumerate(systems):
        rows = {id(each): _places(queries, each.queries) for each in _relations(system)}
        for number, measure in enumerate(system.result.measures):
            mine = rows[id(system.result.relation(system.run, measure))]
            present[mine, at] = True
            values[mine, at, number] = system.result.arrays[system.run, measure]
    _refuse_strangers(systems, baseline, queries, present)
    _refuse_other_questions(systems, baseline)
    names = tuple(system.name for system in systems)
    findings = _findings(systems, baseline, queries, values, present)
    about = _describe(queries, [system.result for system in order])
    return Pairing(about, names, measures, values, present, findings)


def _relations(system: System) -> list[Relation]:
    """Return the relations that its measures read, each once."""
    read = (system.result.relation(system.run, measure) for measure in system.result.measures)
    return list({id(relation): relation for relation in read}.values())


def _places(queries: pl.Series, asked: pl.Series) -> Ints:
    every = pl.DataFrame({"query": queries}).with_row_index("place")
    joined = pl.DataFrame({"query": asked}).join(
        every, on="query", how="left", maintain_order="left"
    )
    return joined["place"].to_numpy().astype(np.int64)


def _describe(queries: pl.Series, results: Sequence[Result]) -> pl.DataFrame:
    """Return the queries with all columns about them, the first result that has one deciding."""
    table = pl.DataFrame({"query": queries})
    for result in dict.fromkeys(results):
        about = result.queries
        new = [name for name in about.columns if name not in table.columns]
        if new:
            table = table.join(
                about.select("query", *new), on="query", how="left", maintain_order="left"
            )
    return table


def _refuse_strangers(
    systems: Sequence[System], baseline: int, queries: pl.Series, present: Bools
) -> None:
    for at, system in enumerate(systems):
        if not (present[:, at] & present[:, baseline]).any():
            mine = [queries.filter(pl.Series(present[:, each]))[0] for each in (at, baseline)]
            raise AlignError(
                f"{system.name} and {systems[baseline].name} share no query:"
                f" one has {mine[0]!r}, the other {mine[1]!r}",
                fix="compare systems on the same queries",
            )


def _refuse_other_questions(systems: Sequence[System], baseline: int) -> None:
    """Refuse systems that were asked different questions under the same id."""
    base = systems[baseline]
    for system in systems:
        tables = (base.result.queries, system.result.queries)
        if tables[0] is tables[1] or any("question" not in table.columns for table in tables):
            continue
        mine, theirs = (
            table.select("query", question=pl.col("question").cast(pl.String)) for table in tables
        )
        one, two = (
            pl.col(name).str.replace_all(r"\s+", " ").str.strip_chars()
            for name in ("question", "question_right")
        )
        other = mine.join(theirs, on="query", maintain_order="left").filter(one != two)
        if other.height:
            query, question, instead = other.row(0)
            raise AlignError(
                f"query {query!r} is not the same question in {base.name} and {system.name}: "
                f"{question!r} and {instead!r}",
                fix="give the same question the same id in both; without ids, questions are paired",
            )


def _findings(
    systems: Sequence[System],
    baseline: int,
    queries: pl.Series,
    values: Floats,
    present: Bools,
) -> tuple[Finding, ...]:
    found = [finding for system in systems for finding in system.findings]
    found = list({(each.run, each.kind, each.message): each for each in found}.values())
    base = systems[baseline]
    for at, system in enumerate(systems):
        if at == baseline:
            continue
        both = present[:, at] & present[:, baseline]
        one_sided = present[:, at] != present[:, baseline]
        found += _finding(
            FindingKind.UNPAIRED_QUERY, queries.filter(pl.Series(one_sided)), system.name
        )
        undefined = np.isnan(values)
        empty = (undefined[:, at, :] != undefined[:, baseline, :]).any(axis=1) & both
        found += _finding("no-value", queries.filter(pl.Series(empty)), system.name)
        found += _finding(FindingKind.OTHER_GOLD, _other_gold(base, system), system.name)
        found += _other_choices(base.result, system.result, system.name)
    return merge_findings(found)


_SAID = {
    FindingKind.UNPAIRED_QUERY: (ONE_SIDED, "evaluate both on the same queries"),
    "no-value": (NO_VALUE, "`karat score --per-query` says why"),
    FindingKind.OTHER_GOLD: (OTHER_GOLD, "evaluate both against the same gold"),
}


def _finding(kind: str, queries: pl.Series, run: str) -> list[Finding]:
    if not len(queries):
        return []
    message, fix = _SAID[kind]
    examples = tuple(queries.head(LISTED).to_list())
    return [Finding(kind, len(queries), examples, message, fix, run)]


def _other_gold(base: System, system: System) -> pl.Series:
    """Return the queries for which the two were held against different items."""
    found = [pl.Series("query", [], dtype=pl.String)]
    for one, other in zip(_relations(base), _relations(system), strict=True):
        if one.needed or _same_gold(one, other):  # needed: a judge grades what each retrieved
            continue
        before, after = _items(one), _items(other)
        keys = ["query", "doc", "grade"]
        gone = before.join(after, on=keys, how="anti")["query"]
        new = after.join(before, on=keys, how="anti")["query"]
        found.append(gone.filter(gone.is_in(other.queries.implode())))
        found.append(new.filter(new.is_in(one.queries.implode())))
    return pl.concat(found).unique(maintain_order=True)


def _same_gold(one: Relation, other: Relation) -> bool:
    return (
        np.array_equal(one.item_offset, other.item_offset)
        and np.array_equal(one.item_grade, other.item_grade)
        and np.array_equal(one.member_item, other.member_item)
        and one.member_doc.equals(other.member_doc)
        and one.queries.equals(other.queries)
    )


def _items(relation: Relation) -> pl.DataFrame:
    item_query = np.repeat(np.arange(relation.n), np.diff(relation.item_offset))
    return pl.DataFrame(
        {
            "query": relation.queries.gather(item_query[relation.member_item]),
            "doc": relation.member_doc,
            "grade": relation.item_grade[relation.member_item],
        }
    )


def _other_choices(base: Result, other: Result, run: str) -> list[Finding]:
    """Return what was decided otherwise than for the baseline."""
    mine, theirs = (
        {
            **each.provenance.policy.as_dict(),
            "ids": each.provenance.ids,
            "judge": each.judge.get("name", "none"),
        }
        for each in (base, other)
    )
    differ = [
        f"{name}: {theirs[name]} instead of {mine[name]}"
        for name in mine
        if mine[name] != theirs[name]
    ]
    matched = zip(base.matched_by.values(), other.matched_by.values(), strict=True)
    differ += [
        f"relation: {after} instead of {before}"
        for before, after in dict.fromkeys(matched)
        if before != after
    ]
    differ += [
        f"{name}: {dict(theirs[name])} instead of {dict(mine[name])}"
        for mine, theirs in [(base.provenance.settings, other.provenance.settings)]
        for name in mine.keys() & theirs.keys()
        if dict(mine[name]) != dict(theirs[name])
    ]
    differ += [
        f"{name} of the judge"
        for name in ASKED
        if mine["judge"] == theirs["judge"] and base.judge.get(name) != other.judge.get(name)
    ]
    if not differ:
        return []
    message = "choice that was made otherwise than for the baseline"
    fix = "evaluate both with the same options"
    return [Finding(FindingKind.OTHER_CHOICE, len(differ), tuple(differ), message, fix, run)]
