"""What a judge is asked and what it answers: verdicts about one query, never scores.

A judge says how relevant each chunk is, which chunks support which claim of the reference answer,
which hold which of its entities, and which statements of the chunks are relevant. Relations are
drawn from that, and measures read the relations; see `karat.relate.judged.relations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from karat.progress import Report

Aspect: TypeAlias = Literal["relevance", "claims", "entities", "statements"]

ASPECTS: tuple[Aspect, ...] = ("relevance", "claims", "entities", "statements")
GRADES = {
    0: "of no use for answering, even if it is on the topic",
    1: "of some use: a minor part of the answer, or what points to it",
    2: "of much use: a main part of the answer",
    3: "all that is needed for the answer",
}  # from 1 on a chunk is relevant, unless a measure says otherwise with rel


@dataclass(frozen=True, slots=True)
class Sample:
    """One query as a judge sees it."""

    query: str
    question: str
    chunks: tuple[str, ...]  # distinct, in rank order, none of them blank
    reference: str = ""  # the reference answer; blank if there is none
    claims: tuple[str, ...] = ()  # the units of the reference
    statements: tuple[tuple[str, ...], ...] = ()  # the units of each chunk


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer of a judge: a grade 0–3 of a chunk, otherwise 0 or 1; None is a failure."""

    value: int | None
    reason: str = ""  # the judge's, or why there is no value
    quote: str = ""  # what in the chunk the judge points at
    unproven: bool = False  # a positive verdict whose quote is not in the chunk


Matrix: TypeAlias = tuple[tuple[Verdict, ...], ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """All verdicts about one sample; an aspect that was not asked for is empty.

    `claims[i][j]` says whether chunk j supports `claim_texts[i]`, `entities[i][j]` whether it
    holds `entity_texts[i]`, `statements[j][i]` whether `statement_texts[j][i]` of chunk j is
    relevant. The texts are those of the sample, unless the judge was told to find its own.
    `failures` names aspects that failed as a whole, such as entities that were never listed.
    """

    relevance: tuple[Verdict, ...] = ()
    claim_texts: tuple[str, ...] = ()
    claims: Matrix = ()
    entity_texts: tuple[str, ...] = ()
    entities: Matrix = ()
    statement_texts: tuple[tuple[str, ...], ...] = ()
    statements: Matrix = ()
    failures: Mapping[str, str] = field(default_factory=dict)  # aspect → reason


class Judge(Protocol):
    """Anything that gives verdicts."""

    @property
    def name(self) -> str:
        """What results and caches call it."""

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[Aspect],
        progress: Report | None = None,
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""

    def about(self) -> dict[str, Any]:
        """Return what the manifest says: model, prompts, versions, calls, tokens, cost."""
