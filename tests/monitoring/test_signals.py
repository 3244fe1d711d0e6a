"""Signals of calls: their values on paper, and what must not change them, over all of them."""

import json
import math
import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from findwell.core.errors import OptionError, PluginError
from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.call_values import NO_SLICE, CallValues
from findwell.loop.monitoring.signals import (
    SIGNALS,
    References,
    Signal,
    find_signal,
    find_signals,
    register_signal,
)
from findwell.loop.monitoring.time_buckets import buckets
from findwell.statistics.agreement import rbo
from tests.monitoring.made_calls import START, known_beside, made_calls, signal_values

CALLS = made_calls()

GIVEN = known_beside()
UNJUDGED = [name for name, each in SIGNALS.items() if each.needs != "judge"]


def measured(calls: pl.DataFrame, names: list[str] = UNJUDGED, by: str = "") -> CallValues:
    return signal_values(calls, names, by=by or (), given=GIVEN)


def values(calls: pl.DataFrame, names: list[str] = UNJUDGED, by: str = "") -> pl.DataFrame:
    return measured(calls, names, by).frame()


def one(name: str, fields: dict[str, object], given: References = GIVEN) -> float | None:
    """Return a signal of a single call."""
    usual = {"trace": "a", "span": "b", "time": START, "kind": "retriever", "hop": 0, "docs": []}
    lists: dict[str, object] = {
        "scores": [],
        "texts": [],
        "doc_metadata": [],
        "inputs": [],
        "attributes": [],
    }
    calls = pl.DataFrame([usual | lists | fields], schema=TRACE_SCHEMA)
    found: float | None = signal_values(calls, name, given=given).frame()[name][0]
    return found


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("empty", {"docs": []}, 1.0),
        ("empty", {"docs": ["a"]}, 0.0),
        ("empty", {"docs": [], "error": "timeout"}, None),
        ("error", {"error": "timeout"}, 1.0),
        ("latency", {"latency_ms": 12.5}, 12.5),
        ("documents", {"docs": ["a", "b", "a"]}, 3.0),
        ("duplicates", {"docs": ["a", "b", "a", "a"]}, 0.5),
        ("duplicates", {"docs": []}, None),
        ("top_score", {"scores": [0.9, 0.4]}, 0.9),
        ("top_score", {"scores": [None, 0.4]}, None),
        ("top_score", {"scores": [math.nan, 0.4]}, None),
        ("score_gap", {"scores": [0.9, 0.4]}, 0.5),
        ("score_gap", {"scores": [0.25, 0.75]}, 0.5),  # of distances
        ("score_gap", {"scores": [0.9]}, None),
        ("score_spread", {"scores": [1.0, 3.0]}, 1.0),
        ("score_spread", {"scores": [1.0, None]}, None),
        ("score_entropy", {"scores": [3.0, 3.0, 1.0]}, 1.0),  # two equal shares of two
        ("score_entropy", {"scores": [3.0, 1.0, 1.0]}, 0.0),  # one has all
        ("score_entropy", {"scores": [2.0, 2.0, 2.0]}, 1.0),
        ("score_entropy", {"scores": [2.0, 1.0]}, None),
        ("query_length", {"question": "Où?"}, 3.0),
        ("other_language", {"question": "Wo ist der Schlüssel?"}, 1.0),
        ("other_language", {"question": "Rome"}, None),
        ("query_distance", {"question": "Where is the battery?"}, 0.0),
        ("near_duplicates", {"docs": ["x", "y"], "texts": ["Say it again, Sam."] * 2}, 0.5),
        ("near_duplicates", {"docs": ["d0", "d1"], "texts": [None, None]}, 0.5),  # by the corpus
        ("near_duplicates", {"docs": ["x", "y"], "texts": [None, None]}, None),
        ("age", {"docs": ["x"], "doc_metadata": ['{"date": "2026-05-01"}']}, 3.0),
        ("age", {"docs": ["x"], "doc_metadata": ['{"created_at": 1777593600}']}, 3.0),
        ("age", {"docs": ["x"], "doc_metadata": ['{"date": "2027-05-01"}']}, 0.0),
        ("age", {"docs": ["d1", "x"], "doc_metadata": [None, "{"]}, 123.0),  # by the corpus
        ("age", {"docs": ["x"], "doc_metadata": ["[1]"]}, None),
        ("unknown_documents", {"docs": ["d3", "d4", "d4", "x"]}, 0.5),
        ("unseen", {"docs": ["a", "b"]}, 1.0),
        ("churn", {"docs": ["a"], "question": "Why?"}, None),
        (
            "rerank_churn",
            {"kind": "reranker", "inputs": ["a", "b", "c"], "docs": ["b", "a"]},
            1 - (rbo(["a", "b"], ["b", "a"]).value or 0),
        ),
        ("rerank_churn", {"kind": "reranker", "inputs": [], "docs": ["b", "a"]}, None),
    ],
)
def test_values_on_paper(name: str, fields: dict[str, object], expected: float | None) -> None:
    assert one(name, fields) == (None if expected is None else pytest.approx(expected))


