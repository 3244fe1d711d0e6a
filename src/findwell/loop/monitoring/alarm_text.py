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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
    if verdict.mean is not None and verdict.low is not None and verdict.high is not None:
        found += f": mean {verdict.mean:.4g} ({verdict.low:.4g} … {verdict.high:.4g} at all times)"
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
    last = [each["last"] for each in tests.values()]
    counts = store.counts()
    parts = [
        _metric("findwell_alarm_open", "gauge", "1 while an alarm is open.", last, _is_open),
        _metric("findwell_alarm_undecided", "gauge", "1 while there are too few calls.", last,
                lambda each: float(each["outcome"] == UNDECIDED)),
        _metric("findwell_signal", "gauge", "The signal, since watching began or the change.", last,
                lambda each: each["now"]),
        _metric("findwell_signal_baseline", "gauge", "What the signal is compared with.", last,
                lambda each: each["before"]),
        _metric("findwell_alarm_log_evidence", "gauge", "Logarithm of the evidence for a change.",
                last, lambda each: each["log_evidence"]),
        _metric("findwell_alarm_log_needed", "gauge", "Logarithm of the evidence of an alarm.",
        last,
                lambda each: each["log_needed"]),
        _metric("findwell_checked_timestamp_seconds", "gauge", "When it was last checked.", last,
                lambda each: _seconds(each["checked"])),
        _plain("findwell_store_calls", "gauge", "Calls in the store.", counts.calls),
        _plain("findwell_store_spans_total", "counter", "Spans that arrived.", counts.spans),
        _plain("findwell_store_repeated_total", "counter", "Calls that arrived again.",
               counts.repeated),
        _plain("findwell_store_bytes", "gauge", "Bytes of the store.", counts.bytes),
        *(
            _by_reason(f"findwell_store_{name}_total", f"{what}, by reason.", numbers)
            for name, what, numbers in (
                ("malformed", "Spans that could not be read", counts.malformed),
                ("dropped", "Calls that a rule left out", counts.dropped),
            )
        ),
    ]  # fmt: skip
    return "".join(parts)


def _is_open(each: Mapping[str, Any]) -> float:
    return float(each["outcome"] in RAISED)


def _seconds(text: str) -> float:
    from findwell.loop.monitoring.baselines import parse_moment  # noqa: PLC0415

    return parse_moment(text).timestamp()


def _head(name: str, kind: str, what: str) -> str:
    return f"# HELP {name} {what}\n# TYPE {name} {kind}\n"


def _plain(name: str, kind: str, what: str, value: int) -> str:
    """Write a count, with all its digits.

    >>> print(_plain("findwell_store_calls", "gauge", "Calls.", 12345678).splitlines()[-1])
    findwell_store_calls 12345678
    """
    return f"{_head(name, kind, what)}{name} {value}\n"


def _by_reason(name: str, what: str, numbers: Mapping[str, int]) -> str:
    rows = (f"{name}{_labels(reason=reason)} {number}\n" for reason, number in numbers.items())
    return _head(name, "counter", what) + "".join(rows)


def _metric(
    name: str,
    kind: str,
    what: str,
    rows: Iterable[Mapping[str, Any]],
    value: Any,  # noqa: ANN401
) -> str:
    lines = []
    for each in rows:
        number = value(each)
        if number is not None:
            # all that tells series apart: a file with the same labels twice is refused as a whole
            named = ("alert", "signal", "slice", "baseline", "kind")
            labels = _labels(**{label: each.get(label, "") for label in named})
            lines.append(f"{name}{labels} {number!r}\n")
    return _head(name, kind, what) + "".join(lines)


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
