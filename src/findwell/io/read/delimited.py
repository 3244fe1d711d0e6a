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
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from findwell.core.errors import InputError
from findwell.core.findings import shorten

if TYPE_CHECKING:
    from findwell.io.read.source import Source

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


class _Row(NamedTuple):
    """A record of a text table, which may span lines."""

    line: int  # on which it begins
    columns: int
    flaw: str = ""  # what is wrong with its quotes
    at: int = 0  # the column of that, from 0
    flaw_line: int = 0


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
    names = _names(source, separator, header)
    stray: _Row | None = None
    for row in rows if not header.flaw else [header]:
        if row.flaw == STRAY:  # most readers take it; it is to blame only if nothing else is
            stray = stray or row
        elif row.flaw:
            return _quote_error(source, row, names)
        if row.columns > header.columns:
            return InputError(
                f"found {row.columns} columns, and the header names {header.columns}",
                where=f"{source.where}, line {row.line}",
                fix=f"put a text that holds {separator!r} in quotes, or drop what is too much",
            )
    return None if stray is None else _quote_error(source, stray, names)


UNCLOSED = "the quote that opens here is never closed"
BEHIND = "something follows the closing quote"
STRAY = "a quote stands inside a text that is not in quotes"


def _quote_error(source: Source, row: _Row, names: list[str]) -> InputError:
    column = f" (column {names[row.at]!r})" if row.at < len(names) else ""
    fix = 'close the quote; one that is part of the text is doubled: "5"" pipe"'
    return InputError(f"{row.flaw}{column}", where=f"{source.where}, line {row.flaw_line}", fix=fix)


def _names(source: Source, separator: str, header: _Row) -> list[str]:
    text = next(islice(_lines(source), header.line - 1, None), b"")
    cells = text.decode("utf-8", "replace").split(separator)
    return [shorten(cell.strip().strip('"')) for cell in cells]


def _lines(source: Source) -> Iterator[bytes]:
    for block in source.blocks():
        lines = block.data.split(b"\n")
        yield from lines[:-1] if block.data.endswith(b"\n") else lines


def _rows(source: Source, separator: bytes) -> Iterator[_Row]:
    """Go through the records, the header first; blank lines before it are none."""
    open_row: _OpenRow | None = None
    begun = False
    for number, raw in enumerate(_lines(source), start=1):
        line = raw.removesuffix(b"\r")
        begun = begun or bool(line.strip())
        if not begun:
            continue
        if open_row is None and QUOTE not in line:
            yield _Row(number, line.count(separator) + 1)
            continue
        row = open_row or _OpenRow(number)
        row.read(line, number, separator)
        open_row = row if row.inside else None
        if open_row is None:
            yield row.found()
    if open_row is not None:
        open_row.blame(UNCLOSED)
        yield open_row.found()


class _OpenRow:
    """A record that is being read; a quote may keep it open beyond the end of a line."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.columns = 0
        self.inside = False  # a quoted text
        self._opened = (line, 0)  # line and column of the last quote that opened
        self._flaw = ("", 0, 0)

    def found(self) -> _Row:
        """Return what was read."""
        return _Row(self.line, self.columns, *self._flaw)

    def blame(self, flaw: str, line: int = 0, column: int = 0) -> None:
        """Remember the first flaw; it is where the last quote opened unless that is known."""
        where = (column, line) if line else self._opened[::-1]
        self._flaw = self._flaw if self._flaw[0] else (flaw, *where)

    def read(self, line: bytes, number: int, separator: bytes) -> None:
        """Read a line."""
        at = 0
        while at >= 0:
            at = self._read_quoted(line, at, number, separator)
            if at < 0:
                return
            end = line.find(separator, at)
            if QUOTE in line[at : end if end >= 0 else len(line)]:
                self.blame(STRAY, number, self.columns)
            self.columns += 1
            at = end + 1 if end >= 0 else -1

    def _read_quoted(self, line: bytes, at: int, number: int, separator: bytes) -> int:
        """Return where a quoted text ends, if there is one here; -1 if the line ends before."""
        if not self.inside and line.startswith(QUOTE, at):
            self.inside, self._opened, at = True, (number, self.columns), at + 1
        if not self.inside:
            return at
        closing = CLOSING.match(line, at)
        if closing is None:
            return -1
        end = closing.end() - 1
        self.inside = False
        if line[end + 1 : end + 2] not in (b"", separator):
            # a quote that closes lines later was not meant to: the one that opened is to blame
            self.blame(BEHIND if self._opened[0] == number else UNCLOSED)
        return end + 1
