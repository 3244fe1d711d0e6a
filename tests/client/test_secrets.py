"""The key of the judge is in the header of its calls, and nowhere else."""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import EndpointError, FindwellError, OptionError
from findwell.judges.client.budget import CallBudget
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.endpoint import Endpoint, Secret
from findwell.judges.client.providers import DEFAULT_URL
from tests.client.asking import HASTE, KEY, ask, ask_all, endpoint_of, question
from tests.client.server import Call, Reaction, as_json, chat, error, serve

if TYPE_CHECKING:
    from pathlib import Path


def leak(call: Call) -> Reaction:
    """Say the key in every way a server can."""
    key = call.headers["authorization"]
    leaks = [
        error(400, f"bad {key}"),
        error(500, f"bad {key}"),
        error(429, f"bad {key}", headers={"Retry-After": "0"}),
        Reaction(f"<html>{key}</html>".encode(), 502),
        chat(f'{{"heard": "{key}"}}'),
        chat(f"so far {key}", finish="length"),
        as_json({"choices": [{"message": {"content": None, "refusal": f"not with {key}"}}]}),
        as_json({"error": {"code": 400, "message": key}}),
    ]
    return leaks[int(call.prompt) % len(leaks)]


def test_no_leak_of_a_server_gets_any_further(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    budget = CallBudget()
    with serve(leak) as server, Cache.open(tmp_path) as cache:
        endpoint = endpoint_of(server)
        endpoint.support.answered = True
        retry = dataclasses.replace(HASTE, max_wait=0.05)
        requests = [question(number) for number in range(16)]
        outcomes = ask(
            server, *requests, cache=cache, budget=budget, endpoint=endpoint, retry=retry
        )
    assert len(outcomes) == 16
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"heard" in kept
    said = [repr(outcomes), *map(str, outcomes), repr(budget), json.dumps(budget.summary())]
    said += [repr(endpoint), json.dumps(endpoint.support.summary()), caplog.text]
    for text in [*said, kept.decode("latin-1")]:
        assert KEY not in text


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_errors_that_stop_the_job_hide_the_key_and_the_password(status: int) -> None:
    secrets: list[str] = []

    def script(call: Call) -> Reaction:
        return error(status, f"no: {call.headers['authorization']} {secrets[-1]}")

    with serve(script) as server:
        for secret, url, key in (
            (KEY, server.url, KEY),
            ("hunter2", server.url.replace("//", "//me:hunter2@"), ""),
        ):
            secrets.append(secret)
            endpoint = Endpoint.find("m", base_url=url, key=key)
            with pytest.raises(FindwellError) as stop:
                ask_all([question()], endpoint, retry=HASTE)
            said = f"{stop.value!r} {stop.value} {stop.value.__dict__}"
            assert "*** ***" in said
            assert not [each for each in (*secrets, "bWU6aHVudGVyMg==") if each in said]


def test_a_secret_shows_itself_to_nobody_else() -> None:
    endpoint = Endpoint.find("m", base_url="https://me:pass-word@host/v1", key=KEY)
    shown = [repr(endpoint), str(endpoint), str(dataclasses.asdict(endpoint)), f"{endpoint.key}"]
    assert not [text for text in shown if KEY in text or "pass-word" in text]
    with pytest.raises(TypeError):
        pickle.dumps(endpoint.key)
    assert endpoint.key.reveal() == KEY
    assert not Secret()


def test_a_short_dummy_key_changes_no_answer() -> None:
    with serve(lambda _: chat("I use ollama")) as server:
        endpoint = Endpoint.find("m", base_url=server.url, key="ollama")
        assert ask(server, question(), endpoint=endpoint)[0].content == "I use ollama"


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Endpoint.find("m").identity == DEFAULT_URL
    assert not Endpoint.find("m").key
    monkeypatch.setenv("OPENAI_BASE_URL", "http://a:1/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-a\n")
    found = Endpoint.find(" m ")
    assert (found.model, found.identity, found.key.reveal()) == ("m", "http://a:1/v1", "sk-a")
    monkeypatch.setenv("FINDWELL_BASE_URL", "http://b:1/v1")
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-b")
    found = Endpoint.find("m")
    assert (found.identity, found.key.reveal()) == ("http://b:1/v1", "sk-b")
    found = Endpoint.find("m", base_url="https://[::1]:8/x", key="")
    assert (found.url("/a"), found.key.reveal()) == ("https://[::1]:8/x/a", "")


OPENAI = {"OPENAI_API_KEY": "sk-openai"}
OWN = {"FINDWELL_API_KEY": "sk-own"}
BOX = {"OPENAI_BASE_URL": "http://box:1/v1", **OPENAI}


@pytest.mark.parametrize(
    ("environment", "base_url", "identity", "key"),
    [
        (OPENAI, None, DEFAULT_URL, "sk-openai"),
        (OPENAI, "https://api.openai.com:443/v1", "https://api.openai.com:443/v1", "sk-openai"),
        (OPENAI, "http://api.openai.com/v1", "http://api.openai.com/v1", ""),  # readable by all
        (OPENAI, "http://localhost:1/v1", "http://localhost:1/v1", ""),
        (OPENAI, "https://api.openai.com.example/v1", "https://api.openai.com.example/v1", ""),
        (OPENAI | {"FINDWELL_BASE_URL": "http://a:1/v1"}, None, "http://a:1/v1", ""),
        (BOX, None, "http://box:1/v1", "sk-openai"),
        (BOX, DEFAULT_URL, DEFAULT_URL, ""),
        (BOX, "http://box:1/other", "http://box:1/other", "sk-openai"),
        (BOX, "http://box:2/v1", "http://box:2/v1", ""),
        (BOX | {"FINDWELL_BASE_URL": "http://a:1/v1"}, None, "http://a:1/v1", ""),
        (BOX | OWN, None, "http://box:1/v1", "sk-own"),
        (OWN, None, DEFAULT_URL, "sk-own"),
        (OWN, "http://b:1/v1", "http://b:1/v1", "sk-own"),
        (OWN | {"FINDWELL_BASE_URL": "http://a:1/v1"}, None, "http://a:1/v1", "sk-own"),
        (OWN | {"FINDWELL_BASE_URL": "http://a:1/v1"}, "http://b:1/v1", "http://b:1/v1", ""),
        (OWN | {"FINDWELL_BASE_URL": "no address"}, "http://b:1/v1", "http://b:1/v1", ""),
        (
            OWN | OPENAI | {"FINDWELL_BASE_URL": "http://a:1/v1"},
            DEFAULT_URL,
            DEFAULT_URL,
            "sk-openai",
        ),
    ],
)
def test_a_key_goes_to_the_server_it_was_set_for(
    environment: dict[str, str],
    base_url: str | None,
    identity: str,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = Endpoint.find("m", base_url=base_url)
    assert (found.identity, found.key.reveal()) == (identity, key)
    assert bool(found.withheld) == (not key)
    assert not Endpoint.find("m", base_url=base_url, key="").key
    assert Endpoint.find("m", base_url=base_url, key="sk-given").key.reveal() == "sk-given"


def test_a_server_that_wants_a_key_is_not_given_that_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(lambda _: error(401, "who are you?")) as server:
        with pytest.raises(EndpointError) as stop:
            ask(server, question(), endpoint=Endpoint.find("m", base_url=server.url))
        assert "authorization" not in server.calls[0].headers
    assert "OPENAI_API_KEY belongs to another server" in stop.value.fix
    assert "FINDWELL_API_KEY" in stop.value.fix


def test_nothing_is_sent_to_openai_without_a_key() -> None:
    with pytest.raises(OptionError, match="needs a key") as stop:
        ask_all([question()], Endpoint.find("m"), retry=HASTE)
    assert "FINDWELL_BASE_URL" in stop.value.fix


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://me:hunter2@",
        "http://h:99999/v1",
        "http://h:x/v1",
        "http://[::1/v1",
        "http://h:0/v1",
        "https://h/v1?api_key=hunter2",
    ],
)
def test_a_wrong_address_is_not_repeated(url: str) -> None:
    with pytest.raises(OptionError) as error:
        Endpoint.find("m", base_url=url)
    assert "hunter2" not in str(error.value)
    assert error.value.fix


@pytest.mark.parametrize("key", ["sk 1", "sk-\n1", "sk-é", "\x00"])
def test_a_key_that_cannot_be_sent_is_not_repeated(key: str) -> None:
    with pytest.raises(OptionError, match="keys cannot have") as error:
        Endpoint.find("m", base_url="http://h/v1", key=key)
    assert key not in str(error.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(OptionError, match="no model"):
        Endpoint.find(" ")


@pytest.mark.parametrize("name", ["concurrency", "attempts", "timeout", "max_wait", "first_wait"])
def test_a_retry_policy_must_make_sense(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        RetryPolicy(**{name: 0})
