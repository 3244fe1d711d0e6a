"""Findings: what is worth knowing about the input, counted, with examples and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

EXAMPLES = 3  # how many examples a finding keeps


class FindingKind(StrEnum):
    """The kinds of findings that code decides by; all others are only reported."""

    BARE_TEXT = "bare-text"  # a text without an id; counted, never reported
    GOLD_DUPLICATE = "gold-duplicate"  # the gold lists a document of a query again
    ID_AS_TEXT = "id-as-text"  # an id is compared as if it were a text
    LOST_QUOTE = "lost-quote"  # a text was not found in its document
    NO_PLACE = "no-place"  # a document has neither offsets nor a text to find
    NO_TEXT = "no-text"  # a document has no text
    NOTHING_SHARED = "no-shared-document"  # no document of a run is in the gold
    OTHER_CHOICE = "other-choice"  # two systems were evaluated with different options
    OTHER_GOLD = "other-gold"  # two systems were evaluated against different golds
    SHARED_ID = "shared-id"  # different chunks of a list have one id
    SKIPPED_RECORD = "skipped-record"  # a record could not be read
    TEXT_AS_ID = "text-as-id"  # a text is used as an id
    UNKNOWN_TEXT = "unknown-text"  # a document is not in the corpus
    UNPAIRED_QUERY = "unpaired-query"  # only one of two systems was asked


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth knowing about the input: what, how often, examples, what to do."""

    kind: str
    count: int
    examples: tuple[str, ...]
    message: str
    fix: str = ""
    run: str = ""  # the run it is about; empty for the gold

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from other findings: those with the same key say the same."""
        return self.run, self.kind, self.message

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as the JSON output prints it."""
        return {**asdict(self), "examples": list(self.examples)}


def finding_about(  # noqa: PLR0917
    kind: str,
    names: Sequence[str] | pl.Series,
    message: str,
    fix: str = "",
    run: str = "",
    examples: int = EXAMPLES,
) -> list[Finding]:
    """Return one finding that counts names and shows the first different ones; none without names.

    >>> finding_about("blank-id", ["q2", "q1", "q2"], "blank id")
    [Finding(kind='blank-id', count=3, examples=('q2', 'q1'), message='blank id', fix='', run='')]
    >>> finding_about("blank-id", [], "blank id")
    []
    """
    shown: dict[str, None] = {}
    for name in names:
        shown.setdefault(str(name))
        if len(shown) == examples:
            break
    return [Finding(kind, len(names), tuple(shown), message, fix, run)] if shown else []


def finding_about_rows(kind: str, rows: pl.DataFrame, message: str, fix: str) -> list[Finding]:
    """Return the finding about rows, as `finding_about`; examples are query and document."""
    return [Finding(kind, rows.height, name_rows(rows), message, fix)] if rows.height else []


def shorten(text: str, most: int = 60) -> str:
    """Cut a text that is too long for a line.

    >>> shorten("How long does charging take?", 12)
    'How long do…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def name_rows(rows: pl.DataFrame) -> tuple[str, ...]:
    """Return the first rows of a table as examples: the query and the document."""
    named = rows.select("query", "doc").head(EXAMPLES).rows()
    return tuple(f"{shorten(query, 40)} / {shorten(doc, 40)}" for query, doc in named)


def first_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings without those that say again what an earlier one says."""
    first: dict[tuple[str, str, str], Finding] = {}
    for found in findings:
        first.setdefault(found.key, found)
    return list(first.values())


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add up findings that say the same, as found in several batches of one input.

    >>> a = Finding("nan-score", 2, ("q1",), "NaN scores rank last")
    >>> merge_findings([a, a])[0].count
    4
    """
    merged: dict[tuple[str, str, str], Finding] = {}
    for new in findings:
        old = merged.get(new.key)
        if old is not None:
            examples = tuple(dict.fromkeys(old.examples + new.examples))[:EXAMPLES]
            new = replace(old, count=old.count + new.count, examples=examples)  # noqa: PLW2901
        merged[new.key] = new
    return tuple(merged.values())
