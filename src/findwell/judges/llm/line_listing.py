"""Lists in plain lines: what small models write in place of JSON, one item or part per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from findwell.core.texts.sentences import split
from findwell.judges.aspects import Aspect, Listing
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import Answer, Outcome, Reason
from findwell.judges.client.requests import ChatRequest, Message
from findwell.judges.llm.calls import DIVISIBLE
from findwell.judges.llm.contract import Fault
from findwell.judges.llm.parse import THINKING
from findwell.judges.llm.prompt_items import Fence
from findwell.judges.llm.single import LIKELY
from findwell.judges.quotes import distinct, folded, is_quoted
from findwell.judges.verdicts import JudgeFailure, JudgeReason

if TYPE_CHECKING:
    from findwell.judges.llm.open_sample import OpenSample

BULLET = re.compile(r"\s*(?:[-*•–]|\d{1,3}[.):])\s+")
NOTHING = frozenset(
    {"none", "nothing", "[]", "-", "n/a", "keine", "aucune", "ninguna", "无", "なし"}
)


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
        sample, prompts = self.opened.sample, self.opened.writer.prompts
        how = self.aspect.listing or Listing()
        fence = Fence.around((self._shown,), (sample.question,))
        data = [fence.block("chunk" if self.chunk else "reference", self._shown)]
        if how.with_question and sample.question.strip():
            data = [fence.block("question", sample.question), *data]
        task = prompts[f"lines-{self.aspect.name}"].fill()
        if self.attempt > 1:
            task += "\n" + prompts["single-again"].fill(attempt=self.attempt)
        asked = "\n".join([*data, "", task])
        messages = (Message("system", prompts["single"].text), Message("user", asked))
        options = {
            name: value
            for name, value in self.opened.writer.options_of(0).items()
            if name not in LIKELY
        }
        return ChatRequest(messages, options=options, limit=self.opened.limit(self.answer_tokens))

    def settle(self, outcome: Outcome) -> list[LineListing]:
        """Take the lines that are sound; ask about less, or again."""
        stats, halves = self.opened.stats, self._halves()
        cut = not isinstance(outcome, Answer) and outcome.reason is Reason.CUT_OFF
        if not isinstance(outcome, Answer):
            if outcome.reason in DIVISIBLE and halves:
                stats.asked_again += len(halves)
                return halves
            if not cut:
                self.opened.fail(self.aspect.name, JudgeFailure(outcome.reason, outcome.detail))
                return []
        texts, wrong = self._read(outcome.content, cut=cut)
        if wrong and not texts:
            fault = Fault.NOT_THERE if self._copied else Fault.NOTHING
            stats.malformed[fault] += 1
            if self.attempt < self.opened.settings.attempts and not cut:
                stats.asked_again += 1
                return [replace(self, attempt=self.attempt + 1)]
            self.opened.fail(self.aspect.name, JudgeFailure(JudgeReason.MALFORMED, fault))
            return []
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

    @property
    def _copied(self) -> bool:
        return self.aspect.listing is not None and self.aspect.listing.copied

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
        texts = [text for text in texts if text and text.casefold().rstrip(".") not in NOTHING]
        if not self._copied:
            # a line such as "Here are the claims:" is none of them
            texts = [text for text in texts if not text.endswith((":", "："))] or texts
            # a whole reference has a claim, as it has a sentence
            lacking = cut or (self.aspect.is_split and not self.chunk and not self.half)
            return distinct(texts, folded), int(lacking and not texts)
        same = self.aspect.listing.same if self.aspect.listing else None
        there, wrong = [], 0
        for text in distinct(texts, same or folded):
            bare = text.removesuffix(".") if not is_quoted(text, self._shown) else text
            # small models write several on a line
            parts = [bare] if is_quoted(bare, self._shown) else bare.split(", ")
            good = [part for part in parts if is_quoted(part, self._shown)]
            there += good
            wrong += len(parts) - len(good)
        return distinct(there, same or folded), wrong

    def _take(self, texts: Sequence[str]) -> None:
        """Add to what is listed, in the order of the text, whichever half was answered first."""
        name, same = self.aspect.name, self.aspect.listing.same if self.aspect.listing else None
        halves = self.opened.halves.setdefault((name, self.chunk), {})
        halves[self.half] = texts
        listed = [text for half in sorted(halves) for text in halves[half]]
        if self.chunk:
            self.opened.parts[name][int(self.chunk[1:]) - 1] = distinct(listed, folded)
        else:
            self.opened.listed[name] = distinct(listed, same or folded)
