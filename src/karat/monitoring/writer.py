"""The one thread that writes what a server takes in, and says so when it is on disk."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

from karat.errors import KaratError

if TYPE_CHECKING:
    from datetime import timedelta

    from karat.monitoring.arrivals import Added, Batch
    from karat.monitoring.store import TraceStore

TOGETHER = 64  # batches that are written in one step: one wait for the disk for all
TICK = 1.0  # seconds between two looks at what else is to be done
COMPACT, RETAIN = 60.0, 3_600.0  # seconds between two tidyings, and between two deletions

Entry: TypeAlias = "tuple[Batch, Future[Added]]"


class StoreWriter:
    """Writes batches one after another; its answer to each is given when it is on disk."""

    def __init__(self, store: TraceStore, keep: timedelta | None = None) -> None:
        self._store = store
        self._keep = keep
        self._entries: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._due = dict.fromkeys(("compact", "retain"), 0.0)
        self._thread = threading.Thread(target=self._work, name="karat-traces", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch) -> Future[Added]:
        """Return what will be known when the batch is on disk; its exception, if it is not."""
        answer: Future[Added] = Future()
        self._entries.put((batch, answer))
        return answer

    def close(self) -> None:
        """Write what was submitted, put it into files, and end."""
        self._entries.put(None)
        self._thread.join()

    def _work(self) -> None:
        ending = False
        while not ending:
            entries: list[Entry] = []
            with contextlib.suppress(queue.Empty):
                entry = self._entries.get(timeout=TICK)
                while entry is not None:
                    entries.append(entry)
                    if len(entries) == TOGETHER:
                        break
                    entry = self._entries.get_nowait()
                else:
                    ending = True
            if entries:
                self._write(entries)
            with contextlib.suppress(KaratError):  # tried again at the next look
                self._tidy()
        with contextlib.suppress(KaratError):
            self._store.flush()

    def _write(self, entries: list[Entry]) -> None:
        try:
            added = self._store.add_batches([batch for batch, _ in entries])
        except BaseException as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
            for _, answer in entries:
                answer.set_exception(error)
        else:
            for (_, answer), each in zip(entries, added, strict=True):
                answer.set_result(each)

    def _tidy(self) -> None:
        self._store.flush(due=True)
        now = time.monotonic()
        if now >= self._due["compact"]:
            self._due["compact"] = now + COMPACT
            self._store.compact()
        if self._keep is not None and now >= self._due["retain"]:
            self._due["retain"] = now + RETAIN
            self._store.retain(self._keep)
