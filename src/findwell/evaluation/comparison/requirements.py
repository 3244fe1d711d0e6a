"""What can be required of a result: a measure, a count of queries, or what retrieval cost.

    p95<=300ms                 a percentile of the latency: any of p1 to p99.9, in ms, s or us
    errors<=1%                 queries that failed, as a share or a count
    throughput>=20/s           queries a second
    cpu<=50ms, memory<=2GB     of the process, per query and at most
    context_tokens<=4000       of what was retrieved, mean per query; context_bytes, too

A percentile is an estimate, so its interval decides. The others are facts about this evaluation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from findwell.core.errors import MeasureError, OptionError, nearest
from findwell.core.estimate import Estimate, Estimated
from findwell.core.requirement import (
    COUNTS,
    OPEN,
    RATES,
    SHARES,
    SIZES,
    SPANNED_LINE,
    TIMES,
    Requirement,
    in_base_unit,
    plain_text,
    read_baseline,
    read_number,
    read_percentile,
    split_line,
)
from findwell.core.timing import BARE_NAMES
from findwell.core.verdict import SAME, UNCLEAR
from findwell.judges.limits import is_judged, judge_lines, verdict_limit
from findwell.measures import expand, parse_measure
from findwell.statistics.verdicts import withhold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from findwell.core.verdict import Verdict
    from findwell.measures import Measure

NO_BASELINE = "there is no baseline yet"
COVERAGE = ("judged", "unjudged")
FORM = "for example recall@5>=0.8, P@5>=baseline-0.02, judged@10>=0.9, undefined<=5%"


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that can be required and is not a measure."""

    example: str
    units: Mapping[str, float]  # that may follow the number
    field: str = ""  # of a timing; empty: counted over the queries
    shown: str = ""  # the unit in which it is shown


FIGURES = {
    "failed": Figure("failed<=0", SHARES),  # queries whose judge failed
    "undefined": Figure("undefined<=5%", SHARES),  # queries without a value
    "errors": Figure("errors<=1%", SHARES, "errors"),
    "throughput": Figure("throughput>=20/s", RATES, "throughput", "queries/s"),
    "cpu": Figure("cpu<=50ms", TIMES, "cpu_ms", "ms"),
    "memory": Figure("memory<=2GB", SIZES, "peak_memory_mb", "MB"),
    "context_tokens": Figure("context_tokens<=4000", COUNTS, "context_tokens", "tokens"),
    "context_bytes": Figure("context_bytes<=16000", COUNTS, "context_bytes", "bytes"),
}


def find_figure(subject: str) -> Figure | None:
    """Return what a requirement is about, if it is not about a measure.

    >>> find_figure("latency_p95").example, find_figure("Errors").field, find_figure("recall@5")
    ('p95<=300ms', 'errors', None)
    """
    share = read_percentile(subject)
    if share is not None:
        return Figure(f"p{share}<=300ms", TIMES, f"p{share}", "ms")
    return FIGURES.get(subject.lower())


