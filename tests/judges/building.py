"""Samples and verdicts, written shortly."""

from __future__ import annotations

from typing import Any

from findwell.judges.aspects import ASPECTS, VerdictShape
from findwell.judges.verdicts import AspectVerdicts, Judged, JudgeFailure, Sample

FOUR = frozenset({"relevance", "claims", "entities", "statements"})


def sample_of(
    query: str,
    question: str,
    chunks: tuple[str, ...],
    reference: str = "",
    *,
    claims: Any = None,
    statements: Any = None,
) -> Sample:
    """Return a sample that knows claims of its reference and statements of its chunks."""
    items = {} if claims is None else {"claims": tuple(claims)}
    parts = {} if statements is None else {"statements": tuple(map(tuple, statements))}
    return Sample(query, question, chunks, reference, items, parts)


def judged_of(failures: dict[str, JudgeFailure] | None = None, **given: Any) -> Judged:
    """Return verdicts by aspect, with the texts of an aspect as `claim_texts` and so on."""
    found: dict[str, AspectVerdicts] = {}
    for name, rows in given.items():
        if name in ASPECTS:
            shape, texts = ASPECTS[name].shape, given.get(ASPECTS[name].texts, ())
            found[name] = AspectVerdicts(
                (rows,) if shape is VerdictShape.CHUNKS else rows,
                items=texts if shape is VerdictShape.ITEMS else (),
                parts=texts if shape is VerdictShape.PARTS else (),
            )
    return Judged(found, failures or {})


def text_of(failure: JudgeFailure | None) -> str:
    """Return a failure as people read it."""
    return "" if failure is None else str(failure)
