"""A chat server on loopback that behaves as a script says: well, badly, slowly or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias


@dataclass(frozen=True)
class Call:
    """A request as it arrived."""

    number: int  # from 0
    path: str
    headers: Mapping[str, str]
    body: Any
    port: int = 0  # of the client: tells connections apart
    method: str = "POST"

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Reaction:
    """What the server does about a call."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # bytes of the body, then the connection is dropped
    chunked: bool = False
    drop: bool = False  # the connection, at once
    hang: bool = False  # never answer
    trickle: float = 0.0  # seconds between single bytes
    latency: float = 0.0
    until: threading.Event | None = None  # answer no earlier


Script: TypeAlias = Callable[[Call], Reaction]


def chat(content: Any, *, finish: Any = "stop", usage: Any = (10, 5), **more: Any) -> Reaction:
    """Answer as a chat server does; `more` is what the reaction does besides."""
    message = {"role": "assistant", "content": content}
    said: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    if isinstance(usage, tuple):
        said["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    elif usage is not None:
        said["usage"] = usage
    return as_json(said, **more)


def as_json(body: Any, **more: Any) -> Reaction:
    return Reaction(json.dumps(body).encode(), **more)


def error(status: int, message: str = "no", *, param: str | None = None, **more: Any) -> Reaction:
    said = {"error": {"message": message, "type": "some_error", "param": param}}
    return as_json(said, status=status, **more)


def echo(call: Call) -> Reaction:
    """Answer well, with a JSON object that depends on the prompt only."""
    return chat(json.dumps({"heard": call.prompt}))


class Barrier:
    """Answers so many calls, then holds all others back until it is opened."""

    def __init__(self, calls: int, script: Script = echo) -> None:
        self.left = calls
        self.script = script
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, call: Call) -> Reaction:
        self.left -= 1
        if self.left >= 0:
            return self.script(call)
        self.reached.set()
        return replace(self.script(call), until=self.opened)


class Server:
    """Serves a script in a thread of its own, and remembers all calls."""

    def __init__(
        self, script: Script, certificate: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self.script = script
        self._port = port
        self._certificate = certificate
        self.calls: list[Call] = []
        self.most_at_once = 0
        self._at_once = 0
        self._loop = asyncio.new_event_loop()
        self._handlers: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def prompts(self) -> Counter[str]:
        """How often each prompt was sent."""
        return Counter(call.prompt for call in self.calls)

    def __enter__(self) -> Self:
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
        scheme = "https" if self._certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{started.result(30)}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _start(self) -> int:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, ssl=self._certificate
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass
        finally:
            self._handlers.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False if the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(":", 1) for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head[0].split()
        is_json = headers.get("content-type", "application/json") == "application/json"
        said = json.loads(body) if body and is_json else body or None
        port = writer.get_extra_info("peername")[1]
        call = Call(len(self.calls), path, headers, said, port, method)
        self.calls.append(call)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._react(self.script(call), writer)
        finally:
            self._at_once -= 1

    async def _react(self, reaction: Reaction, writer: asyncio.StreamWriter) -> bool:
        if reaction.hang:
            await asyncio.Event().wait()
        if reaction.until is not None:
            await asyncio.to_thread(reaction.until.wait, 60)
        if reaction.latency:
            await asyncio.sleep(reaction.latency)
        if reaction.drop:
            return False
        headers = {"Content-Type": "application/json"} | dict(reaction.headers)
        if reaction.chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(reaction.body))
        lines = [f"HTTP/1.1 {reaction.status} X", *(f"{a}: {b}" for a, b in headers.items())]
        head = "\r\n".join([*lines, "", ""]).encode()
        body = _chunks(reaction.body) if reaction.chunked else reaction.body
        body = body[: reaction.cut_after]
        if reaction.trickle:
            writer.write(head)
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(reaction.trickle)
        else:
            writer.write(head + body)
            await writer.drain()
        return reaction.cut_after is None


def _chunks(body: bytes) -> bytes:
    parts = [body[start : start + 7] for start in range(0, len(body), 7)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])


@contextlib.contextmanager
def serve(script: Script = echo, certificate: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve a script for a while."""
    with Server(script, certificate) as server:
        yield server
