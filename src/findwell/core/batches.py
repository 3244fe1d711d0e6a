"""Batches of rows, each a table with a column query, and columns that grow batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import DTypeLike, NDArray

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


def compact(rows: pl.DataFrame) -> pl.DataFrame:
    """Copy rows into memory of their own: taken from a batch they hold on to all of its texts.

    >>> batch = pl.DataFrame({"rank": [1, 2], "text": ["more than twelve letters", None]})
    >>> compact(batch).equals(batch)
    True
    """
    strings = [name for name, kind in rows.schema.items() if kind == pl.String]
    # polars has no copy of texts: what it cuts out are views into shared memory
    return rows.with_columns(
        pl.Series(name, rows[name].to_list(), dtype=pl.String) for name in strings
    )


class GrowingColumn:
    """An array that grows at its end: its pieces are not held beside it, as concatenating would.

    Whole numbers that do not fit its type make it one of int64.

    >>> column = GrowingColumn(np.int32)
    >>> for values in ([1, 2], [3], [1 << 40]):
    ...     column.append(np.array(values))
    >>> len(column), column.take()
    (4, array([            1,             2,             3, 1099511627776]))
    """

    def __init__(self, kind: DTypeLike) -> None:
        self._values: NDArray[Any] = np.empty(0, dtype=kind)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        if self._values.dtype.kind == "i" and values.dtype.kind == "i" and len(values):
            narrow = np.iinfo(self._values.dtype)
            if not narrow.min <= values.min() <= values.max() <= narrow.max:
                self._values = self._values.astype(np.int64)
        size = self._size + len(values)
        if size > len(self._values):  # a large array grows where it is
            self._values.resize(max(size, len(self._values) * 9 // 8), refcheck=False)
        self._values[self._size : size] = values
        self._size = size

    @property
    def values(self) -> NDArray[Any]:
        """What it holds so far."""
        return self._values[: self._size]

    def take(self) -> Any:  # noqa: ANN401 - an array of the kind it was made for
        """Return the array, without room to grow; the column is empty again."""
        values, self._values = self._values, self._values[:0].copy()
        values.resize(self._size, refcheck=False)
        self._size = 0
        return values
