"""A real HTTP server on loopback that embeds texts and misbehaves when told to."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    Answer = Callable[["Handler", list[str]], None]


def vector(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 1.0]


class Handler(BaseHTTPRequestHandler):
    """Answers one request, in turn as the server was told, then well."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        with self.server.lock:
            self.server.requests.append({"path": self.path, **request})
            self.server.keys.append(self.headers.get("Authorization"))
            self.server.ports.append(self.client_address[1])
            answer = self.server.answers.popleft() if self.server.answers else ok
        answer(self, request["input"])

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Serves in a thread as long as it is entered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.answers: deque[Answer] = deque()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.ports: list[int] = []  # of the clients: they tell connections apart
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def ok(handler: Handler, texts: list[str]) -> None:
    rows = [{"index": number, "embedding": vector(text)} for number, text in enumerate(texts)]
    handler.reply(200, json.dumps({"object": "list", "data": rows}).encode())


def backwards(handler: Handler, texts: list[str]) -> None:
    rows = [{"index": number, "embedding": vector(text)} for number, text in enumerate(texts)]
    handler.reply(200, json.dumps({"data": rows[::-1]}).encode())


def without_numbers(handler: Handler, texts: list[str]) -> None:
    handler.reply(200, json.dumps({"data": [{"embedding": vector(t)} for t in texts]}).encode())


def status(code: int, body: str = "", **headers: str) -> Answer:
    return lambda handler, _: handler.reply(code, body.encode(), **headers)


def saying(answer: object) -> Answer:
    return lambda handler, _: handler.reply(200, json.dumps(answer).encode())


def dropped(handler: Handler, texts: list[str]) -> None:  # noqa: ARG001
    handler.close_connection = True


def cut_short(handler: Handler, texts: list[str]) -> None:  # noqa: ARG001
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def echo_key(code: int, padding: int) -> Answer:
    """Answer as careless gateways do: with the header they were sent, whole and masked."""

    def answer(handler: Handler, _: list[str]) -> None:
        key = handler.headers["Authorization"]
        said = f"{'x' * padding} \x1b[31m{key} {key[:15]}****{key[-4:]}"
        handler.reply(code, f'{{"error": "{said}"}}'.encode())

    return answer
