"""One sample on its way from what is known about it to its verdicts.

First the model lists what it is to list: the entities of the reference and, with `decompose`,
claims and statements. Items come from the reference alone, so that they are the same whatever was
retrieved. Then verdicts are asked for, and the votes become one verdict each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

from findwell.core.errors import OptionError
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape
from findwell.judges.client.protocol import Reason
from findwell.judges.llm.matrix import (
    EXTENTS,
    ItemListing,
    PartListing,
    VerdictCall,
    VerdictQuestion,
    pack,
    plan_calls,
    tokens_of,
)
from findwell.judges.llm.prompts import ALL, Fence, PromptItems, by_chunk, number_items
from findwell.judges.llm.single import LineListing, SingleQuestion, single_questions
from findwell.judges.quotes import distinct
from findwell.judges.verdicts import AspectVerdicts, Judged, JudgeFailure, Judgement, JudgeReason

if TYPE_CHECKING:
    from findwell.judges.llm.answers import Cell
    from findwell.judges.llm.prompts import PromptWriter
    from findwell.judges.llm.stats import JudgeStats
    from findwell.judges.settings import Judge
    from findwell.judges.verdicts import Sample

Question: TypeAlias = ItemListing | PartListing | LineListing | VerdictQuestion | SingleQuestion
GUESSED_ITEMS = 4  # of a reference
PROBE_TOKENS = 2048  # of an answer to a matrix of a check, with room to think before it
SPARE = 2.0  # times the usual length of an answer that a small model may write
MARGIN_TOKENS = 64  # in addition to what is expected
WITHOUT = JudgeFailure(JudgeReason.NO_QUESTION, "nothing can be judged by it")


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
        self.aspects = [aspect for name, aspect in ASPECTS.items() if name in self.wanted]
        for aspect in self.aspects:
            if aspect.needs == "question" and not sample.question.strip():
                self.fail(aspect.name, WITHOUT)
            elif aspect.shows_reference and not sample.reference.strip():
                self.fail(aspect.name, JudgeFailure(JudgeReason.NO_REFERENCE, WITHOUT.detail))
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
        """Return how long an answer may be that usually has so many tokens.

        Usually there is no limit where all is asked at once: that is for models which know when to
        stop, and which may think before they answer.
        """
        if self.way == "matrix":
            return PROBE_TOKENS if self.probe else None
        return ceil(SPARE * tokens) + MARGIN_TOKENS

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
                most = 1 if single else EXTENTS[self.way].chunks
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
            self.items,
            self.aspects,
            how.call_tokens,
            separate_calls=how.separate_calls or self.way == "pieces",
            most=EXTENTS[self.way],
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
