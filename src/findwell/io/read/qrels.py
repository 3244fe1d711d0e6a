"""Judgements in the format of TREC: `query iteration doc grade`, perhaps one row per subtopic."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, ClassVar

from findwell.core.batches import whole_queries
from findwell.core.data import Gold
from findwell.core.errors import InputError
from findwell.core.findings import finding_about
from findwell.core.frames import pl
from findwell.io.native.gold import read_gold
from findwell.io.read.format import Format, Look, register_format
from findwell.io.read.trec import EXCERPT, QRELS, has_columns, parse_blocks, read_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.io.read.source import Source


class _NotInPartsError(Exception):
    """It takes a look at all judgements."""


@register_format
class Qrels(Format):
    """Judgements: `query iteration doc grade`, each document an item of its own."""

    name: ClassVar[str] = "qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 91

    def sniff(self, look: Look, role: str) -> bool:
        """Four columns and no document judged twice; six look like a run in the wrong place."""
        del role
        return has_columns(look)

    def gold(self, source: Source) -> Gold:
        """Read the judgements; of subtopics, if a document is judged for several of them."""
        gold = read_gold(source.open()) or _built_in_parts(source)
        if gold is not None:
            return gold
        source.reading.begin()
        rows = _judgements(source)
        if rows["iteration"].n_unique() == 1:
            return Gold.build(rows.drop("iteration"))
        if rows.select("query", "doc").n_unique() < rows.height:
            if rows.select("query", "doc", "iteration").n_unique() == rows.height:
                return _by_subtopic(rows)
            return Gold.build(rows.drop("iteration"))
        findings = finding_about(
            "iteration-column",
            rows["iteration"].unique(maintain_order=True),
            "the second column of the judgements varies; it was read as the iteration, "
            "which has no meaning",
            "if it names subtopics, use --read gold_format=subtopic-qrels",
        )
        return Gold.build(rows.drop("iteration"), findings=findings)


@register_format
class SubtopicQrels(Format):
    """Judgements of subtopics: `query subtopic doc grade`, each subtopic one group.

    It is never detected by the first lines: `qrels` looks at the whole file and decides.
    """

    name: ClassVar[str] = "subtopic-qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 92

    def gold(self, source: Source) -> Gold:
        """Read the judgements with the second column as the group."""
        return _by_subtopic(_judgements(source))


def _judgements(source: Source) -> pl.DataFrame:
    """Read all judgements; a grade that is not finite is met as a line that cannot be read."""
    rows = pl.concat(parse_blocks(source, QRELS))
    finite = rows["grade"].is_finite()
    if finite.all():
        return rows
    for block in source.blocks():
        for number, raw in enumerate(block.data.split(b"\n")):
            found = None
            with contextlib.suppress(InputError):  # which was met when it was parsed
                found = read_line(raw, QRELS, block, number)
            if found is not None and not math.isfinite(float(found.cells[-1])):
                source.reading.meet(_not_finite(found.cells, block.where(number)))
    return rows.filter(finite)


def _not_finite(cells: list[str], where: str) -> InputError:
    query, _, doc, grade = cells
    return InputError(
        f"the grade {grade[:EXCERPT]!r} of document {doc!r} for query {query!r} is not a finite "
        "number",
        where=where,
        fix="give every judged document a number: 0 for not relevant, 1 or more for relevant",
    )


def _built_in_parts(source: Source) -> Gold | None:
    """Build the gold of judgements part by part, so that memory holds little beside it.

    None: it takes a look at all rows, because the second column varies or a query comes back.
    """

    def parts() -> Iterator[Gold]:
        first = None
        for rows in whole_queries(parse_blocks(source, QRELS)):
            first = rows["iteration"][0] if first is None else first
            if (rows["iteration"] != first).any() or not rows["grade"].is_finite().all():
                raise _NotInPartsError
            yield Gold.build(rows.drop("iteration"))

    try:
        gold = Gold.join(parts())
    except _NotInPartsError:
        return None
    return gold if gold.queries["query"].n_unique() == gold.queries.height else None


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
