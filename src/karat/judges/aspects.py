"""What can be judged about a sample, and what measures read of it: one relation an aspect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karat.judges.verdicts import Aspect, Judged, Matrix, Sample, Verdict

BEST = 3  # the grade of a chunk whose verdict failed, at best
LISTED = ("relevance", "statements")  # whose items are the units of the list itself
UNKNOWN = "(unknown: the judge did not list any)"
NEEDS = {
    "relevance": "question",
    "statements": "question",
    "claims": "reference",
    "entities": "reference",
}
VERDICTS = {
    "query": pl.String,
    "aspect": pl.String,
    "item": pl.String,
    "chunk": pl.String,
    "value": pl.Int64,
    "reason": pl.String,
    "quote": pl.String,
    "unproven": pl.Boolean,
}


def items_of(verdicts: Judged, aspect: Aspect, *, failed: bool) -> list[tuple[str, float, Any]]:
    """Return the items of a sample: text, grade, and the chunks and parts that cover it."""
    if aspect in verdicts.failures:
        return [(UNKNOWN, 1.0, [(0, 0)] if failed else [])]
    if aspect == "relevance":
        best = float(BEST) if failed else 0.0
        return [
            (f"chunk {at + 1}", best if verdict.value is None else float(verdict.value), [(at, 0)])
            for at, verdict in enumerate(verdicts.relevance)
        ]
    if aspect == "statements":
        return [
            (text, float(failed if verdict.value is None else verdict.value), [(chunk, part)])
            for chunk, (texts, row) in enumerate(
                zip(verdicts.statement_texts, verdicts.statements, strict=True)
            )
            for part, (text, verdict) in enumerate(zip(texts, row, strict=True))
        ]
    texts, matrix = _matrix(verdicts, aspect)
    return [
        (
            text,
            1.0,
            [
                (chunk, 0)
                for chunk, verdict in enumerate(row)
                if (failed if verdict.value is None else verdict.value > 0)
            ],
        )
        for text, row in zip(texts, matrix, strict=True)
    ]


def _matrix(verdicts: Judged, aspect: Aspect) -> tuple[tuple[str, ...], Matrix]:
    if aspect == "claims":
        return verdicts.claim_texts, verdicts.claims
    return verdicts.entity_texts, verdicts.entities


def all_verdicts(verdicts: Judged, aspect: Aspect) -> list[Verdict]:
    """Return every verdict about one aspect of a sample."""
    if aspect == "relevance":
        return list(verdicts.relevance)
    matrix = verdicts.statements if aspect == "statements" else _matrix(verdicts, aspect)[1]
    return [verdict for row in matrix for verdict in row]


def rows_of(aspect: Aspect, sample: Sample, judged: Judged) -> Iterator[tuple[object, ...]]:
    """Yield the verdicts about one aspect of a sample, as rows of `VERDICTS`."""
    if aspect == "statements":
        for chunk, texts, row in zip(
            sample.chunks, judged.statement_texts, judged.statements, strict=False
        ):
            for text, verdict in zip(texts, row, strict=False):
                yield sample.query, aspect, text, chunk, *_cells(verdict)
        return
    matrices: dict[str, tuple[Sequence[str], Matrix]] = {
        "relevance": ([sample.question], (judged.relevance,) if judged.relevance else ()),
        "claims": (judged.claim_texts, judged.claims),
        "entities": (judged.entity_texts, judged.entities),
    }
    for item, row in zip(*matrices[aspect], strict=False):
        for chunk, verdict in zip(sample.chunks, row, strict=False):
            yield sample.query, aspect, item, chunk, *_cells(verdict)


def _cells(verdict: Verdict) -> tuple[object, ...]:
    return verdict.value, verdict.reason, verdict.quote, verdict.unproven


def parts_of(judged: Judged, aspect: Aspect) -> Sequence[Sequence[str]] | None:
    """Return the parts of each chunk that verdicts are about; None where they are about chunks."""
    return judged.statement_texts if aspect == "statements" else None
