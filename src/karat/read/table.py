"""Tables with a row a document: CSV, TSV, Parquet, and any data frame that speaks Arrow.

Columns are found by the names people give them; ids stay text, so that 007 does not become 7.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from karat.data import Gold, Run, RunStream, blank_ids
from karat.errors import InputError, nearest
from karat.read.format import Format, Look, register_format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from karat.data import Order
    from karat.read.source import Source

# what people call the columns; the first is karat's own name
COLUMNS = {
    "query": "query query_id query-id queryid qid q_id topic topic_id",
    "doc": "doc doc_id doc-id docid docno document document_id corpus-id corpus_id passage_id pid "
    "chunk_id",
    "score": "score sim similarity",
    "rank": "rank position",
    "grade": "grade rel relevance label judgment judgement score",
    "group": "group item subtopic",
}
IDS = ("query", "doc")
TEXTS = (*IDS, "group")
ROWS = 1 << 20  # rows of a table handled at once


def run_rows(table: pl.DataFrame, where: str) -> tuple[pl.DataFrame, Order]:
    """Return the rows of a run, and what their order means.

    A score decides the order; without one the rank column does, and without that the position.
    """
    names = _names(table.columns, ("query", "doc"), ("score", "rank"), where)
    rows = _typed(table, names, where)
    if "score" in names:
        return rows.select("query", "doc", "score"), "scored"
    if "rank" in names:
        # rank order is score order: the rank, negated, stands in for the score
        return rows.select("query", "doc", score=-pl.col("rank")), "mapped"
    return rows, "listed"


def gold_of(table: pl.DataFrame, where: str) -> Gold:
    """Return the gold of a table; without a grade column every document is relevant."""
    names = _names(table.columns, ("query", "doc"), ("grade", "group"), where)
    rows = _typed(table, names, where)
    if "grade" not in names:
        rows = rows.with_columns(grade=pl.lit(1.0))
    queries = rows.select("query").unique(maintain_order=True)
    return Gold.build(rows, queries=queries)


class Table(Format):
    """What CSV, TSV and Parquet share: they all become frames."""

    roles: ClassVar = frozenset({"run", "gold"})

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
            head = _collect(self.scan(path).head(100), where)
        if not head.height:
            raise InputError("the table has no row", where=where)
        order = run_rows(head.head(0), where)[1]

        def batches() -> Iterator[pl.DataFrame]:
            with source.plain_file() as path:
                try:
                    for batch in self.scan(path).collect_batches(
                        chunk_size=ROWS, maintain_order=True
                    ):
                        yield run_rows(batch, where)[0]
                except pl.exceptions.PolarsError as error:
                    raise _broken(error, where) from None

        return RunStream(name, batches, order)

    def gold(self, source: Source) -> Gold:
        """Read the judgements whole."""
        where = source.where
        self.look_ahead(source)
        with source.plain_file() as path:
            table = _collect(self.scan(path), where)
        if not table.height:
            raise InputError("the table has no row", where=where)
        return gold_of(table, where)


class Delimited(Table):
    """Text tables with a header line; every column is read as text first."""

    separator: ClassVar[str]

    def look_ahead(self, source: Source) -> None:
        """Refuse a file that begins with an endless line, as what is no table does."""
        for _ in islice(source.blocks(), 2):
            pass

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by a header whose columns have known names."""
        del role
        lines = look.head.splitlines()
        if look.binary or not lines:
            return False
        header = [
            name.strip().strip('"')
            for name in lines[0].decode("utf-8", "replace").split(self.separator)
        ]
        named = look.suffix == f".{self.name}"  # then say which column is missing
        return len(header) > 1 and (named or {"query", "doc"} <= _known(header).keys())

    def scan(self, path: Path) -> pl.LazyFrame:
        """Open the table with all columns as text."""
        return pl.scan_csv(path, separator=self.separator, infer_schema=False)


@register_format
class Csv(Delimited):
    """Comma-separated values with a header."""

    name: ClassVar[str] = "csv"
    separator: ClassVar[str] = ","
    order: ClassVar[int] = 30


