"""Which stretches of documents overlap, found without comparing all with all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Ints


def overlapping(spans: pl.DataFrame, chunks: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the rows of spans and of chunks that have a character in common, as pairs.

    Both have the columns start and end, and those of `by`, which must be equal; what has a null
    there has nothing in common with anything. The chunks of about
    one size are sorted by where they begin: those that reach into a span begin inside it, or not
    more than their size before. So time grows with the rows and with the overlaps that there are,
    also where one chunk is as long as all others together.

    >>> spans = pl.DataFrame({"doc": ["d", "e"], "start": [3, 0], "end": [6, 9]})
    >>> chunks = pl.DataFrame({"doc": "d", "start": [0, 5, 6], "end": [5, 6, 9]})
    >>> [rows.tolist() for rows in overlapping(spans, chunks, ["doc"])]
    [[0, 0], [0, 1]]
    """
    span_group, chunk_group = _groups(spans, chunks, by)
    low, high = _ends(spans, by)
    start, end = _ends(chunks, by)
    wide = np.flatnonzero(low < high)
    sizes = np.frexp(np.maximum(end - start, 0).astype(np.float64))[1]  # below 2 to the power of it
    sizes[end <= start] = 0
    found = [(wide[:0], wide[:0])]
    for size in np.unique(sizes[sizes > 0]).tolist():
        alike = np.flatnonzero(sizes == size)
        alike = alike[np.lexsort((start[alike], chunk_group[alike]))]
        points = (start[alike], low[wide] - 2**size, high[wide])
        _, rank = np.unique(np.concatenate(points), return_inverse=True)
        width = rank.max(initial=0) + 1
        begins, before, until = np.split(rank, np.cumsum([len(each) for each in points])[:-1])
        key = chunk_group[alike] * width + begins
        first = np.searchsorted(key, span_group[wide] * width + before, side="right")
        last = np.searchsorted(key, span_group[wide] * width + until, side="left")
        count = np.maximum(last - first, 0)
        span = np.repeat(wide, count)
        place = np.arange(len(span)) + np.repeat(first - (np.cumsum(count) - count), count)
        chunk = alike[place]
        meets = end[chunk] > low[span]
        found.append((span[meets], chunk[meets]))
    span, chunk = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((chunk, span))
    return span[order], chunk[order]


def _ends(table: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Return where stretches start and end, 0 and 0 where that is not known."""
    known = pl.all_horizontal(pl.col("start", "end", *by).is_not_null())
    ends = table.select(pl.when(known).then(pl.col("start", "end")).fill_null(0).cast(pl.Int64))
    return ends["start"].to_numpy(), ends["end"].to_numpy()


def _groups(spans: pl.DataFrame, chunks: pl.DataFrame, by: Sequence[str]) -> tuple[Ints, Ints]:
    """Number what the tables have in the columns of `by`; the same number means the same."""
    both = pl.concat([spans.select(by), chunks.select(by)])
    numbers = both.unique(maintain_order=True).with_row_index("__group")
    group = both.join(numbers, on=by, how="left", maintain_order="left", nulls_equal=True)
    number = group["__group"].to_numpy().astype(np.int64)
    return number[: spans.height], number[spans.height :]
