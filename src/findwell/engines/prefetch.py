"""Reading ahead: the next batches are read and parsed in a thread while others work on this one."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from findwell.io.native import kernel
from findwell.io.read.trec import TrecLines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    import polars as pl

    from findwell.core.data import RunStream

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
        return batches if isinstance(batches, cls) else cls(batches)

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
    if kernel() is not None and isinstance(run.batches, TrecLines):
        yield run  # compiled code reads the lines itself
        return
    waiting = [Prefetch(run.batches())]

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
