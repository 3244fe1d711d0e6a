"""Traces as an application sends them, a server that is a process of its own, and a soak."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from findwell.loop.monitoring.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS = ("CHAIN", "RETRIEVER", "LLM", "EMBEDDING", "TOOL", "AGENT")  # one call of six spans
WORDS = ("the", "store", "opens", "at", "nine", "and", "closes", "when", "readers", "go", "home")
PATIENCE = 60.0  # seconds for which a batch is sent again and again
PROTOBUF = "application/x-protobuf"


def text(random_: random.Random, words: int) -> str:
    return " ".join(random_.choices(WORDS, k=words))


def put(span: Span, key: str, value: str | float) -> None:
    entry = span.attributes.add()
    entry.key = key
    if isinstance(value, str):
        entry.value.string_value = value
    elif isinstance(value, int):
        entry.value.int_value = value
    else:
        entry.value.double_value = value


def request_of(traces: int, seed: int, *, service: str = "shop") -> ExportTraceServiceRequest:
    """Return a request as an instrumented application sends it: six spans a trace."""
    random_ = random.Random(seed)
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    name = group.resource.attributes.add()
    name.key, name.value.string_value = "service.name", service
    scope = group.scope_spans.add()
    start = time.time_ns()
    for number in range(traces):
        trace = random_.randbytes(16)
        for kind in KINDS:
            span = scope.spans.add(trace_id=trace, span_id=random_.randbytes(8), name=kind.lower())
            span.start_time_unix_nano = start + number * 1_000
            span.end_time_unix_nano = span.start_time_unix_nano + 5_000_000
            put(span, "openinference.span.kind", kind)
            put(span, "input.value", text(random_, 9))
            put(span, "input.mime_type", "text/plain")
            put(span, "session.id", f"session {number % 50}")
            if kind == "RETRIEVER":
                for place in range(5):
                    document = f"retrieval.documents.{place}.document"
                    put(span, f"{document}.id", f"d{random_.randrange(1000)}")
                    put(span, f"{document}.content", text(random_, 60))
                    put(span, f"{document}.score", random_.random())
                    put(span, f"{document}.metadata", '{"source": "handbook.md"}')
            elif kind == "LLM":
                for place in range(3):
                    message = f"llm.input_messages.{place}.message"
                    put(span, f"{message}.role", "user")
                    put(span, f"{message}.content", text(random_, 80))
                put(span, "llm.token_count.total", 512)
            else:
                put(span, "output.value", text(random_, 40))
    return request


class TraceBodies:
    """Makes bodies that differ in their ids, fast: the places of the ids in one are known."""

    def __init__(self, traces: int = 85) -> None:
        request = request_of(traces, 0)
        self._body = request.SerializeToString()
        self.traces, self.spans = traces, traces * len(KINDS)
        self._places: list[tuple[int, int, bool]] = []  # start, index of the trace, retriever
        at = 0
        for number, span in enumerate(request.resource_spans[0].scope_spans[0].spans):
            at = self._body.index(b"\x0a\x10" + span.trace_id + b"\x12\x08" + span.span_id, at)
            kind = KINDS[number % len(KINDS)]
            self._places.append((at, number // len(KINDS), kind == "RETRIEVER"))
            at += 1

    def body(self, number: int) -> bytes:
        """Return the body of a number; the same number gives the same body."""
        body = bytearray(self._body)
        random_ = random.Random(number)
        traces = random_.randbytes(16 * self.traces)
        spans = random_.randbytes(8 * self.spans)
        for place, (at, trace, _) in enumerate(self._places):
            body[at + 2 : at + 18] = traces[16 * trace : 16 * trace + 16]
            body[at + 20 : at + 28] = spans[8 * place : 8 * place + 8]
        return bytes(body)

    def keys(self, number: int) -> Iterator[tuple[str, str]]:
        """Return the trace and span of each call in the body of a number."""
        body = self.body(number)
        for at, _, retriever in self._places:
            if retriever:
                yield body[at + 2 : at + 18].hex(), body[at + 20 : at + 28].hex()


class ServerProcess:
    """`findwell monitor serve` as a process, on a port that it keeps through restarts."""

    def __init__(self, store: Path, *options: str) -> None:
        self.store = store
        self.port = 0
        self._options = options
        self.process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", "findwell", "monitor", "serve", "--store", str(self.store)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("http://"), line
        self.port = int(line.rpartition(":")[2].partition("/")[0])

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self._ended()

    def _ended(self) -> None:
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Sender:
    """Sends bodies as an exporter does: again, until they are acknowledged."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: http.client.HTTPConnection | None = None
        self.again = 0
        self.answers: list[int] = []

    def post(self, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send once, and return the answer."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        named = {"content-type": PROTOBUF} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        try:
            self._connection.request("POST", "/v1/traces", body, named)
            answer = self._connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def send(self, body: bytes) -> None:
        """Send until it is acknowledged."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, _, said = self.post(body)
                self.answers.append(status)
                if status == 200:
                    return
                assert status in (429, 503), (status, said)
            self.again += 1
            time.sleep(0.2)
        raise TimeoutError

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(slots=True)
class Soaked:
    """What was sent and what is in the store."""

    sent: int = 0  # spans
    expected: set[tuple[str, str]] = field(default_factory=set)  # calls
    kept: set[tuple[str, str]] = field(default_factory=set)
    rows: int = 0
    counted: int = 0  # spans
    repeated: int = 0
    again: int = 0  # batches that were sent more than once
    kills: int = 0


def soak(
    store: Path, *, seconds: float, rate: int, kills: int, workers: int = 0, senders: int = 3
) -> Soaked:
    """Send so many spans a second for a while, kill the server in between, and count."""
    bodies, found = TraceBodies(traces=10), Soaked()
    server = ServerProcess(store, "--workers", str(workers))
    begin = time.monotonic()
    done: list[list[int]] = [[] for _ in range(senders)]
    failed: list[BaseException] = []

    def work(name: int) -> None:
        sender = Sender(server.port)
        pause = senders * bodies.spans / rate
        try:
            while (now := time.monotonic() - begin) < seconds:
                number = name + senders * len(done[name])
                sender.send(bodies.body(number))
                done[name].append(number)
                time.sleep(max(0.0, len(done[name]) * pause - (time.monotonic() - begin)))
                del now
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failed.append(error)
        found.again += sender.again
        sender.close()

    with server:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(senders)]
        for thread in threads:
            thread.start()
        for number in range(1, kills + 1):
            time.sleep(max(0.0, number * seconds / (kills + 1) - (time.monotonic() - begin)))
            server.kill()
            found.kills += 1
            server.start()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
    for number in sorted(each for some in done for each in some):
        found.sent += bodies.spans
        found.expected.update(bodies.keys(number))
    with TraceStore.open(store) as opened:
        counts = opened.counts()
        rows = opened.scan().select("trace", "span").collect()
    found.rows, found.kept = rows.height, set(rows.iter_rows())
    found.counted, found.repeated = counts.spans, counts.repeated
    return found
