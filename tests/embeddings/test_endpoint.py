"""An OpenAI-compatible endpoint, tested against a real server that misbehaves."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import traceback
from typing import TYPE_CHECKING

import numpy as np
import pytest

from karat.embeddings import EmbeddingError, EndpointError, cached, find_embedder
from karat.embeddings.endpoint import Manners, openai_embedder
from karat.errors import OptionError
from karat.patience import LONGEST, pause, seconds
from tests.embeddings import server as answers
from tests.embeddings.server import Server, status, vector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from karat.embeddings import Embedder
    from tests.embeddings.server import Answer

KEY = "sk-very-secret-4711"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server() as running:
        yield running
        gc.collect()  # close the clients' sockets here, not in another test


class Naps:
    """Stands in for sleep."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def client(server: Server, naps: Naps | None = None, **manners: float) -> Embedder:
    options = {"attempts": 3, "parallel": 1, "timeout": 20.0} | manners
    return openai_embedder(
        "embed-small",
        base_url=server.url,
        api_key=KEY,
        manners=Manners(sleep=naps or Naps(), **options),  # type: ignore[arg-type]
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
    assert server.requests == [
        {"path": "/v1/embeddings", "model": "nomic-embed-text:latest", "input": ["a", "banana"]}
    ]
    assert server.keys == [f"Bearer {KEY}"]
    assert embedder.name == f"openai:nomic-embed-text:latest@{server.url}"
    assert KEY not in repr(embedder)


def test_arguments_come_before_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not this one")
    embedder = find_embedder("openai:m", base_url=server.url, api_key="", max_chars=3)
    np.testing.assert_allclose(embedder.embed(["aaaaaa"]), units("aaa"))
    assert server.keys == [None]
    assert embedder.name.endswith(":3")


def test_many_texts_go_in_batches_and_come_back_in_order(server: Server) -> None:
    texts = [f"{'a' * (n % 17)}{n}" for n in range(333)]
    found = client(server, parallel=4).embed(texts)
    np.testing.assert_allclose(found, units(*texts), atol=1e-6)
    assert sorted(len(request["input"]) for request in server.requests) == [13] + [64] * 5


def test_large_texts_travel_alone(server: Server) -> None:
    client(server).embed(["x" * 150_000, "y" * 150_000, "z", "漢" * 1_000_000])
    assert [len(request["input"]) for request in server.requests] == [1, 2, 1]


@pytest.mark.parametrize("answer", [answers.backwards, answers.without_numbers])
def test_embeddings_in_any_order(answer: Answer, server: Server) -> None:
    server.answers.append(answer)
    np.testing.assert_allclose(client(server).embed(["a", "bb"]), units("a", "bb"), atol=1e-6)


TRANSIENT = {
    "busy": status(429, "slow down", Retry_After="0.001"),
    "busy without a time": status(429, "slow down"),
    "broken": status(500, "oops"),
    "gateway": status(502, "<html>bad gateway</html>"),
    "overloaded": status(529),
    "timed out": status(408),
    "dropped": answers.dropped,
    "cut short": answers.cut_short,
    "not JSON": status(200, "<html>hello</html>"),
    "nothing": status(200, ""),
}


@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_failure_that_may_pass_is_tried_again(kind: str, server: Server) -> None:
    naps = Naps()
    server.answers.append(TRANSIENT[kind])
    np.testing.assert_allclose(client(server, naps).embed(["a"]), units("a"), atol=1e-6)
    assert len(server.requests) == 2
    assert all(0 < nap <= 0.5 for nap in naps.taken)


@pytest.mark.parametrize("kind", TRANSIENT)
def test_patience_ends(kind: str, server: Server) -> None:
    server.answers.extend([TRANSIENT[kind]] * 3)
    with pytest.raises(EndpointError, match="in 3 attempts") as caught:
        client(server).embed(["a"])
    assert len(server.requests) == 3
    assert caught.value.where == f"{server.url}/embeddings"


def test_the_server_says_how_long_to_wait(server: Server) -> None:
    naps = Naps()
    server.answers.append(status(429, Retry_After="7"))
    client(server, naps).embed(["a"])
    assert naps.taken == [pytest.approx(7, abs=1)]


def test_all_requests_wait_for_a_busy_server(server: Server) -> None:
    naps = Naps()
    server.answers.append(status(429, Retry_After="30"))
    client(server, naps).embed([f"a{n}" for n in range(200)])
    assert len(naps.taken) == 4  # the request that failed, and the three after it


FINAL = {
    "bad key": (status(401, "no"), 401, "OPENAI_API_KEY"),
    "not allowed": (status(403, "no"), 403, "OPENAI_API_KEY"),
    "no such model": (status(404, "no"), 404, "model's name"),
    "too long": (status(400, "8192 tokens at most"), 400, "max_chars"),
    "too large": (status(413), 413, "max_chars"),
    "moved": (status(307, Location="http://127.0.0.1:1/"), 307, "base URL"),
    "no money": (status(429, '{"error": {"code": "insufficient_quota"}}'), 429, "account"),
    "too few": (answers.saying({"data": [{"index": 0, "embedding": [1]}]}), 200, ""),
    "none": (answers.saying({"data": []}), 200, ""),
    "twice the same": (answers.saying({"data": [{"index": 0, "embedding": [1]}] * 2}), 200, ""),
    "odd numbers": (answers.saying({"data": [{"index": [0], "embedding": [1]}] * 2}), 200, ""),
    "a list": (answers.saying([1]), 200, ""),
    "an error in disguise": (answers.saying({"error": "no"}), 200, ""),
    "text for numbers": (answers.saying({"data": [{"embedding": "AAAA"}] * 2}), 200, ""),
}


@pytest.mark.parametrize("kind", FINAL)
def test_a_failure_that_stays_is_an_error_at_once(kind: str, server: Server) -> None:
    answer, code, fix = FINAL[kind]
    server.answers.append(answer)
    with pytest.raises(EndpointError) as caught:
        client(server).embed(["a", "b"])
    assert caught.value.status == code
    assert fix in caught.value.fix
    assert len(server.requests) == 1


@pytest.mark.parametrize("embedding", [[None], ["x"], [float("nan")], [], [[1.0]]])
def test_what_the_server_calls_an_embedding_is_checked(embedding: object, server: Server) -> None:
    server.answers.append(answers.saying({"data": [{"embedding": embedding}]}))
    with pytest.raises(EmbeddingError, match=r"no vectors|not finite"):
        client(server).embed(["a"])


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    embedder = openai_embedder(
        "m",
        base_url=f"http://127.0.0.1:{port}",
        api_key=KEY,
        manners=Manners(attempts=2, sleep=Naps()),
    )
    with pytest.raises(EndpointError, match=r"connection failed.* in 2 attempts") as caught:
        embedder.embed(["a"])
    assert caught.value.status is None


def test_a_server_that_trickles_is_given_up(server: Server) -> None:
    def trickle(handler: answers.Handler, _: list[str]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"1\r\n \r\n")
        except OSError:
            handler.close_connection = True

    server.answers.extend([trickle] * 2)
    with pytest.raises(EndpointError, match=r"too slow to answer|in time"):
        client(server, attempts=2, timeout=0.2).embed(["a"])


@pytest.mark.parametrize("padding", [0, *range(270, 300, 4)])
@pytest.mark.parametrize("code", [200, 401, 500])
def test_the_key_is_in_no_error_no_log_and_no_cache(
    code: int, padding: int, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers.extend([answers.echo_key(code, padding)] * 3)
    embedder = cached(client(server), tmp_path)
    with pytest.raises(EndpointError) as caught:
        embedder.embed(["a"])
    assert server.keys[0] == f"Bearer {KEY}"
    shown = "".join(traceback.format_exception(caught.value))
    assert padding or str(caught.value).count("[key]") == 2
    assert "\x1b" not in str(caught.value)
    server.answers.clear()
    embedder.embed(["a"])
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for place in (shown, str(caught.value), repr(caught.value), caplog.text, repr(embedder)):
        assert "secret" not in place
        assert "4711" not in place
        assert "sk-v" not in place
    assert b"secret" not in written


@pytest.mark.parametrize("key", ["sk-секрет", "sk-a\nsecret", "sk-\x00secret", "two secret"])
def test_a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with pytest.raises(OptionError, match="characters that no key has") as caught:
        openai_embedder("m", base_url="http://127.0.0.1:1", api_key=key)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert "секрет" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://me:secret@h/v1", "http://secret@h", "http://h/v1?key=secret", "https://h/#secret"],
)
def test_a_secret_in_the_url_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="more than a server and a path") as caught:
        openai_embedder("m", base_url=url, api_key="")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h/v1", "http://", "http://[::1", "x"])
