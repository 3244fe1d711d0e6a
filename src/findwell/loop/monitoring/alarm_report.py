"""What checks found: a verdict for each alert and slice, in words too; the alarms of a store."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import exp, isfinite, log
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from findwell.core import display
from findwell.core.estimate import Estimate
from findwell.core.requirement import FAIL, OPEN, PASS
from findwell.core.spelling import counted
from findwell.evaluation.comparison.gates import EXIT, GateReport
from findwell.evaluation.comparison.requirements import RequirementVerdict
from findwell.loop.monitoring.times import parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from findwell.core.verdict import Verdict
    from findwell.loop.monitoring.store import TraceStore

STATE = "alarms"  # its name in the catalogue of a store
QUIET, ALARM, STILL_OPEN, RESOLVED, UNDECIDED = "quiet", "alarm", "open", "resolved", "undecided"
RAISED_STATES = (ALARM, STILL_OPEN)
AS_GATE = {QUIET: PASS, RESOLVED: PASS, ALARM: FAIL, STILL_OPEN: FAIL, UNDECIDED: OPEN}


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A call that is worth looking at."""

    trace: str
    span: str
    time: datetime
    value: float
    question: str | None = None

    def as_saved(self) -> list[object]:
        """Return it for the state of a store, which holds no questions."""
        return [self.trace, self.span, self.time.isoformat(), self.value]

    @classmethod
    def from_saved(cls, calls: Iterable[Any]) -> tuple[WatchedCall, ...]:
        """Return calls that were saved."""
        return tuple(
            cls(trace, span, parse_moment(time), value) for trace, span, time, value in calls
        )


@dataclass(frozen=True, slots=True)
class AlarmVerdict:
    """Whether an alert is raised for one slice, by what, and since when."""

    alert: str
    signal: str
    slice: str  # such as tenant=acme; empty: all calls
    outcome: str
    unit: str
    before: float | None  # the signal in the baseline, or the line of the alert
    now: float | None  # the signal since the change, or since watching began
    n: int  # values that this is of
    period: str  # how long a period is, such as 1h: its calls are one observation
    periods: int  # that are over, of these values
    watched: str  # what was bet on, between 0 and 1
    mean: Estimate  # of that, with limits that hold at all times
    line: float | None  # that it is compared with
    log_evidence: float
    log_needed: float
    verdict: Verdict  # about the change: clear while an alarm is open, else unclear
    since: datetime | None = None  # of an alarm: when the change most likely began
    opened: datetime | None = None  # when the alarm was raised
    resolved: datetime | None = None
    calls: tuple[WatchedCall, ...] = ()
    reason: str = ""
    judge: str = ""  # who judged it, and what that is worth

    @property
    def difference(self) -> float | None:
        """How large the change is, in the unit of the signal."""
        return self.verdict.difference.value

    def as_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Return the verdict for JSON; without `texts` no question is in it."""
        limits = {"mean": self.mean.value, "low": self.mean.low, "high": self.mean.high}
        found = asdict(self) | limits
        found |= {"verdict": self.verdict.word, "p": self.verdict.p, "difference": self.difference}
        if not isfinite(self.log_evidence):  # which JSON cannot write
            found["log_evidence"] = None
        for name in ("since", "opened", "resolved"):
            found[name] = None if found[name] is None else found[name].isoformat()
        for each in found["calls"]:
            each["time"] = each["time"].isoformat()
            if not texts:
                del each["question"]
        return found


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(display.Shown):
    """The verdicts of one check."""

    verdicts: tuple[AlarmVerdict, ...]
    checked: datetime  # calls up to here were looked at
    since: datetime | None  # the calls that are watched begin here
    baseline: str
    window: tuple[datetime, datetime] | None
    alpha: float
    run_length: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def raised(self) -> tuple[AlarmVerdict, ...]:
        """The alarms that this check raised, and those that are open since an earlier one."""
        return tuple(each for each in self.verdicts if each.outcome in RAISED_STATES)

    @property
    def news(self) -> tuple[AlarmVerdict, ...]:
        """What has changed since the last check: alarms that are new, and those resolved."""
        return tuple(each for each in self.verdicts if each.outcome in (ALARM, RESOLVED))

    @property
    def _decided(self) -> set[str]:
        """The alerts that are decided, for one slice at least."""
        return {each.alert for each in self.verdicts if each.outcome != UNDECIDED}

    @property
    def exit_code(self) -> int:
        """Return 0 where all is quiet, 1 for an alarm, 3 where an alert cannot be decided."""
        if self.raised:
            return EXIT[FAIL]
        decided = self._decided
        every = all(each.alert in decided for each in self.verdicts)
        return EXIT[PASS] if every else EXIT[OPEN]

    @property
    def outcome(self) -> str:
        """Say alarm, undecided or quiet."""
        return {0: QUIET, 1: ALARM, 3: UNDECIDED}[self.exit_code]

    def as_gate(self) -> GateReport:
        """Return the verdicts as those of gates, for JUnit and the summary of a pull request.

        A slice with too few calls is not an error there, matching the exit code, if other
        slices of the alert are decided.
        """
        decided = self._decided
        return GateReport(
            tuple(_as_requirement(each, some=each.alert in decided) for each in self.verdicts)
        )

    def as_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Return the report as the JSON output prints it."""
        window = None if self.window is None else [each.isoformat() for each in self.window]
        return {
            "check": self.outcome,
            "alerts": [each.as_dict(texts=texts) for each in self.verdicts],
            "checked": self.checked.isoformat(),
            "since": None if self.since is None else self.since.isoformat(),
            "baseline": self.baseline,
            "window": window,
            "alpha": self.alpha,
            "run_length": self.run_length,
            "notes": list(self.notes),
        }

    def without_texts(self) -> CheckReport:
        """Return the same without questions."""
        bare = (
            replace(each, calls=tuple(replace(call, question=None) for call in each.calls))
            for each in self.verdicts
        )
        return replace(self, verdicts=tuple(bare))


