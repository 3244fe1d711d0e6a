"""OTLP over HTTP: takes traces in from any exporter of OpenTelemetry, and answers as it expects.

A batch is acknowledged (200) when it is on disk. What cannot be taken now is refused so that the
exporter sends it again: 429 for too many spans, 503 for too many requests at once and for a disk
without room, with Retry-After. What will never be taken is refused for good: 400, 413, 415.
Bodies are unpacked within a limit and decoded, in processes of their own or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import multiprocessing
import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from findwell.core.errors import FindwellError
from findwell.io.read.traces import decode
from findwell.io.read.traces.decoding import NO_PROTOBUF
from findwell.io.read.traces.span import (
    CROWDED_SPAN,
    NESTED,
    NO_ID,
    NO_TIME,
    NOT_A_SPAN,
    CrowdedBodyError,
)
from findwell.io.storage.spool import nearly_full
from findwell.loop.monitoring.intake import OUTSIDE_SAMPLE
from findwell.loop.monitoring.store import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from findwell.loop.monitoring.store import Added, StoreWriter, TraceStore

UNPACKED_PART = 1 << 20  # bytes that are unpacked at once
FREE_BYTES = 1 << 20  # to which anything may unpack
MOST_RATIO = 200  # beyond that, how many times its length a body may unpack to
GZIP = zlib.MAX_WBITS | 16
WATCH_SECONDS = 1.0  # seconds between two looks whether the process that started this one is alive


Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

PATH, METRICS = "/v1/traces", "/metrics"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
# for which a span is left out
REJECTED_REASONS = (NO_ID, NO_TIME, NOT_A_SPAN, NESTED, NO_PROTOBUF, CROWDED_SPAN)
CODES = {400: 3, 401: 16, 403: 7, 404: 5, 413: 3, 415: 3, 421: 3, 429: 8, 503: 14}  # of gRPC
BODY_SECONDS = 60.0  # seconds for a whole body to arrive
SOON_SECONDS, LATER_SECONDS = 1, 60  # seconds after which to try again
DISK_SECONDS = 1.0  # seconds between two looks at the disk


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A request that is not taken in; with `again`, it may be after that many seconds."""

    def __init__(self, status: int, why: str, again: int | None = None) -> None:
        super().__init__(status, why, again)  # as it is pickled
        self.status = status
        self.why = why
        self.again = again

    async def answer(self, send: Send, kind: str) -> None:
        """Answer with a status of gRPC, in the format of the request, as OTLP wants it."""
        code = CODES.get(self.status, 2)
        if kind == PROTOBUF:
            # a status has the same fields: a number, and a text
            status = ExportTracePartialSuccess(rejected_spans=code, error_message=self.why)
            body = status.SerializeToString()
        else:
            body = json.dumps({"code": code, "message": self.why}).encode()
        more = {} if self.again is None else {"retry-after": str(self.again)}
        more |= {"allow": "POST"} if self.status == 405 else {}
        await _answer(send, self.status, PROTOBUF if kind == PROTOBUF else JSON, body, **more)


def decode_body(
    body: bytes, *, protobuf: bool, zipped: bool, most: int, id_from: str | None
) -> Batch:
    """Return what a body holds; a body that holds nothing of its kind is an error."""
    plain = b"".join(_unzipped(body, most)) if zipped else body
    try:
        found = decode(plain, protobuf=protobuf, id_from=id_from)
    except CrowdedBodyError as error:
        raise Refusal(413, str(error)) from None
    if found.malformed and not found.spans:
        raise Refusal(400, f"the body cannot be read: {', '.join(found.malformed)}")
    digest = hashlib.blake2b(plain, digest_size=16).digest()
    return Batch(found.frame, found.spans, found.malformed, digest)


def _unzipped(body: bytes, most: int) -> Iterator[bytes]:
    """Yield what a body unpacks to, within limits: a few bytes may become many."""
    total, packed = 0, len(body)
    while body:
        unpacker = zlib.decompressobj(GZIP)
        try:
            while not unpacker.eof:
                part = unpacker.decompress(body, UNPACKED_PART)
                total += len(part)
                if total > most:
                    raise Refusal(413, f"the body is longer than {most:,} bytes when unpacked")
                if total > max(FREE_BYTES, MOST_RATIO * packed):
                    raise Refusal(413, f"the body is more than {MOST_RATIO} times as long unpacked")
                if not part and not unpacker.unconsumed_tail and not unpacker.eof:
                    raise Refusal(400, "the body ends in the middle of its gzip")
                yield part
                body = unpacker.unconsumed_tail
        except zlib.error as error:
            raise Refusal(400, f"the body is not gzip: {error}") from None
        body = unpacker.unused_data.lstrip(b"\0")


