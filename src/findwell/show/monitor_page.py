"""The page about a store of traces: signals over time, alarms, marks, and the calls behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from findwell.core.frames import pl
from findwell.core.spelling import counted
from findwell.core.verdict import BETTER, UNCLEAR, WORSE
from findwell.loop.monitoring.alarm_report import SIGNS, amount
from findwell.loop.monitoring.call_values import CallQuery
from findwell.loop.monitoring.overview import (
    PERIODS,
    TELLING_SIGNALS,
    VALUE,
    Overview,
    OverviewChoice,
    overview,
    telling_calls,
)
from findwell.loop.monitoring.signals import KEY, SIGNALS
from findwell.loop.monitoring.times import LENGTHS, bucket_length, parse_moment
from findwell.show.charts.time_series import TimeAxis, sparkline, time_series
from findwell.show.document import Headline
from findwell.show.excerpts import shorten
from findwell.show.grid import Grid
from findwell.show.html import MONITOR, document
from findwell.show.signals import amounts, change, changes, subtitle, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from findwell.core.verdict import Word
    from findwell.loop.monitoring.alarm_report import KnownAlarm
    from findwell.loop.monitoring.monitor import Monitor
    from findwell.loop.monitoring.overview import CallsOfBucket
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.time_buckets import AroundMark, SignalAround

IN_ALL, OF_BUCKET = 300, 6  # calls in a file, and of these of one point
SILENCE = {"shown": [], "total": 0, "failed": 0, "empty": 0}  # what a bucket without calls shows
PERIOD_NAMES = {"1h": "last hour", "1d": "last day", "all": "all time"}
NAMED_CHANGES = 3  # in the headline


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


def monitor_report(monitor: Monitor, name: str, look: OverviewChoice | None = None) -> str:
    """Return a page about a store as one file, with some calls of each point."""
    found = overview(monitor, look or OverviewChoice())
    times = found.table["time"].unique().sort().to_list()
    at = {time: number for number, time in enumerate(times)}
    calls = _calls_of_buckets(monitor, found, len(times))
    listed = [
        {"number": number, "time": time_text(time), "calls": calls.get(time, SILENCE)}
        for time, number in at.items()
    ]
    return _page(monitor, name, found, lambda _, time: f"#bucket-{at[time]}", buckets=listed)


def monitor_page(monitor: Monitor, name: str, look: OverviewChoice, live: dict[str, Any]) -> str:
    """Return the page that a server shows; its points lead to `/calls`."""
    found = overview(monitor, look)

    def link(signal: Signal, time: datetime) -> str:
        return calls_link(found.look, signal.name, time, time + found.length)

    return _page(monitor, name, found, link, live=live)


def calls_link(look: OverviewChoice, signal: str, since: datetime, until: datetime) -> str:
    """Return where a server shows the calls of a point."""
    chosen = _chosen(look) | {"signal": signal, "since": since.isoformat()}
    return "/calls?" + urlencode(chosen | {"until": until.isoformat()})


def _chosen(look: OverviewChoice) -> dict[str, str]:
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
    cards = _cards(found, link)
    ranked = _ranked(found.around)
    changed = [name for name, each in ranked.items() if each.verdict.is_clear and name in cards]
    axis, size = _axis(found, None), IN_FILE if live is None else IN_PAGE
    alarms = []
    for each in opened:
        held = None if each.slice or look.by else cards.pop(each.signal, None)
        alarms.append(_alarm(monitor, each, size) | _alarm_chart(each, held, axis))
    shown = [name for name in changed if name in cards] if found.around else list(cards)
    folded = [name for name in cards if name not in shown]
    alarmed = {each.signal for each in opened}
    judged = [each for each in found.watched if each["history"] and each["signal"] not in alarmed]
    lede = f"{counted(found.counts.calls, 'call', 'calls')} in the store · "
    lede += f"{time_text(found.since)} to {time_text(found.until)} UTC"
    if look.by:
        lede += f" · only {look.by} = {look.only}" if look.only else f" · by {look.by}"
    chosen = _chosen(look)
    marks = [(each, f"/?{urlencode(chosen | {'mark': each.name})}#signals") for each in found.marks]
    mark = found.around.mark.name if found.around is not None else ""
    sections = {"alarms": "Alarms", "signals": "What changed" if mark else "Signals"}
    sections |= {"unchanged": "No clear change" if mark else "Judged"} if folded or judged else {}
    sections |= {"calls": "Calls"} if buckets else {}
    return document(
        "monitor.html.j2",
        f"{name} · findwell",
        kind=MONITOR,
        live=live,
        sections=sections,
        name=name,
        lede=lede,
        headline=_headline(found, opened, [ranked[each] for each in changed]),
        notes=list(_notes(found)),
        tools=_tools(found) if live is not None else None,
        cards=[cards[each] for each in shown],
        folded=[cards[each] for each in folded],
        rows=[
            *(_row(ranked.get(each), cards[each], found, axis) for each in folded),
            *(_judged_row(last, axis) for last in judged),
        ],
        alarms=alarms,
        resolved=_resolved([each for each in found.alarms if each.resolved is not None]),
        watched=_watched(found.watched),
        marks=marks,
        mark=mark,
        around=found.around,
        buckets=buckets,
        words=_words(look.every),
        empty=not found.counts.calls,
    )


def _ranked(around: AroundMark | None) -> dict[str, SignalAround]:
    """Return the signals before and after a mark, the largest change first.

    A change is as large as it is compared with what is uncertain about it, whatever its unit.
    """

    def size(each: SignalAround) -> float:
        found = each.verdict.difference
        if found.value is None or found.low is None or found.high is None:
            return 0.0
        return abs(found.value) / max(found.high - found.low, 1e-12)

    rows = [] if around is None else around.rows
    ordered = sorted(rows, key=lambda each: (not each.verdict.is_clear, -size(each)))
    return {each.signal.name: each for each in ordered}


def _headline(
    found: Overview, opened: Sequence[KnownAlarm], changed: Sequence[SignalAround]
) -> Headline | None:
    """Say what is wrong or has changed; None if there is nothing to compare with."""
    facts = [
        f"{each.signal.name} {before} → {after} ({each.verdict.word})"
        for each in changed[:NAMED_CHANGES]
        for before, after in [_sides(each)]
    ]
    if more := len(changed) - len(facts):
        facts.append(f"{more} more below")
    since = "" if found.around is None else f" since {shorten(found.around.mark.name, 60)}"
    said = f"{counted(len(changed), 'signal', 'signals')} changed{since}"
    if opened:
        is_open = "1 alarm is open" if len(opened) == 1 else f"{len(opened)} alarms are open"
        facts = [said, *facts] if changed else facts
        return Headline(is_open, tuple(facts), WORSE)
    if found.around is None:
        return None
    if not changed:
        return Headline(f"No signal changed clearly{since}", (), UNCLEAR)
    words = [each.verdict.word for each in changed]
    word: Word | None = WORSE if WORSE in words else BETTER if BETTER in words else None
    return Headline(said, tuple(facts), word)


def _sides(each: SignalAround) -> list[str]:
    return [amount(side.value, each.signal.unit) for side in (each.before, each.after)]


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


def _axis(found: Overview, link: Callable[[Signal, datetime], str] | None) -> TimeAxis:
    by = found.look.by
    return TimeAxis(found.since, found.until, found.length, by, found.slices, found.marks, link)


def _cards(found: Overview, link: Callable[[Signal, datetime], str]) -> dict[str, dict[str, Any]]:
    """Return the chart of each signal, with its numbers, and what changed at the mark."""
    by, axis = found.look.by, _axis(found, link)
    around = {} if found.around is None else {each.signal.name: each for each in found.around.rows}
    cards = {}
    for name in found.look.signals:
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
                "value": amount(row["value"], signal.unit),
                "limits": amounts(row["low"], row["high"], signal.unit),
                "n": f"{row['n']:,}",
                "link": link(signal, row["time"]),
            }
            for row in reversed(rows)
        ]
        of_it = [each for each in found.alarms if each.signal == name]
        cards[name] = {
            "signal": signal,
            "what": subtitle(signal),
            "chart": time_series(signal, rows, axis, of_it),
            "last": "" if by else last,
            "by": by,
            "numbers": numbers,
            "rows": rows,
            "change": _change(around[name]) if name in around else None,
        }
    return cards


def _change(each: SignalAround) -> dict[str, str]:
    """Return a signal before and after a mark, in words."""
    before, after = _sides(each)
    found, unit = each.verdict.difference, each.signal.unit
    return {
        "before": before,
        "after": after,
        "difference": change(found.value, unit),
        "limits": changes(found.low, found.high, unit),
        "word": each.verdict.word if each.verdict.is_clear else "",
    }


def _row(
    each: SignalAround | None, card: dict[str, Any], found: Overview, axis: TimeAxis
) -> dict[str, Any]:
    """Return a signal that did not change as a row of a table."""
    signal = card["signal"]
    whole = [row for row in card["rows"] if not axis.by or row[axis.by] == found.slices[0]]
    made = None if each is None else _change(each)
    return {
        "name": signal.name,
        "what": card["what"],
        "svg": sparkline(signal, whole, axis),
        "link": f"#{card['chart'].slug}",
        **(made or {"before": "–", "after": card["last"] or "–", "difference": "–", "limits": ""}),
    }


def _judged_row(last: dict[str, Any], axis: TimeAxis) -> dict[str, Any]:
    """Return a signal that a judge gave as a row: as the last check found it."""
    signal = SIGNALS[last["signal"]]
    before, after = (amount(last[side], signal.unit) for side in ("before", "now"))
    known = last["before"] is not None and last["now"] is not None
    return {
        "name": signal.name + (f" ({last['slice']})" if last["slice"] else ""),
        "what": "; ".join([subtitle(signal), "as of the last check", *last["judge"]]),
        "svg": sparkline(signal, last["history"], _own_axis(last["history"], last["every"], axis)),
        "link": "",
        "before": before,
        "after": after,
        "difference": change(last["now"] - last["before"], signal.unit) if known else "–",
        "limits": "",
    }


def _own_axis(history: Sequence[dict[str, Any]], every: str, axis: TimeAxis) -> TimeAxis:
    """Return the axis of what a check has saved, which no look at the page changes."""
    length = bucket_length(every)
    times = [row["time"] for row in history]
    return TimeAxis(times[0], times[-1] + length, length, "", [], axis.marks, None)


def _alarm_chart(alarm: KnownAlarm, held: dict[str, Any] | None, axis: TimeAxis) -> dict[str, Any]:
    """Return the chart of an alarm: that of its signal, or what the check saved of its slice."""
    if held is not None or not alarm.history or alarm.signal not in SIGNALS:
        return {"card": held, "chart": None}
    own = _own_axis(alarm.history, alarm.every, axis)
    chart = time_series(SIGNALS[alarm.signal], alarm.history, own, [alarm])
    return {"card": None, "chart": chart}


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
    rows = [(each.time, each.trace, each.span, each.value) for each in alarm.calls]
    types = (pl.Datetime("us", "UTC"), pl.String(), pl.String(), pl.Float64())
    keys = pl.DataFrame(rows, schema=dict(zip((*KEY, VALUE), types, strict=True)), orient="row")
    unit, known = _unit(alarm.signal), SIGNALS.get(alarm.signal)
    what = [f"{subtitle(known)}, as of the last check", *alarm.judge] if known is not None else []
    return {
        "alarm": alarm,
        "what": "; ".join(what),
        "now": amount(alarm.now, unit),
        "before": amount(alarm.before, unit),
        "n": counted(alarm.n, "call", "calls"),
        "calls": shown_calls(monitor.store.calls(keys), alarm.signal, size),
    }


def _resolved(alarms: Sequence[KnownAlarm]) -> Grid | None:
    columns: dict[str, Callable[[KnownAlarm], str]] = {
        "alert": lambda alarm: alarm.alert,
        "slice": lambda alarm: alarm.slice or "all calls",
        "since (UTC)": lambda alarm: time_text(alarm.since),
        "raised (UTC)": lambda alarm: time_text(alarm.opened),
        "resolved (UTC)": lambda alarm: time_text(alarm.resolved) if alarm.resolved else "",
    }
    return Grid.of("", columns, alarms, left=2) if alarms else None


def _watched(every: Sequence[dict[str, Any]]) -> Grid | None:
    """Return each alert as the last check found it, and what the judges of any are worth."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "alert": lambda last: last["alert"],
        "slice": lambda last: last["slice"] or "all calls",
        "verdict": lambda last: SIGNS[last["outcome"]],
        "against": lambda last: amount(last["before"], _unit(last["signal"])),
        "now": lambda last: amount(last["now"], _unit(last["signal"])),
        "calls": lambda last: f"{last['n']:,}",
        "checked (UTC)": lambda last: time_text(parse_moment(last["checked"])),
    }
    judges = dict.fromkeys(judge for last in every for judge in last["judge"])
    return Grid.of("", columns, every, left=3, note="; ".join(judges)) if every else None


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
    query = CallQuery(TELLING_SIGNALS, slices, found.since, found.until, look.kind)
    frame = query.values(monitor.store).sliced(look.by, look.only or None).frame()
    starts = found.table.select(pl.col("time").alias("bucket")).unique().sort("bucket")
    frame = frame.join_asof(
        starts.with_columns(pl.col("bucket").alias("start")), left_on="time", right_on="start"
    )
    most = max(1, min(OF_BUCKET, IN_ALL // buckets))
    chosen = telling_calls(frame.drop_nulls("bucket"), ["bucket"], most).sort("bucket")
    sums = frame.group_by("bucket").agg(
        pl.len().alias("total"),
        pl.col("error").sum().cast(pl.Int64).alias("failed"),
        pl.col("empty").sum().cast(pl.Int64).alias("empty"),
    )
    counts = {row.pop("bucket"): row for row in sums.to_dicts()}
    calls = monitor.store.calls(chosen).sort("bucket", maintain_order=True)
    return {
        time: {"shown": shown_calls(part, "", IN_FILE), **counts[time]}
        for (time,), part in calls.partition_by("bucket", as_dict=True).items()
    }


def calls_page(  # noqa: PLR0917
    name: str,
    look: OverviewChoice,
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
