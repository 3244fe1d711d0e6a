"""What is explained is what was measured: every measure, dialect, relevance level and gold.

The measures are taken from `findwell.plugins.known_measures()`, so that a new one is tested by
existing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given

import findwell
from findwell.evaluation.explanation.calculation import COUNTS_AS_ZERO, Calculation, with_parts
from findwell.evaluation.explanation.ranking import grade_words, level_of
from findwell.measures.dialects import known_dialects, resolve_measures
from findwell.show import render
from findwell.show.explanation import sentence
from tests.members import quick
from tests.strategies import examples, grouped_cases, without_facts

if TYPE_CHECKING:
    from findwell import Measure
    from findwell.types import Explanation

LEVELS = (1.0, 2.0)
EVERY = tuple(
    dict.fromkeys(
        cls(k=k).with_level(level)
        for cls in without_facts().values()
        for k in ((None, 2) if cls.at == "k" else (None,))
        for level in LEVELS
    )
)
STRICT = ("trec_eval", "trec_eval-9")  # refuse what is retrieved twice


# what they add up arises where the ideal list changes, at the end, or at noise, not at hits
ELSEWHERE = ("ndcg_rel", "Rndcg", "rejected_retrieved")


def spoken(dialect: str) -> dict[str, Measure]:
    """Return the measures of a dialect by name, those that they are made of too."""
    return {name: each for each, name in with_parts(resolve_measures(EVERY, dialect)).items()}


def check_calculation(calculation: Calculation, measure: Measure) -> None:
    """Check that what is shown adds up."""
    if calculation.value is None:
        assert calculation.reason
        return
    assert calculation.reason is None
    if "ideal" in calculation.divided_by:
        ideal = sum(gain / math.log2(rank + 1) for rank, gain in calculation.ideal)
        assert ideal == pytest.approx(calculation.divisor)
    if calculation.limit.endswith(COUNTS_AS_ZERO):
        assert calculation.value == 0
        return
    if calculation.quotient is None:
        assert calculation.divisor == 0 or not measure.is_sum()
        return
    shown = np.array([calculation.quotient])
    found = shown if measure.limit is None else measure.limit.apply(shown)
    assert found[0] == pytest.approx(calculation.value, abs=1e-12), str(measure)


def check_lists(told: Explanation, measures: dict[str, Measure], gold: list[Any]) -> None:
    """Check the marks of each list against the gold, at the levels of the measures that read it."""
    items = next(record["gold"] for record in gold if record["query"] == told.query)
    calculations = {(each.measure, each.dialect): each for each in told.calculations}
    read = [key for ranking in told.rankings for key in ranking.read_by]
    assert sorted(read) == sorted(calculations)
    for ranking in told.rankings:
        for name, dialect in ranking.read_by:
            level = level_of(measures[name])
            assert calculations[name, dialect].relevant == (
                None if level is None else grade_words(level)
            )
            if level is None:
                continue
            met = 0
            relevant: set[int] = set()
            for step in ranking.steps:
                grades = [each["grade"] for each in items if step.doc in each["docs"]]
                assert bool(step.covers) == bool(grades)
                assert step.grade == max(grades, default=None)
                counts = any(grade >= level for grade in grades)
                assert counts == (step.mark in ("hit", "again")) or step.mark == "repeated"
                met += step.mark in ("hit", "again")
                relevant |= {step.rank} if counts else set()
                assert step.precision == met / step.rank
            for item in ranking.items:
                assert item.relevant == (item.grade >= level)
            terms = {rank for rank, _ in calculations[name, dialect].terms}
            if measures[name].name not in ELSEWHERE:
                assert terms <= relevant, (name, dialect)


def _each_once(items: list[Any]) -> list[Any]:
    grades: dict[str, float] = {}
    for item in items:
        for doc in item["docs"]:
            grades[doc] = max(item["grade"], grades.get(doc, -1.0))
    return [{"docs": [doc], "grade": grade} for doc, grade in grades.items()]


@pytest.mark.parametrize("dialect", quick(known_dialects(), "findwell", "trec_eval"))
@given(case=grouped_cases(integer_grades=True))
@examples(3)
def test_every_number_is_explained_as_it_was_measured(dialect: str, case: tuple[Any, Any]) -> None:
    run, gold = case
    if dialect in STRICT:
        run = {query: list(dict.fromkeys(docs)) for query, docs in run.items()}
        gold = [{**record, "gold": _each_once(record["gold"])} for record in gold]
    measures = spoken(dialect)
    result = findwell.evaluate(run, gold, resolve_measures(EVERY, dialect), dialect=dialect)
    rows = {(row["query"], row["measure"]): row for row in result.per_query.to_dicts()}
    for query in {result.queries["query"][0], "anchor"}:
        (told,) = findwell.explain(run, gold, EVERY, query=query, dialects=dialect)
        for calculation in told.calculations:
            row = rows.get((query, calculation.measure))  # None: a part that was not asked for
            if row is not None:
                assert (calculation.value, calculation.reason) == (row["value"], row["reason"]), (
                    calculation
                )
            check_calculation(calculation, measures[calculation.measure])
        assert len(told.calculations) >= len(resolve_measures(EVERY, dialect))
        check_lists(told, measures, gold)


TEXTS = [
    {
        "query": "one",
        "retrieved": [
            {
                "doc": "a#1",
                "source": "a",
                "text": "The pump is blue. The pump is small. Bye.",
                "start": 0,
                "end": 9,
            },
            {
                "doc": "a#2",
                "source": "a",
                "text": "Nothing of the kind stands here.",
                "start": 9,
                "end": 14,
            },
            {
                "doc": "b#1",
                "source": "b",
                "text": "The pump is blue. It hums.",
                "start": 0,
                "end": 8,
            },
        ],
        "gold": [
            {"doc": "a", "text": "The pump is blue. It hums.", "start": 2, "end": 12, "grade": 3},
            {"doc": "b", "text": "The pump is small.", "start": 0, "end": 4, "grade": 1},
        ],
    },
    {
        "query": "two",
        "retrieved": [{"doc": "c", "text": "The tank is full.", "start": 0, "end": 4}],
        "gold": [{"doc": "d", "text": "The tank is empty.", "start": 0, "end": 4, "grade": 1}],
    },
]
RELATIONS = (
    "exact", "exact-sentence", "rouge(threshold=0.5)", "rouge-sentence", "containment",
    "containment(across=no)", "words", "spans",
)  # fmt: skip


@pytest.mark.parametrize("by", RELATIONS)
def test_over_texts_too(by: str) -> None:
    measures = spoken("findwell")
    precisions = [f"P(rel={level:g})@{k}" for level in LEVELS for k in (1, 2, 3)]
    result = findwell.evaluate(TEXTS, None, [*measures.values(), *precisions], by=by)
    rows = {(row["query"], row["measure"]): row for row in result.per_query.to_dicts()}
    for query in ("one", "two"):
        (told,) = findwell.explain(TEXTS, None, EVERY, by=by, query=query)
        for calculation in told.calculations:
            row = rows[query, calculation.measure]
            assert (calculation.value, calculation.reason) == (row["value"], row["reason"]), (
                calculation
            )
            check_calculation(calculation, measures[calculation.measure])
        for ranking in told.rankings:
            level = ranking.relevant.removeprefix("grade >= ")
            last = {step.chunk or step.rank: step for step in ranking.steps}
            for k, step in last.items():
                value = rows.get(
                    (query, str(findwell.plugins.parse_measure(f"P(rel={level})@{k}")))
                )
                if value is not None and value["value"] is not None:
                    assert step.precision == pytest.approx(value["value"])


def test_the_level_of_a_measure_decides_what_is_a_hit() -> None:
    run, gold = {"q": ["a", "b", "x"]}, {"q": {"a": 1, "b": 2, "c": 2}}
    (told,) = findwell.explain(run, gold, ["P@2", "nDCG@2"], rel=2)
    first, second = told.rankings
    assert (first.relevant, first.read_by) == ("grade >= 2", (("P(rel=2)@2", "findwell"),))
    assert [step.mark for step in first.steps] == ["rejected", "hit", "unjudged"]
    assert [step.precision for step in first.steps][1] == told.calculations[0].value == 0.5
    assert [item.relevant for item in first.items] == [True, True, False]
    assert (second.relevant, second.read_by) == ("grade > 0", (("nDCG@2", "findwell"),))
    assert [step.mark for step in second.steps] == ["hit", "hit", "unjudged"]
    table = render(told, "table")
    assert "the list (3 units, relevant: grade >= 2)" in table
    assert "the gold (1 of 2 relevant items found, relevant: grade >= 2)" in table


def test_levels_that_count_the_same_items_share_a_list() -> None:
    (told,) = findwell.explain({"q": ["a"]}, {"q": {"a": 1, "b": 2}}, ["recall", "nDCG", "judged"])
    (ranking,) = told.rankings
    assert [name for name, _ in ranking.read_by] == ["recall", "nDCG", "judged"]


def test_the_ideal_list_is_the_one_of_the_dialect() -> None:
    gold = {"q": [["a", "b"], ["c"]]}
    (told,) = findwell.explain(
        {"q": ["a", "b", "x"]}, gold, "nDCG", dialects=["findwell", "autorag"]
    )
    mine, theirs = told.calculations
    assert mine.ideal == ((1, 1.0), (2, 1.0))
    assert theirs.ideal == ((1, 1.0), (2, 1.0), (3, 1.0))
    assert theirs.divisor == pytest.approx(1 + 1 / math.log2(3) + 1 / 2)


def test_a_limit_is_said() -> None:
    run, gold = {"q": ["a", "b"]}, {"q": ["a", "b", "c"]}
    (told,) = findwell.explain(run, gold, ["success", "all_found", "recall"])
    assert [sentence(calculation) for calculation in told.calculations] == [
        "success (findwell) = 1.0000 + 1.0000 = 2, at most 1: 1.0000",
        (
            "all_found (findwell) = (1.0000 + 1.0000) ÷ 3 relevant items = 0.6667, all or nothing: "
            "0.0000"
        ),
        "recall (findwell) = (1.0000 + 1.0000) ÷ 3 relevant items = 0.6667",
    ]
    (told,) = findwell.explain({"q": ["a"]}, {"q": {"a": 0}}, "recall", dialects="trec_eval")
    assert sentence(told.calculations[0]) == (
        "recall (trec_eval) = (0) ÷ 0.0000 relevant items, no relevant item counts as 0: 0.0000"
    )


def test_what_is_a_text_is_decided_over_all_queries() -> None:
    """A list of single words is one of texts where other lists hold sentences."""
    samples = [
        {"query": "q", "retrieved": ["one"], "gold": ["two"]},
        {"query": "r", "retrieved": ["a b c"], "gold": ["a b"]},
    ]
    whole = findwell.evaluate(samples, None, "recall", by="rouge").per_query
    for query in "qr":
        (told,) = findwell.explain(samples, None, "recall", by="rouge", query=query)
        assert told.calculations[0].value == whole.filter(query=query)["value"][0]


def test_a_query_without_a_relevant_item_is_explained_like_any_other() -> None:
    run, gold = {"q": ["a"], "r": ["a"]}, {"q": {"a": 0}, "r": {"a": 1}}
    (told,) = findwell.explain(run, gold, "recall", query="q")
    assert told.calculations[0].reason == "no relevant item"


def test_a_judge_is_asked_about_the_query_that_is_explained() -> None:
    samples = [{"query": query, "question": query, "contexts": [f"text {query}"]} for query in "qr"]
    asked = []

    def judge(sample: Any) -> dict[str, object]:
        asked.append(sample.query)
        return {"relevance": [2]}

    (told,) = findwell.explain(samples, measures="P@1/relevance", query="r", judge=judge)
    assert told.calculations[0].value == 1.0
    assert asked == ["r"]


def test_parts_that_a_dialect_computes_otherwise_have_a_name_of_their_own() -> None:
    run, gold = {"q": ["a", "a", "x"]}, {"q": ["a"]}
    (told,) = findwell.explain(run, gold, ["P", "set_map"], dialects="ragas")
    assert {calculation.measure: calculation.value for calculation in told.calculations} == {
        "P": 0.5,
        "P in set_map": 1 / 3,
        "recall": 1.0,
        "set_map": 1 / 3,
    }


@pytest.mark.parametrize(
    ("dialect", "missing", "value", "reason"),
    [
        ("findwell", None, 0.0, None),
        ("findwell", "skip", None, "missing=skip"),
        ("ragas", None, None, "missing=skip"),
        ("ragas", "zero", 0.0, None),
        ("trec_eval", None, None, "missing=error"),
    ],
)
def test_a_query_that_the_run_lacks(
    dialect: str, missing: str | None, value: float | None, reason: str | None
) -> None:
    run, gold = {"q": ["a"]}, {"q": ["a"], "r": ["b"]}
    (told,) = findwell.explain(
        run, gold, "recall", query="r", dialects=dialect, reading=findwell.Reading(missing=missing)
    )
    (calculation,) = told.calculations
    assert calculation.value == value
    assert reason is None or reason in (calculation.reason or "")
    assert told.ranking == ()


def test_two_relations_are_two_lists() -> None:
    (told,) = findwell.explain(TEXTS, None, ["recall/exact", "recall/rouge-sentence"], query="one")
    assert [ranking.relation for ranking in told.rankings] == [
        "exact",
        "rouge-sentence(threshold=0.8)",
    ]
    assert [len(ranking.steps) for ranking in told.rankings] == [3, 6]


def test_of_dialects_that_match_otherwise_each_has_its_list_and_its_cause() -> None:
    record = {"retrieved_context": ["d e. a b c"], "ground_truth_context": ["a b c d"]}
    (told,) = findwell.explain(
        [record],
        measures="recall",
        by="rouge(threshold=0.9)",
        dialects=["findwell", "continuous-eval"],
    )
    assert [ranking.read_by for ranking in told.rankings] == [
        (("recall", "findwell"),),
        (("recall", "continuous-eval"),),
    ]
    (cause,) = told.differences
    assert cause.startswith("recall: continuous-eval matches by rouge(threshold=0.9,text=raw")


def test_what_a_measure_is_made_of_is_the_cause() -> None:
    run, gold = {"q": ["a", "a", "x"]}, {"q": ["a"]}
    (told,) = findwell.explain(run, gold, ["F", "retrieved"], dialects=["findwell", "liverag"])
    assert {
        "P: liverag divides by distinct units retrieved, findwell by units retrieved",
        "F: it is made of P and recall, see there",
        (
            "retrieved: liverag takes how many distinct documents were retrieved, among the first k"
            "; findwell takes how many units were retrieved, among the first k"
        ),
    } < set(told.differences)


def test_several_runs_are_refused() -> None:
    runs = {"one": {"q": ["a"]}, "two": {"q": ["b"]}}
    with pytest.raises(findwell.FindwellError, match="2 runs cannot be explained at once"):
        findwell.explain(runs, {"q": ["a"]}, "recall")


def test_what_cannot_be_read_is_left_out_and_counted(tmp_path: Any) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"query": "q", "retrieved": ["a"], "gold": ["a"]}\n{broken\n')
    with pytest.raises(findwell.FindwellError):
        findwell.explain(path, measures="recall", query="q")
    (told,) = findwell.explain(
        path, measures="recall", query="q", reading=findwell.Reading(skip_bad=True)
    )
    assert told.calculations[0].value == 1.0
    assert [found.count for found in told.findings if "skipped" in found.kind] == [1]


def test_the_worst_come_first_and_those_without_a_value_last() -> None:
    gold = {"q": {"a": 0}, "r": ["a"], "s": ["b"]}
    told = findwell.explain({"q": ["a"], "r": ["a"], "s": ["a"]}, gold, "recall", worst=3)
    assert [each.query for each in told] == ["s", "r", "q"]
    (told_none,) = findwell.explain({"q": ["a"]}, gold, "recall", query="q")
    assert told_none.calculations[0].reason == "no relevant item"


def test_notebooks_show_the_same_tables() -> None:
    (told,) = findwell.explain({"q<b>": ["a"]}, {"q<b>": ["a"]}, "recall")
    html = told._repr_html_()
    assert "query q&lt;b&gt;" in html
    assert "<caption>the list (1 units)</caption>" in html
    assert "recall (findwell) = (1.0000) ÷ 1.0000 relevant items = 1.0000" in html


def test_one_statement_said_twice_by_two_chunks_is_one_unit_each() -> None:
    sample = {
        "query": "q",
        "question": "Where is Rio?",
        "contexts": ["Rio lies by the sea.", "rio lies by the  SEA"],
        "reference": "By the sea.",
    }
    (told,) = findwell.explain([sample], measures="context_relevancy", judge="local:text")
    assert [step.mark for step in told.ranking] in (["hit", "repeated"], ["rejected", "repeated"])
