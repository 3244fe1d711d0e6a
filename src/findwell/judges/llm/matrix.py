"""Asking for JSON: many verdicts in one call.

What is judged is divided into calls. What was missing or malformed is asked for again, alone; a
call that was cut off or refused is divided in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from findwell.core.texts.sentences import split
from findwell.judges.aspects import Aspect, VerdictShape, find_aspect
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import Answer, Outcome, Reason
from findwell.judges.llm.answers import (
    Fault,
    FaultError,
    entries,
    extract_object,
    list_in,
    quote_of,
    read_answer,
)
from findwell.judges.llm.prompts import TEXT, array_of, chunk_of, numbered, object_of
from findwell.judges.quotes import distinct, is_quoted, whole_claims
from findwell.judges.verdicts import JudgeFailure, Judgement, JudgeReason

if TYPE_CHECKING:
    from findwell.judges.client.protocol import ChatRequest, Json
    from findwell.judges.llm.judge import OpenSample
    from findwell.judges.llm.prompts import PromptItems

Ids: TypeAlias = "tuple[str, str]"  # an aspect, and an id of what it judges


class Extent(NamedTuple):
    """The most of each that one call asks about."""

    chunks: int
    items: int
    parts: int


CALL_EXTENT = Extent(40, 60, 200)
MARK_TOKENS = 16  # around a chunk
# a smaller call may do: it is shorter, or no longer holds what a filter minds
DIVISIBLE_REASONS = frozenset(
    {Reason.CUT_OFF, Reason.TOO_LONG, Reason.REFUSED, Reason.FILTERED, Reason.EMPTY}
)
PART = object_of({"quote": TEXT, "text": TEXT})


# --- which calls ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerdictCall:
    """The ids of the chunks that are shown, and the ids to answer about them, by aspect."""

    shown: tuple[str, ...]
    wanted: Mapping[str, tuple[str, ...]]
    attempt: int = 1
    divided: int = 0  # of the attempts, those after which less was asked for

    def ids(self) -> list[Ids]:
        """Return all ids to answer, each with its aspect."""
        return [(aspect, each) for aspect, several in self.wanted.items() for each in several]

    def again(self, ids: Sequence[Ids]) -> VerdictCall:
        """Return the call that asks for these ids alone."""
        wanted, shown = by_aspect(ids), self.shown
        if all(find_aspect(aspect).listed for aspect in wanted):
            needed = {chunk_of(each) for _, each in ids}
            shown = tuple(chunk for chunk in shown if chunk in needed)
        return VerdictCall(shown, wanted, self.attempt + 1, self.divided)

    def halves(self) -> list[VerdictCall]:
        """Return two calls that replace this one; none if it is as small as it can be."""
        if any(find_aspect(aspect).shape is VerdictShape.LIST for aspect in self.wanted):
            return []
        ids, middle = self.ids(), (len(self.shown) + 1) // 2
        if len(self.shown) > 1:
            halves = [self._about(part) for part in (self.shown[:middle], self.shown[middle:])]
        else:
            middle = (len(ids) + 1) // 2
            parts = (ids[:middle], ids[middle:]) if len(ids) > 1 else ()
            halves = [self.again(part) for part in parts]
        attempt, divided = self.attempt + 1, self.divided + 1
        return [replace(each, attempt=attempt, divided=divided) for each in halves]

    def _about(self, chunks: tuple[str, ...]) -> VerdictCall:
        """Return the same about some of the chunks."""
        ids = [
            (aspect, each)
            for aspect, each in self.ids()
            if not find_aspect(aspect).listed or chunk_of(each) in chunks
        ]
        return VerdictCall(chunks, by_aspect(ids))


def by_aspect(ids: Iterable[Ids]) -> dict[str, tuple[str, ...]]:
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
    most: Extent = CALL_EXTENT,
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
    return estimate_tokens(chunk) + MARK_TOKENS


# --- what is made of their answers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatrixQuestion:
    """Asks a call; a subclass says how it is put, and what is made of the answer."""

    opened: OpenSample
    call: VerdictCall
    vote: int = 0

    def settle(self, outcome: Outcome) -> list[Self]:
        """Take what is sound; ask again for the rest alone, or for less at a time."""
        call, stats = self.call, self.opened.stats
        if isinstance(outcome, Answer):
            stats.longest = max(stats.longest, outcome.usage.completion)
            wrong, extra = self._take(outcome.content)
            stats.malformed.update([*wrong.values(), *extra.elements()])
            lost = {each: JudgeFailure(JudgeReason.MALFORMED, why) for each, why in wrong.items()}
            # the same is asked for a limited number of times, less than that always
            repeats = call.attempt - call.divided < self.opened.settings.attempts
            again = [call.again(list(wrong))] if wrong and repeats else []
        else:
            lost = dict.fromkeys(call.ids(), JudgeFailure(outcome.reason, outcome.detail))
            divisible = outcome.reason in DIVISIBLE_REASONS and not self.opened.probe
            again = call.halves() if divisible else []
        stats.asked_again += len(again)
        if not again:
            self._lose(lost)
        return [replace(self, call=each) for each in again]

    def _take(self, content: str) -> tuple[dict[Ids, Fault], Counter[Fault]]:
        """Keep what an answer holds; return what is wrong about ids, and with other entries."""
        raise NotImplementedError

    def _lose(self, lost: Mapping[Ids, JudgeFailure]) -> None:
        """Give up what no answer held."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class VerdictQuestion(MatrixQuestion):
    """Asks for verdicts about a sample."""

    def request(self) -> ChatRequest:
        """Put it into words."""
        asked = self.opened.writer.for_verdicts(self.call, self.opened.items, self.vote)
        return replace(asked, limit=self.opened.limit(self.answer_tokens))

    def _take(self, content: str) -> tuple[dict[Ids, Fault], Counter[Fault]]:
        parsed = read_answer(content, self.call.wanted, self.call.shown, self.opened.items)
        self.opened.votes[self.vote] |= parsed.verdicts
        return parsed.wrong, parsed.extra

    def _lose(self, lost: Mapping[Ids, JudgeFailure]) -> None:
        for (aspect, each), failure in lost.items():
            of_item = find_aspect(aspect).shape is VerdictShape.ITEMS
            for chunk in self.call.shown if of_item else (chunk_of(each),):
                self.opened.votes[self.vote][aspect, each, chunk] = Judgement(None, failure=failure)

    def guess(self) -> None:
        """Leave the verdicts open: nothing follows from them."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return sum(find_aspect(aspect).answer_tokens for aspect, _ in self.call.ids())


@dataclass(frozen=True, slots=True)
class PartListing(MatrixQuestion):
    """Asks for the parts of chunks, such as what they state; a call wants the chunks themselves."""

    @property
    def _aspect(self) -> Aspect:
        [name] = self.call.wanted
        return find_aspect(name)

    def request(self) -> ChatRequest:
        """Show the chunks."""
        items, writer, name = self.opened.items, self.opened.writer, self._aspect.name
        data = [items.fence.block(chunk, items.chunks[chunk]) for chunk in self.call.shown]
        return writer.request(
            data,
            [writer.field("chunks", self.call.shown)],
            object_of({"chunks": array_of(object_of({"chunk": TEXT, name: array_of(PART)}))}),
            self.call.attempt,
            instructions=[writer.prompts[f"list-{name}"].fill()],
            limit=self.opened.limit(self.answer_tokens),
        )

    def _take(self, content: str) -> tuple[dict[Ids, Fault], Counter[Fault]]:
        extra: Counter[Fault] = Counter()
        answer = extract_object(content)
        good, wrong = entries(answer, "chunks", "chunk", self.call.shown, extra)
        for chunk, entry in good.items():
            try:
                self._take_parts(chunk, list_in(entry, self._aspect.name))
            except FaultError:
                wrong[chunk] = Fault.WRONG_TYPE
        return {(self._aspect.name, chunk): fault for chunk, fault in wrong.items()}, extra

    def _take_parts(self, chunk: str, listed: Sequence[Json]) -> None:
        """Keep the parts of a chunk, if they are what was asked for."""
        texts, quotes = [], []
        for each in listed:
            text = each.get("text") if isinstance(each, dict) else None
            if not isinstance(each, dict) or not isinstance(text, str) or not text.strip():
                raise FaultError(Fault.WRONG_TYPE)
            quotes.append(quote_of(each))
            texts.append(text.strip())
        name = self._aspect.name
        self.opened.parts[name][int(chunk[1:]) - 1] = texts
        ids = numbered(f"{chunk}.{self._aspect.prefix}", quotes)
        self.opened.sources.setdefault(name, {}).update(ids)

    def _lose(self, lost: Mapping[Ids, JudgeFailure]) -> None:
        for (aspect, _), failure in [*lost.items()][:1]:
            self.opened.fail(aspect, failure)

    def guess(self) -> None:
        """Go on with the sentences of the chunks, or with the chunks."""
        for chunk in self.call.shown:
            number = int(chunk[1:]) - 1
            guessed = self.opened.guess_parts(self._aspect, number)
            self.opened.parts[self._aspect.name][number] = guessed

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about: everything twice."""
        return sum(2 * estimate_tokens(self.opened.items.chunks[each]) for each in self.call.shown)


