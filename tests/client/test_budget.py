"""Counting and limits: what was spent adds up, and a job stops where it was told to."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.core.errors import FindwellError, InputError, OptionError
from findwell.judges.client.budget import (
    CallBudget,
    Limits,
    Prices,
    estimate_prompt,
    estimate_tokens,
    forecast,
    load_prices,
)
from findwell.judges.client.cache import Cache
from findwell.judges.client.protocol import Answer, Failure, Reason, Usage
from findwell.show.result import judge_line
from tests.client.asking import HASTE, SCHEMA, ask, endpoint_of, question
from tests.client.server import Reaction, chat, echo, error, serve

if TYPE_CHECKING:
    from pathlib import Path

HUNDRED = [question(number) for number in range(100)]
CHEAP = Prices(prompt=1.0, completion=10.0)
BUSY = replace(HASTE, concurrency=16)


def reasons(outcomes: list[Any]) -> Counter[object]:
    return Counter(each.reason if isinstance(each, Failure) else "answer" for each in outcomes)


@pytest.mark.parametrize("limit", [0, 1, 37, 100, 1000])
def test_calls_stop_exactly_at_the_limit(limit: int) -> None:
    budget = CallBudget(Limits(max_calls=limit))
    with serve() as server:
        outcomes = ask(server, *HUNDRED, budget=budget, retry=BUSY)
        assert len(server.calls) == budget.calls == min(limit, 100)
    done = min(limit, 100)
    details = {each.detail for each in outcomes if isinstance(each, Failure)}
    assert details <= {f"one more call would exceed max_calls {limit}"}
    expected = {"answer": done, Reason.BUDGET: 100 - done}
    assert reasons(outcomes) == Counter({key: count for key, count in expected.items() if count})


def test_attempts_count_as_calls() -> None:
    budget = CallBudget(Limits(max_calls=10))
    with serve(lambda call: echo(call) if call.number % 2 else error(500)) as server:
        outcomes = ask(server, *HUNDRED, budget=budget, retry=BUSY)
        assert len(server.calls) == 10
    assert reasons(outcomes)["answer"] == 5


@pytest.mark.parametrize("usage", [(30, 20), (3, 2), None])
@pytest.mark.parametrize("limit", [0, 100, 1_000, 100_000])
def test_tokens_stop_at_the_limit_whatever_was_guessed_before(usage: Any, limit: int) -> None:
    budget = CallBudget(Limits(max_tokens=limit))
    options = {"max_tokens": 40}
    with serve(lambda _: chat("x" * 80, usage=usage)) as server:
        requests = [question(number, options=options) for number in range(100)]
        outcomes = ask(server, *requests, budget=budget, retry=BUSY)
    each = sum(usage) if usage else estimate_prompt(requests[0]) + 20
    assert budget.tokens == reasons(outcomes)["answer"] * each
    assert budget.tokens <= limit
    if len(outcomes) * each > limit >= 1000:  # it is used up but for one call
        assert budget.tokens > limit - 100


@pytest.mark.parametrize("usage", [(30, 20), None])
def test_answers_that_are_cut_off_are_paid_for_too(usage: Any) -> None:
    budget = CallBudget()
    with serve(lambda _: chat("x" * 80, usage=usage, finish="length")) as server:
        [outcome] = ask(server, question(), budget=budget)
    assert isinstance(outcome, Failure)
    assert budget.tokens == (sum(usage) if usage else estimate_prompt(question()) + 20)
    assert budget.guessed_calls == (usage is None)


def test_cost_stops_at_the_limit_and_what_is_done_is_kept() -> None:
    budget = CallBudget(Limits(max_cost=0.005), CHEAP)
    with serve(lambda _: chat("{}", usage=(40, 6))) as server, Cache.open(mode="off") as cache:
        outcomes = ask(server, *HUNDRED, budget=budget, retry=BUSY, cache=cache)
        assert len(cache) == reasons(outcomes)["answer"]
        assert 49 <= len(cache) <= 50  # each is 0.0001
        assert budget.cost == pytest.approx(len(cache) * 0.0001)
        free = CallBudget(Limits(max_calls=0))  # what is known needs no budget
        again = ask(server, *HUNDRED, budget=free, cache=cache)
    assert reasons(again) == reasons(outcomes)


def test_cached_prompt_tokens_have_a_price_of_their_own() -> None:
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 400_000},
    }
    budget = CallBudget(prices=Prices(1.0, 1.0, cached=0.5))
    with serve(lambda _: chat("x", usage=usage)) as server:
        ask(server, question(), budget=budget)
    assert budget.cost == pytest.approx(0.8)
    assert budget.summary()["cached_tokens"] == 400_000


def test_the_summary_is_json_and_adds_up() -> None:
    budget = CallBudget(prices=CHEAP)
    with serve(lambda call: error(400) if call.prompt == "3" else echo(call)) as server:
        endpoint = endpoint_of(server)
        endpoint.support.answered = True
        ask(server, *HUNDRED, *HUNDRED[:5], budget=budget, endpoint=endpoint)
    said = json.loads(json.dumps(budget.summary()))
    assert said["requests"] == 105
    assert (said["answered"], said["repeated"], said["failed"]) == (99, 5, {"rejected": 1})
    assert (said["prompt_tokens"], said["completion_tokens"]) == (990, 495)
    assert said["cost"] == pytest.approx((990 + 4950) / 1e6)
    assert 0 < said["seconds"]["p50"] <= said["seconds"]["p90"] <= said["seconds"]["p99"]
    assert CallBudget().summary()["seconds"] == {}
    assert CallBudget().cost is None


def test_limits_and_prices_must_make_sense() -> None:
    with pytest.raises(OptionError, match="max_calls"):
        Limits(max_calls=-1)
    with pytest.raises(OptionError, match="max_cost"):
        Limits(max_cost=float("nan"))
    with pytest.raises(OptionError, match="needs prices"):
        CallBudget(Limits(max_cost=1.0))
    for price in (-1.0, float("inf"), float("nan")):
        with pytest.raises(OptionError, match="a price must be"):
            Prices(price, 1.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.toml", '["a/b-1.5"]\nprompt = 0.15\ncompletion = 1\n["other"]\nprompt=1\n'),
        ("prices.json", '{"a/b-1.5": {"prompt": 0.15, "completion": 1}}'),
    ],
)
def test_prices_come_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert load_prices(path, "a/b-1.5") == Prices(0.15, 1)
    with pytest.raises(OptionError, match="no prices for the model 'a/b-1'") as wrong:
        load_prices(path, "a/b-1")
    assert "did you mean a/b-1.5?" in wrong.value.fix


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", "{"),
        ("p.json", "[1]"),
        ("p.json", '{"m": 3}'),
        ("p.json", '{"m": {"prompt": 1}}'),
        ("p.json", '{"m": {"prompt": "1", "completion": 1}}'),
        ("p.json", '{"m": {"prompt": true, "completion": 1}}'),
        ("p.json", '{"m": {"prompt": 1, "completion": 1, "extra": 1}}'),
        ("p.toml", "m = ["),
        ("p.json", b"\xff"),
    ],
)
def test_a_file_that_holds_no_prices_is_named(tmp_path: Path, name: str, text: str | bytes) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=name):
        load_prices(path, "m")
    with pytest.raises(InputError, match="cannot be read"):
        load_prices(tmp_path / "nothing.json", "m")
    path.write_text('{"m": {"prompt": -1, "completion": 1}}')
    with pytest.raises(FindwellError):
        load_prices(path, "m")


@settings(deadline=None)
@given(st.text(), st.text())
def test_estimates_grow_with_the_text_and_stay_in_proportion(one: str, other: str) -> None:
    both = estimate_tokens(one + other)
    assert both >= estimate_tokens(one)
    assert both <= estimate_tokens(one) + estimate_tokens(other) <= both + 1
    assert len(one) / 4 <= estimate_tokens(one) <= max(len(one), 1)


def test_a_forecast_spends_nothing_and_knows_what_is_known() -> None:
    requests = [question("x" * 400, options={"max_tokens": 30}), question("日本", schema=SCHEMA)]
    with serve() as server, Cache.open(mode="off") as cache:
        endpoint = endpoint_of(server)
        seen = forecast([*requests, requests[0]], endpoint, cache=cache, prices=CHEAP)
        assert (seen.requests, seen.calls, seen.stored) == (3, 2, 0)
        assert seen.prompt_tokens == sum(map(estimate_prompt, requests))
        assert seen.completion_tokens == 30 + 200
        usage = Usage(seen.prompt_tokens, seen.completion_tokens)
        assert seen.cost == CHEAP.cost(usage)
        assert not server.calls
        assert isinstance(ask(server, requests[0], endpoint=endpoint, cache=cache)[0], Answer)
        left = forecast(requests, endpoint, cache=cache, answer_tokens=7)
        assert (left.calls, left.stored, left.completion_tokens, left.cost) == (1, 1, 7, None)
    empty = forecast([], endpoint)
    assert (empty.requests, empty.calls, empty.prompt_tokens, empty.cost) == (0, 0, 0, None)


@pytest.mark.parametrize(
    "lost",
    [Reaction(hang=True), Reaction(drop=True), Reaction(b"{")],
    ids=["never answers", "breaks off", "half an answer"],
)
def test_calls_without_an_answer_count_as_if_they_were_billed(lost: Reaction) -> None:
    """A server that never answers, breaks off, or sends half an answer may have been at work."""
    budget = CallBudget(Limits(max_tokens=2000), prices=Prices(1.0, 2.0))
    requests = [question(number, options={"max_tokens": 400}) for number in range(20)]
    with serve(lambda _: lost) as server:
        retry = replace(HASTE, timeout=0.2)
        outcomes = ask(server, *requests, retry=retry, budget=budget)
        sent = len(server.calls)
    assert reasons(outcomes)[Reason.BUDGET]
    each = estimate_prompt(requests[0]) + 400
    assert sent == budget.calls == budget.unanswered_calls == 2000 // each
    assert (budget.tokens, budget.guessed_calls) == (budget.calls * each, budget.calls)
    assert budget.cost is not None
    assert budget.cost > 0
    said = f"{budget.calls} calls without an answer counted as if they were billed"
    assert said in budget.spent_so_far()
    assert budget.summary()["unanswered_calls"] == budget.calls
    took = {"name": "openai:m", **budget.summary()}
    assert said in judge_line(took)


def test_calls_that_were_never_sent_or_turned_down_cost_nothing() -> None:
    budget = CallBudget(Limits(max_tokens=2000))
    with serve(lambda _: error(500, "no")) as server:
        ask(server, question(), budget=budget)
    assert (budget.tokens, budget.unanswered_calls) == (0, 0)


def test_a_refused_connection_is_not_a_call_and_spends_nothing() -> None:
    budget = CallBudget(Limits(max_calls=5))
    with serve(echo) as server:
        endpoint = endpoint_of(server)
        for outcome in ask(server, *map(question, range(3)), endpoint=endpoint, budget=budget):
            assert isinstance(outcome, Answer)
    # the server is gone: 40 requests, each tried several times
    lost = ask(server, *map(question, range(10, 50)), endpoint=endpoint, budget=budget)
    assert {failure.reason for failure in lost if isinstance(failure, Failure)} == {
        Reason.UNREACHABLE,
        Reason.STOPPED,
    }
    assert (len(lost), budget.calls, budget.answered) == (40, 3, 3)
    with serve(echo) as other:
        after = ask(other, *map(question, range(50, 54)), budget=budget)
        assert len(other.calls) == 2  # what is left of five
    failed = [each.reason for each in after if isinstance(each, Failure)]
    assert failed == [Reason.BUDGET, Reason.BUDGET]
