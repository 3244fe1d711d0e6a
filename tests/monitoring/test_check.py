"""Checks of a store: alarms that come, stay, are resolved; state, families, slices, exit codes."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError
from findwell.loop.monitoring.alarm_report import (
    ALARM,
    QUIET,
    RESOLVED,
    STATE,
    STILL_OPEN,
    UNDECIDED,
    prometheus_text,
)
from findwell.loop.monitoring.check import check
from findwell.loop.monitoring.store import TraceStore
from findwell.show import render
from findwell.show.gate import as_junit
from tests.monitoring.watched_calls import STEP, WEEK, at, made_calls, store_of

BREAK = WEEK + 600
ALERTS = ("empty>3%", "empty rises", "p95>800ms", "top_score drops", "duplicates changes")


@pytest.fixture(scope="module")
def calls() -> pl.DataFrame:
    """A week as usual and two days, then a day of broken retrieval, then two days as usual."""
    return made_calls(WEEK + 1500, range(BREAK, BREAK + 300))


def outcomes(store: TraceStore, until: int, *alerts: str, **options: object) -> dict[str, str]:
    options = {"baseline": "last-week", "until": at(until), **options}
    found = check(store, alerts or ALERTS, **options)  # type: ignore[arg-type]
    return {f"{each.alert} {each.slice}".strip(): each.outcome for each in found.verdicts}


def test_an_alarm_comes_stays_and_is_resolved(tmp_path: Path, calls: pl.DataFrame) -> None:
    with store_of(tmp_path / "store", calls) as store:
        assert set(outcomes(store, BREAK).values()) == {QUIET}
        report = check(store, ALERTS, baseline="last-week", until=at(BREAK + 200))
        found = {each.alert: each for each in report.verdicts}
        assert {name: each.outcome for name, each in found.items()} == {
            "empty>3%": ALARM,
            "empty rises": ALARM,
            "p95>800ms": ALARM,
            "top_score drops": ALARM,
            "duplicates changes": QUIET,
        }
        assert report.exit_code == 1
        words = {name: each.verdict.word for name, each in found.items()}
        assert words.pop("duplicates changes") == "unclear"
        assert set(words.values()) == {"worse"}
        assert {each.alert: each.as_dict()["verdict"] for each in report.news} == words
        assert all(each.verdict.p <= 0.05 for each in report.news)  # type: ignore[operator]
        for each in report.news:
            assert each.since is not None
            off = abs(each.since - at(BREAK))
            assert off <= 24 * STEP  # two periods
            assert len(each.calls) == 5
            assert all(call.time >= each.since for call in each.calls)
            assert all((call.question or "").startswith("secret question") for call in each.calls)
        empty = found["empty rises"]
        assert empty.before == pytest.approx(0.01, abs=0.005)
        assert empty.now == pytest.approx(0.2, abs=0.08)
        assert empty.mean.value is not None
        assert empty.mean.value > 0.8 > empty.line == 0.5  # type: ignore[operator] # of ranks
        assert empty.watched.startswith("the rank of the mean among 56 periods of the baseline")
        assert empty.period == "3h"
        assert found["p95>800ms"].watched == "the share of calls with latency_p95 > 800 ms"
        assert found["p95>800ms"].line == 0.05
        again = outcomes(store, BREAK + 250)
        assert again["empty>3%"] == again["top_score drops"] == STILL_OPEN
        later = outcomes(store, BREAK + 650)
        assert later["empty>3%"] == later["top_score drops"] == later["p95>800ms"] == RESOLVED
        last = outcomes(store, BREAK + 900)
        assert last.pop("empty rises") == RESOLVED  # in periods of three hours it takes longer
        assert set(last.values()) <= {QUIET, UNDECIDED}
        (past,) = store.state(STATE)["tests"]["empty>3% |  | last-week"]["past"]
        assert past["resolved"] == at(BREAK + 650).isoformat()


def test_a_verdict_says_higher_or_lower_where_no_direction_is_good(tmp_path: Path) -> None:
    calls = made_calls(WEEK + 400, range(WEEK, WEEK + 400))
    alerts = ["score_gap changes", "empty drops", "top_score drops"]
    with store_of(tmp_path / "store", calls) as store:
        report = check(store, alerts, baseline="last-week", until=at(WEEK + 400), run_length=100)
    found = {each.alert: each.verdict for each in report.verdicts}
    assert found["score_gap changes"].word in ("higher", "unclear")
    assert (found["empty drops"].word, found["top_score drops"].word) == ("unclear", "worse")
    assert {each.p for each in found.values()} == {None}  # a run length has no probability


def test_a_check_is_the_same_however_calls_arrived(tmp_path: Path, calls: pl.DataFrame) -> None:
    shuffled = calls.sample(fraction=1.0, shuffle=True, seed=3)
    renamed = shuffled.with_columns(docs=pl.col("docs").list.eval("z" + pl.element()))
    reports = []
    for name, order in (("a", calls), ("b", renamed)):
        half = order.height // 2
        with store_of(tmp_path / name, order.head(half), order.tail(-half)) as store:
            for until in (BREAK + 90, BREAK + 150):
                report = check(store, ALERTS, baseline="last-week", until=at(until))
            reports.append(report.as_dict())
    assert reports[0] == reports[1]


def test_a_family_needs_more_than_one_alert(tmp_path: Path) -> None:
    """Slices are found by themselves; the threshold grows with their number."""
    broken = made_calls(WEEK + 900, range(BREAK, BREAK + 300), tenant="acme")
    with store_of(tmp_path / "store", broken) as store:
        report = check(
            store,
            ["empty rises by tenant", "empty>3%"],
            baseline="last-week",
            until=at(BREAK + 300),
        )
        found = {each.slice: each for each in report.verdicts}
        assert found["tenant=acme"].outcome == ALARM
        assert found["tenant=globex"].outcome == found["tenant=initech"].outcome == QUIET
        alone = check(store, "empty>3%", until=at(BREAK), since=at(WEEK))
    assert report.verdicts[0].log_needed == pytest.approx(
        alone.verdicts[0].log_needed + 1.386, abs=0.01
    )


def test_what_is_needed_is_what_decides(tmp_path: Path) -> None:
    """Where many slices break at once, each takes less: none is raised below what is shown."""
    alone = math.log(3 / 0.05)
    for tenant, until, raised in (("acme", 98, 1), (None, 50, 3)):
        with store_of(tmp_path / str(tenant), made_calls(98, range(98), tenant=tenant)) as store:
            report = check(store, "p95>800ms by tenant", until=at(until), remember=False)
        assert len(report.raised) == raised
        for each in report.verdicts:
            assert (each.log_evidence >= each.log_needed) == (each in report.raised)
            more = 0 if each in report.raised else 1
            assert each.log_needed == pytest.approx(alone - math.log(raised + more))
    assert min(each.log_evidence for each in report.raised) < alone


def test_too_few_calls_cannot_decide(tmp_path: Path, calls: pl.DataFrame) -> None:
    with store_of(tmp_path / "store", calls) as store:
        soon = check(store, ["empty rises", "p95>800ms"], baseline="last-week", until=at(WEEK + 1))
        assert [each.outcome for each in soon.verdicts] == [UNDECIDED] * 2
        assert soon.exit_code == 3
        report = check(
            store, ["empty rises"], baseline="2020-01-01/2020-01-02", until=at(WEEK + 500)
        )
        assert report.exit_code == 3
        assert "too few values" in report.verdicts[0].reason
        assert "2026-11-02" in report.notes[0]
    with store_of(tmp_path / "none") as store:
        report = check(store, "empty>2%")
        assert report.exit_code == 3
        assert report.verdicts[0].reason == "there are no calls to look at"
        json.dumps(report.as_dict(), allow_nan=False)


def test_a_slice_with_few_calls_fails_no_test(tmp_path: Path, calls: pl.DataFrame) -> None:
    """JUnit and the exit code say the same."""
    new = calls.filter(pl.col("time") >= at(BREAK - 2), pl.col("time") < at(BREAK)).with_columns(
        attributes=pl.lit([{"key": "tenant", "value": "new"}])
    )
    known = calls.filter(pl.col("time") < at(BREAK - 2))
    with store_of(tmp_path / "store", known, new) as store:
        some = check(store, "empty rises by tenant", baseline="last-week", until=at(BREAK))
        none = check(store, "empty rises by tenant", baseline="last-week", until=at(WEEK + 3))
    assert [each.outcome for each in some.verdicts] == [QUIET] * 3 + [UNDECIDED]
    assert some.exit_code == 0
    assert 'failures="0" errors="0"' in as_junit(some.as_gate())
    assert "undecided; the baseline has too few values" in as_junit(some.as_gate())
    assert none.exit_code == 3
    assert 'failures="0" errors="3"' in as_junit(none.as_gate())


def test_what_is_at_the_end_of_its_range_cannot_go_beyond(
    tmp_path: Path, calls: pl.DataFrame
) -> None:
    with store_of(tmp_path / "store", calls) as store:
        report = check(store, "duplicates drops", baseline="last-week", until=at(BREAK))
    assert report.exit_code == 3
    assert "limit of this signal" in report.verdicts[0].reason


def test_the_baseline_is_kept_until_it_is_asked_for_anew(
    tmp_path: Path, calls: pl.DataFrame
) -> None:
    with store_of(tmp_path / "store", calls) as store:
        first = check(store, "empty rises", baseline="last-week", until=at(BREAK + 250))
        assert first.exit_code == 1
        week = timedelta(days=7)
        later = check(store, "empty rises", baseline="last-week", until=at(BREAK + 250) + week)
        assert later.window == first.window
        anew = check(
            store,
            "empty rises",
            baseline="last-week",
            until=at(BREAK + 250) + week,
            rebaseline=True,
        )
        assert anew.window == tuple(each + week for each in first.window or ())
        assert not anew.raised


def test_a_baseline_whose_calls_were_deleted_is_remembered(
    tmp_path: Path, calls: pl.DataFrame
) -> None:
    alerts = ["empty rises", "top_score drops", "p95 rises", "documents drops"]
    with store_of(tmp_path / "store", calls) as store:
        before = check(store, alerts, baseline="last-week", until=at(BREAK))
        state = store.state(STATE)
    kept = calls.filter(pl.col("time") >= at(WEEK))
    with store_of(tmp_path / "rest", kept) as store:
        with store.changing_states(STATE) as (saved,):
            saved.update(state)
        after = check(store, alerts, baseline="last-week", until=at(BREAK))
    assert after.as_dict() == before.as_dict() | {"notes": list(after.notes)}


def test_numbers_and_results_as_baselines(tmp_path: Path, calls: pl.DataFrame) -> None:
    with store_of(tmp_path / "store", calls) as store:
        found = outcomes(store, BREAK + 150, "empty rises", baseline="3%")
        assert found == {"empty rises": ALARM}
        quiet = outcomes(store, BREAK + 150, "empty rises by 0.3", baseline="3%")
        assert quiet == {"empty rises by 0.3": QUIET}
        below = check(store, "p95 rises by 50%", baseline="last-week", until=at(BREAK + 200))
        assert below.exit_code == 1
        result = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, measures="RR")
        result.save(tmp_path / "saved")
        with pytest.raises(FindwellError, match="no measure empty"):
            check(store, "empty rises", baseline=str(tmp_path / "saved"), until=at(BREAK))
        for options in (
            {},
            {"baseline": "last-week", "alpha": 1.5},
            {"baseline": "last-week", "run_length": 1},
            {"baseline": "last-week", "since": at(10)},
        ):
            with pytest.raises(FindwellError):
                check(store, "empty rises", until=at(BREAK), **options)  # type: ignore[arg-type]


def test_limits_of_very_many_calls(
    tmp_path: Path, calls: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for most in (100_000, 10):
        monkeypatch.setattr("findwell.loop.monitoring.check.CHEAP_LIMIT_PERIODS", most)
        with store_of(tmp_path / str(most), calls) as store:
            (verdict,) = check(store, "empty>3%", since=at(WEEK), until=at(BREAK)).verdicts
        low, high = verdict.mean.low, verdict.mean.high
        assert low is not None
        assert high is not None
        assert low < 0.01 < high
        found.append(high - low)
    assert found[0] < found[1]  # hedged ones are tighter


def test_run_lengths(tmp_path: Path, calls: pl.DataFrame) -> None:
    with store_of(tmp_path / "store", calls) as store:
        found = outcomes(store, BREAK + 250, "empty rises", "top_score drops", run_length=500)
        assert found == {"empty rises": ALARM, "top_score drops": ALARM}


def test_two_checks_at_once_raise_an_alarm_once(tmp_path: Path, calls: pl.DataFrame) -> None:
    """Another process has raised it after this one has read the state."""
    with store_of(tmp_path / "store", calls) as store:
        first = check(store, "empty>3%", until=at(BREAK + 150))

        class Early(TraceStore):
            def state(self, name: str) -> object:
                return {} if name == STATE else super().state(name)

        with Early.open(tmp_path / "store") as other:
            second = check(other, "empty>3%", until=at(BREAK + 150))
    assert [each.outcome for each in first.verdicts] == [ALARM]
    assert [each.outcome for each in second.verdicts] == [STILL_OPEN]
    assert not second.news


def test_a_check_keeps_what_another_has_raised_or_resolved_meanwhile(
    tmp_path: Path, calls: pl.DataFrame
) -> None:
    """One that began earlier, and saw fewer calls, must not take its word back."""
    states: list[object] = []

    class Early(TraceStore):
        def state(self, name: str) -> object:
            return deepcopy(states[-1]) if name == STATE else super().state(name)

    def late(until: int) -> str:
        with Early.open(tmp_path / "store") as other:
            (verdict,) = check(other, "empty>3%", until=at(until)).verdicts
        return verdict.outcome

    with store_of(tmp_path / "store", calls) as store:
        states.append(store.state(STATE))
        assert check(store, "empty>3%", until=at(BREAK + 150)).exit_code == 1
        assert late(BREAK) == QUIET
        states.append(store.state(STATE))
        assert check(store, "empty>3%", until=at(BREAK + 160)).verdicts[0].outcome == STILL_OPEN
        assert check(store, "empty>3%", until=at(BREAK + 650)).verdicts[0].outcome == RESOLVED
        assert late(BREAK + 650) == QUIET  # it is no news a second time
        assert late(BREAK + 160) == STILL_OPEN
        (kept,) = store.state(STATE)["tests"].values()
    assert "open" not in kept
    assert len(kept["past"]) == 1


def test_texts_tables_junit_and_prometheus(tmp_path: Path, calls: pl.DataFrame) -> None:
    hostile = calls.with_columns(
        attributes=pl.lit([{"key": "tenant", "value": 'a"b\n<script>|\x1b[31m'}]),
    )
    with store_of(tmp_path / "store", hostile) as store:
        report = check(
            store,
            ["empty rises by tenant", "p95>800ms"],
            baseline="last-week",
            until=at(BREAK + 250),
        )
        text = prometheus_text(store)
    rest = 'slice="",baseline="last-week",kind="retriever"}'
    assert f'findwell_alarm_open{{alert="p95>800ms",signal="latency_p95",{rest} 1.0' in text
    assert 'slice="tenant=a\\"b\\n<script>' in text
    assert text.count("\n") == sum(bool(line) for line in text.splitlines())
    table = render(report, "table", width=80)
    assert "\x1b" not in table
    assert max(map(len, table.splitlines())) <= 80
    assert "since 2026-11-1" in table
    assert "look at" in table
    assert "look at" in repr(report)  # Python prints what the terminal shows
    assert "alerts: alarm" in repr(report)
    assert "<script>" not in render(report, "markdown")
    assert "<script>" not in as_junit(report.as_gate())
    assert 'failures="2"' in as_junit(report.as_gate())
    bare = report.as_dict(texts=False)
    assert "secret question" not in json.dumps(bare)
    assert "secret question" in json.dumps(report.as_dict())
    assert "secret question" not in render(report.without_texts(), "table")
    assert replace(report, verdicts=()).exit_code == 0
