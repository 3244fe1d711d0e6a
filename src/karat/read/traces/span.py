"""A span as every convention sees it, and the bounds of what is taken from one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from karat.read.traces.schema import Retrieved
from karat.read.values import text_id

# What is longer is cut, what is more is left out; both are counted. Nobody retrieves as much on
# purpose, and a store must not be filled by one span.
TEXT = 1 << 16  # characters of a question, a text or the metadata of a document
ID = 512  # characters of an id
DOCUMENTS = 1000  # of a call
ATTRIBUTES, VALUE = 64, 1024  # how many are kept, and how many characters of each
DEPTH = 32  # levels of nested values
YEAR_10000 = 253_402_300_800_000_000  # microseconds

NO_ID = "span without a valid trace id and span id"
NO_TIME = "span without a valid start time"
NOT_A_SPAN = "span of wrong types"
CUT_TEXT = f"text of more than {TEXT} characters, cut"
MANY_DOCUMENTS = f"span of more than {DOCUMENTS} documents, the rest left out"
WRONG_DOCUMENT = "document of wrong types, left out"
UNNAMED = "document without id and text"
NESTED = "value nested too deeply"

HEX = re.compile(r"[0-9a-f]{1,64}")
HALF = re.compile("[\ud800-\udfff]")  # one half of a surrogate pair, which no column holds


@dataclass(slots=True)
class Span:
    """One span, as it came, with attributes as Python values."""

    trace: str
    span: str
    parent: str | None
    name: str
    start: int  # nanoseconds since 1970
    end: int
    attributes: dict[str, Any]
    error: str | None = None
    resource: Mapping[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


class Malformed(ValueError):
    """A span that cannot be read; the reason is one of few, so that they can be counted."""


class TakenParts:
    """Takes texts, ids and documents out of spans, within bounds, and counts what was wrong.

    `id_from` is the field that holds the ids of documents, such as `metadata.source`.
    """

    def __init__(self, id_from: str | None = None) -> None:
        self.malformed: Counter[str] = Counter()
        self.id_from = id_from.removeprefix("metadata.").split(".") if id_from else None

    def text(self, value: object, most: int = TEXT) -> str | None:
        """Return a value as text, or None where there is none."""
        if value is None:
            return None
        if not isinstance(value, str):
            value = self.json(value)
        if len(value) > most:
            self.malformed[CUT_TEXT] += 1
            value = value[:most]
        return value if value.isascii() else HALF.sub("�", value)

    def short(self, value: object) -> str | None:
        """Return a name, such as that of a user: a text that is not empty."""
        found = self.text(value, VALUE)
        return found or None

    def json(self, value: object) -> str:
        """Return a value as JSON."""
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError, TypeError):
            self.malformed[NESTED] += 1
            return ""

    def question(self, value: object) -> str | None:
        """Return the question in an input: a text, or the text in an object of JSON."""
        if isinstance(value, str) and value[:1] in '{["':
            value = parsed(value)
        for _ in range(DEPTH):
            if isinstance(value, Mapping):
                value = next((value[key] for key in QUESTIONS if value.get(key)), None) or (
                    next(iter(value.values())) if len(value) == 1 else self.json(value)
                )
            elif isinstance(value, list) and value:
                value = value[-1]  # the last of several messages
            else:
                break
        return self.text(value) or None

    def document(
        self,
        number: int,
        span: str,
        *,
        id: object = None,  # noqa: A002
        text: object = None,
        score: object = None,
        metadata: object = None,
    ) -> Retrieved:
        """Return one document; where it has no id, its id is a field of its metadata or a hash."""
        text = self.text(text) if text is not None else None
        if self.id_from is not None:
            id = self._from_metadata(metadata) or id  # noqa: A001
        if id is None or id == "" or isinstance(id, bool | Mapping | list):
            if text:
                name = text_id(text)
            else:
                self.malformed[UNNAMED] += 1
                name = f"unnamed:{span}:{number}"
        else:
            name = id if isinstance(id, str) else str(id)[: ID + 1]
            if len(name) > ID:
                self.malformed[CUT_TEXT] += 1
                name = text_id(name)
            elif not name.isascii():
                name = HALF.sub("�", name)
        if metadata is not None and not isinstance(metadata, str):
            metadata = self.json(metadata)
        return Retrieved(name, text, number_of(score), self.text(metadata) or None)

    def _from_metadata(self, metadata: object) -> object:
        value = parsed(metadata) if isinstance(metadata, str) else metadata
        for key in self.id_from or ():
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def attributes(self, span: Span, taken: Any) -> list[tuple[str, str]]:  # noqa: ANN401
        """Return the attributes for which `taken` is not true, as texts, within bounds."""
        kept: list[tuple[str, str]] = []
        for given in (span.attributes, span.resource):
            for key, value in given.items():
                if len(kept) >= ATTRIBUTES:
                    return kept
                if taken(key) or value is None:
                    continue
                if not isinstance(value, str):
                    value = self.json(value)  # noqa: PLW2901
                key, value = key[:VALUE], value[:VALUE]  # noqa: PLW2901
                if not (key.isascii() and value.isascii()):
                    key, value = HALF.sub("�", key), HALF.sub("�", value)  # noqa: PLW2901
                kept.append((key, value))
        return kept


QUESTIONS = ("query", "question", "input", "query_str", "text", "inputs", "content", "messages")


def parsed(value: str) -> Any:  # noqa: ANN401
    """Return the value that a text of JSON holds, or the text itself."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def number_of(value: object) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, str):
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
    if not isinstance(value, str) or not value:
        return ""
    plain = value.lower().replace("-", "")
    if not HEX.fullmatch(plain):
        if len(value) in (12, 24) and value.endswith("="):
            try:
                return base64.b64decode(value, validate=True).hex()
            except binascii.Error:
                pass
        return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:32]
    return plain if plain.strip("0") else ""
