"""How an input is read: the choices, the bytes of a file, what the first show, and formats."""

from __future__ import annotations

import codecs
import contextlib
import functools
import gzip
import importlib
import io
import os
import re
import sys
import zlib
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from findwell.core.errors import FindwellError, InputError, nearest, needs_package
from findwell.core.findings import (
    EXAMPLES,
    HASHED,
    Finding,
    FindingKind,
    finding_about,
    merge_findings,
    shorten,
)
from findwell.core.frames import pl
from findwell.core.plugins import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from findwell.core.data import Gold, NamedBy, RunStream
    from findwell.io.read.mapping import Fields


OTHERS = 1000  # values of a field that are kept
LOOKED = 5000  # results whose other fields are read
FUNCTION = re.compile(r"[\w.]+:[\w.]+")  # in a module


@functools.cache
def _names_of_others() -> tuple[frozenset[str], ...]:
    """Return the names of metadata, of texts, and of fields whose numbers may be ids."""
    from findwell.io.read import vocabulary as named  # noqa: PLC0415 - files of TREC do without it

    texts = (*named.TEXT_NAMES, "doc")
    numbers = (*named.ID_NAMES, *named.SOURCE_NAMES)  # a page is not one
    return frozenset(named.METADATA_NAMES), frozenset(texts), frozenset(numbers)


