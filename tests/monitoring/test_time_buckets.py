"""Signals by time: against plain loops, and their intervals against the functions they name."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from findwell.core.errors import OptionError
from findwell.loop.monitoring.call_values import LABEL, VERDICT, CallValues
from findwell.loop.monitoring.signals import RAW_PREFIX, SIGNALS, find_signals
from findwell.loop.monitoring.time_buckets import buckets, gini
from findwell.loop.monitoring.times import bucket_length
from findwell.statistics.intervals import interval, quantile_interval
from findwell.statistics.prediction_powered import ppi_mean
from tests.monitoring.made_calls import START, known_beside, made_calls, signal_values

CALLS = made_calls()
GIVEN = known_beside()


def row(table: pl.DataFrame, **where: object) -> dict[str, object]:
    (found,) = table.filter(**where).to_dicts()
    return found


def test_every_number_is_that_of_its_calls_alone() -> None:
    values = signal_values(CALLS, by="service")
    frame, table = values.frame(), buckets(values, "6h", by="service")
    assert table.height == len(find_signals()) * table.select("time", "service").n_unique()
    for start in table["time"].unique():
        inside = frame.filter(pl.col("time").is_between(start, start + timedelta(hours=6), "left"))
        for service in ("web", "api"):
            mine = inside.filter(service=service)
            found = row(table, time=start, service=service, signal="top_score")
            whole = interval(mine["top_score"].to_numpy(), bounds=(-np.inf, np.inf))
            assert (found["value"], found["low"], found["high"]) == pytest.approx(
                (whole.value, whole.low, whole.high)
            )
            assert found["n"] == mine["top_score"].count()
            assert found["undefined"] == mine["top_score"].null_count()
            found = row(table, time=start, service=service, signal="latency_p95")
            quantile = quantile_interval(mine["latency_p95"].drop_nulls().to_numpy(), 0.95)
            assert (found["value"], found["low"]) == (quantile.value, quantile.low)
            found = row(table, time=start, service=service, signal="queries")
            assert found["value"] == pytest.approx(mine.height / 6)
            counts = mine["concentration"].explode(empty_as_null=False).value_counts()["count"]
            found = row(table, time=start, service=service, signal="concentration")
            assert found["value"] == pytest.approx(gini(counts.to_numpy()))


def test_intervals_are_named() -> None:
    table = buckets(signal_values(CALLS), "1d")
    named = dict(table.filter(pl.col("n") > 20).select("signal", "method").unique().rows())
    assert named["empty"] == "further-unit"
    assert named["latency_p95"] == "order-statistics"
    assert named["queries"] == "poisson-score"
    assert named["concentration"] == ""
    plain = buckets(signal_values(CALLS), "1d", level=None)
    assert plain["low"].null_count() == plain.height
    assert plain["value"].to_list() == pytest.approx(table["value"].to_list())


def test_limits_hold_the_value_and_stay_within_bounds() -> None:
    table = buckets(signal_values(CALLS), "3h").drop_nulls("low").drop_nulls("high")
    assert (table["low"] <= table["value"] + 1e-12).all()
    assert (table["value"] <= table["high"] + 1e-12).all()
    low = table["signal"].replace_strict({name: each.bounds[0] for name, each in SIGNALS.items()})
    assert (table["low"] >= low).all()


def test_a_bucket_without_calls_has_no_queries_and_nothing_else() -> None:
    hour = pl.col("time").dt.truncate("1h")
    first, last = START + timedelta(hours=10), START + timedelta(hours=14)
    quiet = CALLS.filter(~pl.col("time").is_between(first, last))
    table = buckets(signal_values(quiet, by="service"), "1h", by="service")
    silent = table.filter(pl.col("time") == (START + timedelta(hours=12)).replace(minute=0))
    assert silent.select("service", "signal", "n", "value").rows() == [
        ("api", "queries", 0, 0.0),
        ("web", "queries", 0, 0.0),
    ]
    assert table["time"].n_unique() == 1 + int(
        quiet.select((hour.max() - hour.min()).dt.total_hours()).item()
    )
    assert (silent["high"] > 3).all()  # three an hour may well be silent for one


def test_weeks_begin_on_monday_and_days_at_midnight() -> None:
    frame = signal_values(CALLS, "queries")
    assert buckets(frame, "week")["time"].dt.weekday().to_list() == [1]
    assert buckets(frame, "day")["time"].dt.hour().unique().to_list() == [0]
    assert buckets(frame, "1d").equals(buckets(frame, "24h"))
    whole = buckets(frame, None)
    assert whole["n"].to_list() == [240]
    hours = (frame.times.max() - frame.times.min()) / 3.6e9
    assert whole["value"].to_list() == pytest.approx([240 / hours])


def test_what_another_signal_needs_does_not_change_the_count_of_undefined_calls() -> None:
    both, alone = (
        buckets(signal_values(CALLS, names), None).filter(signal="empty")
        for names in (["empty", "rerank_churn"], ["empty"])
    )
    assert both.drop("time").equals(alone.drop("time"))
    # not even where calls of the other kind are the only ones of a time
    rerankers = signal_values(CALLS, ["empty", "rerank_churn"]).sliced("kind", "reranker")
    found = row(buckets(rerankers, None), signal="empty")
    assert (found["n"], found["undefined"]) == (0, 0)


def test_the_corpus_that_was_never_retrieved() -> None:
    frame = signal_values(CALLS, "never_retrieved", given=GIVEN)
    assert GIVEN.corpus is not None
    found = buckets(frame, None, given=GIVEN)["value"][0]
    retrieved = set(CALLS.filter(kind="retriever")["docs"].explode(empty_as_null=False))
    known = set(GIVEN.corpus["doc"])
    assert found == pytest.approx(len(known - retrieved) / len(known))
    assert 0 < found < 1


def test_labels_correct_the_mean_of_a_judge() -> None:
    values = [0.2, 0.4, 0.6, 0.8, 0.5, 0.9, 0.1, 0.3]
    labels = [0.4, 0.6, 0.8, 1.0, 0.7]

    def judged(table: list[float], labelled: list[float]) -> CallValues:
        unknown = [None] * (8 - len(labelled))
        calls = pl.DataFrame(
            {
                "time": [START + timedelta(minutes=each) for each in range(8)],
                f"{RAW_PREFIX}context_relevancy{LABEL}": [*labelled, *unknown],
                f"{RAW_PREFIX}context_relevancy{VERDICT}": [*values[:5], None, None, None],
            }
        )
        signal = SIGNALS["context_relevancy"]
        return CallValues(calls, ("retriever",), (signal,), np.array([[table]]))

    found = row(buckets(judged(values, labels), "1d"), signal="context_relevancy")
    expected = ppi_mean(labels, values[:5], values[5:])
    assert found["value"] == pytest.approx(expected.value)
    assert (found["method"], found["n"], found["undefined"]) == ("ppi", 8, 0)
    # calls that were judged only because they have a label
    outside = judged([np.nan, np.nan, np.nan, *values[3:]], labels)
    assert row(buckets(outside, "1d"), signal="context_relevancy") == found
    few = judged(values, labels[:4])
    assert row(buckets(few, "1d"), signal="context_relevancy")["method"] == "further-unit"


def test_gini() -> None:
    random = np.random.default_rng(5)
    counts = random.integers(1, 50, 40).astype(float)
    pairs = np.abs(counts[:, None] - counts).sum() / (2 * len(counts) ** 2 * counts.mean())
    assert gini(counts) == pytest.approx(pairs)
    assert gini(np.array([])) is None


@pytest.mark.parametrize("wrong", ["", "1", "h", "0h", "1.5h", "fortnight", "1y", "-1h"])
def test_what_is_no_length_of_time(wrong: str) -> None:
    with pytest.raises(OptionError, match="not a length of time"):
        bucket_length(wrong)
