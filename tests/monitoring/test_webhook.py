"""News for another system, and the command: real servers on loopback, real files."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from karat.client.endpoint import Secret
from karat.client.retry import RetryPolicy
from karat.errors import OptionError
from karat.monitoring.check import check
from karat.monitoring.store import TraceStore
from karat.monitoring.webhook import STATE, Webhook
from tests.cli.test_widths import lines, on_terminal
from tests.monitoring.watched_calls import WEEK, at, made_calls, store_of

if TYPE_CHECKING:
    from tests.conftest import Karat

Request = tuple[dict[str, str], bytes, str]  # headers, body, path
BREAK = WEEK + 600
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
    *statuses: int, headers: dict[str, str] | None = None
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

    server = HTTPServer(("127.0.0.1", 0), Handler)
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


def test_news_are_signed_and_have_no_texts(store: TraceStore) -> None:
    report = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
    with receiver(200) as (url, got):
        assert not hook(url).deliver(store, report)
        again = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 160))
        assert again.exit_code == 1
        assert not hook(url).deliver(store, again)  # an open alarm is no news
        ((headers, body, path),) = got
    assert path == "/hook?token=t0ken"
    signed = headers["x-karat-timestamp"].encode() + b"." + body
    expected = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert headers["x-karat-signature"] == f"sha256={expected}"
    message = json.loads(body)
    assert b"secret question" not in body
    assert message["text"].startswith("✗ alarm: empty rises: empty is ")
    (alert,) = message["alerts"]
    assert alert["outcome"] == "alarm"
    assert alert["since"].startswith("2026-11-1")
    assert len(alert["calls"]) == 5
    with receiver(200) as (url, got):
        assert not hook(url, secret="").deliver(store, report, texts=True)
        ((headers, body, _),) = got
    assert "x-karat-signature" not in headers
    assert b"secret question" in body


def test_what_fails_is_tried_again_and_kept_for_the_next_check(store: TraceStore) -> None:
    report = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
    waits: list[float] = []
    with receiver(503, 500, 204, headers={"Retry-After": "7"}) as (url, got):
        assert not hook(url, waits.append).deliver(store, report)
        assert len(got) == 3
        assert waits == [7, 7]
    with receiver(400) as (url, got):
        assert "400" in hook(url, waits.append).deliver(store, report)
        assert len(got) == 1  # it will not be accepted the next time either
    with receiver(302, headers={"Location": "http://127.0.0.1:1/"}) as (url, got):
        assert "302" in hook(url).deliver(store, report)
    with receiver(503, 503, 503, 200) as (url, got):
        assert "503" in hook(url).deliver(store, report)
        assert json.dumps(store.state(STATE)).find("t0ken") == -1
        quiet = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
        assert not quiet.news
        assert not hook(url).deliver(store, quiet)
        assert json.loads(got[-1][1])["alerts"][0]["outcome"] == "alarm"
        assert not hook(url).deliver(store, quiet)
        assert len(got) == 4
    assert "no answer" in hook("http://127.0.0.1:1/x").deliver(store, report)
    assert hook("http://user:pass@127.0.0.1:1/x").shown == "http://127.0.0.1:1/…"
    for wrong in ("nowhere", "ftp://host/x", "http://", "http://host:port/", "https://[::1"):
        with pytest.raises(OptionError):
            Webhook(wrong)


def test_a_message_that_is_refused_holds_up_no_other(store: TraceStore) -> None:
    first = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
    second = check(store, ["p95>800ms"], until=at(BREAK + 150))
    with receiver(413, 413, 200) as (url, got):
        assert "413" in hook(url).deliver(store, first)
        assert "413" in hook(url).deliver(store, second)
        sent = [json.loads(body)["alerts"][0]["alert"] for _, body, _ in got]
        assert sent == ["empty rises", "empty rises", "p95>800ms"]
        ((kept,),) = store.state(STATE).values()
    assert kept["alerts"][0]["alert"] == "empty rises"


def test_what_another_check_could_not_send_meanwhile_is_kept(store: TraceStore) -> None:
    report = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
    with receiver(400, 503, 200) as (url, got):
        assert "400" in hook(url).deliver(store, report)

        def other(_: float) -> None:
            with store.changing_state(STATE) as saved:
                (mine,) = saved.values()
                mine.append({"text": "of another check"})

        quiet = check(store, ["empty rises"], baseline="last-week", until=at(BREAK + 150))
        assert not hook(url, other).deliver(store, quiet)
        assert not hook(url).deliver(store, quiet)
        assert len(got) == 4
        assert json.loads(got[-1][1]) == {"text": "of another check"}
        assert list(store.state(STATE).values()) == [[]]


def test_the_command(
    store: TraceStore, tmp_path: Path, cli: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KARAT_WEBHOOK_SECRET", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    known = ("monitor", "check", "--store", store.path, "--baseline", "last-week", *ALERTS)
    quiet = cli(*known, "--until", at(BREAK).isoformat())
    assert quiet.code == 0, quiet.err
    with receiver(200) as (url, got):
        files = {name: tmp_path / name for name in ("junit.xml", "karat.prom")}
        alarm = cli(
            *known, "--until", at(BREAK + 200).isoformat(), "--webhook", url, "--format", "json",
            "--junit", files["junit.xml"], "--prometheus", files["karat.prom"],
        )  # fmt: skip
        assert len(got) == 1
    assert alarm.code == 1
    assert "is not signed" in alarm.err
    shown = json.loads(alarm.out)
    assert shown["check"] == "alarm"
    assert {each["outcome"] for each in shown["alerts"]} == {"alarm"}
    assert 'failures="4"' in files["junit.xml"].read_text()
    assert "karat_alarm_open" in files["karat.prom"].read_text()
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
