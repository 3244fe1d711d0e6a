"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first spread over temporary files by query, and each file is then one batch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.core.data import Run, RunStream
from karat.engines.prefetch import Prefetch
from karat.errors import SaveError
from karat.progress import Progress, Report
from karat.relate.pipeline import Drawn, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from karat.core.policy import Policy
    from karat.relate.match.matcher import BoundMatcher

SPILL_FILES = 32  # how finely a scattered run is spread


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

        def from_batches(batches: Iterable[pl.DataFrame]) -> Drawn:
            parts = []
            done = np.zeros(bound.gold.queries.height, dtype=bool)
            for rows in batches:
                part = draw_batch(Run(run.name, rows, run.order), bound, policy, keep)
                parts.append(part)
                if progress is not None:
                    done[part.queries] = True
                    progress(Progress(int(done.sum()), len(done)))
            return join(Run(run.name, pl.DataFrame(), findings=run.findings), parts, bound, policy)

        if bound.finds_items:  # a judge is asked when all has been read and checked
            return from_batches([run.collect().rows])
        try:
            return from_batches(_whole_queries(iter(Prefetch.of(run))))
        except _ScatteredError:
            if run.whole is not None:
                return from_batches([run.whole])
            with tempfile.TemporaryDirectory(prefix="karat-") as folder:
                return from_batches(_spread(run.batches(), Path(folder)))


def _whole_queries(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cut the batches again so that no query is split; complain if one comes back later."""
    done: set[str] = set()
    rows = next(batches, None)
    while rows is not None:
        following = next(batches, None)
        if following is not None:
            if not rows.height:
                rows = following
                continue
            last = rows["query"] == rows["query"][-1]
            following = pl.concat([rows.filter(last), following])
            rows = rows.filter(~last)
        if done or following is not None:
            names = set(rows["query"].rle().struct.field("value"))
            if names & done:
                raise _ScatteredError
            done |= names
        if rows.height:
            yield rows
        rows = following


def _spread(batches: Iterator[pl.DataFrame], folder: Path) -> Iterator[pl.DataFrame]:
    """Write the rows into files by query, then read file by file."""
    try:
        for number, rows in enumerate(batches):
            part = (rows["query"].hash() % SPILL_FILES).alias("part")
            for (key,), piece in rows.with_columns(part).partition_by("part", as_dict=True).items():
                piece.drop("part").write_ipc(folder / f"{key:03}-{number:06}.arrow")
    except OSError as error:
        raise SaveError(
            f"no room to sort the run by query: {error.strerror or error}",
            where=str(folder),
            fix="sort the run by query, or set TMPDIR to a larger disk",
        ) from None
    for key in range(SPILL_FILES):
        pieces = sorted(folder.glob(f"{key:03}-*.arrow"))
        if pieces:
            yield pl.concat([pl.read_ipc(piece) for piece in pieces])
