"""What is asked: a value, whose key says when two of them are the same question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from karat.errors import OptionError

if TYPE_CHECKING:
    from karat.judges.asking.endpoint import Endpoint

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LAYOUT = 1  # raised when what a key is made of changes, so that old keys no longer fit


class Message(NamedTuple):
    """One turn of the conversation that a model continues."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    `schema` is the JSON schema of the answer, `options` are further fields of the call
    (temperature, seed, max_tokens, …). Requests that differ only in `vote` are asked separately.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Json] | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    vote: int = 0
    name: str = "answer"  # of the schema; servers allow letters, digits, _ and -

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

    @property
    def text(self) -> str:
        """All that the model reads, but for the schema."""
        return "\n".join(message.content for message in self.messages)

    @property
    def most_tokens(self) -> int | None:
        """The longest answer that is asked for."""
        for name in ("max_tokens", "max_completion_tokens"):
            most = self.options.get(name)
            if isinstance(most, int):
                return most
        return None
