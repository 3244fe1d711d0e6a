"""What `align` decides: order, ties, duplicates, missing and extra queries; what it reports."""

from __future__ import annotations

import copy
import itertools
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.core.data import RunStream
from findwell.core.errors import AlignError, OptionError
from tests import sample
from tests.sample import kinds, ranked, score
from tests.strategies import TRICKY_IDS, by_measure, examples, random_scored

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Save
    from tests.strategies import Scored

INF, NAN = float("inf"), float("nan")


def order(run: Any, docs: list[str], **options: Any) -> list[str]:
    """Return the documents of query q in the order in which findwell ranks them."""
    found = {}
    for doc in docs:
        rank = findwell.evaluate(run, {"q": [doc]}, ["RR"], **options)["RR"]
        assert rank
        found[doc] = round(1 / rank)
    assert sorted(found.values()) == list(range(1, len(docs) + 1))
    return sorted(docs, key=found.__getitem__)


def test_ties_are_broken_by_doc_id_descending_in_bytes() -> None:
    expected = sorted(TRICKY_IDS, key=str.encode, reverse=True)
    for seed in range(3):
        docs = random.Random(seed).sample(TRICKY_IDS, len(TRICKY_IDS))
        assert order({"q": dict.fromkeys(docs, 1.0)}, TRICKY_IDS) == expected


@given(st.dictionaries(st.sampled_from(TRICKY_IDS), st.integers(-2, 2).map(float), min_size=1))
@examples(40)
def test_score_descending_then_id_descending(docs: dict[str, float]) -> None:
    assert order({"q": docs}, list(docs)) == ranked({"q": docs})["q"]


