"""The page about a store of traces: signals over time, alarms, marks, and the calls behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from findwell.core.frames import pl
from findwell.loop.monitoring.alarm_report import SIGNS, amount
from findwell.loop.monitoring.call_values import CallQuery
from findwell.loop.monitoring.overview import (
    LENGTHS,
    PERIODS,
    TELLING,
    VALUE,
    Look,
    Overview,
    overview,
    telling_calls,
)
from findwell.loop.monitoring.signals import SIGNALS
from findwell.loop.monitoring.times import parse_moment
from findwell.show.charts.time_series import TimeAxis, time_series
from findwell.show.excerpts import shorten
from findwell.show.html import MONITOR, document
from findwell.show.signals import figure, limits, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from findwell.loop.monitoring.alarm_report import KnownAlarm
    from findwell.loop.monitoring.monitor import Monitor
    from findwell.loop.monitoring.overview import CallsOfBucket
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark
    from findwell.loop.monitoring.time_buckets import AroundMark

IN_ALL, OF_BUCKET = 300, 6  # calls in a file, and of these of one point
SILENCE = {"shown": [], "total": 0}  # what a bucket without calls shows
PERIOD_NAMES = {"1h": "last hour", "1d": "last day", "all": "all time"}
SECTIONS = {"alarms": "Alarms", "signals": "Signals", "marks": "Before and after"}


SHOWN_LETTERS = 120  # of an id, a service, an attribute
SHOWN_ATTRIBUTES = 12
PICKED_FOR = {
    "error": "failed",
    "empty": "retrieved nothing",
    "latency": "slow",
    "duplicates": "duplicates in the list",
    "top_score": "low score of the first",
}


@dataclass(frozen=True, slots=True)
class CallSize:
    """How much of a call is shown."""

    documents: int = 50
    letters: int = 4_000  # of a text
    question: int = 1_000


IN_PAGE = CallSize()
IN_FILE = CallSize(documents=10, letters=400, question=400)  # of which there are many


def shown_calls(
    calls: pl.DataFrame, signal: str = "", size: CallSize = IN_PAGE
) -> list[dict[str, Any]]:
    """Return what pages show of calls; `signal` is what their column VALUE is of."""
    return [_shown(row, signal, size) for row in calls.iter_rows(named=True)]


def _shown(row: dict[str, Any], signal: str, size: CallSize) -> dict[str, Any]:
    signal = row.get("why") or signal
    value = row.get(VALUE)
    return {
        "question": shorten(row["question"], size.question) if row["question"] else "",
        "why": PICKED_FOR.get(row.get("why") or "", ""),
        "error": shorten(row["error"], size.question) if row["error"] else "",
        "facts": list(_facts(row, signal, value)),
        "known": row["docs"] is not None,
        "docs": list(_documents(row, size)) if row["docs"] else [],
        "more": max(len(row["docs"] or ()) - size.documents, 0),
        "id": f"call-{row['trace'][:32]}-{row['span'][:16]}",
    }


def _facts(row: dict[str, Any], signal: str, value: float | None) -> Iterator[tuple[str, str]]:
    yield "time", f"{row['time']:%Y-%m-%d %H:%M:%S} UTC"
    if signal and value is not None and signal != "error":
        yield signal, amount(value, SIGNALS[signal].unit)
    if row["latency_ms"] is not None and SIGNALS.get(signal, SIGNALS["error"]).unit != "ms":
        yield "latency", amount(row["latency_ms"], "ms")
    for name in ("service", "session", "user"):
        if row[name]:
            yield name, shorten(row[name], SHOWN_LETTERS)
    if row["hop"]:
        yield "hop", str(row["hop"])
    for each in row["attributes"][:SHOWN_ATTRIBUTES]:
        yield shorten(each["key"], SHOWN_LETTERS), shorten(each["value"] or "", SHOWN_LETTERS)
    yield "trace", shorten(row["trace"], SHOWN_LETTERS)


def _documents(row: dict[str, Any], size: CallSize) -> Iterator[dict[str, Any]]:
    rows = zip(row["docs"], row["scores"], row["texts"], strict=False)
    seen: set[str] = set()
    for rank, (doc, score, text) in enumerate(rows, 1):
        if rank > size.documents:
            return
        yield {
            "rank": rank,
            "id": shorten(doc, SHOWN_LETTERS),
            "score": "" if score is None else f"{score:.4g}",
            "text": shorten(text, size.letters) if text else "",
            "again": doc in seen,
        }
        seen.add(doc)


def monitor_report(monitor: Monitor, name: str, look: Look | None = None) -> str:
    """Return a page about a store as one file, with some calls of each point."""
    found = overview(monitor, look or Look())
    times = found.table["time"].unique().sort().to_list()
    at = {time: number for number, time in enumerate(times)}
    calls = _calls_of_buckets(monitor, found, len(times))
    listed = [
        {"number": number, "time": time_text(time), "calls": calls.get(time, SILENCE)}
        for time, number in at.items()
    ]
    return _page(monitor, name, found, lambda _, time: f"#bucket-{at[time]}", buckets=listed)


def monitor_page(monitor: Monitor, name: str, look: Look, live: dict[str, Any]) -> str:
    """Return the page that a server shows; its points lead to `/calls`."""
    found = overview(monitor, look)

    def link(signal: Signal, time: datetime) -> str:
        return calls_link(found.look, signal.name, time, time + found.length)

    return _page(monitor, name, found, link, live=live)


def calls_link(look: Look, signal: str, since: datetime, until: datetime) -> str:
    """Return where a server shows the calls of a point."""
    chosen = _chosen(look) | {"signal": signal, "since": since.isoformat()}
    return "/calls?" + urlencode(chosen | {"until": until.isoformat()})


def _chosen(look: Look) -> dict[str, str]:
    """Return a look as parts of an address."""
    named = {key: value for key, value in asdict(look).items() if isinstance(value, str) and value}
    named.pop("kind") if look.kind == "retriever" else None
    return named | ({"signals": "all"} if look.every_signal else {})


def _page(
    monitor: Monitor,
    name: str,
    found: Overview,
    link: Callable[[Signal, datetime], str],
    *,
    live: dict[str, Any] | None = None,
    buckets: Sequence[dict[str, Any]] = (),
) -> str:
    look = found.look
    opened = [each for each in found.alarms if each.resolved is None]
    sections = dict(SECTIONS) | ({"calls": "Calls"} if buckets else {})
    if not found.marks:
        del sections["marks"]
    only = f"only {look.by} = {look.only}" if look.only else f"by {look.by}"
    when = f"{time_text(found.since)} to {time_text(found.until)} UTC"
    lede = [f"{found.counts.calls:,} calls in the store", when, *([only] if look.by else [])]
    return document(
        "monitor.html.j2",
        f"{name} · findwell",
        kind=MONITOR,
        live=live,
        sections=sections,
        name=name,
        lede=" · ".join(lede),
        notes=list(_notes(found)),
        tools=_tools(found) if live is not None else None,
        cards=_cards(found, link, opened),
        hidden=look.by and look.only,
        alarms=[_alarm(monitor, each, IN_FILE if live is None else IN_PAGE) for each in opened],
        resolved=[_past(each) for each in found.alarms if each.resolved is not None],
        watched=[_watched(each) for each in found.watched],
        marks=[_mark(each, look) for each in found.marks],
        around=None if found.around is None else _around(found.around),
        buckets=buckets,
        words=_words(look.every),
        empty=not found.counts.calls,
    )


def _notes(found: Overview) -> Iterator[str]:
    """Yield what is worth knowing about what is shown."""
    for what, reasons in (
        ("spans could not be read", found.counts.malformed),
        ("calls were left out", found.counts.dropped),
    ):
        if total := sum(reasons.values()):
            why = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.items())
            yield f"{total:,} {what}: {why}"
    if found.left_out:
        yield (
            f"left out, as there are very many calls: {', '.join(found.left_out)}; "
            "choose a shorter time, or use findwell monitor show"
        )
    if found.more_slices:
        yield f"{found.more_slices:,} more values of {found.look.by} with fewer calls are not drawn"


def _cards(
    found: Overview, link: Callable[[Signal, datetime], str], opened: Sequence[KnownAlarm]
) -> list[dict[str, Any]]:
    """Return the charts: signals with an open alarm first."""
    by = found.look.by
    axis = TimeAxis(found.since, found.until, found.length, by, found.slices, found.marks, link)
    alarmed = {each.signal for each in opened}
    cards = []
    for name in sorted(found.look.signals, key=lambda each: each not in alarmed):
        signal = SIGNALS[name]
        rows = found.table.filter(pl.col("signal") == name).to_dicts()
        if signal.summary == "count":
            rows = _whole_buckets(rows, found)
        rows = [row for row in rows if row["value"] is not None]
        if not rows:
            continue
        last = amount(rows[-1]["value"], signal.unit) + " an hour" * (signal.unit == "an hour")
        numbers = [
            {
                "time": time_text(row["time"]),
                "slice": row[by] if by else "",
                "value": figure(row["value"]),
                "limits": limits(row["low"], row["high"]),
                "n": f"{row['n']:,}",
                "link": link(signal, row["time"]),
            }
            for row in reversed(rows)
        ]
        of_it = [each for each in found.alarms if each.signal == name]
        cards.append(
            {
                "signal": signal,
                "chart": time_series(signal, rows, axis, of_it),
                "alarm": name in alarmed,
                "last": "" if by else last,
                "by": by,
                "rows": numbers,
            }
        )
    return cards


def _whole_buckets(rows: list[dict[str, Any]], found: Overview) -> list[dict[str, Any]]:
    """Leave out what would count too little: a bucket that is not over, or began before all."""
    first, now = found.counts.first or found.since, datetime.now(UTC)
    whole = [
        row
        for row in rows
        if row["time"] + found.length <= now and first - row["time"] < found.length / 10
    ]
    return whole or rows


def _unit(signal: str) -> str:
    return SIGNALS[signal].unit if signal in SIGNALS else ""


def _alarm(monitor: Monitor, alarm: KnownAlarm, size: CallSize) -> dict[str, Any]:
    keys = pl.DataFrame(
        [(each.time, each.trace, each.span, each.value) for each in alarm.calls],
        schema={
            "time": pl.Datetime("us", "UTC"),
            "trace": pl.String(),
            "span": pl.String(),
            VALUE: pl.Float64(),
        },
        orient="row",
    )
    unit = _unit(alarm.signal)
    return {
        "alert": alarm.alert,
        "slice": alarm.slice,
        "signal": alarm.signal,
        "since": time_text(alarm.since),
        "opened": time_text(alarm.opened),
        "now": amount(alarm.now, unit),
        "before": amount(alarm.before, unit),
        "n": f"{alarm.n:,}",
        "calls": shown_calls(monitor.store.calls(keys), alarm.signal, size),
    }


def _past(alarm: KnownAlarm) -> list[str]:
    times = (alarm.since, alarm.opened, alarm.resolved)
    return [alarm.alert, alarm.slice or "all calls", *(time_text(each) for each in times if each)]


def _watched(last: dict[str, Any]) -> list[str]:
    unit = _unit(last["signal"])
    sides = [amount(last[name], unit) for name in ("before", "now")]
    checked = time_text(parse_moment(last["checked"]))
    name = last["slice"] or "all calls"
    return [last["alert"], name, SIGNS[last["outcome"]], *sides, f"{last['n']:,}", checked]


def _mark(mark: Mark, look: Look) -> dict[str, str]:
    there = "/?" + urlencode(_chosen(look) | {"mark": mark.name}) + "#marks"
    return {"name": mark.name, "time": time_text(mark.time), "link": there}


def _around(found: AroundMark) -> dict[str, Any]:
    rows = []
    for each in found.rows:
        change = each.verdict.difference
        difference = "–" if change.value is None else f"{change.value:+.4g}".replace("-", "−")
        sides = (each.before, each.after)
        rows.append(
            {
                "signal": each.signal.name,
                "unit": each.signal.unit,
                "sides": [(figure(side.value), limits(side.low, side.high)) for side in sides],
                "difference": difference,
                "limits": limits(change.low, change.high),
                "verdict": each.verdict.word if each.verdict.is_clear else "",
            }
        )
    times = {"since": found.since, "time": found.mark.time, "until": found.until}
    texts = {name: time_text(time) for name, time in times.items()}
    return {"mark": found.mark.name, **texts, "rows": rows}


def _tools(found: Overview) -> dict[str, Any]:
    look = found.look
    own = [look.by] if look.by else []
    return {
        "periods": [(each, PERIOD_NAMES.get(each) or f"last {_words(each)}") for each in PERIODS],
        "lengths": [(each, _words(each)) for each in dict.fromkeys([*LENGTHS[:9], look.every])],
        "columns": list(dict.fromkeys([*found.columns, *own])),
        "values": sorted({*found.columns.get(look.by, []), *found.slices}) if own else [],
        **asdict(look),
    }


UNITS = {"m": "minute", "h": "hour", "d": "day", "w": "week"}


def _words(length: str) -> str:
    """Write a length of time in words.

    >>> _words("15m"), _words("1d")
    ('15 minutes', '1 day')
    """
    number, unit = length[:-1], UNITS[length[-1]]
    return f"{number} {unit}" + ("" if number == "1" else "s")


def _calls_of_buckets(monitor: Monitor, found: Overview, buckets: int) -> dict[datetime, Any]:
    """Return some calls of each bucket of a file."""
    if not buckets:
        return {}
    look = found.look
    slices = [look.by] if look.by and look.only else []
    query = CallQuery(TELLING, slices, found.since, found.until, look.kind)
    frame = query.values(monitor.store).sliced(look.by, look.only or None).frame()
    starts = found.table.select(pl.col("time").alias("bucket")).unique().sort("bucket")
    frame = frame.join_asof(
        starts.with_columns(pl.col("bucket").alias("start")), left_on="time", right_on="start"
    )
    most = max(1, min(OF_BUCKET, IN_ALL // buckets))
    chosen = telling_calls(frame.drop_nulls("bucket"), ["bucket"], most).sort("bucket")
    counted = dict(frame.group_by("bucket").len().rows())
    calls = monitor.store.calls(chosen).sort("bucket", maintain_order=True)
    return {
        time: {"shown": shown_calls(part, "", IN_FILE), "total": counted[time]}
        for (time,), part in calls.partition_by("bucket", as_dict=True).items()
    }


def calls_page(  # noqa: PLR0917
    name: str,
    look: Look,
    signal: Signal,
    since: datetime,
    until: datetime,
    found: CallsOfBucket,
    live: dict[str, Any],
) -> str:
    """Return the page about the calls of a point."""
    length = until - since
    order = f"those with the {signal.worse.replace('er', 'est')} {signal.name} first"
    if signal.worse == "either":
        order = f"those whose {signal.name} is furthest from the median first"
    return document(
        "calls.html.j2",
        f"Calls · {name} · findwell",
        kind=MONITOR,
        live=live,
        back="/?" + urlencode(_chosen(look)),
        name=name,
        signal=signal,
        since=time_text(since),
        until=time_text(until),
        only=f"{look.by} = {look.only}" if look.by and look.only else "",
        total=found.total,
        calls=shown_calls(found.calls, signal.name),
        order=order if signal.per_call else "the latest first",
        steps={
            "Earlier": calls_link(look, signal.name, since - length, since),
            "Later": calls_link(look, signal.name, until, until + length),
        },
        others=[
            (each, calls_link(look, each, since, until), each == signal.name)
            for each in look.signals
            if SIGNALS[each].per_call
        ],
    )
