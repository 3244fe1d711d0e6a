"""Agreement of rankings, of orders of systems, of labels."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import kendalltau
from statsmodels.stats.inter_rater import cohens_kappa

import karat
from karat.comparison.agreements import agree_on_labels, agree_on_rankings, agree_on_systems
from karat.errors import KaratError

DEMO = Path(karat.__file__).parent / "demo"


def test_rankings() -> None:
    one = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}, "r": ["a"], "s": ["a", "b"], "t": ["x"]}
    other = {"q": ["b", "a", "d", "c"], "r": ["a"], "s": ["x", "y"], "u": ["x"]}
    found = agree_on_rankings({"q": one["q"]}, {"q": other["q"]})
    assert found["tau"] == pytest.approx(kendalltau([4, 3, 2, 1], [3, 4, 1, 2]).statistic)
    lists = {query: list(docs) for query, docs in one.items()}
    found = agree_on_rankings(lists, other)
    rows = {row["query"]: row for row in found.details.to_dicts()}
    assert list(rows) == ["q", "r", "s"]
    assert (rows["r"]["rbo"], rows["r"]["tau"], rows["r"]["in_both"]) == (1.0, None, 1)
    assert (rows["s"]["rbo"], rows["s"]["in_both"]) == (0.0, 0)
    summary = {row["statistic"]: row for row in found.summary.to_dicts()}
    assert (summary["tau"]["n"], summary["tau"]["undefined"]) == (1, 2)
    assert summary["rbo"]["value"] == pytest.approx((rows["q"]["rbo"] + 1.0) / 3)
    (finding,) = found.findings
    assert (finding.count, finding.examples) == (2, ("t", "u"))


def test_a_ranking_agrees_with_itself_and_ties_break_as_elsewhere() -> None:
    same = agree_on_rankings(DEMO / "bm25.trec", DEMO / "bm25.trec")
    assert [same[name] for name in ("rbo", "tau", "tau_ap")] == pytest.approx([1.0, 1.0, 1.0])
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert agree_on_rankings(tied, {"q": ["c", "b", "a"]})["rbo"] == pytest.approx(1.0)


def test_cut_rankings_and_repetitions() -> None:
    assert agree_on_rankings({"q": ["a", "b"]}, {"q": ["a", "c"]}, k=1)["rbo"] == 1.0
    assert agree_on_rankings({"q": ["a", "a", "b"]}, {"q": ["a", "b"]})["rbo"] == pytest.approx(1)


def test_systems() -> None:
    gold = {"q1": ["a"], "q2": ["b"]}
    runs = {
        "best": {"q1": ["a"], "q2": ["b"]},
        "middle": {"q1": ["a"], "q2": ["x", "b"]},
        "worst": {"q1": ["x"], "q2": ["x"]},
    }
    by_gold = karat.evaluate(runs, gold, ["RR", "success@5"])
    turned = dict(zip(runs, list(runs.values())[::-1], strict=True)) | {"more": runs["best"]}
    other = karat.evaluate(turned, gold, ["RR"])
    same = agree_on_systems(by_gold, by_gold)
    assert same["tau RR"] == same["tau_ap RR"] == 1.0
    found = agree_on_systems(by_gold, other, measures="RR")
    assert found["tau RR"] == pytest.approx(-1.0)
    assert found.findings[0].examples == ("more",)
    assert found.details.row(0) == ("RR", "best", 1.0, 0.0)


def test_less_is_better_orders_the_same_way() -> None:
    gold = {"q1": ["a"]}
    runs = {"a": {"q1": ["a"]}, "b": {"q1": ["a", "u"]}, "c": {"q1": ["u"]}}
    result = karat.evaluate(runs, gold, ["unjudged@2"])
    assert agree_on_systems(result, result)["tau_ap unjudged@2"] == 1.0


def test_labels() -> None:
    first = {"q": {"a": 0, "b": 1, "c": 2, "d": 2, "e": 0}, "r": {"a": 1}}
    second = {"q": {"a": 0, "b": 1, "c": 1, "d": 2, "f": 0}, "r": {"a": 2}}
    found = agree_on_labels(first, second)
    expected = cohens_kappa([[1, 0, 0], [0, 1, 1], [0, 1, 1]])
    assert found["kappa"] == pytest.approx(expected.kappa)
    assert found["agreement"] == 0.6
    row = found.summary.row(1, named=True)
    assert row["low"] < expected.kappa_low  # the standard error of five labels is too small
    assert row["high"] == 1
    assert (row["n"], row["undefined"]) == (5, 2)
    assert found.findings[0].count == 2
    assert found.details.filter(pl.col("count") > 0).height == 5
    assert json.dumps(found.as_dict())


def test_tables_of_labels(tmp_path: Path) -> None:
    words, numbers = tmp_path / "words.csv", tmp_path / "numbers.csv"
    words.write_text("query,doc,verdict,grade\nq1,a,good,2\nq1,b,bad,0\nq2,a,,1\n")
    numbers.write_text("query,doc,verdict,grade\nq1,a,good,2\nq1,b,good,1\nq2,a,bad,1\n")
    found = agree_on_labels(words, numbers, column="verdict")
    assert found["agreement"] == 0.5
    assert found.findings[0].examples == ("q2 a",)
    assert (
        agree_on_labels(words, numbers, column="grade").details["first"].unique().sort()[0] == "0"
    )
    records = [{"query": 1, "verdict": True}, {"query": 2, "verdict": False}]
    assert agree_on_labels(records, records, column="verdict")["kappa"] == 1.0


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(KaratError, match="share no query"):
        agree_on_rankings({"q": ["a"]}, {"r": ["a"]})
    with pytest.raises(KaratError, match="nothing has a label in both"):
        agree_on_labels({"q": {"a": 1}}, {"q": {"b": 1}})
    twice = tmp_path / "twice.csv"
    twice.write_text("query,verdict\nq1,a\nq1,b\n")
    with pytest.raises(KaratError, match="'q1' is labelled twice"):
        agree_on_labels(twice, twice, column="verdict")
    with pytest.raises(KaratError, match="unknown column 'verdit'"):
        agree_on_labels(twice, twice, column="verdit")
    result = karat.evaluate({"q": ["a"]}, {"q": ["a"]}, "RR")
    other = karat.evaluate({"x": {"q": ["a"]}}, {"q": ["a"]}, "RR")
    with pytest.raises(KaratError, match="share no run"):
        agree_on_systems(result, other)
    with pytest.raises(KaratError, match="unknown statistic 'rho'"):
        agree_on_rankings({"q": ["a"]}, {"q": ["a"]})["rho"]
    one = agree_on_systems(result, result)
    assert one["tau RR"] is None
    assert one.summary["reason"][0] == "there are fewer than two items to order"
