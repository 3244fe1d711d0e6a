"""A judge for tests of tuning: a function, since `local:text` chooses no setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample


def by_words(sample: Sample) -> dict[str, Any]:
    """Judge as relevant what shares a word of more than five letters with the question."""
    words = {word for word in sample.question.lower().split() if len(word) > 5}
    shared = [any(word in text.lower() for word in words) for text in sample.chunks]
    return {"relevance": [int(each) for each in shared]}
