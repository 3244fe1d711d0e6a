"""A sample as a judge sees it: each part under its id, which no answer can shift."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karat.client.budget import estimate_tokens
from karat.judges.llm.fence import Fence

if TYPE_CHECKING:
    from karat.judges.verdicts import Aspect, Sample


@dataclass(frozen=True, slots=True)
class PromptItems:
    """Chunks c1, c2, …, claims k1, …, entities e1, … and statements c1.s1, … of a sample."""

    fence: Fence
    question: str
    chunks: Mapping[str, str]
    claims: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)
    statements: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)  # what a statement was made from
    cut: frozenset[str] = frozenset()  # what is shown only in part

    def units(self, aspect: Aspect) -> Mapping[str, str]:
        """Return what is judged: the ids that an answer must hold, with their texts."""
        if aspect == "relevance":
            return self.chunks
        rest = {"claims": self.claims, "entities": self.entities, "statements": self.statements}
        return rest[aspect]


def open_dossier(
    sample: Sample,
    most_tokens: int,
    *,
    claims: Sequence[str] = (),
    entities: Sequence[str] = (),
    statements: Sequence[Sequence[str]] = (),
    sources: Mapping[str, str] | None = None,
) -> PromptItems:
    """Give ids to the parts of a sample, and cut what is longer than so many tokens."""
    chunks = numbered("c", sample.chunks)
    parts = {
        each: text
        for chunk, texts in zip(chunks, statements, strict=False)
        for each, text in numbered(f"{chunk}.s", texts).items()
    }
    shown = {each: cut_text(text, most_tokens) for each, text in (chunks | parts).items()}
    others = (sample.reference, *claims, *entities, *(text for row in statements for text in row))
    return PromptItems(
        # not by the claims and the like, so that calls about one sample begin alike
        Fence.around((sample.question, *sample.chunks), others),
        sample.question,
        {each: shown[each] for each in chunks},
        numbered("k", claims),
        numbered("e", entities),
        {each: shown[each] for each in parts},
        sources or {},
        frozenset(each for each, text in (chunks | parts).items() if len(shown[each]) < len(text)),
    )


def numbered(prefix: str, texts: Iterable[str]) -> dict[str, str]:
    """Give ids to texts.

    >>> numbered("c", ["a", "b"])
    {'c1': 'a', 'c2': 'b'}
    """
    return {f"{prefix}{number}": text for number, text in enumerate(texts, 1)}


def by_chunk(statements: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of statements by the chunk that they are in."""
    found: dict[str, list[str]] = {}
    for each in statements:
        found.setdefault(chunk_of(each), []).append(each)
    return found


def chunk_of(statement: str) -> str:
    """Return the id of the chunk that a statement is in.

    >>> chunk_of("c12.s3")
    'c12'
    """
    return statement.partition(".")[0]


def cut_text(text: str, most_tokens: int) -> str:
    """Return as much of the beginning of a text as has so many tokens.

    >>> cut_text("The battery lasts six hours.", 3)
    'The battery '
    """
    if len(text) <= most_tokens or estimate_tokens(text) <= most_tokens:
        return text
    lengths = range(len(text) + 1)
    fitting = bisect_right(lengths, most_tokens, key=lambda length: estimate_tokens(text[:length]))
    return text[: fitting - 1]
