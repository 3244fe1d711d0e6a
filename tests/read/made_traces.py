"""The same retrieval calls as every convention and every tool writes them, to files.

Attributes and names of fields are those that the real programs write; `tests/frameworks/traces.py`
asks the programs themselves.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.read.made_protobuf import fixed64, message, proto_pairs

BEGIN = datetime(2026, 8, 1, 10, tzinfo=UTC)


@dataclass(frozen=True)
class MadeDoc:
    """A retrieved document."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MadeCall:
    """A retrieval call; `trace` and `span` are numbers, which become ids."""

    trace: int
    span: int
    question: str
    docs: tuple[MadeDoc, ...]
    kind: str = "RETRIEVER"
    seconds: float = 0.0
    latency_ms: float = 12.5
    parent: int = 1
    error: str = ""
    inputs: tuple[MadeDoc, ...] = ()
    query: str = ""  # its id, as an attribute
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def trace_id(self) -> str:
        return f"{self.trace:032x}"

    @property
    def span_id(self) -> str:
        return f"{self.span:016x}"

    @property
    def parent_id(self) -> str:
        return f"{self.parent:016x}"

    @property
    def times(self) -> tuple[datetime, datetime]:
        start = BEGIN + timedelta(seconds=self.seconds)
        return start, start + timedelta(milliseconds=self.latency_ms)

    @property
    def nanoseconds(self) -> tuple[int, int]:
        start, end = (int(each.timestamp() * 1e6) * 1000 for each in self.times)
        return start, end

    def whole_docs(self) -> list[dict[str, Any]]:
        return [
            {"id": doc.id, "page_content": doc.text, "score": doc.score, "metadata": doc.metadata}
            for doc in self.docs
        ]

    def input_docs(self) -> list[dict[str, Any]]:
        return [{"id": doc.id, "page_content": doc.text} for doc in self.inputs]


Attributes = dict[str, Any]


def openinference(call: MadeCall) -> Attributes:
    lists = {"retrieval.documents": call.docs}
    if call.kind == "RERANKER":
        lists = {"reranker.output_documents": call.docs, "reranker.input_documents": call.inputs}
    found: Attributes = {
        "openinference.span.kind": call.kind,
        ("reranker.query" if call.inputs else "input.value"): call.question,
        **({"metadata": json.dumps({"query_id": call.query})} if call.query else {}),
    }
    for prefix, docs in lists.items():
        for number, doc in enumerate(docs):
            place = f"{prefix}.{number}.document"
            found |= {f"{place}.id": doc.id, f"{place}.content": doc.text}
            found |= {f"{place}.score": doc.score, f"{place}.metadata": json.dumps(doc.metadata)}
    return found


def gen_ai(call: MadeCall) -> Attributes:
    docs = [
        {"id": doc.id, "content": doc.text, "score": doc.score, "metadata": doc.metadata}
        for doc in call.docs
    ]
    return {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.top_k": 5,
        "gen_ai.retrieval.query.text": call.question,
        "gen_ai.retrieval.documents": json.dumps(docs),
    }


def gen_ai_objects(call: MadeCall) -> Attributes:
    """Documents as an array of objects, and the older name of top_k."""
    found = gen_ai(call)
    found["gen_ai.retrieval.documents"] = json.loads(found["gen_ai.retrieval.documents"])
    found["gen_ai.request.top_k"] = found.pop("gen_ai.retrieval.top_k")
    return found


def memory(call: MadeCall) -> Attributes:
    docs = gen_ai(call)["gen_ai.retrieval.documents"]
    return {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.query.text": call.question,
        "gen_ai.memory.records": docs,
    }


def _asked(call: MadeCall) -> dict[str, Any]:
    return {"query": call.question} | ({"documents": call.input_docs()} if call.inputs else {})


def langfuse(call: MadeCall) -> Attributes:
    return {
        "langfuse.observation.type": call.kind.lower(),
        "langfuse.observation.input": json.dumps(_asked(call)),
        "langfuse.observation.output": json.dumps(call.whole_docs()),
    }


