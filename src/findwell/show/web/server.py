"""The server: on this machine's own address, for requests that carry the token of this start."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from findwell.core.errors import OptionError
from findwell.show.html import PageKind, content_policy

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"  # never another for pages: what is shown is for this machine
READS, WRITES = ("GET", "HEAD"), ("POST",)


@dataclass(frozen=True, slots=True)
class Site:
    """What is served: the application, the command that serves it, and what its pages are."""

    app: ASGIApp
    command: str
    kinds: tuple[PageKind, ...]
    writes: bool = False  # whether its pages may change something

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of requests that are answered."""
        return READS + WRITES * self.writes


def serve(site: Site, port: int, *, browse: bool = False) -> None:
    """Serve until interrupted."""
    listener = listen(port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    url = f"http://{HOST}:{port}/?token={token}"
    click.echo(url)
    click.echo("press Ctrl-C to stop", err=True)
    if browse:
        webbrowser.open(url)
    guarded = TokenGuard(site, token, port)
    quiet_server(guarded, timeout_graceful_shutdown=2).run(sockets=[listener])


def quiet_server(app: ASGIApp, **settings: Any) -> uvicorn.Server:  # noqa: ANN401 - uvicorn's own
    """Return a server that prints warnings only, and tells nothing about itself."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        **settings,
    )
    return uvicorn.Server(config)


def listen(
    port: int, host: str = HOST, *, fix: str = "leave --port out for a free one"
) -> socket.socket:
    """Take a port, 0 for any free one, or say why it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # from here on who follows the link waits instead of being refused
    except OSError as error:
        listener.close()
        place = "" if host == HOST else f" of {host}"
        raise OptionError(f"port {port}{place} cannot be used: {error.strerror}", fix=fix) from None
    return listener


class TokenGuard:
    """Lets only requests through that carry the token and come from the page itself."""

    def __init__(self, site: Site, token: str, port: int) -> None:
        self._site = site
        self._app = site.app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"findwell-{port}"  # cookies do not tell ports apart
        self._headers = _headers(site)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        refused = self._refusal(request)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *self._headers]
                if refused is None and "token" in request.query_params:
                    cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append((b"set-cookie", cookie.encode()))
                message = {**message, "headers": headers}
            await send(message)

        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "") not in self._hosts:
            return _refuse(421, "this server answers only under the address it printed")
        if request.method not in self._site.methods:
            return _refuse(405, "this server only shows")
        if not self._from_own_page(request):
            return _refuse(403, "another page may neither read this one nor write to it")
        if not self._known(request):
            command = self._site.command
            return _refuse(403, f"open the address that `{command}` printed: it holds the token")
        return None

    def _from_own_page(self, request: Request) -> bool:
        """Tell whether no other page asks; who writes must say from which page it does."""
        writing = request.method in WRITES
        origin = request.headers.get("origin")
        if origin is None and writing:
            return False
        if origin is not None and urlsplit(origin).netloc not in self._hosts:
            return False
        site = request.headers.get("sec-fetch-site", "none")
        return site in ("none", "same-origin") or (not writing and navigates(request))

    def _known(self, request: Request) -> bool:
        given = request.query_params.get("token") or request.cookies.get(self._cookie, "")
        return secrets.compare_digest(given.encode(), self._token.encode())


def navigates(request: Request) -> bool:
    """Tell whether a person opens a page, rather than a script that asks for something."""
    return request.headers.get("sec-fetch-mode") == "navigate"


def _refuse(status: int, why: str) -> Response:
    return PlainTextResponse(f"refused: {why}\n", status_code=status)


def _headers(site: Site) -> list[tuple[bytes, bytes]]:
    rules = content_policy(*site.kinds, live=True) + "; frame-ancestors 'none'"
    headers = {
        "content-security-policy": rules,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()]
