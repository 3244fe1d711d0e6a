"""OTLP as protobuf: what OpenTelemetry's exporters send over HTTP.

The wire format is read here, and not by generated classes, for two reasons: a span that is broken
(such as a text that is not UTF-8) must not cost the whole request, and most spans of a request are
no retrieval calls, of which only the names of the attributes need to be looked at.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from findwell.io.read.traces.recognition import convention_of
from findwell.io.read.traces.span import (
    BODY_FIELDS,
    CROWDED,
    DEPTH,
    NESTED,
    NO_ID,
    NOT_A_SPAN,
    SPAN_ATTRIBUTES,
    CrowdedBodyError,
    MalformedSpanError,
    Span,
    SpanTally,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_PROTOBUF = "not valid protobuf"
BROKEN_GROUP = "request that is not valid protobuf"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
# numbers of fields of the messages of OTLP
NAME, ATTRIBUTE = 5, 9
TRACE_ID, SPAN_ID, PARENT_ID, START, END, EVENT, STATUS = 1, 2, 4, 7, 8, 11, 15
ERROR = 2  # the code of a status
NAME_TAG, ATTRIBUTE_TAG = NAME << 3 | BYTES, ATTRIBUTE << 3 | BYTES
TRACE_TAG, PARENT_TAG = TRACE_ID << 3 | BYTES, PARENT_ID << 3 | BYTES
KEY_TAG, VALUE_TAG = 1 << 3 | BYTES, 2 << 3 | BYTES
SIZES = {FIXED64: 8, FIXED32: 4}
SIGN = 1 << 63

Place: TypeAlias = tuple[int, int]  # where a value begins and ends
Field: TypeAlias = tuple[int, int, Any]  # number, wire type, and a number or a place


class CountedBody(bytes):
    """The bytes of a request, and how many of its fields may still be read."""

    left: int

    def __new__(cls, body: bytes, left: int = sys.maxsize) -> Self:
        """Make one of bytes; what was read of others does not count."""
        made = super().__new__(cls, body)
        made.left = left
        return made

    def count_fields(self, number: int) -> None:
        """Count fields that were read, or raise where there are too many."""
        self.left -= number
        if self.left < 0:
            raise CrowdedBodyError(f"the body has more than {BODY_FIELDS:,} fields")


def spans_of_body(body: CountedBody, tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request."""
    for group in _messages(body, (0, len(body)), 1, tally):
        resource: dict[str, Any] | None = None
        for scope in _messages(body, group, 2, tally):
            for place in _messages(body, scope, 2, tally):
                tally.count_span()
                try:
                    span = _span(body, *place, tally)
                except MalformedSpanError as error:
                    tally.malformed[str(error)] += 1
                    continue
                except (UnicodeDecodeError, struct.error, TypeError):
                    tally.malformed[NOT_A_SPAN] += 1
                    continue
                if span is not None:
                    if resource is None:
                        resource = _resource(body, group)
                    span.resource = resource
                    yield span


def _messages(body: CountedBody, place: Place, wanted: int, tally: SpanTally) -> list[Place]:
    """Return the places of one repeated field; what is broken is counted."""
    try:
        parts = fields(body, *place)
    except MalformedSpanError:
        tally.malformed[BROKEN_GROUP] += 1
        return []
    found = [(wire, inner) for number, wire, inner in parts if number == wanted]
    if any(wire != BYTES for wire, _ in found):
        tally.malformed[BROKEN_GROUP] += 1
    return [inner for wire, inner in found if wire == BYTES]


