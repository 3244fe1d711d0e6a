"""What a server says when it does not answer: its status, its message, and when to come back."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from karat.client.request import Json

SHOWN = 300  # characters of a message

TOO_LONG = re.compile(
    r"context.?(length|size|window)|too (long|large|many tokens)|maximum .{0,40}tokens"
    r"|exceed.{0,40}tokens|reduce the length",
    re.IGNORECASE | re.DOTALL,
)
FORM = re.compile(
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


@dataclass(frozen=True, slots=True)
class Complaint:
    """An answer other than 200, in so far as servers agree on what it looks like."""

    status: int
    message: str
    field: str = ""  # the field it is about, where the server says so
    wait: float | None = None  # seconds until a new attempt, where the server says so

    @property
    def too_long(self) -> bool:
        """Whether the request does not fit the model."""
        if self.status == 429:  # larger than what may be sent in a minute: waiting cannot help
            return "request too large" in self.message.lower()
        fits = self.about_form or not TOO_LONG.search(self.message)
        return self.status == 413 or (self._rejected and not fits)

    @property
    def unknown_model(self) -> bool:
        """Whether the server has no such model."""
        return self._rejected and not self.about_form and bool(UNKNOWN_MODEL.search(self.message))

    @property
    def about_form(self) -> bool:
        """Whether it is about structured output."""
        return bool(FORM.search(f"{self.field} {self.message}"))

    @property
    def no_credit(self) -> bool:
        """Whether the account is empty, which no waiting mends."""
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


def read_complaint(status: int, headers: Mapping[str, str], body: bytes) -> Complaint:
    """Read what the server said."""
    text = body.decode("utf-8", "replace")
    try:
        said: Json = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    message, named = _message(said)
    if 300 <= status < 400:
        message = f"to {_host(headers.get('location', ''))}"
    return Complaint(status, message or text, named.partition(".")[0], retry_after(headers))


def _host(url: str) -> str:
    """Return where an address is, without what may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "nowhere"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "elsewhere"


def _message(said: Json) -> tuple[str, str]:
    """Find the message, and the field it is about, in what servers make of an error."""
    if not isinstance(said, dict):
        return "", ""
    error = said.get("error", said.get("detail", said))
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

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after-ms": "20"})
    (2.5, 0.02)
    """
    wait = seconds(headers.get("retry-after-ms"))
    if wait is not None:
        return wait / 1000.0
    return seconds(headers.get("retry-after"), headers.get("date"))


def seconds(retry_after: str | None, date: str | None = None) -> float | None:
    """Read the header Retry-After, a number of seconds or a date; None where it is neither.

    The header Date shows the server's clock; without it a date is measured by our own.

    >>> seconds("1.5"), seconds("Wed, 21 Oct 2015 07:28:00 GMT"), seconds("soon")
    (1.5, 0.0, None)
    >>> seconds("Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT")
    30.0
    """
    if retry_after is None:
        return None
    try:
        number = float(retry_after)
    except ValueError:
        then = _moment(retry_after)
        if then is None:
            return None
        now = None if date is None else _moment(date)
        number = then - (time.time() if now is None else now)
    return max(number, 0.0) if math.isfinite(number) else None


def _moment(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
