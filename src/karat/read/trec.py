"""TREC files: runs `query Q0 doc rank score tag` and judgements `query iteration doc grade`.

Any whitespace separates the columns, lines that begin with # are comments, .gz is welcome. Runs
are parsed in blocks, so that a file may be larger than memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from karat.data import EXAMPLES, Finding, Gold, RunStream
from karat.errors import InputError
from karat.read.format import Format, Look, register_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.read.source import Block, Source

RUN = ("query", "q0", "doc", "rank", "score", "tag")
QRELS = ("query", "iteration", "doc", "grade")
SHOWN = {RUN: "query Q0 doc rank score tag", QRELS: "query iteration doc grade"}
NUMBERS = ("score", "grade")
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
                rows = _parse(block, RUN, source)
                empty &= not rows.height
                yield rows
            if empty:
                raise InputError("the file holds no line", where=str(source.path))

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
    rows = pl.concat([_parse(block, QRELS, source) for block in source.blocks()])
    if not rows.height:
        raise InputError("the file holds no line", where=str(source.path))
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


def _parse(block: Block, names: tuple[str, ...], source: Source) -> pl.DataFrame:
    """Parse lines of whitespace-separated columns; only where that fails, look line by line."""
    data = block.data
    if b"\0" in data:
        line = block.line + data[: data.index(b"\0")].count(b"\n")
        raise InputError(
            "the line holds a NUL byte, so this is no text file",
            where=f"{source.path}, line {line}",
            fix=f"give a text file of lines `{SHOWN[names]}`",
        )
    separator = "\t" if b"\t" in data[: data.find(b"\n")] else " "
    rows = _read(data, names, separator)
    if rows is None:
        rows = _read(_squeeze(data), names, " ")
    return _line_by_line(block, names, source) if rows is None else rows


def _read(data: bytes, names: tuple[str, ...], separator: str) -> pl.DataFrame | None:
    """Parse with a single separator; None when a line does not have exactly these columns."""
    schema = {name: pl.Float64() if name in NUMBERS else pl.String() for name in names}
    last = names[-1]
    try:
        rows = (
            pl.scan_csv(
                data,
                has_header=False,
                separator=separator,
                quote_char=None,
                comment_prefix="#" if b"#" in data else None,
                schema=schema,
            )
            .select(*_wanted(names), pl.col(last).is_null().alias("short"))
            .collect()
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema=schema).select(_wanted(names))
    except pl.exceptions.PolarsError:
        return None
    broken = rows["short"].any() or any(
        rows[name].null_count() for name in rows.columns if name != "rank"
    )
    return None if broken else rows.drop("short")


def _wanted(names: tuple[str, ...]) -> list[pl.Expr]:
    """Return the columns to keep; a rank that is no number is nothing, as nobody reads it."""
    if names is QRELS:
        return [pl.col(name) for name in names]
    rank = pl.col("rank").cast(pl.Int64, strict=False)
    return [pl.col("query"), pl.col("doc"), pl.col("score"), rank]


def _squeeze(data: bytes) -> bytes:
    """Make every stretch of whitespace one space and drop blank lines."""
    data = b"\n" + data.translate(WHITESPACE) + b"\n"
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data[1:]


def _line_by_line(block: Block, names: tuple[str, ...], source: Source) -> pl.DataFrame:
    """Find the first line that is wrong and say what is; a block without one is parsed here."""
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    for line, raw in enumerate(block.data.split(b"\n"), start=block.line):
        where = f"{source.path}, line {line}"
        try:
            fields: list[str] = re.split(r"[ \t\r\v\f]+", raw.decode().strip(" \t\r\v\f"))
        except UnicodeDecodeError as error:
            raise InputError(
                f"the bytes {raw[error.start : error.start + 4]!r} are not UTF-8",
                where=where,
                fix="save the file as UTF-8",
            ) from None
        if fields == [""] or raw.startswith(b"#"):
            continue
        if len(fields) != len(names):
            raise InputError(
                f"found {len(fields)} columns where {len(names)} belong: {_short(raw)}",
                where=where,
                fix=_column_advice(len(fields), names),
            )
        for name, text in zip(names, fields, strict=True):
            columns[name].append(_number(text, name, where) if name in NUMBERS else text)
    schema = {name: pl.Float64 if name in NUMBERS else pl.String for name in names}
    return pl.DataFrame(columns, schema=schema).select(_wanted(names))


def _number(text: str, name: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"the {name} {text[:40]!r} is not a number",
            where=where,
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
