"""An OpenAI-compatible endpoint, tested against a real server that misbehaves."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from findwell.core.errors import OptionError
from findwell.judges.client.client import RetryPolicy
from findwell.judges.embeddings import EmbeddingError, EndpointError, cached, find_embedder
from findwell.judges.embeddings.embedder import WRITTEN_TEXTS
from findwell.judges.embeddings.openai import openai_embedder
from tests.client.server import Call, Reaction, Server, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from findwell.judges.embeddings import Embedder
    from tests.client.server import Script

KEY = "sk-very-secret-wxyz"


def vector(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 1.0]


def numbered(call: Call) -> list[dict[str, Any]]:
    texts = enumerate(call.body["input"])
    return [{"index": number, "embedding": vector(text)} for number, text in texts]


def embed(call: Call) -> Reaction:
    return as_json({"object": "list", "data": numbered(call)})


def status(code: int, body: str = "", **headers: str) -> Script:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Reaction(body.encode(), code, named)


def saying(body: object) -> Script:
    return lambda _: as_json(body)


def answering(server: Server, *first: Script) -> None:
    """Let the server answer the first calls so, and all others well."""
    server.script = lambda call: (first[call.number] if call.number < len(first) else embed)(call)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(embed) as running:
        yield running


def client(server: Server, **retry: float) -> Embedder:
    options: dict[str, Any] = {"attempts": 3, "concurrency": 1, "timeout": 20.0}
    options |= {"first_wait": 0.001, "max_wait": 0.05} | retry
    return openai_embedder(
        "embed-small", base_url=server.url, api_key=KEY, retry=RetryPolicy(**options)
    )


def units(*texts: str) -> list[list[float]]:
    rows = np.array([vector(text) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()  # type: ignore[no-any-return]


def test_the_environment_names_server_and_key(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    embedder = find_embedder("openai:nomic-embed-text:latest")
    np.testing.assert_allclose(embedder.embed(["a", "", "banana"])[[0, 2]], units("a", "banana"))
    [call] = server.calls
    assert call.path == "/v1/embeddings"
    assert call.body == {"model": "nomic-embed-text:latest", "input": ["a", "banana"]}
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert embedder.name == f"openai:nomic-embed-text:latest@{server.url}"
    assert KEY not in repr(embedder)


def test_arguments_come_before_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not this one")
    embedder = find_embedder("openai:m", base_url=server.url, api_key="", max_chars=3)
    np.testing.assert_allclose(embedder.embed(["aaaaaa"]), units("aaa"))
    assert "authorization" not in server.calls[0].headers
    assert embedder.name.endswith(":3")


def test_many_texts_go_in_batches_and_come_back_in_order(server: Server) -> None:
    texts = [f"{'a' * (n % 17)}{n}" for n in range(333)]
    found = client(server, concurrency=4).embed(texts)
    np.testing.assert_allclose(found, units(*texts), atol=1e-6)
    assert sorted(len(call.body["input"]) for call in server.calls) == [13] + [64] * 5


def test_connections_are_kept_from_batch_to_batch(server: Server, tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(3 * WRITTEN_TEXTS)]
    embedder = cached(client(server, concurrency=2), tmp_path)
    embedder.embed(texts)
    embedder.embed(["one more"])
    assert len(server.calls) == 3 * WRITTEN_TEXTS / 64 + 1
    assert len({call.port for call in server.calls}) <= 2


def test_large_texts_travel_alone(server: Server) -> None:
    client(server).embed(["x" * 150_000, "y" * 150_000, "z", "漢" * 1_000_000])
    assert [len(call.body["input"]) for call in server.calls] == [1, 2, 1]


ORDERS: dict[str, Script] = {
    "backwards": lambda call: as_json({"data": numbered(call)[::-1]}),
    "without numbers": lambda call: as_json(
        {"data": [{"embedding": row["embedding"]} for row in numbered(call)]}
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_embeddings_in_any_order(order: str, server: Server) -> None:
    answering(server, ORDERS[order])
    np.testing.assert_allclose(client(server).embed(["a", "bb"]), units("a", "bb"), atol=1e-6)


TRANSIENT: dict[str, Script] = {
    "busy": status(429, "slow down", Retry_After="0.001"),
    "busy without a time": status(429, "slow down"),
    "broken": status(500, "oops"),
    "gateway": status(502, "<html>bad gateway</html>"),
    "overloaded": status(529),
    "timed out": status(408),
    "dropped": lambda _: Reaction(drop=True),
    "cut short": lambda call: replace(embed(call), cut_after=10),
    "not JSON": status(200, "<html>hello</html>"),
    "nothing": status(200, ""),
    "a list": saying([1]),
    "an error in disguise": saying({"error": "no"}),
}
BUSY = ("busy", "busy without a time", "overloaded")  # as long as max_wait allows


@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_failure_that_may_pass_is_tried_again(kind: str, server: Server) -> None:
    answering(server, TRANSIENT[kind])
    np.testing.assert_allclose(client(server).embed(["a"]), units("a"), atol=1e-6)
    assert len(server.calls) == 2


@pytest.mark.parametrize("kind", TRANSIENT)
def test_waiting_ends(kind: str, server: Server) -> None:
    server.script = TRANSIENT[kind]
    with pytest.raises(EndpointError, match="no embeddings") as caught:
        client(server).embed(["a"])
    assert len(server.calls) == 3 or kind in BUSY
    assert caught.value.where == server.url


FINAL = {
    "bad key": (status(401, "no"), 401, "FINDWELL_API_KEY"),
    "not allowed": (status(403, "no"), 403, "FINDWELL_API_KEY"),
    "no such model": (status(404, "no"), 404, "name of the model"),
    "too long": (status(400, "8192 tokens at most"), 400, "max_chars"),
    "too large": (status(413), 413, "max_chars"),
    "moved": (status(307, Location="http://127.0.0.1:1/"), 307, "base URL"),
    "no money": (status(429, '{"error": {"code": "insufficient_quota"}}'), 429, "another key"),
    "too few": (saying({"data": [{"index": 0, "embedding": [1]}]}), None, ""),
    "none": (saying({"data": []}), None, ""),
    "twice the same": (saying({"data": [{"index": 0, "embedding": [1]}] * 2}), None, ""),
    "odd numbers": (saying({"data": [{"index": [0], "embedding": [1]}] * 2}), None, ""),
    "text for numbers": (saying({"data": [{"embedding": "AAAA"}] * 2}), None, ""),
}


@pytest.mark.parametrize("kind", FINAL)
def test_a_failure_that_stays_is_an_error_at_once(kind: str, server: Server) -> None:
    answer, code, fix = FINAL[kind]
    answering(server, answer)
    with pytest.raises(EndpointError) as caught:
        client(server).embed(["a", "b"])
    assert caught.value.status == code
    assert fix in caught.value.fix
    assert len(server.calls) == 1


@pytest.mark.parametrize("embedding", [[None], ["x"], [float("nan")], [], [[1.0]]])
def test_what_the_server_calls_an_embedding_is_checked(embedding: object, server: Server) -> None:
    answering(server, saying({"data": [{"embedding": embedding}]}))
    with pytest.raises(EmbeddingError, match=r"not vectors|not finite"):
        client(server).embed(["a"])


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    retry = RetryPolicy(attempts=2, first_wait=0.001)
    url = f"http://127.0.0.1:{port}"
    embedder = openai_embedder("m", base_url=url, api_key=KEY, retry=retry)
    with pytest.raises(EndpointError, match="no connection, in 2 attempts") as caught:
        embedder.embed(["a"])
    assert caught.value.status is None


def test_a_server_that_sends_byte_by_byte_is_given_up(server: Server) -> None:
    server.script = lambda call: replace(embed(call), trickle=0.02)
    with pytest.raises(EndpointError, match="no complete answer"):
        client(server, attempts=2, timeout=0.2).embed(["a"])


def echo_key(code: int, padding: int) -> Script:
    """Answer as careless gateways do: with the header they were sent, whole and masked."""

    def answer(call: Call) -> Reaction:
        key = call.headers["authorization"]
        text = f"{'x' * padding} \x1b[31m{key} {key[:15]}****{key[-4:]}"
        return Reaction(f'{{"error": "{text}"}}'.encode(), code)

    return answer


@pytest.mark.parametrize("padding", [0, *range(270, 300, 4)])
@pytest.mark.parametrize("code", [200, 401, 500])
def test_the_key_is_in_no_error_no_log_and_no_cache(
    code: int, padding: int, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = echo_key(code, padding)
    embedder = cached(client(server), tmp_path)
    with pytest.raises(EndpointError) as caught:
        embedder.embed(["a"])
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    shown = "".join(traceback.format_exception(caught.value))
    assert padding or code == 200 or str(caught.value).count("***") == 2
    assert "\x1b" not in str(caught.value)
    server.script = embed
    embedder.embed(["a"])
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for place in (shown, str(caught.value), repr(caught.value), caplog.text, repr(embedder)):
        assert "secret" not in place
        assert "wxyz" not in place
        assert "sk-v" not in place
    assert b"secret" not in written


@pytest.mark.parametrize("key", ["sk-секрет", "sk-a\nsecret", "sk-\x00secret", "two secret"])
def test_a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with pytest.raises(OptionError, match="characters that keys cannot have") as caught:
        openai_embedder("m", base_url="http://127.0.0.1:1", api_key=key)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert "секрет" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:secret@h/v1", "https://h/v1#secret"])
def test_a_secret_in_the_url_is_in_no_name(url: str) -> None:
    embedder = openai_embedder("m", base_url=url, api_key="")
    assert "secret" not in embedder.name
    with pytest.raises(OptionError, match="would end up in logs") as caught:
        openai_embedder("m", base_url="http://h/v1?key=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h/v1", "http://", "http://[::1", "x"])
def test_a_url_must_name_a_server(url: str) -> None:
    with pytest.raises(OptionError, match="base URL"):
        openai_embedder("m", base_url=url)


def test_an_environment_that_allows_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://me:secret@127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(OptionError, match="the proxy") as caught:
        openai_embedder("m", base_url="http://127.0.0.1:1").embed(["a"])
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_failure_ends_the_waiting_of_the_others(server: Server) -> None:
    # the first is asked to wait a minute, and nothing stands in for sleep; the second fails
    both = threading.Event()

    def busy(_: Call) -> Reaction:
        return Reaction(b"", 429, {"Retry-After": "60"}, until=both)

    def refused(_: Call) -> Reaction:
        both.set()  # otherwise the second would wait before it asks
        return Reaction(b"no", 401, latency=0.2)

    answering(server, busy, refused)
    retry = RetryPolicy(concurrency=2)
    embedder = openai_embedder("m", base_url=server.url, api_key=KEY, retry=retry)
    with pytest.raises(EndpointError) as caught:
        embedder.embed([f"a{n}" for n in range(65)])
    assert caught.value.status == 401
    assert len(server.calls) == 2


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_API_KEY", " ")
    with pytest.raises(OptionError, match="needs a key") as caught:
        find_embedder("openai:text-embedding-3-small")
    assert "OPENAI_API_KEY" in caught.value.fix


def test_a_text_of_no_characters_makes_no_sense() -> None:
    with pytest.raises(OptionError, match="max_chars must be at least 1, not 0"):
        openai_embedder("m", base_url="http://127.0.0.1:1", max_chars=0)
