"""The store of traces: one row per retrieval call, in Parquet files by day with a catalogue."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import polars as pl

from findwell.core.errors import InputError, OptionError, SaveError
from findwell.core.forks import refuse_after_fork
from findwell.io.read.traces.hops import with_hops, without_inner
from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.io.storage.database import BUSY_TIMEOUT, DurableFile
from findwell.io.storage.files import make_folder
from findwell.loop.monitoring.arrivals import (
    DROPPED,
    MALFORMED,
    REPEATED,
    SPANS,
    Added,
    Arrival,
    Batch,
    acknowledge,
    call_keys,
    check_calls,
    unpacked,
)
from findwell.loop.monitoring.catalogue import FILE, TRACES, create_catalogue
from findwell.loop.monitoring.day_files import FOLDER, DayFile
from findwell.loop.monitoring.intake_rules import IntakeRules
from findwell.loop.monitoring.upkeep import BEHIND, LISTED, SMALL, Upkeep, parse_period

LONGEST_TRACE = timedelta(days=1)  # hops of a trace are counted over so long a time
HANDLES = 400  # files that a scan holds open, so that putting together does not disturb it
NAME = 200  # characters of a mark


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in time with a name, such as a release."""

    name: str
    time: datetime


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """What a store holds, and what has arrived since it was made."""

    calls: int  # that are in it now
    spans: int  # that arrived, of all kinds; those of a request that is sent again count once
    repeated: int  # calls that arrived again
    malformed: dict[str, int]  # by reason
    dropped: dict[str, int]  # calls that a rule left out, by reason
    first: datetime | None  # time of a call
    last: datetime | None
    files: int
    bytes: int


