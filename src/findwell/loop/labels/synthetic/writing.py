"""What a model is asked to write, and what is taken from its answer.

A draft is a question on its way: the passages that it is written about, and its kind. The answer
must hold a question and, unless nothing is to answer it, quotes that stand in the passages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import polars as pl

from findwell.judges.llm.answers import Unreadable, extract_object
from findwell.judges.llm.prompts import (
    TEXT,
    Fence,
    Prompt,
    array_of,
    numbered,
    object_of,
    packaged_prompts,
    replace_prompts,
)
from findwell.judges.quotes import AROUND_QUOTES, LEAST_QUOTE
from findwell.loop.labels.synthetic.kinds import QuestionKind
from findwell.loop.labels.synthetic.wording import copied_share
from findwell.relations.spans.locate import locate

if TYPE_CHECKING:
    from findwell.judges.client.protocol import ChatRequest, Json
    from findwell.judges.llm.prompts import PromptWriter
    from findwell.loop.labels.synthetic.passages import Passage

ROLE, AGAIN = "write", "write-again"
FILLS = {
    ROLE: frozenset[str](),
    AGAIN: frozenset({"fault", "attempt"}),
    **{str(kind): frozenset[str]() for kind in QuestionKind},
}
MOST_COPIED = 0.5  # of the words of a paraphrased question that its spans have, too
MARK = re.compile(r"\bc[12]\b|\bpassages? c?[12]\b", re.IGNORECASE)  # what only the prompt knows
GUESSED = 12  # words of a question that has not been written yet


class DropReason(StrEnum):
    """Why a draft is no question of the gold, where it is not that there was no answer."""

    DECLINED = "the model found nothing to ask"
    MALFORMED = "malformed answer"
    NOT_QUOTED = "a quote is not in its passage"
    AMBIGUOUS = "a quote is in several places of its passage"
    MARKED = "the question names the passage of the prompt"
    COPIED = "the question copies the words of the passage"
    NOT_ANSWERED = "its spans do not answer it"
    ELSEWHERE = "other passages answer it, too"
    ONE_SUFFICES = "one of its two passages suffices"
    ANSWERED = "a passage answers it"
    NEAR_DUPLICATE = "near-duplicate of another question"


# what another answer of the model may put right
RETRIED = {
    DropReason.MALFORMED,
    DropReason.NOT_QUOTED,
    DropReason.AMBIGUOUS,
    DropReason.MARKED,
    DropReason.COPIED,
}


class DropError(Exception):
    """Ends a draft."""

    def __init__(self, reason: str, question: str = "", *, ended: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.question = question
        self.ended = ended  # nothing more can be asked, of any draft


@dataclass(frozen=True, slots=True)
class Span:
    """What a document says at a place, character by character."""

    doc: str
    start: int
    end: int
    quote: str

    def as_dict(self) -> dict[str, Json]:
        """Return the span as a gold holds it."""
        place: dict[str, Json] = {"doc": self.doc, "start": self.start, "end": self.end}
        return {**place, "quote": self.quote, "grade": 1}


@dataclass(frozen=True, slots=True)
class Written:
    """A question as the model wrote it, with the places of its quotes."""

    question: str
    answer: str = ""
    spans: tuple[Span, ...] = ()
    guessed: bool = False  # it stands for one that has not been written yet


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that is to be written: its kind, and about which passages."""

    kind: QuestionKind
    passages: tuple[Passage, ...]

    @property
    def shown(self) -> dict[str, str]:
        """The passages by the ids that the prompt gives them."""
        return numbered("c", [passage.text for passage in self.passages])

    def request(self, writer: PromptWriter, attempt: int = 1, fault: str = "") -> ChatRequest:
        """Put it into words; `fault` says what was wrong with the answer before."""
        fence = Fence.around([*self.shown.values()])
        data = [fence.block(each, text) for each, text in self.shown.items()]
        tasks = [writer.prompts[self.kind].fill()]
        if attempt > 1:
            tasks.append(writer.prompts[AGAIN].fill(fault=fault, attempt=attempt))
        return writer.request(data, tasks, self.form)

    @property
    def form(self) -> dict[str, Json]:
        """The JSON schema of the answer; the question comes last: it is about what was found."""
        if not self.kind.answered:
            return object_of({"missing": TEXT, "question": TEXT})
        quotes = array_of(object_of({"chunk": TEXT, "quote": TEXT}))
        return object_of({"quotes": quotes, "answer": TEXT, "question": TEXT})

    def read(self, content: str) -> Written:
        """Take the question out of an answer, or raise the reason why it cannot be used."""
        said = extract_object(content)
        if isinstance(said, Unreadable):
            raise DropError(DropReason.MALFORMED)
        question = _text(said, "question")
        if not question:
            raise DropError(DropReason.DECLINED)
        if MARK.search(question):
            raise DropError(DropReason.MARKED, question)
        if not self.kind.answered:
            return Written(question)
        spans = self._spans(said.get("quotes"), question)
        if self.kind is QuestionKind.PARAPHRASED:
            quoted = " ".join(span.quote for span in spans)
            if copied_share(question, quoted) > MOST_COPIED:
                raise DropError(DropReason.COPIED, question)
        return Written(question, _text(said, "answer"), spans)

    def guess(self) -> Written:
        """Return about what may come, for an estimate of what it takes."""
        first = self.passages[0].text
        spans = tuple(
            Span(each.doc, each.start, each.start + 200, each.text[:200]) for each in self.passages
        )
        words = f"{self.kind}: {' '.join(first.split()[:GUESSED])}"  # not that of another kind
        return Written(words, words, spans if self.kind.answered else (), guessed=True)

    def _spans(self, listed: Json, question: str) -> tuple[Span, ...]:
        """Return the places of the quotes, which must be from every passage that was shown."""
        if not isinstance(listed, list) or not listed:
            raise DropError(DropReason.MALFORMED, question)
        homes = dict(zip(self.shown, self.passages, strict=True))
        spans: list[Span] = []
        seen: set[str] = set()
        for entry in listed:
            chunk = entry.get("chunk") if isinstance(entry, dict) else None
            quote = entry.get("quote") if isinstance(entry, dict) else None
            if not isinstance(quote, str) or chunk not in homes:
                raise DropError(DropReason.MALFORMED, question)
            seen.add(str(chunk))
            spans.append(find_span(quote, homes[str(chunk)], question))
        if seen != set(homes):
            raise DropError(DropReason.MALFORMED, question)
        return _apart(spans)


