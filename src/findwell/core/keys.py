"""Ids and rows in bulk: where queries stand, whether documents differ, what is sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from findwell.core.data import Ints, Numbers

CACHED = 1 << 18  # rows whose keys fit the processor's cache
HEAD = 1000  # rows that tell whether a look at all of them is worth it


def query_index(values: pl.Series, numbers: Mapping[str, int]) -> Ints:
    """Return the number of each query, or -1 where it has none.

    Equal neighbours are looked up once, which is all it takes when a file keeps the rows of a
    query together.

    >>> query_index(pl.Series(["b", "b", "x"]), {"a": 0, "b": 1}).tolist()
    [1, 1, -1]
    """
    runs = values.rle()
    names = runs.struct.field("value").to_list()
    index = np.fromiter((numbers.get(name, -1) for name in names), np.int64, len(names))
    return np.repeat(index, runs.struct.field("len").to_numpy())


class NameTable:
    """Finds many names at once among others, by their hashes in ascending order.

    >>> table = NameTable.of(pl.Series(["a", "b", "c"]))
    >>> table.find(pl.Series(["c", "x", None, "a"])).tolist()
    [2, -1, -1, 0]
    """

    def __init__(self, names: pl.Series, order: Ints, keys: NDArray[np.uint64]) -> None:
        self._names = names
        self._order = order
        self._keys = np.append(keys, np.iinfo(np.uint64).max)  # an end that nothing passes
        bits = len(names).bit_length() + 1
        self._shift = np.uint64(64 - bits)
        buckets = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._first = np.searchsorted(keys, buckets)

    @classmethod
    def of(cls, names: pl.Series) -> NameTable | None:
        """Return the table of names; None if two of them, or their hashes, are the same."""
        keys = names.hash().to_numpy()
        order = np.argsort(keys)
        keys = keys[order]
        return None if (keys[1:] == keys[:-1]).any() else cls(names, order, keys)

    def find(self, names: pl.Series) -> Ints:
        """Return where each name stands, or -1 where it does not."""
        keys = names.hash().to_numpy()
        at = self._first[(keys >> self._shift).astype(np.int64)]  # the first of its upper bits
        below = np.flatnonzero(self._keys[at] < keys)
        while len(below):
            at[below] += 1
            below = below[self._keys[at[below]] < keys[below]]
        found = np.where(self._keys[at] == keys, np.append(self._order, -1)[at], -1)
        same = self._names.gather(np.maximum(found, 0)) == names  # a key is a hash
        return np.where(same.fill_null(value=False).to_numpy(), found, -1)


def document_keys(query: Ints, doc: pl.Series) -> pl.Series:
    """Return a 64-bit key of each (query, document): equal pairs have equal keys."""
    mixed = query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return pl.Series(doc.hash().to_numpy() + mixed)


def all_different(query: Ints, doc: pl.Series, keys: pl.Series | None = None) -> bool:
    """Tell whether certainly no document occurs twice in a query; if in doubt, say no.

    `keys` are those of `document_keys`, where they are known.
    """
    if _ascending(query[:HEAD], doc.head(HEAD)) and _ascending(query, doc):
        return True
    keys = document_keys(query, doc) if keys is None else keys
    if not (query[1:] >= query[:-1]).all():
        return keys.n_unique() == len(keys)
    # cut between queries into pieces that fit the processor's cache
    cuts = np.searchsorted(query, query[CACHED::CACHED])
    pieces = zip([0, *cuts], [*cuts, len(keys)], strict=True)
    return all(keys[first:last].n_unique() == last - first for first, last in pieces)


def _ascending(query: Ints, doc: pl.Series) -> bool:
    """Tell whether the queries ascend, and in each query its documents, none equal to another."""
    later = (doc.slice(1) > doc.head(-1)).fill_null(value=False).to_numpy()
    return bool(np.where(query[1:] == query[:-1], later, query[1:] > query[:-1]).all())


def blank_ids(ids: pl.Series) -> pl.Series:
    """Tell which ids are empty or nothing but whitespace."""
    # stripping is slow, and what is blank sorts before or behind the ASCII letters and digits
    unusual = (ids < "!") | (ids > "~")
    if not unusual.any():
        return unusual
    return unusual & (ids.str.strip_chars().str.len_bytes() == 0)


def narrowed(numbers: Numbers) -> Numbers:
    """Return whole numbers, none negative, in half the memory if they fit."""
    fits = numbers.max(initial=0) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32, copy=False) if fits else numbers


def sorted_by(columns: dict[str, Any], *, descending: Sequence[bool]) -> Ints:
    """Return the order of rows by these columns; equal rows keep theirs."""
    by = pl.arg_sort_by(*columns, descending=descending, maintain_order=True)
    return pl.DataFrame(columns).select(by).to_series().to_numpy().astype(np.int64)


def sort_rows(columns: tuple[Any, ...], keys: int) -> tuple[Any, ...]:
    """Sort columns by the first few of them, the first deciding first."""
    if _is_sorted(*columns[:keys]):
        return columns
    order = np.lexsort(columns[:keys][::-1])
    return tuple(column[order] for column in columns)


def _is_sorted(*columns: Ints) -> bool:
    """Tell whether the rows are in ascending order, the first column deciding first."""
    after = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in reversed(columns):
        after = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & after)
    return bool(after.all())
