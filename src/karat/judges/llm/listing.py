"""Units that a judge lists: the entities of references and, if told to, claims and statements.

Entities are listed from the reference alone, so that they are the same whatever was retrieved. One
that does not stand in the reference was invented.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from karat.client.budget import estimate_tokens
from karat.client.protocol import Answer, Outcome
from karat.judges.llm.asks import CHUNKS, pack
from karat.judges.llm.contract import (
    NO_FIELD,
    NOT_JSON,
    NOT_THERE,
    WRONG_TYPE,
    array_of,
    entries,
    folded,
    is_quoted,
    object_of,
    quote_of,
)
from karat.judges.llm.dossier import numbered
from karat.judges.llm.fence import Fence, ranges
from karat.judges.llm.parse import Unreadable, extract_object
from karat.judges.llm.questions import DIVISIBLE, MALFORMED
from karat.judges.local.entities import plain_form

if TYPE_CHECKING:
    from karat.client.protocol import Json
    from karat.client.requests import ChatRequest
    from karat.judges.llm.cases import Case
    from karat.judges.llm.questions import Question, Rules

GUESSED = 4  # entities of a reference
TEXT: dict[str, Json] = {"type": "string"}
STATEMENT = object_of({"quote": TEXT, "text": TEXT})


def listings(case: Case) -> Iterator[Question]:
    """Yield what must be listed before a case can be judged."""
    if case.sample.reference.strip():
        if "entities" in case.aspects:
            yield ReferenceListing(case, "entities")
        if case.decompose and "claims" in case.aspects:
            yield ReferenceListing(case, "claims")
    if case.decompose and "statements" in case.aspects:
        case.statements = [()] * len(case.sample.chunks)
        for chunks in pack(case.dossier.chunks, case.most_tokens, CHUNKS):
            yield StatementListing(case, chunks)


@dataclass(frozen=True, slots=True)
class ReferenceListing:
    """Asks for the entities or the claims of a reference."""

    case: Case
    what: Literal["entities", "claims"]
    attempt: int = 1

    def request(self, rules: Rules) -> ChatRequest:
        """Show the reference, and the question where it helps to understand it."""
        sample = self.case.sample
        fence = Fence.around((sample.reference,), (sample.question,))
        data = [fence.block("reference", sample.reference)]
        if self.what == "claims" and sample.question.strip():
            data = [fence.block("question", sample.question), *data]
        task = rules.writer.prompts[f"list-{self.what}"].fill()
        form = object_of({self.what: array_of(TEXT)})
        return rules.writer.request(data, [task], form, self.attempt)

    def settle(self, outcome: Outcome, rules: Rules) -> list[Question]:
        """Take the units if they are sound, otherwise ask again."""
        if not isinstance(outcome, Answer):
            self.case.fail(self.what, str(outcome))
            return []
        listed, faults = self._read(outcome.content)
        rules.tally.malformed.update(faults)
        if faults and self.attempt < rules.attempts:
            rules.tally.asked_again += 1
            return [replace(self, attempt=self.attempt + 1)]
        if faults and not listed:
            self.case.fail(self.what, f"{MALFORMED}: {faults[0]}")
            return []
        for _ in faults:
            rules.tally.note("invented-entity", self.case.sample.query)
        setattr(self.case, self.what, listed)
        return []

    def guess(self) -> None:
        """Go on with words in place of entities, sentences in place of claims."""
        sample = self.case.sample
        if self.what == "entities":
            self.case.entities = distinct(sample.reference.split()[:GUESSED], plain_form)
        else:
            self.case.claims = sample.claims or (sample.reference,)

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about."""
        return 20 + estimate_tokens(self.case.sample.reference)

    def _read(self, content: str) -> tuple[list[str], list[str]]:
        """Return the units of an answer, each once, and what is wrong with it."""
        said = extract_object(content)
        if isinstance(said, Unreadable):
            return [], [NOT_JSON]
        units = said.get(self.what)
        if not isinstance(units, list):
            return [], [WRONG_TYPE if self.what in said else NO_FIELD]
        texts = [unit.strip() for unit in units if isinstance(unit, str)]
        if len(texts) < len(units) or not all(texts):
            return [], [WRONG_TYPE]
        if self.what == "claims":
            return distinct(texts, folded), []
        texts = distinct(texts, plain_form)
        reference = self.case.sample.reference
        there = [text for text in texts if is_quoted(text, reference)]
        return there, [NOT_THERE] * (len(texts) - len(there))