def find_span(quote: str, passage: Passage, question: str = "") -> Span:
    """Return where a quote stands in its passage, whatever its white space, case and dashes.

    >>> from findwell.loop.labels.synthetic.passages import Passage
    >>> find_span("it costs  5", Passage(0, "d", 10, 40, "Since May it costs 5 euros.", "d"))
    Span(doc='d', start=20, end=30, quote='it costs 5')
    """
    for each in dict.fromkeys((quote, quote.strip(AROUND_QUOTES))):
        if sum(map(str.isalnum, each)) < LEAST_QUOTE:
            continue
        document = pl.DataFrame({"doc": ["passage"], "text": [passage.text]})
        # a score of 1: nothing that only resembles the quote
        places = locate([each], ["passage"], document, min_score=1.0)
        _, _, start, end, _, status, _ = places.row(0)
        if status == "ambiguous":
            raise DropError(DropReason.AMBIGUOUS, question)
        if status != "lost":
            first = passage.start + start
            return Span(passage.doc, first, passage.start + end, passage.text[start:end])
    raise DropError(DropReason.NOT_QUOTED, question)


def _apart(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return spans in the order of their places; of two that overlap the longer one.

    What stands in the other is found with it, and would be asked for twice.
    """
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda span: (span.start - span.end, span.doc, span.start)):
        if all(span.doc != k.doc or span.end <= k.start or k.end <= span.start for k in kept):
            kept.append(span)
    order = {(span.doc, span.start): place for place, span in enumerate(spans)}
    return tuple(sorted(kept, key=lambda span: order[span.doc, span.start]))


def _text(said: Mapping[str, Json], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise DropError(DropReason.MALFORMED)
    return " ".join(value.split())


def load_writing_prompts(
    folder: str | os.PathLike[str] | None, others: Sequence[str]
) -> dict[str, Prompt]:
    """Read the prompts for writing; files of the same name in a folder take their place."""
    return replace_prompts(
        packaged_prompts("findwell.loop.labels.synthetic", FILLS), folder, others
    )
