"""The store of traces: one row per retrieval call, in Parquet files by day with a catalogue.

A batch is acknowledged by one step of the catalogue, a SQLite database: the calls that are new
wait there, with their keys and the counts. `store_files` puts them into files later.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from findwell.core.errors import FindwellError, InputError, OptionError, SaveError
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.io.read.traces.schema import TRACE_SCHEMA, calls_among, with_hops, without_inner
from findwell.io.storage.database import BUSY_TIMEOUT, DurableFile, DurableKind, create_durable
from findwell.io.storage.files import make_folder, removed_at_the_end, require_layout
from findwell.loop.monitoring.intake import IntakeRules
from findwell.loop.monitoring.store_files import (
    BEHIND_BYTES,
    FOLDER,
    LISTED_FILES,
    SMALL_FILE,
    DayFile,
    StoreFiles,
    call_keys,
    let_wait,
    unpacked,
)
from findwell.loop.monitoring.times import EPOCH, MICROSECOND, in_utc, microseconds, parse_period

if TYPE_CHECKING:
    import sqlite3

FILE = "catalogue.db"
APPLICATION = 0x66696E74  # "fint": distinguishes it from other SQLite files
LAYOUT = 1  # raised when the tables or the columns of the Parquet files change

REPEATED, SPANS, MALFORMED, DROPPED = "repeated", "spans", "malformed", "dropped"
RECOGNISED_SECONDS = 3_600.0  # seconds for which a body that is sent again is recognised as a whole
KEYS_AT_ONCE = 500  # in one query
COUNT = """
INSERT INTO counted VALUES (?, ?, ?)
ON CONFLICT (what, reason) DO UPDATE SET number = number + excluded.number
"""
LONGEST_TRACE = timedelta(days=1)  # how long a trace may last, for its hops to be counted
OPEN_FILES = 400  # files that a scan holds open, so that putting together does not disturb it
MARK_LETTERS = 200
BATCHES_TOGETHER = 64  # batches that are written in one step: one wait for the disk for all
TICK = 1.0  # seconds between two looks at what is to be tidied
COMPACT_SECONDS, RETAIN_SECONDS = 60.0, 3_600.0  # seconds between two such works
WAITING_QUERY = "SELECT content FROM waiting"
WITHIN_PERIOD = "WHERE last >= :after AND first < :before"
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
# A batch of calls is in `waiting` when it is acknowledged, and later in a Parquet file; `first`
# and `last` are the earliest and the latest time in it, in microseconds since 1970. `seen` holds
# a hash of the trace and the span of each call that is kept, `batch` one of each recent body.
TABLES = """
CREATE TABLE file (
    number INTEGER PRIMARY KEY, day TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
    calls INTEGER NOT NULL, bytes INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL
);
CREATE INDEX file_day ON file (day);
CREATE TABLE waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT, arrived REAL NOT NULL, calls INTEGER NOT NULL,
    bytes INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, content BLOB NOT NULL
);
CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE batch (digest BLOB PRIMARY KEY, arrived REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX batch_arrived ON batch (arrived);
CREATE TABLE mark (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, time INTEGER NOT NULL, UNIQUE (name, time)
);
CREATE TABLE counted (
    what TEXT NOT NULL, reason TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (what, reason)
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


check_layout = partial(
    require_layout,
    application=APPLICATION,
    layout=LAYOUT,
    written="the trace store was written",
    other="this SQLite database is not the catalogue of a trace store",
    fix="name the folder that findwell monitor serve or findwell monitor ingest made",
)
TRACES = DurableKind("traces", "TraceStore.open", check_layout)


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls that arrive together, with what is counted about the spans they were among."""

    frame: pl.DataFrame
    spans: int | None = None  # all that were sent; by default one per call
    malformed: Mapping[str, int] = field(default_factory=dict)
    digest: bytes | None = None  # of the body: the same body again is counted once


@dataclass(frozen=True, slots=True)
class Added:
    """What became of calls: `new` ones are kept, `repeated` ones are there already."""

    new: int = 0
    repeated: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)  # left out by a rule, by reason


@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch, and what the rules of intake leave of it."""

    batch: Batch
    kept: pl.DataFrame
    dropped: Mapping[str, int]
    keys: Sequence[bytes]  # of what is kept


def acknowledge(connection: sqlite3.Connection, arrivals: Sequence[Arrival]) -> list[Added]:
    """Keep the calls that are new, in the transaction of the caller."""
    added, frames = [], []
    for each in arrivals:
        calls = each.batch.frame.select(calls_among()).item()
        if each.batch.digest is not None:
            seen = (each.batch.digest, time.time())
            if not connection.execute("INSERT OR IGNORE INTO batch VALUES (?, ?)", seen).rowcount:
                added.append(Added(0, calls, each.dropped))  # the same body has arrived before
                connection.execute(COUNT, (REPEATED, "", calls))
                continue
        new = each.kept.filter(pl.Series(_note_new(connection, each.keys), dtype=pl.Boolean))
        frames += [new] if new.height else []
        kept, found = (table.select(calls_among()).item() for table in (new, each.kept))
        added.append(Added(kept, found - kept, each.dropped))
        spans = calls if each.batch.spans is None else each.batch.spans
        numbers = [(SPANS, "", spans), (REPEATED, "", found - kept)]
        numbers += [(MALFORMED, *pair) for pair in each.batch.malformed.items()]
        numbers += [(DROPPED, *pair) for pair in each.dropped.items()]
        connection.executemany(COUNT, [number for number in numbers if number[-1]])
    if frames:
        let_wait(connection, pl.concat(frames))
    connection.execute("DELETE FROM batch WHERE arrived < ?", (time.time() - RECOGNISED_SECONDS,))
    return added


def check_calls(frame: pl.DataFrame) -> None:
    """Raise unless this is a table of calls."""
    if frame.schema != TRACE_SCHEMA:
        wrong = [name for name, dtype in TRACE_SCHEMA.items() if frame.schema.get(name) != dtype]
        raise InputError(
            f"this is not a table of calls: {', '.join(wrong) or 'other columns'}",
            fix="give what findwell.io.read.traces.decode or read_traces returns",
        )
    if frame.select(pl.any_horizontal(pl.col("trace", "span", "time").is_null()).any()).item():
        raise InputError("a call has no trace, span or time", fix="leave such calls out")


def _note_new(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[bool]:
    """Tell which keys are there for the first time, and note them."""
    known: set[bytes] = set()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[start : start + KEYS_AT_ONCE]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"SELECT key FROM seen WHERE key IN ({marks})", some)  # noqa: S608
        known.update(key for (key,) in rows)
    new = []
    for key in keys:
        new.append(key not in known)
        known.add(key)
    fresh = sorted(key for key, each in zip(keys, new, strict=True) if each)
    connection.executemany("INSERT INTO seen VALUES (?)", [(key,) for key in fresh])
    return new


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
        self._catalogue = DurableFile(path / FILE, TRACES, timeout=timeout)
        self._files = StoreFiles(path, self._catalogue)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        rules: IntakeRules | None = None,
        timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """Open the folder of a store; with `create`, make one if it is missing.

        `rules` say which parts of new calls are kept. `timeout` is how many seconds to wait for
        other processes that write.
        """
        refuse_after_fork()
        found = Path(path)
        if not (found / FILE).is_file():
            if not create:
                raise InputError(
                    "there is no trace store here",
                    where=str(found),
                    fix="name the folder that findwell monitor serve or findwell monitor ingest "
                    "made",
                )
            _make(found)
        return cls(found, rules=rules or IntakeRules(), timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TraceStore({str(self.path)!r})"

    def close(self) -> None:
        """Close the catalogue."""
        self._catalogue.close()

    # adding

    def add(self, frame: pl.DataFrame) -> Added:
        """Keep calls; they are on disk when this returns."""
        return self.add_batches([Batch(frame)])[0]

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
        with self._catalogue.writing() as connection:
            added = acknowledge(connection, arrivals)
        with contextlib.suppress(SaveError):  # what is acknowledged waits in the catalogue
            self._files.flush(due=not tidied, most=BEHIND_BYTES if tidied else 0)
        return added

    # files

    def flush(self, *, due: bool = False) -> int:
        """Put the calls that wait in the catalogue into files; return how many.

        With `due`, only if they are many or have waited long.
        """
        return self._files.flush(due=due)

    def compact(self) -> int:
        """Put small files of a day together; return how many files there are fewer."""
        return self._files.compact()

    def retain(self, keep: timedelta | str) -> int:
        """Delete the days that ended longer ago than this, and do not take in what is older.

        Returns how many calls are deleted. `keep` is written like 90d, 12h or 4w.
        """
        self.keep = keep if isinstance(keep, timedelta) else parse_period(keep)
        self.flush()
        return self._files.delete_before(datetime.now(UTC) - self.keep)

    # reading

    def scan(self, since: datetime | None = None, until: datetime | None = None) -> pl.LazyFrame:
        """Return the calls that began at `since` or later and before `until`, as a lazy table.

        Nothing that others add or put together later changes what it gives. The calls of a trace
        may have arrived in any order: hops are counted, and retrievers inside of others left out,
        over all that began up to a day before `since`.
        """
        after = None if since is None else in_utc(since) - LONGEST_TRACE
        before = None if until is None else in_utc(until)
        calls = pl.concat(self._parts(after, before))
        if after is not None:
            calls = calls.filter(pl.col("time") >= after)
        if before is not None:
            calls = calls.filter(pl.col("time") < before)
        calls = with_hops(without_inner(calls))
        return calls if since is None else calls.filter(pl.col("time") >= in_utc(since))

    def _parts(self, after: datetime | None, before: datetime | None) -> list[pl.LazyFrame]:
        """Return the tables that may hold calls of this time, as they are at one moment."""
        limits = {
            "after": -(2**62) if after is None else microseconds(after),
            "before": 2**62 if before is None else microseconds(before),
        }
        while True:
            with self._catalogue.reading() as connection, contextlib.suppress(FileNotFoundError):
                # else one was put together with others since the catalogue was read
                listed = connection.execute(
                    f"{LISTED_FILES} {WITHIN_PERIOD} ORDER BY day, first", limits
                )
                scans = self._scans([DayFile(*row) for row in listed])
                rows = connection.execute(f"{WAITING_QUERY} {WITHIN_PERIOD}", limits)
                waiting = [unpacked(content).lazy() for (content,) in rows]
                return [TRACE_SCHEMA.to_frame().lazy(), *scans, *waiting]

    def _scans(self, files: Sequence[DayFile]) -> list[pl.LazyFrame]:
        """Open small files, which may be replaced at any time; large ones stay under their name."""
        small = [each for each in files if each.bytes < SMALL_FILE][-OPEN_FILES:]
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

    def calls(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Return the calls of a table with time, trace and span, in its order, with its columns."""
        first, last = keys["time"].min(), keys["time"].max()
        if isinstance(first, datetime) and isinstance(last, datetime):
            calls = self.scan(first, last + MICROSECOND)
        else:  # there is no key
            calls = self.scan().head(0)
        found = calls.join(keys.lazy().select("trace", "span"), on=["trace", "span"], how="semi")
        rest = found.collect().drop("time")
        return keys.join(rest, on=["trace", "span"], how="inner", maintain_order="left")

    def calls_about(self, since: datetime | None = None, until: datetime | None = None) -> int:
        """Return about how many calls began in a time, by what the catalogue says of its files."""
        start = -(2**62) if since is None else microseconds(since)
        end = 2**62 if until is None else microseconds(until)
        with self._catalogue.reading() as connection:
            limits = {"after": start, "before": end}
            rows = connection.execute(f"{SPREAD} {WITHIN_PERIOD}", limits).fetchall()
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
        with self._catalogue.reading() as connection:
            totals = connection.execute(TOTALS).fetchone()
            counted: dict[str, Counter[str]] = {}
            for what, reason, number in connection.execute("SELECT * FROM counted"):
                counted.setdefault(what, Counter())[reason] = number
        calls, first, last, files, size = totals
        for ending in ("", "-wal"):
            with contextlib.suppress(OSError):
                size += (self.path / f"{FILE}{ending}").stat().st_size
        return StoreCounts(
            calls=calls,
            spans=counted.get(SPANS, Counter())[""],
            repeated=counted.get(REPEATED, Counter())[""],
            malformed=dict(counted.get(MALFORMED, {})),
            dropped=dict(counted.get(DROPPED, {})),
            first=_moment(first),
            last=_moment(last),
            files=files,
            bytes=size,
        )

    # marks and states

    def mark(self, name: str, time: datetime | None = None) -> Mark:
        """Name a point in time, now by default: a release, a new index."""
        name = name.strip()
        if not name or len(name) > MARK_LETTERS or not name.isprintable():
            raise OptionError(
                "the name of a mark is one line of text, up to 200 characters",
                fix='name it, such as "v2.3 chunker"',
            )
        mark = Mark(name, in_utc(time or datetime.now(UTC)))
        with self._catalogue.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO mark (name, time) VALUES (?, ?)",
                (mark.name, microseconds(mark.time)),
            )
        return mark

    def marks(self) -> list[Mark]:
        """Return the marks, the earliest first."""
        rows = self._catalogue.rows("SELECT name, time FROM mark ORDER BY time, number")
        return [Mark(name, EPOCH + timedelta(microseconds=each)) for name, each in rows]

    def state(self, name: str) -> Any:  # noqa: ANN401
        """Return what was saved under a name, such as the state of alarms; None if nothing."""
        rows = self._catalogue.rows("SELECT value FROM state WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    @contextlib.contextmanager
    def changing_states(self, *names: str) -> Iterator[list[dict[str, Any]]]:
        """Read states, change them and save all of them or none, while no other process does."""
        with self._catalogue.writing() as connection:
            query = "SELECT value FROM state WHERE name = ?"
            rows = [connection.execute(query, (name,)).fetchone() for name in names]
            values: list[dict[str, Any]] = [json.loads(row[0]) if row else {} for row in rows]
            yield values
            saved = [(name, json.dumps(value)) for name, value in zip(names, values, strict=True)]
            connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", saved)


def is_trace_store(path: object) -> bool:
    """Tell whether a path is the folder of a trace store, by what it holds."""
    if not isinstance(path, str | os.PathLike):
        return False
    return (Path(path) / FILE).is_file() and (Path(path) / FOLDER).is_dir()


def _make(path: Path) -> None:
    try:
        # what another process just makes there is not foreign
        foreign = (
            each.name
            for each in (path.iterdir() if path.is_dir() else ())
            if each.name != FOLDER and not each.name.startswith((".findwell-", FILE))
        )
        if any(foreign):
            raise SaveError(
                "the folder holds something else",
                where=str(path),
                fix="name a new folder for the trace store",
            )
        make_folder(path / FOLDER)
        draft = path / f".findwell-{secrets.token_hex(8)}"
        with removed_at_the_end(draft):
            create_durable(draft, TRACES, TABLES, application=APPLICATION, layout=LAYOUT, rows={})
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.link(draft, path / FILE)  # a rename would replace that of the other
    except OSError as error:
        raise SaveError(
            f"the trace store cannot be made: {error.strerror}",
            where=str(path),
            fix="name a folder on a disk that you may write to",
        ) from None


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


Entry: TypeAlias = "tuple[Batch, Future[Added]]"


class StoreWriter:
    """Writes batches one after another; its answer to each is given when it is on disk.

    A second thread puts what was written into files, and old days away, so that no one waits for
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
                    if len(entries) == BATCHES_TOGETHER:
                        break
                    entry = self._entries.get_nowait()
                else:
                    ending = True
            if entries:
                self._write(entries)

    def _write(self, entries: list[Entry]) -> None:
        try:
            added = self._store.add_batches([batch for batch, _ in entries], tidied=True)
        except BaseException as error:  # noqa: BLE001 - the callers that wait must know, whatever it is
            for _, answer in entries:
                answer.set_exception(error)
        else:
            for (_, answer), each in zip(entries, added, strict=True):
                answer.set_result(each)

    def _tidy_all(self) -> None:
        works: list[list[Any]] = [[0.0, TICK, lambda: self._store.flush(due=True)]]
        works.append([0.0, COMPACT_SECONDS, self._store.compact])
        if self._keep is not None:
            works.append([0.0, RETAIN_SECONDS, partial(self._store.retain, self._keep)])
        while not self._ended.wait(TICK):
            for work in works:
                if time.monotonic() >= work[0]:
                    with contextlib.suppress(FindwellError):  # tried again the next time
                        work[2]()
                    work[0] = time.monotonic() + work[1]
