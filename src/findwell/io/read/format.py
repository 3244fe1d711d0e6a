"""What a file format is, and the registry of those findwell reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.core.plugins import Registry

if TYPE_CHECKING:
    from findwell.core.data import Gold, RunStream
    from findwell.io.read.source import Source


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
