"""From what batches of a run cover to its relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.keys import sort_rows
from karat.core.relation import Relation

if TYPE_CHECKING:
    import polars as pl

    from karat.core.data import Gold, Ints
    from karat.relate.match.matcher import Edges


def join_parts(
    gold: Gold,
    retrieved: Ints,
    parts: list[Edges],
    chunks: list[tuple[Ints, Ints]],
    undefined_reason: pl.Series,
) -> Relation:
    """Make the relation of what batches cover; `chunks` is empty where every unit is a chunk."""

    def column(name: str, kind: type = np.int64) -> Any:  # noqa: ANN401
        columns = [getattr(part, name) for part in parts]
        return np.concatenate(columns) if columns else np.zeros(0, dtype=kind)

    depth, ends = _fine_units(retrieved, parts, chunks) if chunks else (retrieved, None)
    return Relation.build(
        gold,
        depth=depth,
        edges=(column("query"), column("rank"), column("item")),
        units=(
            column("unit_query"),
            column("unit_rank"),
            column("unit_judged", bool),
            column("unit_repeat"),
        ),
        undefined_reason=undefined_reason,
        chunks=ends,
    )


def _fine_units(
    retrieved: Ints, parts: list[Edges], chunks: list[tuple[Ints, Ints]]
) -> tuple[Ints, tuple[Ints, Ints]]:
    """Count the units of each query, and down to the end of each of its chunks."""
    query, rank = (np.concatenate(columns) for columns in zip(*chunks, strict=True))
    sizes = np.concatenate([part.sizes for part in parts if part.sizes is not None])
    query, _, sizes = sort_rows((query, rank, sizes), 2)
    offset = np.concatenate(([0], np.cumsum(retrieved)))
    upto = np.concatenate(([0], np.cumsum(sizes)))
    before = upto[offset[:-1]]
    return upto[offset[1:]] - before, (offset, upto[1:] - before[query])
