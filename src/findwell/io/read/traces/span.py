"""A span as every convention sees it, and the bounds of what is taken from one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

# What is longer is cut, what is more is left out; both are counted. Nobody retrieves as much on
# purpose, and a store must not be filled by one span.
TEXT = 1 << 16  # characters of a question, a text or the metadata of a document
ID = 512  # characters of an id
DOCUMENTS = 1000  # of a call
ATTRIBUTES, VALUE = 64, 1024  # how many are kept, and how many characters of each
DEPTH = 32  # levels of nested values
SPAN_ATTRIBUTES = 1 << 16  # of one span; who sends more is not describing a call
# what a request may hold, so that a small one that unpacks to millions of parts is not read
BODY_SPANS, BODY_FIELDS = 1 << 16, 1 << 20
NANOSECONDS = 253_402_300_800 * 10**9  # up to the year 10000
REDACTED = "__REDACTED__"  # what OpenInference writes in the place of contents that are hidden

# why something was left out or cut; what is counted has few names
NO_ID = "span without a valid trace id and span id"
NO_TIME = "span without a valid start time"
NOT_A_SPAN = "span of wrong types"
NESTED = "value nested too deeply"
CROWDED = f"span with more than {SPAN_ATTRIBUTES:,} attributes"
TOO_MANY_FIELDS = f"the body has more than {BODY_FIELDS:,} fields"
# how the fields begin whose messages take much more memory than their bytes: groups, attributes,
# values, events, links
FIELD_TAGS = bytes(
    number << 3 | 2 | longer for number in (1, 2, 5, 6, 9, 11, 13) for longer in (0, 0x80)
)

HEX = re.compile(r"[0-9a-f]{1,64}")


Said: TypeAlias = tuple[object, object, object, object]  # name, score, label, annotator


@dataclass(slots=True)
class Span:
    """One span of a retrieval call, as it came, with attributes as Python values."""

    trace: str
    span: str
    parent: str | None
    name: str
    start: int  # nanoseconds since 1970
    end: int
    attributes: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    resource: Mapping[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    convention: str = ""
    said: list[Said] = field(default_factory=list)  # annotations


# where spans tell what their application was asked
ASKED = (
    *("input.value", "langfuse.trace.input", "langfuse.observation.input", "mlflow.spanInputs"),
    *("gen_ai.prompt", "traceloop.entity.input", "gen_ai.input.messages"),
)


@dataclass(slots=True)
class SpanTally:
    """How many spans there were, what was wrong with some, and what whole traces were asked.

    `asked` has the inputs of spans that no other span is around, by trace; None where nobody wants
    to know them.
    """

    malformed: Counter[str] = field(default_factory=Counter)
    spans: int = 0
    asked: dict[str, Any] | None = None
    most: int = sys.maxsize  # spans
    fields: int = sys.maxsize  # of protobuf that may still be read

    def count_fields(self, number: int) -> None:
        """Count fields that were read, or raise where there are too many."""
        self.fields -= number
        if self.fields < 0:
            raise CrowdedBodyError(TOO_MANY_FIELDS)

    def check_tags(self, body: bytes) -> None:
        """Raise if so many bytes may begin a field of OTLP that reading them takes much memory."""
        if len(body) - len(body.translate(None, FIELD_TAGS)) > 4 * self.fields:
            raise CrowdedBodyError(TOO_MANY_FIELDS)

    def count_span(self) -> None:
        """Count a span, or raise where there are too many."""
        if self.spans >= self.most:
            raise CrowdedBodyError(f"the body has more than {self.most:,} spans")
        self.spans += 1

    def note_root(
        self,
        trace: object,
        attributes: Mapping[str, Any],
        value_of: Callable[[Any], Any],
    ) -> None:
        """Remember the input of a span that no other span is around."""
        if self.asked is not None:
            name = next((each for each in ASKED if each in attributes), None)
            if name is not None:
                self.asked[hex_id(trace)] = value_of(attributes[name])


class MalformedSpanError(ValueError):
    """A span that cannot be read; the reason is one of few, so that they can be counted."""


class CrowdedBodyError(Exception):
    """A request with more spans or fields than are read."""


def check_parts(text: bytes | str) -> None:
    """Raise if a text of JSON has too many parts: each takes far more memory than its letters.

    >>> check_parts("[0" + 3_000_000 * ",0" + "]")
    Traceback (most recent call last):
    findwell.io.read.traces.span.CrowdedBodyError: the body has more than 1,048,576 fields
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if sum(data.count(mark) for mark in (b"{", b"[", b",", b"\n")) > BODY_FIELDS:
        raise CrowdedBodyError(TOO_MANY_FIELDS)


