"""Gates: requirements that a result must meet, and whether it does: pass, fail, or undecided.

    recall@5>=0.8              a number, or a share: 80%
    P@5>=baseline-0.02         the same run of a baseline on the same queries, and a margin
    nDCG@10>=baseline*0.98     or a part of it
    judged@10>=0.9             coverage: what is judged,
    undefined<=5%              queries without a value, of the measure that has most of them,
    failed<=0                  queries whose judge failed,
    queries>=100               counts
    p95<=300ms, errors<=1%     what retrieval cost; see `requirements`

A value that was measured on some queries is an estimate, so its interval decides: on the right
side of the line it passes, on the wrong side it fails, across the line it is undecided. Against a
baseline it is the interval of the paired difference, which is a good deal narrower; it has 0 in it
exactly where `findwell compare` calls the difference unclear. Nothing is estimated where no query
differs from the baseline, nor in coverage and counts, which are facts about this evaluation: there
the value decides, as it does everywhere with `decide="value"`.
A value by the judge `local:text` is undecided, whatever decides: it is for smoke tests.

`check_update` asks whether a result may replace a baseline: nothing is lost, and nothing is worse.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core import display
from findwell.core.errors import OptionError, choose, takes_options
from findwell.core.estimate import Estimate
from findwell.core.findings import (
    Finding,
    FindingKind,
    finding_about,
    first_findings,
    merge_findings,
)
from findwell.core.forks import refuse_after_fork
from findwell.core.requirement import FAIL, OPEN, PASS, Requirement, read_percentile
from findwell.core.verdict import SAME, WORSE
from findwell.evaluation.comparison.compare import Comparison, contrasts, slice_rows
from findwell.evaluation.comparison.pairing import BETWEEN_SYSTEMS, Pairing, pair
from findwell.evaluation.comparison.requirements import (
    FIGURES,
    NO_BASELINE,
    RequirementVerdict,
    hold,
    is_fact,
    parse_requirement,
)
from findwell.evaluation.comparison.systems import System
from findwell.evaluation.results import summaries
from findwell.evaluation.results.result import require_result, same_dialect
from findwell.judges.limits import verdict_limit
from findwell.measures.dialects import expand_measures, resolve_measures, select_measures
from findwell.statistics.paired import paired
from findwell.statistics.verdicts import DifferenceTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure
    from findwell.statistics.verdicts import Contrast

LEVEL = 0.95  # of the intervals, for a result that was to have none
DECIDE = ("interval", "value")
UNDECIDED_CHOICES = ("error", "pass", "fail")
EXIT = {PASS: 0, FAIL: 1, OPEN: 3}
MEASURED_OTHERWISE = (FindingKind.OTHER_GOLD, FindingKind.OTHER_CHOICE)
LOSSES = {
    "lost-run": ("# run|runs of the baseline is|are missing here.", "measure it as well"),
    "lost-measure": (
        "# measure|measures of the baseline cannot be computed from this result.",
        "draw its relation as well: name the measure with -m",
    ),
    "lost-column": (
        "# column|columns of the baseline's queries is|are missing from this result.",
        "give it: --queries",
    ),
    "no-verdict": (
        "# measure|measures has|have a judge that gives no verdict: a loss would go unseen.",
        "measure it by another judge, or leave it out",
    ),
    "worse-slice": ("# slice|slices is|are worse than in the baseline.", "look at its queries"),
    "lost-query": ("# query|queries of the baseline has|have no value now.", "measure it as well"),
}


@dataclass(frozen=True, slots=True, repr=False)
class GateReport(display.Shown):
    """The verdict on every requirement and run, and problems of the comparison with a baseline."""

    verdicts: tuple[RequirementVerdict, ...]
    findings: tuple[Finding, ...] = ()
    undecided: str = "error"  # what undecided counts as: error, pass or fail

    @property
    def outcome(self) -> str:
        """Say fail if any failed, otherwise undecided if any is, otherwise pass."""
        outcomes = {verdict.outcome for verdict in self.verdicts}
        return FAIL if FAIL in outcomes else OPEN if OPEN in outcomes else PASS

    @property
    def exit_code(self) -> int:
        """Return 0 for pass, 1 for fail, 3 for what is undecided and counts as an error."""
        if self.outcome == OPEN and self.undecided != "error":
            return EXIT[self.undecided]
        return EXIT[self.outcome]

    @property
    def passed(self) -> bool:
        """Whether all passed, or are undecided where that counts as a pass."""
        return self.exit_code == 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as the JSON output prints it."""
        return {
            "gate": self.outcome,
            "requirements": [verdict.as_dict() for verdict in self.verdicts],
        }


