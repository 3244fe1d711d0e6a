"""A requirement: what a number must be, in a line of text. One grammar for gates and alarms.

recall@5>=0.8, empty>2%    a subject, a sign, and a number or a share
p95<=300ms                 with a unit
P@5>=baseline-0.02         or the value of a baseline, times a factor, plus a margin
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError
from findwell.core.timing import UNITS

if TYPE_CHECKING:
    from findwell.core.estimate import Estimate

PASS, FAIL, OPEN = "pass", "fail", "undecided"
SPANNED_LINE = "the interval spans the threshold"
ROUNDING = 1e-9  # what differs by no more is equal
HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, line: value >= line - ROUNDING,
    "<=": lambda value, line: value <= line + ROUNDING,
    ">": lambda value, line: value > line + ROUNDING,
    "<": lambda value, line: value < line - ROUNDING,
}

# what may follow a number, and what it is worth in the unit in which things are measured
TIMES: Mapping[str, float] = UNITS | {"µs": UNITS["us"]}
SIZES: Mapping[str, float] = {"mb": 1.0, "gb": 1e3, "kb": 1e-3}
RATES: Mapping[str, float] = {"/s": 1.0, "": 1.0}
SHARES: Mapping[str, float] = {"%": 0.01, "": 1.0}
COUNTS: Mapping[str, float] = {"": 1.0}

_DECIMAL = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_NUMBER = re.compile(rf"(?P<number>[+-]?{_DECIMAL})\s*(?P<unit>.*)", re.IGNORECASE)
_PARTS = re.compile(r"(?P<subject>[^<>]*[^<>=\s])\s*(?P<sign>>=|<=|>|<)\s*(?P<line>.*)")
_BASELINE = re.compile(
    rf"baseline\s*(?:\*\s*(?P<factor>{_DECIMAL}))?"
    rf"\s*(?:(?P<add>[+-])\s*(?P<offset>{_DECIMAL})\s*(?P<percent>%?))?",
    re.IGNORECASE,
)
_PERCENTILE = re.compile(r"(?:latency_)?p(?P<share>[1-9]\d?(?:\.\d+)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A subject, a sign and the line that the subject is compared with."""

    text: str
    subject: str  # the name of a measure, of a count, or of what retrieval cost
    sign: str
    number: float  # the line, or what is added to the baseline
    factor: float | None = None  # of the baseline; None: the line is a number of its own
    share: bool = False  # whether the number was written in per cent
    is_of_measure: bool = True  # rather than a count, or what retrieval cost

    def decide(self, estimate: Estimate, *, by_value: bool) -> tuple[str, str]:
        """Return the outcome for an estimate, and the reason if it is undecided.

        >>> from findwell.core.estimate import Estimate
        >>> some = Estimate(0.75, 0.4, 0.9, 0.95, "some", 4)
        >>> Requirement("RR>=0.3", "RR", ">=", 0.3).decide(some, by_value=False)
        ('pass', '')
        >>> Requirement("RR>=0.75", "RR", ">=", 0.75).decide(some, by_value=False)
        ('undecided', 'the interval spans the threshold')
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
            return OPEN, SPANNED_LINE
        return PASS if sides.pop() else FAIL, ""


def plain_text(text: str) -> str:
    """Return a requirement in ASCII, with single spaces."""
    return " ".join(text.replace("≥", ">=").replace("≤", "<=").replace("−", "-").split())


def split_line(text: str) -> tuple[str, str, str] | None:
    """Return the subject, the sign and the line; None if it does not have these parts.

    >>> split_line("P@5 ≥ baseline − 0.02")
    ('P@5', '>=', 'baseline - 0.02')
    """
    parts = _PARTS.fullmatch(plain_text(text))
    return None if parts is None else (parts["subject"], parts["sign"], parts["line"])


def read_number(line: str) -> tuple[float, str] | None:
    """Return a number and the unit behind it, in lower case; None if it is not a number.

    >>> read_number("0.3 S"), read_number("2%"), read_number("high")
    ((0.3, 's'), (2.0, '%'), None)
    """
    found = _NUMBER.fullmatch(line)
    return None if found is None else (_finite(found["number"]), found["unit"].lower())


def in_base_unit(number: float, unit: str, units: Mapping[str, float]) -> float:
    """Return a number in the unit in which things are measured.

    >>> in_base_unit(0.3, "s", TIMES), in_base_unit(7, "%", SHARES)
    (300.0, 0.07)
    """
    return number / 100 if unit == "%" else number * units[unit]


def read_baseline(line: str) -> tuple[float, float] | None:
    """Return the factor of the baseline and what is added to it; None if there is no baseline.

    >>> read_baseline("baseline*0.98 + .01"), read_baseline("0.8")
    ((0.98, 0.01), None)
    """
    found = _BASELINE.fullmatch(line)
    if found is None:
        return None
    if found["percent"]:
        raise OptionError(
            f"{line!r} may mean points or per cent of the baseline",
            fix="write baseline-0.02 for two points less, baseline*0.98 for two per cent less",
        )
    offset = (found["add"] or "") + (found["offset"] or "0")
    return _finite(found["factor"] or "1"), _finite(offset)


def read_percentile(name: str) -> str | None:
    """Return which percentile of the latency a name means, as text; None if it means none.

    >>> read_percentile("P95"), read_percentile("latency_p99.9"), read_percentile("P@5")
    ('95', '99.9', None)
    """
    found = _PERCENTILE.fullmatch(name.strip())
    return None if found is None else found["share"]


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise OptionError(f"the number {number} is too large", fix="write a smaller one")
    return value