@dataclass(frozen=True, slots=True)
class StatementListing:
    """Asks for what chunks state."""

    case: Case
    chunks: tuple[str, ...]
    attempt: int = 1

    def request(self, rules: Rules) -> ChatRequest:
        """Show the chunks."""
        dossier = self.case.dossier
        data = [dossier.fence.block(chunk, dossier.chunks[chunk]) for chunk in self.chunks]
        task = rules.writer.prompts["list-statements"].fill(ids=ranges(self.chunks))
        entry = object_of({"chunk": TEXT, "statements": array_of(STATEMENT)})
        form = object_of({"chunks": array_of(entry)})
        return rules.writer.request(data, [task], form, self.attempt)

    def settle(self, outcome: Outcome, rules: Rules) -> list[Question]:
        """Take the statements of the chunks that are sound, ask again about the others."""
        if isinstance(outcome, Answer):
            extra: Counter[str] = Counter()
            good, wrong = entries(
                extract_object(outcome.content), "chunks", "chunk", self.chunks, extra
            )
            bad = [chunk for chunk, entry in good.items() if not self._take(chunk, entry)]
            wrong |= dict.fromkeys(bad, WRONG_TYPE)
            rules.tally.malformed.update([*wrong.values(), *extra.elements()])
            parts = [tuple(chunk for chunk in self.chunks if chunk in wrong)] if wrong else []
            reason = f"{MALFORMED}: {next(iter(wrong.values()))}" if wrong else ""
        else:
            middle = (len(self.chunks) + 1) // 2
            divisible = outcome.reason in DIVISIBLE and len(self.chunks) > 1
            parts = [self.chunks[:middle], self.chunks[middle:]] if divisible else []
            reason = str(outcome)
        if parts and self.attempt < rules.attempts:
            rules.tally.asked_again += len(parts)
            return [StatementListing(self.case, part, self.attempt + 1) for part in parts]
        if reason:
            self.case.fail("statements", reason)
        return []

    def guess(self) -> None:
        """Go on with the sentences of the chunks, or with the chunks."""
        sample = self.case.sample
        for number, chunk in enumerate(sample.chunks):
            known = sample.statements[number] if number < len(sample.statements) else ()
            self.case.statements[number] = known or (chunk,)

    @property
    def answer_tokens(self) -> int:
        """How long the answer will be, about: everything twice."""
        return sum(2 * estimate_tokens(self.case.dossier.chunks[each]) for each in self.chunks)

    def _take(self, chunk: str, entry: dict[str, Json]) -> bool:
        """Keep the statements of a chunk, if they are what was asked for."""
        listed = entry.get("statements")
        if not isinstance(listed, list):
            return False
        texts, quotes = [], []
        for each in listed:
            text = each.get("text") if isinstance(each, dict) else None
            quote = quote_of(each) if isinstance(each, dict) else None
            if not isinstance(text, str) or not text.strip() or quote is None:
                return False
            texts.append(text.strip())
            quotes.append(quote)
        self.case.statements[int(chunk[1:]) - 1] = texts
        self.case.sources |= numbered(f"{chunk}.s", quotes)
        return True


def distinct(texts: Iterable[str], form: Callable[[str], str]) -> list[str]:
    """Return the first text of each form.

    >>> distinct(["Brasília", "1 May 1960", "Brasilia", "May 1, 1960"], plain_form)
    ['Brasília', '1 May 1960']
    """
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(form(text) or text, text)
    return list(first.values())
