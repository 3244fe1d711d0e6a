"""Values of several systems side by side, query by query, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import AlignError
from findwell.core.findings import (
    Finding,
    FindingKind,
    finding_about,
    first_findings,
    merge_findings,
)
from findwell.core.frames import NamesAt, Strings, as_series, later, pl, same_strings, strings_of
from findwell.core.timing import MOMENTS
from findwell.core.values import Values

if TYPE_CHECKING:
    from typing import TypeAlias

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation
    from findwell.evaluation.comparison.systems import System
    from findwell.evaluation.results.result import Result

    Names: TypeAlias = Strings | pl.Series

# findings about two systems, not about one
BETWEEN_SYSTEMS = (FindingKind.UNPAIRED_QUERY, FindingKind.OTHER_GOLD, FindingKind.OTHER_CHOICE)
LISTED_EXAMPLES = 10  # queries or choices that a finding names
MESSAGES = {
    FindingKind.UNPAIRED_QUERY: (
        "# query|queries is|are only in the baseline or only in this system and left out.",
        "evaluate both on the same queries, or compare all with --unpaired (unpaired=True)",
    ),
    "no-value": (
        "# query|queries has|have a value for only one of baseline and system and is|are left out.",
        "`findwell score --per-query` says why",
    ),
    "shared-query": (
        "# query|queries of both systems is|are compared as if they were different queries.",
        "leave out --unpaired (unpaired=True): pairs of values of the same query show far more",
    ),
    FindingKind.OTHER_GOLD: (
        "# query|queries has|have other gold labels than the baseline, which may change values.",
        "evaluate both against the same gold",
    ),
    FindingKind.OTHER_CHOICE: (
        "# option|options differs|differ from the baseline's.",
        "evaluate both with the same options",
    ),
}
# what changes the verdicts of a judge of the same name
JUDGE_CHOICES = (
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
class Pairing(Values):
    """Values of systems, which are its runs, and what makes them hard to compare."""

    findings: tuple[Finding, ...] = ()


def pair(systems: Sequence[System]) -> Pairing:
    """Lay the values of the systems side by side, the queries in the order of the first.

    A query that a system was not asked has no value there, so that every pair of systems is
    compared on the queries that both were asked.
    """
    base, measures = systems[0], systems[0].result.measures
    parts = [_asked_values(system) for system in systems]
    queries = _together([asked for asked, _, _ in parts])
    values = np.full((len(queries), len(systems), len(measures)), np.nan)
    present, answered = np.zeros((2, len(queries), len(systems)), dtype=bool)
    for at, (system, (asked, block, some)) in enumerate(zip(systems, parts, strict=True)):
        rows = _places(queries, asked)
        values[rows, at], present[rows, at], answered[rows, at] = block, True, some
        _refuse_other_queries(base, system, queries, present[:, (0, at)], answered[:, (0, at)])
        _refuse_other_questions(base, system)
    found = first_findings(finding for system in systems for finding in system.findings)
    undefined = np.isnan(values)
    for at, system in enumerate(systems[1:], start=1):
        both = present[:, at] & present[:, 0]
        empty = (undefined[:, at, :] != undefined[:, 0, :]).any(axis=1) & both
        for kind, which in (
            (FindingKind.UNPAIRED_QUERY, NamesAt(queries, present[:, at] != present[:, 0])),
            ("no-value", NamesAt(queries, empty)),
            (FindingKind.OTHER_GOLD, _other_gold(base, system)),
            (FindingKind.OTHER_CHOICE, _other_choices(base.result, system.result)),
        ):
            found += finding_about(kind, which, *MESSAGES[kind], system.name, LISTED_EXAMPLES)
    results = [system.result for system in systems]
    described = any(len(each.query_columns) > 1 or each.about for each in results)
    return Pairing(
        queries=_describe(queries, results)
        if described or not isinstance(queries, Strings)
        else later(lambda: _describe(queries, results), queries, ("query",)),
        runs=tuple(system.name for system in systems),
        measures=measures,
        table=np.ascontiguousarray(np.moveaxis(values, 0, 2)),
        asked=np.ascontiguousarray(present.T),
        findings=merge_findings(found),
    )


def stack(systems: Sequence[System]) -> Pairing:
    """Put the values of the systems one below another: every query is asked of one system only.

    A value is in the rows and the column of its system, and nothing else is.
    """
    measures = systems[0].result.measures
    parts = [_asked_values(system) for system in systems]
    owner = np.repeat(np.arange(len(systems)), [len(asked) for asked, _, _ in parts])
    values = np.full((len(owner), len(systems), len(measures)), np.nan)
    for at, (_, block, _) in enumerate(parts):
        values[owner == at, at] = block
    first = parts[0][0]
    known = set(first)
    found = first_findings(finding for system in systems for finding in system.findings)
    for system, (asked, _, _) in zip(systems[1:], parts[1:], strict=True):
        kind, choices = FindingKind.OTHER_CHOICE, _other_choices(systems[0].result, system.result)
        found += finding_about(kind, choices, *MESSAGES[kind], system.name, LISTED_EXAMPLES)
        shared = [name for name in asked if name in known]
        if 2 * len(shared) >= min(len(asked), len(first)):
            found += finding_about("shared-query", shared, *MESSAGES["shared-query"], system.name)
    about = [_describe(part[0], [each.result]) for part, each in zip(parts, systems, strict=True)]
    return Pairing(
        queries=pl.concat(about, how="diagonal_relaxed"),
        runs=tuple(system.name for system in systems),
        measures=measures,
        table=np.ascontiguousarray(np.moveaxis(values, 0, 2)),
        asked=np.arange(len(systems))[:, np.newaxis] == owner,
        findings=merge_findings(found),
    )


def _asked_values(system: System) -> tuple[Names, Floats, Bools]:
    """Return the queries of a system, its values (queries × measures), and where it answered."""
    result = system.result
    if not result.relations:  # values without lists, as a Spark job returns them
        values, at = result.measured, result.runs.index(system.run)
        return values.names, values.table[at].T, np.ones(values.n, dtype=bool)
    relations = _relations(system)
    names = [strings_of(each, "queries") for each in relations]
    queries = _together(names)
    rows = {id(each): _places(queries, mine) for each, mine in zip(relations, names, strict=True)}
    answered = np.zeros(len(queries), dtype=bool)
    for each in relations:
        answered[rows[id(each)]] |= np.asarray(each.depth) > 0
    table = np.full((len(queries), len(result.measures)), np.nan)
    for number, measure in enumerate(result.measures):
        mine = rows[id(result.relation(system.run, measure))]
        table[mine, number] = result.arrays[system.run, measure]
    return queries, table, answered


def _relations(system: System) -> list[Relation]:
    """Return the relations that its measures read, each once."""
    read = (system.result.relation(system.run, measure) for measure in system.result.measures)
    return list({id(relation): relation for relation in read}.values())


def _together(columns: Sequence[Names]) -> Names:
    """Return the queries of all columns, each once: the first column, unless others have more."""
    first = columns[0]
    if all(same_strings(first, each) for each in columns[1:]):
        return first
    return pl.concat(map(as_series, columns)).unique(maintain_order=True)


def _places(queries: Names, asked: Names) -> Ints | slice:
    """Return where the queries of a system stand among all."""
    if same_strings(queries, asked):
        return slice(None)
    every = pl.DataFrame({"query": as_series(queries)}).with_row_index("place")
    joined = pl.DataFrame({"query": as_series(asked)}).join(
        every, on="query", how="left", maintain_order="left"
    )
    return joined["place"].to_numpy().astype(np.int64)


def _describe(queries: Names, results: Sequence[Result]) -> pl.DataFrame:
    """Return the queries with all columns about them, the first result that has one deciding."""
    table = pl.DataFrame({"query": as_series(queries)})
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


def _refuse_other_queries(
    base: System, system: System, queries: Names, present: Bools, answered: Bools
) -> None:
    """Refuse a system that was asked other queries than the baseline, or answered only others.

    Two runs of different questions that are evaluated with the gold of all of them would be paired
    with the zeros that stand for what the other was asked.
    """
    names, fix = (
        f"{system.name} and {base.name}",
        ("compare systems on the same queries, or different ones with --unpaired (unpaired=True)"),
    )
    if not present.all(axis=1).any():
        theirs, mine = (NamesAt(queries, side)[0] for side in present.T)
        raise AlignError(f"{names} share no query: one has {mine!r}, the other {theirs!r}", fix=fix)
    if answered.any(axis=0).all() and not answered.all(axis=1).any():
        theirs, mine = (NamesAt(queries, side)[0] for side in answered.T)
        raise AlignError(
            f"{names} were asked different queries: no query has documents in both, one has some "
            f"for {mine!r}, the other for {theirs!r}",
            fix=fix,
        )


def _refuse_other_questions(base: System, system: System) -> None:
    """Refuse a system that was asked different questions under the same ids."""
    results = (base.result, system.result)
    if any("question" not in result.query_columns for result in results):
        return
    tables = tuple(result.queries for result in results)
    if tables[0] is tables[1]:
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


def _other_gold(base: System, system: System) -> Sequence[str] | pl.Series:
    """Return the queries for which the two were compared with different items."""
    found: list[pl.Series] = []
    if not (base.result.relations and system.result.relations):  # the gold stayed in Spark
        return []
    arrays = ("item_offset", "item_grade", "member_item")
    for one, other in zip(_relations(base), _relations(system), strict=True):
        same = all(
            np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
        ) and all(
            same_strings(strings_of(one, name), strings_of(other, name))
            for name in ("member_doc", "queries")
        )
        if one.needed or same:  # needed: a judge grades what each retrieved
            continue
        before, after = (
            pl.DataFrame(
                {
                    "query": each.queries.gather(each.item_query[each.member_item]),
                    "doc": each.member_doc,
                    "grade": each.item_grade[each.member_item],
                }
            )
            for each in (one, other)
        )
        keys = ["query", "doc", "grade"]
        gone = before.join(after, on=keys, how="anti")["query"]
        new = after.join(before, on=keys, how="anti")["query"]
        found.append(gone.filter(gone.is_in(other.queries.implode())))
        found.append(new.filter(new.is_in(one.queries.implode())))
    return pl.concat(found).unique(maintain_order=True) if found else []


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
    pairs = [(name, mine[name], theirs[name]) for name in mine]
    matched = zip(base.matched_by.values(), other.matched_by.values(), strict=True)
    pairs += [("relation", *names) for names in dict.fromkeys(matched)]
    settings = base.provenance.settings, other.provenance.settings
    pairs += [
        (name, dict(settings[0][name]), dict(settings[1][name]))
        for name in settings[0].keys() & settings[1].keys()
    ]
    differ = [
        f"{name}: {after} instead of {before}" for name, before, after in pairs if before != after
    ]
    if mine["judge"] == theirs["judge"]:
        # before there was a choice of how to ask, it was for a matrix
        defaults = {"ask": "matrix"}
        differ += [
            f"{name} of the judge"
            for name in JUDGE_CHOICES
            if base.judge.get(name, defaults.get(name)) != other.judge.get(name, defaults.get(name))
        ]
    return differ
