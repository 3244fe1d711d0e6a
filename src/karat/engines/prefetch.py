"""Reading ahead: the next batches are read and parsed in a thread while others work on this one."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    import polars as pl

DEPTH = 4  # batches that wait in memory at the most


class Prefetch:
    """An iterator over batches that begins to read when it is made, in the order of the batches."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches = batches
        self._reader = ThreadPoolExecutor(max_workers=1)
        self._coming = deque(self._submit() for _ in range(DEPTH))

    def _submit(self) -> Future[pl.DataFrame | None]:
        return self._reader.submit(next, self._batches, None)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Give out the batches; an error of the reader is raised where its batch would come."""
        try:
            while (batch := self._coming.popleft().result()) is not None:
                self._coming.append(self._submit())
                yield batch
        finally:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        self._reader.shutdown(cancel_futures=True)