def _rows(run: Scored) -> list[tuple[str, str, float]]:
    return [(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]


@pytest.mark.parametrize("levels", [3, None], ids=["ties", "distinct"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_may_come_in_any_order(seed: int, levels: int | None) -> None:
    run, gold = random_scored(seed, levels=levels)
    rows = _rows(run)
    by_rank = sorted(rows, key=lambda row: (-row[2], row[0]))
    shuffled = random.Random(seed).sample(rows, len(rows))
    for mixed in (rows[::-1], by_rank, shuffled):
        frame = pl.DataFrame(mixed, schema=["query", "doc", "score"], orient="row")
        assert score(frame, gold) == score(run, gold)


def test_interleaved_lists_keep_their_order() -> None:
    frame = pl.DataFrame(
        {"query": ["a", "b", "a", "b", "a"], "doc": ["z", "z", "y", "x", "x"]},
    )
    gold = {"a": ["x"], "b": ["x"]}
    assert by_measure(findwell.evaluate(frame, gold, ["RR"]))["RR"] == {"a": 1 / 3, "b": 0.5}


def test_scores_are_compared_in_64_bits() -> None:
    close = {"a": 1.0 + 2**-40, "b": 1.0}
    assert order({"q": close}, ["a", "b"]) == ["a", "b"]
    assert np.float32(close["a"]) == np.float32(close["b"])
    assert order({"q": close}, ["a", "b"], dialect="trec_eval-9") == ["b", "a"]
    assert order({"q": close}, ["a", "b"], dialect="trec_eval") == ["a", "b"]


def test_scores_beyond_32_bits_tie_as_infinities() -> None:
    assert order({"q": {"a": 1e300, "b": 1e299}}, ["a", "b"]) == ["a", "b"]
    assert order({"q": {"a": 1e300, "b": 1e299}}, ["a", "b"], dialect="trec_eval-9") == ["b", "a"]


def test_infinite_scores_rank_first_and_last_without_a_finding() -> None:
    run = {"q": {"c": INF, "b": 0.0, "d": -0.0, "a": -INF}}
    assert order(run, list("abcd")) == ["c", "d", "b", "a"]
    assert not findwell.io.check(run, {"q": ["a"]})


def test_nan_scores_rank_last_with_a_finding() -> None:
    run = {"q": {"c": -1.0, "b": -INF, "a": NAN, "d": NAN}, "p": {"a": 1.0}}
    assert order(run, list("abcd"))[:1] == ["c"]
    result = findwell.evaluate(run, {"q": ["a"], "p": ["a"]}, ["RR"])
    assert kinds(result) == {"nan-score": 2}
    (finding,) = result.findings
    assert finding.examples == ("q / a", "q / d")
    assert finding.run == "run"


def test_the_first_of_a_repetition_counts_and_the_rest_is_noise() -> None:
    run, gold = {"q": ["a", "a", "b", "a"]}, {"q": ["a", "b"]}
    result = findwell.evaluate(run, gold, ["P@2", "P@4", "recall@2", "recall", "AP", "nDCG"])
    assert result["P@2"] == 0.5
    assert result["P@4"] == 0.5
    assert result["recall@2"] == 0.5
    assert result["recall"] == 1
    assert result["AP"] == pytest.approx((1 + 2 / 3) / 2)
    assert kinds(result) == {"duplicate-document": 2}
    assert result.findings[0].examples == ("q / a", "q / a")


def test_a_repetition_in_a_scored_table_counts_at_its_best_score() -> None:
    frame = pl.DataFrame({"query": ["q"] * 3, "doc": ["a", "b", "a"], "score": [1.0, 2.0, 3.0]})
    result = findwell.evaluate(frame, {"q": ["a"]}, ["RR"])
    assert result["RR"] == 1
    assert kinds(result) == {"unsorted": 1, "duplicate-document": 1}


def test_repetitions_are_counted_by_query() -> None:
    run = {f"q{number}": ["a", "b", "a"] for number in range(10)}
    (finding,) = findwell.io.check(run, {query: ["a"] for query in run})
    assert (finding.kind, finding.count) == ("duplicate-document", 10)
    assert finding.examples == ("q0 / a", "q1 / a", "q2 / a")


@pytest.mark.parametrize("dialect", ["trec_eval", "trec_eval-9"])
def test_trec_eval_refuses_repetitions(dialect: str) -> None:
    with pytest.raises(AlignError, match="retrieved twice for one query: q / a"):
        findwell.evaluate({"q": ["a", "a"]}, {"q": ["a"]}, ["AP"], dialect=dialect)


GOLD = {"q1": ["a"], "q2": ["a"], "q3": ["b"], "q4": ["b"], "q5": ["b"]}


@pytest.mark.parametrize(
    ("missing", "value", "n"), [("zero", 1 / 5, 5), ("skip", 1.0, 1), (None, 1 / 5, 5)]
)
def test_queries_the_run_misses(missing: str | None, value: float, n: int) -> None:
    result = findwell.evaluate(
        {"q1": ["a"]}, GOLD, ["P@1"], reading=findwell.Reading(missing=missing)
    )
    assert result["P@1"] == value
    assert result.summary["n"].to_list() == [n]
    (finding,) = result.findings
    assert (finding.kind, finding.count) == ("missing-query", 4)
    assert finding.examples == ("q2", "q3", "q4")


def test_missing_queries_may_be_an_error() -> None:
    with pytest.raises(AlignError, match="4 queries of the gold are missing, for example 'q2'"):
        findwell.evaluate({"q1": ["a"]}, GOLD, ["P@1"], reading=findwell.Reading(missing="error"))
    with pytest.raises(AlignError, match="1 query of the gold is missing"):
        findwell.evaluate(
            {"q1": ["a"]},
            {"q1": ["a"], "q2": ["b"]},
            ["P@1"],
            reading=findwell.Reading(missing="error"),
        )


def test_extra_queries_are_left_out_and_counted() -> None:
    run = {f"q{number}": ["a", "b"] for number in range(1, 10)}
    result = findwell.evaluate(run, GOLD, ["P@1"])
    assert result.summary["n"].to_list() == [5]
    (finding,) = result.findings
    assert (finding.kind, finding.count) == ("extra-query", 4)
    assert finding.examples == ("q6", "q7", "q8")


def test_a_list_that_is_empty_retrieved_nothing() -> None:
    result = findwell.evaluate({"q1": ["a"], "q2": []}, {"q1": ["a"], "q2": ["a"]}, ["P@1"])
    assert result["P@1"] == 0.5
    assert kinds(result) == {"retrieved-nothing": 1}


def test_rows_that_contradict_their_scores_are_a_finding() -> None:
    columns = {
        "query": ["a", "a", "b", "b"],
        "doc": ["x", "y", "x", "y"],
        "score": [1.0, 2.0, 2.0, 1.0],
    }
    result = findwell.evaluate(pl.DataFrame(columns), {"a": ["y"], "b": ["x"]}, ["P@1"])
    assert result["P@1"] == 1
    (finding,) = result.findings
    assert (finding.kind, finding.count, finding.examples) == ("unsorted", 1, ("a",))


def test_lists_that_contradict_their_scores_are_a_finding(save: Save) -> None:
    """On every road; the order of the list decides. No score, or the same one, says nothing."""

    def entries(*scores: float | None) -> list[dict[str, Any]]:
        return [{"doc": f"d{at}", "score": score} for at, score in enumerate(scores)]

    run = {"a": entries(0.1, 0.9), "b": entries(9, 2, 2, None), "c": entries(0.5, None, 0.7)}
    gold = {query: ["d0"] for query in run}
    records = [{"query": query, "retrieved": run[query]} for query in run]
    lines = "\n".join(map(json.dumps, records))
    for data in (run, records, pl.DataFrame(records), save("run.jsonl", lines)):
        result = findwell.evaluate(data, gold, ["P@1"])
        assert result["P@1"] == 1
        (finding,) = result.findings
        assert (finding.kind, finding.examples) == ("unsorted", ("a",))
        assert "The order of the list decides." in finding.message
    objects = {"a": [{"id": "d0", "text": "x", "distance": 0.1}, {"id": "d1", "distance": 0.9}]}
    assert not findwell.evaluate(objects, {"a": ["d0"]}, ["P@1"]).findings  # a low one is better


def test_scores_of_a_dict_that_only_rise(save: Save) -> None:
    """Distances have no other mark; what may be chance, and what falls, is no finding."""
    rising: dict[str, dict[str, Any]] = {f"q{at}": {"a": 1, "b": 2, "c": 4} for at in range(3)}
    gold = {query: ["a"] for query in rising}
    texts = {
        query: {doc: str(score) for doc, score in docs.items()} for query, docs in rising.items()
    }
    for run in (rising, texts, save("run.json", json.dumps(rising)), {"named": rising}):
        assert kinds(findwell.evaluate(run, gold, ["P@1"])) == {"rising-scores": 3}
    few = dict(list(rising.items())[:2])
    falling = {query: dict(reversed(docs.items())) for query, docs in rising.items()}
    mixed = rising | {"q2": falling["q2"]}
    equal = {query: dict.fromkeys(docs, 1.0) for query, docs in rising.items()}
    for run in (few, falling, mixed, equal):
        assert "rising-scores" not in kinds(findwell.evaluate(run, gold, ["P@1"]))


def test_ranks_with_gaps_or_from_zero_agree() -> None:
    frame = pl.DataFrame(
        {"query": ["a"] * 3, "doc": list("xyz"), "score": [3.0, 2, 1], "rank": [0, 5, 9]}
    )
    assert not findwell.io.check(frame, {"a": ["x"]})


class TestGold:
    """What is odd about the gold alone."""

    def test_duplicates_count_once(self) -> None:
        frame = pl.DataFrame({"query": ["q"] * 3, "doc": ["a", "a", "b"], "grade": [1, 1, 1]})
        result = findwell.evaluate({"q": ["a"]}, frame, ["recall"])
        assert result["recall"] == 0.5
        assert kinds(result) == {"gold-duplicate": 1}
        assert result.findings[0].run == ""

    def test_conflicts_take_the_higher_grade(self) -> None:
        frame = pl.DataFrame({"query": ["q"] * 3, "doc": ["a", "a", "b"], "grade": [0, 2, 1]})
        result = findwell.evaluate({"q": ["a", "b"]}, frame, ["nDCG", "recall"])
        assert result["recall"] == 1
        assert result["nDCG"] == 1
        assert kinds(result) == {"gold-duplicate": 1, "gold-conflict": 1}
        assert result.findings[1].examples == ("q / a",)

    def test_groups_of_mixed_grades_take_the_highest(self) -> None:
        frame = pl.DataFrame(
            {"query": ["q"] * 2, "doc": ["a", "b"], "group": ["g", "g"], "grade": [1, 3]}
        )
        result = findwell.evaluate({"q": ["a"]}, frame, ["recall"], rel=3)
        assert result.summary["value"].to_list() == [1]
        assert kinds(result) == {"mixed-grades": 1}

    @pytest.mark.parametrize("empty", [[], {}, {"x": 0}, {"x": -1}, None], ids=repr)
    def test_no_relevant_item_is_undefined(self, empty: Any) -> None:
        gold = [{"query": "q", "gold": ["a"]}, {"query": "p", "gold": empty}]
        result = findwell.evaluate({"q": ["a"], "p": ["x"]}, gold, ["recall", "AP"])
        assert result["recall"] == result["AP"] == 1
        rows = result.per_query.filter(pl.col("query") == "p")
        assert rows["value"].to_list() == [None, None]
        assert set(rows["reason"]) == {"no relevant item"}
        assert result.summary["undefined"].to_list() == [1, 1]
        assert kinds(result) == {"no-relevant-item": 1}

    @pytest.mark.parametrize(
        ("judged", "value"), [({"x": 0}, 0.0), ({"y": 0}, 0.0), ({"x": -1}, None), ({}, None)]
    )
    def test_judged_and_nothing_relevant(self, judged: Any, value: float | None) -> None:
        """People looked and found nothing: the list is bad, and what there is to find unknown."""
        run, gold = {"q": ["a"], "p": ["x"]}, {"q": {"a": 1}, "p": judged}
        names = ["P@1", "success@1", "RR", "RBP", "DCG@1", "recall", "AP", "nDCG"]
        found = findwell.evaluate(run, gold, names)
        values = dict(
            found.per_query.filter(pl.col("query") == "p").select("measure", "value").rows()
        )
        assert [values[name] for name in names[5:]] == [None] * 3
        assert {values[name] for name in values if name not in names[5:]} == {value}
        assert found["P@1"] == (1.0 if value is None else 0.5)
        assert ("score 0" in found.findings[0].message) == (value == 0)
        zero = findwell.evaluate(run, gold, names, dialect="trec_eval")
        assert set(zero.per_query.filter(pl.col("query") == "p")["value"]) == {0.0}

    @pytest.mark.parametrize("gold", [{"q": []}, {"q": {"a": 0}}, {"q": {"a": -1, "b": 0.5}}])
    def test_no_relevant_item_at_all_is_refused(self, gold: Any) -> None:
        with pytest.raises(AlignError, match="no relevant item"):
            findwell.evaluate({"q": ["a"]}, gold, ["recall"])

    @pytest.mark.parametrize("rel", [3.5, 4, 1e300])
    def test_a_level_above_every_grade_is_refused(self, rel: float) -> None:
        with pytest.raises(AlignError, match="the highest grade is 3"):
            findwell.evaluate(sample.RUN, sample.GOLD, ["recall"], rel=rel)


DIFFERENT = [
    (["Q1"], ["q1"], "upper and lower case"),
    (["q1 "], ["q1"], "spaces around"),
    (["001", "002"], ["1", "2"], "pads its numbers with zeros"),
    (["q01"], ["q1"], "pads its numbers with zeros"),
    (["1.0"], ["1"], r"whole numbers as 1\.0"),
    (["q1"], ["1"], "before the number"),
    (["topic-1"], ["q1"], "before the number"),
    (["apple"], ["pear"], "the same queries"),
]


@pytest.mark.parametrize("scored", [True, False], ids=["scored", "listed"])
@pytest.mark.parametrize(("ours", "theirs", "guess"), DIFFERENT)
def test_no_shared_query_shows_both_sides_and_guesses(
    ours: list[str], theirs: list[str], guess: str, scored: bool
) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        docs: Any = {"a": 1.0, "b": 0.5} if scored else ["a", "b"]
        with pytest.raises(AlignError, match=guess) as stop:
            findwell.evaluate(dict.fromkeys(one, docs), {query: ["a"] for query in other}, ["P@1"])
        assert f"the run has {one[0]!r}, the gold has {other[0]!r}" in str(stop.value)


def test_a_batch_without_a_known_query_is_no_trouble() -> None:
    rows = pl.DataFrame({"query": ["x", "y", "q"], "doc": ["a"] * 3, "score": [1.0] * 3})
    in_two = RunStream("run", lambda: iter((rows[:2], rows[2:])))
    result = findwell.evaluate(in_two, {"q": ["a"]}, ["P@1"])
    assert result["P@1"] == 1
    assert kinds(result) == {"extra-query": 2}


UUID = "<urn:uuid:27c6-ab>"
NORMALISERS: list[tuple[Any, list[str], list[str]]] = [
    ("identity", ["a#1"], ["a#1"]),
    ("uuid", [f"doc-{UUID}::chunk-0", "plain"], [UUID, "plain"]),
    ("chunk-to-doc", ["a-b#12", "plain"], ["a-b", "plain"]),
    ("chunk-to-doc:::", ["a:b::12", "a#1"], ["a:b", "a#1"]),
    ("chunk-to-doc:.", ["ab.1", "axb"], ["ab", "axb"]),
    ("chunk-to-doc:_chunk_", ["d_1_chunk_7"], ["d_1"]),
    (r"regex:^(\w+)-", ["doc1-chunk", "none"], ["doc1", "none"]),
    (r"regex:page=(\d+)&(x)?", ["page=12&x"], ["12"]),
    (str.lower, ["ABC"], ["abc"]),
    (lambda value: value.partition("/")[0], ["a/1", "b"], ["a", "b"]),
]


@pytest.mark.parametrize(("how", "ours", "theirs"), NORMALISERS)
def test_normalisers_apply_to_both_sides(how: Any, ours: list[str], theirs: list[str]) -> None:
    for run, gold in itertools.product((ours, theirs), repeat=2):
        result = findwell.evaluate(
            {"q": run}, {"q": gold}, ["recall", "P@1"], reading=findwell.Reading(ids=how)
        )
        assert (result["recall"], result["P@1"]) == (1, 1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("uid", "did you mean uuid"),
        ("chunk-to-docs", "did you mean chunk-to-doc"),
        ("regex", "unknown id normaliser"),
        ("regex:", "unknown id normaliser"),
        ("regex:abc", "has no group"),
        ("regex:(abc", "not a regular expression"),
        ("regex:(?=a)(b)", "not a regular expression"),  # Rust's engine has no look-ahead
        ("", "unknown id normaliser"),
    ],
)
def test_normalisers_that_do_not_exist(how: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, ["P@1"], reading=findwell.Reading(ids=how))


def test_only_the_last_separator_cuts() -> None:
    run, gold = {"q": ["a#b#12"]}, {"q": ["a#b#7"]}
    assert (
        findwell.evaluate(run, gold, ["recall"], reading=findwell.Reading(ids="chunk-to-doc"))[
            "recall"
        ]
        == 1
    )
    assert (
        findwell.evaluate(
            run, {"q": ["c#7"]}, ["recall"], reading=findwell.Reading(ids="chunk-to-doc")
        )["recall"]
        == 0
    )


def test_chunks_of_one_document_count_once() -> None:
    run = {"q": ["a#1", "a#2", "b#1", "c#9"]}
    gold = {"q": ["a#7", "a#8", "c"]}
    result = findwell.evaluate(
        run,
        gold,
        ["recall@1", "recall", "P@4", "num_rel"],
        reading=findwell.Reading(ids="chunk-to-doc"),
    )
    assert result["recall@1"] == 0.5  # a#7 and a#8 became one document
    assert result["recall"] == 1
    assert result["P@4"] == 0.5
    assert kinds(result) == {"duplicate-document": 1}


def test_groups_that_become_one_document_stay_items() -> None:
    gold = {"q": [["a#1", "a#2"], "b#1"]}
    result = findwell.evaluate(
        {"q": ["a#9"]}, gold, ["recall"], reading=findwell.Reading(ids="chunk-to-doc")
    )
    assert result["recall"] == 0.5


@pytest.mark.parametrize("how", ["identity", "uuid", "chunk-to-doc:#", "regex:(.)", str.upper])
@pytest.mark.parametrize("make", [dict, lambda run: pl.DataFrame(sample.run_table(run))])
def test_inputs_are_never_changed(how: Any, make: Callable[[Scored], Any]) -> None:
    run, gold = make(sample.RUN), copy.deepcopy(sample.GOLD)
    before = copy.deepcopy(run)
    findwell.evaluate(run, gold, sample.MEASURES, reading=findwell.Reading(ids=how), bounds=True)
    assert gold == sample.GOLD
    assert before.equals(run) if isinstance(run, pl.DataFrame) else before == run
