"""Gates: requirements that a result must meet, and whether it does: pass, fail, or undecided.

    recall@5>=0.8              a number, or a share: 80%
    P@5>=baseline-0.02         the same run of a baseline on the same queries, and a margin
    nDCG@10>=baseline*0.98     or a part of it
    judged@10>=0.9             coverage: what is judged,
    undefined<=5%              queries without a value, of the measure that has most of them,
    failed<=0                  queries whose judge failed,
    queries>=100               counts
    p90<=300ms, errors<=1%     what retrieval cost; see `karat.comparison.figures`

A value that was measured on some queries is an estimate, so its interval decides: on the right
side of the line it passes, on the wrong side it fails, across the line it is undecided. Against a
baseline it is the interval of the paired difference, which is a good deal narrower. Nothing is
estimated where no query differs from the baseline, nor in coverage and counts, which are facts
about this evaluation: there the value decides, as it does everywhere with `decide="value"`.
A value by the judge `local:text` is undecided, whatever decides: it is for smoke tests.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.comparison.compare import Comparison
from karat.comparison.figures import FIGURES, figure_interval, figure_line
from karat.comparison.pairing import BETWEEN_SYSTEMS, Pairing, pair
from karat.comparison.systems import System
from karat.dialects import expand_measures, resolve_measures, select_measures
from karat.errors import OptionError, choose
from karat.findings import first_findings
from karat.forks import refuse_after_fork
from karat.judges.limits import is_judged, judge_lines, verdict_limit
from karat.measures import expand, parse_measure
from karat.measures.aggregate import aggregate
from karat.results import summaries
from karat.results.reuse import require_result, same_dialect
from karat.results.timing import PERCENTILES
from karat.statistics.intervals import Interval
from karat.statistics.paired import paired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karat.findings import Finding
    from karat.measures import Measure
    from karat.results.result import Result

LEVEL = 0.95  # of the intervals, for a result that was to have none
DECIDE = ("interval", "value")
UNDECIDED = ("error", "pass", "fail")
PASS, FAIL, OPEN = "pass", "fail", "undecided"
EXIT = {PASS: 0, FAIL: 1, OPEN: 3}

COUNTS = ("failed", "undefined")  # queries without a value, and why
NOT_MEASURES = (*COUNTS, *FIGURES)  # what requirements may be about beside measures
COVERAGE = ("judged", "unjudged")
NO_BASELINE = "there is no baseline yet"
ACROSS = "the interval spans the line"
FORM = "for example recall@5>=0.8, P@5>=baseline-0.02, judged@10>=0.9, undefined<=5%"

ROUNDING = 1e-9  # what differs by no more is equal
HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, line: value >= line - ROUNDING,
    "<=": lambda value, line: value <= line + ROUNDING,
    ">": lambda value, line: value > line + ROUNDING,
    "<": lambda value, line: value < line - ROUNDING,
}

_DECIMAL = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_PARTS = re.compile(r"\s*(?P<subject>[^<>]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<line>.+?)\s*")
_NUMBER = re.compile(rf"(?P<number>[+-]?{_DECIMAL})\s*(?P<percent>%?)", re.IGNORECASE)
_BASELINE = re.compile(
    rf"baseline\s*(?:\*\s*(?P<factor>{_DECIMAL}))?"
    rf"\s*(?:(?P<add>[+-])\s*(?P<offset>{_DECIMAL})\s*(?P<percent>%?))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """Whether a run meets a requirement, and what that was decided by.

    Against a baseline, `difference` is what is held against the line, and `low` and `high` are its
    interval; otherwise they are those of `value`.
    """

    requirement: str
    run: str
    measure: str
    outcome: str
    value: float | None
    low: float | None
    high: float | None
    line: float
    baseline: float | None
    difference: float | None
    n: int
    level: float
    decided_by: str  # interval, or value
    reason: str
    relation: str = ""  # that the measure reads, with its parameters; none for a count
    judge: str = ""  # who drew the relation, and what its numbers are worth; '' if none did

    def by_judge(self, judges: Iterable[Mapping[str, Any]], relation: str) -> RequirementVerdict:
        """Return the verdict with its relation, undecided where the judge of it gives none."""
        judges = [each for each in judges if each]
        if not judges or not is_judged(relation):
            return replace(self, relation=relation)
        found = replace(self, relation=relation, judge="; ".join(judge_lines(judges)))
        limit = next(filter(None, (verdict_limit(each, relation) for each in judges)), "")
        decided = found.reason != NO_BASELINE and not is_fact(parse_measure(self.measure))
        return replace(found, outcome=OPEN, reason=limit) if limit and decided else found


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
            "requirements": [asdict(verdict) for verdict in self.verdicts],
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
    against its baseline: `karat.gate(karat.compare(old, new), "recall@5>=baseline-0.02")`.

    `decide` is what decides: the `interval`, or the `value` alone. `undecided` is what a verdict
    counts as whose interval spans the line: `error` (exit code 3), `pass` or `fail`. A requirement
    that needs a baseline while there is none raises an error, or passes: `no_baseline="pass"`.

    >>> from karat import evaluate
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
        (each, each.subject if each.subject in NOT_MEASURES else _measure(result, each.subject))
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
        if measure in FIGURES:
            timing = self.result.timing.get(self.run)
            figure = figure_interval(asked.subject, timing, self.level, share=asked.share)
            fact = decide == "value" or asked.subject not in PERCENTILES
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

    def _count(self, asked: Requirement) -> Interval:
        """Return how many queries lack a value, or their share, of the measure with most."""
        top = max(self.rows.values(), key=lambda row: row[asked.subject])
        queries = top["n"] + top["undefined"] + top["failed"]
        count = float(top[asked.subject])
        value = count / max(queries, 1) if asked.share else count
        return Interval(value, None, None, self.level, "", queries, 0)

    def _against(
        self, pairing: Pairing, asked: Requirement, measure: Measure, *, by_value: bool
    ) -> RequirementVerdict:
        """Hold the difference from the baseline, times its factor, against the margin."""
        at = pairing.measures.index(measure)
        before, after = pairing.values[:, 0, at], pairing.values[:, 1, at]
        both = ~(np.isnan(before) | np.isnan(after))
        column = self.result.options.cluster
        (found,) = paired(
            before,
            after,
            statistic=measure.aggregation,
            level=self.level,
            bounds=measure.bounds,
            factor=1.0 if asked.factor is None else asked.factor,
            clusters=None if column is None else pairing.column(column).to_list(),
            permutations=1,  # only the interval is asked for
        )
        sides = aggregate(measure, before[both]).value, aggregate(measure, after[both]).value
        same = not (found.wins or found.losses)
        return asked.verdict(
            self.run, str(measure), found.difference, by_value=by_value or same, sides=sides
        )


def row_interval(row: Mapping[str, Any], level: float, value: str = "value") -> Interval:
    """Return the interval in a row of a summary or of a comparison."""
    method, reason = (row[name] or "" for name in ("method", "reason"))
    return Interval(row[value], row["low"], row["high"], level, method, row["n"], 0, reason=reason)


def is_fact(measure: Measure) -> bool:
    """Tell what is counted on this evaluation from what is estimated by it."""
    return measure.aggregation == "sum" or measure.name in COVERAGE


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
            same = row["wins"] == row["losses"] == 0
            verdict = each.verdict(
                system,
                str(measure),
                row_interval(row, comparison.level, "difference"),
                by_value=decide == "value" or same or is_fact(measure),
                sides=(row["baseline_value"], row["system_value"]),
            )
            judges = [each.judge for each in comparison.provenances]
            yield verdict.by_judge(judges, comparison.matched_by[str(measure)])


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is held against what."""

    text: str
    subject: str  # the name of a measure, or one of NOT_MEASURES
    sign: str
    number: float  # the line, or what is added to the baseline
    factor: float | None = None  # of the baseline; None: the line is a number of its own
    share: bool = False  # whether the number was written in per cent

    def decide(self, estimate: Interval, *, by_value: bool) -> tuple[str, str]:
        """Return the outcome for an estimate, and the reason if it is undecided.

        >>> from karat.statistics.intervals import interval
        >>> parse_requirement("RR>=0.3").decide(interval([0.6, 0.7, 0.9, 0.8]), by_value=False)
        ('pass', '')
        >>> parse_requirement("RR>=0.75").decide(interval([0.6, 0.7, 0.9, 0.8]), by_value=False)
        ('undecided', 'the interval spans the line')
        """
        holds = HOLDS[self.sign]
        if estimate.value is None:
            return OPEN, estimate.reason
        if by_value:
            return PASS if holds(estimate.value, self.number) else FAIL, ""
        if estimate.low is None or estimate.high is None:
            return OPEN, estimate.reason
        sides = {holds(estimate.low, self.number), holds(estimate.high, self.number)}
        if len(sides) > 1:
            return OPEN, ACROSS
        return PASS if sides.pop() else FAIL, ""

    def verdict(
        self,
        run: str,
        measure: str,
        found: Interval,
        *,
        by_value: bool,
        sides: tuple[float | None, float | None] | None = None,
    ) -> RequirementVerdict:
        """Return the verdict on a value, or on a difference of `sides`: baseline and run."""
        outcome, reason = self.decide(found, by_value=by_value)
        return RequirementVerdict(
            self.text,
            run,
            measure,
            outcome,
            value=found.value if sides is None else sides[1],
            low=found.low,
            high=found.high,
            line=self.number,
            baseline=None if sides is None else sides[0],
            difference=None if sides is None else found.value,
            n=found.n,
            level=found.level,
            decided_by="value" if by_value else "interval",
            reason=reason,
        )


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement.

    >>> found = parse_requirement("P@5 >= baseline - 0.02")
    >>> found.subject, found.sign, found.number, found.factor
    ('P@5', '>=', -0.02, 1.0)
    >>> parse_requirement("undefined<=5%").number
    0.05
    """
    plain = text.replace("≥", ">=").replace("≤", "<=").replace("−", "-")
    parts = _PARTS.fullmatch(plain)
    if parts is None or parts["subject"].endswith("="):
        raise OptionError(f"{text!r} is no requirement", fix=FORM)
    subject = _subject(parts["subject"], text)
    if subject in FIGURES:
        number, share = figure_line(subject, parts["line"], text)
        shown = re.sub(r"\s+", "", plain)
        return Requirement(shown, subject, parts["sign"], number, share=share)
    line = _NUMBER.fullmatch(parts["line"])
    shown = re.sub(r"\s+", "", plain)
    if line is not None:
        share = bool(line["percent"])
        number = _finite(line["number"], text) / (100 if share else 1)
        if subject in COUNTS and not share and not number.is_integer():
            raise OptionError(
                f"{text!r} counts queries", fix="write a whole number, or a share such as 5%"
            )
        return Requirement(shown, subject, parts["sign"], number, share=share)
    line = _BASELINE.fullmatch(parts["line"])
    if line is None:
        raise OptionError(
            f"{parts['line']!r} in {text!r} is neither a number nor a baseline", fix=FORM
        )
    if subject in COUNTS:
        raise OptionError(f"{subject} is not compared with a baseline", fix=f"{subject}<=0")
    if line["percent"]:
        raise OptionError(
            f"{text!r} may mean points or per cent of the baseline",
            fix="write baseline-0.02 for two points less, baseline*0.98 for two per cent less",
        )
    factor = _finite(line["factor"] or "1", text)
    offset = _finite((line["add"] or "") + (line["offset"] or "0"), text)
    return Requirement(shown, subject, parts["sign"], offset, factor)


def _subject(name: str, text: str) -> str:
    if name.lower() in NOT_MEASURES:
        return name.lower()
    if len(expand(name)) > 1:
        raise OptionError(f"{text!r} names several measures", fix="write a requirement for each")
    parse_measure(name)  # a name that is none is refused here, before anything is measured
    return name


def _finite(number: str, text: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise OptionError(f"the number in {text!r} is too large", fix=FORM)
    return value
