"""How an input is read: what becomes of a broken record, and whether texts are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from findwell.core.findings import EXAMPLES, Finding, FindingKind, merge_findings
from findwell.io.read.objects import EntryNotes

if TYPE_CHECKING:
    from findwell.core.data import NamedBy
    from findwell.core.errors import InputError


@dataclass(eq=False, kw_only=True)
class ReadContext:
    """The choices for one input, the records that it left out, and what else was found.

    `skip` leaves out records that cannot be read instead of raising the first. `texts` keeps the
    texts and the character offsets next to the ids, which matching by text needs. `about` keeps
    everything that describes the queries of a run, such as the questions, and not only what its
    timing needs. `names` is what names a query; a record without it is named by the next best.
    `id_from` is the field of retrieved objects that holds their ids, `query_from` the attribute of
    traces that holds the ids of queries.

    >>> from findwell.core.errors import InputError
    >>> reading = ReadContext(skip=True)
    >>> reading.meet(InputError("not valid JSON", where="run.jsonl, line 7"))
    >>> reading.findings()[0].examples
    ('run.jsonl, line 7: not valid JSON',)
    """

    skip: bool = False
    texts: bool = False
    about: bool = False
    names: NamedBy = "id"
    id_from: str | None = None
    query_from: str | None = None

    def __post_init__(self) -> None:
        """Begin with nothing found."""
        self.begin()

    def begin(self) -> None:
        """Forget what was found, because the input is read from its beginning."""
        self._count = 0
        self._first: list[InputError] = []
        self._notes: tuple[Finding, ...] = ()
        self.notes = EntryNotes()  # where the ids of retrieved objects came from

    def afresh(self) -> ReadContext:
        """Return the same choices for another pass over the input."""
        return replace(self)

    def meet(self, error: InputError) -> None:
        """Raise the error of a broken record, or remember it if such records are left out."""
        if not self.skip:
            raise error
        self._count += 1
        if len(self._first) < EXAMPLES:
            self._first.append(error)

    def note(self, *findings: Finding) -> None:
        """Remember something about what has been read; counts of the same are added up."""
        self._notes = merge_findings((*self._notes, *findings))

    def check_rest(self, rows: int) -> None:
        """Raise the first error after all if no record could be read."""
        if self._first and not rows:
            raise self._first[0]

    def findings(self) -> tuple[Finding, ...]:
        """Return what was left out and what was noted so far."""
        noted = (*self._notes, *self.notes.findings())
        if not self._count:
            return noted
        skipped = Finding(
            FindingKind.SKIPPED_RECORD,
            self._count,
            tuple(f"{error.where}: {error.what}" for error in self._first),
            "record that cannot be read: left out",
            "correct the input; without --skip-bad (skip_bad=True) the first one is an error",
        )
        return (*noted, skipped)


def two_names(count: int, chosen: str, others: tuple[str, ...], what: str) -> Finding:
    """Return the finding that something has two names and only one of them counts."""
    return Finding(
        "two-names",
        count,
        others[:EXAMPLES],
        f"{what} besides {chosen!r}, which counts",
        "drop or rename what should not count",
    )


def text_as_id(count: int, names: tuple[str, ...], what: str = "record") -> Finding:
    """Return the finding that texts served as ids."""
    return Finding(
        FindingKind.TEXT_AS_ID,
        count,
        names,
        f"{what} with texts but without ids: a text serves as its id, so only equal texts match",
        'give ids beside the texts, or match by similar text (--by rouge, by="rouge")',
    )


STRICT = ReadContext()
