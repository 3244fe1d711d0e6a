"""The calls behind a point of a chart: the worst first, each with the list that it retrieved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from findwell.loop.monitoring.signals import SIGNALS, find_signals
from findwell.loop.monitoring.stored_signals import stored_signals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.loop.monitoring.store import TraceStore

VALUE = "value of the signal"  # a column beside those of the traces
MICROSECOND = timedelta(microseconds=1)
TELLING = ("error", "empty", "latency", "duplicates", "top_score")  # by which a few are picked


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
    kind = found.kind or kind
    slices = [by] if by and only else []
    plain = [found.name] if found.per_call and not found.needs else []
    frame = stored_signals(store, plain, since=since, until=until, by=slices, kind=kind)
    frame = frame.filter(pl.col("kind") == kind)
    if slices:
        frame = frame.filter(pl.col(by) == only)
    value = pl.col(found.name).cast(pl.Float64) if plain else pl.lit(None, pl.Float64)
    frame = frame.select("time", "trace", "span", value.alias(VALUE))
    bad = pl.col(VALUE)
    if found.worse == "lower":
        bad = -bad
    elif found.worse == "either":
        bad = (bad - bad.median()).abs()
    chosen = frame.sort(bad, "time", descending=True, nulls_last=True).head(most)
    return CallsOfBucket(calls_by_key(store, chosen), frame.height)


def calls_by_key(store: TraceStore, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the calls of a table with time, trace and span, in its order, with its columns."""
    first, last = keys["time"].min(), keys["time"].max()
    if isinstance(first, datetime) and isinstance(last, datetime):
        calls = store.scan(first, last + MICROSECOND)
    else:  # there is no key
        calls = store.scan().head(0)
    found = calls.join(keys.lazy().select("trace", "span"), on=["trace", "span"], how="semi")
    return keys.join(found.collect().drop("time"), on=["trace", "span"], how="inner",
                     maintain_order="left")  # fmt: skip


def telling_calls(frame: pl.DataFrame, groups: Iterable[str], most: int) -> pl.DataFrame:
    """Pick a few calls of each group that say most: failed, empty, slowest, with duplicates.

    `frame` has time, trace, span, the groups and the signals of TELLING; the column `why` says by
    which signal a call was picked.
    """
    keys = list(groups)
    picked = []
    for name in TELLING:
        value = pl.col(name).cast(pl.Float64)
        kept = frame.filter(
            value > 0 if name in ("error", "empty", "duplicates") else value.is_not_null()
        )
        order = value if SIGNALS[name].worse == "higher" else -value
        ranked = kept.sort(order, "time", descending=True).group_by(keys, maintain_order=True)
        picked.append(
            ranked.head(most)
            .with_columns(pl.int_range(pl.len()).over(keys).alias("place"))
            .select(
                *keys,
                "time",
                "trace",
                "span",
                pl.lit(name).alias("why"),
                value.alias(VALUE),
                "place",
            )
        )
    by_name = {name: at for at, name in enumerate(TELLING)}
    table = pl.concat(picked).sort("place", pl.col("why").replace_strict(by_name))
    table = table.unique(["trace", "span"], keep="first", maintain_order=True)
    return table.group_by(keys, maintain_order=True).head(most).drop("place")
