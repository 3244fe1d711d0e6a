"""From passages to a question that was checked, or to the reason why it was dropped.

A draft is a question on its way: the passages that it is written about, and its kind. The answer
of the model must hold a question and, unless nothing is to answer it, quotes that stand in the
passages.

The checks ask the same model, as a judge of sufficiency: the spans together must suffice for an
answer; other passages, which a lexical search finds, must not, and neither must one of the two
passages of a multi-hop question together with them. An unanswerable question has no such spans, and
nothing that is found may suffice.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError, choose
from findwell.core.frames import pl
from findwell.core.texts.languages import languages_of
from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason
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
from findwell.judges.local.terms import content_terms
from findwell.judges.quotes import AROUND_QUOTES, LEAST_QUOTE, folded, is_quoted
from findwell.judges.verdicts import Sample
from findwell.relations.spans.locate import locate

if TYPE_CHECKING:
    from findwell.judges.client.jobs import Ask
    from findwell.judges.client.protocol import ChatRequest, Json
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.llm.prompts import PromptWriter
    from findwell.loop.labels.synthetic.passages import Passage, PassageIndex


class QuestionKind(StrEnum):
    """What a question asks of a retriever."""

    SINGLE_HOP = "single-hop"  # one passage answers it
    PARAPHRASED = "paraphrased"  # the same, in other words than the passage has
    MULTI_HOP = "multi-hop"  # two passages are needed
    UNANSWERABLE = "unanswerable"  # no passage answers it

    @property
    def passages(self) -> int:
        """How many passages it is written about."""
        return 2 if self is QuestionKind.MULTI_HOP else 1

    @property
    def answered(self) -> bool:
        """Whether it has an answer, and gold spans."""
        return self is not QuestionKind.UNANSWERABLE


USUAL_SHARES = {
    QuestionKind.SINGLE_HOP: 0.4,
    QuestionKind.PARAPHRASED: 0.3,
    QuestionKind.MULTI_HOP: 0.2,
    QuestionKind.UNANSWERABLE: 0.1,
}
WRITER_ROLE, REWRITER_ROLE = "write", "write-again"
PROMPT_FILLS = {
    WRITER_ROLE: frozenset[str](),
    REWRITER_ROLE: frozenset({"fault", "attempt"}),
    **{str(kind): frozenset[str]() for kind in QuestionKind},
}
COPIED_SHARE = 0.5  # of the words of a paraphrased question that its spans may have, too
SAME_SHARE = 0.8  # of all their words that near-duplicates have in common
# what only the prompt knows
PROMPT_NAMES = re.compile(r"\bc[12]\b|\bpassages? c?[12]\b", re.IGNORECASE)
GUESSED_WORDS = 12  # of a question that has not been written yet
GUESSED_SPAN = 200  # characters of its spans
OTHER_PASSAGES = 8  # that a search finds and that must not answer a question
SUFFICIENCY = frozenset({"sufficiency"})
ENDING_FAILURES = frozenset({Reason.BUDGET, Reason.STOPPED})  # no other draft will be answered


class DropReason(StrEnum):
    """Why a draft was dropped, if the model answered."""

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
RETRIED_REASONS = {
    DropReason.MALFORMED,
    DropReason.NOT_QUOTED,
    DropReason.AMBIGUOUS,
    DropReason.MARKED,
    DropReason.COPIED,
}


class DropError(Exception):
    """Ends a draft."""

    def __init__(self, reason: str, *, ended: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ended = ended  # nothing more can be asked, of any draft


@dataclass(frozen=True, slots=True)
class QuotedSpan:
    """What a document says at a place, character by character."""

    doc: str
    start: int
    end: int
    quote: str

    def as_dict(self) -> dict[str, Json]:
        """Return the span as gold labels holds it."""
        place: dict[str, Json] = {"doc": self.doc, "start": self.start, "end": self.end}
        return {**place, "quote": self.quote, "grade": 1}


@dataclass(frozen=True, slots=True)
class Written:
    """A question as the model wrote it, with the places of its quotes."""

    question: str
    answer: str = ""
    spans: tuple[QuotedSpan, ...] = ()
    guessed: bool = False  # it stands for one that has not been written yet


@dataclass(frozen=True, slots=True)
class QuestionDraft:
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
            tasks.append(writer.prompts[REWRITER_ROLE].fill(fault=fault, attempt=attempt))
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
        if PROMPT_NAMES.search(question):
            raise DropError(DropReason.MARKED)
        if not self.kind.answered:
            return Written(question)
        spans = self._spans(said.get("quotes"))
        if self.kind is QuestionKind.PARAPHRASED:
            quoted = " ".join(span.quote for span in spans)
            if copied_share(question, quoted) > COPIED_SHARE:
                raise DropError(DropReason.COPIED)
        return Written(question, _text(said, "answer"), spans)

    def guess(self) -> Written:
        """Return about what may come, for an estimate of what it takes."""
        first = self.passages[0].text
        spans = tuple(
            QuotedSpan(each.doc, each.start, each.start + GUESSED_SPAN, each.text[:GUESSED_SPAN])
            for each in self.passages
        )
        # the kind is part of it, so that no two kinds guess the same question
        words = f"{self.kind}: {' '.join(first.split()[:GUESSED_WORDS])}"
        return Written(words, words, spans if self.kind.answered else (), guessed=True)

    def _spans(self, listed: Json) -> tuple[QuotedSpan, ...]:
        """Return the places of the quotes, which must be from every passage that was shown.

        They are in the order of the answer; of two that overlap the longer one is kept: what stands
        in the other is found with it, and would be asked for twice.
        """
        homes = dict(zip(self.shown, self.passages, strict=True))
        spans: list[QuotedSpan] = []
        seen: set[object] = set()
        for entry in listed if isinstance(listed, list) else ():
            said = entry if isinstance(entry, dict) else {}
            chunk, quote = said.get("chunk"), said.get("quote")
            if not isinstance(quote, str) or not isinstance(chunk, str) or chunk not in homes:
                raise DropError(DropReason.MALFORMED)
            seen.add(chunk)
            spans.append(find_span(quote, homes[chunk]))
        if seen != set(homes):
            raise DropError(DropReason.MALFORMED)
        kept: list[QuotedSpan] = []
        for span in sorted(
            set(spans), key=lambda each: (each.start - each.end, each.doc, each.start)
        ):
            if all(span.doc != k.doc or span.end <= k.start or k.end <= span.start for k in kept):
                kept.append(span)
        order = {(span.doc, span.start): place for place, span in enumerate(spans)}
        return tuple(sorted(kept, key=lambda span: order[span.doc, span.start]))


def find_span(quote: str, passage: Passage) -> QuotedSpan:
    """Return where a quote stands in its passage, whatever its white space, case and dashes.

    >>> from findwell.loop.labels.synthetic.passages import Passage
    >>> find_span("it costs  5", Passage(0, "d", 10, 40, "Since May it costs 5 euros.", "d"))
    QuotedSpan(doc='d', start=20, end=30, quote='it costs 5')
    """
    for each in dict.fromkeys((quote, quote.strip(AROUND_QUOTES))):
        if sum(map(str.isalnum, each)) < LEAST_QUOTE:
            continue
        document = pl.DataFrame({"doc": ["passage"], "text": [passage.text]})
        # a score of 1: nothing that only resembles the quote
        places = locate([each], ["passage"], document, min_score=1.0)
        _, _, start, end, _, status, _ = places.row(0)
        if status == "ambiguous":
            raise DropError(DropReason.AMBIGUOUS)
        if status != "lost":
            first = passage.start + start
            return QuotedSpan(passage.doc, first, passage.start + end, passage.text[start:end])
    raise DropError(DropReason.NOT_QUOTED)


def _text(said: Mapping[str, Json], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise DropError(DropReason.MALFORMED)
    return " ".join(value.split())


def load_writing_prompts(
    file: str | os.PathLike[str] | None, others: Sequence[str]
) -> dict[str, Prompt]:
    """Read the prompts for writing; those of the same name in a file of the user replace them."""
    return replace_prompts(
        packaged_prompts("findwell.loop.labels.synthetic", PROMPT_FILLS), file, others
    )


def copied_share(question: str, quoted: str) -> float:
    """Return the share of the words of a question that a text has, too; whatever their endings.

    >>> copied_share("How long do the batteries last?", "The battery lasts for six hours.") > 0.5
    True
    >>> copied_share("When is the accumulator empty?", "The battery lasts for six hours.")
    0.0
    """
    [language] = languages_of([quoted])
    mine, theirs = content_terms([question, quoted], language)
    return len(mine & theirs) / len(mine) if mine else 0.0


class SeenQuestions:
    """Tells whether a question is nearly one that was there before.

    >>> seen = SeenQuestions()
    >>> asked = ["Who charges the ferry?", "The ferry: who is charging it?", "Who sails the ferry?"]
    >>> [seen.add(question) for question in asked]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._sizes: list[int] = []
        self._holding: dict[str, list[int]] = {}  # the questions that hold a term

    def add(self, question: str) -> bool:
        """Remember a question and return True; False for one that is nearly there already."""
        [language] = languages_of([question])
        [terms] = content_terms([question], language)
        text = folded(question)
        shared: dict[int, int] = {}
        for number in chain.from_iterable(self._holding.get(term, ()) for term in terms):
            shared[number] = shared.get(number, 0) + 1
        if text in self._texts or any(
            count >= SAME_SHARE * (len(terms) + self._sizes[number] - count)
            for number, count in shared.items()
        ):
            return False
        self._texts.add(text)
        for term in terms:
            self._holding.setdefault(term, []).append(len(self._sizes))
        self._sizes.append(len(terms))
        return True


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """What became of a draft: a question, or the reason why it was dropped."""

    draft: QuestionDraft
    written: Written | None = None
    reason: str = ""
    ended: bool = False  # because nothing more can be asked


