"""Lists by query that compiled code has packed into columns, and what they become.

They come from Python objects, from lines of JSON, or from files of TREC. Only what is plain is
packed: texts as ids, finite numbers, no document twice. Whatever is not is read by the code in
Python, which gives the same runs and gold labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.columns import narrowed
from findwell.core.data import Gold, RunStream
from findwell.core.findings import finding_about
from findwell.core.frames import Strings, later, pl
from findwell.io.native import DeclinedError, kernel
from findwell.io.read.format import RECORD, Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from findwell.core.data import Floats
    from findwell.core.findings import Finding
    from findwell.io.native._kernel import Column
    from findwell.io.read.format import ReadContext, Source

RETRIEVED, GOLD = "retrieved", "gold"  # the fields of lists
FIELDS = {"run": RETRIEVED, "gold": GOLD}
FIRST = 10  # records by which it is decided what the others are like
ODDS = 100  # orders of their documents, of which only one has rising scores


@dataclass(frozen=True, slots=True, eq=False)
class PackedLists:
    """Some queries, how many documents each has, and these documents."""

    queries: tuple[Column, ...] | pl.Series
    counts: NDArray[np.int32]
    docs: tuple[Column, ...] | pl.Series
    numbers: Floats | None = None  # of each document, where they have any
    unique: bool = False  # whether no document can occur twice in a query
    given: pl.DataFrame | None = None  # the rows, where they were given as such

    @classmethod
    def of(cls, columns: tuple[Any, ...], *, numbered: bool) -> PackedLists:
        """Return what the kernel packed."""
        queries, counts, docs, numbers = columns
        found = np.frombuffer(numbers, np.float64) if numbered else None
        return cls((queries,), np.frombuffer(counts, np.int32), (docs,), found, unique=numbered)

    def rows(self) -> pl.DataFrame:
        """Return them as rows of a run; an empty list is a row without a document."""
        if self.given is not None:
            return self.given
        assert isinstance(self.queries, tuple)  # noqa: S101 - of the kernel
        assert isinstance(self.docs, tuple)  # noqa: S101
        queries, docs = Strings("query", self.queries).series(), Strings("doc", self.docs).series()
        height = int(self.counts.sum())
        if self.numbers is None:
            score = pl.repeat(None, height, dtype=pl.Float64, eager=True)
        else:
            score = pl.Series(self.numbers)
        query = queries.gather(np.repeat(np.arange(len(queries)), self.counts))
        rows = pl.DataFrame({"query": query, "doc": docs, "score": score})
        if self.counts.all():
            return rows
        # where the rows of each query begin, and those of empty lists stand
        place = np.concatenate((np.arange(height), np.cumsum(self.counts)[self.counts == 0] - 0.5))
        empty = pl.DataFrame({"query": queries.filter(self.counts == 0)})
        rows = pl.concat([rows, empty], how="diagonal")
        return rows[np.argsort(place, kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class PackedRun:
    """The lists of a run: called, they are rows in batches; compiled code reads them itself."""

    pieces: list[PackedLists]

    def __call__(self) -> Iterator[pl.DataFrame]:
        """Make rows of the lists."""
        for piece in self.pieces:
            yield piece.rows()


class IdLines:
    """Lines of JSON with lists of ids: compiled code reads them, or else the reader of records."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self._name = source, name

    @cached_property
    def _records(self) -> RunStream:
        from findwell.io.read import known_formats  # noqa: PLC0415

        return known_formats()["jsonl"].run(self.source, self._name)

    def __call__(self) -> Iterator[pl.DataFrame]:
        """Read the lines as records, block by block."""
        return self._records.batches()

    def about(self) -> pl.DataFrame | None:
        """Return what the records say about their queries: nothing, if they are plain."""
        return self._records.about() if "_records" in vars(self) else None


class IdLists(Format):
    """Lines `{"query": "q1", "retrieved": ["d1", "d2"]}`, or with `gold` instead of `retrieved`.

    It is never registered: `jsonl` reads the same, and whatever is not plain.
    """

    def run(self, source: Source, name: str) -> RunStream:
        """Return a run that compiled code reads."""
        lines = IdLines(source, name)
        return RunStream(name, lines, "listed", about=lines.about)

    def gold(self, source: Source) -> Gold:
        """Read the lists as judgements."""
        from findwell.io.read import known_formats  # noqa: PLC0415
        from findwell.io.read.trec import read_gold  # noqa: PLC0415 - it imports this module

        return read_gold(source, GOLD) or known_formats()["jsonl"].gold(source)