def test_history_is_that_of_the_service_and_question() -> None:
    def call(minute: int, docs: list[str] | None, **fields: object) -> dict[str, object]:
        usual = {"trace": f"{minute}", "span": "s", "time": START + timedelta(minutes=minute)}
        asked = {"kind": "retriever", "hop": 0, "question": "Why so?", "service": "web"}
        return usual | asked | {"docs": docs, "inputs": []} | fields

    calls = pl.DataFrame(
        [
            call(1, ["a", "b"]),
            call(2, ["a", "b"], service="api"),
            call(3, ["z"], error="timeout"),
            call(4, ["b", "c"], question=" why  SO? "),
            call(5, ["b", "c"], hop=1),
            call(6, None),  # it does not tell its list, and so is none to compare with
            call(7, ["b", "c"]),
        ],
        schema=TRACE_SCHEMA,
    )
    found = signal_values(calls, ["churn", "unseen"]).frame()
    changed = 1 - (rbo(["a", "b"], ["b", "c"]).value or 0)
    assert found["churn"].to_list() == [None, None, None, pytest.approx(changed), None, None, 0.0]
    assert found["unseen"].to_list() == [1.0, 1.0, 1.0, 0.5, 0.0, None, 0.0]


def test_every_signal_is_defined_somewhere_and_within_its_bounds() -> None:
    found = values(CALLS)
    assert found.height == CALLS.height  # of retrievers and rerankers: rerank_churn is asked for
    for name in UNJUDGED:
        each = SIGNALS[name]
        if each.per_call:
            low, high = each.bounds
            assert found[name].dtype == pl.Float64
            assert found[name].count() > 20, name
            assert found[name].n_unique() > 2, name
            assert found[name].drop_nulls().is_between(low, high).all(), name
            assert not found[name].is_nan().any(), name


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_says_how_it_is_read(name: str) -> None:
    each = SIGNALS[name]
    assert each.what
    assert each.unit
    assert set(each.reads) <= set(TRACE_SCHEMA)


def test_the_order_of_arrival_does_not_matter() -> None:
    shuffled = CALLS.sample(fraction=1.0, shuffle=True, seed=3)
    assert_frame_equal(values(shuffled), values(CALLS))


def test_files_do_not_matter(tmp_path: Path) -> None:
    for at in range(0, CALLS.height, 50):
        CALLS.slice(at, 50).write_parquet(tmp_path / f"{at:04}.parquet")
    files = pl.scan_parquet(tmp_path / "*.parquet")
    found = signal_values(files, UNJUDGED, given=GIVEN).frame()
    assert_frame_equal(found, values(CALLS))
    made = [buckets(measured(each), "6h", given=GIVEN) for each in (files.collect(), CALLS)]
    assert_frame_equal(*made)


def test_a_call_alone_has_the_value_it_has_in_company() -> None:
    names = [name for name in UNJUDGED if SIGNALS[name].per_call and not SIGNALS[name].history]
    whole = values(CALLS, names)
    alone = [values(CALLS.slice(at, 1), names) for at in range(0, CALLS.height, 9)]
    some = pl.concat(alone)
    assert_frame_equal(some, whole.join(some, on="span", how="semi", maintain_order="left"))


def test_other_services_do_not_change_the_values_of_one() -> None:
    web = CALLS.filter(pl.col("service") == "web")
    names = UNJUDGED
    assert_frame_equal(values(web, names), values(CALLS, names).join(web, on="span", how="semi"))
    sliced = measured(CALLS, by="service")
    whole = buckets(sliced, "1d", by="service", given=GIVEN).filter(pl.col("service") == "web")
    assert_frame_equal(whole.drop("service"), buckets(measured(web), "1d", given=GIVEN))


