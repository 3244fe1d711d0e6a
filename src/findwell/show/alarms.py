"""Checks of alerts as text: a table, what each alarm is about, and what to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.findings import shorten
from findwell.loop.monitoring.alarm_report import (
    RAISED,
    RESOLVED,
    SIGNS,
    amount,
    bets_in_words,
    evidence,
    moment,
    promise,
    sentence,
)
from findwell.show.escape import printable
from findwell.show.grid import Grid
from findwell.show.tables import bullets, cleaner, reading_width, render_grids, to_json, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.loop.monitoring.alarm_report import AlarmVerdict, CheckReport

FORMATS = ("table", "json", "markdown")
EXPLAINED_OUTCOMES = (*RAISED, RESOLVED)  # which get a paragraph


def render(report: CheckReport, how: str, *, color: bool = False, width: int | None = None) -> str:
    """Return a check in one of FORMATS, with a line break at the end."""
    if how == "json":
        return to_json(report.as_dict())
    table = render_grids([lay_out(report)], how, color=color, width=width)
    explained = [each for each in report.verdicts if each.outcome in EXPLAINED_OUTCOMES]
    parts = [table]
    if how == "markdown":
        parts += [f"\n{cleaner(how)(line)}\n" for line in _about(report)]
        parts += [f"\n{bullets(_story(each), how)}" for each in explained]
        return "".join(parts)
    wide = reading_width(width)
    parts += [wrap(printable(line) + "\n", wide) for line in _about(report)]
    for each in explained:
        head, *lines = _story(each)
        parts.append("\n" + wrap(printable(head) + "\n", wide, hang=2))
        parts.append(bullets(lines, how, wide))
    return "".join(parts)


def lay_out(report: CheckReport) -> Grid:
    """One row per alert and slice."""
    sliced = any(each.slice for each in report.verdicts)
    header = ["verdict", "alert", *(["slice"] if sliced else [])]
    texts = len(header)
    header += ["against", "now", "evidence", "needed", "calls", "periods"]
    rows = [
        [SIGNS[each.outcome], each.alert]
        + ([each.slice or "all calls"] if sliced else [])
        + [amount(each.before, each.unit), amount(each.now, each.unit)]
        + [evidence(each.log_evidence), evidence(each.log_needed), f"{each.n:,}"]
        + [f"{each.periods:,} × {each.period}" if each.period else "–"]
        for each in report.verdicts
    ]
    outcomes = [each.outcome for each in report.verdicts]
    return Grid(
        f"alerts: {report.outcome}",
        header,
        rows,
        left=texts,
        good={(at, 0) for at, each in enumerate(outcomes) if each not in (*RAISED, "undecided")},
        bad={(at, 0) for at, each in enumerate(outcomes) if each in RAISED},
    )


def lines(report: CheckReport) -> list[str]:
    """Return a sentence per verdict, safe to print."""
    return [printable(sentence(each)) for each in report.verdicts]


def _about(report: CheckReport) -> Iterator[str]:
    watched = "all calls" if report.since is None else f"calls since {moment(report.since)}"
    compared = f", compared with {report.baseline}" if report.baseline else ""
    if report.window is not None:
        compared += f" ({moment(report.window[0])} to {moment(report.window[1])})"
    yield f"Read it: {watched}{compared}; {promise(report)}."
    undecided = sorted({each.reason for each in report.verdicts if each.outcome == "undecided"})
    for reason in undecided:
        yield f"undecided: {reason}"
    yield from (f"note: {each}" for each in report.notes)


def _story(verdict: AlarmVerdict) -> Iterator[str]:
    """Tell since when, how large, by what, and what to look at."""
    yield sentence(verdict)
    if verdict.outcome == RESOLVED:
        return
    yield bets_in_words(verdict)
    for call in verdict.calls:
        question = f"  {shorten(call.question)}" if call.question else ""
        value = amount(call.value, verdict.unit)
        yield f"look at {moment(call.time)}  {value}  trace {call.trace}{question}"
