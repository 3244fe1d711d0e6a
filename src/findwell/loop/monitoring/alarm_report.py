"""What checks found: a verdict for each alert and slice, and the alarms that a store remembers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from findwell.core.estimate import Estimate
from findwell.core.requirement import FAIL, OPEN, PASS
from findwell.evaluation.comparison.gates import EXIT, GateReport
from findwell.evaluation.comparison.requirements import RequirementVerdict
from findwell.loop.monitoring.signals import SIGNALS
from findwell.loop.monitoring.times import parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from findwell.loop.monitoring.store import TraceStore

STATE = "alarms"  # its name in the catalogue of a store
QUIET, ALARM, STILL_OPEN, RESOLVED, UNDECIDED = "quiet", "alarm", "open", "resolved", "undecided"
RAISED = (ALARM, STILL_OPEN)
AS_GATE = {QUIET: PASS, RESOLVED: PASS, ALARM: FAIL, STILL_OPEN: FAIL, UNDECIDED: OPEN}


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A call that is worth looking at."""

    trace: str
    span: str
    time: datetime
    value: float
    question: str | None = None


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
    since: datetime | None = None  # of an alarm: when the change most likely began
    opened: datetime | None = None  # when the alarm was raised
    resolved: datetime | None = None
    calls: tuple[WatchedCall, ...] = ()
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """How large the change is, in the unit of the signal."""
        return None if self.now is None or self.before is None else self.now - self.before

    def as_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Return the verdict for JSON; without `texts` no question is in it."""
        limits = {"mean": self.mean.value, "low": self.mean.low, "high": self.mean.high}
        found: dict[str, Any] = {}
        for name, value in asdict(self).items():
            found |= limits if name == "mean" else {name: value}
        found["difference"] = self.difference
        if not isfinite(self.log_evidence):  # which JSON cannot write
            found["log_evidence"] = None
        for name in ("since", "opened", "resolved"):
            found[name] = None if found[name] is None else found[name].isoformat()
        for each in found["calls"]:
            each["time"] = each["time"].isoformat()
            if not texts:
                del each["question"]
        return found


@dataclass(frozen=True, slots=True)
class CheckReport:
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
        return tuple(each for each in self.verdicts if each.outcome in RAISED)

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


@dataclass(frozen=True, slots=True)
class WatchedAlert:
    """An alert for one slice, as it was found at the last check."""

    alert: str
    signal: str
    slice: str
    outcome: str
    now: float | None
    before: float | None
    n: int
    checked: datetime

    @property
    def unit(self) -> str:
        """The unit of its signal."""
        return SIGNALS[self.signal].unit if self.signal in SIGNALS else ""

    @property
    def decided(self) -> bool:
        """Whether there were enough calls to tell."""
        return self.outcome != UNDECIDED


def known_alarms(store: TraceStore) -> tuple[list[KnownAlarm], list[WatchedAlert]]:
    """Return the alarms of a store, open ones first, then the latest; and the alerts watched."""
    tests = (store.state(STATE) or {}).get("tests", {})
    alarms = [alarm for test in tests.values() for alarm in _alarms(test)]
    alarms.sort(key=lambda each: (each.resolved is None, each.opened), reverse=True)
    return alarms, [_watched(test["last"]) for test in tests.values()]


def _watched(last: Mapping[str, Any]) -> WatchedAlert:
    names = ("alert", "signal", "slice", "outcome", "now", "before", "n")
    return WatchedAlert(
        **{name: last[name] for name in names}, checked=parse_moment(last["checked"])
    )


def _alarms(test: Mapping[str, Any]) -> Iterator[KnownAlarm]:
    last = test["last"]
    about = {name: last[name] for name in ("alert", "signal", "slice")}
    if (opened := test.get("open")) is not None:
        calls = tuple(
            WatchedCall(trace, span, parse_moment(time), value)
            for trace, span, time, value in opened["calls"]
        )
        yield KnownAlarm(
            **about,
            since=parse_moment(opened["since"]),
            opened=parse_moment(opened["opened"]),
            now=last["now"],
            before=last["before"],
            n=last["n"],
            calls=calls,
        )
    for past in test.get("past", []):
        since, raised, resolved = (
            parse_moment(past[name]) for name in ("since", "opened", "resolved")
        )
        yield KnownAlarm(**about, since=since, opened=raised, resolved=resolved)
