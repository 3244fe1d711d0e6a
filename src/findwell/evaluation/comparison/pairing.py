"""Values of several systems side by side, query by query, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import AlignError, choose_column
from findwell.core.findings import (
    Finding,
    FindingKind,
    finding_about,
    first_findings,
    merge_findings,
)
from findwell.core.slices import slice_labels
from findwell.core.timing import MOMENTS

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation
    from findwell.evaluation.comparison.systems import System
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

# findings about two systems, not about one
BETWEEN_SYSTEMS = (
    FindingKind.UNPAIRED_QUERY,
    FindingKind.OTHER_GOLD,
    FindingKind.OTHER_CHOICE,
)
LISTED = 10  # queries or choices that a finding names
MESSAGES = {
    FindingKind.UNPAIRED_QUERY: (
        "query that only the baseline or only this system has: left out of the comparison",
        "evaluate both on the same queries, or compare all with --unpaired (unpaired=True)",
    ),
    "no-value": (
        "query with a value for only one of the baseline and this system: left out",
        "`findwell score --per-query` says why",
    ),
    "shared-query": (
        "query that the baseline and this system both have, compared as if they were different",
        "leave out --unpaired (unpaired=True): pairs of values of the same query show far more",
    ),
    FindingKind.OTHER_GOLD: (
        "query with another gold than for the baseline: that makes a difference of its own",
        "evaluate both against the same gold",
    ),
    FindingKind.OTHER_CHOICE: (
        "choice that was made differently for the baseline",
        "evaluate both with the same options",
    ),
}
# what changes the verdicts of a judge of the same name
ASKED = (
    "endpoint",
    "prompts",
    "options",
    "votes",
    "decompose",
    "separate_calls",
    "ask",
    "version",
    "entities",
)


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
        """Return a column that describes the queries, or the hour, day, … of one: time:day."""
        if name in self.queries.columns:
            return self.queries[choose_column(self.queries, name)]
        return slice_labels(self.queries, name)


def pair(systems: Sequence[System]) -> Pairing:
    """Lay the values of the systems side by side, the queries in the order of the first.

    A query that a system was not asked has no value there, so that every pair of systems is
    compared on the queries that both were asked.
    """
    measures = systems[0].result.measures
    asked = [each.queries for system in systems for each in _relations(system)]
    queries = pl.concat(asked).unique(maintain_order=True)
    values = np.full((len(queries), len(systems), len(measures)), np.nan)
    present = np.zeros((len(queries), len(systems)), dtype=bool)
    answered = np.zeros((len(queries), len(systems)), dtype=bool)
    for at, system in enumerate(systems):
        rows = {id(each): _places(queries, each.queries) for each in _relations(system)}
        for each in _relations(system):
            answered[rows[id(each)], at] |= np.asarray(each.depth) > 0
        for number, measure in enumerate(system.result.measures):
            mine = rows[id(system.result.relation(system.run, measure))]
            present[mine, at] = True
            values[mine, at, number] = system.result.arrays[system.run, measure]
        _refuse_strangers(systems[0], system, queries, present[:, (0, at)])
        _refuse_other_queries(systems[0], system, queries, answered[:, (0, at)])
        _refuse_other_questions(systems[0], system)
    return Pairing(
        queries=_describe(queries, [system.result for system in systems]),
        systems=tuple(system.name for system in systems),
        measures=measures,
        values=values,
        present=present,
        findings=_findings(systems, queries, values, present),
    )


def stack(systems: Sequence[System]) -> Pairing:
    """Put the values of the systems one below another: every query is asked of one system only.

    A value is in the rows and the column of its system, and nothing else is.
    """
    measures = systems[0].result.measures
    parts, blocks = [], []
    for system in systems:
        asked = [each.queries for each in _relations(system)]
        queries = pl.concat(asked).unique(maintain_order=True)
        values = np.full((len(queries), len(measures)), np.nan)
        for number, measure in enumerate(system.result.measures):
            mine = _places(queries, system.result.relation(system.run, measure).queries)
            values[mine, number] = system.result.arrays[system.run, measure]
        parts.append(_describe(queries, [system.result]))
        blocks.append(values)
    ends = np.cumsum([len(block) for block in blocks])
    table = np.full((int(ends[-1]), len(systems), len(measures)), np.nan)
    present = np.zeros(table.shape[:2], dtype=bool)
    for at, (block, end) in enumerate(zip(blocks, ends, strict=True)):
        table[end - len(block) : end, at] = block
        present[end - len(block) : end, at] = True
    return Pairing(
        queries=pl.concat(parts, how="diagonal_relaxed"),
        systems=tuple(system.name for system in systems),
        measures=measures,
        values=table,
        present=present,
        findings=_unpaired_findings(systems, parts),
    )


def _unpaired_findings(
    systems: Sequence[System], parts: Sequence[pl.DataFrame]
) -> tuple[Finding, ...]:
    found = first_findings(finding for system in systems for finding in system.findings)
    base, *others = systems
    for system, part in zip(others, parts[1:], strict=True):
        shared = part["query"].filter(part["query"].is_in(parts[0]["query"].implode()))
        kind = FindingKind.OTHER_CHOICE
        choices = _other_choices(base.result, system.result)
        found += finding_about(kind, choices, *MESSAGES[kind], system.name, LISTED)
        if 2 * len(shared) >= min(part.height, parts[0].height):
            found += finding_about("shared-query", shared, *MESSAGES["shared-query"], system.name)
    return merge_findings(found)


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
    asked = [
        about.select("query", *(name for name in MOMENTS if name in about.columns))
        for result in dict.fromkeys(results)
        for about in result.about.values()
    ]
    for about in (*(result.queries for result in dict.fromkeys(results)), *asked):
        new = [name for name in about.columns if name not in table.columns]
        if new:
            table = table.join(
                about.select("query", *new), on="query", how="left", maintain_order="left"
            )
    return table


def _refuse_strangers(base: System, system: System, queries: pl.Series, present: Bools) -> None:
    """Refuse a system that shares no query with the baseline."""
    if not present.all(axis=1).any():
        theirs, mine = (queries.filter(side)[0] for side in present.T)
        raise AlignError(
            f"{system.name} and {base.name} share no query: one has {mine!r}, the other {theirs!r}",
            fix="compare systems on the same queries, or different ones with --unpaired "
            "(unpaired=True)",
        )


def _refuse_other_queries(
    base: System, system: System, queries: pl.Series, answered: Bools
) -> None:
    """Refuse a system that retrieved something only where the baseline did not.

    Two runs of different questions, held against one gold with all of them, would be paired with
    the zeros that stand for what the other was asked.
    """
    if answered.any(axis=0).all() and not answered.all(axis=1).any():
        theirs, mine = (queries.filter(side)[0] for side in answered.T)
        raise AlignError(
            f"{system.name} and {base.name} were asked different queries: no query has documents "
            f"in both, one has some for {mine!r}, the other for {theirs!r}",
            fix="compare systems on the same queries, or different ones with --unpaired "
            "(unpaired=True)",
        )


def _refuse_other_questions(base: System, system: System) -> None:
    """Refuse a system that was asked different questions under the same ids."""
    tables = (base.result.queries, system.result.queries)
    if tables[0] is tables[1] or any("question" not in table.columns for table in tables):
        return
    text = pl.col("question").cast(pl.String)
    mine, theirs = (
        table.select(
            "query", question=text, plain=text.str.replace_all(r"\s+", " ").str.strip_chars()
        )
        for table in tables
    )
    both = mine.join(theirs, on="query", maintain_order="left")
    other = both.filter(pl.col("plain") != pl.col("plain_right"))
    if other.height:
        row = other.row(0, named=True)
        raise AlignError(
            f"query {row['query']!r} is not the same question in {base.name} and {system.name}: "
            f"{row['question']!r} and {row['question_right']!r}",
            fix="give the same question the same id in both; without ids, questions are paired; "
            "different questions are compared with --unpaired (unpaired=True)",
        )


def _findings(
    systems: Sequence[System], queries: pl.Series, values: Floats, present: Bools
) -> tuple[Finding, ...]:
    found = first_findings(finding for system in systems for finding in system.findings)
    base, *others = systems
    undefined = np.isnan(values)
    for at, system in enumerate(others, start=1):
        both = present[:, at] & present[:, 0]
        one_sided = present[:, at] != present[:, 0]
        empty = (undefined[:, at, :] != undefined[:, 0, :]).any(axis=1) & both
        for kind, which in (
            (FindingKind.UNPAIRED_QUERY, queries.filter(one_sided)),
            ("no-value", queries.filter(empty)),
            (FindingKind.OTHER_GOLD, _other_gold(base, system)),
            (FindingKind.OTHER_CHOICE, _other_choices(base.result, system.result)),
        ):
            found += finding_about(kind, which, *MESSAGES[kind], system.name, LISTED)
    return merge_findings(found)


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
    arrays = ("item_offset", "item_grade", "member_item")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and one.member_doc.equals(other.member_doc)
        and one.queries.equals(other.queries)
    )


def _items(relation: Relation) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query": relation.queries.gather(relation.item_query[relation.member_item]),
            "doc": relation.member_doc,
            "grade": relation.item_grade[relation.member_item],
        }
    )


def _other_choices(base: Result, other: Result) -> list[str]:
    """Return what was decided differently for the baseline."""
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
        if mine["judge"] == theirs["judge"] and _asked(base, name) != _asked(other, name)
    ]
    return differ


def _asked(result: Result, name: str) -> object:
    """Return how a judge was asked; before there was a choice it was asked for a matrix."""
    return result.judge.get(name, "matrix" if name == "ask" else None)