def _as_requirement(verdict: AlarmVerdict, *, some: bool) -> RequirementVerdict:
    small = some and verdict.outcome == UNDECIDED
    since = "" if verdict.since is None else f"since {verdict.since:%Y-%m-%d %H:%M} UTC"
    reason = "; ".join(filter(None, ("undecided" if small else "", since, verdict.reason)))
    return RequirementVerdict(
        requirement=verdict.alert,
        run=verdict.slice or "all calls",
        measure=verdict.signal,
        outcome=PASS if small else AS_GATE[verdict.outcome],
        estimate=Estimate(verdict.difference, None, None, 0.95, "", verdict.n, reason=reason),
        sides=(verdict.before, verdict.now),
        line=0.0 if verdict.line is None else verdict.line,
        decided_by="evidence",
        judge=verdict.judge,
        verdict=verdict.verdict,
    )


@dataclass(frozen=True, slots=True)
class KnownAlarm:
    """An alarm as the catalogue of a store remembers it."""

    alert: str
    signal: str
    slice: str  # such as tenant=acme; empty: all calls
    since: datetime  # when the change most likely began
    opened: datetime  # when the alarm was raised
    resolved: datetime | None = None  # None: it is open
    now: float | None = None  # of one that is open, as of the last check
    before: float | None = None
    n: int = 0
    calls: tuple[WatchedCall, ...] = ()  # to look at
    history: tuple[dict[str, Any], ...] = ()  # the signal over time: time, value, low, high, n
    every: str = ""  # how long a point of it is
    judge: tuple[str, ...] = ()  # who judged it, and what that is worth


