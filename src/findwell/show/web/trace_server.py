"""The server that takes traces in: who may send them, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from findwell.core.errors import OptionError
from findwell.loop.monitoring.receiver import (
    PATH,
    BodyDecoders,
    ReceiverLimits,
    Refusal,
    RequestBody,
    TraceReceiver,
)
from findwell.loop.monitoring.store import StoreWriter
from findwell.show.web.server import HOST, listen, quiet_server

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from datetime import timedelta

    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

    from findwell.loop.monitoring.store import TraceStore

LOOPBACK = ("127.0.0.1", "localhost", "::1")
FREE_PORT_FIX = "name another one with --port, or 0 for a free one, and configure the exporters"
CONNECTIONS = 512  # beyond which those are closed that wait longest for what the client sends
HEADERS = 10.0  # seconds for a client to send the head of a request
DRAINED_BYTES, DRAINING_SECONDS = 16 << 20, 5.0  # of a body, before it is refused


@dataclass(frozen=True, slots=True)
class TraceAddress:
    """Where traces are sent to, and the token that exporters must know."""

    host: str = HOST
    port: int = 0
    token: str = ""

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token:
            raise OptionError(
                f"{self.host} can be reached from other machines, and no token is set",
                fix="set a token that exporters send: FINDWELL_MONITOR_TOKEN, or --token file:PATH",
            )


@dataclass(frozen=True, slots=True)
class TraceServer:
    """A server that is ready to run, on a port that it has."""

    url: str
    receiver: TraceReceiver
    listener: socket.socket
    server: uvicorn.Server

    def run(self) -> None:
        """Take traces in until interrupted."""
        self.server.run(sockets=[self.listener])


def serve_traces(store: TraceStore, address: TraceAddress, **how: Any) -> None:  # noqa: ANN401
    """Take traces in until interrupted; what was acknowledged is in files in the end."""
    with trace_server(store, address, **how) as ready:
        click.echo(ready.url)
        click.echo("press Ctrl-C to stop", err=True)
        try:
            ready.run()
        finally:
            for reason, number in ready.receiver.refused.items():
                click.echo(f"refused {number:,} × {reason}", err=True)


@contextlib.contextmanager
def trace_server(
    store: TraceStore,
    address: TraceAddress,
    *,
    limits: ReceiverLimits,
    workers: int = 0,
    keep: timedelta | None = None,
    id_from: str | None = None,
) -> Iterator[TraceServer]:
    """Give a server; in the end what it took in is written, and put into files."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(listen(address.port, address.host, fix=FREE_PORT_FIX))
        port = listener.getsockname()[1]
        decoders = BodyDecoders(workers, most=limits.request, id_from=id_from)
        held.callback(decoders.close)
        writer = StoreWriter(store, keep)
        held.callback(writer.close)
        receiver = TraceReceiver(store, writer, decoders, limits)
        server = quiet_server(
            ExporterGuard(receiver, address, port),
            http=TimelyProtocol,
            limit_concurrency=2 * CONNECTIONS,
            timeout_graceful_shutdown=10,
        )
        shown = f"[{address.host}]" if ":" in address.host else address.host
        url = f"http://{shown}:{port}{PATH}"
        yield TraceServer(url, receiver, listener, server)


class TimelyProtocol(H11Protocol):
    """A connection that is closed if no request comes, or if others need its place.

    uvicorn waits for the head of a request without a limit, and refuses everyone while too many
    connections do nothing. Here the one that has waited longest is closed for a new one.
    """

    _timer: asyncio.TimerHandle | None = None
    since = 0.0

    @property
    def between(self) -> bool:
        """Whether no request is under way."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first one
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; close another connection if there are too many."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > CONNECTIONS:
            others = (each for each in self.connections if isinstance(each, TimelyProtocol))
            waiting = [each for each in others if each.between or each.cycle.more_body]
            min(waiting, key=lambda each: each.since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.since = self.loop.time()
        self._timer = self.loop.call_later(HEADERS, self._end_wait)

    def _end_wait(self) -> None:
        if self.between:
            self.transport.abort()


class ExporterGuard:
    """Lets only programs through, not pages in a browser, and only those that know the token."""

    def __init__(self, app: ASGIApp, address: TraceAddress, port: int) -> None:
        self._app = app
        self._token = address.token
        names = LOOPBACK if address.host in LOOPBACK else ()
        self._hosts = {f"{f'[{name}]' if ':' in name else name}:{port}" for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await RequestBody(receive, DRAINING_SECONDS).drain(DRAINED_BYTES)
            await refusal.answer(send, request.headers.get("content-type", ""))

    def _refusal(self, request: Request) -> Refusal | None:
        if self._hosts and request.headers.get("host", "") not in self._hosts:
            return Refusal(421, "this server answers only under the address it printed")
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            return Refusal(403, "pages in a browser may not send traces")
        if self._token:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not secrets.compare_digest(given.encode(), self._token.encode()):
                return Refusal(401, "the header Authorization must be: Bearer, and the token")
        return None