@takes_options()
def gate(
    result: Result | Comparison | str | os.PathLike[str],
    requirements: Iterable[str] | str,
    *,
    baseline: Result | str | os.PathLike[str] | None = None,
    decide: str = "interval",
    undecided: str = "error",
    no_baseline: str = "error",
) -> GateReport:
    """Check every run of a result, or every system of a comparison, against requirements.

    `result` and `baseline` are results, or folders of saved ones. A run is compared with the run of
    the same name in the baseline, or with the only one. The systems of a comparison are compared
    with its own baseline: `findwell.gate(findwell.compare(old, new), "recall@5>=baseline-0.02")`.

    `decide` is what decides: the `interval`, or the `value` alone. `undecided` says what counts if
    the interval spans the threshold: `error` (exit code 3), `pass` or `fail`. A requirement that
    needs a baseline is an error without one, and passes with `no_baseline="pass"`.

    >>> from findwell import evaluate
    >>> result = evaluate({"q": ["a"], "r": ["x"]}, {"q": ["a"], "r": ["b"]}, measures="RR")
    >>> gate(result, ["RR>=0.4", "failed<=0"]).outcome
    'undecided'
    >>> gate(result, "RR>=0.4", decide="value").passed
    True
    """
    refuse_after_fork()
    choose("way to decide", decide, DECIDE)
    choose("choice for undecided gates", undecided, UNDECIDED_CHOICES)
    choose("choice without a baseline", no_baseline, ("error", "pass"))
    texts = [requirements] if isinstance(requirements, str) else requirements
    asked = [parse_requirement(text) for text in texts]
    if isinstance(result, Comparison):
        if baseline is not None:
            raise OptionError("a comparison has a baseline already", fix="leave out baseline")
        return GateReport(tuple(_on_comparison(result, asked, decide)), undecided=undecided)
    before = None if baseline is None else require_result(baseline)
    needing = [each for each in asked if each.factor is not None]
    if needing and before is None and no_baseline == "error":
        raise OptionError(
            f"{needing[0].text} needs a baseline, and there is none",
            fix="name the folder of a saved result with --baseline (baseline=)",
        )
    measured = require_result(result)
    runs = list(_runs(measured, before, asked)) if asked else []
    findings = first_findings(found for run, _ in runs for found in run.findings)
    verdicts = (
        run.hold(each, measure, decide) for run, subjects in runs for each, measure in subjects
    )
    return GateReport(tuple(verdicts), tuple(findings), undecided)


def no_regression(
    comparison: Comparison, measures: Iterable[str] | str, margin: float = 0.0
) -> list[str]:
    """Return the requirements that no system is worse than the baseline by more than a margin."""
    if not 0 <= margin < float("inf"):
        raise OptionError(f"the margin is {margin}", fix="give a number from 0 up")
    texts = []
    for wanted in expand_measures(measures, comparison.dialect):
        measure = comparison.measure(str(wanted))  # perhaps at another relevance level
        sign, offset = (">=", -margin) if measure.higher_is_better else ("<=", margin)
        texts.append(f"{measure}{sign}baseline" + (f"{offset:+.12g}" if margin else ""))
    return texts


def _runs(
    result: Result, baseline: Result | None, asked: Sequence[Requirement]
) -> Iterator[tuple[RunAgainstBaseline, list[tuple[Requirement, Measure | None]]]]:
    """Yield each run, with the measure of each requirement; None for a count or a cost."""
    subjects: list[tuple[Requirement, Measure | None]] = []
    for each in asked:
        measure = None
        if each.is_of_measure:  # at the relevance level of the result
            known = select_measures(each.subject, result.measures, result.dialect)
            measure = [*known, *resolve_measures(each.subject, result.dialect)][0]
        subjects.append((each, measure))
    named = [measure for _, measure in subjects if measure is not None]
    every = tuple(dict.fromkeys([*result.measures, *named]))
    if every != result.measures or result.level is None:
        result = replace(result, measures=every).with_options(level=result.level or LEVEL)
    compared = tuple(dict.fromkeys(it for each, it in subjects if it and each.factor is not None))
    for run in result.runs:
        yield RunAgainstBaseline(result, run, baseline if compared else None, compared), subjects