@dataclass(slots=True)
class DryRun:
    """Stands for the model: knows what is in the cache, and notes what would be asked."""

    judge: LLMJudge
    requests: list[ChatRequest] = field(default_factory=list)

    async def ask(self, request: ChatRequest) -> Outcome:
        """Return the answer of the cache, or a failure."""
        self.requests.append(request)
        key = request.key(self.judge.endpoint)
        known = self.judge.cache.get([key]).get(key)
        return known or Failure(Reason.STOPPED, "dry run")


@dataclass(frozen=True, slots=True)
class Author:
    """Has drafts written and checked."""

    judge: LLMJudge
    writer: PromptWriter
    passages: Sequence[Passage]
    index: PassageIndex
    dry: DryRun | None = None

    async def make(self, draft: QuestionDraft, ask: Ask) -> DraftOutcome:
        """Hold the conversation about a draft."""
        ask = ask if self.dry is None else self.dry.ask
        try:
            written = await self._write(draft, ask)
            await self._check(draft, written, ask)
        except DropError as error:
            return DraftOutcome(draft, None, error.reason, error.ended)
        return DraftOutcome(draft, written)

    async def _write(self, draft: QuestionDraft, ask: Ask) -> Written:
        attempts, fault = self.judge.settings.attempts, ""
        for attempt in range(1, attempts + 1):
            outcome = await ask(draft.request(self.writer, attempt, fault))
            if not isinstance(outcome, Answer):
                if self.dry is not None:
                    return draft.guess()
                raise DropError(
                    f"not written: {outcome.reason}", ended=outcome.reason in ENDING_FAILURES
                )
            try:
                return draft.read(outcome.content)
            except DropError as error:
                if error.reason not in RETRIED_REASONS or attempt == attempts:
                    raise
                fault = error.reason
                self.judge.stats.malformed[fault] += 1
                self.judge.stats.asked_again += 1
        raise AssertionError  # the last attempt returns or raises

    async def _check(self, draft: QuestionDraft, written: Written, ask: Ask) -> None:
        others = self._others(draft, written)
        if draft.kind is QuestionKind.UNANSWERABLE:
            await self._refuse(written, [*draft.passages, *others], DropReason.ANSWERED, ask)
            return
        if any(is_quoted(span.quote, other.text) for span in written.spans for other in others):
            raise DropError(DropReason.ELSEWHERE)
        if not await self._suffice(written, [span.quote for span in written.spans], ask):
            raise DropError(DropReason.NOT_ANSWERED)
        if draft.kind is QuestionKind.MULTI_HOP:
            for passage in draft.passages:
                await self._refuse(written, [passage, *others], DropReason.ONE_SUFFICES, ask)
        else:
            await self._refuse(written, others, DropReason.ELSEWHERE, ask)

    def _others(self, draft: QuestionDraft, written: Written) -> list[Passage]:
        """Return what a search finds for the question and its answer, and what for its spans.

        The one finds passages about what is asked, the other those that say what the spans say,
        also where the question has other words. The passages of the draft itself are left out.
        """
        asked = self.index.search(f"{written.question} {written.answer}")
        said = self.index.search(" ".join(span.quote for span in written.spans))
        others: dict[int, Passage] = {}
        for number in chain.from_iterable(zip_longest(asked, said)):
            found = None if number is None else self.passages[number]
            if found is not None and not any(map(found.overlaps, draft.passages)):
                others[found.number] = found
            if len(others) == OTHER_PASSAGES:
                break
        return list(others.values())

    async def _refuse(
        self, written: Written, passages: Sequence[Passage], reason: DropReason, ask: Ask
    ) -> None:
        """Drop a question that these passages answer."""
        texts = [passage.text for passage in passages]
        if texts and await self._suffice(written, texts, ask, expected=False):
            raise DropError(reason)

    async def _suffice(
        self, written: Written, texts: Sequence[str], ask: Ask, *, expected: bool = True
    ) -> bool:
        """Tell whether texts suffice for an answer; an estimate goes on with what is `expected`."""
        sample = Sample("", written.question, tuple(dict.fromkeys(texts)))
        judged = await self.judge.judge_sample(sample, SUFFICIENCY, ask)
        failure = judged.failures.get("sufficiency")
        if failure is None:
            [verdict] = judged["sufficiency"].row
            if verdict.value is not None:
                return bool(verdict.value)
            failure = verdict.failure
        if self.dry is not None:
            return expected
        reason = None if failure is None else failure.reason
        raise DropError(f"not checked: {reason}", ended=reason in ENDING_FAILURES)


