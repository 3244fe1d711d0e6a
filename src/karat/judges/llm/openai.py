"""The judge `openai:MODEL`, with all that can be said about it in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from karat.client.budget import Budget, Limits, Prices, load_prices
from karat.client.retry import RetryPolicy
from karat.judges.llm.llm import CALL_TOKENS, LLMJudge

if TYPE_CHECKING:
    from karat.client.cache import Cache
    from karat.client.protocol import Json

USUAL = RetryPolicy()


def openai_judge(
    model: str,
    *,
    base_url: str | None = None,
    key: str | None = None,
    cache: str | Cache = "use",
    concurrency: int = USUAL.concurrency,
    timeout: float = USUAL.timeout,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    prices: str | os.PathLike[str] | Prices | None = None,
    votes: int = 1,
    decompose: bool = False,
    separate_calls: bool = False,
    prompts: str | os.PathLike[str] | None = None,
    options: Mapping[str, Json] | None = None,
    attempts: int = 3,
    call_tokens: int = CALL_TOKENS,
) -> LLMJudge:
    """Return a judge that asks a model.

    The server and its key come from the environment (KARAT_BASE_URL or OPENAI_BASE_URL,
    KARAT_API_KEY or OPENAI_API_KEY) unless they are given. The limits hold for all that the judge
    asks; `prices` are those of the model ("0.15, 0.6": prompts and answers, a million tokens), or a
    file that has them. The rest is `LLMJudge`'s.
    """
    known = (
        prices
        if prices is None or isinstance(prices, Prices)
        else load_prices(os.fspath(prices), model)
    )
    return LLMJudge(
        model,
        base_url=base_url,
        key=key,
        cache=cache,
        budget=Budget(Limits(max_calls, max_tokens, max_cost), known),
        retry=RetryPolicy(concurrency=concurrency, timeout=timeout),
        votes=votes,
        decompose=decompose,
        separate_calls=separate_calls,
        prompts=prompts,
        options=options,
        attempts=attempts,
        call_tokens=call_tokens,
    )
