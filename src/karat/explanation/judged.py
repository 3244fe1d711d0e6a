"""What a judge said about one query, as explanations show it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.explanation.ranking import Unit
from karat.judges.verdicts import Judged
from karat.relate.pipeline import TEXT
from karat.texts.words import tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karat.explanation.marks import Marks
    from karat.judges.verdicts import JudgeProtocol, Sample
    from karat.progress import Report
    from karat.results.result import Result


@dataclass(frozen=True, slots=True)
class Said:
    """One verdict of a judge."""

    aspect: str
    item: str  # the question, a claim, an entity or a statement
    rank: int | None  # of the chunk
    value: int | None
    reason: str
    quote: str
    unproven: bool


class SomeQueries:
    """A judge that is asked about some queries; about the others it says nothing."""

    def __init__(self, judge: JudgeProtocol, queries: Iterable[str]) -> None:
        self._judge = judge
        self._queries = set(queries)
        self.name = judge.name
        self.about = judge.about
        self.findings = getattr(judge, "findings", list)

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Pass on the samples of the queries."""
        asked = [sample.query in self._queries for sample in samples]
        given = iter(self._judge.judge([*compress(samples, asked)], aspects, progress))
        return [next(given) if wanted else Judged() for wanted in asked]


def verdicts_of(result: Result, query: str) -> tuple[Said, ...]:
    """Return the verdicts about a query of the only run, in the order of aspects and items."""
    ranks = {_key(row.get("text")): row["rank"] for row in reversed(_chunks(result, query))}
    return tuple(
        Said(
            row["aspect"],
            row["item"],
            ranks.get(_key(row["chunk"])),
            row["value"],
            row["reason"],
            row["quote"],
            row["unproven"],
        )
        for row in _rows(result.kept.verdicts, query)
    )


def judged_units(result: Result, query: str, marks: Marks) -> list[Unit]:
    """Return the units of a query of the only run, as far as judged: chunks or statements."""
    chunks = _chunks(result, query)[: marks.relation.judged_to]
    at = marks.number.get(query)
    ends = None if at is None else marks.ends(at)
    if ends is None:
        return [Unit(row["doc"], row.get("text")) for row in chunks]
    said: dict[str, list[str]] = {}
    for row in _rows(result.kept.verdicts, query):
        if row["aspect"] == "statements":
            said.setdefault(_key(row["chunk"]), []).append(row["item"])
    return [
        Unit(row["doc"], statement, row["rank"])
        for row, first, last in zip(chunks, [0, *ends], ends, strict=False)
        for statement in said.get(_key(row.get("text")), [])[: last - first]
    ]


def _key(text: str | None) -> str:
    """Return what makes chunks the same to a judge, as far as lists remember their texts."""
    return str(tidy(pl.Series([(text or "")[:TEXT]]), "plain")[0])


def _chunks(result: Result, query: str) -> list[dict[str, Any]]:
    return _rows(result.kept.listed.get(result.runs[0]), query)


def _rows(table: pl.DataFrame | None, query: str) -> list[dict[str, Any]]:
    return [] if table is None else table.filter(query=query).to_dicts()
