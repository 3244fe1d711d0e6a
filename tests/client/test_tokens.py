"""What a model might have written, as servers tell it; and answers whose beginning is enough."""

from __future__ import annotations

import json
import math
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from findwell.judges.client.cache import Cache
from findwell.judges.client.protocol import Answer, Failure, Reason, Usage
from tests.client.asking import ask, endpoint_of, question
from tests.client.server import Reaction, as_json, chat, serve

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.judges.client.protocol import ChatRequest

LIKELY = {"logprobs": True, "top_logprobs": 2}


def said(content: Any, logprobs: Any, finish: str = "stop") -> Reaction:
    body = json.loads(chat(content, finish=finish).body)
    body["choices"][0]["logprobs"] = logprobs
    return as_json(body)


def token(text: Any, chance: Any, *top: Any) -> dict[str, Any]:
    return {"token": text, "logprob": chance, "top_logprobs": list(top)}


def test_tokens_are_read_and_kept(tmp_path: Path) -> None:
    half = math.log(0.5)
    places = [token("Yes", half, token("Yes", half), token("No", math.log(0.25))), token(".", 0.0)]
    with serve(lambda _: said("Yes.", {"content": places})) as server:
        request = question("?", options=LIKELY)
        with Cache.open(tmp_path) as cache:
            [first] = ask(server, request, cache=cache)
        with Cache.open(tmp_path) as cache:
            [again] = ask(server, request, cache=cache)
    assert isinstance(first, Answer)
    assert isinstance(again, Answer)
    assert [[text for text, _ in place] for place in first.tokens] == [["Yes", "No"], ["."]]
    assert [chance for _, chance in first.tokens[0]] == pytest.approx([0.5, 0.25])
    assert again.tokens == first.tokens
    assert again.stored
    assert len(server.calls) == 1


def test_an_answer_does_not_keep_the_tokens_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    places = {"content": [token("Yes", math.log(0.9))]}
    request = question("?", options=LIKELY)
    with serve(lambda _: said("Yes", places)) as server, Cache.open(tmp_path) as cache:
        ask(server, request, cache=cache)
        key = request.key(endpoint_of(server))
        cache.put(
            key, Answer("No", Usage(1, 1), 0.1)
        )  # -J cache=refresh, and the server tells none now
        assert (cache.get([key])[key].content, cache.get([key])[key].tokens) == ("No", ())


@pytest.mark.parametrize(
    "logprobs",
    [None, [], 7, {"content": None}, {"content": 3}, {"tokens": ["Yes"], "token_logprobs": [-0.1]}],
)
def test_a_server_without_them_is_read_as_ever(logprobs: Any) -> None:
    with serve(lambda _: said("Yes", logprobs)) as server:
        [outcome] = ask(server, question("?", options=LIKELY))
    assert isinstance(outcome, Answer)
    assert (outcome.content, outcome.tokens) == ("Yes", ())


def test_what_is_malformed_is_left_out() -> None:
    places = [token("a", -1.0, token(7, -1.0), "x", token("b", True), token("c", 5.0)), "y"]
    with serve(lambda _: said("a", {"content": places})) as server:
        [outcome] = ask(server, question("?", options=LIKELY))
    assert isinstance(outcome, Answer)
    assert [[text for text, _ in place] for place in outcome.tokens] == [["a"], []]


def test_the_beginning_of_an_answer_is_an_answer_where_it_is_enough() -> None:
    with serve(lambda _: chat("Yes, it", finish="length")) as server:
        cut, whole = ask(server, question("one"), question("two", limit=3, only_beginning=True))
    assert isinstance(cut, Failure)
    assert cut.reason is Reason.CUT_OFF
    assert isinstance(whole, Answer)
    assert {call.body.get("max_tokens") for call in server.calls} == {None, 3}  # in any order


def test_a_limit_is_sent_but_is_no_part_of_the_key() -> None:
    with serve() as server:
        endpoint = endpoint_of(server)
        plain, limited = question("?"), question("?", limit=9, only_beginning=True)
        assert plain.key(endpoint) == limited.key(endpoint)
        assert (plain.max_tokens, limited.max_tokens) == (None, 9)
        own: ChatRequest = question("?", options={"max_completion_tokens": 5}, limit=9)
        assert own.max_tokens == 5
        assert "max_tokens" not in own.fields()


def test_a_cache_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    with serve() as server:
        with Cache.open(tmp_path) as cache:
            ask(server, question("old"), cache=cache)
            path = cache.path
        assert path is not None
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE tokens")  # as it was before there were any
        connection.close()
        with Cache.open(tmp_path) as cache:
            [old, new] = ask(server, question("old"), question("new"), cache=cache)
    assert isinstance(old, Answer)
    assert isinstance(new, Answer)
    assert (old.stored, new.stored, len(server.calls)) == (True, False, 2)
