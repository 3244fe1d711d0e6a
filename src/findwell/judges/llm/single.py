"""Asking for plain words: one verdict at a time by one word, and lists with one thing per line.

What small models can do. All prompts about a chunk begin alike: instructions, chunk, then the
question, the claim and what is asked. Servers that remember beginnings read each chunk once; and
small models judge better if the question stands after the chunk. Where a server reports how likely
each word was, the verdict has a probability.

A grade of relevance takes two questions: whether the chunk is of any use and, if so, which grade
it has. Small models place all chunks near the middle of a scale, so that 0 must be found by yes and
no; the expected value over the other grades is the grade. A user's own grades are asked for at
once, and the expected value is over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from findwell.core.texts.sentences import split
from findwell.judges.aspects import Aspect, VerdictShape
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import Answer, Message, Outcome, Reason
from findwell.judges.llm.answers import THINKING, Fault
from findwell.judges.llm.matrix import DIVISIBLE_REASONS
from findwell.judges.llm.prompts import ALL, GRADE_PREFIX, Fence, chunk_of, plain_message
from findwell.judges.quotes import covers, distinct, is_quoted, proves, tame, whole_claims
from findwell.judges.verdicts import JudgeFailure, Judgement, JudgeReason

if TYPE_CHECKING:
    from findwell.judges.client.protocol import ChatRequest, TokenChoices
    from findwell.judges.llm.judge import OpenSample
    from findwell.judges.llm.prompts import Prompt

WORD_TOKENS = 4  # of an answer: a word, and what may stand before it
QUOTE_TOKENS = 80
PATTERN_TOKENS = 300  # of an answer in which an expression of the user finds the value
LEAST_LIKELY = 0.2  # of the probability must be with words that are answers
YES = "yes y true correct ja oui sí si sim да 是 是的 对 はい 예 네"
NO = "no n false incorrect nein non não nao нет 否 不 不是 いいえ 아니요 아니오"
# which mean something else inside of a sentence: "the correct answer is", "not true", "il y a"
ALONE_WORDS = frozenset({"y", "n", "true", "false", "correct", "incorrect", "si", "ja"})
YES_NO = dict.fromkeys(YES.split(), 1) | dict.fromkeys(NO.split(), 0)
WORD = re.compile(r"\d+|[^\W\d_]+")
AROUND_WORD = " \t*\"'`([{_)]}"  # what may stand around a word that is the answer
WORD_END = re.compile(r"$|[.,;:!?\r\n]")
BULLET = re.compile(r"\s*(?:[-*•–]|\d{1,3}[.):])\s+")
NOTHING_WORDS = frozenset(
    {"none", "nothing", "[]", "-", "n/a", "keine", "aucune", "ninguna", "无", "なし"}
)


WITH_ITEM = (VerdictShape.ITEMS, VerdictShape.PARTS)


# --- single verdicts ------------------------------------------------------------------------------


class Example(NamedTuple):
    """A pair that people labelled, as a model is shown it before it is asked."""

    question: str  # or claim
    chunk: str  # or statement
    yes: bool

    def asked(self, aspect: Aspect) -> tuple[str, str]:
        """Return the question, and the item or part that the verdict is about."""
        if aspect.shape is VerdictShape.ITEMS:
            return "", self.question
        return self.question, self.chunk if aspect.shape is VerdictShape.PARTS else ""


@dataclass(frozen=True, slots=True)
class SingleQuestion:
    """Asks for one verdict: about a chunk, an item and a chunk, a part, or the list."""

    opened: OpenSample
    aspect: Aspect
    each: str  # the id of what is judged
    chunk: str  # the id of the chunk that is shown; all of them for the list
    vote: int = 0
    attempt: int = 1
    yes: Judgement | None = None  # that it is of use, when the grade is asked for
    given: Judgement | None = None  # when its quote is asked for

    @property
    def _prompt(self) -> Prompt:
        prompts, name = self.opened.writer.prompts, self.aspect.name
        single = prompts.get(f"single-{name}")
        return prompts[f"grades-{name}"] if single is None or self.yes is not None else single

    @property
    def _chunks(self) -> list[str]:
        """The texts that are shown."""
        chunks = self.opened.items.chunks
        return [*chunks.values()] if self.chunk == ALL else [chunks[self.chunk]]

    def request(self) -> ChatRequest:
        """Show the chunk, then question and item, and ask; examples are turns before."""
        items, writer, aspect = self.opened.items, self.opened.writer, self.aspect
        about = items.judged(aspect)[self.each] if aspect.shape in WITH_ITEM else ""
        reference = items.reference if aspect.shows_reference else ""
        data, task = self._message(self._chunks, items.question, about, reference)
        earlier: list[Message] = []
        if self.given is not None:
            task += "\n" + writer.prompts["single-quote"].fill()
        elif self.yes is None:
            for example in self.opened.examples.get(aspect.name, ()):
                shown = plain_message(*self._message([example.chunk], *example.asked(aspect)))
                said = Message("assistant", "yes" if example.yes else "no")
                earlier += [Message("user", shown), said]
        asked = writer.plain_request(
            data,
            task,
            self.attempt,
            likely=self.given is None and not self._prompt.answer,
            vote=self.vote,
            earlier=earlier,
        )
        return replace(asked, limit=self.answer_tokens, only_beginning=True)

    def _message(
        self, chunks: list[str], question: str, about: str, reference: str = ""
    ) -> tuple[list[str], str]:
        """Return the data between marks, and the task; in a user's prompt it may hold the data."""
        aspect, prompt = self.aspect, self._prompt
        texts = {"question": question, "reference": reference, aspect.unit: about}
        texts["chunk"] = "\n\n".join(chunks)
        *others, last = map(str, aspect.grades)
        values = f"{', '.join(others)} or {last}"
        if "chunk" in prompt.fills:  # the whole message, as a user wrote it
            placed = {name: tame(texts[name]) for name in aspect.shown}
            return [], prompt.fill(values=values, **placed)
        # the number by the chunks, so that all calls about them begin alike
        fence = Fence.around(chunks, (question, reference, about))
        data = [fence.block("chunk", text) for text in chunks]
        data += [
            fence.block(name, texts[name])
            for name in aspect.shown
            if name != "chunk" and (texts[name].strip() or name == aspect.unit)
        ]
        return data, prompt.fill(values=values)

    def settle(self, outcome: Outcome) -> list[SingleQuestion]:
        """Take the verdict; ask for grade and quote of a yes, and again where there is none."""
        stats = self.opened.stats
        if self.given is not None:
            return self._keep(self._proven(self.given, outcome))
        if isinstance(outcome, Answer):
            stats.single[bool(outcome.tokens)] += 1
            verdict = self._read(outcome)
            if verdict is not None:
                return self._take(verdict)
            stats.malformed[Fault.NO_WORD] += 1
            if self.attempt < self.opened.settings.attempts:
                stats.asked_again += 1
                return [replace(self, attempt=self.attempt + 1)]
            return self._keep(Judgement.failed(JudgeReason.MALFORMED, Fault.NO_WORD))
        return self._keep(Judgement.failed(outcome.reason, outcome.detail))

    def _take(self, verdict: Judgement) -> list[SingleQuestion]:
        """Keep a verdict, or ask what else is to be known about a yes."""
        if (
            verdict.value
            and self.aspect.is_graded
            and not self._prompt.name.startswith(GRADE_PREFIX)
        ):
            return [replace(self, yes=verdict, attempt=1)]
        is_part = self.aspect.shape is VerdictShape.PARTS
        if verdict.value and self.opened.settings.quotes and not is_part:
            return [replace(self, given=verdict, attempt=1)]
        if verdict.value and is_part:  # a sentence of the chunk is its own proof
            text = self.opened.items.units[self.aspect.name][self.each]
            there = text in self.opened.items.chunks[self.chunk]
            verdict = replace(verdict, quote=text if there else "")
        return self._keep(verdict)

    def _keep(self, verdict: Judgement) -> list[SingleQuestion]:
        """Settle the question: nothing more is asked."""
        self.opened.votes[self.vote][self.aspect.name, self.each, self.chunk] = verdict
        return []

    def _proven(self, verdict: Judgement, outcome: Outcome) -> Judgement:
        """Return the verdict with its quote; one that is not in a chunk proves nothing."""
        lines = THINKING.sub("", outcome.content, count=1).strip().splitlines()
        quote = lines[0].strip() if lines else ""
        is_item = self.aspect.shape is VerdictShape.ITEMS
        claim = self.opened.items.judged(self.aspect)[self.each] if is_item else ""
        there = any(proves(quote, text) and covers([quote], text, claim) for text in self._chunks)
        return replace(verdict, quote=quote, unproven=not there)

    def _read(self, answer: Answer) -> Judgement | None:
        """Return the verdict; with the grade of a yes, if that was asked for."""
        prompt = self._prompt
        if prompt.answer:
            said = THINKING.sub("", answer.content, count=1)
            value = re.search(prompt.answer, said, re.IGNORECASE)
            answer = replace(answer, content=(value and value[1]) or "", tokens=())
        if prompt.name.startswith(GRADE_PREFIX):
            above = {str(grade): grade for grade in self.aspect.grades if grade or not self.yes}
            return read_grade(answer, above, self.yes)
        return read_yes(answer, self.opened.cutoffs.get(self.aspect.name, 1 / 2))

    def guess(self) -> None:
        """Leave the verdict open: nothing follows from it."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, at most."""
        if self.given is not None:
            return QUOTE_TOKENS
        return PATTERN_TOKENS if self._prompt.answer else WORD_TOKENS


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


