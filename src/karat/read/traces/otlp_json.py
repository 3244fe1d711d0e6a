"""OTLP as JSON: what OpenTelemetry's collector writes to files, one request per line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from karat.read.traces.recognition import is_retrieval
from karat.read.traces.span import DEPTH, NESTED, NO_ID, NOT_A_SPAN, Malformed, Span, hex_id

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

NO_JSON = "not valid JSON"
NO_REQUEST = "no spans in it: not a request of OTLP"
# protobuf's own JSON mapping writes lowerCamelCase; some exporters write the names of the fields
RESOURCE_SPANS = ("resourceSpans", "resource_spans")
SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")


def spans_of_request(
    request: Mapping[str, Any], malformed: Counter[str], seen: list[int]
) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request; `seen` counts all spans."""
    for group in _lists(request, RESOURCE_SPANS):
        resource: dict[str, Any] | None = None
        for scope in _lists(group, SCOPE_SPANS):
            spans = scope.get("spans") if isinstance(scope, dict) else None
            if not isinstance(spans, list):
                continue
            seen[0] += len(spans)
            for each in spans:
                try:
                    raw = {entry["key"]: entry.get("value") for entry in each.get("attributes", ())}
                    if not is_retrieval(raw, value_of, each.get("name")):
                        continue
                    if resource is None:
                        resource = _attributes(group.get("resource"))
                    yield _span(each, raw, resource)
                except Malformed as error:
                    malformed[str(error)] += 1
                except (AttributeError, KeyError, TypeError, ValueError):
                    malformed[NOT_A_SPAN] += 1


def _lists(given: object, names: tuple[str, ...]) -> list[Any]:
    """Return the list under the first of these names that is there."""
    if isinstance(given, dict):
        for name in names:
            if isinstance(given.get(name), list):
                found: list[Any] = given[name]
                return found
    return []


def _span(given: Mapping[str, Any], raw: Mapping[str, Any], resource: dict[str, Any]) -> Span:
    trace = hex_id(given.get("traceId") or given.get("trace_id"))
    span = hex_id(given.get("spanId") or given.get("span_id"))
    if not trace or not span:
        raise Malformed(NO_ID)
    status = given.get("status") or {}
    failed = status.get("code") in FAILED
    return Span(
        trace,
        span,
        hex_id(given.get("parentSpanId") or given.get("parent_span_id")) or None,
        str(given.get("name") or ""),
        int(given.get("startTimeUnixNano") or given.get("start_time_unix_nano") or 0),
        int(given.get("endTimeUnixNano") or given.get("end_time_unix_nano") or 0),
        {str(key): value_of(value) for key, value in raw.items()},
        str(status.get("message") or "error") if failed else None,
        resource,
        [
            (str(event.get("name") or ""), _attributes(event))
            for event in given.get("events") or ()
            if isinstance(event, dict)
        ],
    )


def _attributes(holder: object) -> dict[str, Any]:
    """Return the attributes of a resource or an event; those that are broken are left out."""
    given = holder.get("attributes") if isinstance(holder, dict) else None
    found = {}
    for entry in given if isinstance(given, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("key"), str):
            try:
                found[entry["key"]] = value_of(entry.get("value"))
            except (AttributeError, TypeError, ValueError):
                continue
    return found


def value_of(given: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """Return the value of an attribute: a text, a number, a truth, a list, a dict or nothing."""
    if not isinstance(given, dict):
        if given is None:
            return None
        raise TypeError
    for kind, value in given.items():
        match kind:
            case "stringValue" | "string_value":
                return value if isinstance(value, str) else str(value)
            case "intValue" | "int_value":
                return int(value)
            case "doubleValue" | "double_value":
                return float(value)
            case "boolValue" | "bool_value" | "bytesValue" | "bytes_value":
                return value
            case "arrayValue" | "array_value" | "kvlistValue" | "kvlist_value":
                if depth >= DEPTH:
                    raise Malformed(NESTED)
                values = value.get("values") or ()
                if kind[0] == "a":
                    return [value_of(each, depth + 1) for each in values]
                return {str(each["key"]): value_of(each.get("value"), depth + 1) for each in values}
            case _:
                continue  # unknown fields must be ignored
    return None


def parse_json(data: bytes | str) -> Any:  # noqa: ANN401
    """Parse JSON; what it cannot be is a Malformed."""
    try:
        return json.loads(data)
    except RecursionError:
        raise Malformed(NESTED) from None
    except ValueError:
        raise Malformed(NO_JSON) from None