class TraceStore:
    """Retrieval calls of production, by day: open it, add calls, read them as a table.

    A call is on disk when `add` returns; several processes may add at the same time, and a call
    that is added twice (the same trace and span) is kept once.

    >>> import tempfile
    >>> with TraceStore.open(tempfile.mkdtemp(), create=True) as store:
    ...     store.mark("v2.3").name, store.counts().calls
    ('v2.3', 0)
    """

    def __init__(self, path: Path, *, rules: IntakeRules, timeout: float) -> None:
        self.path = path
        self.rules = rules
        self.keep: timedelta | None = None  # what is older is not taken in
        self._file = DurableFile(path / FILE, TRACES, timeout=timeout)
        self._upkeep = Upkeep(path, self._file)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        rules: IntakeRules | None = None,
        timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """Open the folder of a store; with `create`, make one where there is none.

        `rules` say what of new calls is kept. `timeout` is how many seconds a call waits for
        other processes that write.
        """
        refuse_after_fork()
        found = Path(path)
        if not (found / FILE).is_file():
            _refuse(found) if not create else _make(found)
        return cls(found, rules=rules or IntakeRules(), timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TraceStore({str(self.path)!r})"

    def close(self) -> None:
        """Close the catalogue."""
        self._file.close()

    # adding

    def add(
        self,
        frame: pl.DataFrame,
        *,
        spans: int | None = None,
        malformed: Mapping[str, int] | None = None,
        digest: bytes | None = None,
    ) -> Added:
        """Keep calls; they are on disk when this returns."""
        return self.add_batches([Batch(frame, spans, malformed or {}, digest)])[0]

    def add_batches(self, batches: Sequence[Batch], *, tidied: bool = False) -> list[Added]:
        """Keep several batches, in one step: all are on disk when this returns, or none is.

        With `tidied`, another thread puts them into files, unless it falls behind.
        """
        oldest = datetime.now(UTC) - self.keep if self.keep else None
        arrivals = []
        for batch in batches:
            check_calls(batch.frame)
            kept, dropped = self.rules.apply(batch.frame, oldest=oldest)
            arrivals.append(Arrival(batch, kept, dropped, call_keys(kept)))
        with self._file.writing() as connection:
            added = acknowledge(connection, arrivals)
        with contextlib.suppress(SaveError):  # what is acknowledged waits in the catalogue
            self._upkeep.flush(due=not tidied, most=BEHIND if tidied else 0)
        return added

    # files

    def flush(self, *, due: bool = False) -> int:
        """Put the calls that wait in the catalogue into files; return how many.

        With `due`, only if they are many or have waited long.
        """
        return self._upkeep.flush(due=due)

    def compact(self) -> int:
        """Put small files of a day together; return how many files there are fewer."""
        return self._upkeep.compact()

    def retain(self, keep: timedelta | str) -> int:
        """Delete the days that ended longer ago than this, and do not take in what is older.

        Returns how many calls are deleted. `keep` is written like 90d, 12h or 4w.
        """
        self.keep = keep if isinstance(keep, timedelta) else parse_period(keep)
        self.flush()
        return self._upkeep.delete_before(datetime.now(UTC) - self.keep)

    # reading

    def scan(self, since: datetime | None = None, until: datetime | None = None) -> pl.LazyFrame:
        """Return the calls that began at `since` or later and before `until`, as a lazy table.

        Nothing that others add or put together later changes what it gives. The calls of a trace
        may have arrived in any order: hops are counted, and retrievers inside of others left out,
        over all that began up to a day before `since`.
        """
        after = None if since is None else _utc(since) - LONGEST_TRACE
        before = None if until is None else _utc(until)
        calls = pl.concat(self._parts(after, before))
        if after is not None:
            calls = calls.filter(pl.col("time") >= after)
        if before is not None:
            calls = calls.filter(pl.col("time") < before)
        calls = with_hops(without_inner(calls))
        return calls if since is None else calls.filter(pl.col("time") >= _utc(since))

    def _parts(self, after: datetime | None, before: datetime | None) -> list[pl.LazyFrame]:
        """Return the tables that calls of this time may stand in, as they are at one moment."""
        limits = {
            "after": -(2**62) if after is None else _microseconds(after),
            "before": 2**62 if before is None else _microseconds(before),
        }
        while True:
            with self._file.reading() as connection, contextlib.suppress(FileNotFoundError):
                # else one was put together with others since the catalogue was read
                listed = connection.execute(f"{LISTED} {WITHIN} ORDER BY day, first", limits)
                scans = self._scans([DayFile(*row) for row in listed])
                rows = connection.execute(f"{WAITING} {WITHIN}", limits)
                waiting = [unpacked(content).lazy() for (content,) in rows]
                return [TRACE_SCHEMA.to_frame().lazy(), *scans, *waiting]

    def _scans(self, files: Sequence[DayFile]) -> list[pl.LazyFrame]:
        """Open small files, which may be replaced at any time; large ones stay under their name."""
        small = [each for each in files if each.bytes < SMALL][-HANDLES:]
        names = {each.name for each in small}
        paths = [each.path(self.path) for each in files if each.name not in names]
        with contextlib.ExitStack() as opened:  # the scan has handles of its own
            held = [opened.enter_context(each.path(self.path).open("rb")) for each in small]
            groups: list[Any] = [paths, held]
            return [
                pl.scan_parquet(group, hive_partitioning=False, schema=TRACE_SCHEMA)
                for group in groups
                if group
            ]

    def calls_about(self, since: datetime | None = None, until: datetime | None = None) -> int:
        """Return about how many calls began in a time, by what the catalogue says of its files."""
        start = -(2**62) if since is None else _microseconds(_utc(since))
        end = 2**62 if until is None else _microseconds(_utc(until))
        with self._file.reading() as connection:
            limits = {"after": start, "before": end}
            rows = connection.execute(f"{SPREAD} {WITHIN}", limits).fetchall()
        shares = (
            float(calls * (min(last + 1, end) - max(first, start)) / (last + 1 - first))
            for calls, first, last in rows
        )
        return round(sum(shares))

    def latest_calls(self, most: int, until: datetime, columns: Sequence[str]) -> pl.DataFrame:
        """Return some columns of the last calls before a time, without looking at all others."""
        length = timedelta(minutes=5)
        while True:
            enough = self.calls_about(until - length) >= most
            if enough or length > timedelta(days=365):
                calls = self.scan(until - length if enough else None, until)
                return calls.select("time", *columns).sort("time").tail(most).collect()
            length *= 4

    def counts(self) -> StoreCounts:
        """Return what the store holds, and what has arrived."""
        with self._file.reading() as connection:
            totals = connection.execute(TOTALS).fetchone()
            counted: dict[str, Counter[str]] = {}
            for what, reason, number in connection.execute("SELECT * FROM counted"):
                counted.setdefault(what, Counter())[reason] = number
        calls, first, last, files, size = totals
        return StoreCounts(
            calls=calls,
            spans=counted.get(SPANS, Counter())[""],
            repeated=counted.get(REPEATED, Counter())[""],
            malformed=dict(counted.get(MALFORMED, {})),
            dropped=dict(counted.get(DROPPED, {})),
            first=_moment(first),
            last=_moment(last),
            files=files,
            bytes=size + self._catalogue_bytes(),
        )

    def _catalogue_bytes(self) -> int:
        size = 0
        for ending in ("", "-wal"):
            with contextlib.suppress(OSError):
                size += (self.path / f"{FILE}{ending}").stat().st_size
        return size

    # marks and states

    def mark(self, name: str, time: datetime | None = None) -> Mark:
        """Name a point in time, now by default: a release, a new index."""
        name = name.strip()
        if not name or len(name) > NAME or not name.isprintable():
            raise OptionError(
                "the name of a mark is one line of text, up to 200 characters",
                fix='name it, such as "v2.3 chunker"',
            )
        mark = Mark(name, _utc(time or datetime.now(UTC)))
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO mark (name, time) VALUES (?, ?)",
                (mark.name, _microseconds(mark.time)),
            )
        return mark

    def marks(self) -> list[Mark]:
        """Return the marks, the earliest first."""
        rows = self._file.rows("SELECT name, time FROM mark ORDER BY time, number")
        return [Mark(name, EPOCH + timedelta(microseconds=each)) for name, each in rows]

    def state(self, name: str) -> Any:  # noqa: ANN401
        """Return what was saved under a name, such as the state of alarms; None if nothing."""
        rows = self._file.rows("SELECT value FROM state WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    @contextlib.contextmanager
    def changing_states(self, *names: str) -> Iterator[list[dict[str, Any]]]:
        """Read states, change them and save all of them or none, while no other process does."""
        with self._file.writing() as connection:
            query = "SELECT value FROM state WHERE name = ?"
            rows = [connection.execute(query, (name,)).fetchone() for name in names]
            values: list[dict[str, Any]] = [json.loads(row[0]) if row else {} for row in rows]
            yield values
            saved = [(name, json.dumps(value)) for name, value in zip(names, values, strict=True)]
            connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", saved)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WAITING = "SELECT content FROM waiting"
WITHIN = "WHERE last >= :after AND first < :before"
SPREAD = """
SELECT * FROM (
    SELECT calls, first, last FROM file UNION ALL SELECT calls, first, last FROM waiting
)"""
TOTALS = """
SELECT coalesce(sum(calls), 0), min(first), max(last), sum(file), sum(file * bytes) FROM (
    SELECT calls, first, last, bytes, 1 AS file FROM file
    UNION ALL SELECT calls, first, last, bytes, 0 FROM waiting
    UNION ALL SELECT 0, NULL, NULL, 0, 0
)
"""


def is_trace_store(path: object) -> bool:
    """Tell whether a path is the folder of a trace store, by what it holds."""
    if not isinstance(path, str | os.PathLike):
        return False
    return (Path(path) / FILE).is_file() and (Path(path) / FOLDER).is_dir()


def _refuse(path: Path) -> None:
    raise InputError(
        "there is no trace store here",
        where=str(path),
        fix="name the folder that findwell monitor serve or findwell monitor ingest made",
    )


def _make(path: Path) -> None:
    try:
        if path.is_dir() and any(each.name != FOLDER for each in _foreign(path)):
            raise SaveError(
                "the folder holds something else",
                where=str(path),
                fix="name a new folder for the trace store",
            )
        make_folder(path / FOLDER)
        create_catalogue(path / FILE)
    except OSError as error:
        raise SaveError(
            f"the trace store cannot be made: {error.strerror}",
            where=str(path),
            fix="name a folder on a disk that you may write to",
        ) from None


def _foreign(path: Path) -> Iterator[Path]:
    """Yield what is in a folder, but for what another process just makes there."""
    for each in path.iterdir():
        if not each.name.startswith((".findwell-", FILE)):
            yield each


def _utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)
