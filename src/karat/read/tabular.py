"""Files of tables: CSV, TSV and Parquet, with a row a document or a row a query."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from karat.core.data import Gold, RunStream
from karat.errors import InputError
from karat.read import by_query
from karat.read import table as tables
from karat.read.beir import with_questions
from karat.read.columns import carried, is_by_document, named_by, note_columns
from karat.read.format import Format, Look, Samples, register_format
from karat.read.shapes import shape_of
from karat.read.source import HEAD
from karat.read.table import run_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from karat.read.source import Source


class Table(Format):
    """What CSV, TSV and Parquet share: they all become frames."""

    roles: ClassVar = frozenset({"run", "gold", "samples"})
    cells: ClassVar[bool] = False  # whether every value is a text

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the table without reading it."""
        raise NotImplementedError

    def look_ahead(self, source: Source) -> None:
        """Refuse what polars would rather die of."""

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run batch by batch."""
        where = source.where
        self.look_ahead(source)
        with source.plain_file() as path:
            head = self._collect(self.scan(path).head(100), source)
        if not head.height:
            raise InputError("the table has no row", where=where)
        if by_query.is_by_query(head.columns, "run"):
            table = self.whole(source)
            return by_query.run(table, name, where, source.reading, cells=self.cells)
        order = run_rows(head.head(0), where)[1]
        names = named_by(head.columns, source.reading)

        def batches() -> Iterator[pl.DataFrame]:
            source.reading.begin()
            note_columns(head.columns, "run", source.reading)
            with source.plain_file() as path:
                try:
                    for batch in self.scan(path).collect_batches(
                        chunk_size=tables.ROWS, maintain_order=True
                    ):
                        yield run_rows(batch, where, source.reading, cells=self.cells)[0]
                except pl.exceptions.PolarsError as error:
                    raise self.broken(error, source) from None

        carries = carried(head.columns)
        return RunStream(name, batches, order, carries=carries, named_by=names)

    def gold(self, source: Source) -> Gold:
        """Read the judgements whole."""
        table = self.whole(source)
        found = by_query.frame_gold(table, source.where, source.reading, cells=self.cells)
        return with_questions(found, source.path)

    def samples(self, source: Source, name: str) -> Samples:
        """Read rows that hold both run and gold."""
        table = self.whole(source)
        return by_query.samples(table, name, source.where, source.reading, cells=self.cells)

    def whole(self, source: Source) -> pl.DataFrame:
        """Read the table whole."""
        self.look_ahead(source)
        with source.plain_file() as path:
            table = self._collect(self.scan(path), source)
        if not table.height:
            raise InputError("the table has no row", where=source.where)
        return table

    def _collect(self, table: pl.LazyFrame, source: Source) -> pl.DataFrame:
        try:
            return table.collect()
        except pl.exceptions.PolarsError as error:
            raise self.broken(error, source) from None

    def broken(self, error: Exception, source: Source) -> InputError:
        """Return the error for a table that polars cannot read."""
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        what = f"the table cannot be read: {first}"
        return InputError(what, where=source.where, fix="write it again")


class Delimited(Table):
    """Text tables with a header line; every column is read as text first."""

    separators: ClassVar[str]  # of which one serves, as the header tells
    cells: ClassVar[bool] = True

    def look_ahead(self, source: Source) -> None:
        """Refuse a file that begins with an endless line, as what is no table does."""
        for _ in islice(source.blocks(), 2):
            pass

    def broken(self, error: Exception, source: Source) -> InputError:
        """Say where the text is none, if that is the reason."""
        return source.not_utf8() or super().broken(error, source)

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by a header whose columns have known names."""
        lines = look.head.splitlines()
        if look.binary or not lines:
            return False
        header = [
            name.strip().strip('"')
            for name in lines[0].decode("utf-8", "replace").split(self.separator(lines[0]))
        ]
        named = look.suffix == f".{self.name}"  # then say which column is missing
        known = is_by_document(header) or shape_of(header, role) is not None
        return len(header) > 1 and (named or known)

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the table with all columns as text."""
        with path.open("rb") as file:
            separator = self.separator(file.readline(HEAD))
        return pl.scan_csv(path, separator=separator, infer_schema=False)

    def separator(self, header: bytes) -> str:
        """Return what separates the columns."""
        return max(self.separators, key=lambda mark: header.count(mark.encode()))


@register_format
class Csv(Delimited):
    """Comma-separated values with a header; semicolons, as some spreadsheets write, do as well."""

    name: ClassVar[str] = "csv"
    separators: ClassVar[str] = ",;"
    order: ClassVar[int] = 30


@register_format
class Tsv(Delimited):
    """Tab-separated values with a header, BEIR's judgements among them."""

    name: ClassVar[str] = "tsv"
    separators: ClassVar[str] = "\t"
    order: ClassVar[int] = 31


@register_format
class Parquet(Table):
    """Apache Parquet."""

    name: ClassVar[str] = "parquet"
    order: ClassVar[int] = 10

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the magic bytes."""
        del role
        return look.head.startswith(b"PAR1")

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the file."""
        return pl.scan_parquet(path)
