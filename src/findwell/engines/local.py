"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once, and is read ahead in a thread. If a
query turns up again in a later batch, the run is first written to a temporary file, so that the
rows of each part of the gold can be read together as one batch. Where the native kernel is built,
compiled code parses, ranks and matches the plain lines of a TREC run by id, in one pass per block.
It draws the same batches as `findwell.relations.pipeline.draw_batch`, which draws the blocks that
the kernel declines.
"""

from __future__ import annotations

import io
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.columns import whole_queries
from findwell.core.data import Run, RunStream
from findwell.core.errors import AlignError, InputError, SaveError
from findwell.core.frames import pl, unmade
from findwell.core.progress import Progress, Report
from findwell.core.relation import Edges, Ties
from findwell.io.native import DeclinedError, Piece, each_piece, in_threads, kernel
from findwell.io.read.trec import TrecLines
from findwell.relations.align import extra_queries, unsorted_lists
from findwell.relations.pipeline import Drawn, DrawnBatch, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from findwell.core.data import Bools, Gold, Ints, RunStream
    from findwell.core.policy import Policy
    from findwell.io.native._kernel import Index
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher

    Outcome = tuple[tuple[bytes, ...], list[str], int]


PLACE = "__place"  # the column with the place of a query in the gold


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
        facts: FactReader | None = None,
    ) -> Drawn:
        """Draw the relation of a run; see `findwell.engines.Engine`."""

        def from_batches(batches: Iterable[pl.DataFrame]) -> Drawn:
            return joined(
                draw_batch(Run(run.name, rows, run.order), bound, policy, keep, facts)
                for rows in batches
            )

        def watched(drawn: Iterable[DrawnBatch]) -> Iterator[DrawnBatch]:
            done = np.zeros(bound.gold.n, dtype=bool)
            for part in drawn:
                yield part
                if progress is not None:
                    done[part.queries] = True
                    progress(Progress(int(done.sum()), len(done)))

        def joined(drawn: Iterable[DrawnBatch]) -> Drawn:
            return join(run, watched(_first_error(run, bound, policy, drawn)), bound, policy)

        if bound.finds_items:  # a judge is asked when all has been read and checked
            return from_batches([run.collect().rows])
        native = None if facts else NativeDrawing.of(run, bound, policy, keep)
        if native is not None:
            with suppress(DeclinedError):
                return _native(native, joined)
        try:
            return from_batches(_each_once(Prefetch.of(run), bound.gold))
        except ScatteredError:
            if run.whole is not None:
                return from_batches([run.whole])
            with closing(Spread()) as spread:
                return from_batches(_spread(run.batches(), bound.gold, spread))


def _first_error(
    run: RunStream, bound: BoundMatcher, policy: Policy, drawn: Iterable[DrawnBatch]
) -> Iterator[DrawnBatch]:
    """Go through batches; of several errors raise the first.

    That is a line that cannot be read, or else the first query of the gold, so that the error does
    not depend on how the run was cut, nor on whether compiled code has read it.
    """
    try:
        yield from drawn
    except (InputError, AlignError):
        if bound.finds_items:  # it was one batch, and a judge would be asked again
            raise
        with closing(Spread()) as spread:
            for rows in _spread(run.batches(), bound.gold, spread):
                for query in rows.partition_by("query", maintain_order=True):
                    draw_batch(Run(run.name, query, run.order), bound, policy)
        raise


def _native(native: NativeDrawing, joined: Callable[[Iterable[DrawnBatch]], Drawn]) -> Drawn:
    try:
        return joined(native.batches())
    except ScatteredError:
        with closing(Spread()) as spread:
            return joined(native.spread_batches(spread))


def _each_once(batches: Iterator[pl.DataFrame], gold: Gold) -> Iterator[pl.DataFrame]:
    """Go through batches of whole queries; complain if a query comes back later."""
    done = np.zeros(gold.n, dtype=bool)
    extra: set[str] = set()  # queries that the gold does not have
    for rows in batches:
        names = rows["query"].rle().struct.field("value")
        number = gold.find(names)
        unknown = set(names.filter(number < 0))
        number = number[number >= 0]
        if done[number].any() or unknown & extra:
            raise ScatteredError
        done[number] = True
        extra |= unknown
        yield rows


def _spread(batches: Iterator[pl.DataFrame], gold: Gold, spread: Spread) -> Iterator[pl.DataFrame]:
    """Write the rows of each batch by parts of the gold, then read part by part."""
    for rows in batches:
        for part, piece in _by_part(rows, gold):
            spread.add(part, piece.serialize())
    for pieces in spread:
        rows = pl.concat(
            [pl.DataFrame.deserialize(io.BytesIO(piece)) for piece in pieces], rechunk=True
        )
        rows = rows[_grouped(rows[PLACE].to_numpy())]
        if "query" not in rows.columns:
            names = gold.queries["query"].gather(rows[PLACE])
            rows = rows.insert_column(0, names.alias("query"))
        yield rows.drop(PLACE)


def _by_part(rows: pl.DataFrame, gold: Gold) -> Iterator[tuple[int, pl.DataFrame]]:
    """Cut rows into parts of the gold, and give them the place of their query in it."""
    place = gold.find(rows["query"])
    part = np.where(place < 0, PARTS, place * PARTS // max(gold.n, 1))
    # rows that stand in one piece of memory are put in order several times as fast
    placed = rows.with_columns(pl.Series(PLACE, place, dtype=pl.Int32)).rechunk()[_grouped(part)]
    cuts = np.cumsum(np.bincount(part, minlength=PARTS + 1))
    for number, (first, last) in enumerate(pairwise([0, *cuts.tolist()])):
        if first < last:
            piece = placed[first:last]
            yield number, piece if number == PARTS else piece.drop("query")  # the gold knows it


def _grouped(values: NDArray[np.integer[Any]]) -> Ints:
    """Return the order of numbers, equal ones in theirs; fast where they are close together."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    least, most = int(values.min()), int(values.max())
    narrow = np.uint16 if most - least <= np.iinfo(np.uint16).max else np.int64
    return np.argsort((values - least).astype(narrow), kind="stable")


