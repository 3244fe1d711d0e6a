"""`findwell.monitor.Monitor`: a store of traces, and what is seen in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, Unpack

from findwell.core.errors import takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.loop.labels.estimates import ppi
from findwell.loop.monitoring.call_values import CallQuery, CallValues, SignalOptions, moment_of
from findwell.loop.monitoring.check import check
from findwell.loop.monitoring.signals import KEY
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.monitoring.time_buckets import buckets, with_silence
from findwell.loop.monitoring.times import DAY, bucket_length

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from datetime import datetime

    from findwell.evaluation.results.estimates import Estimates
    from findwell.loop.monitoring.call_values import Moment
    from findwell.loop.monitoring.store import Mark, StoreCounts
    from findwell.measures import Measure


@takes_options()
class Monitor:
    """A store of traces, read as signals: values per call, and summaries by time and slice.

    >>> import tempfile
    >>> with Monitor.open(tempfile.mkdtemp(), create=True) as monitor:
    ...     monitor.mark("v2.3 chunker").name, monitor.signals(["empty"]).height
    ('v2.3 chunker', 0)
    """

    def __init__(self, store: TraceStore) -> None:
        """Watch a store that is open."""
        self.store = store

    @classmethod
    def open(cls, store: str | os.PathLike[str] | TraceStore, *, create: bool = False) -> Self:
        """Open the folder of a store; with `create`, make one if it is missing."""
        refuse_after_fork()
        return cls(
            store if isinstance(store, TraceStore) else TraceStore.open(store, create=create)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    @takes_options(SignalOptions)
    def values(
        self, names: Iterable[str] | str | None = None, **options: Unpack[SignalOptions]
    ) -> CallValues:
        """Return one value per call and signal, as `Values`: alarms and summaries read these.

        `names` are those of `findwell monitor show --list`, by default all that need nothing but
        the traces and are cheap. `by` are columns or attributes to slice by, `since` and `until`
        limit the time: a datetime, its text, a period before now such as `7d`, or the name of a
        mark. `kind` is retriever or reranker: which calls to analyse. `corpus`, `questions` (of
        the evaluation set, compared by `embedder`), `expected_language` and `date_key` are what
        some signals need; `findwell monitor show --list` says which.

        Judged signals are given by `judge`, which sees the share `sample` of the traces, and at
        most `per_day` calls a day.
        """
        refuse_after_fork()
        return CallQuery.of(self.store, names, options).values(self.store)

    @takes_options(SignalOptions)
    def signals(
        self, names: Iterable[str] | str | None = None, **options: Unpack[SignalOptions]
    ) -> pl.DataFrame:
        """Return one row per call: time, trace, span, kind, slices, and one column per signal.

        Null is undefined. The options are those of `values`.
        """
        return self.values(names, **options).frame()

    @takes_options(SignalOptions)
    def buckets(
        self,
        names: Iterable[str] | str | None = None,
        every: str | None = "1h",
        *,
        level: float | None = 0.95,
        **options: Unpack[SignalOptions],
    ) -> pl.DataFrame:
        """Summarise signals by time: one row per bucket, slice and signal, with an interval.

        `every` is minute, hour, day, week, or such as 15m or 6h; None takes all calls together. The
        columns are time (the start of the bucket, UTC), the slices, signal, n, undefined, value,
        low, high and method, which names the interval. `level` None leaves intervals out, which
        is faster. The options are those of `values`.
        """
        refuse_after_fork()
        query = CallQuery.of(self.store, names, options)
        how: Any = {"by": query.by, "level": level, "given": query.given}
        length = DAY if every is None else bucket_length(every)
        parts = query.parts(self.store, length)
        if every is None:
            return buckets(CallValues.concat(parts), None, **how)
        tables = [buckets(part, every, **how) for part in parts]
        table = pl.concat(tables)
        if len(tables) > 1 and "queries" in table["signal"]:
            table = with_silence(table, [*query.by], length, level)
        return table

    check = check

    def ppi(
        self,
        labels: object,
        measures: Iterable[str | Measure] | str = "context_precision",
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        kind: str = "retriever",
        judge: object = None,
        corpus: object = None,
    ) -> Estimates:
        """Estimate measures of production from labels of some documents: `findwell.labels.ppi`.

        `labels` name a call by `TRACE-SPAN`, as a pool of `monitor.run()` does.
        """
        calls = self.run(since=since, until=until, kind=kind)
        return ppi(calls, labels, measures, judge=judge, corpus=corpus)

    def run(
        self, *, since: Moment | None = None, until: Moment | None = None, kind: str = "retriever"
    ) -> list[dict[str, Any]]:
        """Return calls as the records of a run, for `findwell.labels.pool` and others.

        Calls are left out if the traces do not say which documents they retrieved.
        """
        refuse_after_fork()
        rows = self.store.scan(moment_of(self.store, since), moment_of(self.store, until))
        rows = rows.filter(pl.col("kind") == kind, pl.col("docs").is_not_null()).sort(KEY)
        found = rows.select("trace", "span", "question", "docs", "texts", "time").collect()
        return [
            {
                "query": f"{row['trace']}-{row['span']}",
                "question": row["question"] or "",
                "time": row["time"].isoformat(),
                "retrieved": [
                    {"id": doc, "text": text or ""}
                    for doc, text in zip(row["docs"], row["texts"], strict=True)
                ],
            }
            for row in found.iter_rows(named=True)
        ]

    def mark(self, name: str, time: datetime | None = None) -> Mark:
        """Name a point in time, now by default: a release, a new index."""
        return self.store.mark(name, time)

    def marks(self) -> list[Mark]:
        """Return the marks, the earliest first."""
        return self.store.marks()

    def counts(self) -> StoreCounts:
        """Return what the store holds, and what has arrived."""
        return self.store.counts()
