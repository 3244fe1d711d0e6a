"""Calls for verdicts: what each shows and asks for, how it is put, and what is asked again.

A prompt begins alike for all calls about the same chunks: instructions, question, chunks. Servers
that remember beginnings need not read them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from findwell.core.texts.languages import ENGLISH
from findwell.judges.aspects import Aspect, VerdictShape, find_aspect
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import Answer, Outcome, Reason
from findwell.judges.client.requests import ChatRequest, Message
from findwell.judges.llm.contract import read_answer, schema
from findwell.judges.llm.prompt_items import by_chunk, chunk_of, ranges
from findwell.judges.llm.prompt_languages import WORDS, PromptWords
from findwell.judges.verdicts import JudgeFailure, JudgeReason, Verdict

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json
    from findwell.judges.llm.open_sample import OpenSample
    from findwell.judges.llm.prompt_items import PromptItems
    from findwell.judges.llm.templates import Prompt


class Most(NamedTuple):
    """The most of each that one call asks about."""

    chunks: int
    items: int
    parts: int


WHOLE, PIECES = Most(40, 60, 200), Most(3, 3, 8)
SPARE = 2.0  # times the usual length of an answer that a small model may write
MARKS = 16  # tokens around a chunk
# a smaller call may do: it is shorter, or no longer holds what a filter minds
DIVISIBLE = frozenset(
    {Reason.CUT_OFF, Reason.TOO_LONG, Reason.REFUSED, Reason.FILTERED, Reason.EMPTY}
)


@dataclass(frozen=True, slots=True)
class VerdictCall:
    """The ids of the chunks that are shown, and the ids to answer about them, by aspect."""

    shown: tuple[str, ...]
    wanted: Mapping[str, tuple[str, ...]]
    attempt: int = 1
    divided: int = 0  # of the attempts, those after which less was asked for

    @property
    def repeated(self) -> int:
        """How often the same was asked for, until now."""
        return self.attempt - self.divided

    def again(self, ids: Sequence[tuple[str, str]]) -> VerdictCall:
        """Return the call that asks for these ids alone."""
        wanted, shown = by_aspect(ids), self.shown
        if all(find_aspect(aspect).listed for aspect in wanted):
            needed = {chunk_of(each) for _, each in ids}
            shown = tuple(chunk for chunk in shown if chunk in needed)
        return VerdictCall(shown, wanted, self.attempt + 1, self.divided)

    def halves(self) -> list[VerdictCall]:
        """Return two calls in place of this one; none if it is as small as it can be."""
        if any(find_aspect(aspect).shape is VerdictShape.LIST for aspect in self.wanted):
            return []
        if len(self.shown) > 1:
            middle = (len(self.shown) + 1) // 2
            halves = [self._about(part) for part in (self.shown[:middle], self.shown[middle:])]
        else:
            ids = [(aspect, each) for aspect, several in self.wanted.items() for each in several]
            middle = (len(ids) + 1) // 2
            parts = (ids[:middle], ids[middle:]) if len(ids) > 1 else ()
            halves = [self.again(part) for part in parts]
        attempt, divided = self.attempt + 1, self.divided + 1
        return [replace(each, attempt=attempt, divided=divided) for each in halves]

    def _about(self, chunks: tuple[str, ...]) -> VerdictCall:
        """Return the same about some of the chunks."""
        wanted = {
            aspect: tuple(
                each for each in ids if not find_aspect(aspect).listed or chunk_of(each) in chunks
            )
            for aspect, ids in self.wanted.items()
        }
        return VerdictCall(chunks, {aspect: ids for aspect, ids in wanted.items() if ids})


def by_aspect(ids: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return ids by aspect, from pairs of an aspect and an id."""
    found: dict[str, tuple[str, ...]] = {}
    for aspect, each in ids:
        found[aspect] = (*found.get(aspect, ()), each)
    return found


def plan_calls(
    items: PromptItems,
    aspects: Sequence[Aspect],
    tokens: int,
    *,
    separate_calls: bool,
    most: Most = WHOLE,
) -> list[VerdictCall]:
    """Divide what is to be judged into calls, each with about this many tokens of chunks at most.

    Chunks and items are asked about together; parts and the list as a whole in separate calls.
    """
    calls: list[VerdictCall] = []
    asked = [aspect for aspect in aspects if items.judged(aspect)]
    about = [
        aspect for aspect in asked if aspect.shape in (VerdictShape.CHUNKS, VerdictShape.ITEMS)
    ]
    # separate, so that no other verdict goes by the reference
    shares = [[aspect for aspect in about if aspect.shows_reference is it] for it in (False, True)]
    groups = [[aspect] for aspect in about] if separate_calls else filter(None, shares)
    for group in groups:
        for shown in pack(items.chunks, tokens, most.chunks):
            calls += _about_chunks(items, group, shown, most.items)
    for aspect in asked:
        if aspect.shape is VerdictShape.PARTS:
            for ids in pack(items.judged(aspect), tokens, most.parts):
                calls.append(VerdictCall((*dict.fromkeys(map(chunk_of, ids)),), {aspect.name: ids}))
        elif aspect.shape is VerdictShape.LIST:
            calls.append(VerdictCall((*items.chunks,), {aspect.name: (*items.judged(aspect),)}))
    return calls


def _about_chunks(
    items: PromptItems, aspects: Sequence[Aspect], shown: tuple[str, ...], most: int
) -> Iterator[VerdictCall]:
    """Yield the calls about some chunks: one, unless there are very many items."""
    first = {aspect.name: shown for aspect in aspects if aspect.shape is VerdictShape.CHUNKS}
    units = [
        (aspect.name, each)
        for aspect in aspects
        if aspect.name not in first
        for each in items.judged(aspect)
    ]
    for start in range(0, len(units) or 1, most):
        more = by_aspect(units[start : start + most])
        yield VerdictCall(shown, more if start else first | more)


