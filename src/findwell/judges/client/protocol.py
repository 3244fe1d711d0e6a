"""The two calls of OpenAI's protocol, chat completions and embeddings, and how they end.

A request ends in an answer or in a failure with a reason. What a server says when it does not
answer is an `ErrorResponse`; the sender of the request decides what follows from it.

Not every server knows every field of a call. One that rejects a call gets it again with a lesser
mode of structured output, or without the field it named. The format that worked is remembered, so
that later requests start with it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from findwell.core.errors import OptionError
from findwell.judges.client.providers import OPENAI, OUTPUT_MODES, Provider

if TYPE_CHECKING:
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.reranker import RerankService


# --- how a request ends ---------------------------------------------------------------------------

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

OK = 200
SHOWN_CHARACTERS = 300  # characters of a server's message
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


TRANSIENT_REASONS = frozenset(
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
    """Why there is no answer, and what came instead."""

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
    """A response that is not an answer, as far as servers agree on what it looks like."""

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
        shown = shown[:SHOWN_CHARACTERS] + "…" if len(shown) > SHOWN_CHARACTERS else shown
        return f"HTTP {self.status}: {shown}" if shown else f"HTTP {self.status}"


def dig(value: Json, *path: str | int) -> Json:
    """Return what is inside of a value; None where there is no such thing.

    >>> dig({"error": [{"loc": "body"}]}, "error", 0, "loc"), dig([], 0), dig("text", "loc")
    ('body', None, None)
    """
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def parse_json(data: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Parse JSON; all that is wrong with it is a ValueError.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_object(data: str | bytes) -> dict[str, Json]:
    """Return the JSON object that a text is; an empty one for any other text."""
    try:
        found = parse_json(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def listed(value: Json) -> list[Json]:
    """Return a list; none of its entries if it is something else."""
    return value if isinstance(value, list) else []


def read_reply(reply: Reply, request: Request) -> Outcome | ErrorResponse:
    """Read what the server sent; any part may be missing or malformed."""
    if reply.status != OK:
        return read_error(reply.status, reply.headers, reply.body)
    try:
        body: Json = parse_json(reply.body)
    except ValueError as error:
        return Failure(Reason.BODY, f"not JSON: {error}")
    if isinstance(body, list) and isinstance(request, RerankRequest):
        body = {request.answer_field: body}
    if not isinstance(body, dict):
        return Failure(Reason.BODY, "not a JSON object")
    if not body.get(request.answer_field) and body.get("error"):
        # some gateways send errors with status 200
        code = dig(body, "error", "code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return read_error(status, reply.headers, reply.body)
    return request.read(body, reply.seconds)


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorResponse:
    """Read an error response."""
    text = body.decode("utf-8", "replace")
    message, named = _message(json_object(text))
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


def _message(body: dict[str, Json]) -> tuple[str, str]:
    """Find the message, and the field it is about, in the bodies that servers send."""
    if not body:
        return "", ""
    error = body.get("error", body.get("detail", body))
    if isinstance(error, str):
        return error, ""
    if isinstance(error, dict):
        texts = [str(error[name]) for name in ("message", "code", "type") if error.get(name)]
        return " ".join(texts) or json.dumps(error), str(error.get("param") or "")
    # where a validator of the server found a mistake: ["body", "seed"] is the seed
    steps = listed(dig(error, 0, "loc"))
    return json.dumps(error), next((str(step) for step in steps if step != "body"), "")


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


# --- requests -------------------------------------------------------------------------------------

KEY_LAYOUT = 1  # raised when what a key is made of changes, so that old keys no longer match
FINISHES = {
    "length": (Reason.CUT_OFF, "at the limit of tokens"),
    "content_filter": (Reason.FILTERED, "by the server's content filter"),
}
# how servers answer to a field they do not know
REWRITABLE_STATUSES = frozenset({400, 404, 422, 500})
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
            KEY_LAYOUT,
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
        if not listed(body.get("choices")):
            return Failure(Reason.BODY, "no choices")
        usage, message = _usage(body.get("usage")), dig(body, "choices", 0, "message")
        content = _text(message.get("content")) if isinstance(message, dict) else None
        if content is None:
            return Failure(Reason.BODY, "no message with a text", usage=usage)
        refusal = dig(message, "refusal")
        if isinstance(refusal, str) and refusal:
            return Failure(Reason.REFUSED, refusal, content or refusal, usage)
        finish = str(dig(body, "choices", 0, "finish_reason"))
        if finish in FINISHES and not (self.only_beginning and finish == "length"):
            return Failure(*FINISHES[finish], content, usage)
        places = listed(dig(body, "choices", 0, "logprobs", "content"))
        tokens = tuple(map(_token_choices, places))
        if not content.strip() and not tokens:
            return Failure(Reason.EMPTY, "the model wrote nothing", content, usage)
        return Answer(content, usage or Usage(0, 0, estimated=True), seconds, tokens=tokens)


def _token_choices(place: Json) -> TokenChoices:
    """Read what the model might have written at a place; what is malformed is left out."""
    found: dict[str, float] = {}
    # the token that was written may be missing among the likeliest
    for entry in (place, *listed(dig(place, "top_logprobs"))):
        token, chance = dig(entry, "token"), dig(entry, "logprob")
        if not isinstance(token, str) or isinstance(chance, bool):
            continue
        # more than 0 is not the logarithm of a probability, nor is NaN
        if isinstance(chance, int | float) and chance <= ROUNDING:
            found[token.encode("utf-8", "replace").decode()] = min(math.exp(chance), 1.0)
    return tuple(sorted(found.items(), key=lambda pair: -pair[1]))


def _text(content: Json) -> str | None:
    """Return the text of a message, empty for null; None if it is something else."""
    if isinstance(content, list):
        texts = [dig(part, "text") for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        # half of a surrogate pair can be neither stored nor printed
        return (content or "").encode("utf-8", "replace").decode()
    return None


def _usage(usage: Json) -> Usage | None:
    """Read how many tokens were used, None if the server does not report both counts."""
    names = (["prompt_tokens"], ["completion_tokens"], ["prompt_tokens_details", "cached_tokens"])
    prompt, completion, cached = (_count(dig(usage, *path)) for path in names)
    if prompt is None or completion is None:
        return None
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
            vector = dig(row, "embedding")
            number = dig(row, "index") if numbered else place
            if not isinstance(vector, list):
                return Failure(Reason.UNFIT, "an embedding that is not a list of numbers")
            if type(number) is not int or not 0 <= number < len(rows) or number in vectors:
                return Failure(Reason.UNFIT, "embeddings that are not numbered 0, 1, 2, …")
            vectors[number] = vector
        ordered = [vectors[number] for number in range(len(rows))]
        return Answer("", Usage(0, 0, estimated=True), seconds, vectors=ordered)


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A question and texts to score for it, as a service wants them: a number for each text."""

    question: str
    input: Sequence[str]
    service: RerankService

    schema: ClassVar[None] = None
    name: ClassVar[str] = ""
    max_tokens: ClassVar[int] = 0

    @property
    def path(self) -> str:
        """Where the service scores."""
        return self.service.path

    @property
    def answer_field(self) -> str:
        """The field of the scores; a list that stands alone is put there."""
        return self.service.answer or "results"

    def content(self) -> dict[str, Json]:
        """Return question and texts."""
        return {self.service.query: self.question, self.service.texts: list(self.input)}

    def fields(self) -> dict[str, Json]:
        """Return what the service is told in addition."""
        return dict(self.service.fields)

    def texts(self) -> Sequence[str]:
        """Return all that the model reads."""
        return [self.question, *self.input]

    def read(self, body: dict[str, Json], seconds: float) -> Outcome:
        """Read one score per text, in the order of the texts; servers send the best first."""
        rows = body.get(self.answer_field)
        if not isinstance(rows, list) or len(rows) != len(self.input):
            return Failure(Reason.UNFIT, f"not one score for each of {len(self.input)} texts")
        scores: dict[object, list[Json]] = {}
        for row in rows:
            number, score = dig(row, "index"), dig(row, self.service.score)
            if type(number) is not int or not 0 <= number < len(rows) or number in scores:
                return Failure(Reason.UNFIT, "scores that are not numbered 0, 1, 2, …")
            if isinstance(score, bool) or not isinstance(score, int | float):
                return Failure(Reason.UNFIT, "a score that is not a number")
            scores[number] = [score]
        ordered = [scores[number] for number in range(len(rows))]
        return Answer("", Usage(0, 0, estimated=True), seconds, vectors=ordered)


Request: TypeAlias = ChatRequest | EmbeddingRequest | RerankRequest


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
        if error.status not in REWRITABLE_STATUSES or error.too_long or error.unknown_model:
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
