"""Checks that are run again and again: what is deleted, forgotten, looked back at, or odd."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from findwell.core.errors import OptionError
from findwell.loop.monitoring.alarm_report import (
    ALARM,
    QUIET,
    RESOLVED,
    STATE,
    STILL_OPEN,
    UNDECIDED,
)
from findwell.loop.monitoring.alerts import find_baseline, parse_alert
from findwell.loop.monitoring.check import check
from findwell.loop.monitoring.detectors import at_line
from tests.monitoring.watched_calls import WEEK, at, made_calls, store_of

LONG_AGO = -10 * WEEK  # so that weeks of calls are not in the future


def test_a_check_run_twice_counts_calls_once(tmp_path: Path) -> None:
    alerts = ["empty>1%", "top_score changes", "p95 rises"]
    with store_of(tmp_path / "store", made_calls(WEEK + 300)) as store:
        known = {"baseline": "last-week", "until": at(WEEK + 300)}
        first, again = (check(store, alerts, **known).as_dict() for _ in range(2))  # type: ignore[arg-type]
        check(store, alerts, baseline="last-week", until=at(WEEK + 100))  # a look at the past
        assert check(store, alerts, **known).as_dict() == again == first  # type: ignore[arg-type]


def test_a_beginning_that_moves_is_not_a_new_chance(tmp_path: Path) -> None:
    """Checks of the last hours, every hour: each bets on other calls, with what money is left."""
    calls = made_calls(600, empty=0.05)
    with store_of(tmp_path / "a", calls) as store, store_of(tmp_path / "b", calls) as other:
        for until in range(50, 601, 50):
            span = {"since": at(until - 80), "until": at(until)}
            (looked,) = check(store, "empty>5%", **span).verdicts  # type: ignore[arg-type]
        (once,) = check(other, "empty>5%", **span).verdicts  # type: ignore[arg-type]
        (whole,) = check(other, "empty>5%", until=at(600), rebaseline=True).verdicts
        assert store.state(STATE)["tests"]["empty>5% |  | "]["seen"]["n"] == 49  # hours
    assert (looked.n, looked.now) == (once.n, once.now)
    assert looked.log_evidence < once.log_evidence
    assert looked.log_evidence <= whole.log_evidence + 1e-9


def test_days_that_were_deleted_are_not_bet_on_anew(tmp_path: Path) -> None:
    calls = made_calls(1200, range(900, 1200))
    with store_of(tmp_path / "whole", calls) as store:
        before = check(store, "empty>5%", until=at(900)).verdicts[0]
        whole = check(store, "empty>5%", until=at(940)).verdicts[0]
        state = store.state(STATE)
    assert before.outcome == QUIET
    state["tests"]["empty>5% |  | "].pop("open", None)
    with store_of(tmp_path / "rest", calls.tail(-600)) as store:
        anew = check(store, "empty>5%", until=at(940)).verdicts[0]
        with store.changing_states(STATE) as (saved,):
            saved.clear()
            saved.update(state)
        rest = check(store, "empty>5%", until=at(940)).verdicts[0]
        assert rest.log_evidence < anew.log_evidence
        assert rest.log_evidence <= whole.log_evidence + 1e-9
        assert check(store, "empty>5%", until=at(1200)).verdicts[0].outcome == ALARM
        assert store.state(STATE)["tests"]["empty>5% |  | "]["seen"]["n"] == 99


def test_a_slice_without_a_name_is_a_slice(tmp_path: Path) -> None:
    calls = made_calls(300)
    named = ["", "acme", "(none)"]
    values = [[{"key": "tenant", "value": named[number % 3]}] for number in range(300)]
    calls = calls.with_columns(attributes=pl.Series(values, dtype=calls.schema["attributes"]))
    with store_of(tmp_path / "store", calls) as store:
        report = check(store, "empty>2% by tenant", until=at(300))
    assert {each.slice: each.n for each in report.verdicts} == {
        "tenant=": 100, "tenant=(none)": 100, "tenant=acme": 100,
    }  # fmt: skip


def test_a_check_about_another_time_forgets_nothing(tmp_path: Path) -> None:
    """Alerts are forgotten that nobody has looked at for a month, not those of another month."""
    with store_of(tmp_path / "store", made_calls(400, range(100, 400))) as store:
        assert check(store, "empty>2%", until=at(400)).exit_code == 1
        check(store, "p95>800ms", until=datetime(2099, 1, 1, tzinfo=UTC))
        assert check(store, "empty>2%", until=at(400)).verdicts[0].outcome == STILL_OPEN


def test_a_baseline_is_forgotten_with_the_alerts_that_used_it(tmp_path: Path) -> None:
    with store_of(tmp_path / "store", made_calls(WEEK + 400)) as store:
        first = check(store, "empty rises", baseline="last-week", until=at(WEEK + 400))
        with store.changing_states(STATE) as (saved,):
            for each in saved["tests"].values():
                each["last"]["looked"] = (datetime.now(UTC) - timedelta(days=40)).isoformat()
        check(store, "empty>2%", until=at(WEEK + 400))
        later = at(WEEK + 400) + timedelta(days=7)
        anew = check(store, "empty rises", baseline="last-week", until=later)
    assert first.window is not None
    assert anew.window == tuple(each + timedelta(days=7) for each in first.window)


def test_rerankers_are_watched_by_themselves(tmp_path: Path) -> None:
    calls = made_calls(400, range(400))
    fine = made_calls(400, empty=0.0).with_columns(
        kind=pl.lit("reranker"), span=pl.lit("r") + pl.col("span")
    )
    with store_of(tmp_path / "store", calls, fine) as store:
        assert check(store, "empty>2%", until=at(400)).verdicts[0].outcome == ALARM
        reranked = check(store, "empty>2%", until=at(400), kind="reranker").verdicts[0]
        assert (reranked.outcome, reranked.now) == (QUIET, 0.0)
        assert check(store, "empty>2%", until=at(400)).verdicts[0].outcome == STILL_OPEN


def test_the_margin_of_a_number_counts_on_both_sides() -> None:
    bets = at_line(parse_alert("empty changes by 0.05"), 0.1)
    assert [(each.side, round(each.mean, 9)) for each in bets.bounds] == [
        ("below", 0.05), ("above", 0.15),
    ]  # fmt: skip
    latency = at_line(parse_alert("p95 changes by 10%"), 400.0)
    assert [each.beyond for each in latency.bounds] == pytest.approx([360.0, 440.0])


def test_numbers_out_of_range(tmp_path: Path) -> None:
    with store_of(tmp_path / "store", made_calls(200)) as store:
        with pytest.raises(OptionError, match="between 0 and 1, and the baseline is 70"):
            check(store, "empty rises", baseline="70", until=at(200))
        end = check(store, "empty rises by 0.1", baseline="95%", until=at(200)).verdicts[0]
        assert end.outcome == UNDECIDED
        assert "limit of this signal" in end.reason
    for wrong in ("1e999", "-1e999%"):
        with pytest.raises(OptionError, match="is too large"):
            find_baseline(wrong, at(0))
    with pytest.raises(OptionError, match="too large"):
        parse_alert("latency>1e400ms")


def test_a_baseline_is_over_and_has_calls_before_it_is_kept(tmp_path: Path) -> None:
    calls = made_calls(WEEK + 400)
    with store_of(tmp_path / "store", calls.tail(400)) as store:
        store.mark("next release", at(WEEK + 5000))
        for future in ("before:next release", "2026-11-02/2027-01-01"):
            with pytest.raises(OptionError, match="lasts until 20"):
                check(store, "empty rises", baseline=future, until=at(WEEK + 400))
        assert check(store, "empty rises", baseline="last-week", until=at(WEEK + 1)).exit_code == 3
        later = at(WEEK + 400) + timedelta(days=7)  # now last week is another, which has calls
        found = check(store, "empty rises", baseline="last-week", until=later)
        assert found.verdicts[0].before is not None


def test_a_resolved_alarm_tells_where_the_signal_is_now(tmp_path: Path) -> None:
    """Not the mean of the calls since it was raised, of which many were still broken."""
    calls = made_calls(1000, range(200, 600))
    with store_of(tmp_path / "store", calls) as store:
        assert check(store, "p95>800ms", until=at(300)).verdicts[0].outcome == ALARM
        (back,) = check(store, "p95>800ms", until=at(900)).verdicts
        assert back.outcome == RESOLVED
        assert 250 <= back.n <= 320
        assert back.now == pytest.approx(470, abs=80)
        (anew,) = check(store, "p95>800ms", until=at(1000)).verdicts
        assert (anew.outcome, anew.n) == (QUIET, 112)  # from the last period on


def test_a_value_does_not_depend_on_what_other_alerts_are_sliced_by(tmp_path: Path) -> None:
    """What compares a call with earlier ones does so in its own slices, not in those of others."""
    count = range(300)
    calls = made_calls(300).with_columns(
        question=pl.Series([f"question {number % 20}" for number in count]),
        docs=pl.Series([[f"d{(number * 7 + rank) % 13}" for rank in range(5)] for number in count]),
    )
    known = {"until": at(300), "remember": False}
    alerts = ["churn>90%", "churn>90% by tenant", "unseen>90% by tenant, service"]
    with store_of(tmp_path / "store", calls) as store:
        alone = [each for alert in alerts for each in check(store, alert, **known).verdicts]  # type: ignore[arg-type]
        company = check(store, [*alerts, "empty>2% by session"], **known).verdicts  # type: ignore[arg-type]
    assert [(each.slice, each.n, each.now) for each in alone] == [
        (each.slice, each.n, each.now) for each in company[: len(alone)]
    ]
    assert alone[0].now != pytest.approx(alone[1].now)


def test_an_open_alarm_stays_though_its_slice_has_few_calls_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("findwell.loop.monitoring.check.MOST_SLICES", 1)
    calls = made_calls(300, range(300))
    of = pl.col("attributes").list.first().struct.field("value")
    acme, others = calls.filter(of == "acme"), made_calls(300, first=300).filter(of != "acme")
    with store_of(tmp_path / "store", acme) as store:
        first = check(store, "empty>3% by tenant", until=at(300))
        assert [(each.slice, each.outcome) for each in first.verdicts] == [("tenant=acme", ALARM)]
        store.add(others)
        for since in (None, at(300)):
            report = check(store, "empty>3% by tenant", since=since, until=at(600))
            found = {each.slice: each.outcome for each in report.verdicts}
            assert found["tenant=acme"] == STILL_OPEN
            assert report.exit_code == 1
        assert report.notes[0].startswith("empty>3% by tenant: 1 further values")
        assert len(report.verdicts) == 2


def test_documents_do_not_look_new_because_days_were_deleted(tmp_path: Path) -> None:
    calls = made_calls(1500).with_columns(
        docs=pl.Series([[f"d{(number * 7) % 100}"] for number in range(1500)])
    )
    known = {"baseline": f"{at(200).isoformat()}/{at(1000).isoformat()}", "until": at(1500)}
    known["period"] = "1h"
    with store_of(tmp_path / "store", calls) as store:
        assert check(store, "unseen changes", **known).verdicts[0].outcome == QUIET  # type: ignore[arg-type]
        state = store.state(STATE)
    for deleted, outcome in ((200, QUIET), (1100, UNDECIDED)):  # before the baseline, and all of it
        with store_of(tmp_path / f"{deleted}", calls.tail(-deleted)) as store:
            with store.changing_states(STATE) as (saved,):
                saved.update(state)
            (found,) = check(store, "unseen changes", **known).verdicts  # type: ignore[arg-type]
        assert (found.outcome, found.before) == (outcome, 0.0)
    assert "were deleted" in found.reason


def test_an_alarm_tells_the_number_that_has_changed(tmp_path: Path) -> None:
    """Of one call in five that finds nothing the median knows nothing."""
    calls = made_calls(WEEK + 600, range(WEEK, WEEK + 600))
    known = {"until": at(WEEK + 600), "remember": False}
    with store_of(tmp_path / "store", calls) as store:
        (found,) = check(store, "documents drops", baseline="last-week", **known).verdicts  # type: ignore[arg-type]
        (line,) = check(store, "documents drops", baseline="6", since=at(WEEK), **known).verdicts  # type: ignore[arg-type]
    after = calls.filter(pl.col("time") >= found.since)["docs"].list.len()
    assert found.outcome == ALARM
    assert found.now == pytest.approx(after.mean())
    assert found.before == pytest.approx(calls.head(WEEK)["docs"].list.len().mean())
    assert found.difference is not None
    assert found.difference < -0.7
    assert (line.outcome, line.before, line.now) == (ALARM, 6.0, 5.0)  # a number is of the median


def test_periods_are_looked_at_when_they_are_over_and_settled(tmp_path: Path) -> None:
    calls = made_calls(240, range(240))
    with store_of(tmp_path / "store", calls) as store:
        found = {
            (period, settle): check(
                store, "p95>800ms", until=at(200), period=period, settle=settle, remember=False
            ).verdicts[0].periods
            for period in ("30m", None, "6h")
            for settle in ("0", timedelta(hours=2), "10m")
        }  # fmt: skip
    assert list(found.values()) == [33, 29, 33, 16, 14, 16, 2, 2, 2]
    assert calls["time"][200] - calls["time"][0] == timedelta(hours=16, minutes=40)


def test_calls_that_depend_on_each_other_make_periods_longer(tmp_path: Path) -> None:
    """With one week of days that differ there is nothing to compare with, and the check says so."""
    days = np.random.default_rng(4).normal(0.3, 0.12, 40)
    calls = made_calls(WEEK * 5, first=LONG_AGO)
    of = np.clip(days[np.arange(calls.height) * 5 // 1440], 0.02, 0.9)
    empty = np.random.default_rng(5).random(calls.height) < of
    lists = {
        name: pl.when(pl.Series(empty)).then(pl.col(name).list.head(0)).otherwise(pl.col(name))
        for name in ("docs", "scores", "texts", "doc_metadata")
    }
    calls = calls.with_columns(**lists)
    with store_of(tmp_path / "store", calls) as store:
        week = f"{at(LONG_AGO).isoformat()}/{at(LONG_AGO + WEEK).isoformat()}"
        (short,) = check(
            store, "empty rises", baseline=week, until=at(LONG_AGO + 2 * WEEK)
        ).verdicts
        month = f"{at(LONG_AGO).isoformat()}/{at(LONG_AGO + 4 * WEEK).isoformat()}"
        (longer,) = check(
            store, "empty rises", baseline=month, until=at(LONG_AGO + 5 * WEEK)
        ).verdicts
    assert short.outcome == UNDECIDED
    assert short.reason.startswith("the baseline has 7 periods of 1d, too few")
    assert (longer.outcome, longer.period, longer.periods) == (QUIET, "1d", 6)


@pytest.mark.parametrize(("season", "weeks"), [("day", 1), ("week", 3)])
def test_a_season_is_no_change(tmp_path: Path, season: str, weeks: int) -> None:
    """The same hours of other days, or weeks, are what a call is compared with."""
    calls = made_calls(WEEK * (weeks + 1), first=LONG_AGO, empty=0.0)
    hour = np.arange(calls.height) // 12
    slow = hour % 24 < 8 if season == "day" else hour % 168 >= 120
    factor = pl.Series(np.where(slow, 3.0, 1.0))
    calls = calls.with_columns(latency_ms=pl.col("latency_ms") * factor)
    known = {
        "baseline": f"{at(LONG_AGO).isoformat()}/{at(LONG_AGO + weeks * WEEK).isoformat()}",
        "remember": False,
    }
    later = at(LONG_AGO + (weeks + 1) * WEEK)
    with store_of(tmp_path / "store", calls) as store:
        (found,) = check(store, "latency rises", until=later, season=season, **known).verdicts  # type: ignore[arg-type]
        assert found.outcome == QUIET
        assert found.period in ("1h", "3h", "6h")
        with pytest.raises(OptionError, match="unknown season"):
            check(store, "latency rises", season="year", **known)  # type: ignore[arg-type]
        if season == "week":
            known["baseline"] = f"{at(LONG_AGO).isoformat()}/{at(LONG_AGO + WEEK).isoformat()}"
            (short,) = check(store, "latency rises", season="week", **known).verdicts  # type: ignore[arg-type]
            assert (
                short.reason == "season=week needs a baseline of at least two weeks; more is better"
            )


@pytest.mark.slow
def test_real_checks_keep_their_promise_and_find_what_breaks(tmp_path: Path) -> None:
    """Every 50 calls a check, with a baseline of a week: its own chances are paid for as well."""
    alerts = ["empty rises", "top_score changes", "p95 rises by tenant"]
    false, late = 0, []
    for run in range(12):
        first = -WEEK
        calls = made_calls(WEEK + 1000, range(700, 1000), first=first, seed=100 + run, empty=0.05)
        baseline = f"{at(first).isoformat()}/{at(0).isoformat()}"
        with store_of(tmp_path / f"{run}", calls) as store:
            for until in range(50, 1001, 50):
                report = check(store, alerts, baseline=baseline, until=at(until), alpha=0.2)
                if report.news:
                    false += until <= 700
                    late += [until - 700] if until > 700 else []
                    break
    assert false <= 3  # 20 % of them, where fewer are usual
    assert false + len(late) >= 11
    assert sorted(late)[len(late) // 2] <= 200