def parsed(value: Any) -> Any:  # noqa: ANN401
    """Return the value that a text of JSON holds; a text that is no JSON, or no text, stays.

    >>> parsed('{"query": "How?"}'), parsed("How?"), parsed(7)
    ({'query': 'How?'}, 'How?', 7)
    """
    if not isinstance(value, str) or value[:1] not in OPENS_JSON:
        return value
    try:
        check_parts(value)
        return json.loads(value)
    except (ValueError, RecursionError, CrowdedBodyError):
        return value


OPENS_JSON = frozenset({"{", "[", '"', " ", "\n"})


def number_of(value: object) -> float | None:
    """Return a finite number, or None.

    >>> number_of("0.5"), number_of(True), number_of(float("nan")), number_of(10**400)
    (0.5, None, None, None)
    """
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str) and len(value) < 40:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def hex_id(value: object) -> str:
    """Return the id of a trace or span in hexadecimal and lower case; "" where there is none.

    UUIDs lose their dashes, ids in base64 are decoded, ids of another kind are hashed.

    >>> hex_id("4BF92F3577B34DA6A3CE929D0E0E4736"), hex_id("S/kvNXezTaajzpKdDg5HNg==")
    ('4bf92f3577b34da6a3ce929d0e0e4736', '4bf92f3577b34da6a3ce929d0e0e4736')
    >>> hex_id("0000000000000000"), hex_id(None)
    ('', '')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)[:100] if value.bit_length() < 1024 else None
    if not isinstance(value, str) or not value.strip():
        return ""
    plain = value.lower().replace("-", "")
    if not HEX.fullmatch(plain):
        if len(value) in BASE64 and value.endswith("="):
            try:
                return hex_id(base64.b64decode(value, validate=True).hex())
            except (binascii.Error, ValueError):
                pass
        return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:32]
    return plain if plain.strip("0") else ""


BASE64 = (12, 24)  # letters of a span id and of a trace id
SCALES = ((10**17, 1), (10**14, 10**3), (10**11, 10**6))  # smallest value, nanoseconds of the unit


def nanoseconds(value: object) -> int:
    """Return a time in nanoseconds since 1970; 0 where it is none.

    A text is ISO 8601, and in UTC if it names no zone. A number counts seconds, milliseconds,
    microseconds or nanoseconds: since 1973 its size tells which.

    >>> nanoseconds("2026-08-01T00:00:00Z") == nanoseconds(1785542400) == nanoseconds(1785542400000)
    True
    """
    if isinstance(value, str):
        if not value[:4].isdecimal() or len(value) > 40:
            return 0
        number = number_of(value)
        if number is None:
            try:
                point = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
            except ValueError:
                return 0
            point = point if point.tzinfo else point.replace(tzinfo=UTC)
            return int(point.timestamp() * 1_000_000) * 1000
        value = int(value) if value.isdecimal() else number
    if isinstance(value, datetime):
        point = value if value.tzinfo else value.replace(tzinfo=UTC)
        return int(point.timestamp() * 1_000_000) * 1000
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < NANOSECONDS:
        return 0
    scale = next((each for least, each in SCALES if value >= least), 10**9)
    return int(value * scale)
