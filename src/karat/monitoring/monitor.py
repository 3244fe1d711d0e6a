"""`karat.Monitor`: a store of traces, and what is seen in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import polars as pl

from karat.errors import OptionError
from karat.forks import refuse_after_fork
from karat.labels.estimates import ppi
from karat.monitoring.call_values import KEY, signal_frame, slice_names
from karat.monitoring.judged import JudgedSample, judged_frame
from karat.monitoring.references import References
from karat.monitoring.signals import find_signals
from karat.monitoring.store import TraceStore
from karat.monitoring.time_buckets import bucket_length, buckets, with_silence
from karat.monitoring.upkeep import parse_period

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from karat.measures import Measure
    from karat.monitoring.store import Mark, StoreCounts
    from karat.progress import Report
    from karat.results.estimates import Estimates

DAY = timedelta(days=1)
Moment = datetime | timedelta | str


class SignalOptions(TypedDict, total=False):
    """Which calls are looked at, and what they are compared with."""

    by: Iterable[str] | str
    since: Moment | None
    until: Moment | None
    kind: str
    corpus: object
    questions: object
    embedder: object
    language: str
    date_key: str | None
    judge: object
    sample: float
    per_day: int | None
    base_url: str | None
    progress: Report | None


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
        """Open the folder of a store; with `create`, make one where there is none."""
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

    def signals(
        self, names: Iterable[str] | str | None = None, **options: Unpack[SignalOptions]
    ) -> pl.DataFrame:
        """Return one row per call: time, trace, span, kind, slices, and one column per signal.

        `names` are those of `karat monitor show --list`, by default all that need nothing but the
        traces and are cheap. Null is undefined. `by` are columns or attributes to slice by, `since`
        and `until` limit the time: a datetime, its text, a period before now such as `7d`, or the
        name of a mark. `kind` is retriever or reranker: whose lists are looked at. `corpus`,
        `questions` (of the evaluation set, compared by `embedder`), `language` and `date_key`
        are what some signals need; see docs/monitoring.md.

        Judged signals are given by `judge`, which sees the share `sample` of the traces, and at
        most `per_day` calls a day.
        """
        refuse_after_fork()
        return self._looking(names, options).frame(self.store)

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
        is faster. The options are those of `signals`.
        """
        refuse_after_fork()
        look = self._looking(names, options)
        parts = []
        length = None if every is None else bucket_length(every)
        for since, until in look.windows(self.store, length):
            frame = look.within(since, until).frame(self.store)
            parts.append(buckets(frame, every, by=look.by, level=level, given=look.given))
        table = pl.concat(parts)
        if length is not None and len(parts) > 1 and "queries" in table["signal"]:
            table = with_silence(table, look.by, length, level)
        return table

    def ppi(
        self,
        labels: object,
        measures: Iterable[str | Measure] | str = "context_precision",
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        kind: str = "retriever",
        judge: object = "local",
        corpus: object = None,
    ) -> Estimates:
        """Estimate measures of production from labels of some documents, as `karat.ppi` does.

        `labels` name a call by `TRACE-SPAN`, as a pool of `monitor.run()` does.
        """
        calls = self.run(since=since, until=until, kind=kind)
        return ppi(calls, labels, measures, judge=judge, corpus=corpus)

    def run(
        self, *, since: Moment | None = None, until: Moment | None = None, kind: str = "retriever"
    ) -> list[dict[str, Any]]:
        """Return calls as the records of a run, for `karat.pool`, `karat.judge` and others."""
        refuse_after_fork()
        rows = self.store.scan(self._moment(since), self._moment(until))
        rows = rows.filter(pl.col("kind") == kind).sort(KEY)
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

    def _looking(self, names: Iterable[str] | str | None, options: SignalOptions) -> _Look:
        """Read options, once for all windows."""
        sample = None
        if (judge := options.get("judge")) is not None:
            sample = JudgedSample(
                judge, options.get("sample", 1.0), options.get("per_day"), options.get("base_url")
            )
        wanted = [each.name for each in find_signals(names)]
        given = References.of(
            corpus=options.get("corpus"),
            questions=options.get("questions"),
            embedder=options.get("embedder"),
            language=options.get("language", "en"),
            date_key=options.get("date_key"),
        )
        since, until = self._moment(options.get("since")), self._moment(options.get("until"))
        kind = options.get("kind", "retriever")
        by = slice_names(options.get("by", ()))
        return _Look(wanted, by, since, until, kind, given, sample, options.get("progress"))

    def _moment(self, given: Moment | None) -> datetime | None:
        """Return a point in time: as it is, its text, so long ago, or that of a mark."""
        if given is None or isinstance(given, datetime):
            return given
        if isinstance(given, timedelta):
            return datetime.now(UTC) - given
        named = [mark.time for mark in self.marks() if mark.name == given]
        if named:
            return named[-1]
        try:
            found = datetime.fromisoformat(given.strip())
        except ValueError:
            pass
        else:
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found
        try:
            return datetime.now(UTC) - parse_period(given)
        except OptionError:
            known = ", ".join(mark.name for mark in self.marks())
            raise OptionError(
                f"{given!r} is no point in time",
                fix="write 2026-05-31T14:00 (UTC), 7d for seven days ago, or the name of a mark"
                + (f": {known}" if known else ""),
            ) from None


