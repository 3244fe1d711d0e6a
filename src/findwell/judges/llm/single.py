"""Single verdicts: one short question about one chunk, answered by one word.

What small models can do. All prompts about a chunk begin alike: instructions, chunk, then the
question, the claim and what is asked. Servers that remember beginnings read each chunk once; and
small models judge better if the question stands after the chunk. Where a server tells how likely
each word was, the verdict has a probability.

A grade of relevance takes two questions: whether the chunk is of any use and, if so, which grade
it has. Small models place all chunks near the middle of a scale, so that 0 must be told by yes and
no; the expected value over the other grades is the grade. A user's own grades are asked for at
once, and the expected value is over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import TYPE_CHECKING

from findwell.judges.aspects import Aspect, VerdictShape
from findwell.judges.client.protocol import Answer, Outcome
from findwell.judges.client.requests import ChatRequest, Message
from findwell.judges.llm.contract import Fault
from findwell.judges.llm.parse import THINKING
from findwell.judges.llm.prompt_items import ALL, Fence, chunk_of
from findwell.judges.quotes import proves
from findwell.judges.verdicts import JudgeFailure, JudgeReason, Verdict

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json, TokenChoices
    from findwell.judges.llm.open_sample import OpenSample
    from findwell.judges.llm.templates import Prompt

LIKELY: dict[str, Json] = {"logprobs": True, "top_logprobs": 10}  # more than some servers give
FEW = 4  # tokens of an answer: a word, and what may stand before it
QUOTE = 80  # tokens of a quote
ENOUGH = 0.2  # of the probability must be with words that are answers
YES = "yes y true correct ja oui sí si sim да 是 是的 对 はい 예 네"
NO = "no n false incorrect nein non não nao нет 否 不 不是 いいえ 아니요 아니오"
# which mean something else inside of a sentence: "the correct answer is", "not true", "il y a"
BY_THEMSELVES = frozenset({"y", "n", "true", "false", "correct", "incorrect", "si", "ja"})
YES_NO = dict.fromkeys(YES.split(), 1) | dict.fromkeys(NO.split(), 0)
GRADED = "grades-"  # how the names of prompts begin that ask for a grade
WORD = re.compile(r"\d+|[^\W\d_]+")
AROUND = " \t*\"'`([{_)]}"  # what may stand around a word that is the answer
ENDED = re.compile(r"$|[.,;:!?\r\n]")


@dataclass(frozen=True, slots=True)
class SingleQuestion:
    """Asks for one verdict: about a chunk, an item and a chunk, a part, or the list."""

    opened: OpenSample
    aspect: Aspect
    each: str  # the id of what is judged
    chunk: str  # the id of the chunk that is shown; all of them for the list
    vote: int = 0
    attempt: int = 1
    yes: Verdict | None = None  # that it is of use, when the grade is asked for
    given: Verdict | None = None  # when its quote is asked for

    @property
    def _prompt(self) -> Prompt:
        prompts, name = self.opened.writer.prompts, self.aspect.name
        single = prompts.get(f"single-{name}")
        return prompts[f"grades-{name}"] if single is None or self.yes is not None else single

    def request(self) -> ChatRequest:
        """Show the chunk, then question and item, and ask."""
        items, prompts = self.opened.items, self.opened.writer.prompts
        chunks = [*items.chunks.values()] if self.chunk == ALL else [items.chunks[self.chunk]]
        question = items.question if self._shows_question else ""
        about = items.judged(self.aspect)[self.each] if self._has_item else ""
        # the number by the chunks, so that all calls about them begin alike
        reference = items.reference if self.aspect.shows_reference else ""
        fence = Fence.around(chunks, (items.question, reference, about))
        data = [fence.block("chunk", text) for text in chunks]
        data += [fence.block("question", question)] if question.strip() else []
        data += [fence.block("reference", reference)] if reference else []
        data += [fence.block(self.aspect.unit, about)] if self._has_item else []
        *others, last = map(str, self.aspect.grades)
        task = self._prompt.fill(values=f"{', '.join(others)} or {last}")
        if self.attempt > 1:
            task += "\n" + prompts["single-again"].fill(attempt=self.attempt)
        if self.given is not None:
            task += "\n" + prompts["single-quote"].fill()
        asked = "\n".join([*data, "", task])
        messages = (Message("system", prompts["single"].text), Message("user", asked))
        options = self.opened.writer.options_of(self.vote)
        if self.given is not None:
            options = {name: value for name, value in options.items() if name not in LIKELY}
        return ChatRequest(
            messages,
            options=options,
            vote=self.vote,
            limit=self.answer_tokens,
            only_beginning=True,
        )

    @property
    def _has_item(self) -> bool:
        return self.aspect.shape in (VerdictShape.ITEMS, VerdictShape.PARTS)

    @property
    def _shows_question(self) -> bool:
        listing = self.aspect.listing
        return self.aspect.needs == "question" or (listing is not None and listing.with_question)

    def settle(self, outcome: Outcome) -> list[SingleQuestion]:
        """Take the verdict; ask for grade and quote of a yes, and again for what is none."""
        stats, cell = self.opened.stats, (self.aspect.name, self.each, self.chunk)
        if self.given is not None:
            self.opened.votes[self.vote][cell] = self._proven(outcome)
            return []
        if isinstance(outcome, Answer):
            stats.single[bool(outcome.tokens)] += 1
            verdict = self._read(outcome)
            if verdict is not None:
                return self._take(verdict)
            stats.malformed[Fault.NO_WORD] += 1
            if self.attempt < self.opened.settings.attempts:
                stats.asked_again += 1
                return [replace(self, attempt=self.attempt + 1)]
            failure = JudgeFailure(JudgeReason.MALFORMED, Fault.NO_WORD)
        else:
            failure = JudgeFailure(outcome.reason, outcome.detail)
        self.opened.votes[self.vote][cell] = Verdict(None, failure=failure)
        return []

    def _take(self, verdict: Verdict) -> list[SingleQuestion]:
        """Keep a verdict, or ask what else is to be known about a yes."""
        if verdict.value and self.aspect.is_graded and not self._prompt.name.startswith(GRADED):
            return [replace(self, yes=verdict, attempt=1)]
        is_part = self.aspect.shape is VerdictShape.PARTS
        if verdict.value and self.opened.settings.quotes and not is_part:
            return [replace(self, given=verdict, attempt=1)]
        cell = (self.aspect.name, self.each, self.chunk)
        self.opened.votes[self.vote][cell] = self._with_quote(verdict)
        return []

    def _proven(self, outcome: Outcome) -> Verdict:
        """Return the verdict with its quote; one that is not in a chunk proves nothing."""
        verdict = self.given or Verdict(0)
        lines = THINKING.sub("", outcome.content, count=1).strip().splitlines()
        quote = lines[0].strip() if lines else ""
        chunks = self.opened.items.chunks
        shown = chunks.values() if self.chunk == ALL else [chunks[self.chunk]]
        there = any(proves(quote, text) for text in shown)
        return replace(verdict, quote=quote, unproven=not there)

    def _read(self, answer: Answer) -> Verdict | None:
        """Return the verdict; with the grade of a yes, if that was asked for."""
        if self._prompt.name.startswith(GRADED):
            above = {str(grade): grade for grade in self.aspect.grades if grade or not self.yes}
            return read_grade(answer, above, self.yes)
        return read_yes(answer)

    def _with_quote(self, verdict: Verdict) -> Verdict:
        """Return the verdict; a sentence of the chunk is its own proof."""
        if self.aspect.shape is not VerdictShape.PARTS or not verdict.value:
            return verdict
        text = self.opened.items.units[self.aspect.name][self.each]
        return replace(verdict, quote=text if text in self.opened.items.chunks[self.chunk] else "")

    def guess(self) -> None:
        """Leave the verdict open: nothing follows from it."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, at most."""
        return FEW if self.given is None else QUOTE


