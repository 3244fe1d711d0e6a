"""HTTP calls to one endpoint, by one `httpx.AsyncClient` with a pool of connections.

A call ends in a complete reply within its time, or in the reason why there is none. httpx gets
nothing from the environment by itself: the proxy is chosen by `proxy_for`, and a redirect is a
reply like any other, so that texts go nowhere but to the endpoint.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import findwell
from findwell.core.errors import OptionError, needs_package
from findwell.judges.client.endpoint import proxy_for
from findwell.judges.client.protocol import Failure, Reason, Reply
from findwell.judges.client.providers import BEARER

if TYPE_CHECKING:
    import httpx

    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.protocol import Json

CONNECT = 10.0  # seconds
KEPT = 30.0  # seconds that a connection may be idle
LARGEST = 16 * 2**20  # bytes of an answer


class Transport:
    """Sends calls to an endpoint; opened by the first call, so that cached jobs need no server."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, connections: int) -> None:
        self.endpoint = endpoint
        self._timeout = timeout
        self._connections = connections
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(self, path: str, body: dict[str, Json]) -> Reply | Failure:
        """Send a call."""
        # half of a surrogate pair cannot be sent: it becomes a question mark
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return await self.call("POST", self.endpoint.url(path), content)

    async def call(
        self,
        method: str,
        url: str,
        content: bytes = b"",
        *,
        kind: str = "application/json",
        timeout: float | None = None,  # noqa: ASYNC109 - of the exchange, whose end is an outcome
        largest: int | None = None,
    ) -> Reply | Failure:
        """Exchange; the time limit is for the whole answer, also if it comes byte by byte."""
        client = self._client = self._client or self._open()
        limit = self._timeout if timeout is None else timeout
        request = client.build_request(
            method, url, content=content or None, headers={"Content-Type": kind}
        )
        try:
            async with asyncio.timeout(limit):
                return await self._exchange(client, request, largest or LARGEST)
        except TimeoutError:
            return Failure(Reason.TIMEOUT, f"no whole answer in {limit:g} s")

    @staticmethod
    async def _exchange(
        client: httpx.AsyncClient, request: httpx.Request, largest: int
    ) -> Reply | Failure:
        import httpx  # noqa: PLC0415

        start = time.monotonic()
        received = bytearray()
        try:
            response = await client.send(request, stream=True)
            try:
                async for part in response.aiter_bytes():
                    received += part
                    if len(received) > largest:
                        return Failure(Reason.BODY, f"more than {largest:,} bytes")
            finally:
                await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError) as error:
            # a host name that cannot be encoded is a UnicodeError
            return Failure(Reason.UNREACHABLE, _cause(error))
        except httpx.DecodingError as error:
            return Failure(Reason.BODY, f"cannot be decoded: {error}")
        except httpx.HTTPError as error:
            return Failure(Reason.CONNECTION, _cause(error))
        seconds = time.monotonic() - start
        return Reply(response.status_code, response.headers, bytes(received), seconds)

    def _open(self) -> httpx.AsyncClient:
        with needs_package("asking a model", "judge"):
            import httpx  # noqa: PLC0415
        self.endpoint.require_access()
        try:
            base = httpx.URL(self.endpoint.identity)
        except httpx.InvalidURL as error:
            raise OptionError(f"not an address: {error}", where=self.endpoint.identity) from None
        proxy = proxy_for(base.scheme, base.host, base.netloc.decode())
        secure = base.scheme == "https" or proxy is not None
        try:
            return httpx.AsyncClient(
                headers=_headers(self.endpoint),
                timeout=httpx.Timeout(None, connect=min(CONNECT, self._timeout)),
                limits=httpx.Limits(
                    max_keepalive_connections=self._connections, keepalive_expiry=KEPT
                ),
                verify=httpx.create_ssl_context() if secure else False,
                proxy=proxy,
                trust_env=False,
            )
        except (ImportError, ValueError, httpx.InvalidURL):
            raise OptionError(
                "the proxy that the environment names cannot be used",
                fix="set http_proxy and https_proxy to http addresses, or no_proxy to the host",
            ) from None


def _cause(error: BaseException) -> str:
    """Return what the system says: httpx says of a refused connection that all attempts failed."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below.exceptions[0] if isinstance(below, BaseExceptionGroup) else below
    return str(error) or type(error).__name__


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "User-Agent": f"findwell/{findwell.__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    }
    own = endpoint.provider.header
    if endpoint.key:
        word = "Bearer " if own == BEARER else ""
        headers[own] = f"{word}{endpoint.key.reveal()}"
    elif endpoint.user:
        headers[BEARER] = f"Basic {endpoint.login.reveal()}"
    given = {name.lower(): (name, value.reveal()) for name, value in endpoint.headers.items()}
    kept = {name: value for name, value in headers.items() if name.lower() not in given}
    return kept | dict(given.values())