def test_a_url_must_name_a_server(url: str) -> None:
    with pytest.raises(OptionError, match="base URL"):
        openai_embedder("m", base_url=url)


def test_an_environment_that_allows_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://me:secret@127.0.0.1")
    with pytest.raises(OptionError, match="connections cannot be made") as caught:
        openai_embedder("m", base_url="http://127.0.0.1:1")
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_failure_ends_the_waiting_of_the_others(server: Server) -> None:
    # the first is told to wait a minute, and nothing stands in for sleep; the second fails
    both, asked = threading.Event(), threading.Event()

    def busy(handler: answers.Handler, _: list[str]) -> None:
        both.wait()  # otherwise the second would wait before it asks
        handler.reply(429, b"", Retry_After="60")
        asked.set()

    def refused(handler: answers.Handler, _: list[str]) -> None:
        both.set()
        asked.wait()
        handler.reply(401, b"no")

    server.answers.extend([busy, refused])
    manners = Manners(parallel=2)
    embedder = openai_embedder("m", base_url=server.url, api_key=KEY, manners=manners)
    with pytest.raises(EndpointError) as caught:
        embedder.embed([f"a{n}" for n in range(65)])
    assert caught.value.status == 401
    assert len(server.requests) == 2


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(OptionError, match="need a key") as caught:
        find_embedder("openai:text-embedding-3-small")
    assert "OPENAI_API_KEY" in caught.value.fix


def test_a_text_of_no_characters_makes_no_sense() -> None:
    with pytest.raises(OptionError, match="max_chars is 0"):
        openai_embedder("m", base_url="http://127.0.0.1:1", max_chars=0)


def test_pauses_grow_to_a_bound() -> None:
    for attempt, longest in [(1, 0.5), (2, 1.0), (3, 2.0), (8, LONGEST), (5000, LONGEST)]:
        assert longest / 2 <= pause(attempt) <= longest
    assert pause(1, "3600") == LONGEST
    assert pause(3, "0") == 0


@pytest.mark.parametrize(
    ("header", "expected"),
    [("3", 3), ("-3", 0), ("nan", None), ("inf", None), ("", None), ("soon", None), (None, None)],
)
def test_retry_after_is_read_with_care(header: str | None, expected: float | None) -> None:
    assert seconds(header) == expected


def test_retry_after_may_be_a_date() -> None:
    wait = seconds("Fri, 31 Dec 2100 23:59:59 GMT")
    assert wait is not None
    assert wait > 1e8
    assert seconds("Fri, 31 Dec 1999 23:59:59") == 0
