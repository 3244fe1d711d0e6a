"""What a job would cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karat.client.answers import Usage
from karat.client.budget import TYPICAL_ANSWER
from karat.client.prices import Prices, estimate_prompt

if TYPE_CHECKING:
    from karat.client.cache import Cache
    from karat.client.chat import ChatRequest
    from karat.client.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Forecast:
    """A guess: calls that would be made, with their tokens; `cost` needs prices."""

    requests: int
    calls: int
    stored: int  # known from the cache
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def forecast(
    requests: Iterable[ChatRequest],
    endpoint: Endpoint,
    *,
    cache: Cache | None = None,
    prices: Prices | None = None,
    answer_tokens: int = TYPICAL_ANSWER,
    seen: set[bytes] | None = None,
) -> Forecast:
    """Guess what asking would take: each distinct request once, if it is not known yet.

    `seen` are requests that were counted before; those of this forecast are added to them.

    The tokens of prompts follow the rule of `estimate_tokens`; an answer has `answer_tokens`, or
    the request's own limit if that is lower.
    """
    keyed = [(request.key(endpoint), request) for request in requests]
    seen = set() if seen is None else seen
    distinct = {key: request for key, request in keyed if key not in seen}
    seen |= distinct.keys()
    known = cache.get(list(distinct)) if cache is not None else {}
    asked = [request for key, request in distinct.items() if key not in known]
    limits = (request.most_tokens for request in asked)
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
