"""Alarms that checks have raised: those that are open, those that are resolved, what is watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.loop.monitoring.alarm_report import UNDECIDED, WatchedCall
from findwell.loop.monitoring.baselines import parse_moment
from findwell.loop.monitoring.check import STATE
from findwell.loop.monitoring.signals import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from findwell.loop.monitoring.store import TraceStore


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
    return WatchedAlert(**{name: last[name] for name in names}, checked=_time(last["checked"]))


def _alarms(test: Mapping[str, Any]) -> Iterator[KnownAlarm]:
    last = test["last"]
    about = {name: last[name] for name in ("alert", "signal", "slice")}
    if (opened := test.get("open")) is not None:
        calls = tuple(
            WatchedCall(trace, span, _time(time), value)
            for trace, span, time, value in opened["calls"]
        )
        yield KnownAlarm(
            **about,
            since=_time(opened["since"]),
            opened=_time(opened["opened"]),
            now=last["now"],
            before=last["before"],
            n=last["n"],
            calls=calls,
        )
    for past in test.get("past", []):
        since, raised, resolved = (_time(past[name]) for name in ("since", "opened", "resolved"))
        yield KnownAlarm(**about, since=since, opened=raised, resolved=resolved)


def _time(text: str) -> datetime:
    return parse_moment(text)