def known_alarms(store: TraceStore) -> tuple[list[KnownAlarm], list[dict[str, Any]]]:
    """Return the alarms of a store, open ones first, then the latest; and all alerts.

    An alert is what the last check found about it: alert, signal, slice, outcome, before, now, n,
    and its history, if that cannot be had without a judge.
    """
    tests = (store.state(STATE) or {}).get("tests", {})
    alarms = [alarm for test in tests.values() for alarm in _alarms(test)]
    alarms.sort(key=lambda each: (each.resolved is None, each.opened), reverse=True)
    return alarms, [test["last"] | _history(test) for test in tests.values()]


def _alarms(test: Mapping[str, Any]) -> Iterator[KnownAlarm]:
    last = test["last"]
    about = {name: last[name] for name in ("alert", "signal", "slice")}
    for each in [test["open"]] if test.get("open") else []:
        now = {name: last[name] for name in ("now", "before", "n")}
        calls = WatchedCall.from_saved(each["calls"])
        when = _moments(each, "since", "opened")
        yield KnownAlarm(**about, **when, **now, calls=calls, **_history(test))
    for each in test.get("past", []):
        yield KnownAlarm(**about, **_moments(each, "since", "opened", "resolved"))


def _history(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the signal over time, as the last check saved it."""
    saved = test.get("history", {"every": "", "rows": ()})
    names = ("value", "low", "high", "n")
    rows = (
        {"time": parse_moment(time), **dict(zip(names, rest, strict=True))}
        for time, *rest in saved["rows"]
    )
    return {"every": saved["every"], "history": tuple(rows), "judge": tuple(saved.get("judge", ()))}


def _moments(saved: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: parse_moment(saved[name]) for name in names}


SIGNS = {
    QUIET: "✓ quiet",
    ALARM: "✗ alarm",
    STILL_OPEN: "✗ open",
    RESOLVED: "✓ resolved",
    UNDECIDED: "? undecided",
}
LARGEST_SHOWN = 1_000_000  # evidence: beyond it, how much more there is says nothing


def amount(value: float | None, unit: str) -> str:
    """Write a value of a signal.

    >>> amount(0.0234, "share"), amount(812.4, "ms"), amount(0.61234, "score"), amount(None, "ms")
    ('2.34%', '812 ms', '0.612', '–')
    """
    if value is None:
        return "–"
    if unit == "share":
        text = f"{100 * value:.3g}%"
    elif unit == "ms":
        text = f"{value:.3g} ms" if abs(value) < 100 else f"{value:,.0f} ms"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−") if value < 0 else text


def moment(time: datetime) -> str:
    """Write a point in time."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def sentence(verdict: AlarmVerdict) -> str:
    """Say what was decided about an alert: since when, how large, by what."""
    where = f" ({verdict.slice})" if verdict.slice else ""
    head = f"{SIGNS[verdict.outcome]}: {verdict.alert}{where}"
    now, before = (amount(each, verdict.unit) for each in (verdict.now, verdict.before))
    calls = counted(verdict.n, "call", "calls")
    found = f"{verdict.signal} is {now} on {calls}"
    found += f", against {before}" if verdict.before is not None else ""
    found += f" ({verdict.verdict.word})" if verdict.verdict.is_clear else ""
    if verdict.since is not None:
        found += f", since {moment(verdict.since)}"
    if verdict.outcome == STILL_OPEN and verdict.opened is not None:
        found += f", raised {moment(verdict.opened)}"
    if verdict.outcome == RESOLVED and verdict.opened is not None:
        found = f"{verdict.signal} is back at {now} on {calls}; raised"
        found += f" {moment(verdict.opened)}"
    return f"{head}: {found}" + (f"; {verdict.reason}" if verdict.reason else "")


def bets_in_words(verdict: AlarmVerdict) -> str:
    """Say what was bet on, its mean with limits that hold at all times, and the line."""
    found = f"bet on {verdict.watched}"
    mean, low, high = verdict.mean.value, verdict.mean.low, verdict.mean.high
    if mean is not None and low is not None and high is not None:
        found += f": mean {mean:.3g} ({low:.2g} … {high:.2g} at all times)"
    if verdict.line is not None:
        found += f", compared with {verdict.line:.3g}"
    needed = evidence(verdict.log_needed)
    found += f"; {verdict.periods:,} periods of {verdict.period}"
    return f"{found}; evidence {evidence(verdict.log_evidence)} of {needed}"


def evidence(logarithm: float) -> str:
    """Write an e-value.

    >>> evidence(log(4.321)), evidence(log(1234.0)), evidence(2000.0), evidence(-50.0)
    ('4.3', '1,234', '> 1,000,000', '0.0')
    >>> evidence(log(40.0))
    '40'
    """
    if logarithm > log(LARGEST_SHOWN):
        return f"> {LARGEST_SHOWN:,}"
    value = exp(logarithm)
    whole = value >= 100 or abs(value - round(value)) < 1e-9 * value
    return f"{value:,.0f}" if whole else f"{value:.1f}"


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
    alerts = known_alarms(store)[1]
    counts = store.counts()
    metrics: list[tuple[str, str, str, list[tuple[str, Any]]]] = []
    for name, (what, value) in ALERT_METRICS.items():
        found = [(_labels(**{key: last.get(key, "") for key in LABELS}), value(last))
                 for last in alerts]  # fmt: skip
        metrics.append((name, "gauge", what, found))
    judged = dict.fromkeys((last["signal"], *last["judge"]) for last in alerts if last["judge"])
    found = [(_labels(signal=each[0], judge="; ".join(each[1:])), 1) for each in judged]
    metrics.append(("judge_info", "gauge", "Who judges a signal, and what that is worth.", found))
    for name, kind, what, total in (
        ("calls", "gauge", "Calls in the store.", counts.calls),
        ("spans_total", "counter", "Spans that arrived.", counts.spans),
        ("repeated_total", "counter", "Calls that arrived again.", counts.repeated),
        ("bytes", "gauge", "Bytes of the store.", counts.bytes),
    ):
        metrics.append((f"store_{name}", kind, what, [("", total)]))
    for name, what, numbers in (
        ("malformed", "Spans that could not be read, by reason.", counts.malformed),
        ("dropped", "Calls that a rule left out, by reason.", counts.dropped),
    ):
        found = [(_labels(reason=why), number) for why, number in numbers.items()]
        metrics.append((f"store_{name}_total", "counter", what, found))
    lines = []
    for name, kind, what, found in metrics:
        lines += [f"# HELP findwell_{name} {what}", f"# TYPE findwell_{name} {kind}"]
        lines += [f"findwell_{name}{labels} {x!r}" for labels, x in found if x is not None]
    return "".join(f"{line}\n" for line in lines)


# what is written of the last state of each alert
ALERT_METRICS: dict[str, tuple[str, Callable[[Mapping[str, Any]], float | None]]] = {
    "alarm_open": (
        "1 while an alarm is open.",
        lambda last: float(last["outcome"] in RAISED_STATES),
    ),
    "alarm_undecided": (
        "1 while there are too few calls.",
        lambda last: float(last["outcome"] == UNDECIDED),
    ),
    "signal": ("The signal, since watching began or the change.", itemgetter("now")),
    "signal_baseline": ("What the signal is compared with.", itemgetter("before")),
    "alarm_log_evidence": ("Logarithm of the evidence for a change.", itemgetter("log_evidence")),
    "alarm_log_needed": ("Logarithm of the evidence of an alarm.", itemgetter("log_needed")),
    "checked_timestamp_seconds": (
        "When it was last checked.",
        lambda last: parse_moment(last["checked"]).timestamp(),
    ),
}
# all that distinguishes series: a file with the same labels twice is refused as a whole
LABELS = ("alert", "signal", "slice", "baseline", "kind")


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
