"""What is asked of an OpenAI-compatible server, and how that ends.

A request ends in an answer or in a failure with a reason. What a server says when it does not
answer is an `ErrorResponse`; whoever sent the request decides what follows from it.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from findwell.judges.client.requests import Request

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

OK = 200
SHOWN = 300  # characters of a server's message
TOO_LONG = re.compile(
    r"context.?(length|size|window)|too (long|large|many tokens)|maximum .{0,40}tokens"
    r"|exceed.{0,40}tokens|reduce the length",
    re.IGNORECASE | re.DOTALL,
)
OUTPUT_MODE = re.compile(
    r"response.?format|json.?(schema|object|mode)|\bschema\b|structured.?output|grammar|guided",
    re.IGNORECASE,
)
UNKNOWN_MODEL = re.compile(
    r"model.?not.?found|(invalid|unknown|no such|not a valid) model"
    r"|model\b.{0,120}?(not found|not exist|not a valid)",
    re.IGNORECASE | re.DOTALL,
)
NO_CREDIT = re.compile(r"insufficient.?(quota|balance|credit|fund)|billing|payment", re.IGNORECASE)
MODERATION = re.compile(r"moderat|flagged|content.?(filter|policy|management)", re.IGNORECASE)


class Reason(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"  # the whole answer did not arrive in time
    UNREACHABLE = "unreachable"  # no connection could be made
    CONNECTION = "connection"  # it broke before the answer was complete
    SERVER = "server error"
    BODY = "unreadable body"  # not JSON, cut short, or not what a chat server sends
    BUSY = "rate limited"  # the server asked to wait for longer than the retry policy allows
    REJECTED = "rejected"  # the server does not accept this request
    TOO_LONG = "too long"  # the request does not fit the model
    CUT_OFF = "cut off"  # the answer reached the limit of tokens
    REFUSED = "refused"  # the model declined
    FILTERED = "filtered"  # a content filter stepped in
    EMPTY = "empty"  # an answer without text
    UNFIT = "unfit answer"  # complete, but not what was asked for, such as too few vectors
    BUDGET = "budget"  # not sent: it would have exceeded a limit
    STOPPED = "stopped"  # not sent: the server no longer answers anything
    UNFINISHED = "unfinished batch"  # it expired or was cancelled before this call was answered


TRANSIENT = frozenset(
    {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CONNECTION, Reason.SERVER, Reason.BODY}
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `cached` counts those of the prompt that the server had in its cache."""

    prompt: int
    completion: int
    cached: int = 0
    estimated: bool = False  # the server did not report them

    @property
    def total(self) -> int:
        """All tokens that are paid for."""
        return self.prompt + self.completion

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
        )


# what a model might have written at a place: tokens with their probabilities, the likeliest first
TokenChoices: TypeAlias = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote, complete."""

    content: str
    usage: Usage
    seconds: float  # from sending the request that was answered to the end of the answer
    output_mode: str = "none"  # the structured output that the server accepted
    stored: bool = False  # came from the cache: nothing was spent now
    vectors: list[list[Json]] | None = None  # of the texts of an `EmbeddingRequest`
    tokens: tuple[TokenChoices, ...] = ()  # one entry per token, where the request asks for them


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer, and what came in its place."""

    reason: Reason
    detail: str = ""
    content: str = ""  # what the model wrote before it was cut off, or its refusal
    usage: Usage | None = None
    status: int | None = None  # of the error response, if there was one

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


