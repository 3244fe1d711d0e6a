"""Values of calls summarised over hours, days or weeks, and before and after a mark.

An interval is one for a single look at a single bucket, and named: means have that of findwell's
results (`further-unit`), quantiles that of the ordered values, counts the score interval of
Poisson. Of many buckets some will miss; alarms use what holds at all times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.estimate import Estimate
from findwell.core.frames import pl
from findwell.io.read.traces.schema import RERANKER
from findwell.loop.monitoring.call_values import LABEL, VERDICT, slice_names, stored_signals
from findwell.loop.monitoring.signals import (
    NOTHING_GIVEN,
    SIGNALS,
    References,
    Signal,
    find_signals,
)
from findwell.loop.monitoring.times import HOUR, MICROSECOND, WEEK, bucket_length
from findwell.statistics.intervals import intervals, quantile_interval
from findwell.statistics.prediction_powered import FEW, ppi_mean
from findwell.statistics.unpaired import unpaired_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats
    from findwell.loop.monitoring.store import Mark, TraceStore

POISSON = "poisson-score"
PPI = "ppi"  # the mean of a judge, corrected by labels
BUCKET_START, COUNT = "\0bucket", "\0count"  # no attribute that calls are sliced by is so named
BUCKET: dict[str, pl.DataType] = {
    "signal": pl.String(),
    "n": pl.Int64(),
    "undefined": pl.Int64(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "method": pl.String(),
}


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
    table = summarise(frame, bucket_start(length), length, slices, level, given, kind)
    table = table.rename({BUCKET_START: "time"})
    return with_silence(table, slices, length, level) if "queries" in frame.columns else table


def bucket_start(length: timedelta) -> pl.Expr:
    """Return where the bucket of a time begins; weeks begin on Monday."""
    seconds, weeks = f"{int(length.total_seconds())}s", f"{length // WEEK}w"
    return pl.col("time").dt.truncate(seconds if length % WEEK else weeks)


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
    """A signal before a mark and after it, and how far they differ."""

    signal: Signal
    before: Estimate
    after: Estimate
    difference: Estimate  # without limits where only those of the two sides are known

    @property
    def verdict(self) -> str:
        """Whether it is better or worse; where this cannot be told, `higher` or `lower`.

        Empty if the interval of the difference has zero in it, or is unknown.
        """
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return ""
        moved = "higher" if low > 0 else "lower"
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
    last = counts.last + MICROSECOND
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
    before = frame.filter(pl.col("time") < mark.time), mark.time - first
    after = frame.filter(pl.col("time") >= mark.time), until - mark.time
    if not before[0].height or not after[0].height:
        return None
    rows = (_around(each, before, after) for each in wanted)
    return AroundMark(mark, first, until, [row for row in rows if row is not None])


def _around(
    signal: Signal, before: tuple[pl.DataFrame, timedelta], after: tuple[pl.DataFrame, timedelta]
) -> SignalAround | None:
    """Compare two sides: their calls, and how long they are."""
    one, other = (_of_side(signal, *side) for side in (before, after))
    if one.value is None and other.value is None:
        return None
    made = _plain(None, 0)
    if signal.summary == "mean":
        values = (side[signal.name].cast(pl.Float64).to_numpy() for side, _ in (before, after))
        made = unpaired_interval(*map(np.asarray, values), bounds=signal.bounds)
    unknown = one.value is None or other.value is None
    value = None if unknown else other.value - one.value  # type: ignore[operator]
    return SignalAround(signal, one, other, replace(made, value=value))


def _of_side(signal: Signal, side: pl.DataFrame, length: timedelta) -> Estimate:
    """Return the value of one side, of all calls together; a rate is over the whole of its time."""
    row = buckets(side.select("time", "kind", signal.name), None).row(0, named=True)
    # a side may begin or end with silence
    share = _whole(side["time"]) / length if signal.summary == "count" else 1.0
    value, low, high = (
        None if row[key] is None else row[key] * share for key in ("value", "low", "high")
    )
    return Estimate(value, low, high, 0.95, row["method"], row["n"], row["undefined"])
