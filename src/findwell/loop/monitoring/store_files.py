"""The Parquet files of a trace store: one folder per day, each file whole or not at all there.

What waits in the catalogue goes into files, small files become large ones, old days go. Files are
written without holding up those who add calls: only then, in one step of the catalogue, they
replace what they were made of, if that is still there. So several processes may do this at
once, and a crash leaves at most one unreferenced file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import secrets
import time
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from findwell.core.errors import InputError, SaveError
from findwell.core.frames import pl
from findwell.io.read.traces.schema import calls_among
from findwell.io.storage.files import create_file, make_folder, removed_at_the_end

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from findwell.io.storage.database import DurableFile

WAITING_BYTES = 16 << 20  # in the catalogue before they are put into files
BEHIND_BYTES = 4 * WAITING_BYTES  # beyond that, adding calls has to wait
WAITING_PARTS = 256  # that are read one by one: more are put together
WAITING_SECONDS = 600.0
SMALL_FILE, MANY_FILES = 8 << 20, 12  # bytes of a small file, and how many of a day become one
MERGED_BYTES = 64 << 20  # bytes of files that are put together at once
SETTLED_SECONDS = 3_600.0  # seconds after which a day that is over is put together
LISTED_FILES = "SELECT day, name, calls, bytes, first, last FROM file"
FOLDER = "queries"
GROUP = 16_384  # calls in a group of rows: what is read at once
ABANDONED_SECONDS = 3_600  # seconds after which the draft of another process is abandoned
NAMES = re.compile(r"calls-[0-9a-f]{16}\.parquet")
DAYS = re.compile(r"[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
DRAFTS = re.compile(r"\.findwell-[0-9a-f]{16}\.draft")


WAIT = """
INSERT INTO waiting (arrived, calls, bytes, first, last, content) VALUES (?, ?, ?, ?, ?, ?)
"""


def call_keys(frame: pl.DataFrame) -> list[bytes]:
    """Return a hash of trace and span for each call: what distinguishes calls."""
    names = frame.select(pl.concat_str("trace", pl.lit("\0"), "span")).to_series().to_list()
    return [hashlib.blake2b(each.encode(), digest_size=16).digest() for each in names]


def let_wait(
    connection: sqlite3.Connection, calls: pl.DataFrame, *, arrived: float | None = None
) -> None:
    """Keep calls in the catalogue until they are put into a file."""
    content = io.BytesIO()
    calls.write_ipc_stream(content, compression="lz4")
    times = calls["time"].to_physical()
    size = content.getbuffer().nbytes
    since = time.time() if arrived is None else arrived
    count = calls.select(calls_among()).item()
    row = (since, count, size, times.min(), times.max(), content.getvalue())
    connection.execute(WAIT, row)


def unpacked(content: bytes) -> pl.DataFrame:
    """Return the calls of what waits."""
    return pl.read_ipc_stream(content)


@dataclass(frozen=True, slots=True)
class DayFile:
    """A file of calls that began on one day, in UTC."""

    day: str  # 2026-11-16
    name: str
    calls: int
    bytes: int
    first: int  # microseconds since 1970
    last: int

    def __post_init__(self) -> None:
        """Refuse a name that leads out of the store: a catalogue may be a stranger's."""
        if not (DAYS.fullmatch(self.day) and NAMES.fullmatch(self.name)):
            raise InputError(
                f"the store's catalogue lists a file that does not hold calls: {self.name!r}",
                where=f"day={self.day}",
                fix="ask the person who made the store; nothing was read or deleted",
            )

    def path(self, store: Path) -> Path:
        """Return where it is."""
        return day_folder(store, self.day) / self.name

    def draft(self, store: Path) -> Path:
        """Return where it is until it has its name: a reader of its day must find only Parquet."""
        return store / f".findwell-{self.name[6:22]}.draft"


def day_folder(store: Path, day: str) -> Path:
    """Return the folder of a day, named as readers of partitioned files expect."""
    return store / FOLDER / f"day={day}"


