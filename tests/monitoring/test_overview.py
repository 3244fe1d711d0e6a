"""What pages show of a store: periods, the two sides of a mark, the calls that are picked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest

from findwell.loop.monitoring.alarm_report import known_alarms
from findwell.loop.monitoring.monitor import Monitor
from findwell.loop.monitoring.overview import (
    VALUE,
    OverviewChoice,
    overview,
    telling_calls,
    worst_calls,
)
from findwell.loop.monitoring.signals import SIGNALS
from findwell.loop.monitoring.store import is_trace_store
from findwell.loop.monitoring.time_buckets import around_mark
from findwell.show.monitor_page import calls_page, monitor_report
from findwell.statistics.unpaired import unpaired_interval
from tests.monitoring.made_calls import START, made_calls

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.loop.monitoring.store import TraceStore


@pytest.fixture
def filled(store: TraceStore) -> TraceStore:
    store.add(made_calls(240))
    return store


def test_before_and_after_are_those_of_two_looks(filled: TraceStore) -> None:
    mark = filled.mark("v2", START + timedelta(hours=30))
    found = around_mark(filled, mark, ["latency", "documents", "empty", "queries"])
    assert found is not None
    monitor = Monitor(filled)
    for since, until, side in (
        (found.since, mark.time, "before"),
        (mark.time, found.until, "after"),
    ):
        table = monitor.buckets(["latency", "documents", "empty"], None, since=since, until=until)
        whole = {row["signal"]: row for row in table.to_dicts()}
        for row in found.rows:
            if row.signal.name == "queries":
                continue
            told, expected_row = getattr(row, side), whole[row.signal.name]
            for key in ("value", "low", "high", "n", "undefined", "method"):
                assert getattr(told, key) == expected_row[key]
    values = [
        monitor.signals(["documents"], since=since, until=until)["documents"].to_numpy()
        for since, until in ((found.since, mark.time), (mark.time, found.until))
    ]
    documents = next(row for row in found.rows if row.signal.name == "documents")
    expected = unpaired_interval(*values, bounds=documents.signal.bounds)
    difference = documents.verdict.difference
    assert (difference.value, difference.low) == pytest.approx((expected.value, expected.low))
    assert documents.verdict.word == "unclear"
    queries = next(row for row in found.rows if row.signal.name == "queries")
    assert (queries.verdict.word, queries.verdict.difference.low) == ("unclear", None)
    hours = (mark.time - found.since) / timedelta(hours=1)
    assert queries.before.value == pytest.approx(queries.before.n / hours)


def test_neither_side_reaches_beyond_another_mark(filled: TraceStore) -> None:
    early = filled.mark("v1", START + timedelta(hours=20))
    mark = filled.mark("v2", START + timedelta(hours=30))
    late = filled.mark("v3", START + timedelta(hours=45))
    found = around_mark(filled, mark, ["empty"])
    assert found is not None
    assert (found.since, found.until) == (early.time, late.time)
    assert around_mark(filled, filled.mark("later", START + timedelta(days=90))) is None


def test_the_worst_calls_come_first(filled: TraceStore) -> None:
    until = START + timedelta(days=3)
    slow = worst_calls(filled, "latency", since=START, until=until, most=10)
    times = slow.calls[VALUE].to_list()
    assert slow.total == 240
    assert times == sorted(times, reverse=True)
    assert times == slow.calls["latency_ms"].to_list()
    few = worst_calls(filled, "documents", since=START, until=until, most=5)
    assert few.calls["docs"].list.len().to_list() == [0] * 5
    web = worst_calls(filled, "empty", since=START, until=until, by="service", only="web", most=999)
    assert set(web.calls["service"]) == {"web"}


def test_calls_that_tell_most_are_picked_once(filled: TraceStore) -> None:
    names = ["error", "empty", "latency", "duplicates", "top_score"]
    frame = Monitor(filled).signals(names, by="service")
    picked = telling_calls(frame, ["service"], 4)
    assert picked.group_by("service").len()["len"].to_list() == [4, 4]
    assert picked.select("trace", "span").is_duplicated().sum() == 0
    reasons = picked.filter(pl.col("why") == "error")
    assert frame.join(reasons, on="trace", how="semi")["error"].to_list() == [1.0] * reasons.height


def test_the_period_fits_the_store_whatever_clocks_say(filled: TraceStore) -> None:
    found = overview(Monitor(filled), OverviewChoice())
    assert found.look.period == "all"
    assert found.table.filter(signal="error")["n"].sum() == 240
    assert set(found.columns) >= {"service", "tenant.id"}
    wrong = made_calls(2, seed=1).with_columns(
        pl.Series("time", [START - timedelta(days=9000), START + timedelta(days=40_000)]),
        pl.Series("trace", ["f" * 32, "e" * 32]),
    )
    filled.add(wrong)
    again = overview(Monitor(filled), OverviewChoice(period="all"))
    assert again.table["time"].n_unique() < 500
    about = filled.calls_about(START, START + timedelta(hours=60))
    assert 0 < about <= filled.counts().calls


def test_alarms_are_known_until_resolved(filled: TraceStore, tmp_path: Path) -> None:
    monitor = Monitor(filled)
    monitor.check(["empty>0.1%"], until=START + timedelta(hours=60))
    alarms, watched = known_alarms(filled)
    assert [each.resolved for each in alarms] == [None]
    assert alarms[0].calls
    assert [each["outcome"] for each in watched] == ["alarm"]
    good = made_calls(240, seed=3).filter(pl.col("docs").list.len() > 0)
    later = [
        good.with_columns(
            pl.col("time") + timedelta(hours=70 * number),
            pl.col("trace").str.replace("^0", str(number)),
        )
        for number in range(1, 4)
    ]
    filled.add(pl.concat(later))
    monitor.check(["empty>0.1%"], until=START + timedelta(days=30))
    (alarm,), _ = known_alarms(filled)
    assert alarm.resolved is not None
    assert is_trace_store(filled.path)
    assert not is_trace_store(tmp_path)


def test_calls_that_do_not_tell_their_documents_are_shown_as_such(store: TraceStore) -> None:
    """As of OpenTelemetry's GenAI, unless contents are recorded."""
    lists = ("docs", "scores", "texts", "doc_metadata")
    untold = made_calls(20).with_columns(pl.lit(None, pl.List(pl.String)).alias(n) for n in lists)
    store.add(untold.with_columns(pl.col("scores").cast(pl.List(pl.Float64))))
    until = START + timedelta(days=3)
    found = worst_calls(store, "latency", since=START, until=until)
    page = calls_page("s", OverviewChoice(), SIGNALS["latency"], START, until, found, {})
    assert "does not say which documents" in page
    assert "Nothing was retrieved" not in page
    monitor = Monitor(store)
    assert "does not say which documents" in monitor_report(monitor, "s")
    assert monitor.run() == []
