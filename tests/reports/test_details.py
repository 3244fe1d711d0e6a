"""Single queries: the same marks, items and steps as `findwell explain`, and where texts match."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.show.details import QueryDetails, disagrees, query_details
from findwell.show.escape import multiline
from findwell.show.excerpts import excerpt, in_utf16, merged, places
from findwell.show.explanation import sentence
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import hostile

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample

DEMO = Path(findwell.__file__).parent / "demo"
MARKS = {"unjudged": "unjudged", "rejected": "rejected", "hit": "hit", "again": "again"}


def told(result: findwell.Result, query: str, run: int = 0) -> dict[str, Any]:
    return QueryDetails(lay_side_by_side([result]).systems[run]).of(query)


def test_it_tells_what_explain_tells(demo_folder: Path) -> None:
    system = lay_side_by_side([demo_folder]).systems[0]
    cases = QueryDetails(system)
    for query in system.result.queries["query"].head(20):
        (explained,) = findwell.explain(DEMO / "bm25.trec", DEMO / "questions.jsonl", query=query)
        case = cases.of(query)
        assert [(each["rank"], each["doc"]) for each in case["list"]] == [
            (step.rank, step.doc) for step in explained.ranking
        ]
        assert [each["mark"] for each in case["list"]] == [
            MARKS[step.mark] for step in explained.ranking
        ]
        (gold,) = case["gold"]
        assert [(each["number"], each["rank"]) for each in gold["items"]] == [
            (item.number, item.rank) for item in explained.items if item.grade >= 1
        ]
        assert case["steps"] == [sentence(calculation) for calculation in explained.calculations]


def test_marks_and_gold_are_those_of_the_relevance_level() -> None:
    run, gold = {"q": ["a", "b", "x"]}, {"q": {"a": 1, "b": 2, "c": 2}}
    result = findwell.evaluate(
        run, gold, ["P@2", "nDCG@2"], rel=2, reading=findwell.Reading(keep=5)
    )
    case = told(result, "q")
    (explained,) = findwell.explain(run, gold, ["P@2", "nDCG@2"], rel=2)
    assert [each["mark"] for each in case["list"]] == ["rejected", "hit", "unjudged"]
    assert [each["mark"] for each in case["list"]] == [step.mark for step in explained.ranking]
    assert [(each["counts"], each["met"], each["relevant"]) for each in case["gold"]] == [
        ("grade >= 2", 1, 2),
        ("grade > 0", 2, 3),
    ]
    assert case["steps"] == [sentence(calculation) for calculation in explained.calculations]


def test_the_gold_says_its_text_where_any_system_found_it(demo_folder: Path) -> None:
    from findwell.show.details import gold_texts

    panel = lay_side_by_side([demo_folder])
    known = gold_texts(panel)
    case = QueryDetails(panel.systems[0], known).of("q01")
    assert case["gold"][0]["items"][0]["texts"][0].startswith(
        known[case["gold"][0]["items"][0]["docs"][0]][:50]
    )


SENTENCES = [
    {
        "query": "q",
        "question": "Which pump?",
        "retrieved": ["Old news. The pump is blue and small. Bye now.", "Nothing here at all."],
        "gold": ["The pump is blue and small."],
    }
]


@pytest.mark.parametrize("by", ["rouge", "rouge-sentence", "exact-sentence"])
def test_the_matched_sentence_is_highlighted(by: str) -> None:
    result = findwell.evaluate(
        SENTENCES, None, ["recall", "P"], by=by, reading=findwell.Reading(keep=5)
    )
    first, second = told(result, "q")["list"]
    assert first["mark"] == "hit"
    assert [first["text"][low:high] for low, high in first["matched"]] == [
        "The pump is blue and small."
    ]
    assert second["mark"] == "miss" if by == "rouge" else second["mark"] in ("miss", "rejected")
    assert "matched" not in second
    assert first["doc"] == ""  # the text is its own id


def judged(sample: Sample) -> dict[str, Any]:
    """Say of each part that it is good if it names the pump, and why."""
    return {
        "relevance": [{"value": 2 * ("pump" in chunk), "reason": "r"} for chunk in sample.chunks],
        "claims": [
            [{"value": item in chunk, "reason": "c", "quote": item} for chunk in sample.chunks]
            for item in sample.items["claims"]
        ],
        "statements": [
            [{"value": "pump" in part, "reason": f"about {part[:8]}"} for part in parts]
            for parts in sample.parts["statements"]
        ],
    }


JUDGED = {
    "query": "q",
    "question": "Which pump?",
    "reference": "The pump is blue. It is small.",
    "contexts": ["😀 Old news. The pump is blue. Bye now.", "Nothing here.", "It is small."],
}


def test_verdicts_point_into_the_text_and_repeat_nothing() -> None:
    result = findwell.evaluate(
        [JUDGED],
        None,
        ["P@3/relevance", "recall@3/claims", "P@3/statements"],
        judge=judged,
        reading=findwell.Reading(keep=5),
    )
    case = told(result, "q")
    first = case["list"][0]
    said: dict[str, list[dict[str, Any]]] = {}
    for verdict in first["verdicts"]:
        said.setdefault(verdict["aspect"], []).append(verdict)
    units = first["text"].encode("utf-16-le")
    parts = [
        units[2 * low : 2 * high].decode("utf-16-le")
        for verdict in said["statements"]
        for low, high in verdict["places"]
    ]
    assert parts == ["😀 Old news.", "The pump is blue.", "Bye now."]
    assert [each["value"] for each in said["statements"]] == [0, 1, 0]
    assert [each["reason"] for each in said["statements"]][1] == "about The pump"
    assert not any("item" in each for each in said["statements"])  # which is the place in the text
    assert [(each["item"], each["value"]) for each in said["claims"]] == [(1, 1), (2, 0)]
    assert [each["docs"] for each in case["gold"][0]["items"]] == [
        ["The pump is blue."],
        ["It is small."],
    ]
    assert "The pump is blue." not in str(first["verdicts"])
    (low, high) = first["matched"][0]
    assert units[2 * low : 2 * high].decode("utf-16-le") == "The pump is blue."


@pytest.mark.parametrize("cutoff", [1, 2])
def test_verdicts_end_with_the_deepest_cutoff(cutoff: int) -> None:
    measures = [f"P@{cutoff}/relevance", "recall/claims"]
    case = told(
        findwell.evaluate([JUDGED], None, measures, judge=judged, reading=findwell.Reading(keep=5)),
        "q",
    )
    for aspect, deepest in (("relevance", cutoff), ("claims", 3)):
        having = [
            chunk["rank"]
            for chunk in case["list"]
            if any(each["aspect"] == aspect for each in chunk.get("verdicts", ()))
        ]
        assert having == list(range(1, deepest + 1))
    assert case["cutoff"] is None  # recall reads the whole list
    only = told(
        findwell.evaluate(
            [JUDGED], None, measures[:1], judge=judged, reading=findwell.Reading(keep=5)
        ),
        "q",
    )
    assert only["cutoff"] == cutoff


def test_the_gold_is_one_table_for_all_systems() -> None:
    gold = {"q": {"a": 2, "b": 1, "c": 1}}
    runs = {"one": {"q": ["x", "a", "b"]}, "two": {"q": ["a", "c"]}}
    panel = lay_side_by_side(
        [findwell.evaluate(runs, gold, ["P@2", "nDCG@3"], rel=2, reading=findwell.Reading(keep=5))]
    )
    case = query_details(panel, [QueryDetails(system) for system in panel.systems], 0)
    (table,) = case["gold"]
    assert table["systems"] == [0, 1]
    assert [(item["docs"], item["ranks"]) for item in table["items"]] == [
        (["a"], [2, 1]),
        (["b"], [3, None]),
        (["c"], [None, 2]),
    ]
    assert table["counted"] == [
        {"counts": "grade >= 2", "relevant": 1, "met": [1, 1]},
        {"counts": "grade > 0", "relevant": 3, "met": [2, 2]},
    ]
    assert (table["cutoff"], table["more"]) == (3, 0)
    assert not any("gold" in system for system in case["systems"])


def test_systems_of_another_gold_have_a_table_of_their_own() -> None:
    run = {"q": ["a", "b"]}
    results = {
        name: findwell.evaluate(run, {"q": docs}, ["recall"], reading=findwell.Reading(keep=5))
        for name, docs in (("one", ["a"]), ("two", ["b", "c"]), ("three", ["a"]))
    }
    panel = lay_side_by_side([results])
    case = query_details(panel, [QueryDetails(system) for system in panel.systems], 0)
    assert [table["systems"] for table in case["gold"]] == [[0, 2], [1]]
    assert [[item["ranks"] for item in table["items"]] for table in case["gold"]] == [
        [[1, 1]],
        [[2], [None]],
    ]


def test_a_judge_is_quoted() -> None:
    result = hostile.result()
    case = told(result, "__proto__")
    first = case["list"][0]
    (verdict,) = first["verdicts"]
    assert verdict["value"] == 2
    assert verdict["reason"].endswith("because")
    assert first["text"][slice(*first["matched"][0])] == "__proto__ is text."
    long = told(result, hostile.ATTACKS[0])["list"][1]
    assert len(long["text"]) <= 1500
    assert long["cut"] == [0, 20_000]
    assert long["verdicts"]


def test_repeats_and_empty_lists_and_lists_that_were_not_kept() -> None:
    run = {"q1": ["a", "a", "b"], "q2": []}
    gold = {"q1": ["a", "b"], "q2": ["c"], "q3": ["d"]}
    result = findwell.evaluate(run, gold, ["recall@2"], reading=findwell.Reading(keep=5))
    assert [each["mark"] for each in told(result, "q1")["list"]] == ["hit", "repeated", "hit"]
    empty = told(result, "q2")
    assert (empty["depth"], empty["list"], empty["gold"][0]["met"]) == (0, [], 0)
    assert told(result, "q3")["steps"] == ["recall@2 (findwell) = 0 ÷ 1 relevant item = 0.0000"]
    forgetful = told(findwell.evaluate(run, gold, ["recall@2"]), "q1")
    assert [each["doc"] for each in forgetful["list"]] == ["(not kept)"] * 3


def test_a_query_without_a_value_says_why() -> None:
    result = findwell.evaluate(
        {"q": ["a"]}, {"q": {"a": 0}, "r": ["a"]}, ["recall"], reading=findwell.Reading(keep=5)
    )
    assert told(result, "q")["steps"] == ["recall (findwell) has no value: no relevant item"]
    assert told(result, "q")["list"][0]["mark"] == "rejected"


@given(st.text(), st.lists(st.text(min_size=1), max_size=3))
@settings(deadline=None)
def test_places_lie_in_the_text(content: str, wanted: list[str]) -> None:
    last = 0
    for low, high in places(content, wanted):
        assert last <= low < high <= len(content)
        last = high


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-16")), st.data())
@settings(deadline=None)
def test_excerpts_keep_what_was_marked(content: str, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, len(content) - 1))
    high = data.draw(st.integers(low + 1, len(content)))
    most = data.draw(st.integers(1, 40))
    part, spans, start = excerpt(content, [(low, high)], most)
    assert part == content[start : start + most]
    for first, last in spans:
        assert content[low:high].startswith(part[first:last]) or part[first:last] in content
    for first, last in in_utf16(part, spans):
        units = part.encode("utf-16-le")
        assert units[2 * first : 2 * last].decode("utf-16-le") in part


@given(st.text())
@settings(deadline=None)
def test_nothing_shown_steers_anything(content: str) -> None:
    clean = multiline(content)
    assert not set(clean) & {*map(chr, range(9)), "\x1b", "\u202e", "\u2066", "\u2028", "\r"}
    clean.encode("utf-8")


def test_spans_that_touch_are_one() -> None:
    assert merged([(3, 5), (0, 3), (9, 12), (10, 11)]) == [(0, 5), (9, 12)]


def test_a_verdict_about_the_whole_list_stands_below_it() -> None:
    sample = {"query": "q", "question": "Where is Rio?", "contexts": ["Rio lies by the sea.", ""]}
    result = findwell.judges.judge(
        [sample],
        "context_sufficiency",
        judge=lambda _: {"sufficiency": 1},
        reading=findwell.Reading(keep=5),
    )
    case = told(result, "q")
    assert [(each["aspect"], each["value"]) for each in case["verdicts"]] == [("sufficiency", 1)]
    assert not any("verdicts" in each for each in case["list"])


def test_a_judge_of_claims_does_not_speak_of_relevance() -> None:
    reading = findwell.Reading(keep=5)
    asked = ["P@3/relevance", "recall@3/claims"]
    result = findwell.evaluate([JUDGED], None, asked, judge=judged, reading=reading)
    first, second, _ = told(result, "q")["list"]
    assert [who for who, _ in first["said"]] == ["judge", "claims"]
    assert dict(first["said"])["claims"] == "hit"
    assert dict(second["said"])["claims"] != "hit"


def test_each_mark_says_who_made_it_and_contradictions_are_found() -> None:
    def judge(sample: Sample) -> dict[str, Any]:
        return {"relevance": [{"value": int("yes" in chunk)} for chunk in sample.chunks]}

    texts = {"a": "yes, it is", "b": "no, it is not"}
    gold = [
        {"query": query, "question": "Is it?", "gold": [doc]}
        for query, doc in (("agree", "a"), ("differ", "b"))
    ]
    result = findwell.evaluate(
        {"agree": ["a", "b"], "differ": ["a", "b"]},
        gold,
        ["recall@1", "P@2/relevance"],
        corpus=texts,
        judge=judge,
        reading=findwell.Reading(keep=5),
    )
    assert told(result, "differ")["list"][1]["said"] == [["gold", "hit"], ["judge", "rejected"]]
    panel = lay_side_by_side([result])
    details = [QueryDetails(panel.systems[0])]
    found = [disagrees(query_details(panel, details, at)) for at in range(2)]
    assert found == [False, True]
    assert prepare(panel).data["disagree"] == [1]
