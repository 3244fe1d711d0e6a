"""The calls that alerts watch: by slice, with the baseline, and how they are bet on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.io.read.traces.schema import RETRIEVER
from findwell.loop.monitoring.baselines import Baseline, parse_moment
from findwell.loop.monitoring.bounded import BoundedSignal, against_calls, against_result, at_line
from findwell.loop.monitoring.stored_signals import stored_signals

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.loop.monitoring.alerts import Alert
    from findwell.loop.monitoring.periods import CutCalls
    from findwell.loop.monitoring.store import TraceStore

LOOKING_BACK = ("unseen",)  # signals that are higher, the fewer calls before are known
DELETED = "calls of the baseline were deleted, without which old documents look new: --rebaseline"
MOST_SLICES = 50  # values of one column that are watched; those with most calls


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """How calls are put together: see `findwell.loop.monitoring.periods`."""

    length: int | None = None  # microseconds; None: as the baseline shows, or an hour
    season: str = ""
    until: int | None = None  # periods that end later may still get calls


@dataclass(frozen=True, slots=True, eq=False)
class WatchedSlice:
    """One alert for one slice: the calls, and how they are bet on."""

    key: str
    alert: Alert
    slice: str
    baseline: str  # as it was written; empty: none
    kind: str  # whose lists are looked at
    rows: pl.DataFrame  # time, trace, span, value; in the order of time
    bets: BoundedSignal | None
    before: float | None
    reason: str
    state: dict[str, Any]
    until: int | None = None  # periods that end later are not looked at yet

    def cut(self, rows: pl.DataFrame | None = None) -> CutCalls:
        """Return calls, by default all that are watched, cut into periods that are over."""
        assert self.bets is not None  # noqa: S101 - the caller has looked
        rows = self.watched if rows is None else rows
        values = rows["value"].to_numpy().astype(np.float64)
        return self.bets.cut(_microseconds(rows), values, self.until)

    @property
    def watched(self) -> pl.DataFrame:
        """The rows since watching began, or was begun anew, that have a value."""
        rows = self.rows.drop_nulls("value")
        since = self.state.get("since")
        return rows if since is None else rows.filter(pl.col("time") >= parse_moment(since))

    @property
    def earlier(self) -> int:
        """How many periods a check has seen that are not among those watched any longer.

        Their days were deleted, or a later beginning was asked for. What was bet on them is lost:
        otherwise every day that goes would be a new chance to be wrong.
        """
        seen, cut = self._seen, self.cut()
        if seen is None:
            return 0
        before = int(seen["n"])
        if len(cut) and _end(cut) >= seen["until"]:
            before = int((cut.times[cut.ends - 1] <= seen["until"]).sum())
        return int(max(seen["earlier"], seen["n"] - before))

    @property
    def _seen(self) -> dict[str, Any] | None:
        """What was seen in periods of this length; of another one nothing is known."""
        seen: dict[str, Any] | None = self.state.get("seen")
        same = seen is not None and self.bets is not None and seen["length"] == self.bets.length
        return seen if same else None

    def note_seen(self) -> None:
        """Remember how many periods there were; a look at the past says nothing new."""
        if self.bets is None:
            return
        cut, seen = self.cut(), self._seen
        if not len(cut) or (seen and _end(cut) < seen["until"]):
            return
        known = {"earlier": self.earlier, "until": _end(cut), "length": self.bets.length}
        self.state["seen"] = known | {"n": known["earlier"] + len(cut)}


def _end(cut: CutCalls) -> int:
    """Return when the last call of the last period began."""
    return int(cut.times[cut.ends[-1] - 1])


def _microseconds(rows: pl.DataFrame) -> Ints:
    return rows["time"].dt.timestamp("us").to_numpy()


def watched_slices(  # noqa: PLR0917
    store: TraceStore,
    alerts: list[Alert],
    baseline: Baseline | None,
    span: tuple[datetime | None, datetime],
    saved: dict[str, Any],
    alpha: float,
    kind: str,
    given: dict[str, Any],
    choice: PeriodChoice,
) -> tuple[list[WatchedSlice], list[str]]:
    """Return a test for each alert and slice, and what a user should know about them."""
    window = None if baseline is None else baseline.window
    if baseline is not None and baseline.number is not None:
        alerts = [_of_number(each) for each in alerts]
    text = "" if baseline is None else baseline.text
    frames = _frames(store, alerts, span, window, kind, given)
    parts, notes = [], []
    for alert in alerts:
        for column in alert.by or ("",):
            opened = _opened(saved, alert, column, text, kind)
            chosen, left_out = _slices(*frames[alert.signal, column], column, opened)
            parts += [(alert, column, value) for value in chosen]
            if left_out:
                notes.append(
                    f"{alert.text}: {left_out} further values of {column} with fewer calls are not "
                    f"watched, only {MOST_SLICES}"
                )
    compared = any(reference.height for _, reference in frames.values())
    if window is not None and not compared and any(each.needs_baseline for each in alerts):
        counts = store.counts()
        held = "it is empty" if counts.first is None else f"it has {counts.first:%Y-%m-%d %H:%M}"
        held += "" if counts.last is None else f" to {counts.last:%Y-%m-%d %H:%M}"
        notes.append(
            f"the store has no call in the baseline, {window[0]:%Y-%m-%d %H:%M} to "
            f"{window[1]:%Y-%m-%d %H:%M} UTC; {held}"
        )
    error = alpha / 2 / max(len(parts), 1)
    found = []
    for alert, column, value in parts:
        name = "" if value is None else f"{column}={value}"
        key = _key(alert, name, text, kind)
        state = saved.get("tests", {}).get(key, {})
        watched, reference = frames[alert.signal, column]
        rows = _of_slice(watched, alert.signal, column, value)
        known = _of_slice(reference, alert.signal, column, value).drop_nulls("value")
        bets, before, reason = _bets(alert, baseline, known, error, state, choice)
        found.append(
            WatchedSlice(
                key, alert, name, text, kind, rows, bets, before, reason, state, choice.until
            )
        )
    return found, notes


def _of_number(alert: Alert) -> Alert:
    """Return an alert that compares with a number: nothing bounds the mean of some signals."""
    bounded = isfinite(alert.about.bounds[1])
    return alert if bounded or alert.quantile is not None else replace(alert, quantile=0.5)


def _frames(  # noqa: PLR0917
    store: TraceStore,
    alerts: list[Alert],
    span: tuple[datetime | None, datetime],
    window: tuple[datetime, datetime] | None,
    kind: str,
    given: dict[str, Any],
) -> dict[tuple[str, str], tuple[pl.DataFrame, pl.DataFrame]]:
    """Return the calls that are watched, and those of the baseline, by signal and column to slice.

    All are read at once, but for signals that compare a call with earlier ones of its slice: the
    columns that other alerts are sliced by must make no difference to them.
    """
    wanted = [(each.about, column) for each in alerts for column in each.by or ("",)]
    together = tuple(dict.fromkeys(each for about, each in wanted if each and not about.history))
    groups: dict[tuple[bool, tuple[str, ...]], dict[tuple[str, str], str]] = {}
    for about, column in wanted:
        alone = (column,) if column else ()
        group = about.history, alone if about.history else together
        groups.setdefault(group, {})[about.name, column] = about.kind or kind
    found = {}
    for (_, columns), members in groups.items():
        names = list(dict.fromkeys(name for name, _ in members))
        options: dict[str, Any] = {"by": columns, "kind": kind, **given}
        watched = stored_signals(store, names, since=span[0], until=span[1], **options)
        reference = watched.clear()
        if window is not None:
            reference = stored_signals(store, names, since=window[0], until=window[1], **options)
        for member, of in members.items():
            rows, known = (each.filter(pl.col("kind") == of) for each in (watched, reference))
            found[member] = rows, known
    return found


def _key(alert: Alert, name: str, baseline: str, kind: str) -> str:
    """Return what a state is kept under; the lists of rerankers are watched by themselves."""
    key = f"{alert.text} | {name} | {baseline}"
    return key if kind == RETRIEVER else f"{kind}: {key}"


def _opened(saved: dict[str, Any], alert: Alert, column: str, baseline: str, kind: str) -> set[str]:
    """Return the values of a column for which an alarm is open."""
    names = (each["last"]["slice"] for each in saved.get("tests", {}).values() if "open" in each)
    return {
        name.removeprefix(f"{column}=")
        for name in names
        if name.startswith(f"{column}=")
        and "open" in saved["tests"].get(_key(alert, name, baseline, kind), {})
    }


def _slices(
    watched: pl.DataFrame, reference: pl.DataFrame, column: str, opened: set[str]
) -> tuple[list[str | None], int]:
    """Return the values of a column that are watched, None for all, and how many are not.

    An alarm that is open stays among them, however few calls there are of late.
    """
    if not column:
        return [None], 0
    every = pl.concat([watched.select(column), reference.select(column)])
    counts = every.group_by(column).len("\0n").sort(["\0n", column], descending=[True, False])
    names = counts[column].to_list()
    chosen = opened.union(names[:MOST_SLICES])
    return sorted(chosen) or [None], len(set(names) - chosen)


def _of_slice(frame: pl.DataFrame, signal: str, column: str, value: str | None) -> pl.DataFrame:
    rows = frame if value is None else frame.filter(pl.col(column) == value)
    return rows.select("time", "trace", "span", value=pl.col(signal).cast(pl.Float64))


def _bets(  # noqa: PLR0917
    alert: Alert,
    baseline: Baseline | None,
    calls: pl.DataFrame,
    error: float,
    state: dict[str, Any],
    choice: PeriodChoice,
) -> tuple[BoundedSignal | None, float | None, str]:
    """Return how an alert is bet on, the value that it is compared with, or why neither is."""
    if alert.line is not None:
        return at_line(alert, alert.line, choice.length), alert.line, ""
    if baseline is not None and baseline.number is not None:
        low, high = alert.about.bounds
        if not low <= baseline.number <= high:
            raise OptionError(
                f"{alert.signal} lies between {low:g} and {high:g}, and the baseline is "
                f"{baseline.number:g}",
                fix="write a share, such as 2%" if high == 1 else "choose another number",
            )
        return at_line(alert, baseline.number, choice.length), baseline.number, ""
    if baseline is not None and baseline.result is not None:
        known = baseline.values(alert.about)
        bets = against_result(alert, known, error, choice.length)
        before = summary_of(alert, known)
        return (None, before, bets) if isinstance(bets, str) else (bets, before, "")
    values = calls["value"].to_numpy().astype(np.float64)
    kept = state.get("baseline")
    # its calls were deleted since, or maybe those before it, which some signals look back at
    looks_back = alert.signal in LOOKING_BACK
    if kept is not None and (kept["n"] > len(values) or (looks_back and kept["n"] == len(values))):
        gone = looks_back and kept["n"] > len(values) and "open" not in state
        saved = None if gone else BoundedSignal.from_dict(kept["bets"])
        return saved, kept["value"], DELETED if gone else ""
    times = _microseconds(calls)
    bets = against_calls(alert, times, values, choice.length, choice.season)
    before = summary_of(alert, values)
    if isinstance(bets, str):
        return None, before, bets
    state["baseline"] = {"n": len(values), "value": before, "bets": bets.as_dict()}
    return bets, before, ""


def summary_of(alert: Alert, values: Floats) -> float | None:
    """Return the signal in its own unit: the mean, as charts show it, or a quantile."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return float(known.mean() if alert.quantile is None else np.quantile(known, alert.quantile))