class _Look:
    """Which signals of which calls are asked for."""

    def __init__(  # noqa: PLR0917
        self,
        names: list[str],
        by: list[str],
        since: datetime | None,
        until: datetime | None,
        kind: str,
        given: References,
        sample: JudgedSample | None,
        progress: Report | None,
    ) -> None:
        self.names, self.by = names, by
        self.since, self.until, self.kind = since, until, kind
        self.given, self.sample, self.progress = given, sample, progress

    def within(self, since: datetime | None, until: datetime | None) -> _Look:
        """Return the same for another time."""
        return _Look(
            self.names, self.by, since, until, self.kind, self.given, self.sample, self.progress
        )

    def windows(
        self, store: TraceStore, length: timedelta | None
    ) -> Iterator[tuple[datetime | None, datetime | None]]:
        """Yield the times that can be worked on one after another: days, if buckets divide them.

        What depends on earlier calls, or on all calls of a day, is worked on as a whole.
        """
        counts = store.counts()
        judged = self.sample is not None and self.sample.per_day is not None
        history = any(each.history for each in find_signals(self.names))
        divides = length is not None and DAY % length == timedelta(0)
        if judged or history or not divides or counts.first is None or counts.last is None:
            yield self.since, self.until
            return
        first = counts.first if self.since is None else max(_utc(self.since), counts.first)
        last = counts.last if self.until is None else min(_utc(self.until), counts.last)
        start = first.replace(hour=0, minute=0, second=0, microsecond=0)
        yield self.since, _earlier(start + DAY, self.until)
        while (start := start + DAY) <= last:
            yield start, _earlier(start + DAY, self.until)

    def frame(self, store: TraceStore) -> pl.DataFrame:
        """Return the values of the calls of this time."""
        wanted = find_signals(self.names)
        judged = [each.name for each in wanted if each.needs == "judge"]
        if judged and self.sample is None:
            self.given.require(find_signals(judged)[0])
        history = any(each.history for each in wanted)
        calls = store.scan(None if history else self.since, self.until)
        plain = [each.name for each in wanted if each.needs != "judge"]
        frame = signal_frame(calls, plain, by=self.by, kind=self.kind, given=self.given)
        if history and self.since is not None:
            frame = frame.filter(pl.col("time") >= _utc(self.since))
        if not judged or self.sample is None:
            return frame
        found = judged_frame(
            store.scan(self.since, self.until),
            judged,
            self.sample,
            by=self.by,
            kind=self.kind,
            given=self.given,
            progress=self.progress,
        )
        values = found.drop("kind", *self.by, strict=False)
        joined = frame.join(values, on=[*KEY], how="left", maintain_order="left")
        known = [name for name in self.names if name in joined.columns]
        head = [name for name in joined.columns if name not in known and name not in values.columns]
        labels = [name for name in values.columns if name not in (*KEY, *known)]
        return joined.select(*KEY, *head, *known, *labels)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _earlier(one: datetime, other: datetime | None) -> datetime:
    return one if other is None else min(one, _utc(other))