def mlflow(call: MadeCall) -> Attributes:
    docs = [
        {"id": doc["id"], "page_content": doc["page_content"]}
        | {"metadata": {**doc["metadata"], "score": doc["score"]}}
        for doc in call.whole_docs()
    ]
    return {
        "mlflow.spanType": json.dumps(call.kind),
        "mlflow.spanInputs": json.dumps(_asked(call)),
        "mlflow.spanOutputs": json.dumps(docs),
    }


def langsmith(call: MadeCall) -> Attributes:
    return {
        "langsmith.span.kind": call.kind.lower(),
        "gen_ai.operation.name": "embeddings",  # as its exporter says
        "gen_ai.prompt": json.dumps(_asked(call)),
        "gen_ai.completion": json.dumps({"documents": call.whole_docs()}),
    }


def traceloop(call: MadeCall) -> Attributes:
    return {
        "traceloop.span.kind": "task",
        "traceloop.entity.name": f"Vector{call.kind.capitalize()}",
        "gen_ai.operation.name": "vector_db_retrieve",
        "traceloop.entity.input": json.dumps(_asked(call)),
        "traceloop.entity.output": json.dumps({"documents": call.whole_docs(), "count": 3}),
    }


CONVENTIONS: dict[str, Callable[[MadeCall], Attributes]] = {
    "openinference": openinference,
    "langfuse": langfuse,
    "mlflow": mlflow,
    "langsmith": langsmith,
    "gen_ai": gen_ai,
    "gen_ai_objects": gen_ai_objects,
    "memory": memory,
    "traceloop": traceloop,
}


def any_value(value: Any) -> dict[str, Any]:
    """Return a value as OTLP writes it in JSON."""
    match value:
        case bool():
            return {"boolValue": value}
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": key_values(value)}}
    raise TypeError(value)


def key_values(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def otlp_span(call: MadeCall, attributes: Attributes) -> dict[str, Any]:
    start, end = call.nanoseconds
    status = {"code": 2, "message": call.error} if call.error else {"code": 1}
    return {
        "traceId": call.trace_id,
        "spanId": call.span_id,
        "parentSpanId": call.parent_id,
        "name": "retrieve",
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": key_values({**attributes, **call.attributes}),
        "status": status,
    }


def root_span(trace: int, question: str) -> dict[str, Any]:
    """Return the span of the application, around the retrieval calls of a trace."""
    call = MadeCall(trace, 1, question, (), latency_ms=500.0)
    span = otlp_span(call, {"openinference.span.kind": "CHAIN", "input.value": question})
    return span | {"parentSpanId": "", "name": "answer"}


def otlp_request(spans: Iterable[dict[str, Any]], service: str = "shop") -> dict[str, Any]:
    resource = {"attributes": key_values({"service.name": service})}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "made"}, "spans": [*spans]}]}
        ]
    }


def _otlp_lines(calls: Iterable[MadeCall], convention: str) -> bytes:
    spans = [otlp_span(call, CONVENTIONS[convention](call)) for call in calls]
    requests = [otlp_request(spans[at : at + 3]) for at in range(0, len(spans), 3)]
    return b"".join(json.dumps(each).encode() + b"\n" for each in requests)


def proto_span(call: MadeCall, attributes: Attributes) -> bytes:
    start, end = call.nanoseconds
    status = message((2, call.error.encode()), (3, 2)) if call.error else message((3, 1))
    pairs = proto_pairs({**attributes, **call.attributes})
    return (
        message((1, bytes.fromhex(call.trace_id)), (2, bytes.fromhex(call.span_id)))
        + message((4, bytes.fromhex(call.parent_id)), (5, b"retrieve"), (6, 1))
        + fixed64(7, start)
        + fixed64(8, end)
        + message(*((9, pair) for pair in pairs), (15, status))
    )


def proto_request(spans: Iterable[bytes], service: str = "shop") -> bytes:
    resource = message(*((1, pair) for pair in proto_pairs({"service.name": service})))
    scope = message((1, message((1, b"made"))), *((2, span) for span in spans))
    return message((1, message((1, resource), (2, scope))))


def _protobuf(calls: Iterable[MadeCall]) -> bytes:
    return proto_request(proto_span(call, openinference(call)) for call in calls)