@register_format
class Tsv(Delimited):
    """Tab-separated values with a header, BEIR's judgements among them."""

    name: ClassVar[str] = "tsv"
    separator: ClassVar[str] = "\t"
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


def frame(data: object) -> pl.DataFrame | None:
    """Return any table as a polars frame: polars, pandas, Arrow, whatever exports Arrow."""
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # pandas, with or without pyarrow
        return pl.DataFrame(
            {str(name): _values(data[name]) for name in data.columns},  # type: ignore[index]
            strict=False,
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data)
    return None


def _values(column: Any) -> Any:  # noqa: ANN401
    """Return a column of pandas; what is missing is None, but among numbers it is NaN."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    return column.astype(object).where(column.notna(), None).tolist()


def table_run(table: pl.DataFrame, name: str) -> Run:
    """Return the run of a frame."""
    rows, order = run_rows(table, name)
    return Run(name, rows, order)


def _known(columns: list[str]) -> dict[str, str]:
    """Map karat's names to the columns of a table."""
    folded = {name.strip().casefold(): name for name in reversed(columns)}
    found = {}
    for name, spellings in COLUMNS.items():
        present = [folded[word] for word in spellings.split() if word in folded]
        if present:
            found[name] = present[0]
    return found


def _names(
    columns: list[str], required: tuple[str, ...], optional: tuple[str, ...], where: str
) -> dict[str, str]:
    known = _known(columns)
    for name in required:
        if name not in known:
            spellings = COLUMNS[name].split()
            close = next((nearest(c, spellings) for c in columns if nearest(c, spellings)), "")
            raise InputError(
                f"no column for the {name}; found {', '.join(map(repr, columns[:12]))}",
                where=where,
                fix=f"name it {spellings[0]!r} (also understood: {', '.join(spellings[1:5])})"
                + (f"; {close}" if close else ""),
            )
    return {name: known[name] for name in (*required, *optional) if name in known}


def _typed(table: pl.DataFrame, names: dict[str, str], where: str) -> pl.DataFrame:
    """Return the columns under karat's names, ids as text and the rest as numbers."""
    picked = table.select(pl.col(column).alias(name) for name, column in names.items())
    if picked["query"].null_count():  # a blank line of a text file is a row of nothing
        picked = picked.filter(~pl.all_horizontal(pl.all().is_null()))
    for name, kind in picked.schema.items():
        number = kind.is_float() or kind == pl.Boolean
        if kind.is_nested() or kind == pl.Object or (number and name in TEXTS):
            raise InputError(
                f"the column {names[name]!r} holds {kind}, which is no {name}",
                where=where,
                fix="ids are texts or whole numbers; a row names one document",
            )
    rows = picked.with_columns(
        pl.col(name).cast(pl.String if name in TEXTS else pl.Float64, strict=False)
        for name in names
    )
    _check(rows, picked, names, where)
    return rows


def _check(rows: pl.DataFrame, picked: pl.DataFrame, names: dict[str, str], where: str) -> None:
    """Refuse missing and blank ids and numbers that are none, with the row."""
    for column in rows.iter_columns():
        decides = column.name != "rank" or "score" not in names  # otherwise nobody reads the rank
        bad = column.is_null() if column.null_count() and decides else None
        if column.name in IDS and blank_ids(column).any():
            bad = blank_ids(column) | column.is_null()
        if bad is None or column.name == "group":
            continue
        at = bad.arg_max() or 0
        shown = names[column.name]
        value = picked[column.name][at]
        what = (
            f"the {column.name} is missing"
            if value is None or not str(value).strip()
            else f"the {column.name} {str(value)[:40]!r} is not a {_kind(column.name)}"
        )
        raise InputError(
            f"{what} (column {shown!r})",
            where=f"{where}, row {at + 1}",
            fix=f"give every row a {column.name}",
        )


def _kind(name: str) -> str:
    return "text" if name in TEXTS else "number"


def _collect(table: pl.LazyFrame, where: str) -> pl.DataFrame:
    try:
        return table.collect()
    except pl.exceptions.PolarsError as error:
        raise _broken(error, where) from None


def _broken(error: Exception, where: str) -> InputError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return InputError(f"the table cannot be read: {first}", where=where, fix="write it again")
