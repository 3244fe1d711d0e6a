"""What tokens cost, and how many a text has, by a rule of thumb."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, OptionError, nearest

if TYPE_CHECKING:
    from karat.client.answers import Usage
    from karat.client.request import Request

ASCII_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4  # the role and the marks around a message
MILLION = 1_000_000
NUMBERS = re.compile(r"\s*(?:\d+\.?\d*|\.\d+)\s*(,\s*(?:\d+\.?\d*|\.\d+)\s*){1,2}", re.ASCII)
EXAMPLE = '{"MODEL": {"prompt": 0.15, "completion": 0.6}}, for a million tokens'


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens, in any currency; `cached` is for prompt tokens served again.

    >>> from karat.client.answers import Usage
    >>> Prices(prompt=2.0, completion=8.0).cost(Usage(500_000, 250_000))
    3.0
    """

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion, self.cached or 0.0):
            if not (math.isfinite(price) and price >= 0):
                raise OptionError(f"a price must be a number from 0 on, not {price!r}")

    def cost(self, usage: Usage) -> float:
        """Return what a call costs."""
        cached = self.prompt if self.cached is None else self.cached
        paid = (usage.prompt - usage.cached) * self.prompt + usage.cached * cached
        return (paid + usage.completion * self.completion) / MILLION


def load_prices(source: str | Path, model: str) -> Prices:
    """Read the prices of a model from a TOML or JSON file with a table for each model.

    Numbers in the place of a file are the prices: of prompts, answers and cached prompts.

    >>> load_prices("0.15, 0.6", "any model")
    Prices(prompt=0.15, completion=0.6, cached=None)
    """
    where = str(source)
    if NUMBERS.fullmatch(where):
        return Prices(*map(float, where.split(",")))
    try:
        text = Path(source).read_text(encoding="utf-8")
        tables = tomllib.loads(text) if where.endswith(".toml") else json.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except (ValueError, RecursionError) as error:
        kind = "TOML" if where.endswith(".toml") else "JSON"
        raise InputError(f"not valid {kind}: {error}", where=where, fix=EXAMPLE) from None
    if not isinstance(tables, dict) or not all(isinstance(row, dict) for row in tables.values()):
        raise InputError("not a table of prices for each model", where=where, fix=EXAMPLE)
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
    """Guess how many tokens a text has: one for four ASCII characters, one for any other.

    Measured with OpenAI's cl100k: English, code and German have 3.8 to 4.0 characters a token
    (dense JSON 2.7); of other scripts a character is .7 (Cyrillic) to 1.7 tokens (Hangul).

    >>> estimate_tokens("The battery lasts six hours.")
    7
    """
    others = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return math.ceil((len(text) - others) / ASCII_PER_TOKEN) + others


def estimate_prompt(request: Request) -> int:
    """Guess how many tokens the prompt of a request has, with its schema."""
    count = sum(estimate_tokens(text) + TOKENS_PER_MESSAGE for text in request.texts())
    return count + (estimate_tokens(json.dumps(request.schema)) if request.schema else 0)