DEPTH = 4  # batches that wait in memory at the most
STOPPED = (KeyboardInterrupt, SystemExit)  # who ends the process waits for no slow disk


class Prefetch:
    """An iterator over batches that begins to read when it is made, in the order of the batches."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches = batches
        self._reader = ThreadPoolExecutor(max_workers=1)
        self._coming = deque(self._submit() for _ in range(DEPTH))

    @classmethod
    def of(cls, run: RunStream) -> Prefetch:
        """Read a run ahead, unless that is being done already."""
        batches = run.batches()
        return batches if isinstance(batches, cls) else cls(whole_queries(batches))

    def _submit(self) -> Future[pl.DataFrame | None]:
        return self._reader.submit(next, self._batches, None)

    def __iter__(self) -> Prefetch:
        return self

    def __next__(self) -> pl.DataFrame:
        """Return the next batch; an error of the reader is raised where its batch would come."""
        try:
            batch = self._coming.popleft().result() if self._coming else None
        except STOPPED:
            self.close(wait=False)
            raise
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            raise StopIteration
        self._coming.append(self._submit())
        return batch

    def close(self, *, wait: bool = True) -> None:
        """Stop reading, after the batch that is being read; do not `wait` for it if asked."""
        self._coming.clear()
        self._reader.shutdown(wait=wait, cancel_futures=True)


@contextmanager
def begin(run: RunStream) -> Iterator[RunStream]:
    """Begin to read a run at once: the first who asks for its batches finds them on their way."""
    if isinstance(run.batches, TrecLines) and run.batches.compiled:
        yield run  # compiled code reads the lines itself
        return
    waiting = [Prefetch(whole_queries(run.batches()))]

    def batches() -> Iterator[pl.DataFrame]:
        return waiting.pop() if waiting else run.batches()

    wait = True
    try:
        yield replace(run, batches=batches)
    except STOPPED:
        wait = False
        raise
    finally:
        while waiting:
            waiting.pop().close(wait=wait)


PARTS = 64  # each holds as many queries of the gold; one more holds those that it does not have


class Spread:
    """Bytes by part: written to one temporary file as they come, and read part by part."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="findwell-")  # noqa: SIM115 - see `close`
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(PARTS + 1)]

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, part: int, data: bytes) -> None:
        """Write something that belongs to a part."""
        try:
            self._places[part].append((self._file.tell(), self._file.write(data)))
        except OSError as error:
            raise SaveError(
                f"no room to sort the run by query: {error.strerror or error}",
                where=tempfile.gettempdir(),
                fix="sort the run by query, or set TMPDIR to a larger disk",
            ) from None

    def __iter__(self) -> Iterator[list[bytes]]:
        """Read what was added to each part, in that order; parts without anything are left out."""
        for places in self._places:
            if places:
                yield [self._read(first, size) for first, size in places]

    def _read(self, first: int, size: int) -> bytes:
        self._file.seek(first)
        return self._file.read(size)


class ScatteredError(Exception):
    """The rows of a query are scattered."""