def _length_delimited(calls: Iterable[MadeCall]) -> bytes:
    """As the collector's file exporter writes protobuf: each request after its length."""
    bodies = [_protobuf([call]) for call in calls]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def _lines(records: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def phoenix_span(call: MadeCall, *, nested: bool = False) -> dict[str, Any]:
    start, end = call.times
    flat = openinference(call)
    del flat["openinference.span.kind"]
    attributes: dict[str, Any] = flat
    if nested:
        docs = [
            {"document": {"id": doc.id, "content": doc.text, "score": doc.score}}
            for doc in call.docs
        ]
        attributes = {"input": {"value": call.question}, "retrieval": {"documents": docs}}
        if call.inputs:
            before = [{"document": {"id": doc.id, "content": doc.text}} for doc in call.inputs]
            attributes = {
                "reranker": {
                    "query": call.question,
                    "input_documents": before,
                    "output_documents": docs,
                }
            }
    return {
        "name": "retrieve",
        "context": {"trace_id": call.trace_id, "span_id": call.span_id},
        "span_kind": call.kind,
        "parent_id": call.parent_id,
        "start_time": start.isoformat(),
        "end_time": end.isoformat(),
        "status_code": "ERROR" if call.error else "OK",
        "status_message": call.error,
        "attributes": attributes,
        "events": [],
    }


def phoenix_row(call: MadeCall) -> dict[str, Any]:
    """Return a row of Phoenix's data frame."""
    span = phoenix_span(call)
    docs = [
        {"document.id": doc.id, "document.content": doc.text, "document.score": doc.score}
        for doc in call.docs
    ]
    lists = {"attributes.retrieval.documents": docs, "attributes.input.value": call.question}
    if call.inputs:
        before = [{"document.id": doc.id} for doc in call.inputs]
        lists = {
            "attributes.reranker.query": call.question,
            "attributes.reranker.output_documents": docs,
            "attributes.reranker.input_documents": before,
        }
    return {
        **{name: span[name] for name in ("name", "span_kind", "parent_id", "start_time")},
        **{name: span[name] for name in ("end_time", "status_code", "status_message")},
        "context.trace_id": call.trace_id,
        "context.span_id": call.span_id,
        **{
            name: each if isinstance(each, str) else json.dumps(each)
            for name, each in lists.items()
        },
    }


def langfuse_observation(call: MadeCall) -> dict[str, Any]:
    start, end = call.times
    return {
        "id": call.span_id,
        "traceId": call.trace_id,
        "type": call.kind,
        "name": "retrieve",
        "startTime": start.isoformat().replace("+00:00", "Z"),
        "endTime": end.isoformat().replace("+00:00", "Z"),
        "parentObservationId": call.parent_id,
        "level": "ERROR" if call.error else "DEFAULT",
        "statusMessage": call.error or None,
        "input": json.dumps(_asked(call)),
        "output": json.dumps(call.whole_docs()),
        "metadata": {"tenant": "acme"},
    }


def langfuse_row(call: MadeCall) -> dict[str, Any]:
    """Return a row of the tables that Langfuse writes to a bucket."""
    whole = langfuse_observation(call)
    start, end = call.times
    return {
        "id": call.span_id,
        "trace_id": call.trace_id,
        "type": call.kind,
        "name": "retrieve",
        "start_time": start.strftime("%Y-%m-%d %H:%M:%S.%f"),
        "end_time": end.strftime("%Y-%m-%d %H:%M:%S.%f"),
        "parent_observation_id": call.parent_id,
        "level": whole["level"],
        "input": whole["input"],
        "output": whole["output"],
    }


def langsmith_run(call: MadeCall) -> dict[str, Any]:
    start, end = call.times
    return {
        "id": f"{call.span:032x}",
        "trace_id": call.trace_id,
        "name": "retrieve",
        "run_type": call.kind.lower(),
        "start_time": start.replace(tzinfo=None).isoformat(),
        "end_time": end.replace(tzinfo=None).isoformat(),
        "inputs": _asked(call),
        "outputs": {"documents": call.whole_docs()},
        "error": call.error or None,
        "parent_run_id": f"{call.parent:032x}",
        "session_id": "project",
        "extra": {"metadata": {"tenant": "acme"}},
    }


def mlflow_trace(calls: list[MadeCall]) -> dict[str, Any]:
    def base64_id(text: str) -> str:
        return base64.b64encode(bytes.fromhex(text)).decode()

    spans = [
        {
            "trace_id": base64_id(call.trace_id),
            "span_id": base64_id(call.span_id),
            "parent_span_id": base64_id(call.parent_id),
            "name": "retrieve",
            "start_time_unix_nano": call.nanoseconds[0],
            "end_time_unix_nano": call.nanoseconds[1],
            "status": {"code": "STATUS_CODE_ERROR" if call.error else "STATUS_CODE_OK"},
            "attributes": mlflow(call),
        }
        for call in calls
    ]
    info = {"trace_id": f"tr-{calls[0].trace_id}", "tags": {"mlflow.traceName": "answer"}}
    return {"info": info, "data": {"spans": spans}}


def plain_record(call: MadeCall) -> dict[str, Any]:
    return {
        "question": call.question,
        "retrieved": [
            {"id": doc.id, "text": doc.text, "score": doc.score, "metadata": doc.metadata}
            for doc in call.docs
        ],
        "latency_ms": call.latency_ms,
        "time": call.times[0].isoformat(),
        **({"error": call.error} if call.error else {}),
    }


def _csv(records: list[dict[str, Any]]) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(name for each in records for name in each)))
    writer.writeheader()
    for record in records:
        cells = {
            key: each if isinstance(each, str | int) else json.dumps(each)
            for key, each in record.items()
            if each is not None
        }
        writer.writerow(cells)
    return file.getvalue().encode()