class BodyDecoders:
    """Decodes bodies in some processes, or without any in a thread of this one."""

    def __init__(self, workers: int, *, most: int, id_from: str | None = None) -> None:
        self._workers = workers
        self._decode = partial(decode_body, most=most, id_from=id_from)
        self._pool = self._started()

    def _started(self) -> Executor:
        if not self._workers:
            return ThreadPoolExecutor(1)
        spawn = multiprocessing.get_context("spawn")
        parent = (os.getpid(),)
        return ProcessPoolExecutor(
            self._workers, spawn, initializer=_end_with_parent, initargs=parent
        )

    def submit(self, body: bytes, *, protobuf: bool, zipped: bool) -> Future[Batch]:
        """Return what will be known of a body; if a process was killed, others take its place."""
        pool = self._pool
        try:
            return pool.submit(self._decode, body, protobuf=protobuf, zipped=zipped)
        except BrokenExecutor:
            if pool is self._pool:
                self._pool = self._started()
            raise

    def close(self) -> None:
        """Let the processes end."""
        self._pool.shutdown(cancel_futures=True)


def _end_with_parent(parent: int) -> None:
    """End this process when the one that started it is gone, even by a kill -9."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    if hasattr(os, "getppid") and os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True, slots=True)
class ReceiverLimits:
    """What a server takes at most."""

    request: int = 16 << 20  # bytes of a body, unpacked
    held: int = 128 << 20  # bytes of all bodies that are not written yet, except for one
    rate: float | None = None  # spans a second
    store: int | None = None  # bytes of the store


class TraceReceiver:
    """The application of the server, in ASGI; `web.trace_server` guards it."""

    def __init__(
        self, store: TraceStore, writer: StoreWriter, decoders: BodyDecoders, limits: ReceiverLimits
    ) -> None:
        self._store = store
        self._writer = writer
        self._decoders = decoders
        self._limits = limits
        self._held = 0  # bytes of bodies and tables that are not written yet
        self._spare, self._counted = limits.rate or 0.0, time.monotonic()
        self._full, self._looked = "", -DISK_SECONDS
        self.refused: Counter[str] = Counter()  # requests, by reason

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        body = RequestBody(receive)
        try:
            if scope["path"] == METRICS and scope["method"] == "GET":
                await _answer(send, 200, PROMETHEUS, await self._metrics())
                return
            batch, added = await self._take(scope, headers, kind, body)
        except Refusal as refusal:
            self.refused[f"{refusal.status}: {refusal.why}"] += 1
            await body.drain(self._limits.request, headers.get("content-length", ""))
            await refusal.answer(send, kind)
        except _GoneError:
            return
        else:
            await _answer(send, 200, kind, _accepted(batch, added, kind))

    async def _metrics(self) -> bytes:
        """Return the state of alarms and counts of the store, as Prometheus asks for it."""
        from findwell.loop.monitoring.alarm_report import prometheus_text  # noqa: PLC0415 - few ask for it

        try:
            return (await asyncio.to_thread(prometheus_text, self._store)).encode()
        except FindwellError as error:
            raise Refusal(
                503, f"the store cannot be read: {error.what}", again=LATER_SECONDS
            ) from None

    async def _take(
        self, scope: Mapping[str, Any], headers: Mapping[str, str], kind: str, body: RequestBody
    ) -> tuple[Batch, Added]:
        """Return a batch that is on disk, and what became of its calls."""
        zipped = self._check(scope, headers, kind)
        self._check_rate()
        await self._check_disk()
        held = 0
        try:
            parts = []
            async for part in body.parts():
                held += len(part)
                self._held += len(part)
                self._check_held(held)
                parts.append(part)
            batch = await self._decoded(b"".join(parts), protobuf=kind == PROTOBUF, zipped=zipped)
            size = int(batch.frame.estimated_size())
            held += size
            self._held += size
            self._spare -= batch.spans or 0
            added = await self._written(batch)
        finally:
            self._held -= held
        return batch, added

    def _check(self, scope: Mapping[str, Any], headers: Mapping[str, str], kind: str) -> bool:
        """Tell whether the body is zipped; refuse what is not a readable request of OTLP."""
        if scope["path"] != PATH:
            raise Refusal(404, f"traces are sent to {PATH}; metrics and logs are not taken")
        if scope["method"] != "POST":
            raise Refusal(405, "traces are sent by POST")
        if kind not in (PROTOBUF, JSON):
            raise Refusal(415, f"the content type must be {PROTOBUF} or {JSON}")
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip"):
            raise Refusal(415, "the content encoding must be gzip or none")
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > self._limits.request):
            raise self._too_long()
        return encoding == "gzip"

    def _too_long(self) -> Refusal:
        return Refusal(413, f"the body is longer than {self._limits.request:,} bytes")

    def _check_held(self, held: int) -> None:
        """Refuse what would take too much memory, alone or with all that is under way."""
        if held > self._limits.request:
            raise self._too_long()
        if self._held - held > self._limits.held:
            raise Refusal(503, "too many requests at once", again=SOON_SECONDS)

    def _check_rate(self) -> None:
        """Refuse when more spans arrived than a second may bring, until time has made up for it."""
        rate = self._limits.rate
        if rate is None:
            return
        now = time.monotonic()
        self._spare = min(rate, self._spare + rate * (now - self._counted))
        self._counted = now
        if self._spare <= 0:
            again = max(SOON_SECONDS, math.ceil(-self._spare / rate))
            raise Refusal(429, f"more than {rate:g} spans a second", again=again)

    async def _check_disk(self) -> None:
        if time.monotonic() - self._looked > DISK_SECONDS:
            self._looked = time.monotonic()
            self._full = await asyncio.to_thread(self._why_full)
        if self._full:
            raise Refusal(503, self._full, again=LATER_SECONDS)

    def _why_full(self) -> str:
        most = self._limits.store
        try:
            if nearly_full(self._store.path):
                return "the disk is nearly full"
            if most is not None and self._store.counts().bytes > most:
                return f"the store is larger than {most:,} bytes"
        except (OSError, FindwellError):
            return "the store cannot be looked at"
        return ""

    async def _decoded(self, body: bytes, *, protobuf: bool, zipped: bool) -> Batch:
        try:
            found = self._decoders.submit(body, protobuf=protobuf, zipped=zipped)
            return await asyncio.wrap_future(found)
        except BrokenExecutor:
            raise Refusal(503, "a process that decodes was killed", again=SOON_SECONDS) from None

    async def _written(self, batch: Batch) -> Added:
        try:
            return await asyncio.wrap_future(self._writer.submit(batch))
        except FindwellError as error:
            raise Refusal(
                503, f"it could not be saved: {error.what}", again=LATER_SECONDS
            ) from None


class _GoneError(Exception):
    """The client does not wait for an answer."""


class RequestBody:
    """The body of a request, part by part."""

    def __init__(self, receive: Receive, seconds: float | None = None) -> None:
        self._receive = receive
        self._more = True
        self._until = asyncio.get_running_loop().time() + (
            BODY_SECONDS if seconds is None else seconds
        )

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts; a client that is too slow, or goes away, has not sent the body."""
        while self._more:
            try:
                async with asyncio.timeout_at(self._until):
                    message = await self._receive()
            except TimeoutError:
                self._more = False
                raise Refusal(408, "the body did not arrive in time") from None
            self._more = message.get("more_body", False)
            if message["type"] != "http.request":
                raise _GoneError
            yield message.get("body", b"")

    async def drain(self, most: int, length: str = "") -> None:
        """Read the rest: many clients look at the answer only when all is sent."""
        if length.isdecimal() and int(length[:18]) > 4 * most:
            return  # no client sends that much before it looks
        total = 0
        with contextlib.suppress(Refusal, _GoneError):
            async for part in self.parts():
                total += len(part)
                if total > most:
                    return


def _accepted(batch: Batch, added: Added, kind: str) -> bytes:
    """Return the answer to a batch that is on disk; it says how many spans were left out, and why.

    Spans that are not in the sample are not rejected: the server keeps a sample by choice.
    """
    wrong = sum(batch.malformed.get(each, 0) for each in REJECTED_REASONS)
    dropped = {
        reason: number for reason, number in added.dropped.items() if reason != OUTSIDE_SAMPLE
    }
    rejected = min(wrong + sum(dropped.values()), batch.spans or 0)
    reasons = [*batch.malformed.items(), *dropped.items()]
    said = ", ".join(f"{number} × {reason}" for reason, number in reasons)
    if kind == JSON:
        partial = {"rejectedSpans": str(rejected), "errorMessage": said}
        return json.dumps({"partialSuccess": partial} if said else {}).encode()
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=said)
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString() if said else b""


async def _answer(send: Send, status: int, kind: str, body: bytes, **more: str) -> None:
    headers = {"content-type": kind, "content-length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in more.items()
    }
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
