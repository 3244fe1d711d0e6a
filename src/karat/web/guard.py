"""Who may ask: this machine's browser, under this machine's name, with the token of this start."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from karat.report.html.markup import policy
from karat.report.html.page import asset, stylesheet

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD")


class Guard:
    """Lets only requests through that carry the token and come from the page itself."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"karat-{port}"  # cookies do not tell ports apart
        self._headers = _headers()

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
                    told = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append((b"set-cookie", told.encode()))
                message = {**message, "headers": headers}
            await send(message)

        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "") not in self._hosts:
            return _refuse(421, "this server answers only under the address it printed")
        if request.method not in METHODS:
            return _refuse(405, "this server only shows")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in self._hosts:
            return _refuse(403, "another page may not read this one")
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not _navigates(request):
            return _refuse(403, "another page may not read this one")
        if not self._known(request):
            return _refuse(403, "open the address that `karat view` printed: it holds the token")
        return None

    def _known(self, request: Request) -> bool:
        given = request.query_params.get("token") or request.cookies.get(self._cookie, "")
        return secrets.compare_digest(given.encode(), self._token.encode())


def _navigates(request: Request) -> bool:
    return request.headers.get("sec-fetch-mode") == "navigate"


def _refuse(status: int, why: str) -> Response:
    return PlainTextResponse(f"refused: {why}\n", status_code=status)


def _headers() -> list[tuple[bytes, bytes]]:
    rules = policy(stylesheet(), asset("report.js"), live=True) + "; frame-ancestors 'none'"
    told = {
        "content-security-policy": rules,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }
    return [(name.encode(), value.encode()) for name, value in told.items()]
