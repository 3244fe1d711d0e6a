"""Requirements about what retrieval cost: latency, throughput, errors, memory, size of context.

    p95<=300ms                 a percentile of the latency: any of p1 to p99.9, in ms, s or us
    errors<=1%                 queries that failed, as a share or a count
    throughput>=20/s           queries a second
    cpu<=50ms, memory<=2GB     of the process, per query and at most
    context_tokens<=4000       of what was retrieved, mean per query; context_bytes, too

A percentile is an estimate, so its interval decides. The others are facts about this evaluation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError, nearest
from findwell.core.estimate import Estimate
from findwell.core.timing import BARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from findwell.evaluation.results.timing import Timing

TIMES = {"ms": 1.0, "s": 1e3, "us": 1e-3, "µs": 1e-3}
SIZES = {"mb": 1.0, "gb": 1e3, "kb": 1e-3}
_PERCENTILE = re.compile(r"(?:latency_)?(?P<name>p(?P<share>[1-9]\d?(?:\.\d+)?))", re.IGNORECASE)
_LINE = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(?P<unit>.*)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that can be required of what retrieval cost."""

    field: str  # of a timing
    units: Mapping[str, float]  # that may follow the number
    example: str
    shown: str = ""  # the unit in which it is shown


FIGURES = {
    "errors": Figure("errors", {"%": 0.01, "": 1.0}, "errors<=1%"),
    "throughput": Figure("throughput", {"/s": 1.0, "": 1.0}, "throughput>=20/s", "queries/s"),
    "cpu": Figure("cpu_ms", TIMES, "cpu<=50ms", "ms"),
    "memory": Figure("peak_memory_mb", SIZES, "memory<=2GB", "MB"),
    "context_tokens": Figure("context_tokens", {"": 1.0}, "context_tokens<=4000", "tokens"),
    "context_bytes": Figure("context_bytes", {"": 1.0}, "context_bytes<=16000", "bytes"),
}


def figure_name(name: str) -> str | None:
    """Return the name of the figure that a requirement is about; None if it is about none.

    >>> figure_name("Errors"), figure_name("latency_p95"), figure_name("recall@5")
    ('errors', 'p95', None)
    """
    percentile = _PERCENTILE.fullmatch(name)
    if percentile is not None:
        return percentile["name"].lower()
    return name.lower() if name.lower() in FIGURES else None


def is_percentile(subject: str) -> bool:
    """Say whether a figure is a percentile of the latency, which is an estimate."""
    return _PERCENTILE.fullmatch(subject) is not None


def find_figure(subject: str) -> Figure:
    """Return the figure of this name."""
    if is_percentile(subject):
        return Figure(subject, TIMES, f"{subject}<=300ms", "ms")
    return FIGURES[subject]


def figure_hint(name: str) -> str:
    """Return the requirement that was probably meant, of a name that is not a measure.

    >>> figure_hint("latency"), figure_hint("error_rate"), figure_hint("recal@5")
    ('name a percentile of the latency: p95<=300ms', 'did you mean errors?', '')
    """
    if name.lower() in BARE or name.lower() in ("duration", "time"):
        return "name a percentile of the latency: p95<=300ms"
    return nearest(name.lower(), FIGURES, most=1)


def figure_line(subject: str, line: str, text: str) -> tuple[float, bool]:
    """Return the number of a requirement in the unit of its figure, and whether it is a share.

    >>> figure_line("p90", "0.3 s", "p90<=0.3 s")
    (300.0, False)
    """
    figure = find_figure(subject)
    if line.lower().startswith("baseline"):
        raise OptionError(f"{subject} is not compared with a baseline", fix=figure.example)
    found = _LINE.fullmatch(line)
    unit = "" if found is None else found["unit"].strip().lower()
    if found is None or unit not in figure.units:
        named = " or ".join(each or "no unit" for each in figure.units)
        what = "has no unit" if found is not None and not unit else "is no such number"
        raise OptionError(f"{line!r} in {text!r} {what}", fix=f"{figure.example} ({named})")
    share = unit == "%"
    number = float(found["number"])
    if subject == "errors" and not share and not number.is_integer():
        raise OptionError(
            f"{text!r} counts queries", fix="write a whole number, or a share such as 1%"
        )
    return number * figure.units[unit], share


def figure_interval(subject: str, timing: Timing | None, level: float, *, share: bool) -> Estimate:
    """Return a figure of a run, and its interval if it is an estimate."""
    if timing is None:
        return _unknown(f"nothing is known about {subject}: the run has no such columns", level)
    if is_percentile(subject):
        found = timing.percentile(float(subject[1:]) / 100, level)
        if found.value is None:
            return _unknown("the run has no latency", level)
        return replace(found, low=0.0 if found.low is None else found.low)  # no time is below
    value = timing.error_rate if share else getattr(timing, FIGURES[subject].field)
    if value is None:
        return _unknown(f"the run says nothing about {subject}", level)
    return Estimate(float(value), None, None, level, "", timing.queries, 0)


def _unknown(reason: str, level: float) -> Estimate:
    return Estimate(None, None, None, level, "", 0, 0, reason=reason)
