"""Requirements as text: `recall@5>=0.8`, `P@5>=baseline-0.02`, `undefined<=5%`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from karat.errors import OptionError
from karat.measures import expand, parse_measure

COUNTS = ("failed", "undefined")  # queries without a value, and why
FORM = "for example recall@5>=0.8, P@5>=baseline-0.02, judged@10>=0.9, undefined<=5%"

_DECIMAL = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_PARTS = re.compile(r"\s*(?P<subject>[^<>]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<line>.+?)\s*")
_NUMBER = re.compile(rf"(?P<number>[+-]?{_DECIMAL})\s*(?P<percent>%?)", re.IGNORECASE)
_BASELINE = re.compile(
    rf"baseline\s*(?:\*\s*(?P<factor>{_DECIMAL}))?"
    rf"\s*(?:(?P<add>[+-])\s*(?P<offset>{_DECIMAL})\s*(?P<percent>%?))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is held against what."""

    text: str
    subject: str  # the name of a measure, or one of COUNTS
    sign: str
    number: float  # the line, or what is added to the baseline
    factor: float | None = None  # of the baseline; None: the line is a number of its own
    share: bool = False  # whether the number was written in per cent


def parse_requirement(text: str) -> Requirement:
    """Return what a requirement says.

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
    line = _NUMBER.fullmatch(parts["line"])
    shown = re.sub(r"\s+", "", plain)
    if line is not None:
        share = bool(line["percent"])
        number = _finite(line["number"], text) / (100 if share else 1)
        if subject in COUNTS:
            _check_count(number, share=share, text=text)
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
    if len(expand(name)) > 1:
        raise OptionError(f"{text!r} names several measures", fix="write a requirement for each")
    parse_measure(name)  # a name that is none is refused here, before anything is measured
    return name


def _finite(number: str, text: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise OptionError(f"the number in {text!r} is too large", fix=FORM)
    return value


def _check_count(number: float, *, share: bool, text: str) -> None:
    if not share and not number.is_integer():
        raise OptionError(
            f"{text!r} counts queries", fix="write a whole number, or a share such as 5%"
        )
