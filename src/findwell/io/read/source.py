"""Bytes from outside: a file, perhaps gzipped or in UTF-16, read in blocks of whole lines."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, InputError, nearest
from findwell.core.findings import shorten
from findwell.io.read.format import STRICT, ReadContext
from findwell.io.storage.files import temporary_folder
from findwell.io.storage.spool import copy_bounded, spool

if TYPE_CHECKING:
    from collections.abc import Iterator

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
GZIP = b"\x1f\x8b"
REASON = 200  # letters of a reason that a message shows
RECORD = 1 << 20  # bytes of the longest first record that is looked at
SAYS = re.compile(rb"^[ \t\r]*[^\s#][^\n]*\n", re.MULTILINE)  # a whole line, and no comment
HEAD = 64 << 10  # bytes by which the format is recognised
# A gzip file may expand about a thousandfold. Runs and judgements shrink to a tenth; what
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
        path = Path(path)
        where = str(path)
        try:
            if path.is_dir():
                os.scandir(path).close()  # may it be looked into?
                raise InputError("this is a directory", where=where, fix="name a file inside it")
            if path.is_file() and path.stat().st_size == 0:
                raise InputError("the file is empty", where=where, fix="write it again")
            if not path.is_file():
                path = spool(path)  # a pipe can be read only once
            with path.open("rb"):
                pass
        except FindwellError:  # a wrong option is a ValueError, too
            raise
        except FileNotFoundError:
            fix = "check the path"
            with contextlib.suppress(OSError):  # or is it a similar name?
                fix = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
            raise InputError("no such file", where=where, fix=fix) from None
        except OSError as error:
            raise not_readable(error, where) from None
        except ValueError:
            fix = "check the path"
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
        name = name.removesuffix(".gz").rsplit(".", 1)[0] or name
        return name.encode("utf-8", "backslashreplace").decode()  # a path may be no Unicode

    @property
    def suffix(self) -> str:
        """The file's ending, a .gz behind it not counted."""
        return Path(self.path.name.removesuffix(".gz")).suffix.lower()

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
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """Open the file, unzipped and as UTF-8; trouble becomes an InputError."""
        try:
            with self._raw() as raw:
                file = raw
                if _begins(raw, GZIP):
                    file = io.BufferedReader(_Unzipped(raw, self.where), 1 << 20)
                wide = next((name for mark, name in WIDE.items() if _begins(file, mark)), None)
                if wide:
                    file = io.BufferedReader(_Recoded(file, wide, self.where), 1 << 20)
                yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"the gzip data is broken: {error}", where=self.where, fix="compress it again"
            ) from None

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
            plain = not any(_begins(raw, mark) for mark in (GZIP, *WIDE))
        if plain:
            yield self.path
            return
        with temporary_folder() as folder:
            copy = folder / "plain"
            with self.open() as file:
                copy_bounded(file, copy, self.where)
            yield copy


def not_readable(error: OSError, where: str) -> InputError:
    """Return the error for a file or folder that the system does not let us read."""
    return InputError(
        f"cannot be read: {error.strerror or first_line(error)}",
        where=where[:200],
        fix="check that the file is there and that you may read it",
    )


def unreadable(what: str, error: BaseException, where: str, fix: str) -> InputError:
    """Return the error for something that polars cannot read, with the first line of its reason."""
    return InputError(f"the {what} cannot be read: {first_line(error)}", where=where, fix=fix)


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, short enough for a message."""
    return shorten(next(iter(str(error).strip().splitlines()), type(error).__name__), REASON)


def not_utf8(error: UnicodeDecodeError, where: str) -> InputError:
    """Return the error for bytes that are no text."""
    return InputError(
        f"the bytes {error.object[error.start : error.start + 4]!r} are not UTF-8",
        where=where,
        fix="save the file as UTF-8",
    )


def _begins(file: io.BufferedReader, mark: bytes) -> bool:
    """Look at the first bytes without reading them."""
    return file.peek(len(mark)).startswith(mark)


class _Unzipped(io.RawIOBase):
    """A gzip stream that refuses to expand beyond reason."""

    def __init__(self, raw: io.BufferedReader, where: str) -> None:
        super().__init__()
        self._raw = raw
        self._file = gzip.GzipFile(fileobj=raw)
        self._where = where
        self._out = 0

    def readable(self) -> bool:
        """Tell io.BufferedReader that this can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - whatever holds bytes
        """Fill a buffer, or a part of it."""
        size = self._file.readinto(buffer)
        self._out += size
        if self._out > BOMB_BYTES and self._out > BOMB_RATIO * self._raw.tell():
            raise InputError(
                f"the gzip data expands more than {BOMB_RATIO}-fold",
                where=self._where,
                fix="unzip it yourself if you trust it",
            )
        return size


class _Recoded(io.RawIOBase):
    """A text of another encoding as UTF-8."""

    def __init__(self, file: io.BufferedReader, encoding: str, where: str) -> None:
        super().__init__()
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = memoryview(b"")
        self._where = where

    def readable(self) -> bool:
        """Tell io.BufferedReader that this can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - whatever holds bytes
        """Fill a buffer, or as much of it as there is data for."""
        data = b"more"
        while not self._left and data:
            data = self._file.read(1 << 20)
            try:
                self._left = memoryview(self._decoder.decode(data, not data).encode())
            except UnicodeDecodeError as error:
                raise InputError(
                    f"it begins with the mark of {error.encoding.upper()}, but it is not: "
                    f"{error.reason}",
                    where=self._where,
                    fix="save the file as UTF-8",
                ) from None
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
