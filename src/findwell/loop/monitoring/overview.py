"""What a page about a store shows: signals by time, marks, alarms, slices, and the worst calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from findwell.core.errors import choose
from findwell.core.frames import pl
from findwell.io.read.traces.schema import RERANKER, RETRIEVER
from findwell.loop.monitoring.alarm_report import KnownAlarm, known_alarms
from findwell.loop.monitoring.call_values import CALL_COLUMNS, CallQuery
from findwell.loop.monitoring.signals import KEY, SIGNALS, find_signals
from findwell.loop.monitoring.time_buckets import (
    LONGEST_SIDE,
    AroundMark,
    around_mark,
    bucket_start,
)
from findwell.loop.monitoring.times import (
    MICROSECOND,
    bucket_length,
    fitting_length,
    spelled_length,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.loop.monitoring.monitor import Monitor
    from findwell.loop.monitoring.store import Mark, StoreCounts, TraceStore

ALL = "all"
PERIODS = ("5m", "15m", "1h", "6h", "1d", "3d", "7d", "30d", "90d", ALL)  # before the last call
FIRST_CALLS = 80_000  # calls that are shown while no period is chosen, at most about
AROUND_CALLS = 40_000  # calls on both sides of a mark, at most about
# calls of a store up to which those before the period are looked at, too
LOOKED_BACK_CALLS = 100_000
SLOW_SIGNAL_CALLS = 20_000  # calls of a period up to which texts are looked at
MOST_POINTS = 400  # points, where a user chose the length
SHORTEST_SIDE = timedelta(minutes=2)  # on either side of a mark
SLICES = 6  # lines of a chart
LOOKED_AT = 2_000  # calls whose attributes are looked at
FEWEST_VALUES, MOST_VALUES = 2, 50  # of an attribute by which it makes sense to slice
CLOCK_ERROR = timedelta(hours=1)  # clocks of others may be wrong


@dataclass(frozen=True, slots=True)
class OverviewChoice:
    """What a user wants to see."""

    period: str = ""  # one of PERIODS; empty: as much as is quickly shown
    every: str = ""  # length of a bucket; empty: as fits the period
    by: str = ""  # column or attribute to slice by
    only: str = ""  # a value of it
    kind: str = "retriever"
    every_signal: bool = False  # also those that take longer
    mark: str = ""  # that is looked at before and after; empty: the last one

    def checked(self) -> OverviewChoice:
        """Return the same, or raise if the period, length or kind is invalid."""
        if self.period:
            choose("period", self.period, PERIODS)
        choose("kind of calls", self.kind, (RETRIEVER, RERANKER))
        if self.every:
            bucket_length(self.every)
        return self if self.by else replace(self, only="")

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that are shown."""
        every = [each for each in SIGNALS.values() if not each.needs and each.kind == ""]
        return tuple(each.name for each in (every if self.every_signal else find_signals(None)))


@dataclass(frozen=True, slots=True)
class Overview:
    """What is shown."""

    look: OverviewChoice  # with period and length filled in
    since: datetime
    until: datetime
    length: timedelta
    table: pl.DataFrame  # of Monitor.buckets
    slices: list[str]  # values of `look.by` that have lines
    more_slices: int  # that have none
    counts: StoreCounts
    marks: list[Mark]
    alarms: list[KnownAlarm]
    watched: list[dict[str, Any]]  # all alerts, as the last check found them
    around: AroundMark | None
    columns: dict[str, list[str]] = field(default_factory=dict)  # to slice by, with values
    left_out: list[str] = field(default_factory=list)  # signals that would take too long


def overview(monitor: Monitor, look: OverviewChoice) -> Overview:
    """Look at a store."""
    look = look.checked()
    store = monitor.store
    counts = store.counts()
    now = datetime.now(UTC)
    end = min(counts.last or now, now + CLOCK_ERROR)
    period = look.period or _quick_period(store, counts, end)
    first = min(counts.first or end, end)
    start = first if period == ALL else max(first, end - bucket_length(period))
    length = bucket_length(look.every or fitting_length(end - start))
    if (end - start) / length > MOST_POINTS:
        length = bucket_length(fitting_length(end - start))
    start = _aligned(start, length)
    until = end + MICROSECOND
    every = spelled_length(length)
    look = replace(look, period=period, every=every)
    by = [look.by] if look.by else []
    names, left_out = _affordable(store, look, start, until)
    table = monitor.buckets(names, every=every, by=by, since=start, until=until, kind=look.kind)
    values, more = _slices(table, look)
    if by:
        table = table.filter(pl.col(look.by).is_in(values))
    marks = store.marks()
    alarms, watched = known_alarms(store)
    return Overview(
        look=look,
        since=start,
        until=until,
        length=length,
        table=table,
        slices=values,
        more_slices=more,
        counts=counts,
        marks=marks,
        alarms=alarms,
        watched=watched,
        around=_around(store, marks, look, names, until),
        left_out=left_out,
        columns=_columns(store, end),
    )


def _quick_period(store: TraceStore, counts: StoreCounts, end: datetime) -> str:
    """Return the longest period with few enough calls."""
    found = PERIODS[0]
    for period in PERIODS:
        since = None if period == ALL else end - bucket_length(period)
        if store.calls_about(since) > FIRST_CALLS:
            break
        found = period
        if counts.first is None or since is None or since <= counts.first:
            return ALL
    return found