def single_questions(opened: OpenSample) -> Iterator[SingleQuestion]:
    """Yield all questions about a sample, chunk by chunk, the list as a whole last."""
    votes = range(opened.settings.votes)
    by_chunk: dict[str, list[tuple[Aspect, str]]] = {chunk: [] for chunk in opened.items.chunks}
    for aspect in opened.aspects:
        for each in opened.items.judged(aspect):
            if aspect.shape is VerdictShape.ITEMS:
                for asked in by_chunk.values():
                    asked.append((aspect, each))
            else:
                by_chunk.setdefault(chunk_of(each), []).append((aspect, each))
    for chunk, asked in by_chunk.items():
        for aspect, each in asked:
            yield from (SingleQuestion(opened, aspect, each, chunk, vote) for vote in votes)


def read_yes(answer: Answer) -> Verdict | None:
    """Return the verdict in an answer that is yes or no, None if there is none."""
    chances = _chances(answer.tokens, YES_NO)
    if not chances:
        value = _said(answer.content, YES_NO)
        return None if value is None else Verdict(value)
    yes = chances.get(1, 0.0)
    return Verdict(int(yes > 1 / 2), f"yes with probability {yes:.2f}", probability=yes)


def read_grade(answer: Answer, grades: Mapping[str, int], yes: Verdict | None) -> Verdict | None:
    """Return the grade in an answer, next to the expected value over these grades; None for none.

    Without a `yes` that was given before, the probability is that of all grades above 0.
    """
    digits = all(len(grade) == 1 for grade in grades)  # otherwise 1 may be the beginning of 10
    chances = _chances(answer.tokens, grades) if digits else {}
    if not chances:
        value = _said(answer.content, grades)
        chance = yes.probability if yes is not None else None
        return None if value is None else Verdict(value, probability=chance)
    expected = sum(value * chance for value, chance in chances.items())
    above = 1.0 - chances.get(0, 0.0) if yes is None else yes.probability
    reason = f"expected grade {expected:.2f}"
    if yes is not None and yes.reason:
        reason = f"{yes.reason}, {reason}"
    return Verdict(floor(expected + 1 / 2), reason, probability=above)


