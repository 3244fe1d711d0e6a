"""Questions to a judge: each knows how it is put, and what to ask again when it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from karat.client.protocol import Answer, Outcome, Reason
from karat.judges.llm.contract import read_answer
from karat.judges.llm.dossier import chunk_of
from karat.judges.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.client.requests import ChatRequest
    from karat.judges.llm.asks import Ask, Writer
    from karat.judges.llm.cases import Case
    from karat.judges.llm.tally import JudgeStats
    from karat.judges.verdicts import Aspect

# a smaller call may do: it is shorter, or no longer holds what a filter minds
DIVISIBLE = frozenset(
    {Reason.CUT_OFF, Reason.TOO_LONG, Reason.REFUSED, Reason.FILTERED, Reason.EMPTY}
)
MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Rules:
    """What all questions of a judge share."""

    writer: Writer
    tally: JudgeStats
    attempts: int  # at each id


class Question(Protocol):
    """Something to ask, once."""

    def request(self, rules: Rules) -> ChatRequest:
        """Put it into words."""

    def settle(self, outcome: Outcome, rules: Rules) -> Sequence[Question]:
        """Take what the outcome holds, and return what must be asked again."""

    def guess(self) -> None:
        """Put something in the place of an answer, to go on with."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Asks for verdicts about a case."""

    case: Case
    ask: Ask
    vote: int = 0

    def request(self, rules: Rules) -> ChatRequest:
        """Put it into words."""
        return rules.writer.ruling(self.ask, self.case.dossier, self.vote)

    def settle(self, outcome: Outcome, rules: Rules) -> list[Ruling]:
        """Take the verdicts; ask again for those that are missing, alone."""
        ask = self.ask
        if isinstance(outcome, Answer):
            reading = read_answer(outcome.content, ask.wanted, ask.shown, self.case.dossier)
            rules.tally.malformed.update([*reading.wrong.values(), *reading.extra.elements()])
            self.case.ballots[self.vote] |= reading.verdicts
            again = [ask.again(list(reading.wrong))] if reading.wrong else []
            reasons = {each: f"{MALFORMED}: {fault}" for each, fault in reading.wrong.items()}
        else:
            again = ask.halves() if outcome.reason in DIVISIBLE else []
            wanted = ((aspect, each) for aspect, ids in ask.wanted.items() for each in ids)
            reasons = dict.fromkeys(wanted, str(outcome))
        if again and ask.attempt < rules.attempts:
            rules.tally.asked_again += len(again)
            return [Ruling(self.case, each, self.vote) for each in again]
        for (aspect, each), reason in reasons.items():
            self._fail(aspect, each, reason)
        return []

    def guess(self) -> None:
        """Leave the verdicts open: nothing follows from them."""

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return self.ask.answer_tokens

    def _fail(self, aspect: Aspect, each: str, reason: str) -> None:
        chunks = self.ask.shown if aspect in ("claims", "entities") else (chunk_of(each),)
        for chunk in chunks:
            self.case.ballots[self.vote][aspect, each, chunk] = Verdict(None, reason)
