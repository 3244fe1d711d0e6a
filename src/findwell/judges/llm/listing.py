"""Items that a model lists: the entities of references; with `decompose` claims and statements.

Items come from the reference alone, so that they are the same whatever was retrieved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from findwell.judges.aspects import Aspect, Listing, VerdictShape
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import Answer, Outcome
from findwell.judges.llm.calls import DIVISIBLE, VerdictQuestion, pack
from findwell.judges.llm.contract import (
    TEXT,
    Fault,
    FaultError,
    array_of,
    entries,
    list_in,
    object_of,
    quote_of,
)
from findwell.judges.llm.line_listing import LineListing
from findwell.judges.llm.parse import extract_object
from findwell.judges.llm.prompt_items import Fence, numbered
from findwell.judges.llm.single import SingleQuestion
from findwell.judges.quotes import distinct, folded, is_quoted
from findwell.judges.verdicts import JudgeFailure, JudgeReason

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json
    from findwell.judges.client.requests import ChatRequest
    from findwell.judges.llm.open_sample import OpenSample

PART = object_of({"quote": TEXT, "text": TEXT})


def listings(opened: OpenSample) -> Iterator[Question]:
    """Yield what must be listed before a sample can be judged: items, then parts."""
    wanted = [aspect for aspect in opened.aspects if opened.to_list(aspect)]
    single = opened.way == "single"
    for aspect in wanted:
        if aspect.shape is VerdictShape.ITEMS and opened.sample.reference.strip():
            yield LineListing(opened, aspect) if single else ItemListing(opened, aspect)
    for aspect in wanted:
        if aspect.shape is VerdictShape.PARTS:
            opened.parts[aspect.name] = [()] * len(opened.sample.chunks)
            most = 1 if single else opened.most.chunks
            for chunks in pack(opened.items.chunks, opened.settings.call_tokens, most):
                if single:
                    yield LineListing(opened, aspect, chunks[0])
                else:
                    yield PartListing(opened, aspect, chunks)


@dataclass(frozen=True, slots=True)
class ItemListing:
    """Asks for the items of a reference, such as its entities or claims."""

    opened: OpenSample
    aspect: Aspect
    attempt: int = 1

    @property
    def how(self) -> Listing:
        """How the items are listed."""
        return self.aspect.listing or Listing()

    def request(self) -> ChatRequest:
        """Show the reference, and the question where it helps to understand it."""
        sample, name = self.opened.sample, self.aspect.name
        fence = Fence.around((sample.reference,), (sample.question,))
        data = [fence.block("reference", sample.reference)]
        if self.how.with_question and sample.question.strip():
            data = [fence.block("question", sample.question), *data]
        task = self.opened.writer.prompts[f"list-{name}"].fill()
        form, limit = object_of({name: array_of(TEXT)}), self.opened.limit(self.answer_tokens)
        return self.opened.writer.request(data, [task], form, self.attempt, limit=limit)

    def settle(self, outcome: Outcome) -> list[ItemListing]:
        """Take the items if they are sound, otherwise ask again."""
        if not isinstance(outcome, Answer):
            self.opened.fail(self.aspect.name, JudgeFailure(outcome.reason, outcome.detail))
            return []
        listed, faults = self._read(outcome.content)
        stats = self.opened.stats
        stats.malformed.update(faults)
        if faults and self.attempt < self.opened.settings.attempts:
            stats.asked_again += 1
            return [replace(self, attempt=self.attempt + 1)]
        if faults and not listed:
            self.opened.fail(self.aspect.name, JudgeFailure(JudgeReason.MALFORMED, faults[0]))
            return []
        for _ in faults:
            stats.note("invented-item", self.opened.sample.query)
        self.opened.listed[self.aspect.name] = listed
        return []

    def guess(self) -> None:
        """Go on with words in place of copied items, sentences in place of others."""
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
        texts = distinct(texts, self.how.same or folded)
        if not texts and self.aspect.is_split:  # every text has a claim, as it has a sentence
            return [], [Fault.NOTHING]
        if not self.how.copied:
            return texts, []
        there = [text for text in texts if is_quoted(text, self.opened.sample.reference)]
        return there, [Fault.NOT_THERE] * (len(texts) - len(there))


@dataclass(frozen=True, slots=True)
class PartListing:
    """Asks for the parts of chunks, such as what they state."""

    opened: OpenSample
    aspect: Aspect
    chunks: tuple[str, ...]
    attempt: int = 1
    divided: int = 0  # of the attempts, those after which less was asked for

    def request(self) -> ChatRequest:
        """Show the chunks."""
        items, name = self.opened.items, self.aspect.name
        data = [items.fence.block(chunk, items.chunks[chunk]) for chunk in self.chunks]
        task = self.opened.writer.about(f"list-{name}", self.chunks)
        entry = object_of({"chunk": TEXT, name: array_of(PART)})
        form = object_of({"chunks": array_of(entry)})
        limit = self.opened.limit(self.answer_tokens)
        return self.opened.writer.request(data, [task], form, self.attempt, limit=limit)

    def settle(self, outcome: Outcome) -> list[PartListing]:
        """Take the parts of the chunks that are sound, ask again about the others."""
        failure, stats = None, self.opened.stats
        if isinstance(outcome, Answer):
            extra: Counter[Fault] = Counter()
            good, wrong = entries(
                extract_object(outcome.content), "chunks", "chunk", self.chunks, extra
            )
            bad = [chunk for chunk, entry in good.items() if not self._take(chunk, entry)]
            wrong |= dict.fromkeys(bad, Fault.WRONG_TYPE)
            stats.malformed.update([*wrong.values(), *extra.elements()])
            again = [tuple(chunk for chunk in self.chunks if chunk in wrong)] if wrong else []
            if wrong:
                failure = JudgeFailure(JudgeReason.MALFORMED, next(iter(wrong.values())))
        else:
            middle = (len(self.chunks) + 1) // 2
            divisible = outcome.reason in DIVISIBLE and len(self.chunks) > 1
            again = [self.chunks[:middle], self.chunks[middle:]] if divisible else []
            failure = JudgeFailure(outcome.reason, outcome.detail)
        less = not isinstance(outcome, Answer)  # which is not the same again
        if again and (less or self.attempt - self.divided < self.opened.settings.attempts):
            stats.asked_again += len(again)
            attempt, divided = self.attempt + 1, self.divided + less
            return [replace(self, chunks=each, attempt=attempt, divided=divided) for each in again]
        if failure is not None:
            self.opened.fail(self.aspect.name, failure)
        return []

    def guess(self) -> None:
        """Go on with the sentences of the chunks, or with the chunks."""
        for chunk in self.chunks:
            number = int(chunk[1:]) - 1
            guessed = self.opened.guess_parts(self.aspect, number)
            self.opened.parts[self.aspect.name][number] = guessed

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about: everything twice."""
        return sum(2 * estimate_tokens(self.opened.items.chunks[each]) for each in self.chunks)

    def _take(self, chunk: str, entry: dict[str, Json]) -> bool:
        """Keep the parts of a chunk, if they are what was asked for."""
        listed = entry.get(self.aspect.name)
        if not isinstance(listed, list):
            return False
        texts, quotes = [], []
        for each in listed:
            text = each.get("text") if isinstance(each, dict) else None
            if not isinstance(each, dict) or not isinstance(text, str) or not text.strip():
                return False
            try:
                quotes.append(quote_of(each))
            except FaultError:
                return False
            texts.append(text.strip())
        self.opened.parts[self.aspect.name][int(chunk[1:]) - 1] = texts
        ids = numbered(f"{chunk}.{self.aspect.prefix}", quotes)
        self.opened.sources.setdefault(self.aspect.name, {}).update(ids)
        return True


Question: TypeAlias = ItemListing | PartListing | LineListing | VerdictQuestion | SingleQuestion
