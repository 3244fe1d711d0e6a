"""A language model as the judge.

All samples go through a few passes of calls. First what the model is to list: the entities of the
references and, with `decompose`, claims and statements. Then the verdicts: one call about all
chunks of a sample (relevance, claims, entities) and one about their statements. Then again what was
missing or malformed, alone. What still has no verdict has a reason in its place.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from karat.errors import OptionError
from karat.judges.asks import Writer, plan
from karat.judges.budget import Ledger
from karat.judges.cache import Cache
from karat.judges.cases import Case
from karat.judges.client import Manners
from karat.judges.endpoint import Endpoint
from karat.judges.forecast import Forecast, forecast
from karat.judges.listing import listings
from karat.judges.meter import Meter
from karat.judges.questions import Question, Rules, Ruling
from karat.judges.rehearsal import rehearse, total, typical_answer
from karat.judges.run import ask_all
from karat.judges.tally import Tally
from karat.judges.templates import load_prompts
from karat.judges.verdicts import Aspect, Judged, Progress, Sample

if TYPE_CHECKING:
    from karat.findings import Finding
    from karat.judges.request import Json

BATCH = 1000  # samples whose prompts are in memory at once
CALL_TOKENS = 32_000
STEADY: dict[str, Json] = {"temperature": 0, "seed": 0}
VARIED: dict[str, Json] = {"temperature": 0.7, "seed": 0}  # votes that cannot differ say nothing
Report = Callable[[Progress], None]


class LLMJudge:
    """Asks a model behind an OpenAI-compatible endpoint.

    `votes` asks every question so often and takes the majority, of grades the median. `decompose`
    lets the model list claims and statements in place of sentences. `apart` asks about relevance,
    claims and entities in calls of their own. `prompts` is a folder of files that take the place of
    the package's. `options` are fields of the call, such as temperature or max_tokens; None leaves
    one out. `attempts` is how often an id is asked about at most, `call_tokens` how much of the
    chunks one call shows at most: longer chunks are cut.
    """

    def __init__(
        self,
        model: str | Endpoint,
        *,
        base_url: str | None = None,
        key: str | None = None,
        cache: str | Cache = "use",
        ledger: Ledger | None = None,
        manners: Manners | None = None,
        votes: int = 1,
        decompose: bool = False,
        apart: bool = False,
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
        self.ledger = Ledger() if ledger is None else ledger
        self.tally = Tally()
        self._cache = cache
        self._manners = manners or Manners()
        self._votes = votes
        self._decompose = decompose
        self._apart = apart
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
        judged: list[Judged] = []
        self.tally.begin()
        cache = self._opened()
        for cases in self._batches(samples, aspects):
            listed = [question for case in cases for question in listings(case)]
            calls = len(listed) + len(cases) * self._votes * (1 + ("statements" in aspects))
            meter = Meter(len(judged), len(cases), len(samples), calls, progress)
            self._ask(listed, cache, meter)
            self._ask(self._rulings(cases), cache, meter)
            judged += [case.judged(self.tally) for case in cases]
            meter.end()
        if cache.broken:
            self.tally.note("unsaved-answer", cache.broken)
        return judged

    def dry_run(self, samples: Sequence[Sample], aspects: frozenset[Aspect]) -> Forecast:
        """Guess what judging would take, without asking; what is in the cache is free."""
        parts: list[Forecast] = []
        rules = replace(self._rules, tally=Tally())
        cache = self._opened()
        for cases in self._batches(samples, aspects):
            listed = [question for case in cases for question in listings(case)]
            first, unknown = rehearse(listed, cache, self.endpoint, rules)
            then, more = rehearse(self._rulings(cases), cache, self.endpoint, rules)
            part = forecast(
                [*first, *then],
                self.endpoint,
                cache=cache,
                prices=self.ledger.prices,
                answer_tokens=typical_answer([*unknown, *more]),
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
            "apart": self._apart,
            "attempts": self._rules.attempts,
            "call_tokens": self._call_tokens,
            **self.ledger.summary(),
            **self.tally.about(),
            "server": self.endpoint.accepted.summary(),
        }

    def findings(self) -> tuple[Finding, ...]:
        """Return what should be known about what it judged last, beside the verdicts."""
        return self.tally.findings()

    def _batches(
        self, samples: Sequence[Sample], aspects: frozenset[Aspect]
    ) -> Iterator[list[Case]]:
        for start in range(0, len(samples), BATCH):
            yield [
                Case.begin(sample, aspects, self._call_tokens, decompose=self._decompose)
                for sample in samples[start : start + BATCH]
            ]

    def _rulings(self, cases: Sequence[Case]) -> list[Question]:
        rulings: list[Question] = []
        for case in cases:
            case.open()
            case.ballots = [{} for _ in range(self._votes)]
            for ask in plan(case.dossier, case.aspects, self._call_tokens, apart=self._apart):
                rulings += [Ruling(case, ask, vote) for vote in range(self._votes)]
        return rulings

    def _ask(self, questions: Sequence[Question], cache: Cache, meter: Meter) -> None:
        """Ask, and ask again, until everything is settled."""
        while questions:
            outcomes = ask_all(
                [question.request(self._rules) for question in questions],
                self.endpoint,
                cache=cache,
                ledger=self.ledger,
                manners=self._manners,
                progress=meter.report,
            )
            meter.end_pass(len(questions))
            questions = [
                again
                for question, outcome in zip(questions, outcomes, strict=True)
                for again in question.settle(outcome, self._rules)
            ]

    def _opened(self) -> Cache:
        """Return the cache, opened once: what `refresh` asked again is known from then on."""
        if isinstance(self._cache, str):
            self._cache = Cache.open(mode=self._cache)
            weakref.finalize(self, self._cache.close)
        return self._cache
