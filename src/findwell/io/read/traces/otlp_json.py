"""OTLP as JSON: what OpenTelemetry's collector writes to files, one request per line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.recognition import convention_of
from findwell.io.read.traces.span import (
    DEPTH,
    NESTED,
    NO_ID,
    NOT_A_SPAN,
    MalformedSpanError,
    Span,
    SpanTally,
    hex_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_JSON = "not valid JSON"
WRONG_REQUEST = "request of wrong types"
NO_REQUEST = "record that is no span, trace or retrieval call"
# protobuf's own JSON mapping writes lowerCamelCase; some exporters write the names of the fields
RESOURCE_SPANS = ("resourceSpans", "resource_spans")
SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")


def is_request(record: object) -> bool:
    """Tell whether an object of JSON is a request of OTLP."""
    return isinstance(record, Mapping) and any(name in record for name in RESOURCE_SPANS)


def spans_of_request(request: Mapping[str, Any], tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request."""
    for group in _parts(request, RESOURCE_SPANS, tally):
        resource: dict[str, Any] | None = None
        for scope in _parts(group, SCOPE_SPANS, tally):
            for each in _parts(scope, ("spans",), tally):
                tally.count_span()
                try:
                    raw = _by_key(each)
                    convention = convention_of(raw, value_of, each.get("name"))
                    if not convention:
                        if not _either(each, "parentSpanId", "parent_span_id"):
                            tally.note_root(_either(each, "traceId", "trace_id"), raw, value_of)
                        continue
                    span = _span(each, raw)
                except MalformedSpanError as error:
                    tally.malformed[str(error)] += 1
                    continue
                except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
                    tally.malformed[NOT_A_SPAN] += 1
                    continue
                if resource is None:
                    resource = _attributes(group.get("resource"))
                span.resource, span.convention = resource, convention
                yield span


def _parts(given: object, names: tuple[str, ...], tally: SpanTally) -> list[Any]:
    """Return the list under the first of these names that is there; another type is counted."""
    found: object = None
    if isinstance(given, dict):
        found = next((given[name] for name in names if given.get(name) is not None), [])
    if isinstance(found, list):
        return found
    tally.malformed[WRONG_REQUEST] += 1
    return []


def _lists(given: object, names: tuple[str, ...]) -> list[Any]:
    """Return the list under the first of these names that is there."""
    if isinstance(given, dict):
        for name in names:
            if isinstance(given.get(name), list):
                found: list[Any] = given[name]
                return found
    return []


def _by_key(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as they came, by name."""
    return {entry["key"]: entry.get("value") for entry in span.get("attributes") or ()}


def _either(given: Mapping[str, Any], name: str, other: str) -> Any:  # noqa: ANN401
    return given.get(name) or given.get(other)


def _span(given: Mapping[str, Any], raw: Mapping[str, Any]) -> Span:
    trace = hex_id(_either(given, "traceId", "trace_id"))
    span = hex_id(_either(given, "spanId", "span_id"))
    if not trace or not span:
        raise MalformedSpanError(NO_ID)
    status = given.get("status") or {}
    failed = status.get("code") in FAILED
    return Span(
        trace,
        span,
        hex_id(_either(given, "parentSpanId", "parent_span_id")) or None,
        str(given.get("name") or ""),
        int(_either(given, "startTimeUnixNano", "start_time_unix_nano") or 0),
        int(_either(given, "endTimeUnixNano", "end_time_unix_nano") or 0),
        {str(key): value_of(value) for key, value in raw.items()},
        str(status.get("message") or "error") if failed else None,
        {},
        [
            (str(event.get("name") or ""), _attributes(event))
            for event in given.get("events") or ()
            if isinstance(event, dict)
        ],
    )


def _attributes(holder: object) -> dict[str, Any]:
    """Return the attributes of a resource or an event; those that are broken are left out."""
    found = {}
    for entry in _lists(holder, ("attributes",)):
        if isinstance(entry, dict) and isinstance(entry.get("key"), str):
            try:
                found[entry["key"]] = value_of(entry.get("value"))
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
                continue
    return found


def value_of(given: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """Return the value of an attribute: a text, a number, a truth, a list, a dict or nothing.

    >>> value_of({"intValue": "7"}), value_of({"arrayValue": {"values": [{"boolValue": True}]}})
    (7, [True])
    """
    if given is None:
        return None
    for kind, value in given.items():
        if kind == "stringValue":
            return value if isinstance(value, str) else str(value)
        if kind in PLAIN:
            return PLAIN[kind](value)
        if kind in LISTED:
            if depth >= DEPTH:
                raise MalformedSpanError(NESTED)
            values = value.get("values") or ()
            if kind[0] == "a":
                return [value_of(each, depth + 1) for each in values]
            return {str(each["key"]): value_of(each.get("value"), depth + 1) for each in values}
    return None  # unknown fields must be ignored


LISTED = frozenset({"arrayValue", "array_value", "kvlistValue", "kvlist_value"})
PLAIN = {
    "string_value": str,
    "intValue": int,
    "int_value": int,
    "doubleValue": float,
    "double_value": float,
    "boolValue": bool,
    "bool_value": bool,
    "bytesValue": str,
    "bytes_value": str,
}
