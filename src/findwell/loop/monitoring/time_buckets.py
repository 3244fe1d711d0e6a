"""Values of calls summarised over hours, days or weeks, and before and after a mark.

An interval is one for a single look at a single bucket, and named: means have that of findwell's
results (`further-unit`), quantiles that of the ordered values, counts the score interval of
Poisson. Of many buckets some will miss; alarms use what holds at all times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.estimate import Estimate
from findwell.io.read.traces.schema import RERANKER
from findwell.loop.monitoring.call_values import LABEL, VERDICT, slice_names, stored_signals
from findwell.loop.monitoring.signals import (
    NOTHING_GIVEN,
    SIGNALS,
    References,
    Signal,
    find_signals,
)
from findwell.statistics.intervals import intervals, quantile_interval
from findwell.statistics.prediction_powered import FEW, ppi_mean
from findwell.statistics.unpaired import unpaired_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark, TraceStore

HOUR = timedelta(hours=1)
POISSON = "poisson-score"
PPI = "ppi"  # the mean of a judge, corrected by labels
BUCKET_START, COUNT = "\0bucket", "\0count"  # no attribute that calls are sliced by is so named
NAMED = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}
SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
BUCKET: dict[str, pl.DataType] = {
    "signal": pl.String(),
    "n": pl.Int64(),
    "undefined": pl.Int64(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "method": pl.String(),
}


def bucket_length(every: str) -> timedelta:
    """Return the length of a bucket: minute, hour, day, week, or a number of them, as in 15m or 6h.

    >>> bucket_length("15m"), bucket_length("day")
    (datetime.timedelta(seconds=900), datetime.timedelta(days=1))
    """
    found = re.fullmatch(r"([1-9]\d{0,4})([mhdw])", NAMED.get(every, every))
    if not found:
        raise OptionError(
            f"{every!r} is no length of time", fix="write 15m, 1h, 6h, 1d or 1w, or hour, day, week"
        )
    return timedelta(seconds=int(found[1]) * SECONDS[found[2]])


def buckets(
    frame: pl.DataFrame,
    every: str | None = "1h",
    *,
    by: Iterable[str] | str = (),
    level: float | None = 0.95,
    given: References = NOTHING_GIVEN,
    kind: str | None = None,
) -> pl.DataFrame:
    """Summarise a frame of `signal_frame` by time, and by its slices.

    One row per bucket, slice and signal: `time` is where the bucket starts (UTC), `n` counts the
    calls with a value and `undefined` those without; `low` and `high` are the limits of the
    interval that `method` names, null where there is none. `level` None leaves intervals out. A
    bucket without calls has a row for `queries` only, if it lies between others. `every` None takes
    all calls together. `given` has the corpus that could have been retrieved. `kind` is the one of
    `signal_frame`, which a part of a frame, where all are of one kind, does not tell.
    """
    slices = slice_names(by)
    if every is None:
        length = _whole(frame["time"])
        table = summarise(frame, pl.col("time").min(), length, slices, level, given, kind)
        return table.rename({BUCKET_START: "time"})
    length = bucket_length(every)
    start = pl.col("time").dt.truncate(f"{int(length.total_seconds())}s")
    if length % timedelta(days=7) == timedelta(0):  # weeks begin on Monday
        start = pl.col("time").dt.truncate(f"{length.days // 7}w")
    table = summarise(frame, start, length, slices, level, given, kind)
    table = table.rename({BUCKET_START: "time"})
    return with_silence(table, slices, length, level) if "queries" in frame.columns else table


def _whole(times: pl.Series) -> timedelta:
    """Return from when to when calls were made; an hour if that is less."""
    first, last = times.min(), times.max()
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return HOUR
    return max(last - first, HOUR)


def summarise(  # noqa: PLR0917
    frame: pl.DataFrame,
    start: pl.Expr,
    length: timedelta,
    slices: list[str],
    level: float | None,
    given: References,
    kind: str | None = None,
) -> pl.DataFrame:
    """Return the rows of `buckets`, but for those without calls."""
    wanted = [SIGNALS[name] for name in frame.columns if name in SIGNALS and name not in slices]
    groups = [BUCKET_START, *slices]
    ids = pl.Series([], dtype=pl.String) if given.corpus is None else given.corpus["doc"]
    read = frame.drop("trace", "span", strict=False).with_columns(start.alias(BUCKET_START))
    ordered = read.sort([*groups, "time"], maintain_order=True)
    counts = ordered.group_by(groups, maintain_order=True).len(COUNT)
    ends = counts[COUNT].cum_sum().to_numpy()
    spans = list(zip(ends - counts[COUNT].to_numpy(), ends, strict=True))
    rows: list[tuple[object, ...]] = []
    reranker = (ordered["kind"] == RERANKER).to_numpy()
    reranks = np.concatenate(([0], np.cumsum(reranker)))
    only = bool(reranker.all()) if kind is None else kind == RERANKER
    numbers = {
        each.name: ordered[each.name].cast(pl.Float64).to_numpy()
        for each in wanted
        if each.per_call
    }
    labels = {
        name: (ordered[name + LABEL].to_numpy(), ordered[name + VERDICT].to_numpy())
        for name in numbers
        if name + LABEL in ordered.columns
    }
    for key, (first, last) in zip(counts.select(groups).rows(), spans, strict=True):
        part = {name: column[first:last] for name, column in numbers.items()}
        found = dict(_of_calls(wanted, part, level))
        for name, (label, verdict) in labels.items():
            said = label[first:last], verdict[first:last]
            found[name] = _corrected(found[name], part[name], *said, level)
        for each in wanted:
            if not each.per_call:
                found[each.name] = _of_many(each, ordered, (first, last), length, level, ids)
        for each in wanted:
            made = found[each.name]
            limits = made.value, made.low, made.high
            there = int(reranks[last] - reranks[first])  # the rest are calls of another kind
            there = there if each.kind or only else last - first - there
            undefined = there - made.n if each.per_call else 0
            rows.append((*key, each.name, made.n, undefined, *limits, made.method))
    schema = {BUCKET_START: frame.schema["time"], **dict.fromkeys(slices, pl.String()), **BUCKET}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_calls(
    wanted: list[Signal], values: dict[str, Floats], level: float | None
) -> Iterator[tuple[str, Estimate]]:
    """Yield the summaries of the signals of which every call has a value."""
    means = [each for each in wanted if each.per_call and each.summary == "mean"]
    if means:
        table = np.column_stack([values[each.name] for each in means])
        if level is None:
            made: Iterable[Estimate] = map(_mean, table.T)
        else:
            made = intervals(table, level=level, bounds=[each.bounds for each in means])
        yield from zip((each.name for each in means), made, strict=True)
    for each in wanted:
        if each.per_call and each.summary != "mean":
            column = values[each.name]
            defined = column[~np.isnan(column)]
            missing = len(column) - len(defined)
            yield each.name, _quantile(defined, int(each.summary[1:]) / 100, level, missing)


def _corrected(
    judged: Estimate, values: Floats, labels: Floats, verdicts: Floats, level: float | None
) -> Estimate:
    """Correct the mean of a judge by what people said about some of the calls."""
    both = ~np.isnan(verdicts) & ~np.isnan(labels)
    if both.sum() < FEW:
        return judged
    further = values[~np.isnan(values) & np.isnan(labels)]
    made = ppi_mean(labels[both], verdicts[both], further, level=level or 0.95)
    low, value, high = (_inside(each) for each in (made.low, made.value, made.high))
    n = int(both.sum()) + len(further)
    undefined = len(values) - n
    if level is None:
        return _plain(value, n, undefined)
    return Estimate(value, low, high, level, PPI, n, undefined)


def _inside(value: float | None) -> float | None:
    return None if value is None else min(max(value, 0.0), 1.0)


def _mean(column: Floats) -> Estimate:
    defined = column[~np.isnan(column)]
    value = float(defined.mean()) if len(defined) else None
    return _plain(value, len(defined), len(column) - len(defined))


def _plain(value: float | None, n: int, undefined: int = 0) -> Estimate:
    return Estimate(value, None, None, 0.0, "", n, undefined)


def _quantile(defined: Floats, share: float, level: float | None, missing: int) -> Estimate:
    if level is None:
        value = float(np.quantile(defined, share)) if len(defined) else None
        return _plain(value, len(defined), missing)
    made = quantile_interval(defined, share, level)
    method = made.method if made.n else ""
    low = made.low
    if low is not None and made.value is not None:
        low = min(low, made.value)  # of few calls, the value lies between two of them
    return Estimate(made.value, low, made.high, level, method, made.n, missing)


def _of_many(  # noqa: PLR0917
    signal: Signal,
    frame: pl.DataFrame,
    span: tuple[int, int],
    length: timedelta,
    level: float | None,
    corpus: pl.Series,
) -> Estimate:
    """Return the summary of a signal that a single call has no value of."""
    column = frame[signal.name].slice(span[0], span[1] - span[0]).drop_nulls()
    if signal.summary == "count":
        return _rate(len(column), length, level)
    docs = column.explode(empty_as_null=False)
    if signal.summary == "never":
        seen = float(docs.unique().is_in(corpus.implode()).sum())
        return _plain(1 - seen / len(corpus) if len(corpus) else None, len(column))
    return _plain(gini(docs.value_counts()["count"].to_numpy()), len(column))


def _rate(count: int, length: timedelta, level: float | None) -> Estimate:
    """Return how many there are an hour, with the score interval of a Poisson count.

    The limits are the rates under which the count is z standard deviations away.
    """
    hours = length.total_seconds() / 3600
    if level is None:
        return _plain(count / hours, count)
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle, reach = count + z * z / 2, z * np.sqrt(count + z * z / 4)
    low, high = max(middle - reach, 0.0) / hours, (middle + reach) / hours
    return Estimate(count / hours, float(low), float(high), level, POISSON, count, 0)


def gini(counts: Floats) -> float | None:
    """Return the Gini coefficient of counts: 0 if all are equal, near 1 if one has nearly all.

    >>> gini(np.array([1, 1, 1, 1])), gini(np.array([0, 0, 0, 4]))
    (0.0, 0.75)
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64))
    n, total = len(ordered), float(ordered.sum())
    if not total:
        return None
    return float(max(2 * (np.arange(1, n + 1) * ordered).sum() / (n * total) - (n + 1) / n, 0.0))


def with_silence(
    table: pl.DataFrame, slices: list[str], length: timedelta, level: float | None
) -> pl.DataFrame:
    """Add buckets in which nothing was asked, between the first and the last of all."""
    if not table.height:
        return table
    step = f"{int(length.total_seconds())}s"
    time = pl.col("time")
    times = table.select(pl.datetime_range(time.min(), time.max(), step).alias("time"))
    grid = times.join(table.select(slices).unique(), how="cross") if slices else times
    silent = grid.join(table, on=["time", *slices], how="anti")
    none = _rate(0, length, level)
    fill = {"signal": "queries", "n": 0, "undefined": 0, "value": 0.0}
    fill |= {"low": none.low, "high": none.high, "method": none.method}
    lines = [pl.lit(value, dtype=BUCKET[name]).alias(name) for name, value in fill.items()]
    order = pl.col("signal").replace_strict({name: at for at, name in enumerate(SIGNALS)})
    return pl.concat([table, silent.with_columns(lines)]).sort("time", *slices, order)


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
