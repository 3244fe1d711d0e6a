"""How a request ends: an answer, or a failure with a reason; nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from karat.judges.asking.complaint import Complaint, read_complaint

if TYPE_CHECKING:
    from karat.judges.asking.request import Json

OK = 200


class Reason(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"  # the whole answer did not arrive in time
    UNREACHABLE = "unreachable"  # no connection could be made
    CONNECTION = "connection"  # it broke before the answer was whole
    SERVER = "server error"
    BODY = "unreadable body"  # not JSON, cut short, or not what a chat server sends
    BUSY = "rate limited"  # asked to wait for longer than our patience
    REJECTED = "rejected"  # the server does not take this request
    TOO_LONG = "too long"  # the request does not fit the model
    CUT_OFF = "cut off"  # the answer reached the limit of tokens
    REFUSED = "refused"  # the model declined
    FILTERED = "filtered"  # a content filter stepped in
    EMPTY = "empty"  # an answer without text
    BUDGET = "budget"  # not sent: it would have passed a limit
    STOPPED = "stopped"  # not sent: the server no longer answers anything


PASSING = frozenset(
    {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CONNECTION, Reason.SERVER, Reason.BODY}
)
FINISHES = {
    "length": (Reason.CUT_OFF, "at the limit of tokens"),
    "content_filter": (Reason.FILTERED, "by the server's content filter"),
}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `cached` of the prompt's came from the server's own cache."""

    prompt: int
    completion: int
    cached: int = 0
    estimated: bool = False  # the server did not say

    @property
    def total(self) -> int:
        """All that is paid for."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote, whole."""

    content: str
    usage: Usage
    seconds: float  # from sending the request that was answered to the end of the answer
    form: str = "none"  # of structured output, as it was accepted by the server
    stored: bool = False  # came from the cache: nothing was spent now


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer, and what came in its place."""

    reason: Reason
    detail: str = ""
    content: str = ""  # what the model wrote before it was cut off, or its refusal
    usage: Usage | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


Outcome: TypeAlias = Answer | Failure


@dataclass(frozen=True, slots=True)
class Reply:
    """What came over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


def read_reply(reply: Reply) -> Outcome | Complaint:
    """Read what the server sent: bodies may lack anything and hold anything."""
    if reply.status != OK:
        return read_complaint(reply.status, reply.headers, reply.body)
    try:
        said: Json = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        return Failure(Reason.BODY, f"not JSON: {error}")
    if not isinstance(said, dict):
        return Failure(Reason.BODY, "not a JSON object")
    choices = said.get("choices")
    if not choices and said.get("error"):  # some gateways send errors with status 200
        return read_complaint(_status(said["error"]), reply.headers, reply.body)
    if not isinstance(choices, list) or not choices:
        return Failure(Reason.BODY, "no choices")
    return _read_choice(choices[0], _usage(said.get("usage")), reply.seconds)


def _read_choice(choice: Json, usage: Usage | None, seconds: float) -> Outcome:
    message = choice.get("message") if isinstance(choice, dict) else None
    content = _text(message.get("content")) if isinstance(message, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict) or content is None:
        return Failure(Reason.BODY, "no message with a text", usage=usage)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return Failure(Reason.REFUSED, refusal, content or refusal, usage)
    if fault := FINISHES.get(str(choice.get("finish_reason"))):
        return Failure(*fault, content, usage)
    if not content.strip():
        return Failure(Reason.EMPTY, "the model wrote nothing", content, usage)
    return Answer(content, usage or Usage(0, 0, estimated=True), seconds)


def _text(content: Json) -> str | None:
    """Return the text of a message, None if it is something else; null is a text of nothing."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        # half of a surrogate pair can be neither stored nor printed
        return (content or "").encode("utf-8", "replace").decode()
    return None


def _usage(said: Json) -> Usage | None:
    """Read how many tokens were used, None if the server does not say so plainly."""
    if not isinstance(said, dict):
        return None
    prompt, completion = (_count(said.get(f"{name}_tokens")) for name in ("prompt", "completion"))
    if prompt is None or completion is None:
        return None
    details = said.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(prompt, completion, min(cached or 0, prompt))


def _count(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        return None
    return value


def _status(error: Json) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