def _affordable(
    store: TraceStore, look: OverviewChoice, since: datetime, until: datetime
) -> tuple[list[str], list[str]]:
    """Return the signals that are shown, and those that are too slow for this many calls."""
    costly = store.calls_about(since, until) > SLOW_SIGNAL_CALLS
    long = store.calls_about(None, until) > LOOKED_BACK_CALLS
    slow = {
        each.name
        for each in find_signals(look.signals)
        if (each.history and long) or (not each.cheap and costly)
    }
    shown = [name for name in look.signals if name not in slow]
    return shown, [name for name in look.signals if name in slow]


def _aligned(moment: datetime, length: timedelta) -> datetime:
    """Return where the bucket of a moment begins."""
    found = pl.DataFrame({"time": [moment]}).select(bucket_start(length)).item()
    assert isinstance(found, datetime)  # noqa: S101
    return found


def _slices(table: pl.DataFrame, look: OverviewChoice) -> tuple[list[str], int]:
    """Return the slices with most calls, and how many others there are."""
    if not look.by:
        return [], 0
    counted = table.filter(pl.col("signal") == "queries").group_by(look.by).agg(pl.sum("n"))
    found = counted.sort("n", look.by, descending=[True, False])[look.by].to_list()
    if look.only:
        return ([look.only] if look.only in found else []), 0
    return found[:SLICES], max(len(found) - SLICES, 0)


def _around(
    store: TraceStore, marks: list[Mark], look: OverviewChoice, names: list[str], until: datetime
) -> AroundMark | None:
    named = [mark for mark in marks if mark.name == look.mark] if look.mark else marks
    if not named:
        return None
    mark, longest = named[-1], LONGEST_SIDE
    while longest > SHORTEST_SIDE:  # as much as is quickly compared
        if store.calls_about(mark.time - longest, mark.time + longest) <= AROUND_CALLS:
            break
        longest /= 2
    return around_mark(
        store, mark, names, by=look.by, only=look.only, kind=look.kind, end=until, longest=longest
    )


def _columns(store: TraceStore, end: datetime) -> dict[str, list[str]]:
    """Return columns and attributes by which slices make sense, with their values."""
    late = store.latest_calls(LOOKED_AT, end, [*CALL_COLUMNS, "attributes"])
    found: dict[str, list[str]] = {}
    for name in CALL_COLUMNS:
        if name != "kind":
            found[name] = [str(each) for each in late[name].drop_nulls().unique().sort()]
    pairs = late.select(pl.col("attributes").explode()).unnest("attributes").drop_nulls()
    grouped = pairs.group_by("key").agg(pl.col("value").unique().sort()).sort("key")
    found |= {key: values for key, values in grouped.rows() if key not in CALL_COLUMNS}
    return {
        name: values
        for name, values in found.items()
        if FEWEST_VALUES <= len(values) <= MOST_VALUES
    }


VALUE = "value of the signal"  # a column next to those of the traces
# by which a few calls are picked
TELLING_SIGNALS = ("error", "empty", "latency", "duplicates", "top_score")


@dataclass(frozen=True, slots=True)
class CallsOfBucket:
    """Some calls of a bucket, of how many."""

    calls: pl.DataFrame  # TRACE_SCHEMA, and VALUE
    total: int


def worst_calls(
    store: TraceStore,
    signal: str,
    *,
    since: datetime,
    until: datetime,
    by: str = "",
    only: str = "",
    kind: str = "retriever",
    most: int = 50,
) -> CallsOfBucket:
    """Return the calls of a time with the worst values of a signal, of equal ones the latest.

    Where no direction is bad, those furthest from the median come first; of a signal that a single
    call has no value of, the latest.
    """
    found = find_signals([signal])[0]
    readable = found.per_call and not found.needs
    slices = [by] if by and only else []
    query = CallQuery([found.name] if readable else [], slices, since, until, found.kind or kind)
    values = query.values(store).sliced(by, only or None)
    value = pl.lit(None, pl.Float64)
    if readable:
        values = values.alone(found)
        value = pl.lit(pl.Series(values.series).fill_nan(None))
    frame = values.queries.select(*KEY, value.alias(VALUE))
    bad = pl.col(VALUE)
    if found.worse == "lower":
        bad = -bad
    elif found.worse == "either":
        bad = (bad - bad.median()).abs()
    chosen = frame.sort(bad, "time", descending=True, nulls_last=True).head(most)
    return CallsOfBucket(store.calls(chosen), frame.height)


def telling_calls(frame: pl.DataFrame, groups: Iterable[str], most: int) -> pl.DataFrame:
    """Pick a few calls of each group that say most: failed, empty, slowest, with duplicates.

    `frame` has time, trace, span, the groups and the signals of TELLING_SIGNALS; the column `why`
    says by which signal a call was picked.
    """
    keys = list(groups)
    picked = []
    for name in TELLING_SIGNALS:
        value = pl.col(name).cast(pl.Float64)
        kept = frame.filter(
            value > 0 if name in ("error", "empty", "duplicates") else value.is_not_null()
        )
        order = value if SIGNALS[name].worse == "higher" else -value
        ranked = kept.sort(order, "time", descending=True).group_by(keys, maintain_order=True)
        picked.append(
            ranked.head(most)
            .with_columns(pl.int_range(pl.len()).over(keys).alias("place"))
            .select(*keys, *KEY, pl.lit(name).alias("why"), value.alias(VALUE), "place")
        )
    by_name = {name: at for at, name in enumerate(TELLING_SIGNALS)}
    table = pl.concat(picked).sort("place", pl.col("why").replace_strict(by_name))
    table = table.unique(["trace", "span"], keep="first", maintain_order=True)
    return table.group_by(keys, maintain_order=True).head(most).drop("place")
