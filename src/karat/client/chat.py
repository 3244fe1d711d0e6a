"""A question to a language model: a value, whose key says when two of them are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from karat.client.answers import Answer, Failure, Outcome, Reason, Usage
from karat.errors import OptionError

if TYPE_CHECKING:
    from karat.client.endpoint import Endpoint
    from karat.client.request import Json

LAYOUT = 1  # raised when what a key is made of changes, so that old keys no longer fit
FINISHES = {
    "length": (Reason.CUT_OFF, "at the limit of tokens"),
    "content_filter": (Reason.FILTERED, "by the server's content filter"),
}


class Message(NamedTuple):
    """One turn of the conversation that a model continues."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a language model.

    `schema` is the JSON schema of the answer, `options` are further fields of the call
    (temperature, seed, max_tokens, …). Requests that differ only in `vote` are asked separately.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Json] | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    vote: int = 0
    name: str = "answer"  # of the schema; servers allow letters, digits, _ and -

    @property
    def path(self) -> str:
        """Where it is sent, below the base URL."""
        return "/chat/completions"

    @property
    def holds(self) -> str:
        """The field of an answer that has what was asked for."""
        return "choices"

    def key(self, endpoint: Endpoint) -> bytes:
        """Return the hash of everything that the answer depends on."""
        parts = [
            LAYOUT,
            endpoint.identity,
            endpoint.model,
            self.messages,
            # the order of the fields of a schema is the order in which a model writes them
            None if self.schema is None else [self.name, self.schema],
            sorted(self.options.items()),
            self.vote,
        ]
        try:
            text = json.dumps(parts, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise OptionError(f"a request is not JSON: {error}") from None
        return hashlib.sha256(text.encode()).digest()

    def content(self) -> dict[str, Json]:
        """Return the conversation."""
        turns: list[Json] = [
            {"role": message.role, "content": message.content} for message in self.messages
        ]
        return {"messages": turns}

    def fields(self) -> dict[str, Json]:
        """Return the options; an answer is to come whole."""
        return {**self.options, "stream": False}

    def texts(self) -> list[str]:
        """Return all that the model reads, but for the schema."""
        return [message.content for message in self.messages]

    @property
    def most_tokens(self) -> int | None:
        """The longest answer that is asked for."""
        for name in ("max_tokens", "max_completion_tokens"):
            most = self.options.get(name)
            if isinstance(most, int):
                return most
        return None

    def read(self, said: dict[str, Json], seconds: float) -> Outcome:
        """Read what a model wrote."""
        choices = said.get("choices")
        if not isinstance(choices, list) or not choices:
            return Failure(Reason.BODY, "no choices")
        return _read_choice(choices[0], _usage(said.get("usage")), seconds)


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
