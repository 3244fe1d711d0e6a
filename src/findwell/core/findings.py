"""Findings: what is worth knowing about the input, counted, with examples and what to do."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

WORD_FORMS = re.compile(r"(?<!\S)([a-z]+)\|([a-z]+)(?![^\s,.;:])")  # for one | for several
EXAMPLES = 3  # how many examples a finding keeps
# what the finding of a text that is hashed begins with
HASHED = "# object|objects has|have no id. A hash of the text serves as one"


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
    """Something worth knowing about the input: what, how often, examples, what to do.

    What is given as the message is a template, which `fill_in_count` makes a sentence.
    """

    kind: str
    count: int
    examples: tuple[str, ...]
    message: str
    fix: str = ""
    run: str = ""  # the run it is about; empty for the gold
    template: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        template = self.template or self.message
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "message", fill_in_count(template, self.count))

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as the JSON output prints it."""
        found = asdict(self) | {"examples": list(self.examples)}
        del found["template"]
        return found


def fill_in_count(template: str, count: int) -> str:
    """Return a sentence that begins with a count: `#` stands for it, `one|several` for a word.

    >>> fill_in_count("# query|queries has|have no relevant item.", 1)
    '1 query has no relevant item.'
    >>> fill_in_count("# query|queries has|have no relevant item.", 1200)
    '1,200 queries have no relevant item.'
    """
    if not template.startswith("#"):
        return template
    return WORD_FORMS.sub(r"\1" if count == 1 else r"\2", f"{count:,}{template[1:]}")


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
        first.setdefault((found.run, found.kind, found.message), found)
    return list(first.values())


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add up findings that say the same, as found in several batches of one input.

    >>> a = Finding("nan-score", 2, ("q1",), "NaN scores rank last")
    >>> merge_findings([a, a])[0].count
    4
    """
    merged: dict[tuple[str, str, str], Finding] = {}
    for new in findings:
        key = new.run, new.kind, new.template
        old = merged.get(key)
        if old is not None:
            examples = tuple(dict.fromkeys(old.examples + new.examples))[:EXAMPLES]
            new = replace(old, count=old.count + new.count, examples=examples)  # noqa: PLW2901
        merged[key] = new
    return tuple(merged.values())