def read_yes(answer: Answer, cutoff: float = 1 / 2) -> Judgement | None:
    """Return the verdict in an answer that is yes or no, None if there is none.

    Above the `cutoff` of its probability a yes is a yes.
    """
    chances = _chances(answer.tokens, YES_NO)
    if not chances:
        value = _said(answer.content, YES_NO)
        return None if value is None else Judgement(value)
    yes = chances.get(1, 0.0)
    return Judgement(int(yes > cutoff), f"yes with probability {yes:.2f}", probability=yes)


def read_grade(
    answer: Answer, grades: Mapping[str, int], yes: Judgement | None
) -> Judgement | None:
    """Return the grade in an answer, next to the expected value over these grades; None for none.

    Without a `yes` that was given before, the probability is that of all grades above 0.
    """
    digits = all(len(grade) == 1 for grade in grades)  # otherwise 1 may be the beginning of 10
    chances = _chances(answer.tokens, grades) if digits else {}
    if not chances:
        value = _said(answer.content, grades)
        chance = yes.probability if yes is not None else None
        return None if value is None else Judgement(value, probability=chance)
    expected = sum(value * chance for value, chance in chances.items())
    above = 1.0 - chances.get(0, 0.0) if yes is None else yes.probability
    reason = f"expected grade {expected:.2f}"
    if yes is not None and yes.reason:
        reason = f"{yes.reason}, {reason}"
    return Judgement(floor(expected + 1 / 2), reason, probability=above)


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
            word = _bare(token)
            if word in words:
                value = words[word]
                found[value] = found.get(value, 0.0) + reached * chance
            elif not word:
                blank += chance
        if choices and _bare(choices[0][0]):
            break  # the answer, or something else that it began to write
        reached *= blank
    total = sum(found.values())
    return (
        {value: chance / total for value, chance in found.items()} if total >= LEAST_LIKELY else {}
    )


