"""TREC files: runs `query Q0 doc rank score tag` and judgements `query iteration doc grade`.

Any whitespace separates the columns, lines that begin with # are comments, .gz is welcome. Runs
are parsed in blocks, so that a file may be larger than memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from karat.data import Gold, RunStream
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.format import Format, Look, register_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.read.source import Block, Source

RUN = ("query", "q0", "doc", "rank", "score", "tag")
QRELS = ("query", "iteration", "doc", "grade")
SHOWN = {RUN: "query Q0 doc rank score tag", QRELS: "query iteration doc grade"}
NUMBERS = ("score", "grade")
COMMENTS = re.compile(rb"^[ \t]*#.*\n?", re.MULTILINE)
WHITESPACE = bytes.maketrans(b"\t\r\v\f", b"    ")


@register_format
class TrecRun(Format):
    """A run: `query Q0 doc rank score tag`."""

    name: ClassVar[str] = "trec"
    roles: ClassVar = frozenset({"run"})
    order: ClassVar[int] = 90

    def sniff(self, look: Look, role: str) -> bool:
        """Six columns; four look like judgements in the wrong place, which `run` explains."""
        del role
        lines = look.lines
        return not look.binary and bool(lines) and len(lines[0].split()) in (4, 6)

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run in blocks."""

        def batches() -> Iterator[pl.DataFrame]:
            empty = True
            for block in source.blocks():
                rows = _parse(block, RUN)
                empty &= not rows.height
                yield rows
            if empty:
                source.reading.check_rest(0)
                raise InputError("the file holds no line", where=source.where)

        return RunStream(name, batches)


@register_format
class Qrels(Format):
    """Judgements: `query iteration doc grade`, each document an item of its own."""

    name: ClassVar[str] = "qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 91

    def sniff(self, look: Look, role: str) -> bool:
        """Four columns and no document judged twice; six look like a run in the wrong place."""
        del role
        lines = look.lines
        return not look.binary and bool(lines) and len(lines[0].split()) in (4, 6)

    def gold(self, source: Source) -> Gold:
        """Read the judgements; those of subtopics are told by a document judged for several."""
        rows = _read_qrels(source)
        if rows["iteration"].n_unique() == 1:
            return Gold.build(rows.drop("iteration"))
        if rows.select("query", "doc").n_unique() < rows.height:
            if rows.select("query", "doc", "iteration").n_unique() == rows.height:
                return _by_subtopic(rows)
            return Gold.build(rows.drop("iteration"))
        distinct = rows["iteration"].unique(maintain_order=True)
        finding = Finding(
            "iteration-column",
            len(distinct),
            tuple(distinct.head(EXAMPLES)),
            "the second column of the judgements varies; it was taken for the iteration, "
            "which means nothing",
            "if it names subtopics, say --gold-format subtopic-qrels",
        )
        return Gold.build(rows.drop("iteration"), findings=[finding])


@register_format
class SubtopicQrels(Format):
    """Judgements of subtopics: `query subtopic doc grade`, each subtopic one group."""

    name: ClassVar[str] = "subtopic-qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 92

    def sniff(self, look: Look, role: str) -> bool:
        """Never by itself: `qrels` looks at the whole file and tells."""
        del look, role
        return False

    def gold(self, source: Source) -> Gold:
        """Read the judgements with the second column as the group."""
        return _by_subtopic(_read_qrels(source))


def _read_qrels(source: Source) -> pl.DataFrame:
    rows = pl.concat([_parse(block, QRELS) for block in source.blocks()])
    if not rows.height:
        source.reading.check_rest(0)
        raise InputError("the file holds no line", where=source.where)
    return rows


def _by_subtopic(rows: pl.DataFrame) -> Gold:
    """Make each subtopic an item; a document relevant to none is judged not relevant."""
    relevant = rows.filter(pl.col("grade") > 0).rename({"iteration": "group"})
    rejected = (
        rows.filter(pl.col("grade") <= 0)
        .join(relevant, on=["query", "doc"], how="anti")
        .unique(["query", "doc"], maintain_order=True)
        .select("query", pl.lit(None, pl.String).alias("group"), "doc", "grade")
    )
    queries = rows.select("query").unique(maintain_order=True)
    return Gold.build(pl.concat([relevant, rejected]), queries=queries)


