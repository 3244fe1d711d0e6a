"""Findings: what is worth knowing about the input, counted, with examples and what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

EXAMPLES = 3  # how many examples a finding keeps


class FindingKind(StrEnum):
    """The kinds of findings that code decides by; all others are only reported."""

    OTHER_CHOICE = "other-choice"  # two systems were evaluated with different options
    OTHER_GOLD = "other-gold"  # two systems were held against different golds
    TEXT_AS_ID = "text-as-id"  # a text stands in the place of an id
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

    def as_dict(self) -> dict[str, object]:
        """Return the finding as the JSON output prints it."""
        return {
            "kind": self.kind,
            "count": self.count,
            "examples": list(self.examples),
            "message": self.message,
            "fix": self.fix,
            "run": self.run,
        }


def findings_about(
    kind: str, values: Sequence[str] | pl.Series, message: str, fix: str
) -> list[Finding]:
    """Return one finding that counts values and shows the first of them, or none without values.

    >>> findings_about("blank-id", ["q2", "q1", "q2"], "blank id", "")
    [Finding(kind='blank-id', count=3, examples=('q2', 'q1'), message='blank id', fix='', run='')]
    >>> findings_about("blank-id", [], "blank id", "")
    []
    """
    examples: list[str] = []
    for value in values:
        if len(examples) == EXAMPLES:
            break
        if shorten(value) not in examples:
            examples.append(shorten(value))
    return [Finding(kind, len(values), tuple(examples), message, fix)] if examples else []


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


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add up findings that say the same, as found in several batches of one input.

    >>> a = Finding("nan-score", 2, ("q1",), "NaN scores rank last")
    >>> merge_findings([a, a])[0].count
    4
    """
    merged: dict[tuple[str, str, str], Finding] = {}
    for new in findings:
        key = (new.run, new.kind, new.message)
        if key not in merged:
            merged[key] = new
            continue
        old = merged[key]
        examples = tuple(dict.fromkeys(old.examples + new.examples))[:EXAMPLES]
        merged[key] = replace(old, count=old.count + new.count, examples=examples)
    return tuple(merged.values())