@dataclass(slots=True)
class EntryNotes:
    """Where ids came from that the results themselves lacked; for the findings."""

    hashed: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)  # by field: ids of several chunks
    placed: int = 0  # ids that are places
    chunks: dict[tuple[str, str], tuple[Any, Any]] = field(default_factory=dict)  # by field and id
    others: dict[str, set[str]] = field(default_factory=dict)  # by field: what is not the id
    looked: int = 0  # results, for `others`

    def findings(self) -> list[Finding]:
        """Return what should be known about the ids."""
        found = [
            Finding(
                "id-from-metadata",
                len(ids),
                tuple(ids[:EXAMPLES]),
                f"# object|objects has|have no id. metadata.{name} serves as the id.",
                f"if that is right, say so: --read id_from=metadata.{name} (id_from=)",
            )
            for name, ids in self.fields.items()
        ]
        for name, ids in self.shared.items():
            found += finding_about(
                FindingKind.SHARED_ID,
                ids,
                "# chunk|chunks has|have the same id as a different chunk of the list, from "
                f"{name}. Chunks of one document count as one.",
                "if the gold labels whole documents, this is right; otherwise name a field that "
                "differs for each chunk (--read id_from, id_from=)",
            )
        if self.hashed:
            found.append(
                Finding(
                    FindingKind.TEXT_AS_ID,
                    len(self.hashed),
                    tuple(self.hashed[:EXAMPLES]),
                    f"{HASHED}, so only objects with equal texts match.",
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

    def id_from_field(self, name: str, doc: str, entry: Mapping[str, Any]) -> str:
        """Return an id from metadata, and remember that; it must not name chunks of two documents.

        Splitters often count the chunks of each document from 0.
        """
        chunk = entry["source"], entry["text"]
        first = self.chunks.setdefault((name, doc), chunk)
        if None not in (first[0], chunk[0]) and first[0] != chunk[0] and first[1] != chunk[1]:
            raise InputError(
                f"metadata.{name} is {shorten(doc)!r} in chunks of {shorten(str(first[0]))!r} and "
                f"of {shorten(str(chunk[0]))!r}, so it is not the id of a chunk",
                fix="give each chunk an id of its own, or name the field that holds one "
                "(--read id_from, id_from=); or match texts (--by rouge)",
            )
        self.fields.setdefault(name, []).append(doc)
        return doc

    def keep_others(self, fields: Mapping[str, Any], inside: str = "") -> None:
        """Remember what else may be the id of something that has one; of the first results only."""
        metadata, texts, numbers = _names_of_others()
        self.looked += not inside
        for own, value in fields.items() if self.looked <= LOOKED else ():
            if isinstance(value, dict) and own in metadata:
                self.keep_others(value, "metadata.")
            is_id = own not in texts if isinstance(value, str) else type(value) is int
            if is_id and (own in numbers or isinstance(value, str)):
                held = self.others.setdefault(f"{inside}{own}", set())
                if len(held) < OTHERS:
                    held.add(str(value))

    def note_shared(self, chunks: Iterable[tuple[str, Any, Any]], name: str) -> None:
        """Remember the ids that a field gives to several different chunks of one list."""
        first: dict[str, tuple[Any, Any]] = {}
        for doc, text, start in chunks:
            if first.setdefault(doc, (text, start)) != (text, start):
                self.shared.setdefault(name, []).append(doc)


@dataclass(eq=False, kw_only=True)
class ReadContext:
    """The choices for one input, the records that it left out, and what else was found.

    `skip` leaves out records that cannot be read instead of raising the first. `texts` keeps the
    texts and the character offsets next to the ids, which matching by text needs. `about` keeps
    everything that describes the queries of a run, such as the questions, and not only what its
    timing needs. `names` is what names a query; a record without it is named by the next best.
    `id_from` is the field of retrieved objects that holds their ids, `query_from` the attribute of
    traces that holds the ids of queries, `search_span` the name of spans that are searches;
    `fields` says what fields of other names mean.

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
    search_span: str | None = None
    fields: Fields = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing found."""
        self.begin()

    def begin(self) -> None:
        """Forget what was found, because the input is read from its beginning."""
        self._count = 0
        self._first: list[InputError] = []
        self._notes: tuple[Finding, ...] = ()
        self.notes = EntryNotes()  # where the ids of retrieved objects came from
        self.gold_notes = EntryNotes()  # and those of objects in the gold

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

    def findings(self, *, retrieved: bool = True) -> tuple[Finding, ...]:
        """Return what was left out and what was noted so far, also about `retrieved` objects."""
        about_ids = [*(self.notes.findings() if retrieved else ()), *self.gold_notes.findings()]
        noted = (*self._notes, *about_ids)
        if not self._count:
            return noted
        skipped = Finding(
            FindingKind.SKIPPED_RECORD,
            self._count,
            tuple(f"{error.where}: {error.what}" for error in self._first),
            "# record|records cannot be read and is|are left out.",
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
        f"{what}; {chosen!r} counts.",
        "drop or rename what should not count",
    )


def text_as_id(count: int, names: tuple[str, ...], what: str = "record|records") -> Finding:
    """Return the finding that texts served as ids."""
    return Finding(
        FindingKind.TEXT_AS_ID,
        count,
        names,
        f"# {what} has|have texts but no ids. A text serves as its id, so only equal texts match.",
        'give ids with the texts, or match by similar text (--by rouge, by="rouge")',
    )


STRICT = ReadContext()


@dataclass(frozen=True, slots=True)
class Samples:
    """Run and gold that came in the same records."""

    run: RunStream
    gold: Gold


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
    mapped: frozenset[str] = frozenset()  # fields of which a user says what they mean

    @classmethod
    def at(cls, source: Source) -> Look:
        """Look at the first bytes."""
        head = source.head().removeprefix(b"\xef\xbb\xbf")
        mapped = frozenset(source.reading.fields)
        return cls(source.suffix, head, _parquet_columns(source, head), mapped)

    @property
    def lines(self) -> list[bytes]:
        """The first lines that are neither blank nor a comment."""
        lines = (line.strip() for line in self.head.split(b"\n"))
        return list(islice((line for line in lines if line and line[:1] != b"#"), 200))

    @property
    def opens_json(self) -> bool:
        """Whether it begins as JSON does, with a bracket that is not part of an id.

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
        """Read gold labels."""
        raise NotImplementedError

    def samples(self, source: Source, name: str) -> Samples:
        """Read records that hold both run and gold."""
        raise NotImplementedError


FORMATS: Registry[Format] = Registry("format", package="findwell.io.read", group="findwell.formats")


def register_format(cls: type[Format]) -> type[Format]:
    """Class decorator: make a format known; a later one of the same name replaces the earlier."""
    FORMATS.register(cls.name, cls(), replaces=True)
    return cls


BLOCK = 4 << 20  # bytes parsed at once: small enough for caches, large enough for speed
LINE = 64 << 20  # bytes of the longest line that is taken for one
BYTE_ORDER_MARK = codecs.BOM_UTF8
# what Windows calls Unicode: recognised by its mark, and read as if it were UTF-8
WIDE = {  # the longer marks first, since one begins as another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ZSTD_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
UNZIPPED = re.compile(r"\.(gz|zst)$")
REASON = 200  # letters of a reason that a message shows
RECORD = 1 << 20  # bytes of the longest first record that is looked at
SAYS = re.compile(rb"^[ \t\r]*[^\s#][^\n]*\n", re.MULTILINE)  # a whole line, and no comment
HEAD = 64 << 10  # bytes by which the format is recognised
# A compressed file may expand about a thousandfold. Runs and judgements shrink to a tenth; what
# expands this much past this size is an accident or an attack.
BOMB_RATIO, BOMB_BYTES = 200, 256 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of a file, which begin at `offset`."""

    source: Source
    data: bytes
    offset: int

    def where(self, number: int) -> str:
        """Name the line of this number within the block, counting from 0."""
        return f"{self.source.where}, line {self.source.line_at(self.offset) + number}"


@dataclass(frozen=True, slots=True)
class Source:
    """A readable file that is known to exist and to hold something."""

    path: Path
    given: str = ""  # what the user called it, where that is not the path
    reading: ReadContext = STRICT  # what becomes of a line that cannot be read

    @classmethod
    def of(cls, path: str | os.PathLike[str], reading: ReadContext = STRICT) -> Source:
        """Check what can be checked before reading: exists, a file, readable, not empty."""
        path, where, fix = Path(path), str(path), "check the path"
        try:
            if path.is_dir():
                os.scandir(path).close()  # may it be looked into?
                raise InputError("this is a directory", where=where, fix="name a file inside it")
            if path.is_file() and path.stat().st_size == 0:
                raise InputError("the file is empty", where=where, fix="write it again")
            if not path.is_file():
                from findwell.io.storage.spool import spool  # noqa: PLC0415

                path = spool(path)  # a pipe can be read only once
            with path.open("rb"):
                pass
        except FindwellError:  # a wrong option is a ValueError, too
            raise
        except FileNotFoundError:
            if FUNCTION.fullmatch(where):
                fix = f"if {where} is a function, ask it first: findwell run {where} -o run.jsonl"
            with contextlib.suppress(OSError):  # or is it a similar name?
                fix = nearest(path.name, (entry.name for entry in path.parent.iterdir())) or fix
            raise InputError("no such file", where=where, fix=fix) from None
        except OSError as error:
            raise not_readable(error, where) from None
        except ValueError:
            raise InputError("a path holds no NUL character", where=repr(where), fix=fix) from None
        return cls(path, where, reading)

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.given or str(self.path)

    @property
    def name(self) -> str:
        """The file's name without folder and endings: what a run is called by default."""
        name = Path(self.where).name
        name = UNZIPPED.sub("", name).rsplit(".", 1)[0] or name
        return name.encode("utf-8", "backslashreplace").decode()  # a path may be no Unicode

    @property
    def suffix(self) -> str:
        """The file's ending, a .gz or .zst behind it not counted."""
        return Path(UNZIPPED.sub("", self.path.name)).suffix.lower()

    def head(self) -> bytes:
        """Return the first bytes, unzipped: enough to see a whole line that says something.

        A list of JSON may be one line, which need not be seen whole.
        """
        with self.open() as file:
            head = file.read(HEAD)
            most = RECORD if head.lstrip()[:1] in (b"{", b"[") else LINE
            seen = 0  # lines before this say nothing
            while len(head) < most and not SAYS.search(head, seen):
                seen = head.rfind(b"\n") + 1
                more = file.read(len(head))
                if not more:
                    break
                head += more
            return head

    def sha256(self) -> str:
        """Return the hash of the file as it is on disk."""
        import hashlib  # noqa: PLC0415 - only what is saved is hashed

        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """Open the file, unzipped and as UTF-8; trouble becomes an InputError."""
        with self._raw() as raw:
            file = raw
            if _begins(raw, GZIP) or _begins(raw, ZSTD):
                file = io.BufferedReader(_Stream(_unpacked(raw, self.where)), 1 << 20)
            wide = next((name for mark, name in WIDE.items() if _begins(file, mark)), None)
            if wide:
                file = io.BufferedReader(_Stream(_recoded(file, wide, self.where)), 1 << 20)
            yield file

    def _raw(self) -> io.BufferedReader:
        """Open the file as it is; it was there a moment ago."""
        try:
            return self.path.open("rb")
        except OSError as error:
            raise not_readable(error, self.where) from None

    def read(self) -> bytes:
        """Return the whole content."""
        with self.open() as file:
            return file.read()

    def blocks(self) -> Iterator[Block]:
        """Read blocks of whole lines; a byte-order mark is dropped."""
        offset = 0
        with self.open() as file:
            while data := file.read(BLOCK):
                if not data.endswith(b"\n"):
                    data += file.readline(LINE)
                    if len(data) >= LINE and b"\n" not in data[-LINE:]:
                        raise InputError(
                            f"the line is longer than {LINE >> 20} MiB",
                            where=f"{self.where}, line {self.line_at(offset + len(data))}",
                            fix="check that this is a text file with one record per line",
                        )
                mark = len(BYTE_ORDER_MARK) * (not offset and data.startswith(BYTE_ORDER_MARK))
                yield Block(self, data[mark:], offset + mark)
                offset += len(data)

    def line_at(self, offset: int) -> int:
        """Return the number of the line at an offset: only messages need it."""
        line = 1
        with self.open() as file:
            while offset > 0 and (data := file.read(min(offset, 1 << 20))):
                line += data.count(b"\n")
                offset -= len(data)
        return line

    def not_utf8(self) -> InputError | None:
        """Return the error that names the first line that is not UTF-8, if there is one."""
        for block in self.blocks():
            try:
                block.data.decode()
            except UnicodeDecodeError as error:
                return not_utf8(error, block.where(block.data.count(b"\n", 0, error.start)))
        return None

    @contextlib.contextmanager
    def plain_file(self) -> Iterator[Path]:
        """Give the path of the content as `open` reads it: the file itself, or a temporary copy."""
        with self._raw() as raw:
            plain = not any(_begins(raw, mark) for mark in (GZIP, ZSTD, *WIDE))
        if plain:
            yield self.path
            return
        from findwell.io.storage.files import temporary_folder  # noqa: PLC0415
        from findwell.io.storage.spool import copy_bounded  # noqa: PLC0415

        with temporary_folder() as folder:
            copy = folder / "plain"
            with self.open() as file:
                copy_bounded(file, copy, self.where)
            yield copy


def not_readable(error: OSError, where: str) -> InputError:
    """Return the error for a file or folder that the system does not let us read."""
    what = f"cannot be read: {error.strerror or first_line(error)}"
    fix = "check that the file is there and that you may read it"
    return InputError(what, where=where[:200], fix=fix)


def unreadable(what: str, error: BaseException, where: str, fix: str) -> InputError:
    """Return the error for something that polars cannot read, with the first line of its reason."""
    return InputError(f"the {what} cannot be read: {first_line(error)}", where=where, fix=fix)


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, short enough for a message."""
    return shorten(next(iter(str(error).strip().splitlines()), type(error).__name__), REASON)


def not_utf8(error: UnicodeDecodeError, where: str) -> InputError:
    """Return the error for bytes that are not text."""
    what = f"the bytes {error.object[error.start : error.start + 4]!r} are not UTF-8"
    return InputError(what, where=where, fix="save the file as UTF-8")


def _begins(file: io.BufferedReader, mark: bytes) -> bool:
    """Look at the first bytes without reading them."""
    return file.peek(len(mark)).startswith(mark)


class _Stream(io.RawIOBase):
    """The parts that a generator makes, as one file."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        super().__init__()
        self._parts = filter(None, parts)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """Tell io.BufferedReader that this can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - whatever holds bytes
        """Fill a buffer, or as much of it as there is data for."""
        self._left = self._left or memoryview(next(self._parts, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _unpacked(raw: io.BufferedReader, where: str) -> Iterator[bytes]:
    """Unpack gzip or zstd, but refuse what expands beyond reason."""
    if _begins(raw, GZIP):
        kind, broken, file = "gzip", zlib.error, gzip.GzipFile(fileobj=raw)
    else:
        with needs_package("a zstd file", "zstd", instead=f"unpack it: zstd -d {where}"):
            zstd = importlib.import_module(ZSTD_MODULE)
        kind, broken, file = "zstd", zstd.ZstdError, zstd.ZstdFile(raw)
    size, data = 0, b"more"
    while data:
        try:
            data = file.read(1 << 20)
        except (EOFError, gzip.BadGzipFile, broken) as error:
            broke = f"the {kind} data is broken: {error}"
            raise InputError(broke, where=where, fix="compress it again") from None
        size += len(data)
        if size > BOMB_BYTES and size > BOMB_RATIO * raw.tell():
            what = f"the {kind} data expands more than {BOMB_RATIO}-fold"
            raise InputError(what, where=where, fix="unzip it yourself if you trust it")
        yield data


def _recoded(file: io.BufferedReader, encoding: str, where: str) -> Iterator[bytes]:
    """Give a text of another encoding as UTF-8."""
    decoder, data = codecs.getincrementaldecoder(encoding)(), b"more"
    while data:
        data = file.read(1 << 20)
        try:
            yield decoder.decode(data, not data).encode()
        except UnicodeDecodeError as error:
            what = f"it has the mark of {error.encoding.upper()}, but it is not: {error.reason}"
            raise InputError(what, where=where, fix="save the file as UTF-8") from None
