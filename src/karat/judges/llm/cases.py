"""One sample on its way from what is known about it to its verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karat.errors import OptionError
from karat.judges.llm.dossier import PromptItems, by_chunk, open_dossier
from karat.judges.verdicts import ASPECTS, Judged, Matrix, Verdict

if TYPE_CHECKING:
    from karat.judges.llm.contract import Cell
    from karat.judges.llm.tally import JudgeStats
    from karat.judges.verdicts import Aspect, Sample

NO_QUESTION = "no question: nothing can be relevant to it"


@dataclass(slots=True)
class Case:
    """A sample, its units as they become known, and the votes about it."""

    sample: Sample
    aspects: list[Aspect]  # that are asked for, but for those that failed
    most_tokens: int
    decompose: bool = False
    claims: Sequence[str] = ()
    entities: Sequence[str] = ()
    statements: list[Sequence[str]] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)  # the quote a statement was made from
    failures: dict[str, str] = field(default_factory=dict)
    ballots: list[dict[Cell, Verdict]] = field(default_factory=list)
    dossier: PromptItems = field(init=False)

    @classmethod
    def begin(
        cls, sample: Sample, aspects: frozenset[Aspect], most_tokens: int, *, decompose: bool
    ) -> Case:
        """Take what is known from the sample; what the judge is to list is left open."""
        case = cls(sample, [each for each in ASPECTS if each in aspects], most_tokens, decompose)
        if not sample.question.strip():
            for aspect in [each for each in case.aspects if each in ("relevance", "statements")]:
                case.fail(aspect, NO_QUESTION)
        if not decompose:
            case.claims = sample.claims
            if "statements" in case.aspects:
                case.statements = list(sample.statements)
                if len(sample.statements) != len(sample.chunks):
                    raise OptionError(
                        f"{len(sample.chunks)} chunks have {len(sample.statements)} lists of"
                        " statements",
                        where=f"query {sample.query}",
                    )
        else:
            case.open()  # the chunks are shown to have their statements listed
        return case

    def open(self) -> None:
        """Number the units that are known now."""
        self.dossier = open_dossier(
            self.sample,
            self.most_tokens,
            claims=self.claims if "claims" in self.aspects else (),
            entities=self.entities if "entities" in self.aspects else (),
            statements=self.statements if "statements" in self.aspects else (),
            sources=self.sources,
        )

    def fail(self, aspect: Aspect, reason: str) -> None:
        """Give up an aspect as a whole."""
        self.failures[aspect] = reason
        if aspect in self.aspects:
            self.aspects.remove(aspect)

    def judged(self, tally: JudgeStats) -> Judged:
        """Make the verdicts of the votes."""
        query, dossier = self.sample.query, self.dossier
        for reason in self.failures.values():
            tally.lose(reason)
        read = self.decompose or {"relevance", "claims", "entities"} & set(self.aspects)
        for each in sorted(dossier.cut):
            if read or "." in each:
                tally.note("cut-text", f"{query} {each}")
        chunks = list(dossier.chunks)
        parts = by_chunk(dossier.statements)
        graded = chunks if "relevance" in self.aspects else []
        split = "statements" in self.aspects
        return Judged(
            relevance=tuple(self._rule("relevance", each, each, tally) for each in graded),
            claim_texts=tuple(dossier.claims.values()),
            claims=self._matrix("claims", tally),
            entity_texts=tuple(dossier.entities.values()),
            entities=self._matrix("entities", tally),
            statement_texts=tuple(tuple(texts) for texts in self.statements if split),
            statements=tuple(
                tuple(self._rule("statements", each, chunk, tally) for each in parts.get(chunk, ()))
                for chunk in (chunks if split else ())
            ),
            failures=dict(self.failures),
        )

    def _matrix(self, aspect: Aspect, tally: JudgeStats) -> Matrix:
        return tuple(
            tuple(self._rule(aspect, each, chunk, tally) for chunk in self.dossier.chunks)
            for each in self.dossier.units(aspect)
        )

    def _rule(self, aspect: Aspect, each: str, chunk: str, tally: JudgeStats) -> Verdict:
        votes = [ballot[aspect, each, chunk] for ballot in self.ballots]
        return tally.rule(aspect, votes)
