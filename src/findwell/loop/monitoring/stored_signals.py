"""Signals of the calls of a store, judged ones included, each with the history that it needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from findwell.loop.monitoring.call_values import KEY, signal_frame, slice_names
from findwell.loop.monitoring.judged import JudgedSample, judged_frame
from findwell.loop.monitoring.references import NOTHING_GIVEN, References
from findwell.loop.monitoring.signals import find_signals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.progress import Report
    from findwell.loop.monitoring.store import TraceStore


def stored_signals(
    store: TraceStore,
    names: Iterable[str] | str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Iterable[str] | str = (),
    kind: str = "retriever",
    given: References = NOTHING_GIVEN,
    sample: JudgedSample | None = None,
    progress: Report | None = None,
) -> pl.DataFrame:
    """Return what `signal_frame` does of the calls of a period, and judged signals by `sample`.

    Signals that depend on earlier calls see those before the period, too.
    """
    wanted = find_signals(names)
    judged = [each.name for each in wanted if each.needs == "judge"]
    if judged and sample is None:
        given.require(find_signals(judged)[0])
    slices = slice_names(by, wanted)
    history = any(each.history for each in wanted)
    calls = store.scan(None if history else since, until)
    plain = [each.name for each in wanted if each.needs != "judge"]
    frame = signal_frame(calls, plain, by=slices, kind=kind, given=given)
    if history and since is not None:
        frame = frame.filter(pl.col("time") >= in_utc(since))
    if not judged or sample is None:
        return frame
    since = None if since is None else in_utc(since)
    begin = since
    if since is not None and sample.per_day is not None:  # the budget follows from the day before
        begin = _last_day_before(store, since, kind)
    found = judged_frame(
        store.scan(begin, until),
        judged,
        sample,
        by=slices,
        kind=kind,
        given=given,
        progress=progress,
        since=since,
    )
    values = found.drop("kind", *slices, strict=False)
    joined = frame.join(values, on=[*KEY], how="left", maintain_order="left")
    order = [each.name for each in wanted]
    keys = [name for name in frame.columns if name not in order]
    labels = [name for name in values.columns if name not in (*KEY, *order)]
    return joined.select(*keys, *order, *labels)


def _last_day_before(store: TraceStore, moment: datetime, kind: str) -> datetime:
    """Return when the last day with calls before that of a moment began, or else that day."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    calls = store.scan(None, midnight).filter(pl.col("kind") == kind)
    last = calls.select(pl.col("time").max().dt.truncate("1d")).collect().item()
    return last if isinstance(last, datetime) else midnight


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