def by_trace(calls: list[MadeCall]) -> list[list[MadeCall]]:
    traces: dict[int, list[MadeCall]] = {}
    for call in calls:
        traces.setdefault(call.trace, []).append(call)
    return list(traces.values())


# every form of a file, by its name
FILES: dict[str, Callable[[list[MadeCall]], bytes]] = {
    **{
        f"otlp-{name}.jsonl": lambda calls, name=name: _otlp_lines(calls, name)  # type: ignore[misc]
        for name in CONVENTIONS
    },
    "otlp.json": lambda calls: json.dumps(
        otlp_request(otlp_span(call, openinference(call)) for call in calls), indent=1
    ).encode(),
    "otlp.jsonl.gz": lambda calls: gzip.compress(_otlp_lines(calls, "openinference")),
    "otlp.pb": _protobuf,
    "otlp-lengths.pb": _length_delimited,
    "phoenix.jsonl": lambda calls: _lines(map(phoenix_span, calls)),
    "phoenix.json": lambda calls: json.dumps([phoenix_span(call) for call in calls]).encode(),
    "phoenix-api.json": lambda calls: json.dumps(
        {"data": [phoenix_span(call, nested=True) for call in calls], "next_cursor": None}
    ).encode(),
    "phoenix.csv": lambda calls: _csv([phoenix_row(call) for call in calls]),
    "langfuse.jsonl": lambda calls: _lines(map(langfuse_observation, calls)),
    "langfuse.json": lambda calls: json.dumps([*map(langfuse_observation, calls)]).encode(),
    "langfuse-api.json": lambda calls: json.dumps(
        {"data": [*map(langfuse_observation, calls)], "meta": {"cursor": None}}, indent=2
    ).encode(),
    "langfuse-trace.jsonl": lambda calls: _lines(
        {"id": of[0].trace_id, "name": "answer", "observations": [*map(langfuse_observation, of)]}
        for of in by_trace(calls)
    ),
    "langfuse.csv": lambda calls: _csv([langfuse_observation(call) for call in calls]),
    "langfuse-bucket.jsonl": lambda calls: _lines(map(langfuse_row, calls)),
    "langsmith.jsonl": lambda calls: _lines(map(langsmith_run, calls)),
    "langsmith.json": lambda calls: json.dumps([*map(langsmith_run, calls)]).encode(),
    "mlflow.jsonl": lambda calls: _lines(map(mlflow_trace, by_trace(calls))),
    "mlflow.json": lambda calls: json.dumps([*map(mlflow_trace, by_trace(calls))]).encode(),
    "mlflow-search.csv": lambda calls: _csv(
        [
            {"trace_id": f"tr-{of[0].trace_id}", "trace": json.dumps(mlflow_trace(of))}
            | {"state": "OK", "request_time": of[0].nanoseconds[0] // 10**6}
            for of in by_trace(calls)
        ]
    ),
}
