"""Signals of production as text: all of a period, or one by one over time."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from findwell.core.frames import pl
from findwell.loop.monitoring.alarm_report import amount
from findwell.loop.monitoring.signals import SIGNALS
from findwell.show.document import Document, Line
from findwell.show.grid import Grid
from findwell.show.tables import render_grids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark

SUBTITLE_LETTERS = 70


def amounts(low: float | None, high: float | None, unit: str) -> str:
    """Write an interval in the unit of its signal; one side may be unknown.

    >>> amounts(0.012, 0.034, "share"), amounts(None, None, "ms")
    ('1.2% … 3.4%', '–')
    """
    sides = ["" if each is None else amount(each, unit) for each in (low, high)]
    return " … ".join(sides).strip() if any(sides) else "–"


FIGURES: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "value": lambda row: amount(row["value"], SIGNALS[row["signal"]].unit),
    "interval": lambda row: amounts(row["low"], row["high"], SIGNALS[row["signal"]].unit),
    "calls": lambda row: f"{row['n']:,}",
}


def document(
    table: pl.DataFrame,
    *,
    every: str | None = None,
    by: Sequence[str] = (),
    marks: Sequence[Mark] = (),
    judges: Sequence[str] = (),
) -> Document:
    """Return the rows of `Monitor.buckets`: a table, or one for each signal over time.

    `judges` says who judged and what that is worth, where a signal is judged.
    """
    over_time = every is not None and table.height > 0

    def data() -> dict[str, Any]:
        names = table["signal"].unique(maintain_order=True)
        return {
            "every": every,
            "by": list(by),
            "buckets": _with_texts(table).to_dicts(),
            "signals": [signal_facts(SIGNALS[name]) for name in names],
            "marks": [{"name": mark.name, "time": mark.time.isoformat()} for mark in marks],
            **({"judges": list(judges)} if judges else {}),
        }

    said = [Line(each, in_papers=True) for each in judges]
    return Document(
        [*(_over_time(table, by, marks) if over_time else [_whole(table, by)]), *said],
        data=data,
        rows=lambda: _with_texts(table, judges),
    )


def _with_texts(table: pl.DataFrame, judges: Sequence[str] = ()) -> pl.DataFrame:
    """Write times as texts, in UTC, and next to what a judge said what that is worth."""
    judged = [name for name, each in SIGNALS.items() if each.needs == "judge"]
    worth = pl.when(table["signal"].is_in(judged)).then(pl.lit("; ".join(judges)))
    return table.with_columns(
        table["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"), *([worth.alias("judge")] if judges else [])
    )


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


def known_signals() -> list[dict[str, Any]]:
    """Return what is known about all signals."""
    return [signal_facts(each) for each in SIGNALS.values()]


def render_signals(how: str) -> str:
    """Return the list of signals as text, or as a table in Markdown."""
    facts = known_signals()
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
        **FIGURES,
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
        columns = {"time (UTC)": lambda row: time_text(row["time"]), **_slices(by), **FIGURES}
        worse = "" if signal.worse == "either" else f", {signal.worse} is worse"
        title = f"{name} · {signal.unit}{worse}"
        listed = rows.to_dicts()
        inside = [mark for mark in marks if mark.time >= listed[0]["time"]]
        note = "; ".join(f"{time_text(mark.time)} {mark.name}" for mark in inside)
        yield Grid.of(title, columns, listed, left=1 + len(by), note=note and f"marks: {note}")


def change(value: float | None, unit: str) -> str:
    """Write a difference; that of two shares in points.

    >>> change(-0.012, "share"), change(812.0, "ms"), change(None, "ms")
    ('−1.2 points', '+812 ms', '–')
    """
    if value is None:
        return "–"
    sign = "−" if value < 0 else "+" if value else ""
    rounded = float(f"{abs(value):.3g}")  # of a difference no more digits matter
    size = amount(rounded, unit)
    return sign + (f"{size.removesuffix('%')} points" if unit == "share" else size)


def changes(low: float | None, high: float | None, unit: str) -> str:
    """Write the interval of a difference; empty if it is not known.

    >>> changes(-0.012, 0.034, "share"), changes(None, None, "ms")
    ('−1.2 to +3.4 points', '')
    """
    if low is None or high is None:
        return ""
    first, last = (change(each, unit) for each in (low, high))
    return f"{first.partition(' ')[0]} to {last}"


def subtitle(signal: Signal) -> str:
    """Say in a few words what a signal is: the first part of its definition.

    >>> subtitle(SIGNALS["empty"])
    'Share of calls that returned nothing'
    """
    words = signal.what.partition(";")[0]
    for end in (":", ","):
        words = words if len(words) <= SUBTITLE_LETTERS else words.partition(end)[0]
    if words.count("(") > words.count(")"):
        words = words.rpartition(" (")[0]
    return words[:1].upper() + words[1:]


def time_text(time: datetime) -> str:
    """Write a point in time, which is in UTC."""
    return f"{time:%Y-%m-%d %H:%M}"