def _chances(places: tuple[TokenChoices, ...], words: Mapping[str, int]) -> dict[int, float]:
    """Return the probability of each value, where an answer was likely.

    Words that differ in case, blanks or marks around them are one. The answer may follow blanks
    and marks: what it was likely to be behind them counts as much as they were likely.
    """
    found: dict[int, float] = {}
    reached = 1.0
    for choices in places:
        blank = 0.0
        for token, chance in choices:
            word = _plain(token)
            if word in words:
                value = words[word]
                found[value] = found.get(value, 0.0) + reached * chance
            elif not word:
                blank += chance
        if choices and _plain(choices[0][0]):
            break  # the answer, or something else that it began to write
        reached *= blank
    total = sum(found.values())
    return {value: chance / total for value, chance in found.items()} if total >= ENOUGH else {}


def _plain(token: str) -> str:
    return token.strip(" \t\r\n*\"'`.:,;!()[]_▁Ġ-#>").casefold()


def _said(text: str, words: Mapping[str, int]) -> int | None:
    """Return the value of the words in an answer, if they have only one.

    >>> _said("**Yes**, it", YES_NO), _said("Grade: 2", {"0": 0, "2": 2}), _said("yes/no", YES_NO)
    (1, 2, None)
    >>> _said("The correct answer is", YES_NO), _said("Answer: true", YES_NO)
    (None, 1)
    """
    said = THINKING.sub("", text, count=1).casefold()
    values = {
        words[each[0]]
        for each in WORD.finditer(said)
        if each[0] in words and (each[0] not in BY_THEMSELVES or _is_alone(said, each))
    }
    return values.pop() if len(values) == 1 else None


def _is_alone(text: str, word: re.Match[str]) -> bool:
    """Tell whether a word is an answer by itself, and no part of a sentence."""
    before = text[: word.start()].rstrip(AROUND + "\r\n")
    return before[-1:] in ("", ":") and bool(ENDED.match(text[word.end() :].lstrip(AROUND)))
