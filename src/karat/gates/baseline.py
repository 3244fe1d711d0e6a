"""Baselines: a result may take the place of one if nothing is lost, and nothing is worse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from karat.comparison.contrasts import Statistics, slice_contrasts
from karat.findings import EXAMPLES, Finding, merge_findings
from karat.gates.facing import RunAgainstBaseline
from karat.gates.gate import LEVEL
from karat.gates.requirements import parse_requirement
from karat.gates.verdicts import FAIL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from karat.comparison.pairing import Pairing
    from karat.gates.verdicts import Verdict
    from karat.measures import Measure
    from karat.results.result import Result

SAID = {
    "lost-run": ("run of the baseline that this result lacks", "measure it as well"),
    "lost-measure": (
        "measure of the baseline that this result cannot have",
        "draw its relation as well: name the measure with -m",
    ),
    "lost-column": (
        "column of the baseline's queries that this result lacks",
        "give it: --queries",
    ),
    "worse-slice": ("slice that is surely worse than in the baseline", "look at its queries"),
    "lost-query": ("query with a value in the baseline, and with none now", "measure it as well"),
}
OTHERWISE = ("other-gold", "other-choice")  # findings that make two results hard to compare


@dataclass(frozen=True, slots=True, eq=False)
class Succession:
    """A result that may take the place of a baseline, and what speaks against it."""

    result: Result  # with the measures of the baseline as well
    added: tuple[Measure, ...]  # those that it has only because the baseline has them
    worse: tuple[Verdict, ...]
    findings: tuple[Finding, ...]

    @property
    def allowed(self) -> bool:
        """Whether nothing speaks against it."""
        return not (self.worse or self.findings)


def succeed(result: Result, baseline: Result, slices: Iterable[str] = ()) -> Succession:
    """Ask whether a result may take the place of a baseline.

    It is measured by all measures of the baseline, whatever was asked for. What speaks against it:
    a value worse than that of the baseline on the queries that both have, a run, measure, column
    or query that would be lost, another gold, and choices that were made otherwise. Of `slices`,
    columns of the queries, only what is surely worse does: some slice is worse by chance.
    """
    added = tuple(
        measure
        for measure in baseline.measures
        if measure not in result.measures and _has(result, measure)
    )
    grown = replace(result, measures=(*result.measures, *added))
    known = tuple(measure for measure in grown.measures if _has(baseline, measure))
    scored = grown.with_options(level=grown.level or LEVEL)
    findings = list(_lost(grown, baseline))
    worse: list[Verdict] = []
    for run in grown.runs:
        facing = RunAgainstBaseline(scored, run, baseline, known)
        if facing.pairing is None or not known:
            continue
        findings += (found for found in facing.findings if found.kind in OTHERWISE)
        findings += _lost_queries(facing.pairing, run)
        findings += _worse_slices(facing, facing.pairing, slices)
        verdicts = (
            facing.verdict(parse_requirement(f"{measure}{sign}baseline"), measure, "value")
            for measure in known
            if measure.aggregation != "sum"  # of a count neither side is the better one
            for sign in [">=" if measure.higher_is_better else "<="]
        )
        worse += (verdict for verdict in verdicts if verdict.outcome == FAIL)
    return Succession(grown, added, tuple(worse), merge_findings(findings))


def _has(result: Result, measure: Measure) -> bool:
    name = measure.relation or result.provenance.drawn_by
    return all((run, name) in result.relations for run in result.runs)


def _lost(result: Result, baseline: Result) -> Iterator[Finding]:
    if len(baseline.runs) > 1:  # a single one may be called otherwise now
        yield from _finding("lost-run", [run for run in baseline.runs if run not in result.runs])
    measures = [str(each) for each in baseline.measures if each not in result.measures]
    yield from _finding("lost-measure", measures)
    columns = [name for name in baseline.queries.columns if name not in result.queries.columns]
    yield from _finding("lost-column", columns)


def _lost_queries(pairing: Pairing, run: str) -> Iterator[Finding]:
    lacks = np.isnan(pairing.values)
    lost = np.flatnonzero((~lacks[:, 0] & lacks[:, 1]).any(axis=1))
    yield from _finding("lost-query", pairing.queries["query"].gather(lost).to_list(), run)


def _worse_slices(
    facing: RunAgainstBaseline, pairing: Pairing, slices: Iterable[str]
) -> Iterator[Finding]:
    column = facing.result.options.cluster
    clusters = None if column is None else tuple(pairing.column(column))
    how = Statistics(facing.level, 1, 0, "permutation", clusters)
    higher = {str(measure): measure.higher_is_better for measure in pairing.measures}
    found = [
        f"{row['column']}={row['slice']}: {row['measure']}"
        for row in slice_contrasts(pairing, [(0, 1)], slices, how)
        if row["low"] is not None
        and (row["high"] < 0 if higher[row["measure"]] else row["low"] > 0)
    ]
    yield from _finding("worse-slice", found, facing.run)


def _finding(kind: str, names: Sequence[str], run: str = "") -> Iterator[Finding]:
    if names:
        message, fix = SAID[kind]
        yield Finding(kind, len(names), tuple(names[:EXAMPLES]), message, fix, run)
