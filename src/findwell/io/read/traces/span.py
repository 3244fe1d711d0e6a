"""A span as every convention sees it, and what is taken out of one, within bounds."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from findwell.io.read.objects import chunk_names, first_named, look_up, place_id
from findwell.io.read.traces.schema import Annotation, RetrievalCall, RetrievedDocument
from findwell.io.read.values import text_id
from findwell.io.read.vocabulary import (
    ID_NAMES,
    METADATA_NAMES,
    SCORE_NAMES,
    SOURCE_NAMES,
    START_NAMES,
    TEXT_NAMES,
)

# What is longer is cut, what is more is left out; both are counted. No call retrieves as much on
# purpose, and a store must not be filled by one span.
TEXT = 1 << 16  # characters of a question, a text or the metadata of a document
ID = 512  # characters of an id
DOCUMENTS = 1000  # of a call
ATTRIBUTES, VALUE = 64, 1024  # how many are kept, and how many characters of each
DEPTH = 32  # levels of nested values
SPAN_ATTRIBUTES = 1 << 16  # of one span; more do not describe a call
# what a request may hold, so that a small one that unpacks to millions of parts is not read
BODY_SPANS, BODY_FIELDS = 1 << 16, 1 << 20
NANOSECONDS = 253_402_300_800 * 10**9  # up to the year 10000
REDACTED_TEXT = "__REDACTED__"  # what OpenInference writes instead of contents that are hidden

# why something was left out or cut; what is counted has few names
NO_ID = "span without a valid trace id and span id"
NO_TIME = "span without a valid start time"
NOT_A_SPAN = "span of wrong types"
NESTED = "value nested too deeply"
CROWDED_SPAN = f"span with more than {SPAN_ATTRIBUTES:,} attributes"
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


# attributes that hold what an application was asked
QUESTION_ATTRIBUTES = (
    *("input.value", "langfuse.trace.input", "langfuse.observation.input", "mlflow.spanInputs"),
    *("gen_ai.prompt", "traceloop.entity.input", "gen_ai.input.messages"),
)


@dataclass(slots=True)
class SpanTally:
    """How many spans there were, what was wrong with some, and what whole traces were asked.

    `asked` has the inputs of spans that no other span is around, by trace; None where they are
    not asked for.
    """

    malformed: Counter[str] = field(default_factory=Counter)
    spans: int = 0
    asked: dict[str, Any] | None = None
    search: str | None = None  # name of spans that are searches, whatever their type
    searches: int = 0  # spans of that name
    names: Counter[str] = field(default_factory=Counter)  # of spans that are not searches
    most: int = sys.maxsize  # spans
    fields: int = sys.maxsize  # of protobuf that may still be read

    def count_fields(self, number: int) -> None:
        """Count fields that were read, or raise where there are too many."""
        self.fields -= number
        if self.fields < 0:
            raise CrowdedBodyError(TOO_MANY_FIELDS)

    def check_tags(self, body: bytes) -> None:
        """Raise if more bytes than usual may begin a field of OTLP: reading them takes memory."""
        if len(body) - len(body.translate(None, FIELD_TAGS)) > 4 * self.fields:
            raise CrowdedBodyError(TOO_MANY_FIELDS)

    def count_span(self) -> None:
        """Count a span, or raise where there are too many."""
        if self.spans >= self.most:
            raise CrowdedBodyError(f"the body has more than {self.most:,} spans")
        self.spans += 1

    def note_root(
        self, trace: object, attributes: Mapping[str, Any], value_of: Callable[[Any], Any]
    ) -> None:
        """Remember the input of a span that no other span is around."""
        if self.asked is not None:
            name = next((each for each in QUESTION_ATTRIBUTES if each in attributes), None)
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
    """Return the value that a text of JSON holds; anything else stays as it is.

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
    """Return the id of a trace or span in hexadecimal and lower case; "" if it is missing.

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
    """Return a time in nanoseconds since 1970; 0 where it is invalid.

    A text is ISO 8601, and in UTC if it names no zone. A number counts seconds, milliseconds,
    microseconds or nanoseconds: since 1973 its size shows which.

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


