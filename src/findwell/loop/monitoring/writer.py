"""The thread that writes what a server takes in, and says so when it is on disk."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.errors import FindwellError

if TYPE_CHECKING:
    from datetime import timedelta

    from findwell.loop.monitoring.arrivals import Added, Batch
    from findwell.loop.monitoring.store import TraceStore

TOGETHER = 64  # batches that are written in one step: one wait for the disk for all
TICK = 1.0  # seconds between two looks at what is to be tidied
COMPACT, RETAIN = 60.0, 3_600.0  # seconds between two such works

Entry: TypeAlias = "tuple[Batch, Future[Added]]"


class StoreWriter:
    """Writes batches one after another; its answer to each is given when it is on disk.

    A second thread puts what was written into files, and old days away, so that nobody waits for
    that.
    """

    def __init__(self, store: TraceStore, keep: timedelta | None = None) -> None:
        self._store = store
        self._keep = keep
        self._entries: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"findwell-{work.__name__}", daemon=True)
            for work in (self._write_all, self._tidy_all)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, batch: Batch) -> Future[Added]:
        """Return what will be known when the batch is on disk; its exception, if it is not."""
        answer: Future[Added] = Future()
        self._entries.put((batch, answer))
        return answer

    def close(self) -> None:
        """Write what was submitted, put it into files, and end."""
        self._entries.put(None)
        self._ended.set()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(FindwellError):  # it waits in the catalogue
            self._store.flush()

    def _write_all(self) -> None:
        ending = False
        while not ending:
            entries: list[Entry] = []
            entry = self._entries.get()
            with contextlib.suppress(queue.Empty):
                while entry is not None:
                    entries.append(entry)
                    if len(entries) == TOGETHER:
                        break
                    entry = self._entries.get_nowait()
                else:
                    ending = True
            if entries:
                self._write(entries)

    def _write(self, entries: list[Entry]) -> None:
        try:
            added = self._store.add_batches([batch for batch, _ in entries], tidied=True)
        except BaseException as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
            for _, answer in entries:
                answer.set_exception(error)
        else:
            for (_, answer), each in zip(entries, added, strict=True):
                answer.set_result(each)

    def _tidy_all(self) -> None:
        works: list[list[Any]] = [[0.0, TICK, lambda: self._store.flush(due=True)]]
        works.append([0.0, COMPACT, self._store.compact])
        if self._keep is not None:
            works.append([0.0, RETAIN, partial(self._store.retain, self._keep)])
        while not self._ended.wait(TICK):
            for work in works:
                if time.monotonic() >= work[0]:
                    with contextlib.suppress(FindwellError):  # tried again the next time
                        work[2]()
                    work[0] = time.monotonic() + work[1]