class RunAgainstBaseline:
    """A run of a result that has a level, and perhaps a baseline to be compared with."""

    def __init__(
        self, result: Result, run: str, baseline: Result | None, measures: Sequence[Measure]
    ) -> None:
        self.result, self.run, self.baseline = result, run, baseline
        self.level = result.level or 0.0
        self.rows = {row["measure"]: row for row in summaries.rows(result, run)}
        self.pairing: Pairing | None = None
        self.findings: tuple[Finding, ...] = ()
        clusters = None
        if baseline is not None:
            before = replace(baseline, measures=tuple(measures))
            other = System("baseline", before, _its_run(baseline, run))
            same_dialect(baseline, result.dialect)
            mine = replace(result, measures=tuple(measures))
            self.pairing = pair([other, System(run, mine, run)])
            every = self.pairing.findings
            self.findings = tuple(each for each in every if each.kind in BETWEEN_SYSTEMS)
            column = result.options.cluster
            clusters = None if column is None else tuple(self.pairing.column(column))
        self.testing = DifferenceTest(self.level, clusters=clusters)  # as `findwell compare` does

    @cached_property
    def contrasts(self) -> dict[str, Contrast]:
        """The differences from the baseline by measure, with their verdicts."""
        found = [] if self.pairing is None else contrasts(self.pairing, [(0, 1)], self.testing)
        return {str(each.measure): each for each in found}

    def hold(self, asked: Requirement, measure: Measure | None, decide: str) -> RequirementVerdict:
        """Hold the run against one requirement."""
        if measure is None:
            figure = self._figure(asked)
            fact = decide == "value" or read_percentile(asked.subject) is None
            open_ended = figure.high is None and figure.low is not None
            spanned = replace(figure, high=math.inf) if open_ended else figure
            held = hold(asked, self.run, asked.subject, spanned, by_value=fact)
            reason = figure.reason if held.outcome == OPEN and open_ended else held.reason
            return replace(held, estimate=replace(figure, reason=reason))
        name, by_value = str(measure), decide == "value" or is_fact(measure)
        if asked.factor is None:
            value = row_interval(self.rows[name], self.level)
            value = replace(value, low=None, high=None) if is_fact(measure) else value
            held = hold(asked, self.run, name, value, by_value=by_value)
        elif self.pairing is None:
            value = row_interval(self.rows[name], self.level)
            held = hold(asked, self.run, name, value, by_value=True).because(PASS, NO_BASELINE)
        else:
            contrast = self.contrasts[name]
            verdict = contrast.verdict
            found = replace(verdict.difference, reason=verdict.reason)
            if asked.factor != 1:  # another difference than the one that was tested
                (scaled,) = paired(
                    *contrast.values,
                    statistic=measure.aggregation,
                    level=self.level,
                    bounds=measure.bounds,
                    factor=asked.factor,
                    clusters=self.testing.clusters,
                    permutations=1,  # only the interval is asked for
                )
                found, by_value = scaled.difference, by_value or verdict.word == SAME
            held = hold(
                asked,
                self.run,
                name,
                found,
                by_value=by_value,
                sides=contrast.sides,
                verdict=verdict if asked.factor == 1 else None,
            )
        judges = [self.result.judge, *([] if self.baseline is None else [self.baseline.judge])]
        return held.by_judge(judges, self.result.relation_name(measure))

    def _figure(self, asked: Requirement) -> Estimate:
        """Return a count of queries, or what retrieval cost, with its interval if it has one."""
        subject, timing = asked.subject, self.result.timing.get(self.run)
        if subject in FIGURES and not FIGURES[subject].field:
            row = max(self.rows.values(), key=lambda row: row[subject])  # the measure with most
            n = row["n"] + row["undefined"] + row["failed"]
            count = float(row[subject])
            value = count / max(n, 1) if asked.share else count
            return Estimate(value, None, None, self.level, "", n)
        share, reason = read_percentile(subject), f"the run says nothing about {subject}"
        if timing is None:
            reason = f"nothing is known about {subject}: the run has no such columns"
        elif share is not None:
            found = timing.percentile(float(share) / 100, self.level)
            if found.value is not None:  # no time is below 0
                return replace(found, low=0.0 if found.low is None else found.low)
            reason = "the run has no latency"
        else:
            cost = timing.error_rate if asked.share else getattr(timing, FIGURES[subject].field)
            if cost is not None:
                return Estimate(float(cost), None, None, self.level, "", timing.queries)
        return Estimate(None, None, None, self.level, "", 0, reason=reason)


