"""Requirements: `recall@5>=0.8` as text, what it means, and whether an estimate meets it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from findwell.core.errors import MeasureError, OptionError
from findwell.core.verdict import SAME, UNCLEAR
from findwell.evaluation.comparison.figures import figure_hint, figure_line, figure_name
from findwell.judges.limits import is_judged, judge_lines, verdict_limit
from findwell.measures import expand, parse_measure
from findwell.statistics.verdicts import withhold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from findwell.core.estimate import Estimate
    from findwell.core.verdict import Verdict
    from findwell.measures import Measure

PASS, FAIL, OPEN = "pass", "fail", "undecided"
COUNTS = ("failed", "undefined")  # queries without a value, and why
NO_BASELINE = "there is no baseline yet"
COVERAGE = ("judged", "unjudged")
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


def is_fact(measure: Measure) -> bool:
    """Tell what is counted on this evaluation from what is estimated by it."""
    return measure.aggregation == "sum" or measure.name in COVERAGE


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """Whether a run meets a requirement, and what that was decided by.

    Against a baseline, `difference` is compared with the line, and `low` and `high` are its
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
    verdict: Verdict | None = None  # of `difference`, as `findwell.compare` gives it

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "verdict"}
        return shown | ({} if self.verdict is None else {"verdict": self.verdict.word})

    def by_judge(self, judges: Iterable[Mapping[str, Any]], relation: str) -> RequirementVerdict:
        """Return the verdict with its relation, undecided where the judge of it gives none."""
        judges = [each for each in judges if each]
        if not judges or not is_judged(relation):
            return replace(self, relation=relation)
        found = replace(self, relation=relation, judge="; ".join(judge_lines(judges)))
        limit = next(filter(None, (verdict_limit(each, relation) for each in judges)), "")
        if limit and found.verdict is not None:
            found = replace(found, verdict=withhold(found.verdict, limit))
        if not limit or found.reason == NO_BASELINE or is_fact(parse_measure(self.measure)):
            return found
        return replace(found, outcome=OPEN, reason=limit)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A subject, a sign and the line that the subject is compared with."""

    text: str
    subject: str  # the name of a measure, of a count, or of a figure
    sign: str
    number: float  # the line, or what is added to the baseline
    factor: float | None = None  # of the baseline; None: the line is a number of its own
    share: bool = False  # whether the number was written in per cent

    @property
    def is_of_measure(self) -> bool:
        """Whether it is about a measure, rather than a count or what retrieval cost."""
        return names_measure(self.subject)

    def decide(self, estimate: Estimate, *, by_value: bool) -> tuple[str, str]:
        """Return the outcome for an estimate, and the reason if it is undecided.

        >>> from findwell.statistics.intervals import interval
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
        found: Estimate,
        *,
        by_value: bool,
        sides: tuple[float | None, float | None] | None = None,
        verdict: Verdict | None = None,
    ) -> RequirementVerdict:
        """Return whether a value meets it, or a difference of `sides`: baseline and run.

        `verdict` is what the comparison says of the difference: where that is `same` there is
        nothing to estimate, and where it is `unclear` the difference is on neither side of 0.
        """
        by_value = by_value or (verdict is not None and verdict.word == SAME)
        outcome, reason = self.decide(found, by_value=by_value)
        unclear = verdict is not None and verdict.word == UNCLEAR
        if unclear and self.number == 0 and not by_value and found.value is not None:
            outcome, reason = OPEN, reason or ACROSS
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
            verdict=verdict,
        )


def names_measure(subject: str) -> bool:
    """Tell a measure from a count and from what retrieval cost.

    >>> names_measure("recall@5"), names_measure("failed"), names_measure("p95")
    (True, False, False)
    """
    return subject not in COUNTS and figure_name(subject) is None


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
    if figure_name(subject) is not None:
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
    if name.lower() in COUNTS:
        return name.lower()
    figure = figure_name(name)
    if figure is not None:
        return figure
    if len(expand(name)) > 1:
        raise OptionError(f"{text!r} names several measures", fix="write a requirement for each")
    try:
        parse_measure(name)  # a wrong name is refused here, before anything is measured
    except MeasureError as error:
        hint = figure_hint(name)
        if not hint:
            raise
        raise OptionError(f"{name} in {text!r} is not a measure", fix=hint) from error
    return name


def _finite(number: str, text: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise OptionError(f"the number in {text!r} is too large", fix=FORM)
    return value
