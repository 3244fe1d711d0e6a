"""The engine of this machine: a run streams by, batch after batch, in bounded memory.

A run whose rows are grouped by query streams through once, and is read ahead in a thread. If a
query turns up again in a later batch, the run is first written to a temporary file, so that the
rows of each part of the gold can be read together as one batch. Where the native kernel is built,
compiled code ranks and matches what is plain by id, in one pass per block: lines of TREC or JSON,
which it also parses, lists of Python objects, and rows that memory holds. It draws the same batches
as `findwell.relations.pipeline.draw_batch`, which draws the blocks that the kernel declines.
"""

from __future__ import annotations

import io
from collections import deque
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.columns import CACHED_ROWS, whole_queries
from findwell.core.data import Run, RunStream
from findwell.core.errors import AlignError, InputError, SaveError
from findwell.core.frames import pl, unmade
from findwell.core.progress import Progress, Report
from findwell.core.relation import Edges, Ties
from findwell.io.native import DeclinedError, Piece, each_piece, in_threads, kernel
from findwell.io.read.packed import RETRIEVED, IdLines, PackedLists, PackedRun
from findwell.io.read.trec import TrecLines
from findwell.relations.align import extra_queries, unsorted_lists
from findwell.relations.pipeline import Drawn, DrawnBatch, draw_batch, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from findwell.core.data import Bools, Gold, Ints, RunStream
    from findwell.core.policy import Policy
    from findwell.io.native._kernel import Index, Outcome
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher


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
        """Draw the relation of a run; see `findwell.engines.BatchEngine`."""

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
            with closing(PartSpool()) as spread:
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
        with closing(PartSpool()) as spread:
            for rows in _spread(run.batches(), bound.gold, spread):
                for query in rows.partition_by("query", maintain_order=True):
                    draw_batch(Run(run.name, query, run.order), bound, policy)
        raise


def _native(native: NativeDrawing, joined: Callable[[Iterable[DrawnBatch]], Drawn]) -> Drawn:
    try:
        return joined(native.batches())
    except ScatteredError:
        with closing(PartSpool()) as spread:
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


def _spread(
    batches: Iterator[pl.DataFrame], gold: Gold, spread: PartSpool
) -> Iterator[pl.DataFrame]:
    """Write the rows of each batch by parts of the gold, then read part by part."""
    for rows in batches:
        for part, piece in _by_part(rows, gold):
            spread.add(part, piece.serialize())
    for pieces in spread:
        parts = [pl.DataFrame.deserialize(io.BytesIO(piece)) for piece in pieces]
        rows = pl.concat(parts, rechunk=True)
        rows = rows[_grouped(rows[PLACE].to_numpy())]
        if "query" not in rows.columns:
            rows = rows.insert_column(0, gold.queries["query"].gather(rows[PLACE]).alias("query"))
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
STOP_SIGNALS = (KeyboardInterrupt, SystemExit)  # who ends the process waits for no slow disk