class NativeDrawing:
    """Draws the batches of one run."""

    def __init__(
        self, run: RunStream, lines: TrecLines, bound: BoundMatcher, policy: Policy
    ) -> None:
        self._run, self._lines, self._bound, self._policy = run, lines, bound, policy
        self._narrow = policy.scores == "float32"
        self._index = _index(bound)

    @classmethod
    def of(
        cls, run: RunStream, bound: BoundMatcher, policy: Policy, keep: int
    ) -> NativeDrawing | None:
        """Return the drawing of a run, or None if it is nothing for the kernel."""
        lines = run.batches
        if keep or not bound.plain_ids or not isinstance(lines, TrecLines) or not lines.compiled:
            return None
        if bound.gold.member_item.dtype != np.int32:  # more than two billion items
            return None
        if bound.gold.member_weight is not None:  # which the kernel does not know
            return None
        return cls(run, lines, bound, policy)

    def batches(self) -> Iterator[DrawnBatch]:
        """Draw a run whose queries stand together; raise ScatteredError if one comes back."""
        self._lines.source.reading.begin()
        seen = np.zeros(self._bound.gold.n, dtype=bool)
        extra: set[str] = set()
        rows = 0
        for piece, outcome in each_piece(self._lines.source.open(), self._draw):
            if outcome is None:
                part, names = self._by_python(piece)
            else:
                part, names = self._part(outcome), outcome[1]
            if not part.documents:  # comments and blank lines
                continue
            if seen[part.queries].any() or not extra.isdisjoint(names):
                raise ScatteredError
            seen[part.queries] = True
            extra.update(names)
            rows += part.documents
            yield part
        if not rows:
            raise DeclinedError

    def spread_batches(self, spread: Spread) -> Iterator[DrawnBatch]:
        """Draw a run whose queries are scattered, by parts of some queries each."""
        for block in self._lines.source.blocks():
            for part, lines in enumerate(self._index.split(block.data, PARTS)):
                if lines:
                    spread.add(part, lines)
        pieces = (Piece(memoryview(b"".join(lines)), 0) for lines in spread)
        for _, outcome in in_threads(self._draw, pieces):
            if outcome is None:
                raise DeclinedError  # its lines have lost their numbers
            yield self._part(outcome)

    def _draw(self, data: memoryview) -> Outcome | None:
        return self._index.draw(data, len(self._lines.names), self._narrow)

    def _by_python(self, piece: Piece) -> tuple[DrawnBatch, list[str]]:
        """Draw lines that are not plain, and return the queries that the gold does not have."""
        rows = self._lines.parse(piece.data, piece.offset)
        names = rows["query"].unique(maintain_order=True)
        part = draw_batch(Run(self._run.name, rows, self._run.order), self._bound, self._policy)
        return part, names.filter(self._bound.gold.find(names) < 0).to_list()

    def _part(self, outcome: Outcome) -> DrawnBatch:
        """Return what the kernel drew."""
        arrays, extra, documents = outcome
        query, retrieved, edge_query, edge_rank, edge_item, unit_query, unit_rank, *other = (
            np.frombuffer(array, np.int32) for array in arrays
        )
        *ties, rising = (array.astype(np.int64) for array in other)
        order = np.argsort(ties[0], kind="stable")
        if np.array_equal(unit_rank, edge_rank) and np.array_equal(unit_query, edge_query):
            unit_query, unit_rank = edge_query, edge_rank  # held once
        edges = Edges(
            query=edge_query,
            rank=edge_rank,
            item=edge_item,
            unit_query=unit_query,
            unit_rank=unit_rank,
            unit_judged=np.ones(len(unit_query), dtype=bool),
            unit_repeat=np.zeros(len(unit_query), dtype=np.int8),
        )
        found = [*extra_queries(extra), *unsorted_lists(rising, self._bound.gold)]
        return DrawnBatch(
            query=query.astype(np.int64),
            retrieved=retrieved.astype(np.int64),
            edges=edges,
            chunks=None,
            asked=_NONE,
            blank=_NONE,
            ties=Ties(*(tie[order] for tie in ties)).that_matter(edges) if len(order) else None,
            findings=tuple(found),
            documents=documents,
        )


_NONE = np.zeros(0, dtype=np.int64)


def _index(bound: BoundMatcher) -> Index:
    native = kernel()
    assert native is not None  # noqa: S101 - see `of`
    gold = bound.gold
    judged: Bools = gold.item_grade >= 0
    first = np.searchsorted(gold.member_item, gold.item_offset)  # members are sorted by item
    docs = unmade(gold, "member_doc")
    index: Index = native.Index(
        gold.queries["query"] if gold.names is None else gold.names.pieces,
        gold.member_doc if docs is None or docs.strings is None else docs.strings.pieces,
        np.ascontiguousarray(first, np.int64),
        np.ascontiguousarray(gold.member_item),
        judged,
    )
    return index