def is_fact(measure: Measure) -> bool:
    """Tell what is counted on this evaluation from what is estimated by it."""
    return measure.aggregation == "sum" or measure.name in COVERAGE


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement.

    >>> found = parse_requirement("P@5 >= baseline - 0.02")
    >>> found.subject, found.sign, found.number, found.factor
    ('P@5', '>=', -0.02, 1.0)
    >>> parse_requirement("undefined<=5%").number, parse_requirement("p90<=0.3 s").number
    (0.05, 300.0)
    """
    parts = split_line(text)
    if parts is None:
        raise OptionError(f"{text!r} is not a valid requirement", fix=FORM)
    name, sign, line = parts
    subject, shown = _subject(name, text), plain_text(text).replace(" ", "")
    figure, found = find_figure(subject), read_number(line)
    units = SHARES if figure is None else figure.units
    if found is not None and found[1] in units:
        number, unit = found
        share = unit == "%"
        if figure is not None and units is SHARES and not (share or number.is_integer()):
            raise OptionError(
                f"{text!r} counts queries", fix="write a whole number, or a share such as 5%"
            )
        number = in_base_unit(number, unit, units)
        low, high = (0.0, math.inf) if figure else parse_measure(subject).bounds
        if not low <= number <= high:
            fix = figure.example if figure else "write a share: 0.8 or 80%"
            raise OptionError(f"{shown}: {subject} is never {number:g}", fix=fix)
        return Requirement(shown, subject, sign, number, None, share, figure is None)
    if figure is not None:
        if line.lower().startswith("baseline"):
            raise OptionError(f"{subject} is not compared with a baseline", fix=figure.example)
        named = " or ".join(each or "no unit" for each in units)
        what = "is not a valid limit" if found is None or found[1] else "has no unit"
        raise OptionError(f"{line!r} in {text!r} {what}", fix=f"{figure.example} ({named})")
    against = read_baseline(line)
    if against is None:
        raise OptionError(f"{line!r} in {text!r} is neither a number nor a baseline", fix=FORM)
    factor, offset = against
    return Requirement(shown, subject, sign, offset, factor)


def _subject(name: str, text: str) -> str:
    """Return the name of a figure or a measure; refuse others before anything is measured."""
    figure = find_figure(name)
    if figure is not None:
        return figure.field if read_percentile(name) else name.lower()
    if len(expand(name)) > 1:
        raise OptionError(f"{text!r} names several measures", fix="write a requirement for each")
    try:
        parse_measure(name)
    except MeasureError as error:
        hint = nearest(name.lower(), FIGURES, most=1)
        if name.lower() in BARE_NAMES or name.lower() in ("duration", "time"):
            hint = "name a percentile of the latency: p95<=300ms"
        if not hint:
            raise
        raise OptionError(f"{name} in {text!r} is not a measure", fix=hint) from error
    return name


@dataclass(frozen=True, slots=True)
class RequirementVerdict(Estimated):
    """Whether a run meets a requirement, and what that was decided by."""

    requirement: str
    run: str
    measure: str
    outcome: str
    # what is compared with the line: the value, or the difference of `sides`; why it is undecided
    estimate: Estimate
    line: float
    decided_by: str  # interval, or value
    sides: tuple[float | None, float | None] | None = None  # baseline and run, if compared
    relation: str = ""  # that the measure reads, with its parameters; none for a count
    judge: str = ""  # who drew the relation, and what its numbers are worth; '' if none did
    verdict: Verdict | None = None  # of the difference, as `findwell.compare` gives it

    @property
    def value(self) -> float | None:
        """The value of the run."""
        return self.estimate.value if self.sides is None else self.sides[1]

    @property
    def baseline(self) -> float | None:
        """The value of the baseline, where the two are compared."""
        return None if self.sides is None else self.sides[0]

    @property
    def difference(self) -> float | None:
        """The difference from the baseline, times its factor."""
        return None if self.sides is None else self.estimate.value

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        shown = {name: getattr(self, name) for name in IN_JSON}
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
        return found.because(OPEN, limit)

    def because(self, outcome: str, reason: str) -> RequirementVerdict:
        """Return the verdict with another outcome, and why."""
        return replace(self, outcome=outcome, estimate=replace(self.estimate, reason=reason))


IN_JSON = (
    *("requirement", "run", "measure", "outcome", "value", "low", "high", "line", "baseline"),
    *("difference", "n", "level", "decided_by", "reason", "relation", "judge"),
)


def hold(
    asked: Requirement,
    run: str,
    measure: str,
    found: Estimate,
    *,
    by_value: bool,
    sides: tuple[float | None, float | None] | None = None,
    verdict: Verdict | None = None,
) -> RequirementVerdict:
    """Return whether a value meets a requirement, or a difference of `sides`: baseline and run.

    `verdict` is what the comparison says of the difference: where that is `same` there is nothing
    to estimate, and where it is `unclear` the difference is on neither side of 0.
    """
    word = None if verdict is None else verdict.word
    by_value = by_value or word == SAME
    outcome, reason = asked.decide(found, by_value=by_value)
    if word == UNCLEAR and asked.number == 0 and not by_value and found.value is not None:
        outcome, reason = OPEN, reason or SPANNED_LINE
    return RequirementVerdict(
        asked.text,
        run,
        measure,
        outcome,
        replace(found, reason=reason),
        asked.number,
        "value" if by_value else "interval",
        sides,
        verdict=verdict,
    )
