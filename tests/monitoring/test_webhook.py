"""News for another system, and the command: real servers on loopback, real files."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import OptionError
from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.endpoint import Secret
from findwell.loop.monitoring.alarm_report import STATE
from findwell.loop.monitoring.check import OUTBOX, check
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.monitoring.webhook import Webhook
from tests.cli.test_widths import lines
from tests.monitoring.watched_calls import WEEK, at, made_calls, store_of
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from tests.conftest import Findwell

Request = tuple[dict[str, str], bytes, str]  # headers, body, path
BREAK = WEEK + 600
ALERT = "empty>3%"
ALERTS = ("--alert", "empty rises", "--alert", "p95>800ms by tenant")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which retrieval breaks; tests copy it."""
    path = tmp_path_factory.mktemp("stores") / "store"
    store_of(path, made_calls(WEEK + 800, range(BREAK, BREAK + 300))).close()
    return path


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Iterator[TraceStore]:
    """A store of its own for each test."""
    with TraceStore.open(folder) as kept, TraceStore.open(tmp_path / "s", create=True) as new:
        new.add(kept.scan().collect())
        yield new


@contextmanager
def receiver(
    *statuses: int, headers: dict[str, str] | None = None, port: int = 0
) -> Iterator[tuple[str, list[Request]]]:
    """Answer with these statuses, one after another, and the last for ever; keep what came."""
    got: list[Request] = []
    answers = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(
                ({name.lower(): each for name, each in self.headers.items()}, body, self.path)
            )
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?token=t0ken", got
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()


def hook(
    url: str, sleep: Callable[[float], None] = lambda _: None, secret: str = "s3cret"
) -> Webhook:
    return Webhook(url, Secret(secret), RetryPolicy(attempts=3, timeout=5, max_wait=30), sleep)


def raise_alarm(store: TraceStore, webhook: Webhook) -> None:
    """Raise the same alarm once more."""
    with store.changing_states(STATE) as (saved,):
        saved.clear()
    assert check(store, ALERT, until=at(BREAK + 150), webhook=webhook).news


def test_news_are_signed_and_have_no_texts(store: TraceStore) -> None:
    known = {"baseline": "last-week"}
    with receiver(200) as (url, got):
        check(store, "empty rises", **known, until=at(BREAK + 150), webhook=hook(url))  # type: ignore[arg-type]
        assert not hook(url).deliver(store)
        again = check(store, "empty rises", **known, until=at(BREAK + 160), webhook=hook(url))  # type: ignore[arg-type]
        assert again.exit_code == 1
        assert not hook(url).deliver(store)  # an open alarm is no news
        ((headers, body, path),) = got
    assert path == "/hook?token=t0ken"
    signed = headers["x-findwell-timestamp"].encode() + b"." + body
    expected = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert headers["x-findwell-signature"] == f"sha256={expected}"
    message = json.loads(body)
    assert headers["idempotency-key"] == message["id"]
    assert b"secret question" not in body
    assert message["text"].startswith("✗ alarm: empty rises: empty is ")
    (alert,) = message["alerts"]
    assert alert["outcome"] == "alarm"
    assert alert["since"].startswith("2026-11-1")
    assert len(alert["calls"]) == 5
    with receiver(200) as (url, got):
        plain = replace(hook(url, secret=""), texts=True)
        check(store, "p95>800ms", until=at(BREAK + 150), webhook=plain)
        assert not plain.deliver(store)
        ((headers, body, _),) = got
    assert "x-findwell-signature" not in headers
    assert b"secret question" in body


def test_what_fails_is_tried_again_and_kept_for_the_next_check(store: TraceStore) -> None:
    waits: list[float] = []
    with receiver(503, 500, 204, headers={"Retry-After": "7"}) as (url, got):
        raise_alarm(store, hook(url))
        assert not hook(url, waits.append).deliver(store)
        assert len(got) == 3
        assert waits == [7, 7]
        assert len({headers["idempotency-key"] for headers, _, _ in got}) == 1
    with receiver(400) as (url, got):
        raise_alarm(store, hook(url))
        assert "400" in hook(url, waits.append).deliver(store)
        assert len(got) == 1  # it will not be accepted the next time either
    with receiver(302, headers={"Location": "http://127.0.0.1:1/"}) as (url, got):
        raise_alarm(store, hook(url))
        assert "302" in hook(url).deliver(store)
    with receiver(503, 503, 503, 200) as (url, got):
        raise_alarm(store, hook(url))
        assert "503" in hook(url).deliver(store)
        assert json.dumps(store.state(OUTBOX)).find("t0ken") == -1
        quiet = check(store, ALERT, until=at(BREAK + 150), webhook=hook(url))
        assert not quiet.news
        assert not hook(url).deliver(store)
        assert json.loads(got[-1][1])["alerts"][0]["outcome"] == "alarm"
        assert not hook(url).deliver(store)
        assert len(got) == 4
    raise_alarm(store, hook("http://127.0.0.1:1/x"))
    assert "no answer" in hook("http://127.0.0.1:1/x").deliver(store)
    assert hook("http://user:pass@127.0.0.1:1/x").shown == "http://127.0.0.1:1/…"
    for wrong in ("nowhere", "ftp://host/x", "http://", "http://host:port/", "https://[::1"):
        with pytest.raises(OptionError):
            Webhook(wrong)
    with pytest.raises(OptionError, match="remembers nothing"):
        check(store, ALERT, webhook=hook("http://127.0.0.1:1/x"), remember=False)


