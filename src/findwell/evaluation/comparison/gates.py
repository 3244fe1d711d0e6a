"""Gates: requirements that a result must meet, and whether it does: pass, fail, or undecided.

    recall@5>=0.8              a number, or a share: 80%
    P@5>=baseline-0.02         the same run of a baseline on the same queries, and a margin
    nDCG@10>=baseline*0.98     or a part of it
    judged@10>=0.9             coverage: what is judged,
    undefined<=5%              queries without a value, of the measure that has most of them,
    failed<=0                  queries whose judge failed,
    queries>=100               counts
    p95<=300ms, errors<=1%     what retrieval cost; see `findwell.evaluation.comparison.figures`

A value that was measured on some queries is an estimate, so its interval decides: on the right
side of the line it passes, on the wrong side it fails, across the line it is undecided. Against a
baseline it is the interval of the paired difference, which is a good deal narrower; it has 0 in it
exactly where `findwell compare` calls the difference unclear. Nothing is estimated where no query
differs from the baseline, nor in coverage and counts, which are facts about this evaluation: there
the value decides, as it does everywhere with `decide="value"`.
A value by the judge `local:text` is undecided, whatever decides: it is for smoke tests.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from findwell.core.errors import OptionError, choose
from findwell.core.estimate import Estimate
from findwell.core.findings import first_findings
from findwell.core.forks import refuse_after_fork
from findwell.core.verdict import SAME
from findwell.evaluation.comparison.compare import Comparison
from findwell.evaluation.comparison.contrasts import contrasts
from findwell.evaluation.comparison.figures import figure_interval, figure_name, is_percentile
from findwell.evaluation.comparison.pairing import BETWEEN_SYSTEMS, Pairing, pair
from findwell.evaluation.comparison.requirements import (
    FAIL,
    NO_BASELINE,
    OPEN,
    PASS,
    Requirement,
    RequirementVerdict,
    is_fact,
    parse_requirement,
)
from findwell.evaluation.comparison.systems import System
from findwell.evaluation.results import summaries
from findwell.evaluation.results.reuse import require_result, same_dialect
from findwell.measures.dialects import expand_measures, resolve_measures, select_measures
from findwell.statistics.paired import paired
from findwell.statistics.verdicts import Testing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.findings import Finding
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure
    from findwell.statistics.verdicts import Contrast

LEVEL = 0.95  # of the intervals, for a result that was to have none
DECIDE = ("interval", "value")
UNDECIDED = ("error", "pass", "fail")
EXIT = {PASS: 0, FAIL: 1, OPEN: 3}


@dataclass(frozen=True, slots=True)
class GateReport:
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


def gate(
    result: Result | Comparison | str | os.PathLike[str],
    requirements: Iterable[str] | str,
    *,
    baseline: Result | str | os.PathLike[str] | None = None,
    decide: str = "interval",
    undecided: str = "error",
    no_baseline: str = "error",
) -> GateReport:
    """Hold every run of a result, or every system of a comparison, against requirements.

    `result` and `baseline` are results or the folders of saved ones. A run is compared with the run
    of the same name in the baseline, or with the only one. In a comparison the systems are held
    against its baseline: `findwell.gate(findwell.compare(old, new), "recall@5>=baseline-0.02")`.

    `decide` is what decides: the `interval`, or the `value` alone. `undecided` is what a verdict
    counts as whose interval spans the line: `error` (exit code 3), `pass` or `fail`. A requirement
    that needs a baseline while there is none raises an error, or passes: `no_baseline="pass"`.

    >>> from findwell import evaluate
    >>> result = evaluate({"q": ["a"], "r": ["x"]}, {"q": ["a"], "r": ["b"]}, measures="RR")
    >>> gate(result, ["RR>=0.4", "failed<=0"]).outcome
    'undecided'
    >>> gate(result, "RR>=0.4", decide="value").passed
    True
    """
    refuse_after_fork()
    choose("way to decide", decide, DECIDE)
    choose("choice for undecided gates", undecided, UNDECIDED)
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
        run.verdict(each, measure, decide) for run, subjects in runs for each, measure in subjects
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
) -> Iterator[tuple[RunAgainstBaseline, list[tuple[Requirement, Measure | str]]]]:
    """Yield each run, with what each requirement is about: a measure, a count, or a figure."""
    subjects: list[tuple[Requirement, Measure | str]] = [
        (each, _measure(result, each.subject) if each.is_of_measure else each.subject)
        for each in asked
    ]
    named = [(each, it) for each, it in subjects if not isinstance(it, str)]
    every = tuple(dict.fromkeys([*result.measures, *(measure for _, measure in named)]))
    if every != result.measures or result.level is None:
        result = replace(result, measures=every).with_options(level=result.level or LEVEL)
    compared = tuple(dict.fromkeys(it for each, it in named if each.factor is not None))
    for run in result.runs:
        yield RunAgainstBaseline(result, run, baseline if compared else None, compared), subjects


def _measure(result: Result, name: str) -> Measure:
    """Return the measure that a requirement means: at the relevance level of the result."""
    known = select_measures(name, result.measures, result.dialect)
    return [*known, *resolve_measures(name, result.dialect)][0]


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
        if baseline is not None:
            before = replace(baseline, measures=tuple(measures))
            other = System("baseline", before, _its_run(baseline, run))
            same_dialect(baseline, result.dialect)
            mine = replace(result, measures=tuple(measures))
            self.pairing = pair([other, System(run, mine, run)])
            every = self.pairing.findings
            self.findings = tuple(each for each in every if each.kind in BETWEEN_SYSTEMS)

    def verdict(
        self, asked: Requirement, measure: Measure | str, decide: str
    ) -> RequirementVerdict:
        """Hold the run against one requirement."""
        if isinstance(measure, str) and figure_name(measure) is not None:
            timing = self.result.timing.get(self.run)
            figure = figure_interval(asked.subject, timing, self.level, share=asked.share)
            fact = decide == "value" or not is_percentile(asked.subject)
            open_ended = figure.high is None and figure.low is not None
            held = replace(figure, high=math.inf) if open_ended else figure
            verdict = asked.verdict(self.run, asked.subject, held, by_value=fact)
            reason = figure.reason if verdict.outcome == OPEN and open_ended else verdict.reason
            return replace(verdict, high=figure.high, reason=reason)
        if isinstance(measure, str):
            return asked.verdict(self.run, measure, self._count(asked), by_value=True)
        by_value = decide == "value" or is_fact(measure)
        if asked.factor is not None and self.pairing is not None:
            found = self._against(self.pairing, asked, measure, by_value=by_value)
        else:
            value = row_interval(self.rows[str(measure)], self.level)
            if asked.factor is not None:
                found = asked.verdict(self.run, str(measure), value, by_value=True)
                found = replace(found, outcome=PASS, reason=NO_BASELINE)
            else:
                value = replace(value, low=None, high=None) if is_fact(measure) else value
                found = asked.verdict(self.run, str(measure), value, by_value=by_value)
        judges = [self.result.judge, *([] if self.baseline is None else [self.baseline.judge])]
        return found.by_judge(judges, self.result.relation_name(measure))

    def _count(self, asked: Requirement) -> Estimate:
        """Return how many queries lack a value, or their share, of the measure with most."""
        top = max(self.rows.values(), key=lambda row: row[asked.subject])
        queries = top["n"] + top["undefined"] + top["failed"]
        count = float(top[asked.subject])
        value = count / max(queries, 1) if asked.share else count
        return Estimate(value, None, None, self.level, "", queries, 0)

    def _against(
        self, pairing: Pairing, asked: Requirement, measure: Measure, *, by_value: bool
    ) -> RequirementVerdict:
        """Hold the difference from the baseline, times its factor, against the margin."""
        contrast = self._contrasts[str(measure)]
        verdict = contrast.verdict
        found = replace(verdict.difference, reason=verdict.reason)
        if asked.factor != 1:
            by_value = by_value or verdict.word == SAME
            at = pairing.measures.index(measure)
            (scaled,) = paired(
                pairing.values[:, 0, at],
                pairing.values[:, 1, at],
                statistic=measure.aggregation,
                level=self.level,
                bounds=measure.bounds,
                factor=asked.factor or 0.0,
                clusters=self.testing.clusters,
                permutations=1,  # only the interval is asked for
            )
            found = scaled.difference
        return asked.verdict(
            self.run,
            str(measure),
            found,
            by_value=by_value,
            sides=contrast.sides,
            verdict=verdict if asked.factor == 1 else None,
        )

    @property
    def testing(self) -> Testing:
        """How differences from the baseline are judged: as `findwell compare` does."""
        column = self.result.options.cluster
        labels = None if column is None or self.pairing is None else self.pairing.column(column)
        clusters = None if labels is None else tuple(labels)
        return Testing(self.level, clusters=clusters)

    @cached_property
    def _contrasts(self) -> dict[str, Contrast]:
        """The differences from the baseline by measure, with their verdicts."""
        if self.pairing is None:
            return {}
        found = contrasts(self.pairing, [(0, 1)], self.testing)
        return {str(each.measure): each for each in found}


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
                f"{each.text} is not about a difference from the baseline",
                fix=f"write {each.subject}>=baseline-0.02, or hold a result against it",
            )
        measure = comparison.measure(each.subject)
        for system in comparison.systems[1:]:
            row = comparison[system, str(measure)]
            verdict = comparison.verdicts[comparison.baseline, system, str(measure)]
            found = each.verdict(
                system,
                str(measure),
                replace(verdict.difference, reason=verdict.reason),
                by_value=decide == "value" or is_fact(measure),
                sides=(row["baseline_value"], row["system_value"]),
                verdict=verdict,
            )
            judges = [each.judge for each in comparison.provenances]
            yield found.by_judge(judges, comparison.matched_by[str(measure)])
