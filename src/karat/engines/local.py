"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first spread over temporary files by query, and each file is then one batch.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.core.batches import whole_queries
from karat.core.data import Run, RunStream
from karat.engines.native import PARTS, NativeDrawing, ScatteredError
from karat.engines.prefetch import Prefetch
from karat.errors import SaveError
from karat.native import DeclinedError
from karat.progress import Progress, Report
from karat.relate.pipeline import Drawn, DrawnBatch, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from karat.core.data import Gold
    from karat.core.policy import Policy
    from karat.relate.match.matcher import BoundMatcher


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

        def from_batches(batches: Iterable[pl.DataFrame]) -> Drawn:
            return joined(
                draw_batch(Run(run.name, rows, run.order), bound, policy, keep) for rows in batches
            )

        def joined(drawn: Iterable[DrawnBatch]) -> Drawn:
            parts = []
            done = np.zeros(bound.gold.queries.height, dtype=bool)
            for part in drawn:
                parts.append(part)
                if progress is not None:
                    done[part.queries] = True
                    progress(Progress(int(done.sum()), len(done)))
            return join(Run(run.name, pl.DataFrame(), findings=run.findings), parts, bound, policy)

        if bound.finds_items:  # a judge is asked when all has been read and checked
            return from_batches([run.collect().rows])
        native = NativeDrawing.of(run, bound, policy, keep)
        if native is not None:
            with suppress(DeclinedError):
                return _native(native, joined)
        try:
            return from_batches(_each_once(iter(Prefetch.of(run)), bound.gold))
        except ScatteredError:
            if run.whole is not None:
                return from_batches([run.whole])
            with _temporary_folder() as folder:
                return from_batches(_spread(run.batches(), folder, bound.gold))


def _native(native: NativeDrawing, joined: Callable[[Iterable[DrawnBatch]], Drawn]) -> Drawn:
    try:
        return joined(native.batches())
    except ScatteredError:
        with _temporary_folder() as folder:
            return joined(native.spread_batches(folder))


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
            raise ScatteredError
        done[number] = True
        extra |= unknown
        yield rows


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Give a folder to spread a run over."""
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        try:
            yield Path(folder)
        except OSError as error:
            raise SaveError(
                f"no room to sort the run by query: {error.strerror}",
                where=folder,
                fix="sort the run by query, or set TMPDIR to a larger disk",
            ) from None


def _spread(batches: Iterator[pl.DataFrame], folder: Path, gold: Gold) -> Iterator[pl.DataFrame]:
    """Write the rows into files by query, then read file by file.

    Each file holds as many queries of the gold, and the last one those that it does not have.
    """
    for number, rows in enumerate(batches):
        query = gold.find(rows["query"])
        part = np.where(query < 0, PARTS, query * PARTS // gold.queries.height)
        numbered = rows.with_columns(part=part)
        for (key,), piece in numbered.partition_by("part", as_dict=True).items():
            piece.drop("part").write_ipc(folder / f"{key:03}-{number:06}.arrow")
    for key in range(PARTS + 1):
        pieces = sorted(folder.glob(f"{key:03}-*.arrow"))
        if pieces:
            yield pl.concat([pl.read_ipc(piece) for piece in pieces])
