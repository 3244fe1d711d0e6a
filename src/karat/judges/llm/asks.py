"""One call about a sample: what is shown, what is to be answered, and how it is put.

A prompt begins alike for all calls about the same chunks: instructions, question, chunks. Servers
that remember beginnings need not read them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from karat.client.budget import estimate_tokens
from karat.client.requests import ChatRequest, Message
from karat.judges.llm.contract import schema
from karat.judges.llm.dossier import by_chunk, chunk_of
from karat.judges.llm.fence import ranges

if TYPE_CHECKING:
    from karat.client.protocol import Json
    from karat.judges.llm.dossier import PromptItems
    from karat.judges.llm.templates import Prompt
    from karat.judges.verdicts import Aspect

CHUNKS, ITEMS, STATEMENTS = 40, 60, 200  # the most of each that one call asks about
MARKS = 16  # tokens around a chunk
ANSWERS: dict[Aspect, int] = {  # tokens of a typical entry
    "relevance": 40,
    "claims": 45,
    "entities": 30,
    "statements": 16,
}


@dataclass(frozen=True, slots=True)
class Ask:
    """The ids of the chunks that are shown, and of what is to be answered about them."""

    shown: tuple[str, ...]
    wanted: Mapping[Aspect, tuple[str, ...]]
    attempt: int = 1

    def again(self, ids: Sequence[tuple[Aspect, str]]) -> Ask:
        """Return what asks for these ids alone."""
        wanted: dict[Aspect, tuple[str, ...]] = {}
        for aspect, each in ids:
            wanted[aspect] = (*wanted.get(aspect, ()), each)
        shown = self.shown
        if not wanted.keys() & {"claims", "entities"}:
            needed = {chunk_of(each) for _, each in ids}
            shown = tuple(chunk for chunk in shown if chunk in needed)
        return Ask(shown, wanted, self.attempt + 1)

    def halves(self) -> list[Ask]:
        """Return two calls in place of this one; none if it is as small as it can be."""
        if len(self.shown) > 1:
            middle = (len(self.shown) + 1) // 2
            parts = self.shown[:middle], self.shown[middle:]
            return [replace(self._about(part), attempt=self.attempt + 1) for part in parts]
        ids = [(aspect, each) for aspect, several in self.wanted.items() for each in several]
        middle = (len(ids) + 1) // 2
        return [self.again(part) for part in (ids[:middle], ids[middle:])] if len(ids) > 1 else []

    def _about(self, chunks: tuple[str, ...]) -> Ask:
        """Return the same about some of the chunks."""
        wanted = {
            aspect: tuple(
                each for each in ids if aspect in ("claims", "entities") or chunk_of(each) in chunks
            )
            for aspect, ids in self.wanted.items()
        }
        return Ask(chunks, {aspect: ids for aspect, ids in wanted.items() if ids}, self.attempt)

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return sum(ANSWERS[aspect] * len(ids) for aspect, ids in self.wanted.items())


def plan(
    dossier: PromptItems, aspects: Sequence[Aspect], tokens: int, *, separate_calls: bool
) -> list[Ask]:
    """Divide what is to be judged into calls, each with about so many tokens of chunks at most."""
    asks: list[Ask] = []
    about = [aspect for aspect in aspects if aspect != "statements" and dossier.units(aspect)]
    groups = [[aspect] for aspect in about] if separate_calls else [about] * bool(about)
    for group in groups:
        for shown in pack(dossier.chunks, tokens, CHUNKS):
            asks += _about_chunks(dossier, group, shown)
    if "statements" in aspects:
        for ids in pack(dossier.statements, tokens, STATEMENTS):
            asks.append(Ask(tuple(dict.fromkeys(map(chunk_of, ids))), {"statements": ids}))
    return asks


def _about_chunks(
    dossier: PromptItems, aspects: Sequence[Aspect], shown: tuple[str, ...]
) -> Iterator[Ask]:
    """Yield the calls about some chunks: one, unless there are very many claims or entities."""
    items = [
        (aspect, each)
        for aspect in aspects
        for each in (dossier.units(aspect) if aspect != "relevance" else ())
    ]
    graded: dict[Aspect, tuple[str, ...]] = {"relevance": shown} if "relevance" in aspects else {}
    for start in range(0, len(items) or 1, ITEMS):
        wanted = dict(graded) if not start else {}
        for aspect, each in items[start : start + ITEMS]:
            wanted[aspect] = (*wanted.get(aspect, ()), each)
        yield Ask(shown, wanted)


def pack(texts: Mapping[str, str], tokens: int, most: int) -> Iterator[tuple[str, ...]]:
    """Yield ids in order, as many at a time as fit."""
    ids: list[str] = []
    room = tokens
    for each, text in texts.items():
        need = estimate_tokens(text) + MARKS
        if ids and (need > room or len(ids) == most):
            yield tuple(ids)
            ids, room = [], tokens
        ids.append(each)
        room -= need
    if ids:
        yield tuple(ids)


@dataclass(frozen=True, slots=True)
class Writer:
    """Puts asks into words."""

    prompts: Mapping[str, Prompt]
    options: Mapping[str, Json] = field(default_factory=dict)

    def ruling(self, ask: Ask, dossier: PromptItems, vote: int = 0) -> ChatRequest:
        """Ask for verdicts."""
        data = list(self._data(ask, dossier))
        tasks = [self.prompts[name].fill(ids=ranges(ids)) for name, ids in ask.wanted.items()]
        return self.request(data, tasks, schema(ask.wanted), ask.attempt, vote)

    def request(
        self,
        data: Sequence[str],
        tasks: Sequence[str],
        form: Mapping[str, Json],
        attempt: int = 1,
        vote: int = 0,
    ) -> ChatRequest:
        """Put the data first and the task last."""
        if attempt > 1:
            tasks = [*tasks, self.prompts["again"].fill(attempt=attempt)]
        asked = "\n".join([*data, "", "Task:", "\n\n".join(tasks)])
        options = dict(self.options)
        seed = options.get("seed")
        if vote and isinstance(seed, int):
            options["seed"] = seed + vote
        messages = (Message("system", self.prompts["judge"].text), Message("user", asked))
        return ChatRequest(messages, form, options, vote, "verdicts")

    @staticmethod
    def _data(ask: Ask, dossier: PromptItems) -> Iterator[str]:
        fence = dossier.fence
        if dossier.question.strip():
            yield fence.block("question", dossier.question)
        statements = by_chunk(ask.wanted.get("statements", ()))
        for chunk in ask.shown:
            if statements:
                parts = {each: dossier.statements[each] for each in statements[chunk]}
                yield fence.lines(chunk, parts)
            else:
                yield fence.block(chunk, dossier.chunks[chunk])
        for aspect in ("claims", "entities"):
            if ids := ask.wanted.get(aspect, ()):
                units = dossier.units(aspect)
                yield fence.lines(aspect, {each: units[each] for each in ids})
