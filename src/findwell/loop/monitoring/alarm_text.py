"""Verdicts of a check in words, and for Prometheus."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any

from findwell.loop.monitoring.alarm_report import (
    ALARM,
    QUIET,
    RAISED,
    RESOLVED,
    STILL_OPEN,
    UNDECIDED,
)
from findwell.loop.monitoring.times import parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from findwell.loop.monitoring.alarm_report import AlarmVerdict, CheckReport
    from findwell.loop.monitoring.store import TraceStore

SIGNS = {
    QUIET: "✓ quiet",
    ALARM: "✗ alarm",
    STILL_OPEN: "✗ open",
    RESOLVED: "✓ resolved",
    UNDECIDED: "? undecided",
}
LARGEST = log(1e300)


def amount(value: float | None, unit: str) -> str:
    """Write a value of a signal.

    >>> amount(0.0234, "share"), amount(812.4, "ms"), amount(0.61234, "score"), amount(None, "ms")
    ('2.34%', '812 ms', '0.6123', '–')
    """
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.3g}%"
    if unit == "ms":
        return f"{value:.3g} ms" if abs(value) < 100 else f"{value:.0f} ms"
    return f"{value:.4g}"


def moment(time: datetime) -> str:
    """Write a point in time."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def sentence(verdict: AlarmVerdict) -> str:
    """Say what was decided about an alert: since when, how large, by what."""
    where = f" ({verdict.slice})" if verdict.slice else ""
    head = f"{SIGNS[verdict.outcome]}: {verdict.alert}{where}"
    now, before = (amount(each, verdict.unit) for each in (verdict.now, verdict.before))
    found = f"{verdict.signal} is {now} on {verdict.n:,} calls"
    found += f", against {before}" if verdict.before is not None else ""
    if verdict.since is not None:
        found += f", since {moment(verdict.since)}"
    if verdict.outcome == STILL_OPEN and verdict.opened is not None:
        found += f", raised {moment(verdict.opened)}"
    if verdict.outcome == RESOLVED and verdict.opened is not None:
        found = f"{verdict.signal} is back at {now} on {verdict.n:,} calls; raised"
        found += f" {moment(verdict.opened)}"
    return f"{head}: {found}" + (f"; {verdict.reason}" if verdict.reason else "")


def bets_in_words(verdict: AlarmVerdict) -> str:
    """Say what was bet on, its mean with limits that hold at all times, and the line."""
    found = f"bet on {verdict.watched}"
    mean, low, high = verdict.mean.value, verdict.mean.low, verdict.mean.high
    if mean is not None and low is not None and high is not None:
        found += f": mean {mean:.4g} ({low:.4g} … {high:.4g} at all times)"
    if verdict.line is not None:
        found += f", compared with {verdict.line:.4g}"
    needed = evidence(verdict.log_needed)
    found += f"; {verdict.periods:,} periods of {verdict.period}"
    return f"{found}; evidence {evidence(verdict.log_evidence)} of {needed}"


def evidence(logarithm: float) -> str:
    """Write an e-value.

    >>> evidence(log(4.321)), evidence(log(1234.0)), evidence(2000.0), evidence(-50.0)
    ('4.3', '1234', '> 1e300', '0.0')
    """
    if logarithm > LARGEST:
        return "> 1e300"
    value = exp(logarithm)
    return f"{value:.1f}" if value < 100 else f"{value:.0f}" if value < 1e6 else f"{value:.1e}"


def promise(report: CheckReport) -> str:
    """Say what is promised while nothing changes."""
    if report.run_length is not None:
        return (
            f"while nothing changes, an alarm comes after {report.run_length:,} periods or more "
            "on average, if periods do not depend on those before them"
        )
    share = f"{100 * report.alpha:.3g}%"
    return (
        f"false-alarm probability: at most {share} in total, however often you check, if periods "
        "do not depend on those before them"
    )


def prometheus_text(store: TraceStore) -> str:
    """Return the last state of all alerts and what the store holds, as Prometheus reads it.

    The route `/metrics` of a server may answer with it, as `text/plain; version=0.0.4`.
    """
    tests: Mapping[str, Any] = (store.state("alarms") or {}).get("tests", {})
    counts = store.counts()
    parts = [
        _metric(f"findwell_{name}", what, tests.values(), value)
        for name, (what, value) in ALERT_METRICS.items()
    ]
    totals = {
        "calls": ("gauge", "Calls in the store.", counts.calls),
        "spans_total": ("counter", "Spans that arrived.", counts.spans),
        "repeated_total": ("counter", "Calls that arrived again.", counts.repeated),
        "bytes": ("gauge", "Bytes of the store.", counts.bytes),
    }
    for name, (kind, what, number) in totals.items():
        parts.append(
            f"{_head(f'findwell_store_{name}', kind, what)}findwell_store_{name} {number}\n"
        )
    reasons = {
        "malformed": ("Spans that could not be read", counts.malformed),
        "dropped": ("Calls that a rule left out", counts.dropped),
    }
    for name, (what, numbers) in reasons.items():
        total = f"findwell_store_{name}_total"
        parts.append(_head(total, "counter", f"{what}, by reason."))
        parts += [f"{total}{_labels(reason=why)} {number}\n" for why, number in numbers.items()]
    return "".join(parts)


# what is written of the last state of each alert
ALERT_METRICS: dict[str, tuple[str, Callable[[Mapping[str, Any]], float | None]]] = {
    "alarm_open": ("1 while an alarm is open.", lambda last: float(last["outcome"] in RAISED)),
    "alarm_undecided": (
        "1 while there are too few calls.",
        lambda last: float(last["outcome"] == UNDECIDED),
    ),
    "signal": ("The signal, since watching began or the change.", lambda last: last["now"]),
    "signal_baseline": ("What the signal is compared with.", lambda last: last["before"]),
    "alarm_log_evidence": (
        "Logarithm of the evidence for a change.",
        lambda last: last["log_evidence"],
    ),
    "alarm_log_needed": (
        "Logarithm of the evidence of an alarm.",
        lambda last: last["log_needed"],
    ),
    "checked_timestamp_seconds": (
        "When it was last checked.",
        lambda last: parse_moment(last["checked"]).timestamp(),
    ),
}


def _head(name: str, kind: str, what: str) -> str:
    return f"# HELP {name} {what}\n# TYPE {name} {kind}\n"


def _metric(
    name: str,
    what: str,
    tests: Iterable[Mapping[str, Any]],
    value: Callable[[Mapping[str, Any]], float | None],
) -> str:
    lines = [_head(name, "gauge", what)]
    for last in (each["last"] for each in tests):
        number = value(last)
        if number is not None:
            # all that distinguishes series: a file with the same labels twice is refused as a whole
            named = ("alert", "signal", "slice", "baseline", "kind")
            labels = _labels(**{label: last.get(label, "") for label in named})
            lines.append(f"{name}{labels} {number!r}\n")
    return "".join(lines)


def _labels(**named: str) -> str:
    """Return labels with their values quoted: attributes of traces may hold anything.

    >>> _labels(slice='tenant="a"')
    '{slice="tenant=\\\\"a\\\\""}'
    """
    inside = ",".join(
        '{}="{}"'.format(name, text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, text in named.items()
    )
    return f"{{{inside}}}"
