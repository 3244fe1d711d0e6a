"""Answers on disk: keyed by all that matters, kept, shared, and never in the way."""

from __future__ import annotations

import os
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from findwell.core.errors import FindwellError, InputError, OptionError, SaveError
from findwell.io.storage.database import cache_folder
from findwell.judges.client.cache import FILE, Cache
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.client.protocol import Answer, ChatRequest, Message, Reason, Usage
from tests.client.asking import SCHEMA, ask, question
from tests.client.server import chat, echo, serve

HERE = Endpoint.find("m", base_url="http://localhost:1/v1", key="")
ANSWER = Answer('{"heard": "ä 🎉"}', Usage(3, 4, 1), 0.5, "json_object")
STORED = replace(ANSWER, stored=True)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache.open(tmp_path)


def test_what_was_put_is_got(cache: Cache) -> None:
    keys = [question(number).key(HERE) for number in range(1234)]
    for key in keys[::2]:
        cache.put(key, ANSWER)
    assert cache.get(keys) == dict.fromkeys(keys[::2], STORED)
    assert cache.get([]) == {}
    assert len(cache) == 617
    cache.put(keys[0], replace(ANSWER, content="new"))
    assert cache.get(keys[:1])[keys[0]].content == "new"


def test_the_key_has_all_that_matters() -> None:
    asked = [
        question("a"),
        question("b"),
        question("a", schema=SCHEMA),
        question("a", schema=SCHEMA, name="other"),
        question("a", schema=dict(reversed(SCHEMA.items()))),
        question("a", options={"temperature": 0}),
        question("a", options={"temperature": 1}),
        question("a", options={"seed": 0}),
        question("a", vote=1),
        ChatRequest((Message("user", "Answer as JSON."), Message("user", "a"))),
        ChatRequest((Message("system", "Answer as JSON.a"),)),
    ]
    places = [
        HERE,
        Endpoint.find("m2", base_url="http://localhost:1/v1"),
        Endpoint.find("m", base_url="http://localhost:2/v1"),
        Endpoint.find("m", base_url="https://localhost:1/v1"),
        Endpoint.find("m", base_url="http://localhost:1/v2"),
    ]
    keys = {request.key(place) for request in asked for place in places}
    assert len(keys) == len(asked) * len(places)


def test_the_key_has_nothing_that_does_not_matter() -> None:
    ways = [
        Endpoint.find("m", base_url="http://localhost:1/v1/", key="other"),
        Endpoint.find("m", base_url="HTTP://LOCALHOST:1/v1/chat/completions"),
        Endpoint.find("m", base_url="http://me:word@localhost:1/v1"),
        Endpoint.find("m", base_url="http://localhost:1/v1?version=3"),
    ]
    request = question("a", options={"seed": 1, "temperature": 0})
    turned = question("a", options={"temperature": 0, "seed": 1})
    assert {each.key(way) for way in ways for each in (request, turned)} == {request.key(HERE)}


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_a_request_that_cannot_be_sent_is_the_callers_mistake(value: object) -> None:
    with pytest.raises(OptionError, match="not JSON"):
        question(options={"x": value}).key(HERE)


def test_what_is_known_is_not_asked_again(tmp_path: Path) -> None:
    requests = [question(number, schema=SCHEMA) for number in range(20)]
    with serve() as server:
        with Cache.open(tmp_path) as cache:
            first = ask(server, *requests[:10], cache=cache)
        with Cache.open(tmp_path) as cache:
            both = ask(server, *requests, cache=cache)
            assert len(server.calls) == 20
            again = ask(server, *requests, cache=cache)
        assert len(server.calls) == 20
    assert both[:10] == [replace(each, stored=True) for each in first if isinstance(each, Answer)]
    assert all(isinstance(each, Answer) and each.stored for each in again)
    assert [each.content for each in again] == [each.content for each in both]


def test_failures_are_asked_again(tmp_path: Path) -> None:
    with serve(lambda _: chat("so far", finish="length")) as server, Cache.open(tmp_path) as cache:
        outcome = ask(server, question(), cache=cache)[0]
        assert not isinstance(outcome, Answer)
        assert outcome.reason is Reason.CUT_OFF
        assert len(cache) == 0
        server.script = echo
        assert isinstance(ask(server, question(), cache=cache)[0], Answer)


def test_refresh_asks_once_more_and_replaces(tmp_path: Path) -> None:
    with serve(lambda _: chat("old")) as server:
        with Cache.open(tmp_path) as cache:
            ask(server, question(), cache=cache)
        server.script = lambda _: chat("new")
        with Cache.open(tmp_path, "refresh") as cache:
            assert ask(server, question(), cache=cache)[0].content == "new"
            assert ask(server, question(), cache=cache)[0].content == "new"
            assert len(server.calls) == 2
        with Cache.open(tmp_path) as cache:
            assert ask(server, question(), cache=cache)[0].content == "new"
        assert len(server.calls) == 2


def test_off_writes_nothing_but_remembers(tmp_path: Path) -> None:
    with serve() as server:
        with Cache.open(tmp_path, "off") as cache:
            ask(server, question(), cache=cache)
            ask(server, question(), cache=cache)
        assert len(server.calls) == 1
        ask(server, question())
        assert len(server.calls) == 2
    assert not list(tmp_path.iterdir())
    with pytest.raises(OptionError, match="unknown cache mode"):
        Cache.open(tmp_path, "on")


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "a" / "b"))
    with Cache.open() as cache:
        cache.put(b"key", ANSWER)
    assert (tmp_path / "a" / "b" / FILE).exists()
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    monkeypatch.delenv("FINDWELL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "xdg" / "findwell"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "findwell"


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0garbage"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=FILE) as error:
        Cache.open(tmp_path)
    assert "delete the file" in error.value.fix


def test_a_file_of_a_later_findwell_is_left_alone(tmp_path: Path) -> None:
    Cache.open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match="layout 99"):
        Cache.open(tmp_path)


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FindwellError, match="cannot be used"):
        Cache.open(tmp_path / "file" / "folder")
    (tmp_path / FILE).mkdir()
    with pytest.raises(FindwellError, match="cannot be used"):
        Cache.open(tmp_path)


def test_a_cache_that_breaks_loses_no_answers(tmp_path: Path) -> None:
    with serve() as server, Cache.open(tmp_path) as cache:
        cache._connection.execute("DROP TABLE answer")
        cache._connection.execute("CREATE VIEW answer AS SELECT *, 0.0 AS time FROM none_such")
        with pytest.raises(SaveError):
            ask(server, question(), cache=cache)  # known before anything is spent
        cache._connection.execute("DROP VIEW answer")
        cache._connection.execute(
            "CREATE TABLE answer (key BLOB, content TEXT CHECK (content = ''), prompt_tokens,"
            " completion_tokens, cached_tokens, estimated, seconds, form, time REAL)"
        )
        outcomes = ask(server, *map(question, range(5)), cache=cache)
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert "CHECK" in cache.broken
