"""OTLP, as JSON and as protobuf: what OpenTelemetry's exporters send and its collector writes.

A broken span costs only itself. So a request of protobuf is first cut into its spans, as bytes,
and `opentelemetry-proto` reads each of them; the values of attributes are read only where a span
is a retrieval call, which most are not.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from findwell.core.errors import needs_package
from findwell.io.read.traces.conventions import BROKEN, retrieval_spans
from findwell.io.read.traces.span import (
    CROWDED,
    DEPTH,
    NESTED,
    NOT_A_SPAN,
    SPAN_ATTRIBUTES,
    MalformedSpanError,
    Span,
    SpanTally,
    hex_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NO_JSON = "not valid JSON"
NO_PROTOBUF = "not valid protobuf"
WRONG_REQUEST = "request of wrong types"
BROKEN_GROUP = "request that is not valid protobuf"
NO_REQUEST = "record that is no span, trace or retrieval call"
# protobuf's own JSON mapping writes lowerCamelCase; some exporters write the names of the fields
RESOURCE_SPANS = ("resourceSpans", "resource_spans")
SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
ERROR_CODES = (2, "2", "STATUS_CODE_ERROR", "ERROR")


def _with_resource(
    spans: Iterable[Span], attributes: Callable[[], dict[str, Any]]
) -> Iterator[Span]:
    """Add the attributes of the resource, which are read when a span needs them."""
    resource: dict[str, Any] | None = None
    for span in spans:
        resource = attributes() if resource is None else resource
        span.resource = resource
        yield span


def is_request(record: object) -> bool:
    """Tell whether an object of JSON is a request of OTLP."""
    return isinstance(record, Mapping) and any(name in record for name in RESOURCE_SPANS)


def spans_of_request(request: Mapping[str, Any], tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request, an object of JSON."""
    form = JsonSpans()
    for group in _listed(request, RESOURCE_SPANS, tally):
        spans = (
            span
            for scope in _listed(group, SCOPE_SPANS, tally)
            for span in retrieval_spans(_listed(scope, ("spans",), tally), form, tally)
        )
        yield from _with_resource(spans, lambda held=group: form.attributes(held.get("resource")))  # type: ignore[misc]


def _listed(given: object, names: tuple[str, ...], tally: SpanTally) -> list[Any]:
    """Return the list under the first of these names that is there; another type is counted."""
    found: object = None
    if isinstance(given, dict):
        found = next((given[name] for name in names if given.get(name) is not None), [])
    if isinstance(found, list):
        return found
    tally.malformed[WRONG_REQUEST] += 1
    return []


def _either(given: Mapping[str, Any], name: str, other: str) -> Any:  # noqa: ANN401
    return given.get(name) or given.get(other)


