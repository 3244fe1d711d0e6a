"""What judging would ask, found out without asking: as far as the cache knows the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import ceil
from typing import TYPE_CHECKING

from karat.client.budget import Forecast

if TYPE_CHECKING:
    from karat.client.cache import Cache
    from karat.client.endpoint import Endpoint
    from karat.client.requests import ChatRequest
    from karat.judges.llm.questions import Question, Rules


def rehearse(
    questions: Sequence[Question], cache: Cache, endpoint: Endpoint, rules: Rules
) -> tuple[list[ChatRequest], list[Question]]:
    """Return all requests, also those that known answers lead to, and the open questions.

    What an open question would have been told is guessed, so that the rest can go on.
    """
    requests: list[ChatRequest] = []
    unknown: list[Question] = []
    while questions:
        asked = [question.request(rules) for question in questions]
        keys = [request.key(endpoint) for request in asked]
        known = cache.get(keys)
        requests += asked
        again: list[Question] = []
        for question, key in zip(questions, keys, strict=True):
            if key in known:
                again += question.settle(known[key], rules)
            else:
                question.guess()
                unknown.append(question)
        questions = again
    return requests, unknown


def typical_answer(questions: Sequence[Question]) -> int:
    """Return how many tokens an answer has on average, by what is asked for."""
    return ceil(sum(question.answer_tokens for question in questions) / max(len(questions), 1))


def total(parts: Sequence[Forecast]) -> Forecast:
    """Add up forecasts.

    >>> total([Forecast(2, 1, 1, 10, 5, None), Forecast(1, 1, 0, 20, 5, None)])
    Forecast(requests=3, calls=2, stored=1, prompt_tokens=30, completion_tokens=10, cost=None)
    """
    counts = {
        each.name: sum(getattr(part, each.name) for part in parts)
        for each in fields(Forecast)
        if each.name != "cost"
    }
    costs = [part.cost for part in parts if part.cost is not None]
    return Forecast(**counts, cost=sum(costs) if costs else None)
