"""The judge against a real server that answers well, badly, partly or not at all."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import EndpointError
from findwell.judges.client.protocol import Reason
from findwell.judges.verdicts import AspectVerdicts, Judged, Judgement, JudgeReason
from tests.client.asking import KEY
from tests.client.server import Call, Reaction, chat, error, serve
from tests.judges.building import FOUR
from tests.judges.judging import (
    ALL,
    TEXTS,
    check_shape,
    check_totals,
    expect,
    first,
    judge_of,
    left_out,
    sample,
    verdicts,
)
from tests.judges.model import answer, read_prompt, spoilt, well
from tests.strategies import examples


def test_every_verdict_is_where_it_belongs() -> None:
    samples = [sample(number, TEXTS[: number % 6]) for number in range(20)]
    with serve(well) as server:
        judge = judge_of(server)
        judged = judge.judge(samples, ALL)
    assert judged == [expect(each) for each in samples]
    check_totals(judge, judged)
    assert judge.findings() == ()


def test_three_calls_a_sample_for_everything_at_five_chunks() -> None:
    with serve(well) as server:
        judge_of(server).judge([sample()], ALL)
        assert len(server.calls) == 3
        server.calls.clear()
        judge_of(server).judge([sample(number) for number in range(50)], ALL)
        assert len(server.calls) == 101  # the entities of the one reference are asked for once


@pytest.mark.parametrize("aspect", sorted(FOUR))
def test_only_what_is_asked_for_is_asked(aspect: Any) -> None:
    with serve(well) as server:
        [judged] = judge_of(server).judge([sample()], frozenset({aspect}))
        assert len(server.calls) == 1 + (aspect == "entities")
        assert all(f'"{aspect}"' in call.prompt for call in server.calls)
    assert judged == Judged({aspect: expect(sample())[aspect]})


def test_apart_gives_each_aspect_a_call() -> None:
    with serve(well) as server:
        [judged] = judge_of(server, separate_calls=True).judge([sample()], ALL)
        assert len(server.calls) == 5
    assert judged == expect(sample())


def _number(call: Call, said: dict[str, Any]) -> dict[str, Any]:
    if first(call) and "relevance" in said:
        said["relevance"][1]["grade"] = "3"
        said["claims"][0]["found"] = [{"chunk": "c77", "quote": "x"}]
    return said


def _twice(call: Call, said: dict[str, Any]) -> dict[str, Any]:
    return {name: part + part[:1] for name, part in said.items()} if first(call) else said


def _extra(_: Call, said: dict[str, Any]) -> dict[str, Any]:
    more = {"chunk": "c99", "claim": "k99", "statement": "c9.s9", "grade": 3, "found": []}
    return {
        name: part if isinstance(part[0], str) else [more, *part, None, 7]
        for name, part in said.items()
    }


REPAIRED = {
    "ids left out": left_out,
    "prose": lambda call, said: "I would rather not say." if first(call) else said,
    "wrapped in prose": lambda _, said: f"Of course:\n```json\n{json.dumps(said)}\n```\nBye!",
    "cut short": lambda call, said: json.dumps(said)[:-9] if first(call) else said,
    "wrong types": _number,
    "answered twice": _twice,
    "unknown ids": _extra,
    "empty object": lambda call, said: {} if first(call) else said,
    "array": lambda call, said: [said] if first(call) else said,
    "reversed": lambda _, said: {name: part[::-1] for name, part in said.items()},
}


@pytest.mark.parametrize("spoil", REPAIRED.values(), ids=REPAIRED)
def test_what_is_malformed_is_asked_again_until_it_is_right(spoil: Any) -> None:
    samples = [sample(number) for number in range(4)]
    with serve(spoilt(spoil)) as server:
        judge = judge_of(server)
        judged = judge.judge(samples, ALL)
    expected = [expect(each) for each in samples]
    if spoil is REPAIRED["reversed"]:  # the entities too, so that they have other ids
        expected = [
            Judged({**each.verdicts, "entities": AspectVerdicts(rows[::-1], texts[::-1])})
            for each in expected
            for texts, rows in [(each["entities"].items, each["entities"].rows)]
        ]
    # entities left out are not missed: nobody knows how many there are
    if spoil is left_out:
        expected = [
            Judged({**each.verdicts, "entities": AspectVerdicts(rows[:1], texts[:1])})
            for each in expected
            for texts, rows in [(each["entities"].items, each["entities"].rows)]
        ]
    assert judged == expected
    check_totals(judge, judged)


def test_only_what_is_missing_is_asked_again() -> None:
    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        if first(call) and "relevance" in said:
            del said["relevance"][2]
        if first(call) and "statements" in said:
            said["statements"] = said["statements"][1:]
        return said

    with serve(spoilt(spoil)) as server:
        judge = judge_of(server)
        [judged] = judge.judge([sample()], ALL)
        again = [read_prompt(call.prompt) for call in server.calls if not first(call)]
    assert judged == expect(sample())
    relevance, statements = sorted(again, key=lambda read: '"statements"' in read.task)
    assert set(relevance.chunks) == {"c3"}
    assert relevance.ids("relevance") == ["c3"]
    assert '"claims"' not in relevance.task
    assert set(statements.listed) == {"c1.s1"}
    assert judge.about()["asked_again"] == 2
    assert judge.about()["malformed"] == {"an id left out": 2}


def test_a_claim_is_asked_again_with_all_its_chunks() -> None:
    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        if first(call) and "claims" in said:
            said["claims"][1]["found"] = "c1"
        return said

    with serve(spoilt(spoil)) as server:
        [judged] = judge_of(server).judge([sample()], frozenset({"relevance", "claims"}))
        again = read_prompt(server.calls[-1].prompt)
    whole = expect(sample())
    assert judged == Judged({name: whole[name] for name in ("relevance", "claims")})
    assert set(again.chunks) == {"c1", "c2", "c3", "c4", "c5"}
    assert list(again.lists["claims"]) == ["k2"]


def test_what_never_comes_right_has_a_reason() -> None:
    def spoil(_: Call, said: dict[str, Any]) -> dict[str, Any]:
        if "relevance" in said:
            said["relevance"] = [each for each in said["relevance"] if each["chunk"] != "c2"]
        return said

    with serve(spoilt(spoil)) as server:
        judge = judge_of(server, attempts=2)
        [judged] = judge.judge([sample()], ALL)
        assert len(server.calls) == 4
    lost = Judgement.failed(JudgeReason.MALFORMED, "an id left out")
    expected = expect(sample())
    relevance = (expected["relevance"].row[0], lost, *expected["relevance"].row[2:])
    assert judged == Judged({**expected.verdicts, "relevance": AspectVerdicts((relevance,))})
    assert judge.about()["failed_verdicts"] == {"malformed": 1}
    check_totals(judge, [judged])


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (lambda _: chat("Sorry, no."), "malformed: not a JSON object"),
        (lambda _: chat("{}"), "malformed: no such field"),
        (lambda _: chat("half", finish="length"), "cut off"),
        (lambda _: chat("no", finish="content_filter"), "filtered"),
        (lambda _: chat(""), "empty"),
        (lambda _: error(500, "broken"), "server error"),
        (lambda _: error(400, "This model's maximum context length is 9 tokens."), "too long"),
        (lambda _: Reaction(b"<html>", 200), "unreadable body"),
        (lambda _: Reaction(drop=True), "connection"),
    ],
)
def test_a_server_that_never_answers_well(script: Any, reason: str) -> None:
    samples = [sample(number, TEXTS[:3]) for number in range(3)]
    with serve(script) as server:
        judge = judge_of(server)
        judged = judge.judge(samples, ALL)
    for one, each in zip(samples, judged, strict=True):
        check_shape(one, each)
        assert all(verdict.value is None for verdict in verdicts(each))
        reasons = {verdict.failure.reason for verdict in verdicts(each) if verdict.failure}
        assert reasons <= {reason.partition(":")[0], Reason.STOPPED}
        assert str(each.failures["entities"]).startswith((reason, "stopped"))
    check_totals(judge, judged)


def test_what_is_cut_off_is_asked_in_halves() -> None:
    def script(call: Call) -> Reaction:
        said = answer(call.prompt)
        if sum(map(len, said.values())) > 4:
            return chat(json.dumps(said)[:50], finish="length")
        return chat(json.dumps(said))

    one = sample(0, TEXTS[:4], "Brazil is large.")
    with serve(script) as server:
        judge = judge_of(server, attempts=4)
        judged = judge.judge([one], ALL)
    assert judged == [expect(one)]
    check_totals(judge, judged)


def test_one_chunk_that_a_filter_minds_costs_itself() -> None:
    def script(call: Call) -> Reaction:
        return chat("", finish="content_filter") if "Ferries" in call.prompt else well(call)

    with serve(script) as server:
        judge = judge_of(server, attempts=4)
        [judged] = judge.judge([sample()], ALL)
    expected = expect(sample())
    check_shape(sample(), judged)
    for number, verdict in enumerate(judged["relevance"].row):
        if number == 2:
            assert verdict.value is None
            assert verdict.failure is not None
            assert verdict.failure.reason is Reason.FILTERED
        else:
            assert verdict == expected["relevance"].row[number]
    failed = [verdict for verdict in verdicts(judged) if verdict.value is None]
    columns = len(judged["claims"].rows) + len(judged["entities"].rows)
    assert len(failed) == 1 + columns + 1  # its other statement passes
    check_totals(judge, [judged])


@examples(25)
@given(st.integers(0, 2**32))
def test_any_mischief_ends_scored_or_failed(seed: int) -> None:
    random = Random(seed)
    junk: list[Any] = [
        None,
        True,
        7,
        "c1",
        [],
        {},
        {"chunk": "c1"},
        {"chunk": "c2", "grade": 9, "quote": 1},
    ]

    def mangle(said: Any) -> Any:
        if random.random() < 0.06:
            return random.choice(junk)
        if isinstance(said, dict):
            return {name: mangle(value) for name, value in said.items() if random.random() > 0.03}
        if isinstance(said, list):
            return [mangle(each) for each in said for _ in range(random.choice([0, 1, 1, 1, 1, 2]))]
        return said

    def script(call: Call) -> Reaction:
        said = json.dumps(mangle(answer(call.prompt)))
        return random.choice(
            [
                chat(said),
                chat(said),
                chat(f"Here: {said} OK?"),
                chat(said[: random.randrange(len(said) + 1)]),
                chat(said, finish="length"),
                chat("", finish="stop"),
                error(500),
                error(429, headers={"Retry-After": "0.001"}),
                Reaction(drop=True),
                chat(said, cut_after=30),
            ]
        )

    samples = [sample(number, TEXTS[: number % 6]) for number in range(6)]
    with serve(script) as server:
        judge = judge_of(server)
        judged = judge.judge(samples, ALL)
    for one, each in zip(samples, judged, strict=True):
        check_shape(one, each)
    check_totals(judge, judged)


def test_no_access_stops_the_job() -> None:
    with serve(lambda _: error(401, "bad key")) as server, pytest.raises(EndpointError) as stop:
        judge_of(server).judge([sample()], ALL)
    assert KEY not in str(stop.value)