def begins_with_ids(source: Source, role: str) -> bool:
    """Tell whether the first lines of a file are lists of ids that compiled code reads."""
    native, field, reading = kernel(), FIELDS.get(role), source.reading
    if native is None or field is None or not is_plain(reading):
        return False
    with source.open() as file:
        if not file.peek(1).startswith(b"{"):
            return False
        lines = [line for line in (file.readline(RECORD) for _ in range(FIRST)) if line]
    return all(native.read_gold(line, field) is not None for line in lines)


def is_plain(reading: ReadContext) -> bool:
    """Tell whether ids are all that is wanted of an input, and nothing is to be skipped."""
    changed = (reading.skip, reading.texts, reading.about, reading.fields)
    named = (reading.id_from, reading.query_from, reading.search_span)
    return reading.names == "id" and not any((*changed, *named))


def pack_run(data: Mapping[Any, Any], name: str) -> RunStream | None:
    """Return the run of {query: {doc: score}} or {query: [doc]}, if they are plain."""
    listed = _are_lists(data)
    native = kernel()
    packed = None if native is None or listed is None else native.pack(data, listed, False)
    if not packed:
        return None
    run = PackedRun([PackedLists.of(each, numbered=not listed) for each in packed])
    return RunStream(name, run, "listed" if listed else "mapped")


def rising_scores(data: Mapping[Any, Any]) -> list[Finding]:
    """Report {query: {doc: score}} whose scores only rise, by its first queries, as distances do.

    A mapping has no order, so that this is said only where it can hardly be chance.

    >>> near = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    >>> [found.kind for found in rising_scores({"q1": near, "q2": near})]
    ['rising-scores']
    """
    first = islice(data.items(), FIRST)
    scores = {name: list(docs.values()) for name, docs in first if isinstance(docs, Mapping)}
    lists = {name: each for name, each in scores.items() if len(each) > 1}
    with suppress(TypeError):
        rise = all(one < other for each in lists.values() for one, other in pairwise(each))
        if rise and math.prod(math.factorial(min(len(each), 9)) for each in lists.values()) >= ODDS:
            return finding_about(
                "rising-scores",
                list(lists),
                "In # query|queries every score is higher than the one before. "
                "The highest counts as the best.",
                "if these are distances, turn their signs around, or give lists in rank order",
            )
    return []


def pack_gold(data: Mapping[Any, Any]) -> Gold | None:
    """Return the gold of {query: {doc: grade}} or {query: [doc]}, if they are plain."""
    listed = _are_lists(data)
    native = kernel()
    if native is None or listed is None or data.keys() >= {"queries", "relevant_docs"}:
        return None
    packed = native.pack(data, listed, True)
    return gold_of_columns(packed) if packed else None


def _are_lists(data: Mapping[Any, Any]) -> bool | None:
    """Tell by the first entry whether there are lists or dicts; None: neither."""
    first = next(iter(data.values()), None)
    return isinstance(first, list | tuple) if isinstance(first, dict | list | tuple) else None


def gold_of_columns(pieces: Iterable[tuple[Any, ...]]) -> Gold:
    """Return the gold of columns in which the highest grade of each query comes first.

    The kernel has seen that no query of a piece comes back in it.
    """
    queries, counts, docs, grades = zip(*pieces, strict=True)
    names, members = Strings("query", queries), Strings("doc", docs)
    if len(queries) > 1 and len({name for piece in queries for name in piece}) < len(names):
        raise DeclinedError
    grade = np.frombuffer(b"".join(grades), np.float64)
    count = np.frombuffer(b"".join(counts), np.int32)
    return Gold(
        queries=later(lambda: pl.DataFrame({"query": names.series()}), names, ("query",)),
        item_offset=np.concatenate(([0], np.cumsum(count, dtype=np.int64))),
        item_grade=grade,
        member_item=narrowed(np.arange(len(grade))),
        member_doc=later(members.series, members),
    )
