"""Tables: data frames, CSV, TSV and Parquet, with one row per document or one row per query."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from findwell.core.data import Gold, Run, RunStream
from findwell.core.errors import InputError, needs_package
from findwell.core.frames import pl
from findwell.core.spreadsheets import is_own, without_apostrophes
from findwell.io.read.by_document import (
    carried,
    gold_of,
    is_by_document,
    named_by,
    note_columns,
    run_rows,
)
from findwell.io.read.by_query import is_by_query, read_frame
from findwell.io.read.delimited import TablePlace, row_lines, why_broken
from findwell.io.read.format import (
    HEAD,
    Format,
    Look,
    Samples,
    first_line,
    register_format,
    unreadable,
)
from findwell.io.read.mapping import rename
from findwell.io.read.objects import type_name
from findwell.io.read.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from findwell.io.read.format import ReadContext, Source

ROWS = 1 << 20  # rows of a table handled at once
# what polars raises about a file; of a broken Parquet page it panics
BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
HEAD_ROWS = 100  # rows by which it is decided what the table is


def frame(data: object) -> pl.DataFrame | None:
    """Return any table as a polars frame: polars, pandas, Arrow, whatever exports Arrow."""
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # pandas, with or without pyarrow
        return _from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        if hasattr(data, "__len__") and not hasattr(data, "columns"):
            what = f"{type_name(data)} is a column, not a list or a table"
            fix = "give the list of its values (.to_list()), or a dict {document: score}"
            raise InputError(what, fix=fix)
        return pl.DataFrame(data)
    return None


def _from_pandas(data: Any) -> pl.DataFrame:  # noqa: ANN401
    """Return a frame of pandas; columns of the same name are renamed as polars does."""
    seen: Counter[str] = Counter()
    names = []
    for name in map(str, data.columns):
        names.append(f"{name}_duplicated_{seen[name] - 1}" if seen[name] else name)
        seen[name] += 1
    values = [_values(data.iloc[:, at]) for at in range(len(names))]
    index = {name: _values(data.index.get_level_values(name).to_series()) for name in _index(data)}
    return pl.DataFrame(index | dict(zip(names, values, strict=True)), strict=False)


def _index(data: Any) -> list[str]:  # noqa: ANN401
    """Return the names of the levels of an index of pandas that are not columns as well."""
    names = getattr(getattr(data, "index", None), "names", ())
    return [name for name in names if isinstance(name, str) and name not in data.columns]


def pandas_columns(data: Any) -> list[str]:  # noqa: ANN401
    """Return the names of the columns of a frame of pandas, those of its index included."""
    return [*_index(data), *map(str, data.columns)]


def pandas_rows(data: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Return the rows of a frame of pandas; what is missing is None, arrays are lists."""
    for row in data.reset_index(level=_index(data)).to_dict("records"):
        yield {str(name): _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list | tuple):
        return [_cell(each) for each in value]
    if isinstance(value, dict):
        return {name: _cell(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return _cell(value.tolist())
    return None if value is None or value != value else value  # noqa: PLR0124  NaN, NaT


def _values(column: Any) -> Any:  # noqa: ANN401
    """Return a column of pandas; what is missing is None, but among numbers it is NaN."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    if column.dtype == "int64":  # of NumPy, where nothing is missing
        return column.to_numpy()
    if column.dtype == object and len(column) and isinstance(column.iloc[0], str):
        with suppress(TypeError, ValueError):  # something else is among the texts
            return pl.Series(column.tolist(), dtype=pl.String)
    known = column.notna()
    if getattr(column.dtype, "storage", "") == "pyarrow" and known.any():
        return pl.from_pandas(column)  # strings that need not become objects
    return column.astype(object).where(known, None).tolist()


def frame_run(frame: pl.DataFrame, name: str, place: TablePlace, reading: ReadContext) -> RunStream:
    """Return the run of a frame of either kind."""
    if is_by_query(frame.columns, "run", reading.fields):
        return read_frame(frame, "run", place, reading).run(name)
    frame = rename(frame, reading.fields, place.where)
    rows, order = run_rows(frame, place, reading)
    note_columns(frame.columns, "run", reading)
    return replace(
        Run(name, rows, order).stream(),
        carries=carried(frame.columns),
        named_by=named_by(frame.columns, reading),
    )


def frame_gold(
    frame: pl.DataFrame, place: TablePlace, reading: ReadContext, *, cells: bool = False
) -> Gold:
    """Return the gold of a frame of either kind."""
    if is_by_query(frame.columns, "gold", reading.fields):
        return read_frame(frame, "gold", place, reading, cells=cells).gold()
    frame = rename(frame, reading.fields, place.where)
    return gold_of(frame, place, reading, cells=cells)


class Table(Format):
    """What CSV, TSV and Parquet share: they all become frames."""

    roles: ClassVar = frozenset({"run", "gold", "samples"})
    cells: ClassVar[bool] = False  # whether every value is a text

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the table without reading it."""
        raise NotImplementedError

    def look_ahead(self, source: Source) -> None:
        """Refuse what polars could not survive."""

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run batch by batch."""
        place = self.place(source)
        head = self.whole(source, HEAD_ROWS)
        mapped = source.reading.fields
        if is_by_query(head.columns, "run", mapped):
            table = self.whole(source)
            return read_frame(table, "run", place, source.reading, cells=self.cells).run(name)
        head = rename(head, mapped, place.where)
        order = run_rows(head.head(0), place)[1]
        names = named_by(head.columns, source.reading)

        def batches() -> Iterator[pl.DataFrame]:
            source.reading.begin()
            note_columns(head.columns, "run", source.reading)
            before = 0
            with source.plain_file() as path:
                try:
                    for batch in self.scan(path).collect_batches(
                        chunk_size=ROWS, maintain_order=True
                    ):
                        here = replace(place, before=before)
                        batch = rename(batch, mapped, place.where)  # noqa: PLW2901
                        yield run_rows(batch, here, source.reading, cells=self.cells)[0]
                        before += batch.height
                except BROKEN as error:
                    raise self.broken(error, source) from None

        return RunStream(name, batches, order, carries=carried(head.columns), named_by=names)

    def gold(self, source: Source) -> Gold:
        """Read the judgements whole."""
        found = frame_gold(self.whole(source), self.place(source), source.reading, cells=self.cells)
        from findwell.io.read.beir import with_questions  # noqa: PLC0415 - it reads tables, too

        return with_questions(found, source.path)

    def samples(self, source: Source, name: str) -> Samples:
        """Read rows that hold both run and gold."""
        table = self.whole(source)
        place = self.place(source)
        return read_frame(table, "samples", place, source.reading, cells=self.cells).samples(name)

    def place(self, source: Source) -> TablePlace:
        """Return what messages call the table and its rows."""
        return TablePlace(source.where)

    def whole(self, source: Source, rows: int | None = None) -> pl.DataFrame:
        """Read the table whole, or only its first `rows` rows."""
        self.look_ahead(source)
        with source.plain_file() as path:
            try:
                scanned = self.scan(path)
                table = (scanned if rows is None else scanned.head(rows)).collect()
            except BROKEN as error:
                raise self.broken(error, source) from None
        if not table.height:
            raise self.empty(source)
        return table

    def empty(self, source: Source) -> InputError:
        """Return the error for a table without rows."""
        fix = "check what wrote the file: it holds the names of columns and nothing below them"
        return InputError("the table has no rows", where=source.where, fix=fix)

    def broken(self, error: BaseException, source: Source) -> InputError:
        """Return the error for a table that polars cannot read."""
        return unreadable("table", error, source.where, "write it again")


class Delimited(Table):
    """Text tables with a header line; every column is read as text first."""

    separators: ClassVar[str]  # the one that the header has most of is used
    cells: ClassVar[bool] = True

    def look_ahead(self, source: Source) -> None:
        """Refuse a file that begins with an endless line, as files that are not tables do."""
        for _ in islice(source.blocks(), 2):
            pass

    def broken(self, error: BaseException, source: Source) -> InputError:
        """Report the line that cannot be read, and why, if that can be told."""
        if isinstance(error, pl.exceptions.NoDataError):
            what, fix = "the file contains only blank lines", "check what wrote the file"
            return InputError(what, where=source.where, fix=fix)
        found = source.not_utf8() or why_broken(source, self.separator_of(source))
        return found or super().broken(error, source)

    def empty(self, source: Source) -> InputError:
        """Report why a table has only a header, if that can be told."""
        if b"\r" in source.head().rstrip() and b"\n" not in source.head().rstrip():
            what, fix = "its lines end in carriage returns alone", "save it with other line ends"
            return InputError(f"the table has no rows: {what}", where=source.where, fix=fix)
        return why_broken(source, self.separator_of(source)) or super().empty(source)

    def place(self, source: Source) -> TablePlace:
        """Return what messages call the table and its lines."""
        return TablePlace(source.where, row_lines(source, self.separator_of(source)))

    def separator_of(self, source: Source) -> str:
        """Return what separates the columns of a file."""
        return self.separator(source.head().partition(b"\n")[0])

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by a header whose columns have known names."""
        lines = look.head.splitlines()
        if look.binary or not lines:
            return False
        header = [
            name.strip().strip('"')
            for name in lines[0].decode("utf-8", "replace").split(self.separator(lines[0]))
        ]
        if len(header) < 2:
            return False
        named = look.suffix == f".{self.name}"  # then say which column is missing
        known = is_by_document(header) or not look.mapped.isdisjoint(header)
        return named or known or shape_of(header, role) is not None

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the table with all columns as text."""
        with path.open("rb") as file:
            header = file.readline(HEAD)
        separator = self.separator(header)
        table = pl.scan_csv(path, separator=separator, infer_schema=False)
        names = header.decode("utf-8", "replace").strip().split(separator)
        return without_apostrophes(table) if is_own(names) else table

    def separator(self, header: bytes) -> str:
        """Return what separates the columns."""
        return max(self.separators, key=lambda mark: header.count(mark.encode()))


@register_format
class Csv(Delimited):
    """Comma-separated values with a header; semicolons, as in some spreadsheets, are accepted."""

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


@register_format
class Excel(Table):
    """A workbook of Excel with one sheet that holds something; every cell is read as text."""

    name: ClassVar[str] = "xlsx"
    order: ClassVar[int] = 11
    cells: ClassVar[bool] = True

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the beginning of a zip archive, and the name of the file or of its first part."""
        del role
        return is_workbook(look.head, look.suffix)

    def scan(self, path: Path) -> pl.LazyFrame:
        """Read the sheet; its first row names the columns."""
        with needs_package("reading Excel files", "excel", instead="save the sheet as CSV"):
            import fastexcel  # noqa: PLC0415
        try:
            _refuse_error_cells(path)
            book = fastexcel.read_excel(path)
            sheets = {
                name: book.load_sheet(name, header_row=None, dtypes="string").to_polars()
                for name in book.sheet_names
            }
        except (fastexcel.FastExcelError, zipfile.BadZipFile, KeyError) as error:
            raise pl.exceptions.ComputeError(first_line(error)) from None
        filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
        if len(filled) > 1:
            what = f"the workbook has {len(filled)} sheets: {', '.join(filled)}"
            fix = "keep one of them, or save the sheet as CSV"
            raise InputError(what, where=path.name, fix=fix)
        sheet = next(iter(filled.values()), pl.DataFrame())
        header, seen = sheet.row(0) if sheet.height else (), Counter[str]()
        names = []
        for nth, cell in enumerate(header, start=1):
            name = cell or f"column {nth}"
            names.append(f"{name}_duplicated_{seen[name] - 1}" if seen[name] else name)
            seen[name] += 1
        return sheet.slice(1).rename(dict(zip(sheet.columns, names, strict=True))).lazy()


ERROR_CELL = re.compile(rb'<c\b[^>]*\br="([A-Z]+[0-9]+)"[^>]*\bt="e"')


def _refuse_error_cells(path: Path) -> None:
    """Refuse cells such as #N/A, which would be read as if they were empty."""
    with zipfile.ZipFile(path) as book:
        for part in book.namelist():
            if part.startswith("xl/worksheets/") and (cell := ERROR_CELL.search(book.read(part))):
                what = f"the cell {cell[1].decode()} holds an error such as #N/A, not a value"
                fix = "correct its formula, or empty the cell"
                raise InputError(what, where=path.name, fix=fix)


def is_workbook(head: bytes, suffix: str) -> bool:
    """Tell whether a file is a workbook of Excel."""
    named = suffix in (".xlsx", ".xlsm") or b"[Content_Types].xml" in head[:64] or b"xl/" in head
    return head.startswith(b"PK\x03\x04") and named


def read_table(source: Source) -> tuple[pl.DataFrame, TablePlace]:
    """Read a file of a table whole: Parquet, Excel, TSV or CSV, by its first bytes."""
    head = source.head()
    kind: Table = Parquet()
    if is_workbook(head, source.suffix):
        kind = Excel()
    elif not head.startswith(b"PAR1"):
        kind = Tsv() if b"\t" in head.partition(b"\n")[0] else Csv()
    return kind.whole(source), kind.place(source)
