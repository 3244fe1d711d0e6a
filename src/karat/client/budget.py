"""What a job spends, counted as it is spent, and the limits at which it stops."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karat.client.answers import Answer, Outcome, Usage
from karat.client.pacing import Room
from karat.client.prices import Prices, estimate_prompt, estimate_tokens
from karat.errors import OptionError

if TYPE_CHECKING:
    from karat.client.request import Json, Request

TYPICAL_ANSWER = 200  # tokens, until answers have been seen
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent; None is no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise OptionError(f"{name} must be a number from 0 on, not {limit!r}")


@dataclass(slots=True)
class Budget:
    """Counts calls, tokens, cost and time; says when there is no room for another call.

    A call that is under way counts with what such calls have used so far, so that a limit is
    passed by no more than the last guess was wrong. One ledger may serve several jobs, one after
    another.
    """

    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    calls: int = 0  # sent, also those that were turned down
    requests: int = 0  # = answered + stored + repeated + failed, when a job has ended
    answered: int = 0
    stored: int = 0  # answered from the cache
    repeated: int = 0  # the same as another request of the job
    failed: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompts, those in the server's own cache
    completion_tokens: int = 0
    guessed_calls: int = 0  # calls whose tokens the server did not report
    _seconds: array[float] = field(default_factory=lambda: array("d"), repr=False)
    _waited: float = 0.0  # their sum
    _reserved: Usage = field(default_factory=lambda: Usage(0, 0))
    _guesses: int = 0  # what was guessed of the prompts that the server then counted
    _counted: int = 0
    _counted_answers: int = 0
    _counted_calls: int = 0

    def __post_init__(self) -> None:
        if self.limits.max_cost is not None and self.prices is None:
            raise OptionError(
                "a limit of cost needs prices", fix="give a file of prices, or both prices"
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
        return None if self.prices is None else self.prices.cost(self.spent)

    def expect(self, request: Request) -> Usage:
        """Guess what a call will use, from what calls have used so far."""
        scale = self._counted / self._guesses if self._guesses else 1.0
        most = request.most_tokens
        typical = TYPICAL_ANSWER if most is None else most
        if self._counted_calls:
            mean = round(self._counted_answers / self._counted_calls)
            typical = mean if most is None else min(mean, most)
        return Usage(round(estimate_prompt(request) * scale), typical)

    def room(self, request: Request) -> Room:
        """Say whether a call fits beside what was spent and what is under way."""
        if self.limits.max_calls is not None and self.calls >= self.limits.max_calls:
            return Room.NEVER
        if self.limits.max_tokens is None and self.limits.max_cost is None:
            return Room.NOW
        alone = _sum(self.spent, self.expect(request))
        if not self._within(alone):
            return Room.NEVER if not self._reserved.total else Room.LATER
        return Room.NOW if self._within(_sum(alone, self._reserved)) else Room.LATER

    def refusal(self) -> str:
        """Say why there is no room."""
        limits = ((name, getattr(self.limits, name)) for name in self.limits.__slots__)
        given = (f"{name} {limit:g}" for name, limit in limits if limit is not None)
        return f"one more call would pass {' or '.join(given)}"

    def _within(self, usage: Usage) -> bool:
        tokens, cost = self.limits.max_tokens, self.limits.max_cost
        return (tokens is None or usage.total <= tokens) and (
            cost is None or self.prices is None or self.prices.cost(usage) <= cost
        )

    def begin(self, request: Request) -> Usage:
        """Count a call that is about to be sent, and reserve what it may use."""
        expected = self.expect(request)
        self.calls += 1
        self._reserved = _sum(self._reserved, expected)
        return expected

    def end(self, request: Request, expected: Usage, outcome: Outcome | None) -> None:
        """Replace what was reserved by what a call used; None is a call that ended in an error."""
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
        """Say in a line what was spent so far, for a progress bar."""
        cost = "" if self.cost is None else f", cost {self.cost:.4g}"
        wait = f", {self._waited / self.answered:.2g} s a call" if self.answered else ""
        stored = f", {self.stored:,} from the cache" if self.stored else ""
        failed = f", {self.failed.total():,} failed" if self.failed else ""
        return f"{self.tokens:,} tokens{cost}{wait}{stored}{failed}"

    def summary(self) -> dict[str, Json]:
        """Return all counts, for a manifest."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "stored": self.stored,
            "repeated": self.repeated,
            "failed": dict(sorted(self.failed.items())),
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "guessed_calls": self.guessed_calls,
            "cost": self.cost,
            "seconds": dict(self.latency()),
        }


def guess_usage(request: Request, content: str) -> Usage:
    """Guess what a call used whose server did not say."""
    return Usage(estimate_prompt(request), estimate_tokens(content), estimated=True)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.prompt + other.prompt, one.completion + other.completion, one.cached + other.cached
    )