def _bare(token: str) -> str:
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
        if each[0] in words and (each[0] not in ALONE_WORDS or _is_alone(said, each))
    }
    return values.pop() if len(values) == 1 else None


def _is_alone(text: str, word: re.Match[str]) -> bool:
    """Tell whether a word is an answer by itself, and no part of a sentence."""
    before = text[: word.start()].rstrip(AROUND_WORD + "\r\n")
    return before[-1:] in ("", ":") and bool(WORD_END.match(text[word.end() :].lstrip(AROUND_WORD)))


# --- lists in plain lines -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineListing:
    """Asks for the items of a reference, or the parts of a chunk, one per line: no JSON.

    A model that writes on and on is asked about half of the text. Of a single sentence the lines
    that are complete are taken: what follows is the same again.
    """

    opened: OpenSample
    aspect: Aspect
    chunk: str = ""  # whose parts are listed; none if it is about the reference
    text: str = ""  # a part of the reference or the chunk; all of it at first
    half: str = ""  # which part: "01" is the second half of the first half
    attempt: int = 1

    @property
    def _shown(self) -> str:
        opened = self.opened
        return self.text or (
            opened.items.chunks[self.chunk] if self.chunk else opened.sample.reference
        )

    def request(self) -> ChatRequest:
        """Show the text, and the question where it helps to understand it."""
        kind, writer = "chunk" if self.chunk else "reference", self.opened.writer
        data = self.opened.data_to_list(self.aspect, kind, self._shown)
        task = writer.prompts[f"lines-{self.aspect.name}"].fill()
        asked = writer.plain_request(data, task, self.attempt, likely=False)
        return replace(asked, limit=self.opened.limit(self.answer_tokens))

    def settle(self, outcome: Outcome) -> list[LineListing]:
        """Take the lines that are sound; ask about less, or again."""
        stats, halves = self.opened.stats, self._halves()
        cut = not isinstance(outcome, Answer) and outcome.reason is Reason.CUT_OFF
        if not isinstance(outcome, Answer):
            if outcome.reason in DIVISIBLE_REASONS and halves:
                stats.asked_again += len(halves)
                return halves
            if not cut:
                self.opened.fail(self.aspect.name, JudgeFailure(outcome.reason, outcome.detail))
                return []
        texts, wrong = self._read(outcome.content, cut=cut)
        if wrong and not texts:
            fault = Fault.NOT_THERE if self.aspect.how_listed.copied else Fault.NOTHING
            stats.malformed[fault] += 1
            if self.attempt < self.opened.settings.attempts and not cut:
                stats.asked_again += 1
                return [replace(self, attempt=self.attempt + 1)]
            self.opened.fail(self.aspect.name, JudgeFailure(JudgeReason.MALFORMED, fault))
            return []
        if self.aspect.is_split and not whole_claims(texts, self._shown):
            if self.attempt < self.opened.settings.attempts and not cut:
                stats.malformed[Fault.FRAGMENT] += 1
                stats.asked_again += 1
                return [replace(self, attempt=self.attempt + 1)]
            texts = split([self._shown])[0]  # sentences are whole
        for _ in range(wrong):
            stats.note("invented-item", self.opened.sample.query)
        self._take(texts)
        return []

    def guess(self) -> None:
        """Go on as if the text had been split by rule."""
        if self.chunk:
            self._take(self.opened.guess_parts(self.aspect, int(self.chunk[1:]) - 1))
        else:
            self._take(self.opened.guess_items(self.aspect))

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return 20 + estimate_tokens(self._shown)

    def _halves(self) -> list[LineListing]:
        """Return questions about two halves of the text, by sentences; none if it is one."""
        [sentences] = split([self._shown])
        middle = (len(sentences) + 1) // 2
        parts = (sentences[:middle], sentences[middle:]) if len(sentences) > 1 else ()
        return [
            replace(self, text=" ".join(part), half=f"{self.half}{number}")
            for number, part in enumerate(parts)
        ]

    def _read(self, content: str, *, cut: bool) -> tuple[list[str], int]:
        """Return the lines, and how many of them are not what was asked for."""
        lines = THINKING.sub("", content, count=1).splitlines()
        if cut:
            lines = lines[:-1]  # the last one has no end
        texts = [BULLET.sub("", line, count=1).strip(" \t*`") for line in lines]
        texts = [
            text for text in texts if text and text.casefold().rstrip(".") not in NOTHING_WORDS
        ]
        if not self.aspect.how_listed.copied:
            # a line such as "Here are the claims:" is not one of them
            texts = [text for text in texts if not text.endswith((":", "："))] or texts
            # a whole reference has a claim, as it has a sentence
            lacking = cut or (self.aspect.is_split and not self.chunk and not self.half)
            return distinct(texts), int(lacking and not texts)
        same, there, wrong = self.aspect.how_listed.same, [], 0
        for text in distinct(texts, same):
            bare = text.removesuffix(".") if not is_quoted(text, self._shown) else text
            # small models write several on a line
            parts = [bare] if is_quoted(bare, self._shown) else bare.split(", ")
            good = [part for part in parts if is_quoted(part, self._shown)]
            there += good
            wrong += len(parts) - len(good)
        return distinct(there, same), wrong

    def _take(self, texts: Sequence[str]) -> None:
        """Add to what is listed, in the order of the text, whichever half was answered first."""
        name = self.aspect.name
        halves = self.opened.halves.setdefault((name, self.chunk), {})
        halves[self.half] = texts
        listed = [text for half in sorted(halves) for text in halves[half]]
        if self.chunk:
            self.opened.parts[name][int(self.chunk[1:]) - 1] = distinct(listed)
        else:
            self.opened.listed[name] = distinct(listed, self.aspect.how_listed.same)
