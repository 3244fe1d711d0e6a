"""The two calls of OpenAI's protocol, chat completions and embeddings, as servers accept them.

Not every server knows every field of a call. One that rejects a call gets it again with a lesser
mode of structured output, or without the field it named. The format that worked is remembered, so
that later requests start with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from findwell.core.errors import OptionError
from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason, Usage
from findwell.judges.client.providers import OPENAI, OUTPUT_MODES, Provider

if TYPE_CHECKING:
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.protocol import ErrorResponse, Json, TokenChoices

LAYOUT = 1  # raised when what a key is made of changes, so that old keys no longer match
FINISHES = {
    "length": (Reason.CUT_OFF, "at the limit of tokens"),
    "content_filter": (Reason.FILTERED, "by the server's content filter"),
}
REWRITABLE = frozenset({400, 404, 422, 500})  # how servers answer to a field they do not know
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
ROUNDING = 1e-3  # by which the logarithm of a probability may be more than 0


class Message(NamedTuple):
    """One turn of the conversation that a model continues."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a language model; its key says when two of them are the same.

    `schema` is the JSON schema of the answer, `options` are further fields of the call
    (temperature, seed, max_tokens, …). Requests that differ only in `vote` are asked separately.
    `limit` is the longest answer that makes sense, in tokens. It is not part of the key, as a
    complete answer does not depend on it. `only_beginning` says that no more than the beginning of
    an answer is read, so that one that reaches the limit is not cut off.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Json] | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    vote: int = 0
    name: str = "answer"  # of the schema; servers allow letters, digits, _ and -
    limit: int | None = None
    only_beginning: bool = False

    path: ClassVar[str] = "/chat/completions"
    answer_field: ClassVar[str] = "choices"

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
        return {"messages": [message._asdict() for message in self.messages]}

    def fields(self) -> dict[str, Json]:
        """Return the options; an answer is to come in one piece."""
        limit = {} if self.limit is None or self._own_limit is not None else {OLD_LIMIT: self.limit}
        return {**self.options, **limit, "stream": False}

    def texts(self) -> list[str]:
        """Return all that the model reads, except the schema."""
        return [message.content for message in self.messages]

    @property
    def max_tokens(self) -> int | None:
        """The longest answer that is asked for."""
        return self.limit if self._own_limit is None else self._own_limit

    @property
    def _own_limit(self) -> int | None:
        for name in (OLD_LIMIT, NEW_LIMIT):
            most = self.options.get(name)
            if isinstance(most, int):
                return most
        return None

    def read(self, body: dict[str, Json], seconds: float) -> Outcome:
        """Read what a model wrote."""
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            return Failure(Reason.BODY, "no choices")
        usage = _usage(body.get("usage"))
        return _read_choice(choices[0], usage, seconds, only_beginning=self.only_beginning)


def _read_choice(
    choice: Json, usage: Usage | None, seconds: float, *, only_beginning: bool
) -> Outcome:
    message = choice.get("message") if isinstance(choice, dict) else None
    content = _text(message.get("content")) if isinstance(message, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict) or content is None:
        return Failure(Reason.BODY, "no message with a text", usage=usage)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return Failure(Reason.REFUSED, refusal, content or refusal, usage)
    finish = str(choice.get("finish_reason"))
    if finish in FINISHES and not (only_beginning and finish == "length"):
        return Failure(*FINISHES[finish], content, usage)
    tokens = _tokens(choice.get("logprobs"))
    if not content.strip() and not tokens:
        return Failure(Reason.EMPTY, "the model wrote nothing", content, usage)
    return Answer(content, usage or Usage(0, 0, estimated=True), seconds, tokens=tokens)


def _tokens(logprobs: Json) -> tuple[TokenChoices, ...]:
    """Read what the model might have written at each place; what is malformed is left out."""
    places = logprobs.get("content") if isinstance(logprobs, dict) else None
    found = []
    for place in places if isinstance(places, list) else ():
        listed = place.get("top_logprobs") if isinstance(place, dict) else None
        choices = {  # the token that was written may be missing among the likeliest
            text: chance
            for each in (place, *(listed if isinstance(listed, list) else ()))
            if (pair := _chance(each)) is not None
            for text, chance in [pair]
        }
        found.append(tuple(sorted(choices.items(), key=lambda pair: -pair[1])))
    return tuple(found)


def _chance(entry: Json) -> tuple[str, float] | None:
    """Return a token and its probability."""
    token = entry.get("token") if isinstance(entry, dict) else None
    chance = entry.get("logprob") if isinstance(entry, dict) else None
    if (
        not isinstance(token, str)
        or isinstance(chance, bool)
        or not isinstance(chance, int | float)
    ):
        return None
    if not chance <= ROUNDING:  # NaN, or no logarithm of a probability
        return None
    return token.encode("utf-8", "replace").decode(), min(math.exp(chance), 1.0)


def _text(content: Json) -> str | None:
    """Return the text of a message, empty for null; None if it is something else."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        # half of a surrogate pair can be neither stored nor printed
        return (content or "").encode("utf-8", "replace").decode()
    return None


def _usage(usage: Json) -> Usage | None:
    """Read how many tokens were used, None if the server does not report both counts."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = (_count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion"))
    if prompt is None or completion is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(prompt, completion, min(cached or 0, prompt))