def settle_shares(given: Mapping[str, float] | None) -> dict[QuestionKind, float]:
    """Return the share of each kind; kinds that are not named divide the rest as usual.

    >>> {str(kind): round(share, 3) for kind, share in settle_shares({"multi-hop": 0.5}).items()}
    {'single-hop': 0.25, 'paraphrased': 0.188, 'multi-hop': 0.5, 'unanswerable': 0.062}
    """
    named = {
        QuestionKind(choose("kind of question", kind, [*QuestionKind])): share
        for kind, share in (given or {}).items()
    }
    for kind, share in named.items():
        if not 0 <= share <= 1:
            raise OptionError(f"the share of {kind} is {share!r}", fix="give a number from 0 to 1")
    total = math.fsum(named.values())
    others = {kind: share for kind, share in USUAL_SHARES.items() if kind not in named}
    if total > 1 + 1e-9 or (not others and total < 1 - 1e-9):
        raise OptionError(f"the shares add up to {total:g}", fix="they are parts of 1")
    rest = max(1 - total, 0.0) / math.fsum(others.values()) if others else 0.0
    return {kind: named.get(kind, others.get(kind, 0.0) * rest) for kind in QuestionKind}


def wanted_counts(number: int, shares: Mapping[QuestionKind, float]) -> dict[QuestionKind, int]:
    """Divide a number of questions by shares; what is left over goes to the largest remainders.

    >>> [*wanted_counts(5, USUAL_SHARES).values()], [*wanted_counts(200, USUAL_SHARES).values()]
    ([2, 2, 1, 0], [80, 60, 40, 20])
    """
    exact = {kind: number * share for kind, share in shares.items()}
    counts = {kind: math.floor(value + 1e-9) for kind, value in exact.items()}
    left = number - sum(counts.values())
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[:left]:
        counts[kind] += 1
    return counts
