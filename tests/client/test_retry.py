"""Every way a server can misbehave ends in an answer or a failure with a reason."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from findwell.core.errors import EndpointError, FindwellError
from findwell.judges.client.budget import CallBudget, Limits
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason
from findwell.judges.llm.answers import Unreadable, extract_object
from tests.client.asking import HASTE, KEY, ask, ask_all, endpoint_of, question
from tests.client.server import (
    Call,
    Reaction,
    Script,
    Server,
    as_json,
    chat,
    echo,
    error,
    serve,
)

GOOD = '{"heard": "hello"}'
PLAIN = json.dumps({"choices": [{"message": {"content": GOOD}}]}).encode()


def failure(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome


def answer(outcome: Outcome) -> Answer:
    assert isinstance(outcome, Answer), outcome
    return outcome


def first(reaction: Reaction, times: int = 1) -> Script:
    """Misbehave a few times, then answer."""
    return lambda call: reaction if call.number < times else echo(call)


PASSING: dict[str, tuple[Reaction, Reason]] = {
    "500": (error(500), Reason.SERVER),
    "502 with HTML": (Reaction(b"<html>bad gateway</html>", 502), Reason.SERVER),
    "an error with status 200": (as_json({"error": {"code": 502, "message": "x"}}), Reason.SERVER),
    "dropped at once": (Reaction(drop=True), Reason.CONNECTION),
    "dropped within the body": (Reaction(PLAIN, cut_after=20), Reason.CONNECTION),
    "truncated JSON": (Reaction(PLAIN[:20]), Reason.BODY),
    "no body": (Reaction(b""), Reason.BODY),
    "not JSON": (Reaction(b"<html>hello</html>"), Reason.BODY),
    "not UTF-8": (Reaction(b'{"choices": "\xff"}'), Reason.BODY),
    "an array": (as_json([1]), Reason.BODY),
    "a number": (as_json(7), Reason.BODY),
    "nested too deeply": (Reaction(b"[" * 100_000), Reason.BODY),
    "no choices": (as_json({"id": 1}), Reason.BODY),
    "empty choices": (as_json({"choices": []}), Reason.BODY),
    "choices are a text": (as_json({"choices": "one"}), Reason.BODY),
    "a choice is a number": (as_json({"choices": [1]}), Reason.BODY),
    "a choice is null": (as_json({"choices": [None]}), Reason.BODY),
    "no message": (as_json({"choices": [{"text": "old style"}]}), Reason.BODY),
    "the message is a text": (as_json({"choices": [{"message": "hi"}]}), Reason.BODY),
    "the content is a number": (chat(5), Reason.BODY),
    "the content is an object": (chat({"heard": 1}), Reason.BODY),
    "wrong encoding": (Reaction(PLAIN, headers={"Content-Encoding": "gzip"}), Reason.BODY),
}


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", PASSING)
def test_what_may_pass_is_tried_again(name: str) -> None:
    reaction, reason = PASSING[name]
    with serve(first(reaction)) as server:
        [outcome] = ask(server, question())
        assert answer(outcome).content == GOOD
        assert len(server.calls) == 2
    with serve(first(reaction, times=99)) as server:
        [outcome] = ask(server, question())
        assert failure(outcome).reason is reason
        assert failure(outcome).detail
        assert len(server.calls) == HASTE.attempts


FINAL: dict[str, tuple[Reaction, Reason, str]] = {
    "cut off": (chat('{"heard": "he', finish="length"), Reason.CUT_OFF, '{"heard": "he'),
    "filtered": (chat("", finish="content_filter"), Reason.FILTERED, ""),
    "filtered by the server": (error(400, "content management policy"), Reason.FILTERED, ""),
    "moderated": (error(403, "your input was flagged"), Reason.FILTERED, ""),
    "refused": (
        as_json({"choices": [{"message": {"content": None, "refusal": "I can't"}}]}),
        Reason.REFUSED,
        "I can't",
    ),
    "empty": (chat(""), Reason.EMPTY, ""),
    "blank": (chat(" \n"), Reason.EMPTY, " \n"),
    "null": (chat(None), Reason.EMPTY, ""),
    "a tool call": (chat(None, finish="tool_calls"), Reason.EMPTY, ""),
    "rejected": (error(400, "I do not like it"), Reason.REJECTED, ""),
    "too long": (error(400, "This model's maximum context length is 10"), Reason.TOO_LONG, ""),
    "too long for llama.cpp": (
        error(400, "request (9 tokens) exceeds the available context size"),
        Reason.TOO_LONG,
        "",
    ),
    "too large": (error(413, ""), Reason.TOO_LONG, ""),
    "too large for a minute": (
        error(429, "Request too large for m on TPM"),
        Reason.TOO_LONG,
        "",
    ),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_does_not_pass_is_not_tried_again(name: str) -> None:
    reaction, reason, content = FINAL[name]
    with serve(lambda _: reaction) as server:
        outcome = failure(ask(server, question())[0])
        assert (outcome.reason, outcome.content) == (reason, content)
        assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"Sure!\n```json\n{GOOD}\n```", {"heard": "hello"}),
        (f"The answer is {GOOD}, I think.", {"heard": "hello"}),
        ([{"type": "text", "text": GOOD}, 3], {"heard": "hello"}),
        ('{"heard": "hel', None),
    ],
)
def test_the_content_is_kept_as_it_is_and_read_later(content: Any, expected: object) -> None:
    with serve(lambda _: chat(content)) as server:
        read = extract_object(answer(ask(server, question())[0]).content)
        assert read == expected if expected else isinstance(read, Unreadable)


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    "wait",
    [
        {},
        {"Retry-After": "0.02"},
        {"retry-after-ms": "20"},
        {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"},
        {"Retry-After": "soon"},
    ],
    ids=str,
)
def test_a_busy_server_is_asked_again(status: int, wait: dict[str, str]) -> None:
    busy = error(status, "slow down", headers=wait)
    with serve(first(busy, times=3)) as server:
        outcomes = ask(server, *[question(number) for number in range(20)])
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert len(server.calls) == 23


def test_a_date_to_come_back_at_is_kept_by_all() -> None:
    arrivals: list[float] = []
    told: list[float] = []

    def script(call: Call) -> Reaction:
        arrivals.append(time.monotonic())
        if call.number:
            return echo(call)
        told.append(time.monotonic())
        # dates know no parts of seconds; the server's clock is what counts, however wrong
        date, later = formatdate(1e9, usegmt=True), formatdate(1e9 + 1, usegmt=True)
        return error(429, headers={"Date": date, "Retry-After": later})

    with serve(script) as server:
        retry = replace(HASTE, concurrency=1)
        ask(server, *[question(number) for number in range(3)], retry=retry)
    assert len(arrivals) == 4
    assert min(arrivals[1:]) - told[0] >= 1.0


def test_all_that_were_turned_down_come_back_in_time() -> None:
    wait, arrivals, all_there = 0.1, [], threading.Event()

    def script(call: Call) -> Reaction:
        arrivals.append(time.monotonic())
        if call.number >= 8:
            return echo(call)
        if call.number == 7:
            all_there.set()  # the last of them: now all are told
        return error(429, headers={"Retry-After": str(wait)}, until=all_there)

    with serve(script) as server:
        retry = replace(HASTE, concurrency=8)
        outcomes = ask(server, *map(question, range(40)), retry=retry)
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert len(server.calls) == 48
    assert min(arrivals[8:]) - arrivals[7] >= wait


@pytest.mark.parametrize("wait", [{}, {"Retry-After": "3600"}])
def test_waiting_ends(wait: dict[str, str]) -> None:
    with serve(lambda _: error(429, "slow down", headers=wait)) as server:
        retry = replace(HASTE, max_wait=0.05)
        outcome = failure(ask(server, question(), retry=retry)[0])
        assert outcome.reason is Reason.BUSY
        assert "429" in outcome.detail


@pytest.mark.parametrize("late", [Reaction(hang=True), Reaction(PLAIN, trickle=0.02)])
def test_an_answer_that_takes_too_long_is_a_timeout(late: Reaction) -> None:
    budget = CallBudget()
    with serve(lambda _: late) as server:
        retry = replace(HASTE, timeout=0.3, attempts=2)
        [slow] = ask(server, question(), retry=retry, budget=budget)
        assert failure(slow).reason is Reason.TIMEOUT
        assert budget.calls == 2
        server.script = echo
        assert answer(ask(server, question())[0]).content == GOOD


@pytest.mark.parametrize("content", ["nul \x00", "日本 🎉", "half \ud800"])
def test_any_answer_can_be_kept(content: str, tmp_path: Path) -> None:
    with serve(lambda _: chat(content)) as server, Cache.open(tmp_path) as cache:
        heard = answer(ask(server, question(), cache=cache)[0]).content
        assert heard == content.replace("\ud800", "?")
        assert answer(ask(server, question(), cache=cache)[0]).content == heard
        assert len(server.calls) == 1
        assert not cache.broken


def test_more_bytes_than_any_answer_has_are_not_read() -> None:
    endless = Reaction(b" " * (17 * 2**20))
    with serve(first(endless)) as server:
        assert answer(ask(server, question())[0]).content == GOOD


@pytest.mark.parametrize(
    ("usage", "reported"),
    [
        ((7, 3), True),
        (None, False),
        ({"prompt_tokens": "7", "completion_tokens": 3}, False),
        ({"prompt_tokens": -7, "completion_tokens": 3}, False),
        ({"prompt_tokens": True, "completion_tokens": 3}, False),
        ([], False),
    ],
)
def test_tokens_are_those_reported_or_a_guess(usage: Any, reported: bool) -> None:
    budget = CallBudget()
    with serve(lambda _: chat(GOOD, usage=usage)) as server:
        used = answer(ask(server, question(), budget=budget)[0]).usage
    assert used.estimated is not reported
    assert (used.prompt, used.completion) == ((7, 3) if reported else (14, 5))
    assert budget.guessed_calls == (not reported)
    assert budget.tokens == used.total


STOPS: dict[str, tuple[Reaction, str]] = {
    "a wrong key": (error(401, f"bad key {KEY}"), "denies access"),
    "no right": (error(403, "forbidden"), "denies access"),
    "no such model": (error(404, "The model `m` does not exist"), "no model 'some-model'"),
    "no such model, as a mistake": (error(400, "m is not a valid model ID"), "no model"),
    "no such address": (Reaction(b"Not Found", 404), "no model answers"),
    "moved": (
        Reaction(b"", 301, {"Location": "http://h:1/?k=v"}),
        "which findwell does not follow .*http://h:1\\)",
    ),
    "no credit": (error(402, "pay"), "no credit"),
    "no credit, as a limit": (error(429, "You exceeded: insufficient_quota"), "no credit"),
}


@pytest.mark.parametrize("name", STOPS)
def test_what_would_fail_every_request_stops_the_job(name: str) -> None:
    reaction, what = STOPS[name]
    with serve(lambda _: reaction) as server, pytest.raises(EndpointError, match=what) as stop:
        ask(server, *[question(number) for number in range(50)])
    assert len(server.calls) < 50
    assert isinstance(stop.value, FindwellError)
    assert stop.value.fix
    assert KEY not in str(stop.value)


def test_a_request_that_alone_is_forbidden_stops_nothing() -> None:
    with serve(lambda call: error(403, "no") if call.prompt == "2" else echo(call)) as server:
        endpoint = endpoint_of(server)
        ask(server, question("first"), endpoint=endpoint)
        outcomes = ask(server, *[question(n) for n in range(5)], endpoint=endpoint)
        assert [isinstance(outcome, Answer) for outcome in outcomes] == [True, True, False] + [
            True
        ] * 2
        assert failure(outcomes[2]).reason is Reason.REJECTED


def test_no_server_from_the_start_stops_the_job() -> None:
    with serve() as server:
        endpoint = endpoint_of(server)  # whose port is closed from here on
    with pytest.raises(
        EndpointError, match=r"no connection, in 3 attempts \(.*Connect call failed"
    ):
        ask_all([question()], endpoint, retry=HASTE)


def test_a_server_that_is_gone_later_is_a_failure() -> None:
    with serve() as server:
        endpoint = endpoint_of(server)
        ask(server, question("first"), endpoint=endpoint)
    [outcome] = ask_all([question("second")], endpoint, retry=HASTE)
    assert failure(outcome).reason is Reason.UNREACHABLE


def test_a_server_that_is_gone_pauses_the_job_which_goes_on_when_it_is_back() -> None:
    back: list[Server] = []
    with serve() as server:
        endpoint, port = endpoint_of(server), int(server.url.split(":")[2].partition("/")[0])
        ask(server, question("first"), endpoint=endpoint)
    budget = CallBudget(Limits(max_calls=9))
    said: list[str] = []

    def progress(_: int) -> None:
        said.append(budget.spent_so_far())
        if "the server is gone: start it again" in said[-1] and not back:
            back.append(Server(echo, port=port).__enter__())

    patient = replace(HASTE, gone_wait=30.0)
    try:
        outcomes = ask_all(
            [question(number) for number in range(8)],
            endpoint,
            retry=patient,
            budget=budget,
            progress=progress,
        )
    finally:
        for each in back:
            each.__exit__()
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert (budget.calls, budget.answered, len(back)) == (8, 8, 1)
    assert "gone" not in said[-1]


def test_a_server_that_dies_fails_what_is_left_and_soon_without_asking() -> None:
    retry = RetryPolicy(concurrency=2, attempts=2, first_wait=0.001)
    script: Callable[[Call], Reaction] = lambda call: (  # noqa: E731
        echo(call) if call.number < 5 else Reaction(drop=True)
    )
    with serve(script) as server:
        outcomes = ask(server, *[question(number) for number in range(200)], retry=retry)
        answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
        reasons = {failure(each).reason for each in outcomes if not isinstance(each, Answer)}
        assert len(answers) == 5
        assert reasons == {Reason.CONNECTION, Reason.STOPPED}
        assert len(server.calls) < 50


def test_a_mixed_lot_ends_whole_and_the_totals_add_up() -> None:
    kinds = [each[0] for each in PASSING.values()] + [each[0] for each in FINAL.values()]
    kinds += [error(429), error(503, headers={"Retry-After": "0.01"})]
    seen: set[str] = set()

    def script(call: Call) -> Reaction:
        number = int(call.prompt)
        stubborn = number % 3 == 0 and kinds[number % len(kinds)].status not in (429, 503)
        if number % 2 or (call.prompt in seen and not stubborn):
            return echo(call)
        seen.add(call.prompt)
        return kinds[number % len(kinds)]

    budget = CallBudget()
    requests = [question(number) for number in range(1, 301)]
    with serve(script) as server:
        outcomes = ask(
            server, *requests, *requests[:7], budget=budget, retry=replace(HASTE, concurrency=16)
        )
    assert len(outcomes) == 307
    for request, outcome in zip(requests, outcomes, strict=False):
        if isinstance(outcome, Answer):
            assert extract_object(outcome.content) == {"heard": request.messages[-1].content}
        else:
            assert outcome.detail
            assert int(request.messages[-1].content) % 2 == 0
    answers = sum(isinstance(outcome, Answer) for outcome in outcomes[:300])
    assert 150 <= answers < 300
    assert budget.requests == 307
    assert budget.repeated == 7
    assert budget.answered == answers
    assert sum(budget.failed.values()) == 300 - answers
    assert budget.calls == len(server.calls)
