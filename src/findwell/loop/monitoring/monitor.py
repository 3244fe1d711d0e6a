"""`findwell.monitor.Monitor`: a store of traces, and what is seen in it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from findwell.core.errors import OptionError, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.loop.labels.estimates import ppi
from findwell.loop.monitoring.call_values import JudgedSample, slice_names, stored_signals
from findwell.loop.monitoring.check import SETTLE, check
from findwell.loop.monitoring.signals import KEY, References, find_signals
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.monitoring.time_buckets import buckets, with_silence
from findwell.loop.monitoring.times import DAY, bucket_length, in_utc, parse_moment, parse_period

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from findwell.core.progress import Report
    from findwell.evaluation.results.estimates import Estimates
    from findwell.loop.monitoring.alarm_report import CheckReport
    from findwell.loop.monitoring.alerts import Alert
    from findwell.loop.monitoring.store import Mark, StoreCounts
    from findwell.loop.monitoring.webhook import Webhook
    from findwell.measures import Measure

AT_ONCE = 100_000  # calls whose values are held at the same time, about
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
    expected_language: str
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

    @takes_options(SignalOptions)
    def signals(
        self, names: Iterable[str] | str | None = None, **options: Unpack[SignalOptions]
    ) -> pl.DataFrame:
        """Return one row per call: time, trace, span, kind, slices, and one column per signal.

        `names` are those of `findwell monitor show --list`, by default all that need nothing but
        the traces and are cheap. Null is undefined. `by` are columns or attributes to slice by,
        `since` and `until` limit the time: a datetime, its text, a period before now such as `7d`,
        or the name of a mark. `kind` is retriever or reranker: whose lists are looked at. `corpus`,
        `questions` (of the evaluation set, compared by `embedder`), `expected_language` and
        `date_key` are what some signals need; see docs/monitoring.md.

        Judged signals are given by `judge`, which sees the share `sample` of the traces, and at
        most `per_day` calls a day.
        """
        refuse_after_fork()
        return self._looking(names, options).frame(self.store)

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
        is faster. The options are those of `signals`.
        """
        refuse_after_fork()
        look = self._looking(names, options)
        how: Any = {"by": look.by, "level": level, "given": look.given, "kind": look.kind}
        length = DAY if every is None else bucket_length(every)
        frames = (
            part.frame(self.store).drop("trace", "span")
            for part in look.windows(self.store, length)
        )
        if every is None:
            return buckets(pl.concat(frames, how="diagonal"), None, **how)
        parts = [buckets(frame, every, **how) for frame in frames]
        table = pl.concat(parts)
        if len(parts) > 1 and "queries" in table["signal"]:
            table = with_silence(table, look.by, length, level)
        return table

    @takes_options(SignalOptions)
    def check(
        self,
        alerts: Iterable[str | Alert] | str,
        *,
        baseline: str | None = None,
        alpha: float = 0.05,
        run_length: int | None = None,
        rebaseline: bool = False,
        remember: bool = True,
        webhook: Webhook | None = None,
        period: str | None = None,
        season: str | None = None,
        settle: timedelta | str = SETTLE,
        **options: Unpack[SignalOptions],
    ) -> CheckReport:
        """Tell whether signals have changed, with alarms that you can check as often as you like.

        `alerts` are such as `"empty>2%"`, `"p95>800ms"` or `"context_relevancy drops by service"`.
        `baseline` is what those without a number compare with: `last-week`, `before:MARK`, a
        period, a number, or the folder of a saved result. `alpha` is the chance that an alarm is
        ever raised while nothing changes; with `run_length`, one comes after that many periods
        or more, on average. Calls of one `period` (such as `1h`) are one observation; by default
        the baseline shows how long it has to be, and `call` takes single calls for independent.
        `season` compares with the same hour of the `day` or the `week`. A period is looked at when
        it has been over for `settle`.

        State is kept in the store: an alarm is raised once and stays open until the signal is
        back; `rebaseline` starts again, and without `remember` nothing is saved. Messages for
        `webhook` are saved in the same step; its `deliver(monitor.store)` sends them.
        The options are those of `signals`; alerts name their slices themselves. See docs/alarms.md.
        """
        refuse_after_fork()
        look = self._looking((), options)
        if look.by:
            raise OptionError("an alert names its slices", fix='write "empty>2% by service"')
        return check(
            self.store,
            alerts,
            baseline=baseline,
            alpha=alpha,
            run_length=run_length,
            since=look.since,
            until=look.until,
            rebaseline=rebaseline,
            remember=remember,
            webhook=webhook,
            period=period,
            season=season,
            settle=settle,
            kind=look.kind,
            given=look.given,
            sample=look.sample,
        )

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

        Calls whose documents the traces do not tell are left out.
        """
        refuse_after_fork()
        rows = self.store.scan(self._moment(since), self._moment(until))
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
            expected_language=options.get("expected_language", "en"),
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
        with contextlib.suppress(OptionError):
            return parse_moment(given)
        try:
            return datetime.now(UTC) - parse_period(given)
        except OptionError:
            known = ", ".join(mark.name for mark in self.marks())
            raise OptionError(
                f"{given!r} is no point in time",
                fix="write 2026-05-31T14:00 (UTC), 7d for seven days ago, or the name of a mark"
                + (f": {known}" if known else ""),
            ) from None


@dataclass(frozen=True, slots=True)
class _Look:
    """Which signals of which calls are asked for."""

    names: list[str]
    by: list[str]
    since: datetime | None
    until: datetime | None
    kind: str
    given: References
    sample: JudgedSample | None
    progress: Report | None

    def frame(self, store: TraceStore) -> pl.DataFrame:
        """Return the values of the calls."""
        return stored_signals(
            store,
            self.names,
            since=self.since,
            until=self.until,
            by=self.by,
            kind=self.kind,
            given=self.given,
            sample=self.sample,
            progress=self.progress,
        )

    def windows(self, store: TraceStore, length: timedelta) -> Iterator[_Look]:
        """Yield what can be worked on one after another: some days, if buckets divide them.

        What depends on earlier calls, or on all calls of a day, is worked on as a whole.
        """
        counts = store.counts()
        judged = self.sample is not None and self.sample.per_day is not None
        history = any(each.history for each in find_signals(self.names))
        divides = DAY % length == timedelta(0)
        if judged or history or not divides or counts.first is None or counts.last is None:
            yield self
            return
        first = counts.first if self.since is None else max(in_utc(self.since), counts.first)
        last = counts.last if self.until is None else min(in_utc(self.until), counts.last)
        start = first.replace(hour=0, minute=0, second=0, microsecond=0)
        days = max(1, (counts.last - counts.first) // DAY + 1)
        step = max(1, AT_ONCE * days // max(1, counts.calls)) * DAY
        yield replace(self, until=_earlier(start + step, self.until))
        while (start := start + step) <= last:
            yield replace(self, since=start, until=_earlier(start + step, self.until))


def _earlier(one: datetime, other: datetime | None) -> datetime:
    return one if other is None else min(one, in_utc(other))