@dataclass(frozen=True, slots=True)
class ItemListing:
    """Asks for the items of a reference, such as its entities or claims."""

    opened: OpenSample
    aspect: Aspect
    attempt: int = 1

    def request(self) -> ChatRequest:
        """Show the reference, and the question where it helps to understand it."""
        opened, name = self.opened, self.aspect.name
        data = opened.data_to_list(self.aspect, "reference", opened.sample.reference)
        return opened.writer.request(
            data,
            [f'"{name}"'],
            object_of({name: array_of(TEXT)}),
            self.attempt,
            instructions=[opened.writer.prompts[f"list-{name}"].fill()],
            limit=opened.limit(self.answer_tokens),
        )

    def settle(self, outcome: Outcome) -> list[ItemListing]:
        """Take the items if they are sound, otherwise ask again."""
        opened, stats, name = self.opened, self.opened.stats, self.aspect.name
        if not isinstance(outcome, Answer):
            opened.fail(name, JudgeFailure(outcome.reason, outcome.detail))
            return []
        listed, faults = self._read(outcome.content)
        stats.malformed.update(faults)
        if faults and self.attempt < opened.settings.attempts:
            stats.asked_again += 1
            return [replace(self, attempt=self.attempt + 1)]
        if Fault.FRAGMENT in faults:  # sentences are whole
            listed, faults = split([opened.sample.reference])[0], []
        if faults and not listed:
            opened.fail(name, JudgeFailure(JudgeReason.MALFORMED, faults[0]))
            return []
        for _ in faults:
            stats.note("invented-item", opened.sample.query)
        opened.listed[name] = listed
        return []

    def guess(self) -> None:
        """Go on with words instead of copied items, sentences instead of others."""
        self.opened.listed[self.aspect.name] = self.opened.guess_items(self.aspect)

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return 20 + estimate_tokens(self.opened.sample.reference)

    def _read(self, content: str) -> tuple[list[str], list[Fault]]:
        """Return the items of an answer, each once, and what is wrong with it."""
        try:
            items = list_in(extract_object(content), self.aspect.name)
        except FaultError as error:
            return [], [error.fault]
        texts = [item.strip() for item in items if isinstance(item, str)]
        if len(texts) < len(items) or not all(texts):
            return [], [Fault.WRONG_TYPE]
        texts = distinct(texts, self.aspect.how_listed.same)
        if not texts and self.aspect.is_split:  # every text has a claim, as it has a sentence
            return [], [Fault.NOTHING]
        if not self.aspect.how_listed.copied:
            whole = not self.aspect.is_split or whole_claims(texts, self.opened.sample.reference)
            return texts, [] if whole else [Fault.FRAGMENT]
        there = [text for text in texts if is_quoted(text, self.opened.sample.reference)]
        return there, [Fault.NOT_THERE] * (len(texts) - len(there))
