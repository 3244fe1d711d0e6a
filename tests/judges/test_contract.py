"""The contract of verdicts: by id, exactly once, of the right type, proven by a quote."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.judges.client.protocol import Reason
from findwell.judges.llm.answers import Fault, ParsedAnswer, read_answer
from findwell.judges.llm.prompts import number_items, schema
from findwell.judges.quotes import is_quoted, proves
from findwell.judges.verdicts import Judged, JudgeFailure, Judgement, JudgeReason, Sample
from tests.judges.building import FOUR
from tests.strategies import examples

CHUNKS = ("The battery lasts six hours in winter.", "Charge it “overnight”.", "Bikes — cheap!")
SHOWN = number_items(
    Sample("q", "How long does the battery last?", CHUNKS),
    1000,
    {"claims": ["The battery lasts six hours.", "It charges overnight."], "entities": ["winter"]},
    {"statements": [["The battery lasts six hours in winter."], ["Charge it “overnight”."], []]},
    {},
)
WANTED: dict[Any, tuple[str, ...]] = {
    "relevance": ("c1", "c2", "c3"),
    "claims": ("k1", "k2"),
    "entities": ("e1",),
}
GOOD: dict[str, Any] = {
    "relevance": [
        {"chunk": "c1", "quote": "lasts six hours", "grade": 3},
        {"chunk": "c2", "quote": 'charge it "overnight"', "grade": 1},
        {"chunk": "c3", "quote": "", "grade": 0},
    ],
    "claims": [
        {"claim": "k1", "found": [{"chunk": "c1", "quote": "The battery\nlasts  six hours"}]},
        {"claim": "k2", "found": []},
    ],
    "entities": [{"entity": "e1", "found": [{"chunk": "c1", "quote": "winter"}]}],
}


def read(said: Any, wanted: Any = None, shown: Any = ("c1", "c2", "c3")) -> ParsedAnswer:
    content = said if isinstance(said, str) else json.dumps(said)
    return read_answer(content, WANTED if wanted is None else wanted, shown, SHOWN)


def changed(aspect: str, number: int, **fields: Any) -> dict[str, Any]:
    """Return the good answer with one entry changed; a field of None is taken out."""
    said = json.loads(json.dumps(GOOD))
    entry = said[aspect][number] | fields
    said[aspect][number] = {name: value for name, value in entry.items() if value is not None}
    return dict(said)


def test_a_good_answer_is_read() -> None:
    reading = read(GOOD)
    assert not reading.wrong
    assert not reading.extra
    assert reading.verdicts == {
        ("relevance", "c1", "c1"): Judgement(3, quote="lasts six hours"),
        ("relevance", "c2", "c2"): Judgement(1, quote='charge it "overnight"'),
        ("relevance", "c3", "c3"): Judgement(0),
        ("claims", "k1", "c1"): Judgement(1, quote="The battery\nlasts  six hours"),
        ("claims", "k1", "c2"): Judgement(0),
        ("claims", "k1", "c3"): Judgement(0),
        **{("claims", "k2", chunk): Judgement(0) for chunk in ("c1", "c2", "c3")},
        ("entities", "e1", "c1"): Judgement(1, quote="winter"),
        ("entities", "e1", "c2"): Judgement(0),
        ("entities", "e1", "c3"): Judgement(0),
    }


def test_statements_are_their_own_proof() -> None:
    said = [{"statement": "c1.s1", "relevant": True}, {"statement": "c2.s1", "relevant": False}]
    reading = read({"statements": said}, {"statements": ("c1.s1", "c2.s1")})
    assert reading.verdicts == {
        ("statements", "c1.s1", "c1"): Judgement(1, quote=CHUNKS[0]),
        ("statements", "c2.s1", "c2"): Judgement(0),
    }


@pytest.mark.parametrize("relevant", [1, 0, "true", None, [], {}])
def test_a_statement_is_true_or_false(relevant: Any) -> None:
    said = {"statements": [{"statement": "c1.s1", "relevant": relevant}]}
    reading = read(said, {"statements": ("c1.s1",)})
    assert reading.wrong == {("statements", "c1.s1"): Fault.WRONG_TYPE}


@pytest.mark.parametrize("seed", range(5))
def test_order_does_not_matter(seed: int) -> None:
    said = json.loads(json.dumps(GOOD))
    for listed in said.values():
        random.Random(seed).shuffle(listed)
    assert read(said).verdicts == read(GOOD).verdicts
    assert read(dict(reversed(said.items()))).verdicts == read(GOOD).verdicts


@pytest.mark.parametrize("wrapped", ["Sure!\n```json\n%s\n```\nDone.", "<think>c1?</think>%s"])
def test_prose_around_it_does_not_matter(wrapped: str) -> None:
    assert read(wrapped % json.dumps(GOOD)).verdicts == read(GOOD).verdicts


BAD_ENTRIES = [
    ("relevance", 1, {"grade": 4}, Fault.OUT_OF_RANGE),
    ("relevance", 1, {"grade": -1}, Fault.OUT_OF_RANGE),
    ("relevance", 1, {"grade": 1e30}, Fault.WRONG_TYPE),
    ("relevance", 1, {"grade": 2.0}, Fault.WRONG_TYPE),
    ("relevance", 1, {"grade": "2"}, Fault.WRONG_TYPE),
    ("relevance", 1, {"grade": True}, Fault.WRONG_TYPE),
    ("relevance", 1, {"grade": None}, Fault.WRONG_TYPE),
    ("relevance", 1, {"quote": 7}, Fault.WRONG_TYPE),
    ("relevance", 1, {"quote": ["charge"]}, Fault.WRONG_TYPE),
    ("relevance", 1, {"chunk": "c1"}, Fault.LEFT_OUT),
    ("relevance", 1, {"chunk": "c9"}, Fault.LEFT_OUT),
    ("relevance", 1, {"chunk": "C2"}, Fault.LEFT_OUT),
    ("relevance", 1, {"chunk": 2}, Fault.LEFT_OUT),
    ("claims", 1, {"found": None}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": {}}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": "c1"}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": ["c1"]}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": [{"chunk": 1, "quote": ""}]}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": [{"chunk": "c1", "quote": 1}]}, Fault.WRONG_TYPE),
    ("claims", 1, {"found": [{"chunk": "c4", "quote": "a"}]}, Fault.UNKNOWN),
    ("claims", 1, {"claim": "k7"}, Fault.LEFT_OUT),
    ("entities", 0, {"found": [{"chunk": "k1", "quote": "a"}]}, Fault.UNKNOWN),
]


@pytest.mark.parametrize(("aspect", "number", "fields", "fault"), BAD_ENTRIES)
def test_a_bad_entry_costs_itself_and_nothing_else(
    aspect: str, number: int, fields: dict[str, Any], fault: str
) -> None:
    each = WANTED[aspect][number]
    reading = read(changed(aspect, number, **fields))
    wrong = dict(reading.wrong)
    assert wrong.pop((aspect, each)) == fault
    assert set(wrong.values()) <= {Fault.TWICE}  # if it took the id of another
    lost = {(aspect, each), *wrong}
    assert reading.verdicts == {
        cell: verdict for cell, verdict in read(GOOD).verdicts.items() if cell[:2] not in lost
    }


def test_an_id_answered_twice_has_no_verdict() -> None:
    said = {**GOOD, "relevance": [*GOOD["relevance"], GOOD["relevance"][0]]}
    reading = read(said)
    assert reading.wrong == {("relevance", "c1"): Fault.TWICE}
    assert ("relevance", "c2", "c2") in reading.verdicts


def test_what_nobody_asked_for_is_passed_over_and_counted() -> None:
    more = [{"chunk": "c4", "quote": "", "grade": 3}, {"grade": 3}, "c1", None, 7]
    reading = read({**GOOD, "relevance": [*more, *GOOD["relevance"]], "notes": "a field"})
    assert reading.verdicts == read(GOOD).verdicts
    assert reading.extra == {Fault.UNKNOWN: 1, Fault.NO_ID: 4}
    partly = read(GOOD, {"relevance": ("c2",)}, ("c2",))
    assert set(partly.verdicts) == {("relevance", "c2", "c2")}
    assert partly.extra == {Fault.UNKNOWN: 2}


def test_more_fields_in_an_entry_do_not_matter() -> None:
    assert read(changed("relevance", 0, why="because")).verdicts == read(GOOD).verdicts


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("I cannot judge this.", Fault.NOT_JSON),
        ('{"relevance": [{"chunk": "c1"', Fault.NOT_JSON),
        ("[]", Fault.NOT_JSON),
        ("{}", Fault.NO_FIELD),
        ('{"relevance": null, "claims": {}, "entities": "e1"}', Fault.WRONG_TYPE),
        ('{"relevance": [], "claims": [], "entities": []}', Fault.LEFT_OUT),
    ],
)
def test_an_answer_without_verdicts(said: str, fault: str) -> None:
    reading = read(said)
    assert not reading.verdicts
    wanted = {(aspect, each) for aspect, ids in WANTED.items() for each in ids}
    assert reading.wrong == dict.fromkeys(wanted, fault)


@pytest.mark.parametrize("quote", ["", " ", "...", '""', "t", "lasts six days", None])
def test_a_yes_without_a_quote_that_is_there_is_unproven(quote: str | None) -> None:
    verdict = read(changed("relevance", 0, quote=quote)).verdicts["relevance", "c1", "c1"]
    assert verdict.value == 3
    assert verdict.unproven
    found = [{"chunk": "c2", "quote": quote}]
    verdict = read(changed("claims", 0, found=found)).verdicts["claims", "k1", "c2"]
    assert verdict.value == 1
    assert verdict.unproven


def test_a_no_needs_no_proof() -> None:
    verdict = read(changed("relevance", 0, grade=0)).verdicts["relevance", "c1", "c1"]
    assert verdict == Judgement(0)


def test_several_quotes_from_one_chunk_are_one_yes() -> None:
    found = [{"chunk": "c1", "quote": "of its own"}, {"chunk": "c1", "quote": "six hours"}]
    reading = read(changed("claims", 0, found=found))
    assert reading.verdicts["claims", "k1", "c1"] == Judgement(1, quote="six hours")
    assert not reading.wrong


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("six hours", "lasts six\n\t hours"),
        ("SIX HOURS.", "lasts six hours in winter"),
        ('"six hours…"', "lasts six hours in winter"),
        ("it's - so", "it’s — so"),
        ("Zu\u0308rich", "In Zürich"),
        ("ｗｉｎｔｅｒ", "in winter"),
        ("电池", "该电池可用六小时"),
        ("soft\u00adhyphen", "a softhyphen"),
    ],
)
def test_quotes_are_compared_as_folded(quote: str, text: str) -> None:
    assert is_quoted(quote, text)


@pytest.mark.parametrize(
    ("quote", "text"), [("six", "seven"), ("", ""), ("a b", "ab"), ("hours six", "six hours")]
)
def test_what_is_not_quoted(quote: str, text: str) -> None:
    assert not is_quoted(quote, text)


def test_a_letter_proves_nothing() -> None:
    """A model that quotes one letter of the chunk has quoted nothing; a chunk of one letter may."""
    for quote in ("e", " e ", '"E"', "4"):
        assert not proves(quote, "it costs 4 euros")
    assert proves("4 euros", "it costs 4 euros")
    assert proves("电池", "该电池可用六小时")
    assert proves("B", "B.")


def test_the_schema_is_what_strict_servers_ask_for() -> None:
    def check(part: Any) -> int:
        if part["type"] == "object":
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False
            return 1 + sum(map(check, part["properties"].values()))
        return 1 + (check(part["items"]) if part["type"] == "array" else 0)

    for aspect in FOUR:
        assert check(schema([aspect])) > 4
    assert schema(WANTED)["required"] == list(WANTED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from(["c1", "c2", "k1", "e1", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["chunk", "claim", "entity", "quote", "grade", "found"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@examples(300)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(WANTED, JSON)))
def test_every_id_has_verdicts_or_a_fault(said: dict[str, Any]) -> None:
    reading = read(said)
    ruled = {(aspect, each) for aspect, each, _ in reading.verdicts}
    assert not ruled & reading.wrong.keys()
    assert ruled | reading.wrong.keys() == {
        (aspect, each) for aspect, ids in WANTED.items() for each in ids
    }
    for (aspect, each, chunk), verdict in reading.verdicts.items():
        assert verdict.value in (range(4) if aspect == "relevance" else (0, 1))
        assert chunk == each or aspect != "relevance"


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        (Reason.TIMEOUT, "run it again: what was judged is kept"),
        (Reason.STOPPED, "run it again: what was judged is kept"),
        (Reason.BUDGET, "raise the limit that was reached"),
        (Reason.CUT_OFF, "findwell judge check"),
        (JudgeReason.MALFORMED, "findwell judge check"),
        (Reason.FILTERED, "another run would give the same"),
        (JudgeReason.NO_REFERENCE, "give these queries a reference"),
        (JudgeReason.NEEDS_MODEL, "ask a language model"),
    ],
)
def test_run_it_again_is_said_only_where_it_can_help(reason: Any, fix: str) -> None:
    def judge(_: Sample) -> Judged:
        return Judged(failures={"relevance": JudgeFailure(reason, "so")})

    sample = {"question": "Why?", "contexts": ["So."]}
    result = findwell.evaluate([sample], measures="P@1/relevance", judge=judge)
    [finding] = [each for each in result.findings if each.kind == "judge-failed"]
    assert fix in finding.fix
    assert ("run it again" in finding.fix) is (reason in {Reason.TIMEOUT, Reason.STOPPED, "budget"})
