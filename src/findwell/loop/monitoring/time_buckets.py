"""Values of calls summarised over hours, days or weeks, and before and after a mark.

An interval holds for a single look at a single bucket, and is named: means have that of findwell's
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
from findwell.loop.monitoring.call_values import LABEL, VERDICT, CallQuery, slice_names
from findwell.loop.monitoring.signals import (
    NOTHING_GIVEN,
    RAW_PREFIX,
    SIGNALS,
    References,
    Signal,
    find_signals,
)
from findwell.loop.monitoring.times import HOUR, MICROSECOND, WEEK, bucket_length
from findwell.statistics.intervals import intervals, quantile_interval
from findwell.statistics.prediction_powered import FEW_LABELS, ppi_mean
from findwell.statistics.unpaired import limits_from_groups, unpaired_interval
from findwell.statistics.verdicts import verdict_of_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.verdict import Verdict
    from findwell.loop.monitoring.call_values import CallValues
    from findwell.loop.monitoring.store import Mark, TraceStore

POISSON = "poisson-score"
PPI = "ppi"  # the mean of a judge, corrected by labels
# no attribute that calls are sliced by has these names
BUCKET_START, COUNT, ROW = "\0bucket", "\0count", "\0row"
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
    values: CallValues,
    every: str | None = "1h",
    *,
    by: Iterable[str] | str = (),
    level: float | None = 0.95,
    given: References = NOTHING_GIVEN,
) -> pl.DataFrame:
    """Summarise the values of calls by time, and by slices of them.

    One row per bucket, slice and signal: `time` is where the bucket starts (UTC), `n` counts the
    calls with a value and `undefined` those without; `low` and `high` are the limits of the
    interval that `method` names, null where there is none. `level` None leaves intervals out. A
    bucket without calls has a row for `queries` only, if it lies between others. `every` None takes
    all calls together. `given` has the corpus that could have been retrieved.
    """
    slices = slice_names(by)
    calls = values.queries
    length = _whole(calls["time"]) if every is None else bucket_length(every)
    start = pl.col("time").min() if every is None else bucket_start(length)
    groups = [BUCKET_START, *slices]
    ordered = calls.select("time", *slices, start.alias(BUCKET_START)).with_row_index(ROW)
    ordered = ordered.sort([*groups, "time"], maintain_order=True)
    counts = ordered.group_by(groups, maintain_order=True).len(COUNT)
    order, ends = ordered[ROW].to_numpy(), counts[COUNT].cum_sum().to_list()
    summary = Summary(values, level, given)
    rows = [
        (*key, signal.name, made.n, made.undefined, made.value, made.low, made.high, made.method)
        for key, first, last in zip(counts.select(groups).rows(), [0, *ends], ends, strict=False)
        for signal, made in summary.estimates(order[first:last], length)
    ]
    schema = {BUCKET_START: calls.schema["time"], **dict.fromkeys(slices, pl.String()), **BUCKET}
    table = pl.DataFrame(rows, schema=schema, orient="row").rename({BUCKET_START: "time"})
    counted = every is not None and any(each.summary == "count" for each in values.measures)
    return with_silence(table, slices, length, level) if counted else table


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


class Summary:
    """Values of calls, to be summarised over some of them at a time."""

    def __init__(self, values: CallValues, level: float | None, given: References) -> None:
        self._values, self._level = values, level
        empty = pl.Series([], dtype=pl.String)
        self._corpus = empty if given.corpus is None else given.corpus["doc"]
        self._columns = {each.name: values.column_of(each) for each in values.measures}
        self._means = [each for each in values.measures if each.summary == "mean"]
        self._bounds = [each.bounds for each in self._means]
        about = values.queries
        self._labels = {
            each.name: [about[RAW_PREFIX + each.name + end].to_numpy() for end in (LABEL, VERDICT)]
            for each in self._means
            if RAW_PREFIX + each.name + LABEL in about.columns
        }

    def estimates(self, rows: Ints, length: timedelta) -> Iterator[tuple[Signal, Estimate]]:
        """Yield each signal and its summary over the calls of some rows, in a length of time."""
        values, level = self._values, self._level
        part = {name: column[rows] for name, column in self._columns.items()}
        means: dict[str, Estimate] = {}
        if self._means and level is not None:
            table = np.column_stack([part[each.name] for each in self._means])
            made = intervals(table, level=level, bounds=self._bounds)
            means = {each.name: one for each, one in zip(self._means, made, strict=True)}
        for signal in values.measures:
            name, column = signal.name, part[signal.name]
            defined = column[~np.isnan(column)]
            if signal.summary == "count":
                yield signal, _rate(len(defined), length, level)
                continue
            if signal.needs_lists:
                lists = values.queries[RAW_PREFIX + "docs"].gather(rows).drop_nulls()
                yield signal, self._of_lists(signal, lists)
                continue
            if signal.summary != "mean":
                found = _quantile(defined, int(signal.summary[1:]) / 100, level)
            elif name in means:
                found = means[name]
            else:
                found = _plain(float(defined.mean()) if len(defined) else None, len(defined))
            if name in self._labels:
                label, verdict = (each[rows] for each in self._labels[name])
                found = _corrected(found, column, label, verdict, level)
            asked = values.asked
            there = len(rows) if asked is None else int(asked[values.run_of(signal), rows].sum())
            yield signal, replace(found, undefined=there - found.n)

    def _of_lists(self, signal: Signal, lists: pl.Series) -> Estimate:
        docs = lists.explode(empty_as_null=False)
        if signal.summary == "never":
            seen = float(docs.unique().is_in(self._corpus.implode()).sum())
            known = len(self._corpus)
            return _plain(1 - seen / known if known else None, len(lists))
        return _plain(gini(docs.value_counts()["count"].to_numpy()), len(lists))


def _corrected(
    judged: Estimate, values: Floats, labels: Floats, verdicts: Floats, level: float | None
) -> Estimate:
    """Correct the mean of a judge by what people said about some of the calls."""
    both = ~np.isnan(verdicts) & ~np.isnan(labels)
    if both.sum() < FEW_LABELS:
        return judged
    further = values[~np.isnan(values) & np.isnan(labels)]
    made = ppi_mean(labels[both], verdicts[both], further, level=level or 0.95)
    low, value, high = (
        None if each is None else min(max(each, 0.0), 1.0)
        for each in (made.low, made.value, made.high)
    )
    n = int(both.sum()) + len(further)
    return _plain(value, n) if level is None else Estimate(value, low, high, level, PPI, n)


def _plain(value: float | None, n: int) -> Estimate:
    return Estimate(value, None, None, 0.0, "", n)


def _quantile(defined: Floats, share: float, level: float | None) -> Estimate:
    if level is None:
        value = float(np.quantile(defined, share)) if len(defined) else None
        return _plain(value, len(defined))
    made = quantile_interval(defined, share, level)
    low = made.low
    if low is not None and made.value is not None:
        low = min(low, made.value)  # of few calls, the value lies between two of them
    return Estimate(made.value, low, made.high, level, made.method if made.n else "", made.n)


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
    return Estimate(count / hours, float(low), float(high), level, POISSON, count)


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


LONGEST_SIDE = timedelta(days=7)  # on either side of a mark


@dataclass(frozen=True, slots=True)
class SignalAround:
    """A signal before a mark and after it, and the verdict about the difference."""

    signal: Signal
    before: Estimate
    after: Estimate
    verdict: Verdict  # about means and quantiles; traffic goes up and down by itself


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
    longest: timedelta = LONGEST_SIDE,
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
    wanted = [each.name for each in find_signals(names) if each.summary != "never"]
    slices = [by] if by and only else []
    query = CallQuery(wanted, slices, first, until, kind)
    values = query.values(store).sliced(by, only or None)
    late = (values.queries["time"] >= mark.time).to_numpy()
    if late.all() or not late.any():
        return None
    summary = Summary(values, 0.95, NOTHING_GIVEN)
    before = summary.estimates(np.flatnonzero(~late), mark.time - first)
    after = summary.estimates(np.flatnonzero(late), until - mark.time)
    rows = [
        _around(values, signal, (one, other), late)
        for (signal, one), (_, other) in zip(before, after, strict=True)
        if one.value is not None or other.value is not None
    ]
    return AroundMark(mark, first, until, rows)


def _around(
    values: CallValues, signal: Signal, sides: tuple[Estimate, Estimate], late: Bools
) -> SignalAround:
    """Compare the calls of two sides."""
    before, after = sides
    made = _plain(None, 0)
    if signal.summary == "mean":
        column = values.column_of(signal)
        made = unpaired_interval(column[~late], column[late], bounds=signal.bounds)
    elif signal.summary[0] == "p" and (limits := limits_from_groups(before, after)) is not None:
        made = Estimate(None, *limits, 0.95, before.method, after.n)
    known = before.value is not None and after.value is not None
    difference = replace(made, value=after.value - before.value if known else None)  # type: ignore[operator]
    verdict = verdict_of_interval(difference, higher_is_better=signal.higher_is_better)
    return SignalAround(signal, before, after, verdict)