def _parse(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Parse lines of whitespace-separated columns; only where that fails, look line by line."""
    data = block.data
    if b"\0" in data:
        raise InputError(
            "the line holds a NUL byte, so this is no text file",
            where=block.where(data[: data.index(b"\0")].count(b"\n")),
            fix=f"give a text file of lines `{SHOWN[names]}`",
        )
    if b"#" in data:
        data = COMMENTS.sub(b"", data)
    separator = b"\t" if b"\t" in data[: data.find(b"\n")] else b" "
    rows = _read(data, names, separator)
    if rows is None:
        rows = _read(_squeeze(data), names, b" ")
    return _line_by_line(block, names) if rows is None else rows


def _read(data: bytes, names: tuple[str, ...], separator: bytes) -> pl.DataFrame | None:
    """Parse with a single separator; None when a line does not have exactly these columns."""
    try:
        rows = (
            pl.scan_csv(
                data,
                has_header=False,
                separator=separator.decode(),
                quote_char=None,
                schema={name: _kind(name) for name in names},
            )
            .select(_wanted(names))
            .collect()
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema={name: _kind(name) for name in _wanted(names)})
    except pl.exceptions.PolarsError:  # a line with more columns, or not a number
        return None
    missing = any(column.null_count() for column in rows)
    return None if missing or not _is_regular(data, separator, rows.height, len(names)) else rows


def _is_regular(data: bytes, separator: bytes, lines: int, columns: int) -> bool:
    """Tell whether no column is missing, given that no line has too many.

    Looking at the bytes is cheaper than parsing the columns that nobody reads.
    """
    if np.count_nonzero(np.frombuffer(data, np.uint8) == separator[0]) != lines * (columns - 1):
        return False
    pairs = (np.frombuffer(data, "<u2", (len(data) - at) // 2, at) for at in (0, 1))
    return not any((pair == separator[0] * 257).any() for pair in pairs)  # none stands twice


def _kind(name: str) -> pl.DataType:
    return pl.Float64() if name in NUMBERS else pl.String()


def _wanted(names: tuple[str, ...]) -> list[str]:
    """Return the columns to keep: of a run, nobody reads Q0, the rank and the tag."""
    return ["query", "doc", "score"] if names is RUN else list(names)


def _squeeze(data: bytes) -> bytes:
    """Make every stretch of whitespace one space and drop blank lines."""
    data = b"\n" + data.translate(WHITESPACE) + b"\n"
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data[1:]


def _line_by_line(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Find the lines that are wrong and say what is; a block without one is parsed here."""
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    for number, raw in enumerate(block.data.split(b"\n")):
        try:
            values = _values(raw, names, block, number)
        except InputError as error:
            block.source.reading.meet(error)
            continue
        for name, value in zip(names, values, strict=False):  # a blank line has none
            columns[name].append(value)
    schema = {name: _kind(name) for name in names}
    return pl.DataFrame(columns, schema=schema).select(_wanted(names))


def _values(raw: bytes, names: tuple[str, ...], block: Block, number: int) -> list[str | float]:
    """Return the columns of a line; a blank one and a comment have none."""
    try:
        fields: list[str] = re.split(r"[ \t\r\v\f]+", raw.decode().strip(" \t\r\v\f"))
    except UnicodeDecodeError as error:
        raise InputError(
            f"the bytes {raw[error.start : error.start + 4]!r} are not UTF-8",
            where=block.where(number),
            fix="save the file as UTF-8",
        ) from None
    if fields == [""] or fields[0].startswith("#"):
        return []
    if len(fields) != len(names):
        raise InputError(
            f"found {len(fields)} columns where {len(names)} belong: {_short(raw)}",
            where=block.where(number),
            fix=_column_advice(len(fields), names),
        )
    return [
        _number(text, name, block, number) if name in NUMBERS else text
        for name, text in zip(names, fields, strict=True)
    ]


def _number(text: str, name: str, block: Block, line: int) -> float:
    try:
        return float(text if "_" not in text else "")  # Python alone reads 1_000 as a number
    except ValueError:
        raise InputError(
            f"the {name} {text[:40]!r} is not a number",
            where=block.where(line),
            fix=f"give every line a number as its {name}",
        ) from None


def _column_advice(found: int, names: tuple[str, ...]) -> str:
    other = QRELS if names is RUN else RUN
    if found == len(other):
        role = "judgements" if other is QRELS else "a run"
        return f"this line looks like {role}: are run and gold swapped?"
    return f"each line is `{SHOWN[names]}`; ids hold no spaces"


def _short(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


__all__ = ["Qrels", "SubtopicQrels", "TrecRun"]
