"""What calls cost, what a job has spent, and the limits at which it stops."""

from __future__ import annotations

import json
import math
import re
import tomllib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, OptionError, nearest
from findwell.io.storage.spool import refuse_device
from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason, Usage, parse_json

if TYPE_CHECKING:
    from findwell.judges.client.cache import Cache
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.protocol import ChatRequest, Json, Request

ASCII_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4  # the role and the marks around a message
MILLION = 1_000_000
NUMBERS = re.compile(r"\s*(?:\d+\.?\d*|\.\d+)\s*(,\s*(?:\d+\.?\d*|\.\d+)\s*){1,2}", re.ASCII)
EXAMPLE = '{"MODEL": {"prompt": 0.15, "completion": 0.6}}, per million tokens'
TYPICAL_ANSWER = 200  # tokens, until answers have been seen
LONG_ANSWER = 4000  # tokens: a higher limit is to stop a model, and says nothing about answers
PERCENTILES = (50, 90, 99)
COUNTS = (  # of a budget, in the manifest
    *("requests", "answered", "stored", "repeated", "calls", "prompt_tokens", "cached_tokens"),
    *("completion_tokens", "guessed_calls", "unanswered_calls"),
)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in any currency; `cached` is for prompt tokens served again.

    >>> from findwell.judges.client.protocol import Usage
    >>> Prices(prompt=2.0, completion=8.0).cost(Usage(500_000, 250_000))
    3.0
    """

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion, self.cached or 0.0):
            if not (math.isfinite(price) and price >= 0):
                raise OptionError(f"a price must be a number of at least 0, not {price!r}")

    def halved(self) -> Prices:
        """Return the prices of calls that are sent as a batch: half."""
        cached = None if self.cached is None else self.cached / 2
        return Prices(self.prompt / 2, self.completion / 2, cached)

    def cost(self, usage: Usage) -> float:
        """Return what a call costs."""
        cached = self.prompt if self.cached is None else self.cached
        paid = (usage.prompt - usage.cached) * self.prompt + usage.cached * cached
        return (paid + usage.completion * self.completion) / MILLION


def load_prices(source: str | Path, model: str) -> Prices:
    """Read the prices of a model from a TOML or JSON file with one table per model.

    Numbers instead of a file are the prices themselves: of prompts, answers and, if given,
    cached prompts.

    >>> load_prices("0.15, 0.6", "any model")
    Prices(prompt=0.15, completion=0.6, cached=None)
    """
    where = str(source)
    if NUMBERS.fullmatch(where):
        return Prices(*map(float, where.split(",")))
    try:
        refuse_device(Path(source))
        text = Path(source).read_text(encoding="utf-8")
        tables = tomllib.loads(text) if where.endswith(".toml") else parse_json(text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except (ValueError, RecursionError) as error:
        kind = "TOML" if where.endswith(".toml") else "JSON"
        raise InputError(f"not valid {kind}: {error}", where=where, fix=EXAMPLE) from None
    if not isinstance(tables, dict) or not all(isinstance(row, dict) for row in tables.values()):
        raise InputError("not one table of prices per model", where=where, fix=EXAMPLE)
    if model not in tables:
        known = ", ".join(tables) or "none"
        suggestion = f"{nearest(model, tables)} (known: {known})".strip()
        raise OptionError(f"no prices for the model {model!r}", where=where, fix=suggestion)
    return _prices(tables[model], f"{where}: {model}")


def _prices(table: Mapping[str, Any], where: str) -> Prices:
    wrong = [
        name
        for name, price in table.items()
        if name not in ("prompt", "completion", "cached")
        or isinstance(price, bool)
        or not isinstance(price, int | float)
    ]
    missing = [name for name in ("prompt", "completion") if name not in table]
    if wrong or missing:
        what = f"unknown or not a number: {', '.join(wrong)}" if wrong else ""
        what = what or f"no price for {' and '.join(missing)}"
        raise InputError(what, where=where, fix=EXAMPLE)
    return Prices(**table)


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has: one per four ASCII characters, one per other character.

    Measured with OpenAI's cl100k: English, code and German have 3.8 to 4.0 characters per token
    (dense JSON 2.7); in other scripts a character is .7 (Cyrillic) to 1.7 tokens (Hangul).

    >>> estimate_tokens("The battery lasts six hours.")
    7
    """
    others = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return math.ceil((len(text) - others) / ASCII_PER_TOKEN) + others