def _resource(body: CountedBody, group: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, wire, place in fields(body, *group):
        if number == 1 and wire == BYTES:
            found |= _attributes(body, place, 1)
    return found


def _span(body: CountedBody, start: int, end: int, tally: SpanTally) -> Span | None:
    """Return a span, or None where it is no retrieval call."""
    raw: dict[str, Place] = {}
    others = _attributes_of_span(body, start, end, raw)
    named = [place for place in others if body[place[0]] == NAME_TAG]
    name = _text(body, named[-1]) if named else ""
    convention = convention_of(raw, lambda place: _value(body, *place), name)
    if not convention:
        if tally.asked is not None and not any(body[at] == PARENT_TAG for at, _ in others):
            ids = [place for place in others if body[place[0]] == TRACE_TAG]
            trace = body[ids[0][0] + 2 : ids[0][1]].hex() if ids else ""
            tally.note_root(trace, raw, lambda place: _value(body, *place))
        return None
    span = _with_rest(body, [part for place in others for part in fields(body, *place)])
    span.name, span.convention = name, convention
    span.attributes = {key: _value(body, *place) for key, place in raw.items()}
    return span


def _text(body: CountedBody, place: Place) -> str:
    """Return the text of a field, given with its tag and length."""
    start, end = fields(body, *place)[0][2]
    return body[start:end].decode("utf-8", "replace")


def _attributes_of_span(  # noqa: C901, PLR0912 - calls would take longer than what they do
    body: CountedBody, start: int, end: int, raw: dict[str, Place]
) -> list[Place]:
    """Put the places of the attributes of a span into `raw`, and return those of its other fields.

    Most of what is sent are attributes, so what every exporter writes (a name of less than 128
    bytes, then the value up to the end) is read without another call.
    """
    others: list[Place] = []
    at, read, most = start, 0, min(body.left, SPAN_ATTRIBUTES)
    try:
        while at < end:
            read += 1
            if read > most:
                body.count_fields(read)
                raise MalformedSpanError(CROWDED)
            tag = body[at]
            if tag != ATTRIBUTE_TAG:
                size = body[at + 1]
                if tag & 0x87 == BYTES and size < 0x80:
                    stop = at + 2 + size
                elif tag & 0x87 == FIXED64:
                    stop = at + 9
                else:
                    stop = _end_of_field(body, at)
                others.append((at, stop))
                at = stop
                continue
            size, at = body[at + 1], at + 2
            if size > 0x7F:
                size, at = _varint(body, at - 1)
            stop, value = at + size, at + 2 + body[at + 1]
            if stop > end:
                raise MalformedSpanError(NO_PROTOBUF)
            if value < stop and body[at] == KEY_TAG and body[value] == VALUE_TAG:
                size, first = body[value + 1], value + 2
                if size > 0x7F:
                    size, first = _varint(body, value + 1)
                if first + size == stop and body[at + 1] < 0x80:
                    raw[body[at + 2 : value].decode()] = first, stop
                    at = stop
                    continue
            key, place = _key_value(body, at, stop)
            raw[key] = place
            at = stop
    except IndexError:
        raise MalformedSpanError(NO_PROTOBUF) from None
    body.count_fields(read)
    if at != end:
        raise MalformedSpanError(NO_PROTOBUF)
    return others


def _end_of_field(body: CountedBody, at: int) -> int:
    """Return where the field ends that begins here."""
    tag, at = _varint(body, at)
    wire = tag & 7
    if wire == BYTES:
        size, at = _varint(body, at)
        return at + size
    if wire == VARINT:
        return _varint(body, at)[1]
    if wire in SIZES:
        return at + SIZES[wire]
    raise MalformedSpanError(NO_PROTOBUF)  # groups, which OTLP never had


def _with_rest(body: CountedBody, rest: list[Field]) -> Span:
    """Return a span of all its fields but for name and attributes."""
    ids: dict[int, str] = {}
    times = {START: 0, END: 0}
    error = None
    events: list[tuple[str, dict[str, Any]]] = []
    for number, wire, place in rest:
        if wire == BYTES:
            if number in (TRACE_ID, SPAN_ID, PARENT_ID):
                ids[number] = body[place[0] : place[1]].hex()
            elif number == EVENT:
                events.append(_event(body, *place))
            elif number == STATUS:
                error = _error(body, *place)
        elif number in times and wire == FIXED64:
            times[number] = place
    trace, span, parent = (ids.get(number, "") for number in (TRACE_ID, SPAN_ID, PARENT_ID))
    # 16 and 8 bytes, which are not all 0
    if len(trace) != 32 or len(span) != 16 or not trace.strip("0") or not span.strip("0"):
        raise MalformedSpanError(NO_ID)
    inside = parent if parent.strip("0") else None
    return Span(trace, span, inside, "", times[START], times[END], {}, error, {}, events)


def _attributes(body: CountedBody, place: Place, wanted: int) -> dict[str, Any]:
    """Return the attributes that are this field of a message; those that are broken are left out.

    A resource that is broken in part still names its service.
    """
    found = {}
    for number, wire, inner in fields(body, *place):
        if number == wanted and wire == BYTES:
            try:
                key, value = _key_value(body, *inner)
                found[key] = _value(body, *value)
            except (MalformedSpanError, UnicodeDecodeError, struct.error):
                continue
    return found


def _event(body: CountedBody, start: int, end: int) -> tuple[str, dict[str, Any]]:
    name = ""
    for number, wire, place in fields(body, start, end):
        if number == 2 and wire == BYTES:
            name = body[place[0] : place[1]].decode("utf-8", "replace")
    return name, _attributes(body, (start, end), 3)


def _error(body: CountedBody, start: int, end: int) -> str | None:
    message, code = "", 0
    for number, wire, place in fields(body, start, end):
        if number == 2 and wire == BYTES:
            message = body[place[0] : place[1]].decode("utf-8", "replace")
        elif number == 3 and wire == VARINT:
            code = place
    return (message or "error") if code == ERROR else None


def _key_value(body: CountedBody, start: int, end: int) -> tuple[str, Place]:
    """Return the name of an attribute, and the place of its value."""
    key, value = "", (end, end)
    for number, wire, place in fields(body, start, end):
        if wire == BYTES and number == 1:
            key = body[place[0] : place[1]].decode()
        elif wire == BYTES and number == 2:
            value = place
    return key, value


def _value(body: CountedBody, start: int, end: int, depth: int = 0) -> Any:  # noqa: ANN401
    """Return the value of an attribute."""
    found: Any = None
    for number, wire, place in fields(body, start, end):
        if number == 1 and wire == BYTES:
            found = body[place[0] : place[1]].decode()
            continue
        match number, wire:
            case 2, 0:
                found = bool(place)
            case 3, 0:
                found = place - (SIGN << 1) if place & SIGN else place
            case 4, 1:
                found = struct.unpack("<d", place.to_bytes(8, "little"))[0]
            case 5 | 6, 2:
                found = _nested(body, place, depth, pairs=number == 6)
            case 7, 2:
                found = body[place[0] : place[1]].hex()
    return found


def _nested(body: CountedBody, place: Place, depth: int, *, pairs: bool) -> Any:  # noqa: ANN401
    if depth >= DEPTH:
        raise MalformedSpanError(NESTED)
    inner = [at for number, wire, at in fields(body, *place) if number == 1 and wire == BYTES]
    if not pairs:
        return [_value(body, start, end, depth + 1) for start, end in inner]
    named = (_key_value(body, start, end) for start, end in inner)
    return {key: _value(body, start, end, depth + 1) for key, (start, end) in named}


def fields(body: CountedBody, start: int, end: int) -> list[Field]:
    """Return the fields of a message between two places."""
    found: list[Field] = []
    at, most = start, body.left
    try:
        while at < end and len(found) <= most:
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
                found.append((tag >> 3, FIXED32, None))
                at += 4
            else:  # groups, which OTLP never had
                raise MalformedSpanError(NO_PROTOBUF)
    except IndexError:
        raise MalformedSpanError(NO_PROTOBUF) from None
    body.count_fields(len(found))
    if at != end:  # a length that points outside
        raise MalformedSpanError(NO_PROTOBUF)
    return found


def _varint(body: CountedBody, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place after it."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise MalformedSpanError(NO_PROTOBUF)
