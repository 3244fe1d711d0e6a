"""Baselines: a result may take the place of one if nothing is lost, and nothing is worse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.findings import FindingKind, finding_about, merge_findings
from findwell.core.verdict import WORSE
from findwell.evaluation.comparison.contrasts import slice_rows
from findwell.evaluation.comparison.gates import LEVEL, RunAgainstBaseline
from findwell.evaluation.comparison.requirements import FAIL, parse_requirement
from findwell.judges.limits import verdict_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.findings import Finding
    from findwell.evaluation.comparison.pairing import Pairing
    from findwell.evaluation.comparison.requirements import RequirementVerdict
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

MEASURED_OTHERWISE = (FindingKind.OTHER_GOLD, FindingKind.OTHER_CHOICE)
MESSAGES = {
    "lost-run": ("run of the baseline that this result lacks", "measure it as well"),
    "lost-measure": (
        "measure of the baseline that this result cannot have",
        "draw its relation as well: name the measure with -m",
    ),
    "lost-column": (
        "column of the baseline's queries that this result lacks",
        "give it: --queries",
    ),
    "no-verdict": (
        "measure whose judge gives no verdict about systems: a loss would not be seen",
        "measure it by another judge, or leave it out",
    ),
    "worse-slice": ("slice that is surely worse than in the baseline", "look at its queries"),
    "lost-query": ("query with a value in the baseline, and with none now", "measure it as well"),
}


@dataclass(frozen=True, slots=True, eq=False)
class BaselineUpdate:
    """A result that may take the place of a baseline, and the reasons against it."""

    result: Result  # with the measures of the baseline as well
    added: tuple[Measure, ...]  # those that it has only because the baseline has them
    worse: tuple[RequirementVerdict, ...]
    findings: tuple[Finding, ...]

    @property
    def allowed(self) -> bool:
        """Whether there is no reason against it."""
        return not (self.worse or self.findings)


def check_update(result: Result, baseline: Result, slices: Iterable[str] = ()) -> BaselineUpdate:
    """Ask whether a result may take the place of a baseline.

    It is measured by all measures of the baseline, whatever was asked for. Reasons against it:
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
    findings = _lost(grown, baseline)
    worse: list[RequirementVerdict] = []
    for run in grown.runs:
        against = RunAgainstBaseline(scored, run, baseline, known)
        if against.pairing is None or not known:
            continue
        findings += (found for found in against.findings if found.kind in MEASURED_OTHERWISE)
        findings += _lost_queries(against.pairing, run)
        unknown = [
            str(each) for each in known if verdict_limit(grown.judge, grown.relation_name(each))
        ]
        findings += _finding("no-verdict", unknown, run)
        findings += _worse_slices(against, against.pairing, slices)
        verdicts = (
            against.verdict(parse_requirement(f"{measure}{sign}baseline"), measure, "value")
            for measure in known
            if measure.aggregation != "sum"  # of a count neither side is the better one
            for sign in [">=" if measure.higher_is_better else "<="]
        )
        worse += (verdict for verdict in verdicts if verdict.outcome == FAIL)
    return BaselineUpdate(grown, added, tuple(worse), merge_findings(findings))


def _has(result: Result, measure: Measure) -> bool:
    name = measure.relation or result.provenance.drawn_by
    return all((run, name) in result.relations for run in result.runs)


def _lost(result: Result, baseline: Result) -> list[Finding]:
    runs = [run for run in baseline.runs if run not in result.runs]
    measures = [str(each) for each in baseline.measures if each not in result.measures]
    columns = [name for name in baseline.queries.columns if name not in result.queries.columns]
    return [
        # a single run may have another name now
        *(_finding("lost-run", runs) if len(baseline.runs) > 1 else []),
        *_finding("lost-measure", measures),
        *_finding("lost-column", columns),
    ]


def _lost_queries(pairing: Pairing, run: str) -> list[Finding]:
    lacks = np.isnan(pairing.values)
    lost = np.flatnonzero((~lacks[:, 0] & lacks[:, 1]).any(axis=1))
    return _finding("lost-query", pairing.queries["query"].gather(lost).to_list(), run)


def _worse_slices(
    against: RunAgainstBaseline, pairing: Pairing, slices: Iterable[str]
) -> list[Finding]:
    found = [
        f"{row['column']}={row['slice']}: {row['measure']}"
        for row in slice_rows(pairing, [(0, 1)], slices, against.testing)
        if row["verdict"] == WORSE
    ]
    return _finding("worse-slice", found, against.run)


def _finding(kind: str, names: Sequence[str], run: str = "") -> list[Finding]:
    return finding_about(kind, names, *MESSAGES[kind], run)
