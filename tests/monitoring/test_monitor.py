"""The facade over a store: periods, windows, judged signals, and the command line."""

import json
import math
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import findwell
from findwell.core.errors import JudgeError, OptionError
from findwell.judges.verdicts import Sample
from findwell.loop.monitoring.alarm_report import STATE
from findwell.loop.monitoring.call_values import JudgedSample
from findwell.loop.monitoring.monitor import Monitor
from findwell.loop.monitoring.signals import SIGNALS
from findwell.loop.monitoring.time_buckets import buckets
from findwell.show.document import to_terminal
from findwell.show.signals import document
from tests.client.server import serve
from tests.conftest import Findwell
from tests.judges.model import well
from tests.monitoring.made_calls import (
    START,
    known_beside,
    letters,
    made_calls,
    signal_values,
    text_of,
)

CALLS = made_calls()
TOLD = {"context_relevancy", "context_precision", "sufficiency"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep the calls in a store, in two batches that arrive in the wrong order."""
    path = tmp_path_factory.mktemp("monitor") / "store"
    with Monitor.open(path, create=True) as made:
        for part in (CALLS.tail(100), CALLS.head(CALLS.height - 100)):
            made.store.add(part)
        made.store.flush()
        made.mark("v2.3 chunker", START + timedelta(hours=24))
    return path


@pytest.fixture
def monitor(folder: Path) -> Iterator[Monitor]:
    with findwell.monitor.Monitor.open(folder) as opened:
        yield opened


def corpus() -> list[dict[str, str]]:
    return [{"doc": f"d{doc}", "text": text_of(doc)} for doc in range(50) if doc not in (3, 7)]


@pytest.mark.parametrize("at_once", [1, 100_000])
def test_a_store_says_what_its_calls_say(
    monitor: Monitor, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("findwell.loop.monitoring.call_values.CALLS_AT_ONCE", at_once)
    assert_frame_equal(monitor.signals(by="service"), signal_values(CALLS, by="service").frame())
    for every in ("1h", "1d", "1w", None):
        expected = buckets(signal_values(CALLS, by="service"), every, by="service")
        assert_frame_equal(monitor.buckets(every=every, by="service"), expected)
    churned = monitor.buckets(["churn", "empty"], "1d")
    assert_frame_equal(churned, buckets(signal_values(CALLS, ["churn", "empty"]), "1d"))


def test_the_language_of_questions_is_not_that_of_prompts(folder: Path, cli: Findwell) -> None:
    args = ("monitor", "show", "--store", folder, "-s", "other_language", "--format", "json")
    usual, german = (cli(*args, *more).answer for more in ((), ("--with", "expected_language=de")))
    with Monitor.open(folder) as monitor:
        told = monitor.buckets("other_language", None, expected_language="de")
        assert german["buckets"][0]["value"] == told["value"][0] != usual["buckets"][0]["value"]
        spelled = monitor.buckets("other_language", None, expected_language="DE-at")
        assert spelled["value"][0] == told["value"][0]
        with pytest.raises(OptionError, match="unknown language 'german'"):
            monitor.signals("other_language", expected_language="german")
        with pytest.raises(OptionError, match="did you mean expected_language"):
            monitor.signals("other_language", expected_languages="de")  # type: ignore[call-arg]


def test_a_period_sees_the_history_before_it(monitor: Monitor) -> None:
    since = START + timedelta(hours=30)
    names = ["churn", "unseen", "empty"]
    whole = monitor.signals(names)
    late = monitor.signals(names, since=since, until=since + timedelta(hours=10))
    between = pl.col("time").is_between(since, since + timedelta(hours=10), "left")
    assert_frame_equal(late, whole.filter(between))
    assert 0 < late.height < whole.height


def test_points_in_time(monitor: Monitor) -> None:
    marked = monitor.signals("empty", since="v2.3 chunker")
    told = monitor.signals("empty", since="2026-05-05T22:30")
    assert marked.equals(told)
    assert marked.equals(monitor.signals("empty", since="2026-05-05T23:30+01:00"))
    assert marked.equals(monitor.signals("empty", since=datetime(2026, 5, 5, 22, 30)))  # noqa: DTZ001
    assert monitor.signals("empty", since="1h").height == 0
    assert monitor.buckets("empty", since="1h").height == 0
    with pytest.raises(OptionError, match=r"v2\.3 chunker"):
        monitor.signals("empty", since="v2.4")


def test_what_is_given_reaches_the_signals(monitor: Monitor) -> None:
    names = [name for name, each in SIGNALS.items() if each.needs != "judge"]
    beside = known_beside()
    found = monitor.signals(
        names, corpus=beside.corpus, questions=beside.questions, embedder=letters
    )
    assert_frame_equal(found, signal_values(CALLS, names, given=beside).frame())


# judged signals


def told(sample: Sample) -> dict[str, object]:
    """Judge by a word of the question that stands in the chunk."""
    word = sample.question.rstrip("?").split()[-1]
    fits = [word in chunk for chunk in sample.chunks]
    parts = [[word in part for part in parts] for parts in sample.parts["statements"]]
    return {"relevance": fits, "statements": parts, "sufficiency": any(fits)}


def test_what_a_judge_says_is_what_findwell_judge_says(monitor: Monitor) -> None:
    found = monitor.signals(sorted(TOLD), judge=told)
    answered = CALLS.filter(kind="retriever").filter(
        pl.col("error").is_null() & pl.col("question").is_not_null()
    )
    records = [
        {
            "query": row["span"],
            "question": row["question"],
            "retrieved": [{"id": str(at), "text": text} for at, text in enumerate(row["texts"])],
        }
        for row in answered.iter_rows(named=True)
    ]
    measures = ["context_relevancy", "context_precision", "context_sufficiency"]
    result = findwell.judges.judge(records, measures, judge=told)
    for name, measure in zip(sorted(TOLD - {"sufficiency"}), sorted(measures[:2]), strict=True):
        values = dict(result.per_query.filter(measure=measure).select("query", "value").rows())
        for span, value in found.select("span", name).rows():
            assert value == values.get(span), (name, span)
    assert found["sufficiency"].mean() == pytest.approx(result["context_sufficiency"])
    assert 0 < (found["sufficiency"].mean() or 0) < 1  # type: ignore[operator]


def test_texts_come_from_the_corpus_where_the_traces_have_none() -> None:
    bare = CALLS.with_columns(pl.col("texts").list.eval(pl.lit(None, pl.String)))
    sample = JudgedSample(told)
    names = ["context_relevancy"]
    assert np.nanmax(signal_values(bare, names, sample=sample).series) == 0  # empty lists
    given = known_beside()
    assert np.nanmean(signal_values(bare, names, sample=sample, given=given).series) > 0


def test_a_sample_is_always_the_same_traces() -> None:
    def judged(calls: pl.DataFrame, sample: JudgedSample) -> set[str]:
        values = signal_values(calls, ["context_relevancy"], sample=sample)
        return set(values.defined.queries["span"])

    third = JudgedSample(told, share=0.3)
    chosen, everything = judged(CALLS, third), judged(CALLS, JudgedSample(told))
    assert chosen < everything
    assert 0.2 < len(chosen) / len(everything) < 0.4
    assert judged(CALLS.sample(fraction=1.0, shuffle=True, seed=1), third) == chosen
    web = CALLS.filter(service="web")
    assert judged(web, third) == chosen & set(web["span"])
    assert judged(CALLS, JudgedSample(told, share=0.6)) > chosen


def test_a_day_has_a_budget_that_later_calls_do_not_change() -> None:
    keys = CALLS.filter(kind="retriever").select("time", "trace", "span")
    sample = JudgedSample(told, per_day=20)
    chosen = keys.filter(sample.chosen(keys))
    days = chosen.group_by(pl.col("time").dt.date()).len()["len"]
    assert (days <= 20).all()
    assert days.max() > 12  # type: ignore[operator]
    early = keys.filter(pl.col("time") < START + timedelta(hours=34))  # in the middle of a day
    before = early.filter(sample.chosen(early))
    assert set(before["span"]) <= set(chosen["span"])
    few = JudgedSample(told, per_day=1000)
    assert few.chosen(keys).all()


@pytest.mark.parametrize("hours", [3, 26, 40])
def test_the_budget_of_a_day_does_not_depend_on_the_period(monitor: Monitor, hours: int) -> None:
    since = START + timedelta(hours=hours)
    whole = monitor.signals("context_relevancy", judge=told, per_day=20)
    late = monitor.signals("context_relevancy", judge=told, per_day=20, since=since)
    assert_frame_equal(late, whole.filter(pl.col("time") >= since))
    assert late["context_relevancy"].count() > 5


def test_a_second_look_asks_a_model_nothing(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    with serve(well) as server:
        judge = findwell.Judge("openai:some-model", base_url=server.url, key="")
        first = monitor.buckets("context_precision", "1d", judge=judge, per_day=10)
        asked = len(server.calls)
        assert 0 < asked <= 40
        again = monitor.buckets("context_precision", "1d", judge=judge, per_day=10)
        assert len(server.calls) == asked
    assert_frame_equal(first, again)


def test_labels_are_what_people_annotated() -> None:
    named = {"name": "context_relevancy", "score": 0.75, "label": None, "annotator": "HUMAN"}
    others = [
        named | {"annotator": "LLM", "score": 0.1},
        named | {"name": "tone", "score": 0.2},
        named | {"score": 7.0},
    ]
    notes = [[named, *others] if at % 4 == 0 else others for at in range(CALLS.height)]
    calls = CALLS.with_columns(pl.Series("annotations", notes, CALLS.schema["annotations"]))
    few = JudgedSample(told, share=0.1)
    values = signal_values(calls, ["context_relevancy"], sample=few)
    frame = values.frame()
    labelled = frame.drop_nulls("context_relevancy label")
    assert set(labelled["context_relevancy label"]) == {0.75}
    assert 0.15 < labelled.height / frame.height < 0.35
    assert labelled["context_relevancy verdict"].count() > 40  # though few are in the sample
    (found,) = buckets(values, None).to_dicts()
    assert found["method"] == "ppi"
    assert found["value"] > labelled["context_relevancy verdict"].mean()
    # what people annotate, which may be what went wrong, is no part of the sample
    plain = signal_values(CALLS, ["context_relevancy"], sample=few)
    np.testing.assert_array_equal(values.series, plain.series)


def test_a_judge_without_any_verdict_is_an_error(monitor: Monitor) -> None:
    with pytest.raises(JudgeError, match="needs a language model"):
        monitor.signals("sufficiency", judge="local:text")
    with pytest.raises(OptionError, match="--judge"):
        monitor.signals("context_relevancy")
    with pytest.raises(OptionError, match="cannot be judged"):
        monitor.signals("context_relevancy", judge="local:text", sample=0.0)


def test_estimates_from_labels_are_those_of_ppi(monitor: Monitor) -> None:
    run = monitor.run()
    assert len(run) == CALLS.filter(kind="retriever").height
    labels = {
        each["query"]: {doc["id"]: int("battery" in doc["text"]) for doc in each["retrieved"]}
        for each in run[:60]
        if each["retrieved"]
    }
    found = monitor.ppi(labels, "P@3", judge=told)
    assert (
        found["P@3", "ppi"].value
        == findwell.labels.ppi(run, labels, "P@3", judge=told)["P@3", "ppi"].value
    )


def test_alarms_see_what_signals_show(tmp_path: Path) -> None:
    """Of a judge, and of the history before what is watched."""
    half = START + timedelta(hours=30)
    words = " ".join(CALLS["question"].drop_nulls().unique().sort())
    fine, broken = (pl.col("texts").list.eval(pl.lit(each)) for each in (words, "Rain is near."))
    calls = CALLS.with_columns(pl.when(pl.col("time") >= half).then(broken).otherwise(fine))
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(calls)
        report = monitor.check(
            ["context_relevancy drops", "unseen>5%", "empty>30%"],
            baseline=f"{START:%Y-%m-%dT%H:%M}/{half:%Y-%m-%dT%H:%M}",
            until=START + timedelta(hours=61),
            period="1h",
            judge=told,
        )
    outcomes = {each.alert: each.outcome for each in report.verdicts}
    assert outcomes["context_relevancy drops"] == "alarm"
    assert outcomes["empty>30%"] != "alarm"
    assert outcomes["unseen>5%"] != "alarm"  # though all were new when the watch began


# the command line


def test_the_command_line_says_the_same(monitor: Monitor, folder: Path, cli: Findwell) -> None:
    done = cli(
        *("monitor", "show", "--store", folder, "--every", "6h", "--slice", "tenant.id"),
        *("--format", "json"),
    )
    assert done.code == 0, done.err
    said = done.answer
    table = monitor.buckets(every="6h", by="tenant.id")
    times = table["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert said["buckets"] == table.with_columns(times).to_dicts()
    assert said["marks"] == [{"name": "v2.3 chunker", "time": "2026-05-05T22:30:00+00:00"}]
    assert {each["name"] for each in said["signals"]} == set(table["signal"])


def test_tables_of_the_command_line(folder: Path, cli: Findwell, tmp_path: Path) -> None:
    done = cli("monitor", "show", "--store", folder)
    assert "latency_p95" in done.out
    done = cli("monitor", "show", "--store", folder, "-s", "empty", "-s", "p99", "--every", "day")
    assert "empty · share, higher is worse" in done.out
    assert "marks: 2026-05-05 22:30 v2.3 chunker" in done.out
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in corpus()))
    named = ("-s", "never_retrieved", "-s", "context_relevancy", "--judge", "local:text")
    done = cli(
        "monitor", "show", "--store", folder, *named, "--with", f"corpus={path}", "--format", "csv"
    )
    assert [line.split(",")[1] for line in done.out.splitlines()[1:]] == [
        "never_retrieved",
        "context_relevancy",
    ]
    done = cli("monitor", "show", "--list", "--format", "json", "-o", "-")
    assert [each["name"] for each in done.answer["signals"]] == list(SIGNALS)
    assert cli("monitor", "show", "--list").out.count("\n  ") == len(SIGNALS)


@pytest.mark.parametrize("how", ["table", "json", "jsonl", "csv", "tsv", "markdown"])
def test_what_a_judge_says_comes_with_its_worth(
    folder: Path, cli: Findwell, how: str, tmp_path: Path
) -> None:
    store = shutil.copytree(folder, tmp_path / "store")  # which a check writes to
    asked = ("--store", store, "--judge", "local:text", "--format", how)
    assert "for smoke tests only" in cli("monitor", "show", *asked, "-s", "context_relevancy").out
    assert "smoke tests" not in cli("monitor", "show", *asked, "-s", "empty").out
    if how in ("table", "json", "markdown"):
        alert = ("--alert", "context_relevancy<0.01", "--period", "6h")
        assert "for smoke tests only" in cli("monitor", "check", *asked, *alert).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-s", "emty"), "did you mean empty"),
        (("--every", "fortnight"), "not a length of time"),
        (("-s", "never_retrieved"), "--with corpus="),
        (("--since", "yesterday"), "not a point in time"),
        (("--slice", "time"), "not sliced by time"),
        (("-s", "sufficiency", "--judge", "local:text"), "needs a language model"),
    ],
)
def test_mistakes(folder: Path, cli: Findwell, arguments: tuple[str, ...], said: str) -> None:
    done = cli("monitor", "show", "--store", folder, *arguments)
    assert done.code == 2
    assert said in done.err
    assert not done.out


@pytest.mark.parametrize("every", [(), ("--every", "day")])
def test_a_time_without_calls_is_said(folder: Path, cli: Findwell, every: tuple[str, ...]) -> None:
    shown = cli("monitor", "show", "--store", str(folder), "--since", "2040-01-01", *every)
    assert (shown.code, shown.out.startswith("no calls")) == (0, True)


def test_no_store(tmp_path: Path, cli: Findwell) -> None:
    assert "there is no trace store" in cli("monitor", "show", "--store", tmp_path).err
    assert "--store DIR" in cli("monitor", "show").err


@pytest.mark.parametrize("columns", [60, 80])
def test_tables_fit_the_terminal(monitor: Monitor, columns: int) -> None:
    by = ["service", "tenant.id"]
    for every in ("1d", None):
        table = monitor.buckets(every=every, by=by)
        whole = document(table, every=every, by=by, marks=monitor.marks())
        shown = to_terminal(whole, width=columns)
        assert max(map(len, shown.split("\n"))) <= columns
        assert shown.count("tenant.id") >= 1


def test_a_dry_run_counts_all_calls_and_saves_nothing(
    folder: Path, cli: Findwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("findwell.loop.monitoring.call_values.JUDGED_AT_ONCE", 7)
    judge = ("--judge", "openai:MODEL", "--dry-run", "--format", "json")
    named = ("--store", folder, "--until", START + timedelta(hours=40))
    shown = cli("monitor", "show", *named, "-s", "context_relevancy", *judge)
    alert = ("--alert", "context_relevancy<0.5", "--alert", "empty>0.01%")
    checked = cli("monitor", "check", *named, *alert, *judge)
    assert checked.code == 0
    assert shown.answer == checked.answer
    assert shown.answer["forecast"]["calls"] > 7
    with Monitor.open(folder) as monitor:
        assert monitor.store.state(STATE) is None
        again = [monitor.check("empty>0.01%", remember=False, until="2026-05-08") for _ in "ab"]
        assert [each.exit_code for each in again] == [1, 1]
        assert len(again[1].news) == 1


def test_slices_whose_names_mean_something_else(tmp_path: Path) -> None:
    """Attributes have any name; those that would stand for two things are refused."""
    odd = ("bucket", "len", "count", "latency", "docs")
    attributes = [[{"key": name, "value": f"{row % 2}"} for name in odd] for row in range(40)]
    calls = CALLS.filter(kind="retriever").head(40)
    calls = calls.with_columns(
        attributes=pl.Series(attributes, dtype=CALLS.schema["attributes"]),
        latency_ms=pl.Series([-1.0, math.nan, math.inf, None] * 10),
    )
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(calls)
        for name in odd:
            table = monitor.buckets("empty", None, by=name)
            assert table[name].to_list() == ["0", "1"]
            report = monitor.check(f"empty>2% by {name}", until="2026-06-01")
            assert [each.slice for each in report.verdicts] == [f"{name}=0", f"{name}=1"]
        for name in ("empty", "", "time", "value", "\0n"):
            with pytest.raises(OptionError, match="not sliced by"):
                monitor.buckets("empty", None, by=name)
        with pytest.raises(OptionError, match="not sliced by empty"):
            monitor.check("empty>2% by empty")
        with pytest.raises(OptionError, match="unknown kind 'rerankers'"):
            monitor.signals("empty", kind="rerankers")
        assert monitor.signals("latency")["latency"].null_count() == 40  # no length of time
        (none,) = monitor.check("p95>800ms", until="2026-06-01").verdicts
        assert (none.outcome, none.n, none.reason) == ("undecided", 0, "no call has a value")