def pack(texts: Mapping[str, str], tokens: int, most: int) -> Iterator[tuple[str, ...]]:
    """Yield ids in order, as many at a time as fit."""
    ids: list[str] = []
    room = tokens
    for each, text in texts.items():
        need = tokens_of(text)
        if ids and (need > room or len(ids) == most):
            yield tuple(ids)
            ids, room = [], tokens
        ids.append(each)
        room -= need
    if ids:
        yield tuple(ids)


def tokens_of(chunk: str) -> int:
    """Return about how many tokens a chunk takes in a prompt."""
    return estimate_tokens(chunk) + MARKS


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Puts calls into words."""

    prompts: Mapping[str, Prompt]
    options: Mapping[str, Json] = field(default_factory=dict)
    role: str = "judge"  # the prompt that says what the model is
    words: PromptWords = WORDS[ENGLISH]

    def for_verdicts(self, call: VerdictCall, items: PromptItems, vote: int = 0) -> ChatRequest:
        """Ask for verdicts."""
        data = list(self._data(call, items))
        tasks = [self.about(name, ids) for name, ids in call.wanted.items()]
        return self.request(data, tasks, schema(call.wanted), call.attempt, vote=vote)

    def about(self, name: str, ids: Iterable[str]) -> str:
        """Return a prompt with the ids that it is about."""
        return self.prompts[name].fill(ids=ranges(ids, self.words.to))

    def request(
        self,
        data: Sequence[str],
        tasks: Sequence[str],
        form: Mapping[str, Json],
        attempt: int = 1,
        *,
        vote: int = 0,
        limit: int | None = None,
    ) -> ChatRequest:
        """Put the data first and the task last."""
        if attempt > 1:
            tasks = [*tasks, self.prompts["again"].fill(attempt=attempt)]
        asked = "\n".join([*data, "", self.words.task, "\n\n".join(tasks)])
        messages = (Message("system", self.prompts[self.role].text), Message("user", asked))
        return ChatRequest(messages, form, self.options_of(vote), vote, "verdicts", limit)

    def options_of(self, vote: int) -> dict[str, Json]:
        """Return the fields of a call: each vote has a seed of its own."""
        options = dict(self.options)
        seed = options.get("seed")
        if vote and isinstance(seed, int):
            options["seed"] = seed + vote
        return options

    @staticmethod
    def _data(call: VerdictCall, items: PromptItems) -> Iterator[str]:
        fence = items.fence
        if items.question.strip():
            yield fence.block("question", items.question)
        if any(find_aspect(name).shows_reference for name in call.wanted):
            yield fence.block("reference", items.reference)
        shapes = {name: find_aspect(name).shape for name in call.wanted}
        parts = {
            name: by_chunk(call.wanted[name])
            for name, shape in shapes.items()
            if shape is VerdictShape.PARTS
        }
        for chunk in call.shown:
            for name, inside in parts.items():
                yield fence.lines(chunk, {each: items.units[name][each] for each in inside[chunk]})
            if not parts:
                yield fence.block(chunk, items.chunks[chunk])
        for name, ids in call.wanted.items():
            if shapes[name] is VerdictShape.ITEMS:
                yield fence.lines(name, {each: items.units[name][each] for each in ids})


@dataclass(frozen=True, slots=True)
class VerdictQuestion:
    """Asks for verdicts about a sample."""

    opened: OpenSample
    call: VerdictCall
    vote: int = 0

    def request(self) -> ChatRequest:
        """Put it into words."""
        asked = self.opened.writer.for_verdicts(self.call, self.opened.items, self.vote)
        return replace(asked, limit=self.opened.limit(self.answer_tokens))

    def settle(self, outcome: Outcome) -> list[VerdictQuestion]:
        """Take the verdicts; ask again for those that are missing, alone."""
        call, stats = self.call, self.opened.stats
        if isinstance(outcome, Answer):
            stats.longest = max(stats.longest, outcome.usage.completion)
            parsed = read_answer(outcome.content, call.wanted, call.shown, self.opened.items)
            stats.malformed.update([*parsed.wrong.values(), *parsed.extra.elements()])
            self.opened.votes[self.vote] |= parsed.verdicts
            again = [call.again(list(parsed.wrong))] if parsed.wrong else []
            lost = {
                each: JudgeFailure(JudgeReason.MALFORMED, fault)
                for each, fault in parsed.wrong.items()
            }
        else:
            less = outcome.reason in DIVISIBLE and not self.opened.probe
            again = call.halves() if less else []
            wanted = ((aspect, each) for aspect, ids in call.wanted.items() for each in ids)
            lost = dict.fromkeys(wanted, JudgeFailure(outcome.reason, outcome.detail))
        less = not isinstance(outcome, Answer)  # which is not the same again
        if again and (less or call.repeated < self.opened.settings.attempts):
            stats.asked_again += len(again)
            return [replace(self, call=each) for each in again]
        for (aspect, each), failure in lost.items():
            of_item = find_aspect(aspect).shape is VerdictShape.ITEMS
            for chunk in call.shown if of_item else (chunk_of(each),):
                self.opened.votes[self.vote][aspect, each, chunk] = Verdict(None, failure=failure)
        return []

    def guess(self) -> None:
        """Leave the verdicts open: nothing follows from them."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        wanted = self.call.wanted.items()
        return sum(find_aspect(name).answer_tokens * len(ids) for name, ids in wanted)
