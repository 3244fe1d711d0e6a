"""One call over HTTP: a whole reply in time, or the reason why there is none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING

import karat
from karat.client.answers import Failure, Reason, Reply
from karat.client.proxy import proxy_for
from karat.errors import OptionError

if TYPE_CHECKING:
    import httpx

    from karat.client.endpoint import Endpoint
    from karat.client.request import Json

CONNECT = 10.0  # seconds
LARGEST = 16 * 2**20  # bytes of an answer


class Wire:
    """Sends calls to an endpoint: each has a connection to itself, and leaves it to the next."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        try:
            import httpx  # noqa: PLC0415
        except ImportError:
            raise OptionError(
                "asking a model needs the package httpx", fix="pip install 'karat[judge]'"
            ) from None
        endpoint.require_access()
        self._endpoint = endpoint
        self._timeout = timeout
        try:
            base = httpx.URL(endpoint.identity)
        except httpx.InvalidURL as error:
            raise OptionError(f"not an address: {error}", where=endpoint.identity) from None
        netloc = base.netloc.decode()
        self._headers = httpx.Headers(_headers(endpoint, netloc))
        self._proxy = proxy_for(base.scheme, base.host, netloc)
        secure = base.scheme == "https" or self._proxy is not None
        self._certificates = httpx.create_ssl_context() if secure else None
        self._idle: list[httpx.AsyncBaseTransport] = []

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._idle:
            await connection.aclose()

    async def post(self, path: str, body: dict[str, Json]) -> Reply | Failure:
        """Send a call; a server that sends drop by drop has no more time than others."""
        # half of a surrogate pair cannot be sent: it becomes a question mark
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        connection = self._idle.pop() if self._idle else self._connect()
        start = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._exchange(connection, path, content)
        except TimeoutError:
            return Failure(Reason.TIMEOUT, f"no whole answer in {self._timeout:g} s")
        finally:
            self._idle.append(connection)
        if isinstance(reply, Failure):
            return reply
        status, headers, received = reply
        return Reply(status, headers, received, time.monotonic() - start)

    async def _exchange(
        self, connection: httpx.AsyncBaseTransport, path: str, content: bytes
    ) -> tuple[int, httpx.Headers, bytes] | Failure:
        import httpx  # noqa: PLC0415

        url = self._endpoint.url(path)
        request = httpx.Request("POST", url, headers=self._headers, content=content)
        received = bytearray()
        try:
            response = await connection.handle_async_request(request)
            async with contextlib.aclosing(response):
                async for part in response.aiter_bytes():
                    received += part
                    if len(received) > LARGEST:
                        return Failure(Reason.BODY, f"more than {LARGEST:,} bytes")
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            return Failure(Reason.UNREACHABLE, str(error) or type(error).__name__)
        except httpx.DecodingError as error:
            return Failure(Reason.BODY, f"cannot be decoded: {error}")
        except httpx.HTTPError as error:
            return Failure(Reason.CONNECTION, str(error) or type(error).__name__)
        return response.status_code, response.headers, bytes(received)

    def _connect(self) -> httpx.AsyncBaseTransport:
        from karat.client.line import Line  # noqa: PLC0415

        if self._proxy is None or self._certificates is None:
            return Line(self._certificates, min(CONNECT, self._timeout))
        import httpx  # noqa: PLC0415

        one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        secure = self._certificates
        try:
            return httpx.AsyncHTTPTransport(verify=secure, limits=one, proxy=self._proxy)
        except (ImportError, ValueError, httpx.InvalidURL):
            raise OptionError(
                "the proxy that the environment names cannot be used",
                fix="set http_proxy and https_proxy to http addresses, or no_proxy to the host",
            ) from None


def _headers(endpoint: Endpoint, host: str) -> dict[str, str]:
    headers = {
        "Host": host,
        "User-Agent": f"karat/{karat.__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    }
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key.reveal()}"
    elif endpoint.user:
        headers["Authorization"] = f"Basic {endpoint.login.reveal()}"
    return headers
