"""From verdicts to relations: what a judge said, as measures read it.

A verdict that failed is neither a yes nor a no: the query has no value, and a second relation, in
which every failure is a yes, gives the upper of the two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align.align import positions
from karat.core.data import Gold
from karat.core.relation import FAILED
from karat.judges.aspects import all_verdicts, find_aspect, items_of, parts_of
from karat.relate.match.matcher import Edges
from karat.relate.pipeline import join_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Bools, Ints
    from karat.core.relation import Relation
    from karat.judges.verdicts import Judged
    from karat.relate.judged.samples import Sampled


@dataclass(frozen=True, slots=True)
class Drawn:
    """A relation in which failures are a no, and one in which they are a yes, if there are any."""

    strict: Relation
    lenient: Relation | None

    def select(self, keep: Bools) -> Drawn:
        """Return the relations of the queries of a mask."""
        lenient = None if self.lenient is None else self.lenient.select(keep)
        return Drawn(self.strict.select(keep), lenient)


def draw_relation(sampled: Sampled, judged: list[Judged], gold: Gold, aspect: str) -> Drawn:
    """Draw one relation of the verdicts about a run."""
    undefined_reason = _failures(judged, aspect)
    lenient = bool(undefined_reason.null_count() < len(undefined_reason))
    versions = [_draw(sampled, judged, gold, aspect, undefined_reason, failed=False)]
    if lenient:
        versions.append(_draw(sampled, judged, gold, aspect, undefined_reason, failed=True))
    return Drawn(versions[0], versions[1] if lenient else None)


def _draw(
    sampled: Sampled,
    judged: list[Judged],
    gold: Gold,
    aspect: str,
    undefined_reason: pl.Series,
    *,
    failed: bool,
) -> Relation:
    rows: list[tuple[str, str, float, int]] = []  # query, text, grade and number of the items
    met: list[tuple[int, int, int, int]] = []  # query, chunk, part of it, item
    names = gold.queries["query"].to_list()
    for query, (name, verdicts) in enumerate(zip(names, judged, strict=True)):
        for text, grade, places in items_of(verdicts, aspect, failed=failed):
            number = len(rows)
            rows.append((name, text, grade, number))
            met += ((query, chunk, part, number) for chunk, part in places)
    items, number_of = _gold_of(rows, gold)
    aligned, chunk = sampled.aligned, sampled.chunk
    sizes = _sizes(sampled, [parts_of(each, aspect) for each in judged])
    place = _places(sampled, sizes)
    pairs = sorted(
        (unit, number_of[item])
        for query, at, part, item in met
        for unit in place.get((query, at, part), ())
    )
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    row = np.repeat(np.arange(len(chunk)), 1 if sizes is None else sizes)
    query_of = aligned.query[row]
    repeat = np.zeros(len(row), dtype=np.int64)
    if aligned.repeat is not None:
        repeat = aligned.repeat[row]
    rank = positions(query_of)
    edges = Edges(
        query=query_of[table[:, 0]],
        rank=rank[table[:, 0]],
        item=table[:, 1],
        unit_query=query_of,
        unit_rank=rank,
        unit_judged=chunk[row] >= 0,
        unit_repeat=repeat,
        sizes=sizes,
    )
    retrieved = np.bincount(aligned.query, minlength=gold.queries.height)
    chunks = [(aligned.query, aligned.rank)] if sizes is not None else []
    relation = join_parts(items, retrieved, [edges], chunks, undefined_reason)
    return replace(relation, needed=find_aspect(aspect).listed, judged_to=sampled.judged_to)


def _gold_of(rows: list[tuple[str, str, float, int]], gold: Gold) -> tuple[Gold, list[int]]:
    """Return the gold of items, and where each of them stands in it."""
    schema = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    # equal texts are items of their own, so a number stands behind them where they repeat
    again = pl.int_range(1, pl.len() + 1).over("query", "doc")
    named = pl.when(again == 1).then("doc").otherwise(pl.format("{} ({})", "doc", again))
    built = Gold.build(table.with_columns(doc=named), queries=gold.queries, findings=gold.findings)
    # a row is an item with one member; items are ordered by query, then grade, then as given
    order = np.lexsort(
        (table["group"].to_numpy(), -table["grade"].to_numpy(), gold.find(table["query"]))
    )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return built, place.tolist()


def _sizes(sampled: Sampled, parts: Sequence[Sequence[Sequence[str]] | None]) -> Ints | None:
    """Count the parts of each row; None where the units are chunks."""
    if not parts or any(each is None for each in parts):
        return None
    counts = [
        len(inside[at]) if at >= 0 and inside else 0
        for query, at in zip(sampled.aligned.query.tolist(), sampled.chunk.tolist(), strict=True)
        for inside in [parts[query]]
    ]
    return np.array(counts, dtype=np.int64)


def _places(sampled: Sampled, sizes: Ints | None) -> dict[tuple[int, int, int], list[int]]:
    """Return the units that stand for each chunk of a query, or for each part of it."""
    places: dict[tuple[int, int, int], list[int]] = {}
    first = 0
    for row, (query, chunk) in enumerate(
        zip(sampled.aligned.query.tolist(), sampled.chunk.tolist(), strict=True)
    ):
        count = 1 if sizes is None else int(sizes[row])
        for part in range(count):
            places.setdefault((query, chunk, part), []).append(first + part)
        first += count
    return places


def _failures(judged: list[Judged], aspect: str) -> pl.Series:
    """Return why queries have no value because verdicts failed; null where none did."""
    reasons: list[str | None] = []
    for verdicts in judged:
        reason: object = verdicts.failures.get(aspect)
        if reason is None:
            cells = all_verdicts(verdicts, aspect)
            lost = [verdict.failure for verdict in cells if verdict.failure is not None]
            reason = f"{len(lost)} of {len(cells)} verdicts: {lost[0]}" if lost else None
        reasons.append(None if reason is None else f"{FAILED}{reason}")
    return pl.Series(reasons, dtype=pl.String)
