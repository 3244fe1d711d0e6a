"""How a request ends: an answer, or a failure with a reason; nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from karat.client.complaint import Complaint, read_complaint

if TYPE_CHECKING:
    from karat.client.request import Json, Request

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
    UNFIT = "unfit answer"  # whole, but not what was asked for, such as too few vectors
    BUDGET = "budget"  # not sent: it would have passed a limit
    STOPPED = "stopped"  # not sent: the server no longer answers anything


PASSING = frozenset(
    {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CONNECTION, Reason.SERVER, Reason.BODY}
)


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
    vectors: list[list[Json]] | None = None  # of texts, where these were to be embedded


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer, and what came in its place."""

    reason: Reason
    detail: str = ""
    content: str = ""  # what the model wrote before it was cut off, or its refusal
    usage: Usage | None = None
    status: int | None = None  # of the server's complaint, if there was one

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


def read_reply(reply: Reply, request: Request) -> Outcome | Complaint:
    """Read what the server sent: bodies may lack anything and hold anything."""
    if reply.status != OK:
        return read_complaint(reply.status, reply.headers, reply.body)
    try:
        said: Json = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        return Failure(Reason.BODY, f"not JSON: {error}")
    if not isinstance(said, dict):
        return Failure(Reason.BODY, "not a JSON object")
    if not said.get(request.holds) and said.get("error"):  # some gateways send it with status 200
        return read_complaint(_status(said["error"]), reply.headers, reply.body)
    return request.read(said, reply.seconds)


def _status(error: Json) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