def estimate_prompt(request: Request) -> int:
    """Estimate how many tokens the prompt of a request has, with its schema."""
    count = sum(estimate_tokens(text) + TOKENS_PER_MESSAGE for text in request.texts())
    return count + (estimate_tokens(json.dumps(request.schema)) if request.schema else 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent; None means no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise OptionError(f"{name} must be a number of at least 0, not {limit!r}")


class Capacity(Enum):
    """Whether there is room for one more call."""

    NOW = "now"
    LATER = "later"  # perhaps, if one that is under way needs less than was expected
    NEVER = "never"


@dataclass(slots=True)
class CallBudget:
    """Counts calls, tokens, cost and time; says when there is no room for another call.

    A call that is under way counts with what such calls have used so far, so that a limit is
    exceeded by no more than the error of the last estimates. One budget may serve several jobs,
    one after another.
    """

    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    calls: int = 0  # sent, also those that were turned down; not those that found no server
    requests: int = 0  # = answered + stored + repeated + failed, when a job has ended
    answered: int = 0
    stored: int = 0  # answered from the cache
    repeated: int = 0  # the same as another request of the job
    failed: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompts, those in the server's own cache
    completion_tokens: int = 0
    guessed_calls: int = 0  # calls whose tokens the server did not report
    unanswered_calls: int = 0  # of these, calls that timed out or broke off and may be billed
    surcharge: float = 0.0  # what calls have cost beyond these prices
    under_way: str = ""  # what is waited for, in words: batches, or a server that is gone
    _seconds: array[float] = field(default_factory=lambda: array("d"), repr=False)
    _waited: float = 0.0  # their sum
    _under_way: int = 0  # calls
    _reserved: Usage = field(default_factory=lambda: Usage(0, 0))
    _guesses: int = 0  # what was guessed of the prompts that the server then counted
    _counted: int = 0
    _counted_answers: int = 0
    _counted_calls: int = 0

    def __post_init__(self) -> None:
        if self.limits.max_cost is not None and self.prices is None:
            raise OptionError(
                "a limit on cost needs prices", fix="give a file of prices, or both prices"
            )

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers so far."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def spent(self) -> Usage:
        """All tokens so far as one call."""
        return Usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)

    @property
    def cost(self) -> float | None:
        """What it has cost so far, if prices are known."""
        return None if self.prices is None else self.prices.cost(self.spent) + self.surcharge

    def expect(self, request: Request) -> Usage:
        """Estimate what a call will use, from what calls have used so far."""
        scale = self._counted / self._guesses if self._guesses else 1.0
        most = request.max_tokens
        typical = TYPICAL_ANSWER if most is None or most > LONG_ANSWER else most
        if self._counted_calls:
            mean = round(self._counted_answers / self._counted_calls)
            typical = mean if most is None else min(mean, most)
        return Usage(round(estimate_prompt(request) * scale), typical)

    def worst_case(self, request: Request) -> Usage:
        """Count a call without an answer as if the model had written all that it may."""
        self.unanswered_calls += 1
        expected = self.expect(request)
        most = expected.completion if request.max_tokens is None else request.max_tokens
        return Usage(expected.prompt, most, estimated=True)

    def capacity(self, request: Request) -> Capacity:
        """Say whether a call fits in addition to what was spent and what is under way."""
        if self.limits.max_calls is not None and self.calls >= self.limits.max_calls:
            return Capacity.LATER if self._under_way else Capacity.NEVER
        if self.limits.max_tokens is None and self.limits.max_cost is None:
            return Capacity.NOW
        alone = self.spent + self.expect(request)
        if not self._within(alone):
            return Capacity.NEVER if not self._reserved.total else Capacity.LATER
        return Capacity.NOW if self._within(alone + self._reserved) else Capacity.LATER

    def refusal(self) -> str:
        """Say why there is no room."""
        limits = ((name, getattr(self.limits, name)) for name in self.limits.__slots__)
        given = (f"{name} {limit:g}" for name, limit in limits if limit is not None)
        return f"one more call would exceed {' or '.join(given)}"

    def _within(self, usage: Usage) -> bool:
        tokens, cost = self.limits.max_tokens, self.limits.max_cost
        return (tokens is None or usage.total <= tokens) and (
            cost is None or self.prices is None or self.prices.cost(usage) + self.surcharge <= cost
        )

    def begin(self, request: Request) -> Usage:
        """Count a call that is about to be sent, and reserve what it may use."""
        expected = self.expect(request)
        self.calls += 1
        self._under_way += 1
        self._reserved += expected
        return expected

    def end(self, request: Request, expected: Usage, outcome: Outcome | None) -> None:
        """Replace what was reserved by what a call used; None is a call that ended in an error.

        A refused connection is not a call: nothing was sent.
        """
        self._under_way -= 1
        if isinstance(outcome, Failure) and outcome.reason is Reason.UNREACHABLE:
            self.calls -= 1
        self._reserved = Usage(
            self._reserved.prompt - expected.prompt, self._reserved.completion - expected.completion
        )
        used = outcome.usage if outcome is not None else None
        if used is None:
            return
        if used.estimated:
            self.guessed_calls += 1
        else:
            self._counted_calls += 1
            self._guesses += estimate_prompt(request)
            self._counted += used.prompt
            self._counted_answers += used.completion
        self.prompt_tokens += used.prompt
        self.cached_tokens += used.cached
        self.completion_tokens += used.completion

    def note(self, outcome: Outcome) -> None:
        """Count how a request ended."""
        if not isinstance(outcome, Answer):
            self.failed[outcome.reason] += 1
        elif outcome.stored:
            self.stored += 1
        else:
            self.answered += 1
            self._seconds.append(outcome.seconds)
            self._waited += outcome.seconds

    def latency(self) -> dict[str, float]:
        """Return percentiles of the seconds that answers took."""
        if not self._seconds:
            return {}
        import numpy as np  # noqa: PLC0415

        values = np.percentile(np.asarray(self._seconds), PERCENTILES)
        return {f"p{each}": float(value) for each, value in zip(PERCENTILES, values, strict=True)}

    def spent_so_far(self) -> str:
        """Say in one line what was spent so far, for a progress bar."""
        cost = "" if self.cost is None else f", cost {self.cost:.4g}"
        wait = f", {self._waited / self.answered:.2g} s per call" if self.answered else ""
        stored = f", {self.stored:,} from the cache" if self.stored else ""
        failed = f", {self.failed.total():,} failed" if self.failed else ""
        lost = f", {unanswered_note(self.unanswered_calls)}" if self.unanswered_calls else ""
        return f"{self.tokens:,} tokens{cost}{wait}{stored}{failed}{lost}{self.under_way}"

    def summary(self) -> dict[str, Json]:
        """Return all counts, for a manifest."""
        failed: Json = {str(reason): count for reason, count in sorted(self.failed.items())}
        counts = {name: getattr(self, name) for name in COUNTS}
        return counts | {"failed": failed, "cost": self.cost, "seconds": dict(self.latency())}


