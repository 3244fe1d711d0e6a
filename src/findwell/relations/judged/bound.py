"""From verdicts to edges: what a judge answers, as measures read it.

A verdict that failed is neither a yes nor a no: the query has no value, and the lenient edges, in
which every failure is a yes, give the upper of the two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.frames import pl
from findwell.core.relation import Edges, Items
from findwell.judges.aspects import (
    UNKNOWN,
    VerdictShape,
    all_verdicts,
    find_aspect,
    items_of,
    parts_of,
)
from findwell.judges.verdicts import AspectVerdicts, Judged, Judgement
from findwell.relations.align import positions
from findwell.relations.judged.judging import number_chunks
from findwell.relations.match.matcher import BoundMatcher
from findwell.relations.match.texts import require_texts, with_texts

if TYPE_CHECKING:
    from findwell.core.data import Gold, Ints
    from findwell.core.findings import Finding
    from findwell.judges.verdicts import Sample
    from findwell.relations.align import Aligned
    from findwell.relations.judged.judging import Judging, Task


@dataclass(frozen=True, slots=True)
class BoundJudged(BoundMatcher):
    """A judged relation at work on one gold, of whose columns only the queries are read."""

    gold: Gold
    corpus: pl.DataFrame | None
    judging: Judging
    task: Task

    blank_is_unit = True
    finds_items = True
    check_rows = staticmethod(require_texts)

    @property
    def needed(self) -> bool:  # type: ignore[override]
        """Whether every query needs something, even where no item is relevant."""
        return find_aspect(self.task.aspect).listed

    @property
    def depth(self) -> int | None:  # type: ignore[override]
        """How many ranks of a list are judged."""
        return self.task.depth

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with their texts, which tell chunks apart."""
        return with_texts(rows, self.corpus, "plain")

    def edges(self, aligned: Aligned) -> Edges:
        """Ask the judge about a batch, and draw the edges of its verdicts."""
        answers = self.judging.about(self.task, aligned, self.gold)
        aspect = self.task.aspect
        failures = _failures({number: said for number, (_, said) in answers.items()}, aspect)
        judged = {number: _by_chunk(*each, aspect) for number, each in answers.items()}
        cut = aligned.first(self.depth)
        chunk = number_chunks(cut)
        strict = _edges(cut, chunk, judged, aspect, failed=False)
        if not failures:
            return strict
        lenient = _edges(cut, chunk, judged, aspect, failed=True)
        return replace(strict, failures=failures, lenient=lenient)


def _by_chunk(sample: Sample, judged: Judged, aspect: str) -> Judged:
    """Let an aspect of chunks or parts that failed as a whole fail for each chunk of the list.

    Only then the bounds are those of a list in which nothing, or everything, is a yes.
    """
    failure, about = judged.failures.get(aspect), find_aspect(aspect)
    if failure is None or not about.listed:
        return judged
    row = (Judgement(None, failure=failure),) * len(sample.chunks)
    if about.shape is VerdictShape.CHUNKS:
        return Judged({aspect: AspectVerdicts((row,))})
    parts = ((UNKNOWN,),) * len(row)  # how many there are is not known
    return Judged({aspect: AspectVerdicts(tuple((each,) for each in row), parts=parts)})


def _edges(
    aligned: Aligned, chunk: Ints, judged: dict[int, Judged], aspect: str, *, failed: bool
) -> Edges:
    """Draw the edges of a batch; `failed` says what a verdict means that was not given."""
    items: list[tuple[int, str, float]] = []  # query, text and grade
    met: list[tuple[int, int, int, int]] = []  # query, chunk, part of it, item
    for query, verdicts in judged.items():
        for text, grade, places in items_of(verdicts, aspect, failed=failed):
            met += ((query, at, part, len(items)) for at, part in places)
            items.append((query, text, grade))
    sizes = _sizes(aligned, chunk, judged, aspect)
    units = _units_of(aligned, chunk, sizes)
    pairs = sorted(
        (unit, item) for query, at, part, item in met for unit in units.get((query, at, part), ())
    )
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    row = np.repeat(np.arange(len(chunk)), 1 if sizes is None else sizes)
    query_of = aligned.query[row]
    rank = positions(query_of)
    repeat = np.zeros(len(row), np.int64) if aligned.repeat is None else aligned.repeat[row]
    return Edges(
        query=query_of[table[:, 0]],
        rank=rank[table[:, 0]],
        item=table[:, 1],
        unit_query=query_of,
        unit_rank=rank,
        unit_judged=chunk[row] >= 0,
        unit_repeat=repeat,
        sizes=sizes,
        items=Items(
            np.array([query for query, _, _ in items], dtype=np.int64),
            pl.Series([text for _, text, _ in items], dtype=pl.String),
            np.array([grade for _, _, grade in items], dtype=np.float64),
        ),
    )


def _sizes(aligned: Aligned, chunk: Ints, judged: dict[int, Judged], aspect: str) -> Ints | None:
    """Count the parts of each row; None where units are chunks."""
    parts = {query: parts_of(verdicts, aspect) for query, verdicts in judged.items()}
    if any(each is None for each in parts.values()):
        return None
    counts = [
        len(listed[at]) if at >= 0 and (listed := parts[query]) else 0
        for query, at in zip(aligned.query.tolist(), chunk.tolist(), strict=True)
    ]
    return np.array(counts, dtype=np.int64)


def _units_of(
    aligned: Aligned, chunk: Ints, sizes: Ints | None
) -> dict[tuple[int, int, int], list[int]]:
    """Return the units that are each chunk of a query, or for each part of it."""
    found: dict[tuple[int, int, int], list[int]] = {}
    first = 0
    for row, (query, at) in enumerate(zip(aligned.query.tolist(), chunk.tolist(), strict=True)):
        count = 1 if sizes is None else int(sizes[row])
        for part in range(count):
            found.setdefault((query, at, part), []).append(first + part)
        first += count
    return found


def _failures(judged: dict[int, Judged], aspect: str) -> dict[int, str]:
    """Return the queries that have no value because verdicts failed, and why."""
    found: dict[int, str] = {}
    for query, verdicts in judged.items():
        reason: object = verdicts.failures.get(aspect)
        if reason is None:
            cells = all_verdicts(verdicts, aspect)
            lost = [verdict.failure for verdict in cells if verdict.failure is not None]
            reason = f"{len(lost)} of {len(cells)} verdicts: {lost[0]}" if lost else None
        if reason is not None:
            found[query] = f"failed: {reason}"
    return found
