"""How an input is read: what becomes of a broken record, and whether texts are kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from findwell.core.findings import (
    EXAMPLES,
    Finding,
    FindingKind,
    finding_about,
    merge_findings,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from findwell.core.data import NamedBy
    from findwell.core.errors import InputError


@dataclass(slots=True)
class EntryNotes:
    """Where ids came from that the results themselves lacked; for the findings."""

    hashed: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)  # by field: ids of several chunks
    placed: int = 0  # ids that are places

    def findings(self) -> list[Finding]:
        """Return what should be known about the ids."""
        found = [
            Finding(
                "id-from-metadata",
                len(ids),
                tuple(ids[:EXAMPLES]),
                f"object without an id of its own: metadata.{name} serves as its id",
                f"if that is right, say so: --read id_from=metadata.{name} (id_from=)",
            )
            for name, ids in self.fields.items()
        ]
        for name, ids in self.shared.items():
            found += finding_about(
                FindingKind.SHARED_ID,
                ids,
                f"chunk with the same id as a different chunk of its list, from {name}: chunks of "
                "one document count as one",
                "if the gold labels whole documents, this is right; otherwise name a field that "
                "differs for each chunk (--read id_from, id_from=)",
            )
        if self.hashed:
            found.append(
                Finding(
                    FindingKind.TEXT_AS_ID,
                    len(self.hashed),
                    tuple(self.hashed[:EXAMPLES]),
                    "object without an id: a hash of its text serves as one, so only "
                    "objects with equal texts match",
                    "give each chunk an id of its own, or name the field that holds one "
                    "(--read id_from, id_from=); or match texts (--by rouge)",
                )
            )
        return found

    def id_from_text(self, text: str) -> str:
        """Return the id of something that is known by its text only, and remember that."""
        from findwell.io.read.values import text_id  # noqa: PLC0415 - files of TREC do without it

        self.hashed.append(shorten(text))
        return text_id(text)

    def note_shared(self, entries: Sequence[Mapping[str, Any]], name: str) -> None:
        """Remember the ids that a field gives to several different chunks of one list."""
        first: dict[str, tuple[Any, Any]] = {}
        for entry in entries:
            chunk = entry.get("text"), entry.get("start")
            if first.setdefault(entry["doc"], chunk) != chunk:
                self.shared.setdefault(name, []).append(entry["doc"])


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
            "correct the input; without --read skip_bad=yes (skip_bad=True) the first one is an "
            "error",
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
