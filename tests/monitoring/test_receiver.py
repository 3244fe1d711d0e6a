"""The server: the real exporter, the right answers to what cannot be taken, hostile bodies."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import logging
import socket
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic as clock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from polars.testing import assert_frame_equal

from findwell.core.errors import OptionError, SaveError
from findwell.io.read.traces.decoding import spans_of_body
from findwell.io.read.traces.span import (
    BODY_FIELDS,
    BODY_SPANS,
    SPAN_ATTRIBUTES,
    CrowdedBodyError,
    SpanTally,
    parsed,
)
from findwell.loop.monitoring import receiver, store_files
from findwell.loop.monitoring import store as store_module
from findwell.loop.monitoring.intake import IntakeRules
from findwell.loop.monitoring.receiver import ReceiverLimits, Refusal, _unzipped
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.monitoring.store_files import drafts_of_days
from findwell.show.web import trace_server as trace_server_module
from findwell.show.web.trace_server import CONNECTIONS, TraceAddress, trace_server
from tests.monitoring.conftest import serving
from tests.monitoring.sending import Sender, ServerProcess, TraceBodies, put, request_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from findwell.loop.monitoring.store import Batch

JSON = "application/json"


def exported(url: str, compression: Compression, **headers: str) -> bool:
    """Send two traces by the SDK of OpenTelemetry, as an application would."""
    exporter = OTLPSpanExporter(url, compression=compression, headers=headers, timeout=10)
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    for number in range(2):
        with tracer.start_as_current_span("answer") as outer:
            outer.set_attribute("openinference.span.kind", "CHAIN")
            with tracer.start_as_current_span("search") as span:
                span.set_attribute("openinference.span.kind", "RETRIEVER")
                span.set_attribute("input.value", f"Question {number}?")
                for place in range(3):
                    span.set_attribute(f"retrieval.documents.{place}.document.id", f"d{place}")
                    span.set_attribute(f"retrieval.documents.{place}.document.score", 1 - place / 4)
    done = provider.force_flush(10_000)
    provider.shutdown()
    return done


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_exporter_of_opentelemetry(store: TraceStore, compression: Compression) -> None:
    with serving(store) as (ready, _):
        assert exported(ready.url, compression)
        found = store.scan().sort("time").collect()  # acknowledged, so it is there
        assert ready.receiver.refused == {}
    assert found["question"].to_list() == ["Question 0?", "Question 1?"]
    assert found["docs"].to_list() == [["d0", "d1", "d2"]] * 2
    assert found["scores"].to_list() == [[1.0, 0.75, 0.5]] * 2
    assert found["service"].to_list() == ["shop"] * 2
    assert found["parent"].null_count() == 0
    assert store.counts().spans == 4
    assert len(list(store.path.rglob("*.parquet"))) == 1  # where it is put in the end


def as_json(body: bytes) -> bytes:
    """Return the same request as OTLP writes it in JSON: ids in hexadecimal."""
    given: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(body))
    request = ExportTraceServiceRequest.FromString(body)
    spans = given["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for written, span in zip(spans, request.resource_spans[0].scope_spans[0].spans, strict=True):
        written |= {"traceId": span.trace_id.hex(), "spanId": span.span_id.hex()}
    return json.dumps(given).encode()


def test_all_formats_give_the_same_calls(tmp_path: Path) -> None:
    body = TraceBodies(4).body(1)
    ways = {
        "protobuf": (body, {}),
        "gzip": (gzip.compress(body), {"content_encoding": "gzip"}),
        "json": (as_json(body), {"content_type": f"{JSON}; charset=utf-8"}),
        "zipped json": (
            gzip.compress(as_json(body)),
            {"content_type": JSON, "content_encoding": "gzip"},
        ),
    }
    found = []
    for name, (sent, headers) in ways.items():
        with (
            TraceStore.open(tmp_path / name, create=True) as store,
            serving(store) as (_, sender),
        ):
            status, answered, said = sender.post(sent, **headers)
            kind = headers.get("content_type", "application/x-protobuf").partition(";")[0]
            assert (status, answered["content-type"]) == (200, kind)
            assert said == (b"{}" if kind == JSON else b"")
            found.append(store.scan().sort("time").collect())
    assert found[0].height == 4
    for each in found[1:]:
        assert_frame_equal(each, found[0])


def test_a_batch_that_is_sent_twice_counts_once(store: TraceStore) -> None:
    """As a whole, zipped otherwise, or split otherwise by something between."""
    bodies = TraceBodies(4)
    one, two = bodies.body(1), bodies.body(2)
    with serving(store) as (_, sender):
        for body in (one, one, two, one):
            assert sender.post(body)[0] == 200
        assert sender.post(gzip.compress(one), content_encoding="gzip")[0] == 200
        assert store.counts().spans == 48
        both = ExportTraceServiceRequest.FromString(one)
        both.MergeFrom(ExportTraceServiceRequest.FromString(two))
        assert sender.post(both.SerializeToString())[0] == 200
    counts = store.counts()
    assert (counts.calls, counts.repeated) == (8, 3 * 4 + 8)
    keys = set(store.scan().select("trace", "span").collect().iter_rows())
    assert keys == {*bodies.keys(1), *bodies.keys(2)}


def test_malformed_spans_are_counted_and_told(store: TraceStore) -> None:
    request = request_of(3, 1)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[1].trace_id = b"short"
    spans[7].start_time_unix_nano = 0
    with serving(store) as (_, sender):
        status, _, said = sender.post(request.SerializeToString())
        partial = ExportTraceServiceResponse.FromString(said).partial_success
        assert (status, partial.rejected_spans) == (200, 2)
        assert "1 × span without a valid trace id and span id" in partial.error_message
        request = request_of(2, 2)
        request.resource_spans[0].scope_spans[0].spans[1].span_id = b""
        status, _, said = sender.post(as_json(request.SerializeToString()), content_type=JSON)
        assert json.loads(said)["partialSuccess"]["rejectedSpans"] == "1"
    counts = store.counts()
    assert (counts.calls, counts.spans, sum(counts.malformed.values())) == (2, 30, 3)


BODY = request_of(1, 5).SerializeToString()
REFUSED: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "text": (415, BODY, {"content_type": "text/plain"}),
    "no type": (415, BODY, {"content_type": ""}),
    "brotli": (415, BODY, {"content_encoding": "br"}),
    "no protobuf": (400, b"{}", {}),
    "cut protobuf": (400, BODY[:-7], {}),
    "no JSON": (400, BODY, {"content_type": JSON}),
    "cut JSON": (400, b'{"resourceSpans": [', {"content_type": JSON}),
    "other JSON": (400, b"[1, 2]", {"content_type": JSON}),
    "deep JSON": (400, b"[" * 100_000, {"content_type": JSON}),
    "JSON of wrong types": (400, b'{"resourceSpans": 3}', {"content_type": JSON}),
    "groups of wrong types": (400, b'{"resourceSpans": [3, "x"]}', {"content_type": JSON}),
    "spans of wrong types": (
        400,
        b'{"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]}',
        {"content_type": JSON},
    ),
    "protobuf of wrong types": (400, b"\x08\x03", {}),
    "no gzip": (400, BODY, {"content_encoding": "gzip"}),
    "cut gzip": (400, gzip.compress(BODY)[:-9], {"content_encoding": "gzip"}),
    "long": (413, b"\0" * 300_000, {}),
    "bomb": (413, gzip.compress(b"\0" * 30_000_000), {"content_encoding": "gzip"}),
    "bombs": (413, gzip.compress(b"\0" * 150_000) * 3, {"content_encoding": "gzip"}),
    "length that lies": (413, BODY, {"content_length": "9" * 15}),
    "page": (403, BODY, {"origin": "http://127.0.0.1:4318"}),
    "fetch": (403, BODY, {"sec_fetch_site": "cross-site"}),
    "rebound name": (421, BODY, {"host": "evil.example:4318"}),
}


@pytest.mark.usefixtures("no_collection")
def test_what_is_refused_for_good(store: TraceStore) -> None:
    """With a status of gRPC in the format of the request, and never so that it is sent again."""
    with serving(store, request=200_000) as (_, sender):
        for name, (expected, body, headers) in REFUSED.items():
            status, answered, said = sender.post(body, **headers)
            sender.close()
            assert (name, status) == (name, expected), said
            assert "retry-after" not in answered
            if headers.get("content_type") == JSON:
                assert json.loads(said)["message"]
            else:
                assert len(said) > 10
        assert sender.post(BODY)[0] == 200  # it lives
    assert store.counts().calls == 1


def field(number: int, value: bytes) -> bytes:
    """Return a field of protobuf with bytes."""
    length, head = len(value), bytes([number << 3 | 2])
    while length > 0x7F:
        head, length = head + bytes([length & 0x7F | 0x80]), length >> 7
    return head + bytes([length]) + value


MANY = BODY_FIELDS + 10
CROWDED_BODIES: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "groups": (413, field(1, b"") * MANY, {}),
    "empty spans": (413, field(1, field(2, field(2, b"") * MANY)), {}),
    "spans": (413, field(1, field(2, field(2, b"") * (BODY_SPANS + 1))), {}),
    "JSON lists": (413, b'{"resourceSpans": [' + b"[]," * MANY + b"0]}", {"content_type": JSON}),
    "JSON lines": (413, b"0\n" * MANY, {"content_type": JSON}),
    "packed": (413, gzip.compress(bytes(3 << 20)), {"content_encoding": "gzip"}),
}


def test_bodies_of_too_many_parts_are_refused(store: TraceStore) -> None:
    """A few kilobytes of gzip become millions of parts, each of which takes memory and time."""
    with serving(store) as (_, sender):
        for name, (expected, body, headers) in CROWDED_BODIES.items():
            status, _, said = sender.post(body, **headers)
            assert (name, status) == (name, expected), said
        crowded = field(1, b"a" * 16) + field(2, b"b" * 8) + field(9, b"") * (SPAN_ATTRIBUTES + 1)
        status, _, said = sender.post(field(1, field(2, field(2, crowded))))
        partial = ExportTraceServiceResponse.FromString(said).partial_success
        assert (status, partial.rejected_spans) == (200, 1)
        assert "1 × span with more than 65,536 attributes" in partial.error_message
        assert sender.post(BODY)[0] == 200


def test_decoding_stops_where_there_is_too_much() -> None:
    tally = SpanTally(most=10)
    with pytest.raises(CrowdedBodyError, match="more than 10 spans"):
        list(spans_of_body(field(1, field(2, field(2, b"") * 100)), tally))
    assert tally.spans == 10
    tally = SpanTally(fields=50)
    with pytest.raises(CrowdedBodyError):  # before they are read
        list(spans_of_body(field(1, b"") * 100_000, tally))
    assert tally.fields == 50
    one = field(1, b"text")
    values = field(9, field(1, b"input.value") + field(2, field(5, field(1, one) * 1000)))
    kind = field(9, field(1, b"openinference.span.kind") + field(2, field(1, b"RETRIEVER")))
    ids = field(1, b"a" * 16) + field(2, b"b" * 8)
    body = field(1, field(2, field(2, ids + kind + values)))
    with pytest.raises(CrowdedBodyError):
        list(spans_of_body(body, SpanTally(fields=600)))
    parts = _unzipped(gzip.compress(bytes(20 << 20)), 1 << 30)
    with pytest.raises(Refusal, match="200 times as long"):
        list(parts)
    text = "[" + "[]," * MANY + "0]"
    assert parsed(text) is text


def test_calls_that_are_not_kept_are_told(store: TraceStore) -> None:
    """A span in the future, or older than what is kept, is rejected; one out of the sample not."""
    request = request_of(3, 1)
    spans = [each for each in request.resource_spans[0].scope_spans[0].spans if _retrieves(each)]
    spans[0].start_time_unix_nano += 10**18
    spans[1].start_time_unix_nano -= 10**18
    store.keep = timedelta(days=3650)
    with serving(store) as (_, sender):
        for _ in range(2):  # the second time it is known as a whole
            status, _, said = sender.post(request.SerializeToString())
            partial = ExportTraceServiceResponse.FromString(said).partial_success
            assert (status, partial.rejected_spans) == (200, 2)
            assert "1 × in the future, 1 × older than what is kept" in partial.error_message
    store.rules = IntakeRules(sample=1e-9)
    with serving(store) as (_, sender):
        assert sender.post(request_of(3, 2).SerializeToString())[2] == b""


def _retrieves(span: Any) -> bool:
    return any(each.value.string_value == "RETRIEVER" for each in span.attributes)


HALF = {
    "heads": b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1",
    "bodies": b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
}


@pytest.mark.parametrize("half", ["heads", pytest.param("bodies", marks=pytest.mark.slow)])
def test_half_sent_requests_keep_no_one_out(tmp_path: Path, half: str) -> None:
    """Nor does the one that came first, if it goes on, while there is place."""
    with ServerProcess(tmp_path / "store") as server, ExitStack() as opened:
        sent = HALF[half] % server.port if half == "bodies" else HALF[half]
        for number in range(CONNECTIONS + 8):
            each = opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            each.sendall(sent)
            if number % 256 == 255:
                sender = Sender(server.port)
                assert sender.post(BODY)[0] == 200
                sender.close()
        sender = Sender(server.port)
        assert sender.post(BODY)[0] == 200
        sender.close()


def test_the_head_of_a_request_has_to_come_in_time(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one of a connection, and later ones."""
    monkeypatch.setattr(trace_server_module, "HEADERS", 0.3)
    with serving(store) as (ready, _):
        port = ready.listener.getsockname()[1]
        whole = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        for before in (b"", whole):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(before + HALF["heads"])
                answer = b""
                with contextlib.suppress(ConnectionResetError):
                    while part := client.recv(10_000):
                        answer += part
                assert answer[:12] == (b"HTTP/1.1 200" if before else b"")