def test_a_message_that_is_refused_holds_up_no_other(store: TraceStore) -> None:
    with receiver(413, 413, 200) as (url, got):
        for alert in ("empty>3%", "p95>800ms"):
            check(store, alert, until=at(BREAK + 150), webhook=hook(url))
            assert "413" in hook(url).deliver(store)
        sent = [json.loads(body)["alerts"][0]["alert"] for _, body, _ in got]
        assert sent == ["empty>3%", "empty>3%", "p95>800ms"]
        ((kept,),) = store.state(OUTBOX).values()
    assert kept["alerts"][0]["alert"] == "empty>3%"


def test_what_another_check_adds_meanwhile_is_kept(store: TraceStore) -> None:
    with receiver(503, 200) as (url, got):
        raise_alarm(store, hook(url))

        def other(_: float) -> None:
            check(store, "p95>800ms", until=at(BREAK + 150), webhook=hook(url))

        assert not hook(url, other).deliver(store)
        assert len(got) == 2
        assert not hook(url).deliver(store)
        assert json.loads(got[-1][1])["alerts"][0]["alert"] == "p95>800ms"
        assert store.state(OUTBOX) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "stop",
    ["SIGKILL", *(pytest.param(each, marks=pytest.mark.slow) for each in ("SIGTERM", "SIGINT"))],
)
def test_a_check_that_is_killed_before_it_could_send_loses_no_message(
    store: TraceStore, cli: Findwell, stop: str
) -> None:
    """The server takes no request; the check is killed when it has saved the alarm."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        command = ["monitor", "check", "--store", str(store.path), "--alert", ALERT]
        command += ["--until", at(BREAK + 150).isoformat()]
        command += ["--webhook", f"http://127.0.0.1:{port}/hook?token=t0ken"]
        with subprocess.Popen(
            [sys.executable, "-m", "findwell", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None and store.state(STATE) is None:
                time.sleep(0.01)
            process.send_signal(getattr(signal, stop))
    assert process.returncode not in (0, 1)
    with receiver(200, port=port) as (_, got):
        again = cli(*command)
        assert "✗ open" in again.out  # it was raised by the check that was killed
    ((_, body, _),) = got
    assert json.loads(body)["alerts"][0]["outcome"] == "alarm"


def test_the_command(
    store: TraceStore, tmp_path: Path, cli: Findwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FINDWELL_WEBHOOK_SECRET", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    known = ("monitor", "check", "--store", store.path, "--baseline", "last-week", *ALERTS)
    quiet = cli(*known, "--until", at(BREAK).isoformat())
    assert quiet.code == 0, quiet.err
    with receiver(200) as (url, got):
        files = {name: tmp_path / name for name in ("junit.xml", "findwell.prom")}
        alarm = cli(
            *known, "--until", at(BREAK + 200).isoformat(), "--webhook", url, "--format", "json",
            "--junit", files["junit.xml"], "--prometheus", files["findwell.prom"],
        )  # fmt: skip
        assert len(got) == 1
    assert alarm.code == 1
    assert "is not signed" in alarm.err
    shown = alarm.answer
    assert shown["check"] == "alarm"
    assert {each["outcome"] for each in shown["alerts"]} == {"alarm"}
    assert 'failures="4"' in files["junit.xml"].read_text()
    assert "findwell_alarm_open" in files["findwell.prom"].read_text()
    summary = (tmp_path / "summary.md").read_text()
    assert summary.count("✗ alarm | p95\\>800ms by tenant | tenant=acme") == 1
    assert "secret question" not in summary
    again = cli(*known, "--until", at(BREAK + 210).isoformat(), "--new-only")
    assert again.code == 0
    assert "✗ open" in again.out
    assert cli(*known, "--until", at(BREAK + 210).isoformat()).code == 1
    plain = ("monitor", "check", "--store", store.path)
    short = ("--since", at(BREAK).isoformat(), "--until", at(BREAK + 1).isoformat())
    assert cli(*plain, "--alert", "empty>9%", *short).code == 3
    unknown, compared = ("--alert", "nonsense"), ("--alert", "empty drops")
    for wrong in (unknown, compared, ("--webhook-texts", "--alert", "empty>2%")):
        refused = cli(*plain, *wrong)
        assert refused.code == 2
        assert not refused.out
    assert cli("monitor", "check", "--store", tmp_path / "none", "--alert", "empty>2%").code == 2


@pytest.mark.parametrize("columns", [60, 80])
def test_the_command_fits_the_terminal(store: TraceStore, columns: int) -> None:
    until = at(BREAK + 200).isoformat()
    arguments = ("monitor", "check", "--store", str(store.path), "--baseline", "last-week", *ALERTS)
    shown, code = on_terminal((*arguments, "--until", until), columns)
    assert code == 1
    assert max(map(len, lines(shown))) <= columns
    assert "look at" in shown
