"""A transport for httpx with one connection and nothing else: HTTP/1.1 by h11 over asyncio.

httpx's own transport takes three times as much processor time for a call, much of it for a pool of
connections, which we do not need: of 32 calls of 50 ms allowed at once, 26 were under way on
average, now it is 29. Through a proxy httpx's own is used.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import h11
import httpx

BLOCK = 65_536
EYEBALLS = 0.25  # seconds until the next address of a host is tried as well


class Line(httpx.AsyncBaseTransport):
    """One connection to one host, opened when it is needed; for one request at a time."""

    def __init__(self, certificates: ssl.SSLContext | None, connect_timeout: float) -> None:
        self._certificates = certificates
        self._connect_timeout = connect_timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._protocol = h11.Connection(h11.CLIENT)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the response is read by the caller."""
        if self._streams is not None and self._streams[0].at_eof():
            self.drop()  # the server closed it meanwhile
        reader, writer = self._streams or await self._open(request.url)
        try:
            await self._send(request, writer)
            head = await self._head(reader)
        except BaseException:
            self.drop()
            raise
        return httpx.Response(
            head.status_code, headers=head.headers.raw_items(), stream=_Body(self, reader)
        )

    async def _send(self, request: httpx.Request, writer: asyncio.StreamWriter) -> None:
        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        events = (head, h11.Data(data=request.content), h11.EndOfMessage())
        try:
            writer.write(b"".join(self._protocol.send(event) or b"" for event in events))
            await writer.drain()
        except OSError as error:
            raise httpx.WriteError(str(error)) from None
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from None

    async def _open(self, url: httpx.URL) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        secure = self._certificates if url.scheme == "https" else None
        port = url.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(self._connect_timeout):
                self._streams = await asyncio.open_connection(
                    url.raw_host.decode(), port, ssl=secure, happy_eyeballs_delay=EYEBALLS
                )
        except TimeoutError:
            raise httpx.ConnectTimeout(f"not within {self._connect_timeout:g} s") from None
        except (OSError, UnicodeError) as error:  # TLS errors and impossible names too
            raise httpx.ConnectError(str(error)) from None
        self._protocol = h11.Connection(h11.CLIENT)
        return self._streams

    async def _head(self, reader: asyncio.StreamReader) -> h11.Response:
        while isinstance(event := await self._next(reader), h11.InformationalResponse):
            pass
        if isinstance(event, h11.Response):
            return event
        raise httpx.RemoteProtocolError("no response")

    async def _next(self, reader: asyncio.StreamReader) -> object:
        """Return the next event of the response."""
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                self._protocol.receive_data(await reader.read(BLOCK))
        except OSError as error:
            raise httpx.ReadError(str(error)) from None
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from None
        return event

    async def body(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Yield the body, then make the connection ready for the next request."""
        while isinstance(event := await self._next(reader), h11.Data):
            yield bytes(event.data)
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
        else:
            self.drop()

    def drop_unless_ready(self) -> None:
        """Close the connection if a response was not read to its end."""
        if self._protocol.our_state is not h11.IDLE:
            self.drop()

    def drop(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def aclose(self) -> None:
        """Close the connection, and let the loop notice."""
        self.drop()
        await asyncio.sleep(0)


class _Body(httpx.AsyncByteStream):
    """The body of a response, read from the line as it comes."""

    def __init__(self, line: Line, reader: asyncio.StreamReader) -> None:
        self._line = line
        self._parts = line.body(reader)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part

    async def aclose(self) -> None:
        self._line.drop_unless_ready()
