"""Agreement of rankings, of orders of systems, of labels."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError
from tests.lazy import lazy

stats = lazy("scipy.stats")
inter_rater = lazy("statsmodels.stats.inter_rater")

DEMO = Path(findwell.__file__).parent / "demo"


def test_rankings() -> None:
    one = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}, "r": ["a"], "s": ["a", "b"], "t": ["x"]}
    other = {"q": ["b", "a", "d", "c"], "r": ["a"], "s": ["x", "y"], "u": ["x"]}
    found = findwell.labels.agree({"q": one["q"]}, {"q": other["q"]}, kind="rankings")
    assert found["tau"] == pytest.approx(stats.kendalltau([4, 3, 2, 1], [3, 4, 1, 2]).statistic)
    lists = {query: list(docs) for query, docs in one.items()}
    found = findwell.labels.agree(lists, other, kind="rankings")
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
    same = findwell.labels.agree(DEMO / "bm25.trec", DEMO / "bm25.trec", kind="rankings")
    assert [same[name] for name in ("rbo", "tau", "tau_ap")] == pytest.approx([1.0, 1.0, 1.0])
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert findwell.labels.agree(tied, {"q": ["c", "b", "a"]}, kind="rankings")[
        "rbo"
    ] == pytest.approx(1.0)


def test_cut_rankings_and_repetitions() -> None:
    assert (
        findwell.labels.agree({"q": ["a", "b"]}, {"q": ["a", "c"]}, depth=1, kind="rankings")["rbo"]
        == 1.0
    )
    assert findwell.labels.agree({"q": ["a", "a", "b"]}, {"q": ["a", "b"]}, kind="rankings")[
        "rbo"
    ] == pytest.approx(1)


def test_systems() -> None:
    gold = {"q1": ["a"], "q2": ["b"]}
    runs = {
        "best": {"q1": ["a"], "q2": ["b"]},
        "middle": {"q1": ["a"], "q2": ["x", "b"]},
        "worst": {"q1": ["x"], "q2": ["x"]},
    }
    by_gold = findwell.evaluate(runs, gold, ["RR", "success@5"])
    turned = dict(zip(runs, list(runs.values())[::-1], strict=True)) | {"more": runs["best"]}
    other = findwell.evaluate(turned, gold, ["RR"])
    same = findwell.labels.agree(by_gold, by_gold, kind="systems")
    assert same["tau RR"] == same["tau_ap RR"] == 1.0
    found = findwell.labels.agree(by_gold, other, measures="RR", kind="systems")
    assert found["tau RR"] == pytest.approx(-1.0)
    assert found.findings[0].examples == ("more",)
    assert found.details.row(0) == ("RR", "best", 1.0, 0.0)


def test_less_is_better_orders_the_same_way() -> None:
    gold = {"q1": ["a"]}
    runs = {"a": {"q1": ["a"]}, "b": {"q1": ["a", "u"]}, "c": {"q1": ["u"]}}
    result = findwell.evaluate(runs, gold, ["unjudged@2"])
    assert findwell.labels.agree(result, result, kind="systems")["tau_ap unjudged@2"] == 1.0


def test_labels() -> None:
    first = {"q": {"a": 0, "b": 1, "c": 2, "d": 2, "e": 0}, "r": {"a": 1}}
    second = {"q": {"a": 0, "b": 1, "c": 1, "d": 2, "f": 0}, "r": {"a": 2}}
    found = findwell.labels.agree(first, second, kind="labels")
    expected = inter_rater.cohens_kappa([[1, 0, 0], [0, 1, 1], [0, 1, 1]])
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
    found = findwell.labels.agree(words, numbers, column="verdict", kind="labels")
    assert found["agreement"] == 0.5
    assert found.findings[0].examples == ("q2 a",)
    assert (
        findwell.labels.agree(words, numbers, column="grade", kind="labels")
        .details["first"]
        .unique()
        .sort()[0]
        == "0"
    )
    records = [{"query": 1, "verdict": True}, {"query": 2, "verdict": False}]
    assert findwell.labels.agree(records, records, column="verdict", kind="labels")["kappa"] == 1.0


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(FindwellError, match="share no query"):
        findwell.labels.agree({"q": ["a"]}, {"r": ["a"]}, kind="rankings")
    with pytest.raises(FindwellError, match="nothing has a label in both"):
        findwell.labels.agree({"q": {"a": 1}}, {"q": {"b": 1}}, kind="labels")
    twice = tmp_path / "twice.csv"
    twice.write_text("query,verdict\nq1,a\nq1,b\n")
    with pytest.raises(FindwellError, match="'q1' is labelled twice"):
        findwell.labels.agree(twice, twice, column="verdict", kind="labels")
    with pytest.raises(FindwellError, match="unknown column 'verdit'"):
        findwell.labels.agree(twice, twice, column="verdit", kind="labels")
    result = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "RR")
    other = findwell.evaluate({"x": {"q": ["a"]}}, {"q": ["a"]}, "RR")
    with pytest.raises(FindwellError, match="share no run"):
        findwell.labels.agree(result, other, kind="systems")
    with pytest.raises(FindwellError, match="unknown statistic 'rho'"):
        findwell.labels.agree({"q": ["a"]}, {"q": ["a"]}, kind="rankings")["rho"]
    one = findwell.labels.agree(result, result, kind="systems")
    assert one["tau RR"] is None
    assert one.summary["reason"][0] == "there are fewer than two items to order"


def test_what_they_are_is_found_out(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.trec"
    qrels.write_text("q1 0 a 1\nq1 0 b 0\n")
    run.write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\n")
    assert findwell.labels.agree(qrels, qrels).kind == "labels"
    assert findwell.labels.agree(run, run).kind == "rankings"
    result = findwell.evaluate(run, qrels, "RR")
    assert findwell.labels.agree(result, result.save(tmp_path / "saved")).kind == "systems"
    with pytest.raises(FindwellError, match="may hold rankings or labels"):
        findwell.labels.agree({"q": ["a"]}, {"q": ["a"]})
    with pytest.raises(FindwellError, match="unknown kind of agreement 'ranking'"):
        findwell.labels.agree(run, run, kind="ranking")


def test_it_reads_as_an_evaluation_does(tmp_path: Path) -> None:
    chunks, docs = {"q": ["d1#0", "d2#4", "d1#7"]}, {"q": ["d1", "d2"]}
    assert findwell.labels.agree(chunks, docs, kind="rankings")["rbo"] == 0
    same = findwell.labels.agree(chunks, docs, kind="rankings", ids="chunk-to-doc")
    assert same["rbo"] == pytest.approx(1.0)
    people = {"q": {"D1": 1, "d2": 0}}, {"q": {"d1": 1, "D2": 0}}
    assert findwell.labels.agree(*people, kind="labels", ids="lower")["kappa"] == 1.0
    broken = tmp_path / "gold.jsonl"
    broken.write_text('{"query": "q", "gold": ["a", "b"]}\n{broken\n')
    with pytest.raises(FindwellError, match="line 2"):
        findwell.labels.agree(broken, broken, kind="labels")
    read = findwell.labels.agree(broken, broken, kind="labels", skip_bad=True)
    assert read.summary["n"][0] == 2
    told = [(each.kind, each.run) for each in read.findings]
    assert told == [("skipped-record", "first"), ("skipped-record", "second")]
