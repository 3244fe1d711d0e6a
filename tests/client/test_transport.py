"""Connections: kept, replaced, encrypted, and through proxies."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import EndpointError, FindwellError, OptionError
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.client.protocol import Answer, Failure, Reason
from tests.client.asking import HASTE, KEY, ask, ask_all, question
from tests.client.server import Call, Reaction, chat, echo, serve

if TYPE_CHECKING:
    from pathlib import Path

ALONE = replace(HASTE, concurrency=1)
TEN = [question(number) for number in range(10)]


def test_a_connection_serves_many_calls() -> None:
    opened: set[int] = set()

    def script(call: Call) -> Reaction:
        opened.add(call.port)
        return echo(call)

    with serve(script) as server:
        ask(server, *TEN, retry=ALONE)
        assert len(server.calls) == 10
    assert len(opened) == 1


def test_a_connection_that_the_server_closes_after_each_answer_is_replaced() -> None:
    def script(call: Call) -> Reaction:
        reaction = echo(call)
        return replace(reaction, cut_after=len(reaction.body))

    with serve(script) as server:
        outcomes = ask(server, *TEN, retry=replace(ALONE, attempts=10))
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert len(server.calls) == 10  # what was sent into a closed connection did not arrive


def test_a_server_that_says_it_closes_is_believed() -> None:
    with serve(lambda call: replace(echo(call), headers={"Connection": "close"})) as server:
        outcomes = ask(server, *TEN, retry=replace(ALONE, attempts=1))
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert len({call.port for call in server.calls}) == 10


@pytest.mark.parametrize("length", [1, 7, 100_000])
def test_chunked_bodies_are_read(length: int) -> None:
    with serve(lambda _: replace(chat("x" * length), chunked=True)) as server:
        outcomes = ask(server, *(TEN if length < 100_000 else TEN[:2]))
        assert {each.content for each in outcomes} == {"x" * length}


def test_a_chunked_body_that_breaks_off_is_noticed() -> None:
    def script(call: Call) -> Reaction:
        return replace(echo(call), chunked=True, cut_after=None if call.number else 30)

    with serve(script) as server:
        assert isinstance(ask(server, question())[0], Answer)
        assert len(server.calls) == 2


def test_any_text_arrives() -> None:
    texts = ["naïve café 日本語 🎉", "\x00\x1f\u2028", "half \ud800 pair", "\\\"'{}", "x" * 300_000]
    with serve() as server:
        outcomes = ask(server, *map(question, texts))
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        heard = set(server.prompts)
    assert heard == {*texts[:2], "half ? pair", *texts[3:]}


def test_a_call_is_a_chat_completion_with_the_key_in_its_header() -> None:
    with serve() as server:
        ask(server, question(options={"temperature": 0, "stream": True}))
        [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.headers["user-agent"].startswith("findwell/")
    assert call.body["stream"] is False
    assert call.body["temperature"] == 0
    assert call.body["model"] == "some-model"
    assert [message["role"] for message in call.body["messages"]] == ["system", "user"]


def test_user_and_password_of_the_address_are_sent_where_there_is_no_key() -> None:
    with serve() as server:
        url = server.url.replace("//", "//me:p%40ss@") + "?version=2"
        ask_all([question()], Endpoint.find("m", base_url=url, key=""), retry=HASTE)
        [call] = server.calls
    assert call.headers["authorization"] == "Basic bWU6cEBzcw=="
    assert call.path == "/v1/chat/completions?version=2"
    assert "@" not in call.headers["host"]


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removeprefix("http://").removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "localhost")
        away = Endpoint.find("m", base_url="http://judge.invalid/v1", key=KEY)
        outcomes = ask_all(TEN, away, retry=HASTE)
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert {call.path for call in proxy.calls} == {"http://judge.invalid/v1/chat/completions"}
        with serve() as server:
            near = Endpoint.find("m", base_url=server.url.replace("127.0.0.1", "localhost"), key="")
            assert isinstance(ask_all([question()], near, retry=HASTE)[0], Answer)
            assert len(server.calls) == 1
        assert len(proxy.calls) == 10


def test_nothing_else_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2")
    monkeypatch.setenv("NETRC", str(netrc))
    with serve() as server:
        own = Endpoint.find("m", base_url=server.url, key="")
        ask_all([question()], own, retry=HASTE)
        assert "authorization" not in server.calls[0].headers


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    path = tmp_path / "both.pem"
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=findwell"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    path.write_text(key.read_text() + cert.read_text())
    return path


def test_certificates_are_checked(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serve(certificate=context) as server:
        with pytest.raises(EndpointError, match="certificate"):
            ask(server, question())
        assert not server.calls
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        outcomes = ask(server, *TEN)
        assert all(isinstance(outcome, Answer) for outcome in outcomes)


def test_a_server_that_speaks_no_http_is_a_failed_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def babble() -> None:
            for _ in range(HASTE.attempts):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"SSH-2.0-what\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        endpoint = Endpoint.find("m", base_url=f"http://127.0.0.1:{listening.getsockname()[1]}")
        [outcome] = ask_all([question()], endpoint, retry=HASTE)
        thread.join()
    assert isinstance(outcome, Failure)
    assert outcome.reason is Reason.CONNECTION


@pytest.mark.parametrize("host", ["h" * 70, "a..b", "a b"])
def test_a_host_that_cannot_be_is_the_callers_mistake(host: str) -> None:
    with pytest.raises(FindwellError):
        ask_all([question()], Endpoint.find("m", base_url=f"http://{host}/v1"), retry=HASTE)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://h:x"])
def test_a_proxy_that_cannot_be_is_the_callers_mistake(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(OptionError, match="proxy"):
        ask_all([question()], Endpoint.find("m", base_url="http://judge.invalid"), retry=HASTE)
