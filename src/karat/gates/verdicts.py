"""Verdicts: whether an estimate lies on the right side of a line, or cannot be told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.statistics.intervals import Interval

PASS, FAIL, OPEN = "pass", "fail", "undecided"
ACROSS = "the interval spans the line"
ROUNDING = 1e-9  # what differs by no more is equal

HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, line: value >= line - ROUNDING,
    "<=": lambda value, line: value <= line + ROUNDING,
    ">": lambda value, line: value > line + ROUNDING,
    "<": lambda value, line: value < line - ROUNDING,
}


@dataclass(frozen=True, slots=True)
class Verdict:
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


@dataclass(frozen=True, slots=True)
class Line:
    """What an estimate is held against: `>= 0.8`."""

    sign: str
    number: float

    def holds(self, value: float) -> bool:
        """Tell whether a number lies on the right side."""
        return HOLDS[self.sign](value, self.number)

    def decide(self, estimate: Interval, *, by_value: bool) -> tuple[str, str]:
        """Return the outcome for an estimate, and the reason if it is undecided.

        >>> from karat.statistics.intervals import interval
        >>> Line(">=", 0.3).decide(interval([0.6, 0.7, 0.9, 0.8]), by_value=False)
        ('pass', '')
        >>> Line(">=", 0.75).decide(interval([0.6, 0.7, 0.9, 0.8]), by_value=False)
        ('undecided', 'the interval spans the line')
        """
        if estimate.value is None:
            return OPEN, estimate.reason
        if by_value:
            return PASS if self.holds(estimate.value) else FAIL, ""
        if estimate.low is None or estimate.high is None:
            return OPEN, estimate.reason
        sides = {self.holds(estimate.low), self.holds(estimate.high)}
        if len(sides) > 1:
            return OPEN, ACROSS
        return PASS if sides.pop() else FAIL, ""


def of_value(  # noqa: PLR0917
    text: str, run: str, measure: str, line: Line, found: Interval, by_value: bool
) -> Verdict:
    """Return the verdict on a value."""
    outcome, reason = line.decide(found, by_value=by_value)
    return Verdict(
        text,
        run,
        measure,
        outcome,
        value=found.value,
        low=found.low,
        high=found.high,
        line=line.number,
        baseline=None,
        difference=None,
        n=found.n,
        level=found.level,
        decided_by="value" if by_value else "interval",
        reason=reason,
    )


def of_difference(  # noqa: PLR0917
    text: str,
    run: str,
    measure: str,
    line: Line,
    found: Interval,
    sides: tuple[float | None, float | None],
    by_value: bool,
) -> Verdict:
    """Return the verdict on a difference; `sides` are the values of baseline and run."""
    verdict = of_value(text, run, measure, line, found, by_value)
    return replace(verdict, value=sides[1], baseline=sides[0], difference=found.value)
