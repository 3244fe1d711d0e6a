"""A mark, such as a release: signals before it and after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.loop.monitoring.signals import find_signals
from findwell.loop.monitoring.stored_signals import stored_signals
from findwell.loop.monitoring.time_buckets import buckets
from findwell.statistics.unpaired import unpaired_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.estimate import Estimate
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark, TraceStore

LONGEST = timedelta(days=7)  # on either side of a mark


@dataclass(frozen=True, slots=True)
class SignalAround:
    """A signal before a mark and after it, each with an interval, and how far they differ."""

    signal: Signal
    before: dict[str, float | None]  # value, low, high, n
    after: dict[str, float | None]
    difference: float | None
    low: float | None  # None where only the intervals of the two sides are known
    high: float | None

    @property
    def verdict(self) -> str:
        """Whether it is better or worse; where this cannot be told, `higher` or `lower`.

        Empty if the interval of the difference has zero in it, or is unknown.
        """
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return ""
        moved = "higher" if self.low > 0 else "lower"
        if self.signal.worse == "either":
            return moved
        return "worse" if moved == self.signal.worse else "better"


@dataclass(frozen=True, slots=True)
class AroundMark:
    """The two periods around a mark, and what differs."""

    mark: Mark
    since: datetime
    until: datetime
    rows: list[SignalAround]


def around_mark(
    store: TraceStore,
    mark: Mark,
    names: Sequence[str] | None = None,
    *,
    by: str = "",
    only: str = "",
    kind: str = "retriever",
    end: datetime | None = None,
    longest: timedelta = LONGEST,
) -> AroundMark | None:
    """Compare the time after a mark with the same length of time before it; None without calls.

    Neither side reaches beyond another mark, the calls of the store, `end` or `longest`. `only` is
    a value of the slice `by`: the calls that are compared.
    """
    counts = store.counts()
    if counts.first is None or counts.last is None:
        return None
    others = [each.time for each in store.marks() if each.time != mark.time]
    last = counts.last + timedelta(microseconds=1)
    until = min([end or last, last, *(time for time in others if time > mark.time)])
    first = max([counts.first, *(time for time in others if time < mark.time)])
    until = min(until, mark.time + longest)
    first = max(first, mark.time - longest, mark.time - (until - mark.time))
    if not first < mark.time < until:
        return None
    wanted = [each for each in find_signals(names) if each.summary != "never"]
    plain = [each.name for each in wanted]
    slices = [by] if by and only else []
    frame = stored_signals(store, plain, since=first, until=until, by=slices, kind=kind)
    if slices:
        frame = frame.filter(pl.col(by) == only)
    before = frame.filter(pl.col("time") < mark.time)
    after = frame.filter(pl.col("time") >= mark.time)
    if not before.height or not after.height:
        return None
    rows = [_around(each, before, after, (first, mark.time, until)) for each in wanted]
    return AroundMark(mark, first, until, [row for row in rows if row is not None])


def _around(
    signal: Signal,
    before: pl.DataFrame,
    after: pl.DataFrame,
    times: tuple[datetime, datetime, datetime],
) -> SignalAround | None:
    found = [
        _summary(signal, side, length)
        for side, length in ((before, times[1] - times[0]), (after, times[2] - times[1]))
    ]
    values = [side["value"] for side in found]
    if values[0] is None and values[1] is None:
        return None
    made: Estimate | None = None
    if signal.summary == "mean":
        sides = (side[signal.name].cast(pl.Float64).to_numpy() for side in (before, after))
        low, high = signal.bounds
        made = unpaired_interval(*(np.asarray(side) for side in sides), bounds=(low, high))
    difference = None if None in values else values[1] - values[0]  # type: ignore[operator]
    limits = (None, None) if made is None else (made.low, made.high)
    return SignalAround(signal, found[0], found[1], difference, *limits)


def _summary(signal: Signal, side: pl.DataFrame, length: timedelta) -> dict[str, float | None]:
    """Return the value of one side, of all calls together; a rate is over the whole of its time."""
    frame = side.select("time", "kind", signal.name)
    row = buckets(frame, None).row(0, named=True)
    found: dict[str, float | None] = {key: row[key] for key in ("value", "low", "high", "n")}
    if signal.summary == "count":  # the side may begin or end with silence
        first, last = side["time"].min(), side["time"].max()
        assert isinstance(first, datetime)  # noqa: S101
        assert isinstance(last, datetime)  # noqa: S101
        share = max(last - first, timedelta(hours=1)) / length
        for key in ("value", "low", "high"):
            found[key] = None if found[key] is None else found[key] * share  # type: ignore[operator]
    return found
