"""Checks of alerts as text: a table, what each alarm is about, and what to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.findings import shorten
from findwell.core.verdict import verdict_row
from findwell.loop.monitoring.alarm_report import (
    RAISED_STATES,
    RESOLVED,
    SIGNS,
    amount,
    bets_in_words,
    evidence,
    moment,
    promise,
    sentence,
)
from findwell.loop.monitoring.times import EPOCH
from findwell.show.document import Document, Headline, Line
from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.loop.monitoring.alarm_report import AlarmVerdict, CheckReport

EXPLAINED_OUTCOMES = (*RAISED_STATES, RESOLVED)  # which get a paragraph


def document(report: CheckReport) -> Document:
    """Return what each alarm is about, then all alerts, and how to read them."""
    explained = [each for each in report.verdicts if each.outcome in EXPLAINED_OUTCOMES]
    return Document(
        [lay_out(report), *map(Line, _about(report))],
        headlines=[
            Headline(sentence(each), tuple(_story(each)), each.verdict.word) for each in explained
        ],
        data=report.as_dict,
        verdicts=lambda: map(_row, report.verdicts),
    )


def _row(found: AlarmVerdict) -> dict[str, Any]:
    return verdict_row(
        found.verdict,
        found.verdict.difference,
        system="production",
        measure=found.signal,
        slice=found.slice or None,
        requirement=found.alert,
        outcome=found.outcome,
        value=found.now,
        against=found.before,
        reason=found.reason,
    )


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
        good={
            (at, 0) for at, each in enumerate(outcomes) if each not in (*RAISED_STATES, "undecided")
        },
        bad={(at, 0) for at, each in enumerate(outcomes) if each in RAISED_STATES},
        note="; ".join(dict.fromkeys(each.judge for each in report.verdicts if each.judge)),
    )


def _about(report: CheckReport) -> Iterator[str]:
    watched = "all calls" if report.since is None else f"calls since {moment(report.since)}"
    compared = f", compared with {report.baseline}" if report.baseline else ""
    if report.window is not None:
        begin, end = report.window
        first = f"{moment(begin)} to " if begin > EPOCH else "up to "
        compared += f" ({first}{moment(end)})"
    yield f"Read it: {watched}{compared}; {promise(report)}."
    undecided = sorted({each.reason for each in report.verdicts if each.outcome == "undecided"})
    for reason in undecided:
        yield f"undecided: {reason}"
    yield from (f"note: {each}" for each in report.notes)


def _story(verdict: AlarmVerdict) -> Iterator[str]:
    """Tell by what evidence an alarm was raised, and what to look at."""
    if verdict.outcome == RESOLVED:
        return
    yield bets_in_words(verdict)
    for call in verdict.calls:
        question = f"  {shorten(call.question)}" if call.question else ""
        value = amount(call.value, verdict.unit)
        yield f"look at {moment(call.time)}  {value}  trace {call.trace}{question}"
