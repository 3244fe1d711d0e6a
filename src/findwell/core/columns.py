"""Ids and rows in bulk: how ids are made comparable, where they stand, what is sorted, batches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, unknown
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray

    from findwell.core.data import Ints, Numbers


CACHED_ROWS = 1 << 18  # rows whose keys fit the processor's cache
TABLE_BITS = 20  # of a key, by which those are found that may have an equal
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


def rows_at(values: pl.Series, at: Ints) -> pl.Series:
    """Return the values of ascending rows; of rows that stand together without a copy."""
    if len(at) and at[-1] - at[0] + 1 == len(at):
        return values.slice(int(at[0]), len(at))
    return values.gather(at)


def equal_keys(ours: pl.Series, theirs: pl.Series) -> tuple[Ints, Ints]:
    """Return where equal keys stand, in the order of ours and then of theirs."""
    # most of ours have no equal: a table of their upper bits tells which may have one
    width = np.uint64(64 - TABLE_BITS)
    table = np.zeros(1 << TABLE_BITS, dtype=bool)
    table[(theirs.to_numpy() >> width).astype(np.int64)] = True
    may = np.flatnonzero(table[(ours.to_numpy() >> width).astype(np.int64)])
    rows, members = pl.DataFrame({"key": ours.gather(may)}), pl.DataFrame({"key": theirs})
    pairs = rows.with_row_index("row").join(
        members.with_row_index("member"), on="key", maintain_order="left_right"
    )
    return may[pairs["row"].to_numpy()], pairs["member"].to_numpy().astype(np.int64)


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
    cuts = np.searchsorted(query, query[CACHED_ROWS::CACHED_ROWS])
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
    """An array that grows at its end: its pieces are not held as well, as concatenating would.

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


Normaliser: TypeAlias = "str | Callable[[str], str]"

NORMALISERS = {
    "identity": "ids as they are",
    "uuid": "the first <urn:uuid:…> inside the id, other ids unchanged",
    "chunk-to-doc:SEP": "the id up to its last SEP (# by default)",
    "stem": "the file name without its folders and its ending: docs/guide.pdf becomes guide",
    "lower": "the id in lower case",
    "nfc": "the id in the Unicode form NFC, in which é is one character and not e and an accent",
    "regex:PATTERN": "the first group of the first match, other ids unchanged",
}
UUID = "(<urn:uuid:[^>]+>)"
STEM = r"([^/\\]+?)(?:\.[A-Za-z][A-Za-z0-9]{0,4})?$"  # .pdf and .mp3, but not the .5 of v1.5


def normaliser(how: Normaliser) -> Callable[[pl.Series], pl.Series] | None:
    """Return the function that normalises a column of ids, or None for identity.

    >>> normaliser("stem")(pl.Series(["docs/guide.pdf", "guide", "v1.5"])).to_list()
    ['guide', 'guide', 'v1.5']
    """
    if callable(how):
        return lambda ids: _map_distinct(ids, how)
    if how in PLAIN_NORMALISERS:
        return PLAIN_NORMALISERS[how]
    name, _, argument = how.partition(":")
    if name == "chunk-to-doc":
        separator = re.escape(argument or "#")
        return lambda ids: _extract(ids, f"(?s)^(.*){separator}")
    if name == "regex" and argument:
        _check_pattern(argument)
        return lambda ids: _extract(ids, argument)
    raise unknown("id normaliser", how, NORMALISERS)


def _extract(ids: pl.Series, pattern: str) -> pl.Series:
    return ids.str.extract(pattern, 1).fill_null(ids)


PLAIN_NORMALISERS: dict[str, Callable[[pl.Series], pl.Series] | None] = {
    "identity": None,
    "uuid": lambda ids: _extract(ids, UUID),
    "stem": lambda ids: _extract(ids, STEM),
    "lower": lambda ids: ids.str.to_lowercase(),
    "nfc": lambda ids: ids.str.normalize("NFC"),
}


def _map_distinct(ids: pl.Series, function: Callable[[str], str]) -> pl.Series:
    distinct = ids.unique(maintain_order=True)
    changed = pl.Series([str(function(value)) for value in distinct], dtype=pl.String)
    return ids.replace_strict(distinct, changed, return_dtype=pl.String)


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
        pl.Series([""]).str.extract(pattern, 1)
    except (re.error, pl.exceptions.PolarsError) as error:
        first = str(error).splitlines()[0]
        raise OptionError(f"{pattern!r} is not a regular expression: {first}") from None
    if not groups:
        raise OptionError(
            f"the pattern {pattern!r} has no group",
            fix="put parentheses around the part of the id to keep",
        )
