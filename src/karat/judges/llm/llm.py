"""A language model as the judge.

Each sample is a talk of a few calls, and many talks are held at once. First what the model is to
list: the entities of the reference and, with `decompose`, claims and statements. Then the verdicts:
one call about all chunks (relevance, claims, entities) and one about their statements. What was
missing or malformed is asked again, alone; what still has no verdict has a reason in its place.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from karat.client.budget import Budget, Forecast, forecast
from karat.client.cache import Cache
from karat.client.endpoint import Endpoint
from karat.client.jobs import Ask, Session
from karat.errors import OptionError
from karat.judges.llm.asks import Writer, plan
from karat.judges.llm.cases import Case
from karat.judges.llm.listing import listings
from karat.judges.llm.questions import Question, Rules, Ruling
from karat.judges.llm.rehearsal import rehearse, total, typical_answer
from karat.judges.llm.tally import JudgeStats
from karat.judges.llm.templates import load_prompts
from karat.progress import Progress, Report

if TYPE_CHECKING:
    from karat.client.protocol import Json
    from karat.client.retry import RetryPolicy
    from karat.findings import Finding
    from karat.judges.verdicts import Aspect, Judged, Sample

BATCH = 1000  # samples whose prompts a dry run has in memory at once
CALL_TOKENS = 32_000
STEADY: dict[str, Json] = {"temperature": 0, "seed": 0}
VARIED: dict[str, Json] = {"temperature": 0.7, "seed": 0}  # votes that cannot differ say nothing


class LLMJudge:
    """Asks a model behind an OpenAI-compatible endpoint.

    `votes` asks every question so often and takes the majority, of grades the median. `decompose`
    lets the model list claims and statements in place of sentences. `separate_calls` asks about
    relevance, claims and entities in calls of their own. `prompts` is a folder of files that take
    the place of the package's. `options` are fields of the call, such as temperature or max_tokens;
    None leaves one out. `attempts` is how often an id is asked about at most, `call_tokens` how
    much of the chunks one call shows at most: longer chunks are cut.
    """

    def __init__(
        self,
        model: str | Endpoint,
        *,
        base_url: str | None = None,
        key: str | None = None,
        cache: str | Cache = "use",
        budget: Budget | None = None,
        retry: RetryPolicy | None = None,
        votes: int = 1,
        decompose: bool = False,
        separate_calls: bool = False,
        prompts: str | os.PathLike[str] | None = None,
        options: Mapping[str, Json] | None = None,
        attempts: int = 3,
        call_tokens: int = CALL_TOKENS,
    ) -> None:
        for name, value in (("votes", votes), ("attempts", attempts), ("call_tokens", call_tokens)):
            if value < 1:
                raise OptionError(f"{name} must be at least 1, not {value}")
        self.endpoint = (
            Endpoint.find(model, base_url=base_url, key=key) if isinstance(model, str) else model
        )
        self.budget = Budget() if budget is None else budget
        self.tally = JudgeStats()
        self._cache = cache
        self._session = Session(self.endpoint, retry)
        self._votes = votes
        self._decompose = decompose
        self._separate_calls = separate_calls
        self._call_tokens = call_tokens
        chosen = {**(STEADY if votes == 1 else VARIED), **(options or {})}
        self._options = {name: value for name, value in chosen.items() if value is not None}
        self._prompts = load_prompts(prompts)
        self._rules = Rules(Writer(self._prompts, self._options), self.tally, attempts)

    @property
    def name(self) -> str:
        """What results call it."""
        return f"openai:{self.endpoint.model}"

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[Aspect],
        progress: Report | None = None,
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        self.tally.begin()
        cache = self._opened()

        def tell(done: int) -> None:
            if progress is not None:
                progress(Progress(done, len(samples), self.budget.spent_so_far()))

        judged = self._session.run(
            (partial(self._talk, sample, aspects) for sample in samples),
            cache=cache,
            budget=self.budget,
            progress=tell,
        )
        if cache.broken:
            self.tally.note("unsaved-answer", cache.broken)
        return judged

    def dry_run(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[Aspect],
        *,
        seen: set[bytes] | None = None,
    ) -> Forecast:
        """Guess what judging would take, without asking; what is in the cache is free.

        `seen` are requests that were counted before; those of this guess are added to them.
        """
        parts: list[Forecast] = []
        seen = set() if seen is None else seen
        rules = replace(self._rules, tally=JudgeStats())
        cache = self._opened()
        for start in range(0, len(samples), BATCH):
            cases = [self._begin(sample, aspects) for sample in samples[start : start + BATCH]]
            listed = [question for case in cases for question in listings(case)]
            first, unknown = rehearse(listed, cache, self.endpoint, rules)
            rulings = [ruling for case in cases for ruling in self._rulings(case)]
            then, more = rehearse(rulings, cache, self.endpoint, rules)
            part = forecast(
                [*first, *then],
                self.endpoint,
                cache=cache,
                prices=self.budget.prices,
                answer_tokens=typical_answer([*unknown, *more]),
                seen=seen,
            )
            parts.append(part)
        return total(parts)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says; nothing in it is secret."""
        return {
            "judge": self.name,
            "model": self.endpoint.model,
            "endpoint": self.endpoint.identity,
            "prompts": {name: prompt.about() for name, prompt in self._prompts.items()},
            "options": dict(self._options),
            "votes": self._votes,
            "decompose": self._decompose,
            "separate_calls": self._separate_calls,
            "attempts": self._rules.attempts,
            "call_tokens": self._call_tokens,
            **self.budget.summary(),
            **self.tally.about(),
            "server": self.endpoint.support.summary(),
        }

    def findings(self) -> tuple[Finding, ...]:
        """Return what should be known about what it judged last, beside the verdicts."""
        return self.tally.findings()

    def _begin(self, sample: Sample, aspects: frozenset[Aspect]) -> Case:
        return Case.begin(sample, aspects, self._call_tokens, decompose=self._decompose)

    def _rulings(self, case: Case) -> list[Question]:
        """Return what to ask about a case when its units are known."""
        case.open()
        case.ballots = [{} for _ in range(self._votes)]
        asks = plan(
            case.dossier, case.aspects, self._call_tokens, separate_calls=self._separate_calls
        )
        return [Ruling(case, ask, vote) for ask in asks for vote in range(self._votes)]

    async def _talk(self, sample: Sample, aspects: frozenset[Aspect], ask: Ask) -> Judged:
        """Judge a sample."""
        case = self._begin(sample, aspects)
        await self._settle(listings(case), ask)
        await self._settle(self._rulings(case), ask)
        return case.judged(self.tally)

    async def _settle(self, questions: Iterable[Question], ask: Ask) -> None:
        """Ask, all at once, and ask again, until everything is settled."""
        async with asyncio.TaskGroup() as group:
            for question in questions:
                group.create_task(self._resolve(question, ask))

    async def _resolve(self, question: Question, ask: Ask) -> None:
        outcome = await ask(question.request(self._rules))
        if again := question.settle(outcome, self._rules):
            await self._settle(again, ask)

    def _opened(self) -> Cache:
        """Return the cache, opened once: what `refresh` asked again is known from then on."""
        if isinstance(self._cache, str):
            self._cache = Cache.open(mode=self._cache)
            weakref.finalize(self, self._cache.close)
        return self._cache
