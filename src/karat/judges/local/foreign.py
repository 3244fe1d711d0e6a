"""What the local judge cannot read, or was never measured on: everything but English."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from karat.findings import EXAMPLES, Finding
from karat.languages import ENGLISH, known, languages_of

if TYPE_CHECKING:
    from karat.embeddings import Embedder
    from karat.judges.verdicts import Sample

HEAD = 120  # characters of a chunk that are looked at


def foreign_samples(samples: Sequence[Sample]) -> Iterator[str]:
    """Go through the languages of the samples that are not in English.

    What a sample is in, its question says and its first chunk. A question in English about texts
    in another language is not in English either, as no word of it stands in them.
    """
    questions = [sample.question or sample.reference for sample in samples]
    chunks = [sample.chunks[0][:HEAD] if sample.chunks else "" for sample in samples]
    codes = languages_of([*questions, *chunks])
    for pair in zip(codes[: len(samples)], codes[len(samples) :], strict=True):
        other = [code for code in pair if code not in ("", ENGLISH)]
        yield from other[:1]


def foreign_findings(
    found: Mapping[str, int], judge: str, embedder: Embedder | None
) -> tuple[Finding, ...]:
    """Say which languages were met, and what the verdicts about them are worth."""
    english_only = embedder is not None and getattr(embedder, "reads", "") == ENGLISH
    unread: dict[str, int] = {}
    unmeasured: dict[str, int] = {}
    for code, count in found.items():
        by_words_alone = embedder is None and known(code).asking is None
        (unread if english_only or by_words_alone else unmeasured)[code] = count
    told = []
    if unread:
        told.append(
            _finding(
                "unread-language",
                unread,
                f"question or chunk in a language that {judge} cannot read: what it says about it "
                "means little",
                "ask a language model (--judge openai:MODEL)"
                + (", or use local:text, which goes by words alone" if english_only else ""),
            )
        )
    if unmeasured:
        told.append(
            _finding(
                "unmeasured-language",
                unmeasured,
                f"question or chunk that is not in English, on which alone {judge} was measured",
                "measure it on labels of your own (karat judge-card), or ask a language model",
            )
        )
    return tuple(told)


def _finding(kind: str, found: Mapping[str, int], message: str, fix: str) -> Finding:
    names = sorted(found, key=lambda code: (-found[code], code))
    examples = tuple(known(code).name for code in names)[:EXAMPLES]
    return Finding(kind, sum(found.values()), examples, message, fix)
