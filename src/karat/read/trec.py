"""TREC files: runs `query Q0 doc rank score tag` and judgements `query iteration doc grade`.

Any whitespace separates the columns, lines that begin with # are comments, .gz is welcome. The tag
may be missing. Runs are parsed in blocks, so that a file may be larger than memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import polars as pl

from karat.core.data import Gold, RunStream
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.format import Format, Look, register_format
from karat.read.line import QRELS, RUN, UNTAGGED, columns_of, layout_of
from karat.read.lines import parse_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.read.source import Source


@register_format
class TrecRun(Format):
    """A run: `query Q0 doc rank score tag`."""

    name: ClassVar[str] = "trec"
    roles: ClassVar = frozenset({"run"})
    order: ClassVar[int] = 90

    def sniff(self, look: Look, role: str) -> bool:
        """Six columns; four look like judgements in the wrong place, which `run` explains."""
        del role
        return _has_columns(look)

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run in blocks."""
        lines = Look.at(source).lines
        names = layout_of(lines[0]) if lines else RUN

        def batches() -> Iterator[pl.DataFrame]:
            source.reading.begin()
            empty = True
            for block in source.blocks():
                rows = parse_lines(block, names)
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
        return _has_columns(look)

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


def _has_columns(look: Look) -> bool:
    """Tell whether the first line has the columns of a run or of judgements."""
    if look.binary or not look.lines:
        return False
    first = look.lines[0].decode("utf-8", "replace")
    named = (columns_of(first, names) for names in (RUN, QRELS))
    return any(named) or layout_of(look.lines[0]) is UNTAGGED


def _read_qrels(source: Source) -> pl.DataFrame:
    rows = pl.concat([parse_lines(block, QRELS) for block in source.blocks()])
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


__all__ = ["Qrels", "SubtopicQrels", "TrecRun"]
