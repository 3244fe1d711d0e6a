"""Where things stand in a text table: the line of each row, and what breaks a table.

Polars says of a broken table that it is broken. This looks at it again, line by line, to say where:
only messages need it, so that it may take its time.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from findwell.core.errors import InputError
from findwell.core.findings import shorten
from findwell.core.frames import pl

if TYPE_CHECKING:
    from findwell.io.read.format import Source

QUOTE = b'"'
CLOSING = re.compile(rb'(?:[^"]|"")*+"')  # up to the quote that closes; two of them are one inside


@dataclass(frozen=True, slots=True)
class TablePlace:
    """What messages call a table and its rows.

    >>> TablePlace("run.parquet").row(3)
    'run.parquet, row 3'
    """

    where: str
    line: Callable[[int], int] | None = None  # the line of a row of a text table
    before: int = 0  # rows of earlier batches
    kept: pl.Series | None = None  # the numbers of the rows, where some were left out

    def row(self, number: int) -> str:
        """Name a row, counting from 1."""
        number = self.before + (number if self.kept is None else self.kept[number - 1])
        if self.line is None:
            return f"{self.where}, row {number}"
        return f"{self.where}, line {self.line(number)}"

    def without_blank(self, table: pl.DataFrame) -> tuple[pl.DataFrame, TablePlace]:
        """Leave out rows of nothing, as blank lines make them; the others keep their numbers."""
        filled = table.select(~pl.all_horizontal(pl.all().is_null())).to_series()
        return self.only(table, filled)

    def only(self, table: pl.DataFrame, mask: pl.Series) -> tuple[pl.DataFrame, TablePlace]:
        """Leave out the rows that are not in a mask; the others keep their numbers."""
        if mask.all():
            return table, self
        kept = mask.arg_true() + 1 if self.kept is None else self.kept.filter(mask)
        return table.filter(mask), replace(self, kept=kept)


def row_lines(source: Source, separator: str) -> Callable[[int], int]:
    """Return a function that tells the line of a row; the file is read when it is first asked."""
    known = array("q")

    def line(number: int) -> int:
        if not known:
            known.extend(row.line for row in _rows(source, separator.encode()))
        return known[number] if number < len(known) else number + 1

    return line


def record_lines(source: Source) -> Callable[[int], int]:
    """Return a function that tells the line of a record, where each has one and some are blank."""

    def line(number: int) -> int:
        filled = (at for at, line in enumerate(_lines(source), start=1) if line.strip())
        return next(islice(filled, number - 1, None), number)

    return line


def why_broken(source: Source, separator: str) -> InputError | None:
    """Return the error that says where a text table is broken, if that can be told."""
    rows = _rows(source, separator.encode())
    header = next(rows, None)
    if header is None:
        return None
    text = next(islice(_lines(source), header.line - 1, None), b"").decode("utf-8", "replace")
    names = [shorten(cell.strip().strip('"')) for cell in text.split(separator)]
    stray: _Row | None = None
    for row in rows if not header.flaw else [header]:
        if row.flaw == STRAY:  # most readers take it; it is to blame only if nothing else is
            stray = stray or row
        elif row.flaw:
            return _quote_error(source, row, names)
        if row.columns > header.columns:
            what = f"found {row.columns} columns, and the header names {header.columns}"
            fix = f"put a text that holds {separator!r} in quotes, or remove the extra columns"
            return InputError(what, where=f"{source.where}, line {row.line}", fix=fix)
    return None if stray is None else _quote_error(source, stray, names)


UNCLOSED = "the quote that opens here is never closed"
BEHIND = "something follows the closing quote"
STRAY = "a quote stands inside a text that is not in quotes"


def _quote_error(source: Source, row: _Row, names: list[str]) -> InputError:
    line, at = row.flaw_place
    column = f" (column {names[at]!r})" if at < len(names) else ""
    fix = 'close the quote; one that is part of the text is doubled: "5"" pipe"'
    return InputError(f"{row.flaw}{column}", where=f"{source.where}, line {line}", fix=fix)


def _lines(source: Source) -> Iterator[bytes]:
    for block in source.blocks():
        lines = block.data.split(b"\n")
        yield from lines[:-1] if block.data.endswith(b"\n") else lines


def _rows(source: Source, separator: bytes) -> Iterator[_Row]:
    """Go through the records, the header first; without blank lines before it."""
    row = _Row(0)
    begun = False
    for number, raw in enumerate(_lines(source), start=1):
        line = raw.removesuffix(b"\r")
        begun = begun or bool(line.strip())
        if not begun:
            continue
        row = row if row.inside else _Row(number)
        row.read(line, number, separator)
        if not row.inside:
            yield row
    if row.inside:
        row.blame(UNCLOSED, row.opened)
        yield row


class _Row:
    """A record of a text table; a quote may keep it open beyond the end of a line."""

    def __init__(self, line: int) -> None:
        self.line = line  # on which it begins
        self.columns = 0
        self.inside = False  # a quoted text
        self.opened = (line, 0)  # line and column of the last quote that opened
        self.flaw = ""  # what is wrong with its quotes
        self.flaw_place = (0, 0)  # its line, and its column from 0

    def blame(self, flaw: str, place: tuple[int, int]) -> None:
        """Remember the first flaw."""
        if not self.flaw:
            self.flaw, self.flaw_place = flaw, place

    def read(self, line: bytes, number: int, separator: bytes) -> None:
        """Read a line."""
        if not self.inside and QUOTE not in line:
            self.columns = line.count(separator) + 1
            return
        at = 0
        while at >= 0:
            at = self._read_quoted(line, at, number, separator)
            if at < 0:
                return
            end = line.find(separator, at)
            if QUOTE in line[at : end if end >= 0 else len(line)]:
                self.blame(STRAY, (number, self.columns))
            self.columns += 1
            at = end + 1 if end >= 0 else -1

    def _read_quoted(self, line: bytes, at: int, number: int, separator: bytes) -> int:
        """Return where a quoted text ends, if there is one here; -1 if the line ends before."""
        if not self.inside and line.startswith(QUOTE, at):
            self.inside, self.opened, at = True, (number, self.columns), at + 1
        if not self.inside:
            return at
        closing = CLOSING.match(line, at)
        if closing is None:
            return -1
        self.inside = False
        if line[closing.end() : closing.end() + 1] not in (b"", separator):
            # a quote that closes lines later was not meant to: the one that opened is to blame
            self.blame(BEHIND if self.opened[0] == number else UNCLOSED, self.opened)
        return closing.end()