def _count(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        return None
    return value


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to embed in one call: a list of numbers for each."""

    input: Sequence[str]

    path: ClassVar[str] = "/embeddings"
    answer_field: ClassVar[str] = "data"
    schema: ClassVar[None] = None
    name: ClassVar[str] = ""  # no schema, no name
    max_tokens: ClassVar[int] = 0  # no text is written

    def content(self) -> dict[str, Json]:
        """Return the texts."""
        return {"input": list(self.input)}

    def fields(self) -> dict[str, Json]:
        """Return nothing: servers of embeddings agree on no further field."""
        return {}

    def texts(self) -> Sequence[str]:
        """Return all that the model reads."""
        return self.input

    def read(self, body: dict[str, Json], seconds: float) -> Outcome:
        """Read one vector per text, in the order of the texts."""
        rows = body.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Failure(Reason.UNFIT, "no embeddings")
        if len(rows) != len(self.input):
            return Failure(Reason.UNFIT, f"{len(rows)} embeddings for {len(self.input)} texts")
        vectors: dict[object, list[Json]] = {}
        numbered = any(isinstance(row, dict) and "index" in row for row in rows)
        for place, row in enumerate(rows):
            vector = row.get("embedding") if isinstance(row, dict) else None
            number = row.get("index") if numbered and isinstance(row, dict) else place
            if not isinstance(vector, list):
                return Failure(Reason.UNFIT, "an embedding that is no list of numbers")
            if type(number) is not int or not 0 <= number < len(rows) or number in vectors:
                return Failure(Reason.UNFIT, "embeddings that are not numbered 0, 1, 2, …")
            vectors[number] = vector
        ordered = [vectors[number] for number in range(len(rows))]
        return Answer("", Usage(0, 0, estimated=True), seconds, vectors=ordered)


Request: TypeAlias = ChatRequest | EmbeddingRequest


@dataclass(frozen=True, slots=True)
class CallFormat:
    """A mode of structured output, as its place in `OUTPUT_MODES`, and the fields left out."""

    mode: int = 0
    left_out: frozenset[str] = frozenset()
    provider: Provider = field(default=OPENAI, repr=False, compare=False)

    @classmethod
    def for_provider(cls, provider: Provider) -> CallFormat:
        """Return the format that a provider is asked in first."""
        return cls(OUTPUT_MODES.index(provider.modes[0]), provider.left_out, provider)

    def __and__(self, other: CallFormat) -> CallFormat:
        both = self.left_out | other.left_out
        return CallFormat(max(self.mode, other.mode), both, self.provider)

    def lesser(self) -> CallFormat:
        """Return the format with the next lesser mode of structured output that is worth asking."""
        modes = [OUTPUT_MODES.index(mode) for mode in (*self.provider.modes, OUTPUT_MODES[-1])]
        return replace(self, mode=min(mode for mode in modes if mode > self.mode))

    def mode_for(self, request: Request) -> str:
        """Return the mode of structured output that a request asks for."""
        return "none" if request.schema is None else OUTPUT_MODES[self.mode]

    def body(self, request: Request, model: str) -> dict[str, Json]:
        """Return the call in this format."""
        return {"model": model, **request.content(), **self._fields(request)}

    def fields(self, request: Request) -> set[str]:
        """Return the names of the fields that could be left out."""
        return set(self._fields(request)) - {"response_format"}

    def _fields(self, request: Request) -> dict[str, Json]:
        fields = request.fields()
        if OLD_LIMIT in fields and OLD_LIMIT in self.left_out:
            fields.setdefault(NEW_LIMIT, fields[OLD_LIMIT])
        other = self.provider.renamed
        fields = {other.get(name, name): value for name, value in fields.items()}
        fields = {name: value for name, value in fields.items() if name not in self.left_out}
        mode = self.mode_for(request)
        if mode == "json_schema" and self.provider.schema_as_value:
            fields["response_format"] = {"type": "json_object", "value": dict(request.schema or {})}
        elif mode == "json_schema":
            schema: dict[str, Json] = {"name": request.name, "strict": True}
            schema["schema"] = dict(request.schema or {})
            fields["response_format"] = {"type": mode, "json_schema": schema}
        elif mode == "json_object":
            fields["response_format"] = {"type": mode}
        return fields


@dataclass(slots=True)
class ServerSupport:
    """What one server was seen to accept."""

    format: CallFormat = field(default_factory=CallFormat)
    modes: set[str] = field(default_factory=set)  # of structured output, in which it has answered
    answered: bool = False

    def note(self, used: CallFormat, request: Request) -> None:
        """Remember that a call in this format was answered."""
        self.answered = True
        if request.schema is None:  # says nothing about modes
            used = replace(used, mode=self.format.mode)
        else:
            self.modes.add(OUTPUT_MODES[used.mode])
        self.format &= used

    def fallback(
        self, used: CallFormat, request: Request, error: ErrorResponse
    ) -> CallFormat | None:
        """Return the format to try next, None if the error is not about the format."""
        if error.status not in REWRITABLE or error.too_long or error.unknown_model:
            return None
        mode, fields = used.mode_for(request), used.fields(request)
        lesser = used.lesser() if mode != "none" else None
        if error.about_output_mode and error.field not in fields:
            return lesser
        if named := error.named(fields):
            return replace(used, left_out=used.left_out | named)
        return None if mode in self.modes else lesser

    def summary(self) -> dict[str, Json]:
        """Return for the manifest how calls differed from what was intended."""
        modes: list[Json] = [mode for mode in OUTPUT_MODES if mode in self.modes]
        left_out: list[Json] = [*sorted(self.format.left_out)]
        return {"forms": modes, "left_out": left_out}
