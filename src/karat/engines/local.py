"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first written to a temporary file, so that the rows of each part of the gold can
be read together as one batch.
"""

from __future__ import annotations

import io
import tempfile
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.core.batches import whole_queries
from karat.core.data import Run, RunStream
from karat.engines.prefetch import Prefetch
from karat.errors import SaveError
from karat.progress import Progress, Report
from karat.relate.pipeline import Drawn, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from karat.core.data import Gold, Ints
    from karat.core.policy import Policy
    from karat.relate.match.matcher import BoundMatcher
    from karat.relate.pipeline import DrawnBatch

PARTS = 32  # how finely a scattered run is spread
PLACE = "__place"  # the column with the place of a query in the gold


class _ScatteredError(Exception):
    """The rows of a query are scattered."""


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
    ) -> Drawn:
        """Draw the relation of a run; see `karat.engines.Engine`."""

        def parts(batches: Iterable[pl.DataFrame]) -> Iterator[DrawnBatch]:
            done = np.zeros(bound.gold.queries.height, dtype=bool)
            for rows in batches:
                part = draw_batch(Run(run.name, rows, run.order), bound, policy, keep)
                yield part
                if progress is not None:
                    done[part.queries] = True
                    progress(Progress(int(done.sum()), len(done)))

        def from_batches(batches: Iterable[pl.DataFrame]) -> Drawn:
            about = Run(run.name, pl.DataFrame(), findings=run.findings)
            return join(about, parts(batches), bound, policy)

        if bound.finds_items:  # a judge is asked when all has been read and checked
            return from_batches([run.collect().rows])
        try:
            return from_batches(_each_once(iter(Prefetch.of(run)), bound.gold))
        except _ScatteredError:
            if run.whole is not None:
                return from_batches([run.whole])
            with tempfile.TemporaryFile(prefix="karat-") as file:
                return from_batches(_spread(run.batches(), bound.gold, file))


def _each_once(batches: Iterator[pl.DataFrame], gold: Gold) -> Iterator[pl.DataFrame]:
    """Cut the batches again so that no query is split; complain if one comes back later."""
    done = np.zeros(gold.queries.height, dtype=bool)
    extra: set[str] = set()  # queries that the gold does not have
    for rows in whole_queries(batches):
        names = rows["query"].rle().struct.field("value")
        number = gold.find(names)
        unknown = set(names.filter(number < 0))
        number = number[number >= 0]
        if done[number].any() or unknown & extra:
            raise _ScatteredError
        done[number] = True
        extra |= unknown
        yield rows


def _spread(batches: Iterator[pl.DataFrame], gold: Gold, file: IO[bytes]) -> Iterator[pl.DataFrame]:
    """Write the rows of each batch to a file by parts of the gold, then read part by part."""
    written: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]  # where, how many bytes
    for rows in batches:
        for part, piece in _by_part(rows, gold):
            data = piece.serialize()
            try:
                written[part].append((file.tell(), file.write(data)))
            except OSError as error:
                raise SaveError(
                    f"no room to sort the run by query: {error.strerror}",
                    where=tempfile.gettempdir(),
                    fix="sort the run by query, or set TMPDIR to a larger disk",
                ) from None
    for places in written:
        pieces = []
        for first, size in places:
            file.seek(first)
            pieces.append(pl.DataFrame.deserialize(io.BytesIO(file.read(size))))
        if pieces:
            yield _with_names(pl.concat(pieces, how="diagonal", rechunk=True), gold)


def _with_names(rows: pl.DataFrame, gold: Gold) -> pl.DataFrame:
    """Put the rows of a part in the order of the gold, and name their queries again."""
    rows = rows[_grouped(rows[PLACE].to_numpy())]
    place = rows[PLACE]
    names = gold.queries["query"].gather(place.set(place < 0, None))
    if "query" in rows.columns:  # some queries are not in the gold
        names = names.fill_null(rows["query"])
    return rows.drop("query", PLACE, strict=False).insert_column(0, names.alias("query"))


def _by_part(rows: pl.DataFrame, gold: Gold) -> Iterator[tuple[int, pl.DataFrame]]:
    """Cut rows into parts of the gold, and give them the place of their query in it.

    A query that the gold does not have comes into some part, always the same.
    """
    place = gold.find(rows["query"])
    part = (place * PARTS // max(gold.queries.height, 1)).astype(np.uint8)
    extra = np.flatnonzero(place < 0)
    if len(extra):
        part[extra] = rows["query"].gather(extra).hash().to_numpy() % PARTS
    # rows that stand in one piece of memory are put in order several times as fast
    placed = rows.with_columns(pl.Series(PLACE, place, dtype=pl.Int32))
    placed = placed if len(extra) else placed.drop("query")  # the gold knows its name
    spread = placed.rechunk()[_grouped(part)]
    cuts = np.cumsum(np.bincount(part, minlength=PARTS))
    for number, (first, last) in enumerate(pairwise([0, *cuts.tolist()])):
        if first < last:
            yield number, spread[first:last]


def _grouped(values: NDArray[np.integer[Any]]) -> Ints:
    """Return the order of numbers, equal ones in theirs; fast where they are close together."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    least, most = int(values.min()), int(values.max())
    narrow = np.uint16 if most - least <= np.iinfo(np.uint16).max else np.int64
    return np.argsort((values - least).astype(narrow), kind="stable")