def test_a_body_has_to_come_in_time(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole: a byte now and then does not keep a connection."""
    monkeypatch.setattr(receiver, "BODY_SECONDS", 0.3)
    with serving(store) as (ready, _):
        port = ready.listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(HALF["bodies"] % port)
            client.settimeout(0.1)
            for _ in range(300):
                try:
                    answer = client.recv(1000)
                    break
                except TimeoutError:
                    client.sendall(b" ")
            assert answer.startswith(b"HTTP/1.1 408")


def test_other_addresses(store: TraceStore) -> None:
    with serving(store) as (ready, _):
        for method, path, expected in [
            ("GET", "/v1/traces", 405),
            ("POST", "/v1/metrics", 404),
            ("OPTIONS", "/v1/traces", 405),
            ("POST", "/", 404),
        ]:
            port = ready.listener.getsockname()[1]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request(method, path, headers={"content-type": JSON})
            assert connection.getresponse().status == expected
            connection.close()


def test_the_token(store: TraceStore) -> None:
    with serving(store, token="s3cret ü") as (_, sender):
        assert sender.post(BODY)[0] == 401
        assert sender.post(BODY, authorization="Bearer s3cret")[0] == 401
    with serving(store, token="s3cret") as (ready, sender):
        assert sender.post(BODY, authorization="Bearer s3cret")[0] == 200
        assert exported(ready.url, Compression.Gzip, Authorization="Bearer s3cret")
    assert store.counts().calls == 3


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_other_machines_need_a_token(host: str) -> None:
    with pytest.raises(OptionError, match="no token is set"):
        TraceAddress(host)
    assert TraceAddress(host, token="x").host == host


def test_a_port_that_is_taken(store: TraceStore) -> None:
    with serving(store) as (ready, _):
        port = ready.listener.getsockname()[1]
        with (
            pytest.raises(OptionError, match=f"port {port} cannot be used") as stop,
            trace_server(store, TraceAddress(port=port), limits=ReceiverLimits()),
        ):
            pass
        assert "--port, or 0" in stop.value.fix


def test_too_many_spans_a_second(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the rate a batch is refused, and taken after as many seconds as were told."""
    bodies, later = TraceBodies(10), 0.0
    monkeypatch.setattr(receiver, "time", SimpleNamespace(monotonic=lambda: clock() + later))
    with serving(store, rate=0.5) as (_, sender):
        assert sender.post(bodies.body(0))[0] == 200  # 60 spans: two minutes' worth
        status, answered, _ = sender.post(bodies.body(1))
        assert status == 429
        wait = int(answered["retry-after"])
        assert 60 < wait <= 119
        later = wait / 2
        assert sender.post(bodies.body(1))[0] == 429
        later = wait + 1.0
        assert sender.post(bodies.body(1))[0] == 200
    assert store.counts().spans == 120


def test_a_disk_without_room(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "DISK_SECONDS", 0.0)
    with serving(store, store=1) as (_, sender):
        status, answered, _ = sender.post(BODY)
        assert (status, answered["retry-after"]) == (503, "60")
    with serving(store) as (_, sender):
        monkeypatch.setattr(receiver, "nearly_full", lambda _: True)
        assert sender.post(BODY)[0] == 503
        monkeypatch.setattr(receiver, "nearly_full", lambda _: False)
        assert sender.post(BODY)[0] == 200


def test_a_disk_that_is_full_all_of_a_sudden(store: TraceStore) -> None:
    """What could not be saved is not acknowledged, and is when it can be."""
    bodies = TraceBodies(200)
    with serving(store) as (_, sender):
        sender.send(bodies.body(0))
        (pages,) = store._catalogue.rows("PRAGMA page_count")[0]
        store._catalogue.rows(f"PRAGMA max_page_count = {pages}")
        status, answered, said = sender.post(bodies.body(1))
        assert (status, answered["retry-after"]) == (503, "60")
        assert b"the disk has no room for more traces" in said
        store._catalogue.rows("PRAGMA max_page_count = 100000")
        assert sender.post(bodies.body(1))[0] == 200
    assert store.counts().calls == 400


def test_nobody_waits_while_files_are_written(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is acknowledged while others are put into files, and none is lost by that."""
    bodies = TraceBodies(10)
    monkeypatch.setattr(store_files, "WAITING_BYTES", 1)  # always due
    monkeypatch.setattr(store_module, "TICK", 0.01)
    begun, done = threading.Event(), threading.Event()
    write = drafts_of_days

    def slowly(*given: Any) -> Any:
        begun.set()
        assert done.wait(30)
        return write(*given)

    monkeypatch.setattr(store_files, "drafts_of_days", slowly)
    with serving(store) as (_, sender):
        assert sender.post(bodies.body(0))[0] == 200
        assert begun.wait(30)
        assert sender.post(bodies.body(1))[0] == 200
        assert store.scan().collect().height == 20
        done.set()
    assert store.counts().files > 0
    keys = set(store.scan().select("trace", "span").collect().iter_rows())
    assert keys == {*bodies.keys(0), *bodies.keys(1)}


def test_too_many_at_once(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk is slow, memory stays bounded: who comes then is told to come again."""
    bodies = TraceBodies(10)
    slow, over = store.add_batches, threading.Event()

    def add(batches: Sequence[Batch], **options: Any) -> Any:
        assert over.wait(30)
        return slow(batches, **options)

    monkeypatch.setattr(store, "add_batches", add)
    with serving(store, held=1) as (ready, sender):
        port = ready.listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as first:
            head = f"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            head += "Content-Type: application/x-protobuf\r\n"
            body = bodies.body(0)
            first.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            while not ready.receiver._held:
                time.sleep(0.01)
            status, answered, _ = sender.post(bodies.body(1))
            assert (status, answered["retry-after"]) == (503, "1")
            over.set()
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
        sender.send(bodies.body(1))
        assert ready.receiver._held == 0
    assert store.counts().calls == 20


def test_a_failure_is_told_to_all_who_wait(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(_: Sequence[Batch], **__: Any) -> Any:
        raise SaveError("the disk is gone")

    with serving(store) as (_, sender):
        with monkeypatch.context() as patched:
            patched.setattr(store, "add_batches", add)
            assert sender.post(BODY)[0] == 503
        assert sender.post(BODY)[0] == 200


def hostile() -> bytes:
    """Return spans that are valid, and mean ill."""
    request = request_of(4, 9)
    spans = request.resource_spans[0].scope_spans[0].spans
    retrievers = [each for each in spans if each.name == "retriever"]
    put(retrievers[0], "input.value", "<script>alert(1)</script>")
    put(retrievers[0], "session.id", "../../etc/passwd")
    put(retrievers[1], "retrieval.documents.0.document.content", "x" * 10_000_000)
    put(retrievers[1], "tenant", "y" * 1_000_000)
    for number in range(5_000):
        put(retrievers[2], f"key.{number}", number)
        put(retrievers[2], f"retrieval.documents.{number}.document.id", "d")
    value = retrievers[3].attributes.add()
    value.key = "deep"
    deep = value.value
    for _ in range(90):
        deep = deep.array_value.values.add()
    deep.string_value = "ground"
    body: bytes = request.SerializeToString()
    return body


def test_hostile_attributes(store: TraceStore) -> None:
    with serving(store) as (_, sender):
        assert sender.post(hostile())[0] == 200
    found = store.scan().sort("time").collect()
    assert found.height >= 3
    assert found["question"][0] == "<script>alert(1)</script>"  # kept as it is; pages escape it
    assert found["texts"].list.explode().str.len_chars().max() == 1 << 16
    assert found["docs"].list.len().max() == 1000
    assert found["attributes"].list.len().max() == 64
    assert store.counts().bytes < 5_000_000
    assert {path.parent.parent for path in store.path.rglob("*.parquet")} == {
        store.path / "queries"
    }


@pytest.mark.slow
def test_decoding_in_other_processes(store: TraceStore) -> None:
    bodies = TraceBodies(5)
    with serving(store, workers=2, request=1_000_000) as (ready, sender):
        for number in range(6):
            assert sender.post(bodies.body(number))[0] == 200
        assert sender.post(b"junk")[0] == 400
        bomb = gzip.compress(b"\0" * 30_000_000)
        assert sender.post(bomb, content_encoding="gzip")[0] == 413
        pool: Any = ready.receiver._decoders._pool
        for process in pool._processes.values():
            process.kill()  # as the system does where memory is short
        sender.send(bodies.body(7))
        assert sender.answers[-1] == 200
    assert store.counts().calls == 35
    assert set(store.scan().select("trace").collect().to_series()) == {
        trace for number in (*range(6), 7) for trace, _ in bodies.keys(number)
    }


def test_the_sdk_sends_again_what_was_refused(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The real exporter waits and comes again after a 503."""
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    monkeypatch.setattr(receiver, "LATER_SECONDS", 1)
    monkeypatch.setattr(receiver, "DISK_SECONDS", 0.0)
    looks = iter([True])
    monkeypatch.setattr(receiver, "nearly_full", lambda _: next(looks, False))
    with serving(store) as (ready, _):
        assert exported(ready.url, Compression.NoCompression)
        assert sum(ready.receiver.refused.values()) == 1
    assert store.counts().calls == 2