@contextlib.contextmanager
def drafts_of_days(store: Path, calls: pl.DataFrame) -> Iterator[list[DayFile]]:
    """Write calls to drafts, one per day; those that were not published are deleted in the end."""
    drafts: list[DayFile] = []
    parts = calls.with_columns(day=pl.col("time").dt.date().cast(pl.String)).partition_by(
        "day", as_dict=True, include_key=False
    )
    with contextlib.ExitStack() as held:
        for (day,), part in parts.items():
            ordered = part.sort("time", "trace", "span")
            drafts.append(held.enter_context(draft_of_day(store, str(day), ordered.lazy())))
        yield drafts


@contextlib.contextmanager
def draft_of_day(store: Path, day: str, calls: pl.LazyFrame) -> Iterator[DayFile]:
    """Write the draft of a file of one day, which is on disk then."""
    key = secrets.token_hex(8)
    path = store / f".findwell-{key}.draft"
    with removed_at_the_end(path):
        with _raising_unsaved(day, store):
            create_file(path)
            calls.sink_parquet(path, compression="zstd", row_group_size=GROUP, statistics=True)
            _on_disk(path)
            about = pl.scan_parquet(path).select(
                calls_among(), first=pl.col("time").min(), last=pl.col("time").max()
            )
            count, first, last = about.cast(pl.Int64).collect().row(0)
            size = path.stat().st_size
        yield DayFile(day, f"calls-{key}.parquet", count, size, first, last)


def publish(store: Path, drafts: Sequence[DayFile]) -> None:
    """Give drafts their names. While this is done no other process may clear files away."""
    for each in drafts:
        folder = day_folder(store, each.day)
        with _raising_unsaved(each.day, folder):
            make_folder(folder)
            each.draft(store).rename(each.path(store))
            for named in (folder, folder.parent, store):  # names must last, too
                _on_disk(named)


