"""From a draft to a question that was checked, or to the reason why it was dropped.

The checks ask the same model, as a judge of sufficiency: the spans together must suffice for an
answer; other passages, which a lexical search finds, must not, and neither must one of the two
passages of a multi-hop question together with them. An unanswerable question has no such spans, and
nothing that is found may suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason
from findwell.judges.quotes import is_quoted
from findwell.judges.verdicts import Sample
from findwell.loop.labels.synthetic.kinds import QuestionKind
from findwell.loop.labels.synthetic.writing import RETRIED, Draft, DropError, DropReason, Written

if TYPE_CHECKING:
    from findwell.judges.client.jobs import Ask
    from findwell.judges.client.protocol import ChatRequest
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.llm.prompts import PromptWriter
    from findwell.loop.labels.synthetic.passages import Passage
    from findwell.loop.labels.synthetic.search import PassageIndex

OTHERS = 8  # passages that a search finds and that must not answer a question
SUFFICIENCY = frozenset({"sufficiency"})
ENDED = frozenset({Reason.BUDGET, Reason.STOPPED})  # no other draft will be answered either


@dataclass(frozen=True, slots=True)
class Dropped:
    """A draft that became no question."""

    kind: QuestionKind
    reason: str
    question: str = ""
    ended: bool = False  # because nothing more can be asked


@dataclass(frozen=True, slots=True)
class Checked:
    """A question that passed its checks."""

    kind: QuestionKind
    written: Written
    family: str  # the document that it was written about


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

    async def make(self, draft: Draft, ask: Ask) -> Checked | Dropped:
        """Hold the conversation about a draft."""
        ask = ask if self.dry is None else self.dry.ask
        try:
            written = await self._write(draft, ask)
            await self._check(draft, written, ask)
        except DropError as error:
            return Dropped(draft.kind, error.reason, error.question, error.ended)
        return Checked(draft.kind, written, draft.passages[0].family)

    async def _write(self, draft: Draft, ask: Ask) -> Written:
        attempts, fault = self.judge.settings.attempts, ""
        for attempt in range(1, attempts + 1):
            outcome = await ask(draft.request(self.writer, attempt, fault))
            if not isinstance(outcome, Answer):
                if self.dry is not None:
                    return draft.guess()
                raise DropError(f"not written: {outcome.reason}", ended=outcome.reason in ENDED)
            try:
                return draft.read(outcome.content)
            except DropError as error:
                if error.reason not in RETRIED or attempt == attempts:
                    raise
                fault = error.reason
                self.judge.stats.malformed[fault] += 1
                self.judge.stats.asked_again += 1
        raise AssertionError  # the last attempt returns or raises

    async def _check(self, draft: Draft, written: Written, ask: Ask) -> None:
        others = self._others(draft, written)
        if draft.kind is QuestionKind.UNANSWERABLE:
            await self._refuse(written, [*draft.passages, *others], DropReason.ANSWERED, ask)
            return
        if any(is_quoted(span.quote, other.text) for span in written.spans for other in others):
            raise DropError(DropReason.ELSEWHERE, written.question)
        if not await self._suffice(written, [span.quote for span in written.spans], ask):
            raise DropError(DropReason.NOT_ANSWERED, written.question)
        if draft.kind is QuestionKind.MULTI_HOP:
            for passage in draft.passages:
                await self._refuse(written, [passage, *others], DropReason.ONE_SUFFICES, ask)
        else:
            await self._refuse(written, others, DropReason.ELSEWHERE, ask)

    def _others(self, draft: Draft, written: Written) -> list[Passage]:
        """Return what a search finds for the question and its answer, and what for its spans.

        The one finds passages about what is asked, the other those that say what the spans say,
        also where the question has other words. The passages of the draft itself are left out.
        """
        places = [(each.doc, each.start, each.end) for each in draft.passages]
        asked = self.index.search(f"{written.question} {written.answer}")
        said = self.index.search(" ".join(span.quote for span in written.spans))
        others: dict[int, Passage] = {}
        for number in chain.from_iterable(zip_longest(asked, said)):
            if number is not None and not any(
                self.passages[number].overlaps(*place) for place in places
            ):
                others[number] = self.passages[number]
            if len(others) == OTHERS:
                break
        return list(others.values())

    async def _refuse(
        self, written: Written, passages: Sequence[Passage], reason: DropReason, ask: Ask
    ) -> None:
        """Drop a question that these passages answer."""
        texts = [passage.text for passage in passages]
        if texts and await self._suffice(written, texts, ask, expected=False):
            raise DropError(reason, written.question)

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
        raise DropError(f"not checked: {reason}", written.question, ended=reason in ENDED)
