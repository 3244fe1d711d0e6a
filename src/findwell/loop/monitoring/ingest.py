"""Files of traces into a store."""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import InputError
from findwell.core.progress import Progress
from findwell.io.read.format import Source
from findwell.io.read.traces import read_traces
from findwell.loop.monitoring.store import Batch, StoreWriter, TraceStore

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from datetime import timedelta

    from findwell.core.progress import Report
    from findwell.io.read.traces import Decoded
    from findwell.loop.monitoring.intake_rules import IntakeRules
    from findwell.loop.monitoring.store import Added

AHEAD = 4  # parts that are read before they are written


@dataclass(slots=True)
class Ingested:
    """What became of a file."""

    file: str
    spans: int = 0
    new: int = 0  # calls
    repeated: int = 0
    dropped: int = 0
    malformed: Counter[str] = field(default_factory=Counter)

    def count(self, added: Added) -> None:
        """Add up what became of a part."""
        self.new += added.new
        self.repeated += added.repeated
        self.dropped += sum(added.dropped.values())


def ingest_traces(
    files: Sequence[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    *,
    rules: IntakeRules | None = None,
    keep: timedelta | None = None,
    id_from: str | None = None,
    progress: Report | None = None,
) -> Iterator[Ingested]:
    """Put the calls of files into a store, which is made when there is something to put there."""
    for file in files:
        if not Path(file).is_dir():
            Source.of(file)  # or it says what is wrong with it, before anything is written
    with contextlib.ExitStack() as held:
        opened: TraceStore | None = None
        for number, file in enumerate(files):
            found = Ingested(str(file))
            parts = _told(read_traces(file, id_from=id_from), found, number, len(files), progress)
            first = next(parts, None)
            if first is None:
                said = ", ".join(found.malformed)
                raise InputError(
                    "there are no spans in it" + (f": {said}" if said else ""),
                    where=str(file),
                    fix="name files of traces; docs/traces.md lists the formats",
                )
            if opened is None:
                opened = held.enter_context(TraceStore.open(store, create=True, rules=rules))
                opened.keep = keep
            _write(opened, [first], parts, found)
            yield found
        if opened is not None:
            opened.flush()
            opened.compact()
            if keep is not None:
                opened.retain(keep)


def _told(
    parts: Iterable[Decoded], found: Ingested, number: int, total: int, progress: Report | None
) -> Iterator[Decoded]:
    """Yield the parts that hold spans, and count; what stands before the first goes with it."""
    before: Counter[str] = Counter()
    for part in parts:
        found.spans += part.spans
        found.malformed.update(part.malformed)
        if progress is not None:
            progress(Progress(number, total, note=f"{found.spans:,} spans"))
        before.update(part.malformed)
        if part.spans or found.spans:
            part.malformed.update(before)
            before.clear()
            yield part


def _write(
    store: TraceStore, first: Iterable[Decoded], parts: Iterable[Decoded], found: Ingested
) -> None:
    """Write parts while the next ones are read."""
    writer = StoreWriter(store)
    waiting: deque[Future[Added]] = deque()
    try:
        for source in (first, parts):
            for part in source:
                waiting.append(writer.submit(Batch(part.frame, part.spans, part.malformed)))
                if len(waiting) > AHEAD:
                    found.count(waiting.popleft().result())
        while waiting:
            found.count(waiting.popleft().result())
    finally:
        writer.close()