def row_interval(row: Mapping[str, Any], level: float) -> Estimate:
    """Return the interval in a row of a summary."""
    method, reason = (row[name] or "" for name in ("method", "reason"))
    return Estimate(row["value"], row["low"], row["high"], level, method, row["n"], reason=reason)


def _its_run(baseline: Result, run: str) -> str:
    if run in baseline.runs:
        return run
    if len(baseline.runs) == 1:
        return baseline.runs[0]
    raise OptionError(
        f"the baseline has several runs, and none is called {run}: {', '.join(baseline.runs)}",
        where="baseline",
        fix="give the run the name of one of them, or save a baseline with one run",
    )


def _on_comparison(
    comparison: Comparison, asked: Iterable[Requirement], decide: str
) -> Iterator[RequirementVerdict]:
    """Hold the differences of every system from the baseline against margins."""
    for each in asked:
        if each.factor != 1:
            raise OptionError(
                f"{each.text} does not compare with the baseline",
                fix=f"write {each.subject}>=baseline-0.02, or use findwell.gate(result, …)",
            )
        measure = comparison.measure(each.subject)
        for system in comparison.systems[1:]:
            row = comparison[system, str(measure)]
            verdict = comparison.verdicts[comparison.baseline, system, str(measure)]
            found = hold(
                each,
                system,
                str(measure),
                replace(verdict.difference, reason=verdict.reason),
                by_value=decide == "value" or is_fact(measure),
                sides=(row["baseline_value"], row["system_value"]),
                verdict=verdict,
            )
            judges = [each.judge for each in comparison.provenances]
            yield found.by_judge(judges, comparison.matched_by[str(measure)])


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

    def has(side: Result, measure: Measure) -> bool:
        name = measure.relation or side.provenance.drawn_by
        return all((run, name) in side.relations for run in side.runs)

    def lost(kind: str, names: Sequence[str], run: str = "") -> list[Finding]:
        return finding_about(kind, names, *LOSSES[kind], run)

    added = tuple(
        measure
        for measure in baseline.measures
        if measure not in result.measures and has(result, measure)
    )
    grown = replace(result, measures=(*result.measures, *added))
    known = tuple(measure for measure in grown.measures if has(baseline, measure))
    scored = grown.with_options(level=grown.level or LEVEL)
    runs = [run for run in baseline.runs if run not in grown.runs]
    measures = [str(each) for each in baseline.measures if each not in grown.measures]
    columns = [name for name in baseline.queries.columns if name not in grown.queries.columns]
    # a single run may have another name now
    findings = lost("lost-run", runs) if len(baseline.runs) > 1 else []
    findings += lost("lost-measure", measures) + lost("lost-column", columns)
    worse: list[RequirementVerdict] = []
    for run in grown.runs if known else ():
        against = RunAgainstBaseline(scored, run, baseline, known)
        pairing = against.pairing
        if pairing is None:
            continue
        findings += (found for found in against.findings if found.kind in MEASURED_OTHERWISE)
        lacks = np.isnan(pairing.table)
        gone = np.flatnonzero((~lacks[0] & lacks[1]).any(axis=0))
        findings += lost("lost-query", pairing.queries["query"].gather(gone).to_list(), run)
        unknown = [
            str(each) for each in known if verdict_limit(grown.judge, grown.relation_name(each))
        ]
        findings += lost("no-verdict", unknown, run)
        worse_slices = [
            f"{row['column']}={row['slice']}: {row['measure']}"
            for row in slice_rows(pairing, [(0, 1)], slices, against.testing)
            if row["verdict"] == WORSE
        ]
        findings += lost("worse-slice", worse_slices, run)
        held = (
            against.hold(parse_requirement(f"{measure}{sign}baseline"), measure, "value")
            for measure in known
            if measure.aggregation != "sum"  # of a count neither side is the better one
            for sign in [">=" if measure.higher_is_better else "<="]
        )
        worse += (each for each in held if each.outcome == FAIL)
    return BaselineUpdate(grown, added, tuple(worse), merge_findings(findings))
