"""Compiled code for runs and judgements, where it is built; everything works without it.

The kernel (`_kernel.c`) reads blocks of whole queries that are plain and declines the others, which
the code in Python reads. So a result never depends on whether the kernel is there.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections import deque
from dataclasses import dataclass
from functools import cache
from itertools import chain, cycle, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from io import BufferedReader
    from types import ModuleType

S = TypeVar("S")
T = TypeVar("T")
SWITCH = "FINDWELL_NATIVE"  # "0" leaves the kernel aside
INTERFACE = 6  # of the kernel that this code belongs to
PIECE = 2 << 20  # bytes that are worked on at once
LINE = 64 << 20  # bytes of the longest line that is looked at


@cache
def _built() -> ModuleType | None:
    try:
        from findwell.io.native import _kernel  # noqa: PLC0415
    except ImportError:  # no compiler when findwell was installed
        return None
    return _kernel if _kernel.INTERFACE == INTERFACE else None  # else it was built earlier


def kernel() -> ModuleType | None:
    """Return the compiled code; None if it was not built, or is switched off."""
    return None if os.environ.get(SWITCH) == "0" else _built()


class DeclinedError(Exception):
    """The kernel cannot read this file; the code in Python may."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole lines of a file, which begin at `offset`; they stand only until the next one."""

    data: memoryview
    offset: int


def described() -> str:
    """Say whether compiled code is used, as versions are shown."""
    return "without the native kernel" if kernel() is None else "native kernel"


def each_piece(
    open_file: AbstractContextManager[BufferedReader],
    work: Callable[[Piece], T],
    last_query: Callable[[memoryview], int] | None = None,
) -> Iterator[tuple[Piece, T]]:
    """Work on a file in threads, as many as polars has, piece by piece, in the order of the file.

    No query is split between two pieces, as long as its lines stand together. `last_query` finds
    where the lines of the last one begin, by default as in files of TREC.
    """
    native = kernel()
    assert native is not None  # noqa: S101 - callers have asked
    with open_file as file:
        pieces = _whole_queries(file, last_query or native.last_query, _threads() + 2)
        yield from in_threads(work, pieces)


def in_threads(work: Callable[[S], T], pieces: Iterable[S]) -> Iterator[tuple[S, T]]:
    """Work on pieces in threads, as many as polars has; results come in the order of the pieces.

    A piece or two are worked on at once: that is quicker than to import and start what it takes.
    """
    coming_pieces = iter(pieces)
    first = list(islice(coming_pieces, 3))
    if len(first) < 3:
        yield from ((piece, work(piece)) for piece in first)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    threads = _threads()
    coming: deque[tuple[S, Future[T]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for piece in chain(first, coming_pieces):
                coming.append((piece, pool.submit(work, piece)))
                if len(coming) > threads:  # bounds what is held in memory
                    done, outcome = coming.popleft()
                    yield done, outcome.result()
            while coming:
                done, outcome = coming.popleft()
                yield done, outcome.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _threads() -> int:
    """Return how many threads polars has, or would have: it need not be imported for that."""
    if limit := os.environ.get("POLARS_MAX_THREADS", "").strip():
        return int(limit)
    able = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(able(0)) if able else os.cpu_count() or 1


def _whole_queries(
    file: BufferedReader, last_query: Callable[[memoryview], int], buffers: int
) -> Iterator[Piece]:
    """Read pieces of whole queries into a few buffers in turn: new memory costs more than reading.

    The last query of a piece goes to the next one, because it may go on there.
    """
    ring = cycle(bytearray(PIECE) for _ in range(buffers))  # each made when it is first needed
    offset = 0
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        offset = len(file.read(len(BOM_UTF8)))
    rest = memoryview(b"")
    while True:
        # a query that is longer than a piece has a buffer of its own: the others are in use
        buffer = next(ring) if len(rest) <= PIECE // 2 else bytearray(2 * len(rest))
        room = memoryview(buffer)
        room[: len(rest)] = rest
        size = len(rest)
        while size < len(room) and (count := file.readinto(room[size:])):
            size += count
        if size < len(room):
            if size:
                yield Piece(room[:size], offset)
            return
        lines = buffer.rfind(b"\n") + 1
        if size - lines > LINE:  # a line that is longer than a line can be
            raise DeclinedError
        cut = last_query(room[:lines])
        if cut:
            yield Piece(room[:cut], offset)
        rest = room[cut:]
        offset += cut
