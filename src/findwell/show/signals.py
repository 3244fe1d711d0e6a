"""Signals of production as text: all of a period, or one by one over time."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from findwell.loop.monitoring.signals import SIGNALS
from findwell.show.grid import Grid
from findwell.show.tables import interval, number, render_grids, to_json, to_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    import polars as pl

    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark

ROWS = ("csv", "tsv", "jsonl")


def render(
    table: pl.DataFrame,
    how: str,
    *,
    every: str | None = None,
    by: Sequence[str] = (),
    marks: Sequence[Mark] = (),
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the rows of `Monitor.buckets` as tables, JSON, or one row per line."""
    if how == "json":
        return to_json(as_dict(table, every=every, by=by, marks=marks))
    if how in ROWS:
        return to_rows(_with_texts(table), how)
    over_time = every is not None and table.height > 0
    grids = list(_over_time(table, by, marks)) if over_time else [_whole(table, by)]
    return render_grids(grids, how, color=color, width=width)


def as_dict(
    table: pl.DataFrame, *, every: str | None, by: Sequence[str], marks: Sequence[Mark]
) -> dict[str, Any]:
    """Return what JSON has: the rows, what the signals mean, and the marks."""
    names = table["signal"].unique(maintain_order=True)
    return {
        "every": every,
        "by": list(by),
        "buckets": _with_texts(table).to_dicts(),
        "signals": [signal_facts(SIGNALS[name]) for name in names],
        "marks": [{"name": mark.name, "time": mark.time.isoformat()} for mark in marks],
    }


def _with_texts(table: pl.DataFrame) -> pl.DataFrame:
    """Write times as texts, in UTC."""
    return table.with_columns(table["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))


def signal_facts(signal: Signal) -> dict[str, Any]:
    """Return what is known about a signal."""
    low, high = (None if abs(each) == float("inf") else each for each in signal.bounds)
    return {
        "name": signal.name,
        "what": signal.what,
        "unit": signal.unit,
        "worse": signal.worse,
        "low": low,
        "high": high,
        "summary": signal.summary,
        "per_call": signal.per_call,
        "history": signal.history,
        "needs": signal.needs,
        "cheap": signal.cheap,
        "aliases": list(signal.aliases),
    }


def render_signals(how: str) -> str:
    """Return the list of signals as text, as a table in Markdown, or as JSON."""
    facts = [signal_facts(each) for each in SIGNALS.values()]
    if how == "json":
        return to_json(facts)
    if how == "markdown":
        columns: dict[str, Callable[[dict[str, Any]], str]] = {
            "signal": itemgetter("name"),
            "what it says": itemgetter("what"),
            "unit": itemgetter("unit"),
            "worse": itemgetter("worse"),
            "needs": itemgetter("needs"),
        }
        return render_grids([Grid.of("signals", columns, facts, left=5)], how)
    return "".join(_described(each) + "\n" for each in facts)


def _described(facts: dict[str, Any]) -> str:
    """Say in two lines what a signal is."""
    worse = "" if facts["worse"] == "either" else f", {facts['worse']} is worse"
    needs = f"; needs {facts['needs']}" if facts["needs"] else ""
    return f"{facts['name']} ({facts['unit']}{worse}{needs})\n  {facts['what']}"


def _whole(table: pl.DataFrame, by: Sequence[str]) -> Grid:
    """Return one row per signal and slice, over all of the period."""
    columns = {
        "signal": lambda row: row["signal"],
        **_slices(by),
        "value": lambda row: figure(row["value"]),
        "interval": lambda row: limits(row["low"], row["high"]),
        "calls": lambda row: f"{row['n']:,}",
        "unit": lambda row: SIGNALS[row["signal"]].unit,
    }
    order = {name: at for at, name in enumerate(SIGNALS)}
    rows = sorted(table.to_dicts(), key=lambda row: order[row["signal"]])
    title = f"signals since {time_text(min(table['time']))} (UTC)" if rows else "no calls"
    return Grid.of(title, columns, rows, left=1 + len(by))


def _slices(by: Sequence[str]) -> dict[str, Callable[[dict[str, Any]], str]]:
    return {name: itemgetter(name) for name in by}


def _over_time(table: pl.DataFrame, by: Sequence[str], marks: Sequence[Mark]) -> Iterable[Grid]:
    """Yield a table for each signal with one row per bucket and slice."""
    for name in (name for name in SIGNALS if name in table["signal"]):
        signal = SIGNALS[name]
        rows = table.filter(table["signal"] == name)
        columns = {
            "time (UTC)": lambda row: time_text(row["time"]),
            **_slices(by),
            "value": lambda row: figure(row["value"]),
            "interval": lambda row: limits(row["low"], row["high"]),
            "calls": lambda row: f"{row['n']:,}",
        }
        title = f"{name} · {signal.unit}" + (
            f", {signal.worse} is worse" if signal.worse != "either" else ""
        )
        listed = rows.to_dicts()
        inside = [mark for mark in marks if mark.time >= listed[0]["time"]]
        note = "; ".join(f"{time_text(mark.time)} {mark.name}" for mark in inside)
        yield Grid.of(title, columns, listed, left=1 + len(by), note=note and f"marks: {note}")


def figure(value: float | None) -> str:
    """Write a value; of large ones, such as milliseconds, few digits matter."""
    if value is None or abs(value) < 10:
        return number(value)
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def limits(low: float | None, high: float | None) -> str:
    """Write an interval, of which one side may be unknown."""
    if low is not None and high is not None and max(abs(low), abs(high)) < 10:
        return interval(low, high)
    sides = ["" if each is None else figure(each) for each in (low, high)]
    return " … ".join(sides).strip() if any(sides) else "–"


def time_text(time: datetime) -> str:
    """Write a point in time, which is in UTC."""
    return f"{time:%Y-%m-%d %H:%M}"
