"""A model that cannot answer much at once: halves, limits, and where judging stops."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from findwell.core.errors import JudgeError
from findwell.judges.client.cache import Cache
from findwell.judges.llm.judge import THINKING_TOKENS
from findwell.judges.llm.stats import JudgeStats
from tests.client.server import Call, Reaction, chat, serve
from tests.judges.judging import ALL, check_shape, check_totals, expect, judge_of, sample, verdicts
from tests.judges.model import answer, well
from tests.judges.single_model import by_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def short(most: int) -> Callable[[Call], Reaction]:
    """Answer well, but be cut off after so many entries."""

    def script(call: Call) -> Reaction:
        said: dict[str, list[Any]] = answer(call.prompt)
        text = json.dumps(said)
        if sum(map(len, said.values())) > most:
            return chat(text[: len(text) // 2], finish="length")
        return chat(text)

    return script


def test_what_is_cut_off_is_asked_for_by_halves_down_to_one_verdict() -> None:
    """The number of attempts limits how often the same is asked, not how often less is."""
    texts = [f"The capital of Brazil number {number} is far away." for number in range(9)]
    one = sample(chunks=texts)
    with serve(short(1)) as server:
        judge = judge_of(server, attempts=2)
        [judged] = judge.judge([one], frozenset({"relevance", "statements"}))
    assert [verdict.value for verdict in verdicts(judged)].count(None) == 0
    check_totals(judge, [judged])
    prompts = server.prompts
    assert max(prompts.values()) == 1  # nothing is asked for twice in the same words
    asked = [prompt.count("<c") for prompt in prompts]
    assert max(asked) == 9
    assert min(asked) == 1


def test_a_matrix_asks_for_all_at_once() -> None:
    texts = [f"The capital of Brazil number {number}." for number in range(7)]
    one = sample(chunks=texts)
    with serve(well) as server:
        judge = judge_of(server)
        [judged] = judge.judge([one], ALL)
    check_shape(one, judged)
    assert judged == expect(one)
    assert len(server.calls) == 3
    assert judge.about()["ask"] == "matrix"


def test_the_answer_to_a_matrix_is_limited_by_what_was_asked_on_a_server_of_ones_own() -> None:
    one, more = sample(), replace(sample(), chunks=(*sample().chunks, "Another chunk."))
    with serve(well) as server:
        for each in (one, more):
            judge_of(server).judge([each], frozenset({"relevance"}))
        few, many = (call.body["max_tokens"] for call in server.calls)
        public = judge_of(server, base_url="https://api.example.com/v1")
        [asked] = public._open(one, frozenset({"relevance"}), JudgeStats()).questions()
    assert THINKING_TOKENS < few < many < 2 * THINKING_TOKENS
    assert asked.request().max_tokens is None


def test_answers_that_are_in_a_cache_are_found_as_before() -> None:
    """The keys of all requests of a matrix: what was answered stays known while they do."""
    with serve(well) as server:
        judge = judge_of(server, base_url="http://localhost:8000/v1")
        opened = judge._open(sample(), ALL, JudgeStats())
        listed = list(opened.listings())
        keys = [question.request().key(judge.endpoint) for question in listed]
        for question in listed:
            question.guess()
        keys += [question.request().key(judge.endpoint) for question in opened.questions()]
    assert [key.hex()[:16] for key in keys] == [
        "e944f379f78283fb",
        "c52367ae3c11f078",
        "a5c96d36f701ffb8",
    ]


def test_judging_stops_when_the_model_fails_at_the_first_samples(tmp_path: Path) -> None:
    samples = [sample(number) for number in range(30)]

    def script(call: Call) -> Reaction:
        return well(call) if "number 0?" in call.prompt else chat("I would rather not.")

    with serve(script) as server:
        with Cache.open(tmp_path) as cache:
            judge = judge_of(server, cache=cache, concurrency=1)
            with pytest.raises(JudgeError) as stop:
                judge.judge(samples, frozenset({"relevance"}))
            kept = len(cache)  # all but what was under way
        spent = len(server.calls)
        assert spent < 30
        text = str(stop.value)
        assert "15 of 20 verdicts failed (15 malformed) in the first 4 of 30 samples" in text
        assert "-J ask=single" in text
        assert "findwell judge check openai:some-model" in text
        with Cache.open(tmp_path) as cache:  # nothing is lost
            again = judge_of(server, cache=cache, max_failures=1.0)
            judged = again.judge(samples, frozenset({"relevance"}))
            assert again.about()["stored"] == kept >= spent - 1
    assert len(judged) == 30
    assert sum(verdict.value is None for each in judged for verdict in verdicts(each)) == 29 * 5


def test_judging_goes_on_where_another_way_to_ask_would_not_help() -> None:
    samples = [sample(number) for number in range(30)]
    with serve(well) as server:
        judge = judge_of(server, max_calls=2)
        judged = judge.judge(samples, frozenset({"relevance"}))
    assert sum(each["relevance"].row[0].value is None for each in judged) == 28
    assert judge.findings() == ()


def test_what_is_almost_done_is_ended_with_advice() -> None:
    samples = [sample(number) for number in range(5)]
    with serve(lambda _: chat("no")) as server:
        judge = judge_of(server)
        judged = judge.judge(samples, frozenset({"relevance"}))
        [finding] = judge.findings()
        assert (finding.kind, finding.count) == ("many-failures", 1)
        assert "25 of 25 verdicts failed (25 malformed)" in finding.examples[0]
        assert "-J ask=single" in finding.examples[0]
        server.script = by_token
        single = judge_of(server, ask="single")
        assert single.judge(samples, frozenset({"relevance"})) != judged
        assert single.findings() == ()