@contextlib.contextmanager
def _raising_unsaved(day: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise SaveError(
            f"the calls of {day} could not be written to a file: {reason}",
            where=str(folder),
            fix="free some space; they stay in the catalogue, and it is tried again",
        ) from None


def delete_files(store: Path, files: Iterable[DayFile]) -> None:
    """Delete files, and the folders of days that are empty then."""
    for each in files:
        with contextlib.suppress(OSError):
            each.path(store).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            day_folder(store, each.day).rmdir()


def _on_disk(path: Path) -> None:
    """Have a file, or the names in a folder, survive the loss of power."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class StoreFiles:
    """The work on the files of one store."""

    def __init__(self, store: Path, catalogue: DurableFile) -> None:
        self._store = store
        self._catalogue = catalogue
        self._cleared = False

    def flush(self, *, due: bool = False, most: int = 0) -> int:
        """Put the calls that wait into files, with `due` only if they are many or old.

        With `most`, only if they are more bytes than that.
        """
        moved = 0
        while waiting := self._waiting(due=due, most=most):
            moved += self._flush(waiting)
        return moved

    def _waiting(self, *, due: bool, most: int) -> list[int]:
        """Return the numbers of the parts that go into files next, bounded by their bytes."""
        parts = self._catalogue.rows("SELECT number, bytes, arrived FROM waiting ORDER BY number")
        if not parts:
            return []
        waiting = sum(size for _, size, _ in parts)
        if waiting < most:
            return []
        large = waiting >= WAITING_BYTES
        long = time.time() - parts[0][2] >= WAITING_SECONDS
        if due and not large and not long:
            if len(parts) >= WAITING_PARTS:
                self._put_together()
            return []
        taken, total = [], 0
        for number, size, _ in parts:
            taken.append(number)
            total += size
            if total >= WAITING_BYTES:
                break
        return taken

    def _flush(self, numbers: Sequence[int]) -> int:
        part = (numbers[0], numbers[-1])
        contents = self._catalogue.rows(
            "SELECT number, content FROM waiting WHERE number BETWEEN ? AND ? ORDER BY number", part
        )
        if [number for number, _ in contents] != list(numbers):
            return 0  # another process was faster
        calls = pl.concat([unpacked(content) for _, content in contents])
        with drafts_of_days(self._store, calls) as drafts, self._catalogue.writing() as connection:
            self._clear(connection)
            (left,) = connection.execute(
                "SELECT count(*) FROM waiting WHERE number BETWEEN ? AND ?", part
            ).fetchone()
            if left != len(numbers):
                return 0
            connection.execute("DELETE FROM waiting WHERE number BETWEEN ? AND ?", part)
            _list_files(connection, drafts)
            publish(self._store, drafts)
        return sum(each.calls for each in drafts)

    def _put_together(self) -> None:
        """Make one part of the many small ones that wait."""
        with self._catalogue.writing() as connection:
            rows = connection.execute("SELECT content, arrived FROM waiting ORDER BY number")
            parts = rows.fetchall()
            if len(parts) < WAITING_PARTS:
                return
            connection.execute("DELETE FROM waiting")
            calls = pl.concat([unpacked(content) for content, _ in parts])
            let_wait(connection, calls, arrived=parts[0][1])

    def _clear(self, connection: sqlite3.Connection) -> None:
        """Delete what killed processes left, once: files of ours that the catalogue does not know.

        No other process names files meanwhile.
        """
        if self._cleared:
            return
        known = {DayFile(*row).path(self._store) for row in connection.execute(LISTED_FILES)}
        long_ago = time.time() - ABANDONED_SECONDS
        with contextlib.suppress(OSError):
            for path in (self._store / FOLDER).glob("day=*/*"):
                if NAMES.fullmatch(path.name) and path not in known:
                    path.unlink()
            for path in self._store.iterdir():
                if DRAFTS.fullmatch(path.name) and path.stat().st_mtime < long_ago:
                    path.unlink()
        self._cleared = True

    def compact(self) -> int:
        """Put small files of a day together; return how many files there are fewer."""
        today = datetime.now(UTC).date().isoformat()
        fewer = 0
        days: dict[str, list[DayFile]] = {}
        for each in self._files("WHERE bytes < ?", SMALL_FILE):
            days.setdefault(each.day, []).append(each)
        for day, files in days.items():
            if len(files) >= MANY_FILES or (
                day < today and len(files) > 1 and self._settled(files)
            ):
                fewer += self._merge(day, files)
        return fewer

    def _settled(self, files: Iterable[DayFile]) -> bool:
        """Tell whether nothing was added to a day recently."""
        with contextlib.suppress(OSError):
            written = max(each.path(self._store).stat().st_mtime for each in files)
            return time.time() - written > SETTLED_SECONDS
        return False

    def _merge(self, day: str, files: Sequence[DayFile]) -> int:
        taken, total = [], 0
        for each in files:
            taken.append(each)
            total += each.bytes
            if total >= MERGED_BYTES:
                break
        calls = pl.scan_parquet([each.path(self._store) for each in taken], hive_partitioning=False)
        names = [each.name for each in taken]
        try:
            with (
                draft_of_day(self._store, day, calls) as draft,
                self._catalogue.writing() as connection,
            ):
                listed = {name for (name,) in connection.execute("SELECT name FROM file")}
                if not listed.issuperset(names):  # another process was faster
                    return 0
                connection.executemany("DELETE FROM file WHERE name = ?", [(n,) for n in names])
                _list_files(connection, [draft])
                publish(self._store, [draft])
        except SaveError:
            if all(each.path(self._store).exists() for each in taken):
                raise
            return 0  # another process has put them together
        delete_files(self._store, taken)
        return len(taken) - 1

    def delete_before(self, moment: datetime) -> int:
        """Delete the days that ended before a moment; return how many calls that were."""
        old = self._files("WHERE day < ?", moment.astimezone(UTC).date().isoformat())
        for each in old:
            keys: list[bytes] = []
            with contextlib.suppress(OSError, pl.exceptions.PolarsError):  # gone, or damaged
                calls = pl.scan_parquet(each.path(self._store), hive_partitioning=False)
                keys = call_keys(calls.select("trace", "span").collect())
            with self._catalogue.writing() as connection:
                connection.execute("DELETE FROM file WHERE name = ?", (each.name,))
                connection.executemany("DELETE FROM seen WHERE key = ?", [(key,) for key in keys])
            delete_files(self._store, [each])
        return sum(each.calls for each in old)

    def _files(self, where: str, value: object) -> list[DayFile]:
        rows = self._catalogue.rows(f"{LISTED_FILES} {where} ORDER BY day, first, name", (value,))
        return [DayFile(*row) for row in rows]


def _list_files(connection: sqlite3.Connection, files: Iterable[DayFile]) -> None:
    connection.executemany(
        "INSERT INTO file (day, name, calls, bytes, first, last) VALUES (?, ?, ?, ?, ?, ?)",
        [astuple(each) for each in files],
    )
