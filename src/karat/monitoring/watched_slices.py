"""The calls that alerts watch: by slice, with the baseline, and how they are bet on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.errors import OptionError
from karat.monitoring.baselines import Baseline, parse_moment
from karat.monitoring.bounded import Bound, BoundedSignal, against_values, at_line
from karat.monitoring.stored_signals import stored_signals
from karat.read.traces.schema import RETRIEVER

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.monitoring.alerts import Alert
    from karat.monitoring.store import TraceStore

LOOKING_BACK = ("unseen",)  # signals that are higher, the fewer calls before are known
DELETED = "calls of the baseline were deleted, without which old documents look new: --rebaseline"
MOST_SLICES = 50  # values of one column that are watched; those with most calls


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

    @property
    def watched(self) -> pl.DataFrame:
        """The rows since watching began, or was begun anew, that have a value."""
        rows = self.rows.drop_nulls("value")
        since = self.state.get("since")
        return rows if since is None else rows.filter(pl.col("time") >= parse_moment(since))

    @property
    def earlier(self) -> int:
        """How many values a check has seen that are not among those watched any longer.

        Their days were deleted, or a later beginning was asked for. What was bet on them is lost:
        otherwise every day that goes would be a new chance to be wrong.
        """
        seen = self.state.get("seen")
        return 0 if seen is None else max(seen["earlier"], seen["n"] - self._seen_before(seen))

    def note_seen(self) -> None:
        """Remember how many values there were; a look at the past says nothing new."""
        rows, seen = self.watched, self.state.get("seen")
        if not rows.height or (seen and rows["time"][-1] < parse_moment(seen["until"])):
            return
        earlier = self.earlier
        until = rows["time"][-1].isoformat()
        self.state["seen"] = {"earlier": earlier, "n": earlier + rows.height, "until": until}

    def _seen_before(self, seen: dict[str, Any]) -> int:
        rows, until = self.watched, parse_moment(seen["until"])
        if not rows.height or rows["time"][-1] < until:
            return int(seen["n"])
        return rows.filter(pl.col("time") <= until).height


def watched_slices(  # noqa: PLR0917
    store: TraceStore,
    alerts: list[Alert],
    baseline: Baseline | None,
    span: tuple[datetime | None, datetime],
    saved: dict[str, Any],
    alpha: float,
    kind: str,
    given: dict[str, Any],
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
        known = _of_slice(reference, alert.signal, column, value)["value"].to_numpy()
        bets, before, reason = _bets(alert, baseline, known.astype(np.float64), error, state)
        found.append(WatchedSlice(key, alert, name, text, kind, rows, bets, before, reason, state))
    return found, notes


def _of_number(alert: Alert) -> Alert:
    """Return an alert that compares with a number: nothing bounds the mean of some signals."""
    unbounded = alert.about.transform in ("ratio", "rank")
    return replace(alert, quantile=0.5) if unbounded and alert.quantile is None else alert


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


def _bets(
    alert: Alert,
    baseline: Baseline | None,
    known: Floats,
    error: float,
    state: dict[str, Any],
) -> tuple[BoundedSignal | None, float | None, str]:
    """Return how an alert is bet on, the value that it is compared with, or why neither is."""
    if alert.line is not None:
        return at_line(alert, alert.line), alert.line, ""
    if baseline is not None and baseline.number is not None:
        low, high = alert.about.bounds
        if not low <= baseline.number <= high:
            raise OptionError(
                f"{alert.signal} lies between {low:g} and {high:g}, and the baseline is "
                f"{baseline.number:g}",
                fix="write a share, such as 2%" if high == 1 else "choose another number",
            )
        return at_line(alert, baseline.number), baseline.number, ""
    if baseline is not None and baseline.result is not None:
        known = baseline.values(alert.about)
    known = known[~np.isnan(known)]
    kept = state.get("baseline")
    # its calls were deleted since, or maybe those before it, which some signals look back at
    looks_back = alert.signal in LOOKING_BACK
    if kept is not None and (kept["n"] > len(known) or (looks_back and kept["n"] == len(known))):
        gone = looks_back and kept["n"] > len(known) and "open" not in state
        return None if gone else _unpacked(kept["bets"]), kept["value"], DELETED if gone else ""
    bets = against_values(alert, known, error, seed=0)
    if isinstance(bets, str):
        return None, summary_of(alert, known), bets
    before = summary_of(alert, known)
    state["baseline"] = {"n": len(known), "value": before, "bets": _packed(bets)}
    return bets, before, ""


def summary_of(alert: Alert, values: Floats) -> float | None:
    """Return the signal in its own unit: the mean, as charts show it, or a quantile."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return float(known.mean() if alert.quantile is None else np.quantile(known, alert.quantile))


def _packed(bets: BoundedSignal) -> dict[str, Any]:
    return {
        "transform": bets.transform,
        "bounds": [[each.side, each.mean, each.beyond, each.upward] for each in bets.bounds],
        "scale": list(bets.scale),
        "median": bets.median,
        "reference": None if bets.reference is None else list(bets.reference),
        "seed": bets.seed,
    }


def _unpacked(saved: dict[str, Any]) -> BoundedSignal:
    low, high = saved["scale"]
    reference = saved["reference"]
    return BoundedSignal(
        saved["transform"],
        tuple(Bound(*each) for each in saved["bounds"]),
        (low, high),
        saved["median"],
        None if reference is None else tuple(reference),
        saved["seed"],
    )
