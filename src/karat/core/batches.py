"""Batches of rows, each a table with a column query, as they come from a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TAIL = 256  # rows that are looked at first for the beginning of the last query


def whole_queries(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cut batches again so that no stretch of rows of one query is split.

    >>> batches = (pl.DataFrame({"query": list(names)}) for names in ("aab", "bbb", "bc", "a"))
    >>> ["".join(rows["query"]) for rows in whole_queries(batches)]
    ['aa', 'bbbbbc', 'a']
    """
    held: pl.DataFrame | None = None
    for batch in batches:
        rows = batch
        if held is not None and rows.height:
            last = 0
            if rows["query"][0] == held["query"][-1]:
                last = last_stretch(held["query"])
                rows = pl.concat([held.tail(last), rows])
            if last < held.height:
                yield held.head(held.height - last)
        held = rows if rows.height else held
    if held is not None:
        yield held


def last_stretch(values: pl.Series) -> int:
    """Count the equal values at the end.

    >>> last_stretch(pl.Series(["a", "b", "a", "a"]))
    2
    """
    size = TAIL
    while True:
        tail = values.tail(size)
        other = (tail != tail[-1]).arg_true()
        if len(other):
            return len(tail) - 1 - int(other[-1])
        if len(tail) == len(values):
            return len(tail)
        size *= 8