class JsonSpans:
    """Spans as objects of JSON."""

    def open(self, given: Any) -> Any:  # noqa: ANN401
        """Return the same."""
        return given

    def look(self, span: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
        """Return its name, and its attributes as they came."""
        raw = {entry["key"]: entry.get("value") for entry in span.get("attributes") or ()}
        return span.get("name"), raw

    def root(self, span: Mapping[str, Any]) -> object:
        """Return the trace, unless the span has a parent."""
        inside = _either(span, "parentSpanId", "parent_span_id")
        return None if inside else _either(span, "traceId", "trace_id")

    def read(self, span: Mapping[str, Any]) -> Span:
        """Return the span without its attributes."""
        status = span.get("status") or {}
        failed = status.get("code") in ERROR_CODES
        return Span(
            hex_id(_either(span, "traceId", "trace_id")),
            hex_id(_either(span, "spanId", "span_id")),
            hex_id(_either(span, "parentSpanId", "parent_span_id")) or None,
            str(span.get("name") or ""),
            int(_either(span, "startTimeUnixNano", "start_time_unix_nano") or 0),
            int(_either(span, "endTimeUnixNano", "end_time_unix_nano") or 0),
            error=str(status.get("message") or "error") if failed else None,
            events=[
                (str(event.get("name") or ""), self.attributes(event))
                for event in span.get("events") or ()
                if isinstance(event, dict)
            ],
        )

    def attributes(self, holder: object) -> dict[str, Any]:
        """Return the attributes of a resource or an event; those that are broken are left out."""
        found = {}
        listed = holder.get("attributes") if isinstance(holder, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("key"), str):
                try:
                    found[entry["key"]] = self.value(entry.get("value"))
                except BROKEN:
                    continue
        return found

    def value(self, raw: Any, depth: int = 0) -> Any:  # noqa: ANN401
        """Return a text, a number, a truth, a list, a dict or nothing.

        >>> JsonSpans().value({"arrayValue": {"values": [{"boolValue": True}, {"intValue": "7"}]}})
        [True, 7]
        """
        if raw is None:
            return None
        for kind, value in raw.items():
            if kind == "stringValue":
                return value if isinstance(value, str) else str(value)
            if kind in PLAIN_VALUES:
                return PLAIN_VALUES[kind](value)
            if kind in LISTED_VALUES:
                if depth >= DEPTH:
                    raise MalformedSpanError(NESTED)
                values = value.get("values") or ()
                if kind[0] == "a":
                    return [self.value(each, depth + 1) for each in values]
                pairs = ((str(each["key"]), each.get("value")) for each in values)
                return {key: self.value(each, depth + 1) for key, each in pairs}
        return None  # unknown fields must be ignored


LISTED_VALUES = frozenset({"arrayValue", "array_value", "kvlistValue", "kvlist_value"})
PLAIN_TYPES = {"string": str, "int": int, "double": float, "bool": bool, "bytes": str}
PLAIN_VALUES: dict[str, Callable[[Any], Any]] = {
    name + ending: kind for name, kind in PLAIN_TYPES.items() for ending in ("Value", "_value")
}


def spans_of_body(body: bytes, tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request, a message of protobuf."""
    form = ProtobufSpans(tally)
    tally.check_tags(body)
    for group in form.cut(body, 1):
        spans = (
            span
            for scope in form.cut(group, 2)
            for span in retrieval_spans(form.cut(scope, 2), form, tally)
        )
        yield from _with_resource(spans, functools.partial(form.resource, group))


class _Messages(NamedTuple):
    """Classes of protobuf."""

    parts: Any  # any message whose fields 1 and 2 are messages, which stay bytes
    span: Any
    attribute: Any
    unknown_fields: Any
    error: type[Exception]


@functools.cache
def _messages() -> _Messages:
    with needs_package("reading OTLP as protobuf", "monitor"):
        from google.protobuf import (  # noqa: PLC0415
            descriptor_pb2,
            descriptor_pool,
            message,
            message_factory,
            unknown_fields,
        )
        from opentelemetry.proto.common.v1 import common_pb2  # noqa: PLC0415
        from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: PLC0415
    file = descriptor_pb2.FileDescriptorProto(name="findwell.proto", syntax="proto3")
    parts = file.message_type.add(name="Parts")
    for number in (1, 2):
        parts.field.add(
            name=f"field{number}",
            number=number,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return _Messages(
        message_factory.GetMessageClass(pool.FindMessageTypeByName("Parts")),
        trace_pb2.Span,
        common_pb2.KeyValue,
        unknown_fields.UnknownFieldSet,
        message.DecodeError,
    )


class ProtobufSpans:
    """Spans as bytes of protobuf, which are counted, field by field."""

    def __init__(self, tally: SpanTally) -> None:
        self._tally = tally
        self._known = _messages()

    def cut(self, message: bytes, number: int) -> list[bytes]:
        """Return the messages that are one field of another; what is broken is counted."""
        try:
            parts = self._known.parts.FromString(message)
        except self._known.error:
            self._tally.malformed[BROKEN_GROUP] += 1
            return []
        found: list[bytes] = getattr(parts, f"field{number}")
        self._tally.count_fields(len(found))
        if any(each.field_number == number for each in self._known.unknown_fields(parts)):
            self._tally.malformed[BROKEN_GROUP] += 1  # it has another type
        return found

    def resource(self, group: bytes) -> dict[str, Any]:
        """Return the attributes of a resource: one that is broken in part still has a name."""
        found = {}
        for each in (each for part in self.cut(group, 1) for each in self.cut(part, 1)):
            try:
                attribute = self._known.attribute.FromString(each)
                found[attribute.key] = self.value(attribute.value)
            except (self._known.error, MalformedSpanError):
                continue
        return found

    def open(self, given: bytes) -> Any:  # noqa: ANN401
        """Return the message of a span."""
        try:
            span = self._known.span.FromString(given)
        except self._known.error as error:
            why = str(error)
            reason = NESTED if "Depth" in why else NOT_A_SPAN if "UTF-8" in why else NO_PROTOBUF
            raise MalformedSpanError(reason) from None
        count = len(span.attributes)
        self._tally.count_fields(count)
        if count > SPAN_ATTRIBUTES:
            raise MalformedSpanError(CROWDED)
        return span

    def look(self, span: Any) -> tuple[object, dict[str, Any]]:  # noqa: ANN401
        """Return its name, and its attributes as messages."""
        return span.name, {each.key: each.value for each in span.attributes}

    def root(self, span: Any) -> object:  # noqa: ANN401
        """Return the trace, unless the span has a parent."""
        return None if span.parent_span_id else span.trace_id.hex()

    def read(self, span: Any) -> Span:  # noqa: ANN401
        """Return the span without its attributes."""
        trace, own, parent = (
            each.hex() if len(each) == size and any(each) else ""
            for each, size in ((span.trace_id, 16), (span.span_id, 8), (span.parent_span_id, 8))
        )
        failed = span.status.code == ERROR_CODES[0]
        self._tally.count_fields(len(span.events))
        return Span(
            trace,
            own,
            parent or None,
            span.name,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            error=(span.status.message or "error") if failed else None,
            events=[
                (event.name, {each.key: self.value(each.value) for each in event.attributes})
                for event in span.events
            ],
        )

    def value(self, raw: Any, depth: int = 0) -> Any:  # noqa: ANN401
        """Return a text, a number, a truth, a list, a dict, bytes in hexadecimal, or nothing."""
        kind = raw.WhichOneof("value")
        if kind is None:
            return None
        value = getattr(raw, kind)
        if kind == "bytes_value":
            return value.hex()
        if kind not in LISTED_VALUES:
            return value
        if depth >= DEPTH:
            raise MalformedSpanError(NESTED)
        self._tally.count_fields(len(value.values))
        if kind == "array_value":
            return [self.value(each, depth + 1) for each in value.values]
        return {each.key: self.value(each.value, depth + 1) for each in value.values}
