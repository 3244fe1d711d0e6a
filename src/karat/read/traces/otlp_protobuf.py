"""OTLP as protobuf: what OpenTelemetry's exporters send over HTTP.

The wire format is read here, and not by generated classes, for two reasons: a span that is broken
(such as a text that is not UTF-8) must not cost the whole request, and most spans of a request are
no retrieval calls, of which only the names of the attributes need to be looked at.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from karat.read.traces.recognition import is_retrieval
from karat.read.traces.span import DEPTH, NESTED, NO_ID, NOT_A_SPAN, Malformed, Span

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

NO_PROTOBUF = "not valid protobuf"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
ERROR = 2  # the code of a status
SIGN = 1 << 63

Field = tuple[int, int, Any]  # number, wire type, and a number or (start, end)


def spans_of_body(body: bytes, malformed: Counter[str], seen: list[int]) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request; `seen` counts all spans."""
    try:
        for number, wire, place in fields(body, 0, len(body)):
            if number == 1 and wire == BYTES:
                yield from _resource_spans(body, place, malformed, seen)
    except Malformed as error:
        malformed[str(error)] += 1


def _resource_spans(
    body: bytes, place: tuple[int, int], malformed: Counter[str], seen: list[int]
) -> Iterator[Span]:
    resource: dict[str, Any] | None = None
    parts = [part for part in fields(body, *place) if part[1] == BYTES]
    for number, _, scope in parts:
        if number != 2:
            continue
        for inner, wire, span in fields(body, *scope):
            if inner != 2 or wire != BYTES:
                continue
            seen[0] += 1
            try:
                found = _span(body, *span)
            except Malformed as error:
                malformed[str(error)] += 1
                continue
            except (UnicodeDecodeError, struct.error):
                malformed[NOT_A_SPAN] += 1
                continue
            if found is not None:
                if resource is None:
                    resource = _resource(body, parts)
                found.resource = resource
                yield found


def _resource(body: bytes, parts: list[Field]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, _, place in parts:
        if number == 1:
            found |= _readable(body, _listed(body, place, 1))
    return found


def _span(body: bytes, start: int, end: int) -> Span | None:
    """Return a span, or None where it is no retrieval call."""
    raw: dict[str, tuple[int, int]] = {}
    rest: list[Field] = []
    name = ""
    for part in fields(body, start, end):
        number = part[0]
        if number == 9:
            key, value = _key_value(body, *part[2])
            raw[key] = value
        elif number == 5:
            name = body[part[2][0] : part[2][1]].decode("utf-8", "replace")
        else:
            rest.append(part)
    if not is_retrieval(raw, lambda place: _value(body, *place), name):
        return None
    ids: dict[int, str] = {}
    times = {7: 0, 8: 0}
    error = None
    events: list[tuple[str, dict[str, Any]]] = []
    for number, wire, place in rest:
        if number in (1, 2, 4) and wire == BYTES:
            ids[number] = body[place[0] : place[1]].hex()
        elif number in times and wire == FIXED64:
            times[number] = place
        elif number == 11 and wire == BYTES:
            events.append(_event(body, *place))
        elif number == 15 and wire == BYTES:
            error = _error(body, *place)
    trace, span = ids.get(1, ""), ids.get(2, "")
    if len(trace) != 32 or len(span) != 16 or not trace.strip("0") or not span.strip("0"):
        raise Malformed(NO_ID)
    attributes = {key: _value(body, *place) for key, place in raw.items()}
    parent = ids.get(4, "").strip("0") and ids[4]
    return Span(
        trace, span, parent or None, name, times[7], times[8], attributes, error, {}, events
    )


def _listed(body: bytes, place: tuple[int, int], wanted: int) -> dict[str, tuple[int, int]]:
    """Return the attributes that are this field of a message, as places."""
    return dict(
        _key_value(body, *inner)
        for number, wire, inner in fields(body, *place)
        if number == wanted and wire == BYTES
    )


def _readable(body: bytes, places: dict[str, tuple[int, int]]) -> dict[str, Any]:
    found = {}
    for key, place in places.items():
        try:
            found[key] = _value(body, *place)
        except (Malformed, UnicodeDecodeError, struct.error):
            continue  # a resource that is broken in part still names its service
    return found


def _event(body: bytes, start: int, end: int) -> tuple[str, dict[str, Any]]:
    name = ""
    for number, wire, place in fields(body, start, end):
        if number == 2 and wire == BYTES:
            name = body[place[0] : place[1]].decode()
    return name, _readable(body, _listed(body, (start, end), 3))


def _error(body: bytes, start: int, end: int) -> str | None:
    message, code = "", 0
    for number, wire, place in fields(body, start, end):
        if number == 2 and wire == BYTES:
            message = body[place[0] : place[1]].decode("utf-8", "replace")
        elif number == 3 and wire == VARINT:
            code = place
    return (message or "error") if code == ERROR else None


def _key_value(body: bytes, start: int, end: int) -> tuple[str, tuple[int, int]]:
    """Return the name of an attribute, and the place of its value."""
    # almost every attribute is two fields with lengths of one or few bytes
    key, value = "", (end, end)
    for number, wire, place in fields(body, start, end):
        if wire != BYTES:
            continue
        if number == 1:
            key = body[place[0] : place[1]].decode()
        elif number == 2:
            value = place
    return key, value


def _value(body: bytes, start: int, end: int, depth: int = 0) -> Any:  # noqa: ANN401
    """Return the value of an attribute."""
    found: Any = None
    for number, wire, place in fields(body, start, end):
        if wire == BYTES and number == 1:
            found = body[place[0] : place[1]].decode()
        elif wire == VARINT and number == 2:
            found = bool(place)
        elif wire == VARINT and number == 3:
            found = place - (SIGN << 1) if place & SIGN else place
        elif wire == FIXED64 and number == 4:
            found = struct.unpack("<d", place.to_bytes(8, "little"))[0]
        elif wire == BYTES and number in (5, 6):
            if depth >= DEPTH:
                raise Malformed(NESTED)
            inner = [at for n, w, at in fields(body, *place) if n == 1 and w == BYTES]
            if number == 5:
                found = [_value(body, *at, depth + 1) for at in inner]
            else:
                pairs = (_key_value(body, *at) for at in inner)
                found = {key: _value(body, *at, depth + 1) for key, at in pairs}
        elif wire == BYTES and number == 7:
            found = body[place[0] : place[1]].hex()
    return found


def fields(body: bytes, start: int, end: int) -> list[Field]:
    """Return the fields of a message between two places."""
    found: list[Field] = []
    at = start
    try:
        while at < end:
            tag = body[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(body, at - 1)
            wire = tag & 7
            if wire == BYTES:
                size = body[at]
                at += 1
                if size >= 0x80:
                    size, at = _varint(body, at - 1)
                stop = at + size
                found.append((tag >> 3, BYTES, (at, stop)))
                at = stop
            elif wire == VARINT:
                value, at = _varint(body, at)
                found.append((tag >> 3, VARINT, value))
            elif wire == FIXED64:
                found.append((tag >> 3, FIXED64, int.from_bytes(body[at : at + 8], "little")))
                at += 8
            elif wire == FIXED32:
                at += 4
            else:  # groups, which OTLP never had
                raise Malformed(NO_PROTOBUF)
    except IndexError:
        raise Malformed(NO_PROTOBUF) from None
    if at != end:  # a length that points outside
        raise Malformed(NO_PROTOBUF)
    return found


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed(NO_PROTOBUF)