Outcome: TypeAlias = Answer | Failure


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A response that is no answer, as far as servers agree on what it looks like."""

    status: int
    message: str
    field: str = ""  # the field of the call it is about, where the server names one
    wait: float | None = None  # seconds until a new attempt, where the server names them

    @property
    def too_long(self) -> bool:
        """Whether the request does not fit the model."""
        if self.status == 429:  # larger than what may be sent per minute: waiting cannot help
            return "request too large" in self.message.lower()
        fits = self.about_output_mode or not TOO_LONG.search(self.message)
        return self.status == 413 or (self._rejected and not fits)

    @property
    def unknown_model(self) -> bool:
        """Whether the server has no such model."""
        named = bool(UNKNOWN_MODEL.search(self.message))
        return self._rejected and not self.about_output_mode and named

    @property
    def about_output_mode(self) -> bool:
        """Whether it is about structured output."""
        return bool(OUTPUT_MODE.search(f"{self.field} {self.message}"))

    @property
    def no_credit(self) -> bool:
        """Whether the account is empty, which waiting does not change."""
        return self.status == 402 or (self.status == 429 and bool(NO_CREDIT.search(self.message)))

    @property
    def moderated(self) -> bool:
        """Whether the content was turned down, not the caller."""
        return self.status in (400, 403) and bool(MODERATION.search(self.message))

    @property
    def _rejected(self) -> bool:
        return self.status in (400, 404, 422, 500)

    def named(self, fields: Iterable[str]) -> set[str]:
        """Return the fields of the call that it names: the one it points at, or all it mentions."""
        known = set(fields)
        if self.field in known:
            return {self.field}
        return known & set(re.findall(r"\w+", self.message))

    def __str__(self) -> str:
        line = " ".join(self.message.split())
        shown = "".join(letter if letter.isprintable() else "·" for letter in line)
        shown = shown[:SHOWN] + "…" if len(shown) > SHOWN else shown
        return f"HTTP {self.status}: {shown}" if shown else f"HTTP {self.status}"


def read_reply(reply: Reply, request: Request) -> Outcome | ErrorResponse:
    """Read what the server sent; any part may be missing or malformed."""
    if reply.status != OK:
        return read_error(reply.status, reply.headers, reply.body)
    try:
        body: Json = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        return Failure(Reason.BODY, f"not JSON: {error}")
    if not isinstance(body, dict):
        return Failure(Reason.BODY, "not a JSON object")
    if not body.get(request.answer_field) and body.get("error"):
        # some gateways send errors with status 200
        return read_error(_status(body["error"]), reply.headers, reply.body)
    return request.read(body, reply.seconds)


def _status(error: Json) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorResponse:
    """Read an error response."""
    text = body.decode("utf-8", "replace")
    try:
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    message, named = _message(parsed)
    if 300 <= status < 400:
        message = f"to {_host(headers.get('location', ''))}"
    return ErrorResponse(status, message or text, named.partition(".")[0], retry_after(headers))


def _host(url: str) -> str:
    """Return where an address is, without what may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "nowhere"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "elsewhere"


def _message(body: Json) -> tuple[str, str]:
    """Find the message, and the field it is about, in the bodies that servers send."""
    if not isinstance(body, dict):
        return "", ""
    error = body.get("error", body.get("detail", body))
    if isinstance(error, str):
        return error, ""
    if isinstance(error, dict):
        texts = [str(error[name]) for name in ("message", "code", "type") if error.get(name)]
        return " ".join(texts) or json.dumps(error), str(error.get("param") or "")
    return json.dumps(error), _place(error)


def _place(error: Json) -> str:
    """Return where a validator of the server found a mistake: ["body", "seed"] is the seed."""
    first = error[0] if isinstance(error, list) and error else None
    place = first.get("loc") if isinstance(first, dict) else None
    steps = place if isinstance(place, list) else []
    return next((str(step) for step in steps if step != "body"), "")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait, None if it does not say.

    Retry-After is a number of seconds or a date. The header Date shows the server's clock; without
    it a date is measured by our own.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after-ms": "20"})
    (2.5, 0.02)
    >>> late = {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}
    >>> retry_after(late), retry_after(late | {"date": "Wed, 21 Oct 2015 07:28:00 GMT"})
    (0.0, 30.0)
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(milliseconds, 0.0) / 1000.0
    wait = _number(headers.get("retry-after"))
    if wait is None and (then := _moment(headers.get("retry-after"))) is not None:
        now = _moment(headers.get("date"))
        wait = then - (time.time() if now is None else now)
    return None if wait is None else max(wait, 0.0)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(date: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