class Prefetch:
    """An iterator over batches that begins to read when it is made, in the order of the batches."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it takes long

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
        except STOP_SIGNALS:
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


def _compiled(run: RunStream) -> TrecLines | IdLines | PackedRun | None:
    """Return what compiled code reads of a run itself; None if it is read by code in Python."""
    source = run.batches
    if isinstance(source, TrecLines):
        return source if source.compiled else None
    return source if isinstance(source, IdLines | PackedRun) else None


def _packed_rows(run: RunStream) -> PackedRun | None:
    """Return the rows of a run that memory holds as lists, where they are plain."""
    rows = run.whole
    if rows is None or not rows.height or rows["query"].null_count() or rows["doc"].null_count():
        return None
    scores = None
    if run.order != "listed":
        if rows["score"].dtype != pl.Float64 or rows["score"].null_count():
            return None
        scores = rows["score"].to_numpy()
    elif "score" in rows.columns:
        again = rows["query"] == rows["query"].shift()
        if ((rows["score"].diff() > 0) & again).any():
            return None  # a list that its scores contradict is reported
    runs = rows["query"].rle()
    names, counts = runs.struct.field("value"), runs.struct.field("len").to_numpy()
    ends = np.cumsum(counts, dtype=np.int64)
    cuts = np.searchsorted(ends, np.arange(CACHED_ROWS, rows.height + CACHED_ROWS, CACHED_ROWS)) + 1
    pieces, first, row = [], 0, 0
    for last in np.unique(np.minimum(cuts, len(ends))).tolist():
        end = int(ends[last - 1])
        pieces.append(
            PackedLists(
                names[first:last],
                counts[first:last].astype(np.int32),
                rows["doc"][row:end],
                None if scores is None else np.ascontiguousarray(scores[row:end]),
                given=rows[row:end],
            )
        )
        first, row = last, end
    return PackedRun(pieces)


@contextmanager
def begin(run: RunStream) -> Iterator[RunStream]:
    """Begin to read a run at once: the first who asks for its batches finds them on their way."""
    if _compiled(run) is not None or run.whole is not None:
        yield run  # compiled code reads it itself, or nothing is left to be read
        return
    waiting = [Prefetch(whole_queries(run.batches()))]

    def batches() -> Iterator[pl.DataFrame]:
        return waiting.pop() if waiting else run.batches()

    wait = True
    try:
        yield replace(run, batches=batches)
    except STOP_SIGNALS:
        wait = False
        raise
    finally:
        while waiting:
            waiting.pop().close(wait=wait)


PARTS = 64  # each holds as many queries of the gold; one more holds those that it does not have


class PartSpool:
    """Bytes by part: written to one temporary file as they come, and read part by part."""

    def __init__(self) -> None:
        import tempfile  # noqa: PLC0415 - few runs are scattered

        self._folder = tempfile.gettempdir()
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
                where=self._folder,
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
        self,
        run: RunStream,
        source: TrecLines | IdLines | PackedRun,
        bound: BoundMatcher,
        policy: Policy,
    ) -> None:
        self._run, self._source, self._bound, self._policy = run, source, bound, policy
        self._narrow = policy.scores == "float32"
        self._index = _index(bound)

    @classmethod
    def of(
        cls, run: RunStream, bound: BoundMatcher, policy: Policy, keep: int
    ) -> NativeDrawing | None:
        """Return the drawing of a run, or None if it is nothing for the kernel."""
        if keep or not bound.plain_ids or kernel() is None:
            return None
        if bound.gold.member_item.dtype != np.int32:  # more than two billion items
            return None
        if bound.gold.member_weight is not None:  # which the kernel does not know
            return None
        source = _compiled(run) or _packed_rows(run)
        return None if source is None else cls(run, source, bound, policy)

    def batches(self) -> Iterator[DrawnBatch]:
        """Draw a run whose queries stand together; raise ScatteredError if one comes back."""
        seen = np.zeros(self._bound.gold.n, dtype=bool)
        extra: set[str] = set()
        rows = 0
        for outcome, by_python in self._outcomes():
            if outcome is None:
                part, names = self._by_python(by_python())
            else:
                part, names = self._part(outcome), outcome[1]
            if not part.documents and not len(part.asked):  # comments and blank lines
                continue
            if seen[part.queries].any() or not extra.isdisjoint(names):
                raise ScatteredError
            seen[part.queries] = True
            extra.update(names)
            rows += part.documents
            yield part
        if not rows:
            raise DeclinedError

    def _outcomes(self) -> Iterator[tuple[Outcome | None, Callable[[], pl.DataFrame]]]:
        """Draw piece by piece; what the kernel declines is to be drawn by the code in Python."""
        source, draw = self._source, self._index
        if isinstance(source, PackedRun):

            def draw_lists(piece: PackedLists) -> Outcome | None:
                scores = None if self._run.order == "listed" else piece.numbers
                return draw.draw_columns(
                    piece.queries, piece.counts, piece.docs, scores, self._narrow, piece.unique
                )

            for lists, outcome in in_threads(draw_lists, source.pieces):
                yield outcome, lists.rows
        elif isinstance(source, IdLines):

            def draw_records(piece: Piece) -> Outcome | None:
                return draw.draw_records(piece.data, RETRIEVED)

            for _, outcome in each_piece(source.source.open(), draw_records, len):
                if outcome is None:
                    raise DeclinedError  # a record that comes back may be anywhere
                yield outcome, lambda: pl.DataFrame()  # noqa: PLW0108 - polars is not imported yet
        else:
            source.source.reading.begin()
            for piece, outcome in each_piece(source.source.open(), self._draw):
                yield outcome, partial(source.parse, piece.data, piece.offset)

    def spread_batches(self, spread: PartSpool) -> Iterator[DrawnBatch]:
        """Draw a run whose queries are scattered, by parts of some queries each."""
        if not isinstance(self._source, TrecLines):
            raise DeclinedError
        for block in self._source.source.blocks():
            for part, lines in enumerate(self._index.split(block.data, PARTS)):
                if lines:
                    spread.add(part, lines)
        pieces = (Piece(memoryview(b"".join(lines)), 0) for lines in spread)
        for _, outcome in in_threads(self._draw, pieces):
            if outcome is None:
                raise DeclinedError  # its lines have lost their numbers
            yield self._part(outcome)

    def _draw(self, piece: Piece) -> Outcome | None:
        assert isinstance(self._source, TrecLines)  # noqa: S101
        return self._index.draw(piece.data, len(self._source.names), self._narrow)

    def _by_python(self, rows: pl.DataFrame) -> tuple[DrawnBatch, list[str]]:
        """Draw rows that are not plain, and return the queries that the gold does not have."""
        names = rows["query"].unique(maintain_order=True)
        part = draw_batch(Run(self._run.name, rows, self._run.order), self._bound, self._policy)
        return part, names.filter(self._bound.gold.find(names) < 0).to_list()

    def _part(self, outcome: Outcome) -> DrawnBatch:
        """Return what the kernel drew."""
        arrays, extra, documents = outcome
        query, retrieved, edge_query, edge_rank, edge_item, unit_query, unit_rank, *other = (
            np.frombuffer(array, np.int32) for array in arrays
        )
        *ties, rising, asked = (array.astype(np.int64) for array in other)
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
        found = extra_queries(extra)
        if self._run.order == "scored":
            found += unsorted_lists(rising, self._bound.gold)
        return DrawnBatch(
            query=query.astype(np.int64),
            retrieved=retrieved.astype(np.int64),
            edges=edges,
            chunks=None,
            asked=asked,
            blank=np.zeros(0, dtype=np.int64),
            ties=Ties(*(tie[order] for tie in ties)).that_matter(edges) if len(order) else None,
            findings=tuple(found),
            documents=documents,
        )


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
