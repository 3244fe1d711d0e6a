"""How an input is read, what its first bytes show, and the registry of formats."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from findwell.core.errors import InputError
from findwell.core.findings import (
    EXAMPLES,
    Finding,
    FindingKind,
    finding_about,
    merge_findings,
    shorten,
)
from findwell.core.frames import pl
from findwell.core.plugins import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from findwell.core.data import Gold, NamedBy, RunStream
    from findwell.io.read.source import Source


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


@dataclass(frozen=True, slots=True)
class Samples:
    """Run and gold that came in the same records."""

    run: RunStream
    gold: Gold


# other kinds of files that people give by accident, and how they begin
FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"SQLite format 3": "an SQLite database",
}


# endings that name a format, and what the first line of other formats begins with or is cut by
NAMED_SUFFIXES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".db"})
OTHER_MARKS = frozenset(b'\t,;|{["#') | frozenset(range(32)) - {ord("\r")} | {127}
PARQUET = b"PAR1"  # how a file of Parquet begins
NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Look:
    """What the name and the first bytes of a file show."""

    suffix: str
    head: bytes
    columns: frozenset[str] = frozenset()  # of Parquet, which names them at its end

    @classmethod
    def at(cls, source: Source) -> Look:
        """Look at the first bytes."""
        head = source.head().removeprefix(b"\xef\xbb\xbf")
        return cls(source.suffix, head, _parquet_columns(source, head))

    @property
    def excerpt(self) -> str:
        """The beginning, short enough for a message."""
        return self.head[:40].decode("utf-8", "replace")

    @property
    def lines(self) -> list[bytes]:
        """The first lines that are neither blank nor a comment."""
        lines = (line.strip() for line in self.head.split(b"\n"))
        return list(islice((line for line in lines if line and line[:1] != b"#"), 200))

    @property
    def opens_json(self) -> bool:
        """Whether it begins as JSON does, with a bracket that is no part of an id.

        >>> Look("", b'{"q1": []}').opens_json, Look("", b"{q1} Q0 d1 1 0.5 tag").opens_json
        (True, False)
        >>> Look("", b"[[1], 2]").opens_json, Look("", b"[1] Q0 d1 1 0.5 tag").opens_json
        (True, False)
        """
        start = self.head.lstrip()
        return start[:1] in (b"{", b"[") and not _is_columns(start.partition(b"\n")[0])

    @property
    def only_columns(self) -> bool:
        """Whether it begins with words between spaces, as files of TREC do, and as no other does.

        >>> Look("", b"q1 Q0 d1 1 0.5 tag").only_columns, Look("", b"q1,d1,1").only_columns
        (True, False)
        """
        first = self.head.partition(b"\n")[0]
        if len(first.split()) < 4 or self.suffix in NAMED_SUFFIXES:
            return False
        return OTHER_MARKS.isdisjoint(first) and b"\0" not in self.head

    @property
    def foreign(self) -> str:
        """What other kind of file this is, if it is one of those people give by accident."""
        return next((kind for mark, kind in FOREIGN.items() if self.head.startswith(mark)), "")

    @property
    def binary(self) -> bool:
        """Whether this is not text."""
        return b"\0" in self.head


def _parquet_columns(source: Source, head: bytes) -> frozenset[str]:
    """Return the columns of a Parquet file; none of a broken one, which its reader reports."""
    if not head.startswith(PARQUET):
        return frozenset()
    try:
        with source.plain_file() as path:
            return frozenset(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, InputError):
        return frozenset()


def _is_columns(line: bytes) -> bool:
    """Tell whether a line that begins with a bracket has the columns of TREC, rather than JSON."""
    first, *words = line.split()[:6]
    if len(words) < 3 or any(mark in first for mark in (b'"', b":", b",")):
        return False
    numbers = words[2:3] if len(words) == 3 else words[2:4]  # a grade, or a rank and a score
    return all(NUMBER.fullmatch(word) for word in numbers)


class Format:
    """One file format. A subclass names itself and reads what its roles say: run, gold, samples."""

    name: ClassVar[str]
    roles: ClassVar[frozenset[str]]
    order: ClassVar[int] = 50  # formats that are easier to recognise are tried first

    def sniff(self, look: Look, role: str) -> bool:
        """Tell whether the content looks like this format in this role; by default never."""
        del look, role
        return False

    def run(self, source: Source, name: str) -> RunStream:
        """Read a run."""
        raise NotImplementedError

    def gold(self, source: Source) -> Gold:
        """Read a gold."""
        raise NotImplementedError

    def samples(self, source: Source, name: str) -> Samples:
        """Read records that hold both run and gold."""
        raise NotImplementedError


FORMATS: Registry[Format] = Registry("format", package="findwell.io.read", group="findwell.formats")


def register_format(cls: type[Format]) -> type[Format]:
    """Class decorator: make a format known; a later one of the same name replaces the earlier."""
    FORMATS.register(cls.name, cls(), replaces=True)
    return cls