def unanswered_note(calls: int) -> str:
    """Say that calls without an answer are counted, as they may be billed.

    >>> unanswered_note(1)
    '1 call without an answer counted as if it were billed'
    """
    many = f"{calls:,} calls" if calls != 1 else "1 call"
    were = "they were" if calls != 1 else "it were"
    return f"{many} without an answer counted as if {were} billed"


def estimate_usage(request: Request, content: str) -> Usage:
    """Estimate what a call used whose server did not report it."""
    return Usage(estimate_prompt(request), estimate_tokens(content), estimated=True)


@dataclass(frozen=True, slots=True)
class Forecast:
    """An estimate: the calls that would be made, with their tokens.

    `cost` needs prices; `seconds` needs a check of the model, which has measured a call.
    """

    requests: int
    calls: int
    stored: int  # known from the cache
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float | None = None


def forecast(
    requests: Iterable[ChatRequest],
    endpoint: Endpoint,
    *,
    cache: Cache | None = None,
    prices: Prices | None = None,
    answer_tokens: int = TYPICAL_ANSWER,
    seen: set[bytes] | None = None,
) -> Forecast:
    """Estimate what asking would take: each distinct request once, if its answer is not known.

    `seen` are requests that were counted before; those of this forecast are added to them. The
    tokens of prompts follow `estimate_tokens`; an answer has `answer_tokens`, or the request's own
    limit if that is lower.
    """
    keyed = [(request.key(endpoint), request) for request in requests]
    seen = set() if seen is None else seen
    distinct = {key: request for key, request in keyed if key not in seen}
    seen |= distinct.keys()
    known = cache.get(list(distinct)) if cache is not None else {}
    asked = [request for key, request in distinct.items() if key not in known]
    limits = (request.max_tokens for request in asked)
    answers = sum(answer_tokens if most is None else min(most, answer_tokens) for most in limits)
    usage = Usage(sum(map(estimate_prompt, asked)), answers)
    return Forecast(
        requests=len(keyed),
        calls=len(asked),
        stored=len(known),
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        cost=None if prices is None else prices.cost(usage),
    )
