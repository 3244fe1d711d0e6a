"""Gates: requirements that a result must meet, and whether it does: pass, fail, or undecided.

    recall@5>=0.8              a number, or a share: 80%
    P@5>=baseline-0.02         the same run of a baseline on the same queries, and a margin
    nDCG@10>=baseline*0.98     or a part of it
    judged@10>=0.9             coverage: what is judged,
    undefined<=5%              queries without a value, of the measure that has most of them,
    failed<=0                  queries whose judge failed,
    queries>=100               counts

A value that was measured on some queries is an estimate, so its interval decides: on the right
side of the line it passes, on the wrong side it fails, across the line it is undecided. Against a
baseline it is the interval of the paired difference, which is a good deal narrower. Nothing is
estimated where no query differs from the baseline, nor in coverage and counts, which are facts
about this evaluation: there the value decides, as it does everywhere with `decide="value"`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from karat.dialects import ask, meant, resolve_measures
from karat.errors import OptionError, choose
from karat.gates.facing import RunAgainstBaseline, is_fact
from karat.gates.requirements import COUNTS, Requirement, parse_requirement
from karat.gates.verdicts import FAIL, OPEN, PASS, Line, Verdict, of_difference
from karat.results.result import Result
from karat.results.saving import load
from karat.statistics.intervals import Interval

if TYPE_CHECKING:
    from karat.comparison.compare import Comparison
    from karat.findings import Finding
    from karat.measures import Measure

LEVEL = 0.95  # of the intervals, for a result that was to have none
DECIDE = ("interval", "value")
UNDECIDED = ("error", "pass", "fail")
EXIT = {PASS: 0, FAIL: 1, OPEN: 3}


@dataclass(frozen=True, slots=True)
class Gate:
    """All verdicts, and what is odd about the comparison with the baseline."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> str:
        """Say fail if any failed, otherwise undecided if any is, otherwise pass."""
        outcomes = {verdict.outcome for verdict in self.verdicts}
        return FAIL if FAIL in outcomes else OPEN if OPEN in outcomes else PASS

    def exit_code(self, undecided: str = "error") -> int:
        """Return 0, 1 or 3; undecided may count as `pass` or `fail`."""
        choose("choice for undecided gates", undecided, UNDECIDED)
        if self.outcome == OPEN and undecided != "error":
            return EXIT[undecided]
        return EXIT[self.outcome]

    def as_dict(self) -> dict[str, Any]:
        """Return the gate as the JSON output prints it."""
        return {
            "gate": self.outcome,
            "requirements": [asdict(verdict) for verdict in self.verdicts],
        }


def gate(
    result: Result,
    requirements: Iterable[str] | str,
    *,
    baseline: Result | str | os.PathLike[str] | None = None,
    decide: str = "interval",
    first_time: bool = False,
) -> Gate:
    """Hold every run of a result against requirements.

    `baseline` is a result or its folder; a run is compared with the run of the same name, or with
    the only one. `first_time` lets requirements pass that need a baseline while there is none.

    >>> from karat import evaluate
    >>> result = evaluate({"q": ["a"], "r": ["x"]}, {"q": ["a"], "r": ["b"]}, measures="RR")
    >>> gate(result, ["RR>=0.4", "queries>=2"]).outcome
    'undecided'
    >>> gate(result, "RR>=0.4", decide="value").outcome
    'pass'
    """
    choose("way to decide", decide, DECIDE)
    texts = [requirements] if isinstance(requirements, str) else requirements
    asked = [parse_requirement(text) for text in texts]
    measures = {
        each: each.subject if each.subject in COUNTS else _measure(result, each.subject)
        for each in asked
    }
    if not asked:
        return Gate(())
    named = (each for each in measures.values() if not isinstance(each, str))
    every = tuple(dict.fromkeys([*result.measures, *named]))
    scored = result
    if every != result.measures or result.level is None:
        scored = replace(result, measures=every).with_options(level=result.level or LEVEL)
    before = baseline if baseline is None or isinstance(baseline, Result) else load(baseline)
    if before is None and not first_time:
        _refuse_without_baseline(asked)
    compared = dict.fromkeys(
        measure
        for each, measure in measures.items()
        if each.factor is not None and not isinstance(measure, str)
    )
    before = before if compared else None
    facing = [RunAgainstBaseline(scored, run, before, tuple(compared)) for run in result.runs]
    verdicts = [run.verdict(each, measures[each], decide) for run in facing for each in asked]
    findings = {
        (each.run, each.kind, each.message): each for run in facing for each in run.findings
    }
    return Gate(tuple(verdicts), tuple(findings.values()))


def no_regression(
    comparison: Comparison,
    measures: Iterable[str] | str,
    *,
    margin: float = 0.0,
    decide: str = "interval",
) -> Gate:
    """Require that no system is worse than the baseline by more than a margin."""
    choose("way to decide", decide, DECIDE)
    if not 0 <= margin < float("inf"):
        raise OptionError(f"the margin is {margin}", fix="give a number from 0 up")
    verdicts = []
    for wanted in ask(measures, comparison.dialect):
        measure = comparison.measure(str(wanted))  # perhaps at another relevance level
        line = Line(">=", -margin or 0.0) if measure.higher_is_better else Line("<=", margin)
        text = f"{measure}{line.sign}baseline" + (f"{line.number:+g}" if margin else "")
        for system in comparison.systems[1:]:
            row = comparison[system, str(measure)]
            found = Interval(
                value=row["difference"],
                low=row["low"],
                high=row["high"],
                level=comparison.level,
                method=row["method"] or "",
                n=row["n"],
                undefined=row["left_out"],
                reason=row["reason"],
            )
            sides = row["baseline_value"], row["system_value"]
            moved = row["wins"] + row["losses"]
            by_value = decide == "value" or not moved or is_fact(measure)
            verdict = of_difference(text, system, str(measure), line, found, sides, by_value)
            verdicts.append(replace(verdict, relation=comparison.matched_by[str(measure)]))
    return Gate(tuple(verdicts))


def _measure(result: Result, name: str) -> Measure:
    """Return the measure that a requirement means: at the relevance level of the result."""
    return [*meant(name, result.measures, result.dialect), *resolve_measures(name, result.dialect)][
        0
    ]


def _refuse_without_baseline(asked: Iterable[Requirement]) -> None:
    for each in asked:
        if each.factor is not None:
            raise OptionError(
                f"{each.text} needs a baseline, and there is none",
                fix="name the folder of a saved result with --baseline (baseline=)",
            )