CUT_TEXT = f"text of more than {TEXT} characters: cut"
CUT_NAME = f"id or name of more than {ID} characters: replaced by a hash, or cut"
MANY_DOCUMENTS = f"call with more than {DOCUMENTS} documents: the rest left out"
WRONG_DOCUMENT = "document of wrong types: left out"
UNNAMED_DOCUMENT = "document without id and text"
NO_FIELD = "document without the field that should hold its id"

HALF_PAIR = re.compile("[\ud800-\udfff]")  # one half of a surrogate pair, which no column holds
QUESTIONS = (
    *("query", "question", "input", "query_str", "query_text", "search_query", "user_input"),
    *("text", "inputs", "query_bundle", "prompt", "content", "messages", "kwargs", "args"),
)
LISTS = (
    *("documents", "docs", "results", "retrieved", "nodes", "source_nodes", "contexts", "context"),
    *("chunks", "hits", "matches", "records", "outputs", "output", "data", "result"),
)
RERANKED_FIELDS = ("documents", "docs", "nodes", "candidates", "results", "passages", "texts")
WRAPPING_FIELDS = ("node", "document", "kwargs", "chunk", "doc")  # of objects around a document
SCORE_FIELDS = (*SCORE_NAMES, ("relevance_score", "higher"))


class TakenParts:
    """Takes texts, ids and documents out of spans, within bounds, and counts what was wrong.

    `id_from` is the field that holds the ids of documents, such as `metadata.chunk`.
    """

    def __init__(self, id_from: str | None = None, malformed: Counter[str] | None = None) -> None:
        self.malformed: Counter[str] = Counter() if malformed is None else malformed
        self.id_from = id_from

    def begin_call(
        self,
        span: Span,
        *,
        taken: Callable[[str], bool],
        session: str = "session.id",
        user: str = "user.id",
    ) -> RetrievalCall:
        """Return what the calls of all conventions have in common.

        `taken` says which attributes have a column of their own, `session` and `user` which hold
        these names.
        """
        if not 0 < span.start < NANOSECONDS:
            raise MalformedSpanError(NO_TIME)
        given = span.attributes
        return RetrievalCall(
            span.trace,
            span.span,
            span.start // 1000,
            span.convention,
            parent=span.parent,
            latency_ms=(span.end - span.start) / 1e6
            if span.start <= span.end < NANOSECONDS
            else None,
            error=self.name(span.error if span.error is not None else given.get("error.type")),
            service=self.name(span.resource.get("service.name")),
            session=self.name(given.get(session)),
            user=self.name(given.get(user)),
            attributes=self.attributes(span, lambda key: key in (session, user) or taken(key)),
            annotations=self.annotations(span.said),
        )

    def text(self, value: object, most: int = TEXT, reason: str = CUT_TEXT) -> str | None:
        """Return a value as text, or None if it is missing."""
        if value is None:
            return None
        if not isinstance(value, str):
            value = self.json(value)
        if len(value) > most:
            self.malformed[reason] += 1
            value = value[:most]
        return value if value.isascii() else HALF_PAIR.sub("\ufffd", value)

    def name(self, value: object) -> str | None:
        """Return a name, such as that of a user: a text that is not empty."""
        return self.text(value, VALUE, CUT_NAME) or None

    def json(self, value: object) -> str:
        """Return a value as JSON."""
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError, TypeError):
            self.malformed[NESTED] += 1
            return ""

    def question(self, value: object) -> str | None:
        """Return the question in an input: a text, or the text in an object of JSON.

        >>> TakenParts().question('{"query_bundle": {"query_str": "How long?", "embedding": null}}')
        'How long?'
        """
        value = parsed(value)
        for _ in range(DEPTH):
            if isinstance(value, Mapping):
                if not value:
                    return None
                asked = next((value[key] for key in QUESTIONS if value.get(key)), None)
                alone = next(iter(value.values())) if len(value) == 1 else None
                if asked is None and not isinstance(alone, str | Mapping | list):
                    break
                value = alone if asked is None else asked
            elif isinstance(value, list) and value:
                value = value[-1]  # the last of several messages
            else:
                break
        text = (self.text(value) or "").strip()
        return None if text == REDACTED_TEXT else text or None

    def documents(self, value: object, span: str) -> list[RetrievedDocument] | None:
        """Return the documents in an output: a list, an object that holds one, or JSON of either.

        None means that the output does not say, or not so that it can be read. Texts in a list are
        ids, unless one of them has a blank in it: then all are texts.
        """
        value = _listed(parsed(value))
        if value is None:
            return None
        if len(value) > DOCUMENTS:
            self.malformed[MANY_DOCUMENTS] += 1
            value = value[:DOCUMENTS]
        texts = any(isinstance(each, str) and len(each.split(None, 1)) > 1 for each in value)
        found = []
        for number, entry in enumerate(value):
            doc = self._document(entry, number, span, texts=texts)
            if doc is None:
                self.malformed[WRONG_DOCUMENT] += 1
            else:
                found.append(doc)
        return found if found or not value else None

    def _document(
        self,
        entry: Any,  # noqa: ANN401
        number: int,
        span: str,
        *,
        texts: bool,
    ) -> RetrievedDocument | None:
        paired = None
        if isinstance(entry, Sequence) and not isinstance(entry, str):
            if len(entry) != 2:
                return None
            entry, paired = entry  # a document and its score
            if not isinstance(paired, float | int | None) and number_of(paired) is None:
                return None
        if isinstance(entry, str | int) and not isinstance(entry, bool):
            text, own = (entry, None) if texts else (None, entry)
            return self.document(number, span, id=own, text=text, score=paired)
        if not isinstance(entry, Mapping):
            return None
        held = (entry[key] for key in WRAPPING_FIELDS if isinstance(entry.get(key), Mapping))
        inner = next(held, None)
        score = paired if paired is not None else score_of(entry)
        if inner is not None:
            score = score_of(inner) if score is None else score
            entry = inner
        text = first_named(entry, TEXT_NAMES)
        own = first_named(entry, ID_NAMES)
        metadata = first_named(entry, METADATA_NAMES)
        if text is None and own is None and metadata is None:
            return None
        return self.document(
            number, span, id=own, text=text, score=score, metadata=metadata, whole=entry
        )

    def document(
        self,
        number: int,
        span: str,
        *,
        id: object = None,  # noqa: A002
        text: object = None,
        score: object = None,
        metadata: Any = None,  # noqa: ANN401
        whole: Mapping[str, Any] | None = None,
    ) -> RetrievedDocument:
        """Return one document; where it has no id, a field of its metadata or a hash serves.

        `whole` is the object that it came in.
        """
        content = self.text(text)
        if not isinstance(metadata, str | Mapping):
            metadata = None
        name = self._id_from(id, metadata, whole) if self.id_from else None
        if name is None:
            name = self._name(id)
        if name is None and metadata:
            name = self._id_in(parsed(metadata))
        if name is None and content:
            name = text_id(content)
        if name is None:
            self.malformed[UNNAMED_DOCUMENT] += 1
            name = f"unnamed-{span}-{number}"
        value = number_of(score)
        if value is None and metadata and "score" in metadata:  # a key of it, or within its JSON
            held = parsed(metadata)
            value = score_of(held) if isinstance(held, Mapping) else None
        if isinstance(metadata, Mapping):
            metadata = self.json(metadata)
        elif metadata:
            metadata = self._unescaped(metadata)
        return RetrievedDocument(name, content, value, self.text(metadata) or None)

    def _unescaped(self, text: str) -> str:
        """Return JSON with its letters as they are, where rules of redaction can find them."""
        held = parsed(text) if "\\u" in text else text
        return text if isinstance(held, str) else self.json(held)

    def _id_in(self, metadata: object) -> str | None:
        """Return the id of a chunk that its metadata holds, or its place where that is known."""
        if not isinstance(metadata, Mapping):
            return None
        start, source = (first_named(metadata, names) for names in (START_NAMES, SOURCE_NAMES))
        placed = type(start) is int and source is not None
        name = self._name(first_named(metadata, chunk_names(placed=placed)))
        return self._name(place_id(source, start)) if name is None and placed else name

    def _id_from(
        self, own: object, metadata: object, whole: Mapping[str, Any] | None
    ) -> str | None:
        held = parsed(metadata)
        path = str(self.id_from)
        head, _, rest = path.partition(".")
        places = [({"id": own, "metadata": held}, path), (held, path), (whole, path)]
        places += [(held, rest)] if head in METADATA_NAMES else []
        for where, name in places:
            found = self._name(look_up(where, name)) if isinstance(where, Mapping) else None
            if found is not None:
                return found
        self.malformed[NO_FIELD] += 1
        return None

    def _name(self, value: object) -> str | None:
        """Return an id as text; None where it is invalid."""
        if type(value) is not str:
            if isinstance(value, bool) or not isinstance(value, int | str):
                return None
            value = str(value) if isinstance(value, str) or value.bit_length() < 1024 else ""
        if len(value) > ID:
            self.malformed[CUT_NAME] += 1
            return text_id(value)
        if not value.isascii():
            value = HALF_PAIR.sub("\ufffd", value)
        return value if value.strip() else None

    def attributes(self, span: Span, taken: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return the attributes that have no column of their own, as texts, within bounds."""
        kept: list[tuple[str, str]] = []
        for given in (span.attributes, span.resource):
            for key, value in given.items():
                if value is None or key in NEVER or taken(key):
                    continue
                if len(kept) >= ATTRIBUTES:
                    return kept
                written = self._unescaped(value) if isinstance(value, str) else self.json(value)
                name, written = key[:VALUE], written[:VALUE]
                if not (name.isascii() and written.isascii()):
                    name, written = HALF_PAIR.sub("\ufffd", name), HALF_PAIR.sub("\ufffd", written)
                kept.append((name, written))
        return kept

    def annotations(self, said: Iterable[Said]) -> list[Annotation]:
        """Return what was said about a call: name, score, label, annotator; a name is needed."""
        found = []
        for name, score, label, annotator in said:
            called = self.name(name)
            if called is not None:
                value = float(score) if isinstance(score, bool) else number_of(score)
                found.append(Annotation(called, value, self.name(label), self.name(annotator)))
        return found


# of the resource: they name the program that wrote the span, and say nothing about the call
NEVER = frozenset(
    {
        *("service.name", "service.instance.id", "telemetry.sdk.language", "telemetry.sdk.name"),
        *("telemetry.sdk.version", "telemetry.auto.version", "process.pid"),
    }
)


def score_of(entry: Mapping[str, Any]) -> float | None:
    """Return the score of a document; a distance has its sign turned, so that more is better."""
    for name, direction in SCORE_FIELDS:
        number = number_of(entry.get(name))
        if number is not None:
            return -number if direction == "lower" else number
    return None


def _listed(value: Any) -> list[Any] | None:  # noqa: ANN401
    """Return the list of documents in an output; None if it has none."""
    for _ in range(DEPTH):
        if isinstance(value, str):
            return None if not value.strip() else [value]
        if isinstance(value, list):
            return value
        if not isinstance(value, Mapping):
            return None
        held = next((name for name in LISTS if isinstance(value.get(name), list | Mapping)), None)
        if held is None:
            text = first_named(value, (*TEXT_NAMES, *ID_NAMES))
            return None if text is None else [value]  # one document
        value = value[held]
    return None