def test_renaming_ids_does_not_matter() -> None:
    def renamed(name: str) -> pl.Expr:
        return pl.col(name).list.eval("other/" + pl.element().str.reverse() + "?")

    calls = CALLS.with_columns(renamed("docs"), renamed("inputs"))
    corpus = GIVEN.corpus
    assert corpus is not None
    table = corpus.with_columns(doc="other/" + pl.col("doc").str.reverse() + "?")
    there = References(corpus=table, questions=GIVEN.questions, embedder=GIVEN.embedder)
    found = signal_values(calls, UNJUDGED, given=there)
    lists = ["concentration", "never_retrieved"]
    assert_frame_equal(found.frame().drop(lists), values(CALLS).drop(lists))
    summed = buckets(found, "1d", given=there)
    assert_frame_equal(summed, buckets(measured(CALLS), "1d", given=GIVEN))


def test_scores_on_another_scale_have_the_same_entropy() -> None:
    score = pl.element()
    scaled = CALLS.with_columns(pl.col("scores").list.eval(score * 8 - 3))
    before, after = (values(each, ["score_entropy"])["score_entropy"] for each in (CALLS, scaled))
    assert np.allclose(before.drop_nulls(), after.drop_nulls())


def test_slices_are_columns_or_attributes() -> None:
    found = signal_values(CALLS, "empty", by=["service", "tenant.id", "hop"]).frame()
    assert set(found["tenant.id"]) == {"t0", "t1", "t2", NO_SLICE}
    assert set(found["service"]) == {"web", "api"}
    assert set(found["hop"]) == {"0"}
    assert set(signal_values(CALLS, "empty", by="no such").queries["no such"]) == {NO_SLICE}


def test_lists_of_rerankers_are_looked_at_if_asked_for() -> None:
    found = signal_values(CALLS, ["documents", "rerank_churn"], kind="reranker").frame()
    assert found.height == CALLS.filter(pl.col("kind") == "reranker").height
    assert found["documents"].max() == 3


def test_mistakes() -> None:
    with pytest.raises(OptionError, match="did you mean empty"):
        find_signal("emty")
    with pytest.raises(OptionError, match="--with corpus="):
        signal_values(CALLS, "never_retrieved")
    with pytest.raises(OptionError, match="--with questions=FILE"):
        signal_values(CALLS, "query_distance")
    with pytest.raises(OptionError, match="--judge"):
        signal_values(CALLS, "context_relevancy", given=GIVEN)
    with pytest.raises(OptionError, match="sliced by time"):
        signal_values(CALLS, "empty", by="time")
    assert "churn" not in [each.name for each in find_signals()]


@pytest.mark.usefixtures("no_collection")
def test_hostile_metadata_has_no_date() -> None:
    deep = "[" * 100_000
    for text in (deep, '{"date": [1]}', '{"date": 1e400}', '{"date": true}', json.dumps("x")):
        assert one("age", {"docs": ["x"], "doc_metadata": [text]}, References()) is None


def test_the_documentation_lists_all_signals() -> None:
    page = (Path(__file__).parents[2] / "docs" / "signals.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?)(?: \(needs [a-z ]+\))? \| (.*) \|$", page, re.MULTILINE
    )
    told = {name: (what, rest) for name, what, rest in rows if name in SIGNALS}
    assert told == {
        name: (each.what, f"{each.unit} | {each.worse}") for name, each in SIGNALS.items()
    }


def test_a_signal_of_the_user() -> None:
    """A signal that is registered is found and computed like those that are built in."""
    own = Signal(
        "first_is_d1",
        "1 where d1 is first",
        "share",
        "lower",
        pl.col("docs").list.first().eq("d1").cast(pl.Float64),
    )
    register_signal(own)
    try:
        assert find_signal("First-is-d1") is own
        found = signal_values(CALLS, "first_is_d1").frame()["first_is_d1"]
        firsts = CALLS.filter(kind="retriever").sort("time", "trace", "span")["docs"].list.first()
        assert found.to_list() == [None if each is None else float(each == "d1") for each in firsts]
        with pytest.raises(PluginError, match="taken"):
            register_signal(Signal("first_is_d1", "another", "share", "lower"))
    finally:
        del SIGNALS.registered["first_is_d1"]
