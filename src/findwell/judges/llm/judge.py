"""A language model as the judge.

Each sample takes a few calls, and many samples are judged at once. First what the model is to list:
the entities of the reference and, with `decompose`, claims and statements. Items come from the
reference alone, so that they are the same whatever was retrieved. Then the verdicts: one call about
all chunks and items together, one about parts, one about the list as a whole. What was missing or
malformed is asked again, alone; what still has no verdict has a reason instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from findwell.core.errors import JudgeError, OptionError, takes_options
from findwell.core.progress import Progress, Report
from findwell.core.texts.languages import ENGLISH
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape, find_aspect
from findwell.judges.client.budget import (
    CallBudget,
    Forecast,
    Limits,
    Prices,
    forecast,
    load_prices,
)
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.endpoint import Endpoint, Reach, distance, without_secrets
from findwell.judges.client.jobs import Ask, Conversation, Session
from findwell.judges.client.protocol import Reason
from findwell.judges.client.providers import OPENAI, Provider, requires_batches, split_spec
from findwell.judges.llm.matrix import (
    CALL_EXTENT,
    ItemListing,
    PartListing,
    VerdictCall,
    VerdictQuestion,
    pack,
    plan_calls,
    tokens_of,
)
from findwell.judges.llm.prompts import (
    ALL,
    LIKELY,
    SINGLE_PREFIXES,
    Fence,
    PromptItems,
    PromptWriter,
    aspect_prompts,
    by_chunk,
    load_prompts,
    number_items,
    prompt_languages,
)
from findwell.judges.llm.single import LineListing, SingleQuestion, single_questions
from findwell.judges.llm.stats import FailureGuard, JudgeStats
from findwell.judges.quotes import distinct
from findwell.judges.settings import AUTO, NEW_CHECK, WAYS
from findwell.judges.verdicts import AspectVerdicts, Judged, JudgeFailure, Judgement, JudgeReason

if TYPE_CHECKING:
    from findwell.core.findings import Finding
    from findwell.judges.client.protocol import ChatRequest, Json
    from findwell.judges.llm.answers import Cell
    from findwell.judges.llm.check import JudgeCheck
    from findwell.judges.llm.prompts import Prompt
    from findwell.judges.llm.single import Example
    from findwell.judges.settings import Judge
    from findwell.judges.verdicts import Sample


# --- one sample -----------------------------------------------------------------------------------

Question: TypeAlias = ItemListing | PartListing | LineListing | VerdictQuestion | SingleQuestion
GUESSED_ITEMS = 4  # of a reference
PROBE_TOKENS = 2048  # of an answer to a matrix of a check, with room to think before it
THINKING_TOKENS = 4096  # that a model of one's own may write before the answer to a matrix
SPARE = 2.0  # times the usual length of an answer that a small model may write
MARGIN_TOKENS = 64  # in addition to what is expected
NO_BASIS = "nothing can be judged by it"


@dataclass(slots=True)
class OpenSample:
    """A sample, its items and parts as they become known, and the votes about it."""

    sample: Sample
    wanted: frozenset[str]
    settings: Judge
    writer: PromptWriter
    stats: JudgeStats
    way: str = "matrix"  # how the model is asked
    probe: bool = False  # to see what the model can do: nothing is divided, every answer ends
    limited: bool = False  # answers to a matrix, by what was asked
    cutoffs: Mapping[str, float] = field(default_factory=dict)  # of probabilities, by aspect
    examples: Mapping[str, Sequence[Example]] = field(default_factory=dict)  # by aspect
    listed: dict[str, Sequence[str]] = field(default_factory=dict)  # items, by aspect
    parts: dict[str, list[Sequence[str]]] = field(default_factory=dict)  # of each chunk, by aspect
    sources: dict[str, dict[str, str]] = field(default_factory=dict)  # quotes parts were made from
    # what was listed from parts of a text: by aspect and chunk, then by the part
    halves: dict[tuple[str, str], dict[str, Sequence[str]]] = field(default_factory=dict)
    failures: dict[str, JudgeFailure] = field(default_factory=dict)
    votes: list[dict[Cell, Judgement]] = field(default_factory=list)
    aspects: list[Aspect] = field(init=False)  # the wanted ones, except those that failed
    items: PromptItems = field(init=False)

    def __post_init__(self) -> None:
        """Take what is known from the sample; what the model is to list is left open."""
        sample = self.sample
        self.aspects = [aspect for name, aspect in ASPECTS.known().items() if name in self.wanted]
        for aspect in self.aspects:
            if aspect.needs == "question" and not sample.question.strip():
                self.fail(aspect.name, JudgeFailure(JudgeReason.NO_QUESTION, NO_BASIS))
            elif aspect.shows_reference and not sample.reference.strip():
                self.fail(aspect.name, JudgeFailure(JudgeReason.NO_REFERENCE, NO_BASIS))
            elif aspect.shape is VerdictShape.LIST:
                self.require_room(aspect)
            elif self.to_list(aspect):
                continue
            elif aspect.shape is VerdictShape.ITEMS:
                self.listed[aspect.name] = sample.items[aspect.name]
            elif aspect.shape is VerdictShape.PARTS:
                self.parts[aspect.name] = self.given_parts(aspect)
        listed = filter(self.to_list, self.aspects)
        if any(each.shape is VerdictShape.PARTS for each in listed):
            self.number()  # the chunks are shown to have their parts listed

    def to_list(self, aspect: Aspect) -> bool:
        """Tell whether the model lists the items or parts of an aspect."""
        return aspect.listing is not None and (aspect.listing.always or self.settings.decompose)

    def given_parts(self, aspect: Aspect) -> list[Sequence[str]]:
        """Return the parts of each chunk that the sample knows."""
        parts = self.sample.parts[aspect.name]
        if len(parts) != len(self.sample.chunks):
            raise OptionError(
                f"{len(self.sample.chunks)} chunks have {len(parts)} lists of {aspect.name}",
                where=f"query {self.sample.query}",
            )
        return list(parts)

    def require_room(self, aspect: Aspect) -> None:
        """Fail where the list is too long to be judged at once: a part of it is another list."""
        tokens, most = sum(map(tokens_of, self.sample.chunks)), self.settings.call_tokens
        if tokens > most:
            detail = (
                f"the list has about {tokens} tokens and one call shows {most}: "
                "measure fewer chunks (@K), or raise call_tokens if the model takes more"
            )
            self.fail(aspect.name, JudgeFailure(Reason.TOO_LONG, detail))

    def number(self) -> None:
        """Give ids to all that is known now."""
        names = {aspect.name for aspect in self.aspects}
        self.items = number_items(
            self.sample,
            self.settings.call_tokens,
            {name: texts for name, texts in self.listed.items() if name in names},
            {name: rows for name, rows in self.parts.items() if name in names},
            self.sources,
        )

    def fail(self, aspect: str, failure: JudgeFailure) -> None:
        """Give up an aspect as a whole."""
        self.failures[aspect] = failure
        self.aspects = [each for each in self.aspects if each.name != aspect]

    def limit(self, tokens: int) -> int | None:
        """Return how long an answer may be that usually has this many tokens.

        Where all is asked at once, a model on a server of one's own has room to think in addition;
        a public one has no limit: those know when to stop, and may think for long.
        """
        most = ceil(SPARE * tokens) + MARGIN_TOKENS
        if self.way == "matrix":
            return PROBE_TOKENS if self.probe else most + THINKING_TOKENS if self.limited else None
        return most

    def data_to_list(self, aspect: Aspect, name: str, text: str) -> list[str]:
        """Return a text to list from, and the question where it helps to understand it."""
        question = self.sample.question
        fence = Fence.around((text,), (question,))
        shows = aspect.how_listed.with_question and question.strip()
        return [*([fence.block("question", question)] if shows else ()), fence.block(name, text)]

    def guess_items(self, aspect: Aspect) -> Sequence[str]:
        """Return what stands for items that are not listed yet: copied words, or sentences."""
        how, sample = aspect.how_listed, self.sample
        if how.copied:
            return distinct(sample.reference.split()[:GUESSED_ITEMS], how.same)
        return sample.items[aspect.name] or (sample.reference,)

    def guess_parts(self, aspect: Aspect, number: int) -> Sequence[str]:
        """Return what stands for the parts of a chunk: its sentences, or the chunk."""
        given = self.sample.parts[aspect.name]
        return (given[number] if number < len(given) else ()) or (self.sample.chunks[number],)

    def listings(self) -> Iterator[Question]:
        """Yield what must be listed before the sample can be judged: items, then parts."""
        wanted = [aspect for aspect in self.aspects if self.to_list(aspect)]
        single = self.way == "single"
        for aspect in wanted:
            if aspect.shape is VerdictShape.ITEMS and self.sample.reference.strip():
                yield LineListing(self, aspect) if single else ItemListing(self, aspect)
        for aspect in wanted:
            if aspect.shape is VerdictShape.PARTS:
                self.parts[aspect.name] = [()] * len(self.sample.chunks)
                most = 1 if single else CALL_EXTENT.chunks
                for chunks in pack(self.items.chunks, self.settings.call_tokens, most):
                    if single:
                        yield LineListing(self, aspect, chunks[0])
                    else:
                        yield PartListing(self, VerdictCall(chunks, {aspect.name: chunks}))

    def questions(self) -> list[VerdictQuestion] | list[SingleQuestion]:
        """Return what to ask for verdicts, when the items are known."""
        self.number()
        how = self.settings
        self.votes = [{} for _ in range(how.votes)]
        if self.way == "single":
            return list(single_questions(self))
        calls = plan_calls(
            self.items, self.aspects, how.call_tokens, separate_calls=how.separate_calls
        )
        return [VerdictQuestion(self, call, vote) for call in calls for vote in range(how.votes)]

    def judged(self) -> Judged:
        """Make the verdicts of the votes."""
        for failure in self.failures.values():
            self.stats.lose(failure)
        others = any(each.shape is not VerdictShape.PARTS for each in self.aspects)
        for each in sorted(self.items.cut):
            if self.settings.decompose or others or "." in each:
                self.stats.note("cut-text", f"{self.sample.query} {each}")
        verdicts = {aspect.name: self._verdicts(aspect) for aspect in self.aspects}
        return Judged(verdicts, dict(self.failures))

    def _verdicts(self, aspect: Aspect) -> AspectVerdicts:
        chunks = self.items.chunks

        def decide(each: str, chunk: str) -> Judgement:
            votes = [vote[aspect.name, each, chunk] for vote in self.votes]
            return self.stats.decide(aspect.name, votes)

        match aspect.shape:
            case VerdictShape.CHUNKS:
                return AspectVerdicts((tuple(decide(each, each) for each in chunks),))
            case VerdictShape.ITEMS:
                ids = self.items.judged(aspect)
                rows = (tuple(decide(each, chunk) for chunk in chunks) for each in ids)
                return AspectVerdicts(tuple(rows), items=tuple(ids.values()))
            case VerdictShape.PARTS:
                inside = by_chunk(self.items.judged(aspect))
                rows = (
                    tuple(decide(each, chunk) for each in inside.get(chunk, ())) for chunk in chunks
                )
                parts = tuple(tuple(texts) for texts in self.parts[aspect.name])
                return AspectVerdicts(tuple(rows), parts=parts)
            case VerdictShape.LIST:
                return AspectVerdicts(((decide(ALL, ALL),),) if chunks else (), chunks=len(chunks))


# --- all samples ----------------------------------------------------------------------------------

T = TypeVar("T")
FORECAST_SAMPLES = 1000  # samples whose prompts a dry run has in memory at once
STEADY_OPTIONS: dict[str, Json] = {"temperature": 0, "seed": 0}
# votes that cannot differ say nothing
VARIED_OPTIONS: dict[str, Json] = {"temperature": 0.7, "seed": 0}


@takes_options()
class LLMJudge:
    """Asks a model behind an OpenAI-compatible endpoint, as its settings say."""

    def __init__(
        self,
        settings: Judge,
        *,
        other_prompts: Iterable[str] = (),
        endpoint: Endpoint | None = None,
        probe: bool = False,
    ) -> None:
        """Take the settings; the file of prompts may also hold others, read elsewhere.

        `endpoint` is one that is known already. A `probe` is to see what the model can do: no
        call is divided, and every answer has a limit.
        """
        self.settings = settings
        self._probe = probe
        provider, model = split_spec(settings.model) or (OPENAI, settings.model)
        if settings.batch:
            requires_batches(provider)
        self.endpoint = endpoint or Endpoint.find(
            model,
            base_url=settings.base_url,
            key=settings.key,
            provider=provider,
            headers=settings.headers,
        )
        self.name = f"{provider.name}:{self.endpoint.model}"
        limits = Limits(settings.max_calls, settings.max_tokens, settings.max_cost)
        shared = settings.budget
        self.budget = CallBudget(limits, _prices(settings, model)) if shared is None else shared
        self.stats = JudgeStats()
        self._cache = settings.cache
        self.retry = _retry(settings, provider)
        self._session = Session(self.endpoint, self.retry, batch=settings.batch)
        self._other_prompts = tuple(other_prompts)
        self._language = ENGLISH if settings.language == AUTO else settings.language
        self.prompts = self._load(self._language)  # for both ways of asking, by name
        self._by_language = {self._language: self.prompts}  # those that were needed so far
        self._languages: dict[str, str] = {}  # of questions
        self._check: JudgeCheck | None = None
        self._way_noted = False
        self._limited = distance(self.endpoint.identity) is not Reach.PUBLIC
        self.cutoffs: Mapping[str, float] = {}  # of the probability of a yes, by aspect
        self.examples: Mapping[str, Sequence[Example]] = {}  # that labels taught, by aspect
        self._own_way = "" if probe else self._way_of_own_prompts()
        self._choose(settings.ask if settings.ask in WAYS else self._own_way or WAYS[0])

    def _way_of_own_prompts(self) -> str:
        """Return the only way of asking that prompts of the user are for; '' if it is not one."""
        own = [name for name, prompt in self.prompts.items() if prompt.file]
        ways = {WAYS[name.startswith(SINGLE_PREFIXES)] for name in own}
        if len(ways) != 1:
            return ""
        [way] = ways
        if self.settings.ask in WAYS and self.settings.ask != way:
            raise OptionError(
                f"the prompts of {self.settings.prompt} ({', '.join(own)}) are for ask={way}, and "
                f"ask={self.settings.ask} does not use them",
                fix=f"leave ask out, or give ask={way}",
            )
        return way

    def _choose(self, way: str) -> None:
        """Ask in this way from now on."""
        self.way = way
        usual = STEADY_OPTIONS if self.settings.votes == 1 else VARIED_OPTIONS
        likely = LIKELY if way == "single" else {}
        given = {**(self.settings.extra_body or {}), **(self.settings.options or {})}
        chosen = {**usual, **likely, **given}
        self.options = {name: value for name, value in chosen.items() if value is not None}
        self._writer = PromptWriter(self.prompts, self.options, language=self._language)

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order.

        Stops with an error when too many of the verdicts about the first samples failed.
        """
        self.stats.begin()
        self.find_way(ask=bool(samples))
        if self._check is not None and not self._way_noted:
            self._way_noted = True
            self.stats.note("way-to-ask", self._check.in_words())
        self._detect(sample.question for sample in samples)
        guard = FailureGuard(self, len(samples))

        def report(done: int) -> None:
            if progress is not None:
                progress(Progress(done, len(samples), self.budget.spent_so_far()))

        async def judge_one(sample: Sample, ask: Ask) -> Judged:
            judged = await self.judge_sample(sample, aspects, ask)
            guard.note(sample, judged)
            return judged

        judged = self.hold((partial(judge_one, sample) for sample in samples), report)
        guard.end()
        return judged

    def find_way(self, *, ask: bool) -> str:
        """Return the way that a check recommends: one that was kept or, with `auto`, a new one."""
        if self.settings.ask in WAYS or self._own_way or self._check is not None:
            return self.way
        from findwell.judges.llm.check import find_check  # noqa: PLC0415 - it imports this module

        self._check = find_check(self, ask=ask and self.settings.ask == NEW_CHECK)
        if self._check is not None:
            if not self._check.recommended:
                raise JudgeError(
                    f"{self.name} judges {self._check.in_words()}",
                    where=self.endpoint.identity,
                    fix="use another model, or name a way to ask all the same: -J ask=matrix",
                )
            self._choose(self._check.recommended)
            self.cutoffs = self._check[self.way].cutoffs
        return self.way

    def again(self, *, cached: bool) -> LLMJudge:
        """Return a judge that asks the same model in the same way, from the same budget.

        It does not stop at failures; without `cached` it knows no earlier answers.
        """
        settings = replace(
            self.settings,
            ask=self.find_way(ask=False),
            budget=self.budget,
            max_failures=1.0,
            cache=self.cache if cached else "off",
        )
        other = LLMJudge(settings, other_prompts=self._other_prompts, endpoint=self.endpoint)
        other.cutoffs, other.examples = self.cutoffs, self.examples
        return other

    def _load(self, language: str) -> dict[str, Prompt]:
        return load_prompts(self.settings.prompt, self._other_prompts, language=language)

    def _detect(self, questions: Iterable[str]) -> None:
        """Find out which language questions are in, all at once, if prompts go by that."""
        if self.settings.language == AUTO:
            new = [each for each in questions if each not in self._languages]
            self._languages |= prompt_languages(new) if new else {}

    def _writer_for(self, question: str) -> PromptWriter:
        """Return who puts calls about a question into words."""
        if self.settings.language != AUTO:
            return self._writer
        self._detect([question])
        language = self._languages[question]
        if language not in self._by_language:
            self._by_language[language] = self._load(language)
        return replace(self._writer, prompts=self._by_language[language], language=language)

    def hold(
        self,
        conversations: Iterable[Conversation[T]],
        progress: Callable[[int], None] | None = None,
    ) -> list[T]:
        """Hold conversations with the model, within the budget and with the cache of this judge."""
        cache = self.cache
        held = self._session.run(conversations, cache=cache, budget=self.budget, progress=progress)
        if cache.broken:
            self.stats.note("unsaved-answer", cache.broken)
        return held

    def dry_run(
        self, samples: Sequence[Sample], aspects: frozenset[str], *, seen: set[bytes] | None = None
    ) -> Forecast:
        """Estimate what judging would take, without asking; what is in the cache is free.

        `seen` are requests that were counted before; those of this estimate are added to them.
        """
        parts: list[Forecast] = []
        seen = set() if seen is None else seen
        stats = JudgeStats()  # these are not verdicts
        self.find_way(ask=False)
        if self._check is None and self.settings.ask == NEW_CHECK:
            from findwell.judges.llm.check import forecast_check  # noqa: PLC0415

            parts.append(forecast_check(replace(self.settings, cache=self.cache)))
            self._choose(WAYS[-1])  # the check may recommend it, and it takes the most calls
        self._know(aspects)
        self._detect(sample.question for sample in samples)
        cache = self.cache
        for start in range(0, len(samples), FORECAST_SAMPLES):
            opened = [
                self._open(sample, aspects, stats)
                for sample in samples[start : start + FORECAST_SAMPLES]
            ]
            listed = [question for each in opened for question in each.listings()]
            first, unknown = plan_requests(listed, cache, self.endpoint)
            asked = [question for each in opened for question in each.questions()]
            then, more = plan_requests(asked, cache, self.endpoint)
            tokens = [question.answer_tokens for question in (*unknown, *more)]
            part = forecast(
                [*first, *then],
                self.endpoint,
                cache=cache,
                prices=self.budget.prices,
                answer_tokens=ceil(sum(tokens) / max(len(tokens), 1)),
                seen=seen,
            )
            parts.append(part)
        return self._timed(total(parts))

    def _timed(self, estimate: Forecast) -> Forecast:
        """Add how long the calls will take, as far as the check has measured it."""
        a_call = None if self._check is None else self._check[self.way].seconds_a_call
        return estimate if a_call is None else replace(estimate, seconds=a_call * estimate.calls)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says; nothing in it is secret."""
        used = self._used_prompts()
        own = {name: prompt.file for name, prompt in used.items() if prompt.file}
        file = {"sha256": next(iter(own.values())), "replaces": [*own]} if own else None
        return {
            "judge": self.name,
            "model": self.endpoint.model,
            "endpoint": self.endpoint.identity,
            "prompts": {name: prompt.about() for name, prompt in used.items()},
            **({"prompt": file} if file else {}),
            "options": without_secrets(self.options),
            "headers": sorted(self.endpoint.headers),  # their values may be secret
            **self.settings.recorded(),
            **({} if self._check is None else {"check": self._check.as_dict()}),
            "ask": self.way,
            **({"cutoffs": dict(self.cutoffs)} if self.cutoffs else {}),
            **({"examples": self._hashed_examples()} if self.examples else {}),
            **({"quotes": self.settings.quotes} if self.way == "single" else {}),
            **self.budget.summary(),
            **self.stats.about(),
            "server": self.endpoint.support.summary(),
        }

    def _hashed_examples(self) -> dict[str, str]:
        """Return a hash of the examples of each aspect: their texts are not for every manifest."""
        texts = {name: json.dumps([*map(list, each)]) for name, each in self.examples.items()}
        return {name: hashlib.sha256(each.encode()).hexdigest() for name, each in texts.items()}

    def findings(self) -> tuple[Finding, ...]:
        """Return what should be known about what it judged last, in addition to the verdicts."""
        return self.stats.findings()

    def _used_prompts(self) -> dict[str, Prompt]:
        """Return the prompts that this way of asking uses."""
        single = self.way == "single"
        return {
            name if prompts is self.prompts else f"{language}/{name}": prompt
            for language, prompts in self._by_language.items()
            for name, prompt in prompts.items()
            if name.startswith(SINGLE_PREFIXES) is single
        }

    def _know(self, aspects: frozenset[str]) -> None:
        """Load the prompts of aspects that were registered after the judge was made."""
        for language, prompts in self._by_language.items():
            for name in aspects - prompts.keys():
                prompts.update(aspect_prompts(find_aspect(name), language=language))

    def _open(self, sample: Sample, aspects: frozenset[str], stats: JudgeStats) -> OpenSample:
        writer = self._writer_for(sample.question)
        return OpenSample(
            sample,
            aspects,
            self.settings,
            writer,
            stats,
            self.way,
            self._probe,
            limited=self._limited,
            cutoffs=self.cutoffs,
            examples=self.examples,
        )

    async def judge_sample(self, sample: Sample, aspects: frozenset[str], ask: Ask) -> Judged:
        """Return the verdicts of one sample, as a part of a conversation."""
        self._know(aspects)
        opened = self._open(sample, aspects, self.stats)
        await self._settle(opened.listings(), ask)
        await self._settle(opened.questions(), ask)
        return opened.judged()

    async def _settle(self, questions: Iterable[Question], ask: Ask) -> None:
        """Ask, all at once, and ask again, until everything is settled."""
        async with asyncio.TaskGroup() as group:
            for question in questions:
                group.create_task(self._resolve(question, ask))

    async def _resolve(self, question: Question, ask: Ask) -> None:
        outcome = await ask(question.request())
        if again := question.settle(outcome):
            await self._settle(again, ask)

    @property
    def cache(self) -> Cache:
        """The cache, opened once: what `refresh` asked again is known from then on."""
        if isinstance(self._cache, str):
            self._cache = Cache.open(mode=self._cache)
            weakref.finalize(self, self._cache.close)
        return self._cache


def _prices(settings: Judge, model: str) -> Prices | None:
    given = settings.prices
    if given is not None and not isinstance(given, Prices):
        given = load_prices(os.fspath(given), model)
    return given.halved() if given is not None and settings.batch else given


def _retry(settings: Judge, provider: Provider) -> RetryPolicy:
    """Return how patiently the server is asked."""
    usual = {"concurrency": provider.concurrency, "timeout": provider.timeout}
    given = {"concurrency": settings.concurrency, "timeout": settings.timeout}
    if settings.retry is None:
        given = {name: usual[name] if value is None else value for name, value in given.items()}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(settings.retry or RetryPolicy(), **known)


def plan_requests(
    questions: Sequence[Question], cache: Cache, endpoint: Endpoint
) -> tuple[list[ChatRequest], list[Question]]:
    """Return all requests, also those that known answers lead to, and the open questions.

    What an open question would have been answered is guessed, so that the rest can go on.
    """
    requests: list[ChatRequest] = []
    unknown: list[Question] = []
    while questions:
        asked = [question.request() for question in questions]
        requests += asked
        keys = [request.key(endpoint) for request in asked]
        known = cache.get(keys)
        again: list[Question] = []
        for question, key in zip(questions, keys, strict=True):
            if key in known:
                again += question.settle(known[key])
            else:
                question.guess()
                unknown.append(question)
        questions = again
    return requests, unknown


def total(parts: Sequence[Forecast]) -> Forecast:
    """Add up forecasts.

    >>> total([Forecast(2, 1, 1, 10, 5, None), Forecast(1, 1, 0, 20, 5, None)])
    Forecast(requests=3, calls=2, stored=1, prompt_tokens=30, completion_tokens=10, cost=None,
        seconds=None)
    """
    found: dict[str, Any] = {}
    for each in fields(Forecast):
        known = [value for part in parts if (value := getattr(part, each.name)) is not None]
        found[each.name] = sum(known) if known or each.name not in ("cost", "seconds") else None
    return Forecast(**found)
