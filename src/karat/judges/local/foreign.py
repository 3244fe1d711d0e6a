"""What the local judge cannot read, or was never measured on: everything but English."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from karat.findings import EXAMPLES, Finding
from karat.languages import ENGLISH, known, languages_of

if TYPE_CHECKING:
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
    found: Mapping[str, int], judge: str, *, reads_words: bool
) -> tuple[Finding, ...]:
    """Say which languages were met, and what the verdicts about them are worth."""
    known_words = [code for code in found if reads_words and known(code).asking]
    unread = [code for code in found if code not in known_words]
    told = []
    if unread:
        told.append(
            _finding(
                "unread-language",
                {code: found[code] for code in unread},
                f"question or chunk in a language that {judge} cannot read: the verdicts about it "
                "say little",
                "ask a language model (--judge openai:MODEL)"
                + ("" if reads_words else ", or use local:text, which goes by words alone"),
            )
        )
    if known_words:
        told.append(
            _finding(
                "unmeasured-language",
                {code: found[code] for code in known_words},
                f"question or chunk that is not in English: {judge} knows the commonest words and "
                "endings of this language, but its agreement with people was measured on English",
                "measure it on labels of your own (karat judge-card), or ask a language model",
            )
        )
    return tuple(told)


def _finding(kind: str, found: Mapping[str, int], message: str, fix: str) -> Finding:
    names = sorted(found, key=lambda code: (-found[code], code))
    examples = tuple(known(code).name for code in names)[:EXAMPLES]
    return Finding(kind, sum(found.values()), examples, message, fix)
