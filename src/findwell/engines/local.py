"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first written to a temporary file, so that the rows of each part of the gold can
be read together as one batch.
"""

from __future__ import annotations

import io
from contextlib import closing, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.batches import whole_queries
from findwell.core.data import Run, RunStream
from findwell.core.errors import AlignError, InputError
from findwell.core.frames import pl
from findwell.core.progress import Progress, Report
from findwell.engines.native import NativeDrawing, ScatteredError
from findwell.engines.prefetch import Prefetch
from findwell.engines.spread import PARTS, Spread
from findwell.io.native import DeclinedError
from findwell.relations.pipeline import Drawn, DrawnBatch, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from findwell.core.data import Gold, Ints
    from findwell.core.policy import Policy
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher
    from findwell.relations.pipeline import DrawnBatch

PLACE = "__place"  # the column with the place of a query in the gold


class LocalEngine:
    """Draws relations on this machine: memory holds one batch and what was hit."""

    def draw(
        self,
        run: RunStream,
        bound: BoundMatcher,
        policy: Policy,
        *,
        keep: int = 0,
        progress: Report | None = None,
        facts: FactReader | None = None,
    ) -> Drawn:
        """Draw the relation of a run; see `findwell.engines.Engine`."""

        def from_batches(batches: Iterable[pl.DataFrame]) -> Drawn:
            return joined(
                draw_batch(Run(run.name, rows, run.order), bound, policy, keep, facts)
                for rows in batches
            )

        def watched(drawn: Iterable[DrawnBatch]) -> Iterator[DrawnBatch]:
            done = np.zeros(bound.gold.n, dtype=bool)
            for part in drawn:
                yield part
                if progress is not None:
                    done[part.queries] = True
                    progress(Progress(int(done.sum()), len(done)))

        def joined(drawn: Iterable[DrawnBatch]) -> Drawn:
            return join(run, watched(_first_error(run, bound, policy, drawn)), bound, policy)

        if bound.finds_items:  # a judge is asked when all has been read and checked
            return from_batches([run.collect().rows])
        native = None if facts else NativeDrawing.of(run, bound, policy, keep)
        if native is not None:
            with suppress(DeclinedError):
                return _native(native, joined)
        try:
            return from_batches(_each_once(iter(Prefetch.of(run)), bound.gold))
        except ScatteredError:
            if run.whole is not None:
                return from_batches([run.whole])
            with closing(Spread()) as spread:
                return from_batches(_spread(run.batches(), bound.gold, spread))


def _first_error(
    run: RunStream, bound: BoundMatcher, policy: Policy, drawn: Iterable[DrawnBatch]
) -> Iterator[DrawnBatch]:
    """Go through batches; of several errors raise the first.

    That is a line that cannot be read, or else the first query of the gold, so that the error does
    not depend on how the run was cut, nor on whether compiled code has read it.
    """
    try:
        yield from drawn
    except (InputError, AlignError):
        if bound.finds_items:  # it was one batch, and a judge would be asked again
            raise
        with closing(Spread()) as spread:
            for rows in _spread(run.batches(), bound.gold, spread):
                for query in rows.partition_by("query", maintain_order=True):
                    draw_batch(Run(run.name, query, run.order), bound, policy)
        raise


def _native(native: NativeDrawing, joined: Callable[[Iterable[DrawnBatch]], Drawn]) -> Drawn:
    try:
        return joined(native.batches())
    except ScatteredError:
        with closing(Spread()) as spread:
            return joined(native.spread_batches(spread))


def _each_once(batches: Iterator[pl.DataFrame], gold: Gold) -> Iterator[pl.DataFrame]:
    """Cut the batches again so that no query is split; complain if one comes back later."""
    done = np.zeros(gold.n, dtype=bool)
    extra: set[str] = set()  # queries that the gold does not have
    for rows in whole_queries(batches):
        names = rows["query"].rle().struct.field("value")
        number = gold.find(names)
        unknown = set(names.filter(number < 0))
        number = number[number >= 0]
        if done[number].any() or unknown & extra:
            raise ScatteredError
        done[number] = True
        extra |= unknown
        yield rows


def _spread(batches: Iterator[pl.DataFrame], gold: Gold, spread: Spread) -> Iterator[pl.DataFrame]:
    """Write the rows of each batch by parts of the gold, then read part by part."""
    for rows in batches:
        for part, piece in _by_part(rows, gold):
            spread.add(part, piece.serialize())
    for pieces in spread:
        rows = pl.concat(
            [pl.DataFrame.deserialize(io.BytesIO(piece)) for piece in pieces], rechunk=True
        )
        rows = rows[_grouped(rows[PLACE].to_numpy())]
        if "query" not in rows.columns:
            names = gold.queries["query"].gather(rows[PLACE])
            rows = rows.insert_column(0, names.alias("query"))
        yield rows.drop(PLACE)


def _by_part(rows: pl.DataFrame, gold: Gold) -> Iterator[tuple[int, pl.DataFrame]]:
    """Cut rows into parts of the gold, and give them the place of their query in it."""
    place = gold.find(rows["query"])
    part = np.where(place < 0, PARTS, place * PARTS // max(gold.n, 1))
    # rows that stand in one piece of memory are put in order several times as fast
    placed = rows.with_columns(pl.Series(PLACE, place, dtype=pl.Int32)).rechunk()[_grouped(part)]
    cuts = np.cumsum(np.bincount(part, minlength=PARTS + 1))
    for number, (first, last) in enumerate(pairwise([0, *cuts.tolist()])):
        if first < last:
            piece = placed[first:last]
            yield number, piece if number == PARTS else piece.drop("query")  # the gold knows it


def _grouped(values: NDArray[np.integer[Any]]) -> Ints:
    """Return the order of numbers, equal ones in theirs; fast where they are close together."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    least, most = int(values.min()), int(values.max())
    narrow = np.uint16 if most - least <= np.iinfo(np.uint16).max else np.int64
    return np.argsort((values - least).astype(narrow), kind="stable")
