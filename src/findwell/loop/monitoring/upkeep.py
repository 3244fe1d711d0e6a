"""What waits in the catalogue goes into files, small files become large ones, old days go.

Files are written without holding up those who add calls: only then, in one step of the catalogue,
they take the place of what they were made of, if that is still there. So several processes may do
this at once, and whichever dies leaves nothing but a file that nobody knows.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from findwell.core.errors import OptionError, SaveError
from findwell.loop.monitoring.arrivals import call_keys, let_wait, unpacked
from findwell.loop.monitoring.day_files import (
    DayFile,
    clear_unknown,
    delete_files,
    draft_of_day,
    drafts_of_days,
    publish,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from findwell.io.storage.database import DurableFile

WAITING_BYTES = 16 << 20  # in the catalogue before they are put into files
BEHIND = 4 * WAITING_BYTES  # beyond that, who adds calls must wait
WAITING_PARTS = 256  # that are read one by one: more are put together
WAITING_SECONDS = 600.0
SMALL, MANY = 8 << 20, 12  # so many files of a day that are smaller than that become one
MERGED = 64 << 20  # bytes of files that are put together at once
SETTLED = 3_600.0  # seconds after which a day that is over is put together
LISTED = "SELECT day, name, calls, bytes, first, last FROM file"


class Upkeep:
    """The work on the files of one store."""

    def __init__(self, store: Path, catalogue: DurableFile) -> None:
        self._store = store
        self._catalogue = catalogue
        self._cleared = False

    def flush(self, *, due: bool = False, most: int = 0) -> int:
        """Put the calls that wait into files, with `due` only if they are many or old.

        With `most`, only if they are more than so many bytes.
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
        with (
            drafts_of_days(self._store, calls) as drafts,
            self._catalogue.writing() as connection,
        ):
            self._clear(connection)
            (left,) = connection.execute(
                "SELECT count(*) FROM waiting WHERE number BETWEEN ? AND ?", part
            ).fetchone()
            if left != len(numbers):
                return 0
            connection.execute("DELETE FROM waiting WHERE number BETWEEN ? AND ?", part)
            _list_files(connection, [each.file for each in drafts])
            publish(self._store, drafts)
        return sum(each.file.calls for each in drafts)

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
        """Delete what killed processes left, once: no other process names files meanwhile."""
        if not self._cleared:
            clear_unknown(self._store, [DayFile(*row) for row in connection.execute(LISTED)])
            self._cleared = True

    def compact(self) -> int:
        """Put small files of a day together; return how many files there are fewer."""
        today = datetime.now(UTC).date().isoformat()
        fewer = 0
        days: dict[str, list[DayFile]] = {}
        for each in self._files("WHERE bytes < ?", SMALL):
            days.setdefault(each.day, []).append(each)
        for day, files in days.items():
            if len(files) >= MANY or (day < today and len(files) > 1 and self._settled(files)):
                fewer += self._merge(day, files)
        return fewer

    def _settled(self, files: Iterable[DayFile]) -> bool:
        """Tell whether nothing was added to a day of late."""
        with contextlib.suppress(OSError):
            written = max(each.path(self._store).stat().st_mtime for each in files)
            return time.time() - written > SETTLED
        return False

    def _merge(self, day: str, files: Sequence[DayFile]) -> int:
        taken, total = [], 0
        for each in files:
            taken.append(each)
            total += each.bytes
            if total >= MERGED:
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
                _list_files(connection, [draft.file])
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
        rows = self._catalogue.rows(f"{LISTED} {where} ORDER BY day, first, name", (value,))
        return [DayFile(*row) for row in rows]


def _list_files(connection: sqlite3.Connection, files: Iterable[DayFile]) -> None:
    connection.executemany(
        "INSERT INTO file (day, name, calls, bytes, first, last) VALUES (?, ?, ?, ?, ?, ?)",
        [astuple(each) for each in files],
    )


def parse_period(text: str) -> timedelta:
    """Return a length of time.

    >>> parse_period("90d"), parse_period("12h"), parse_period("4w")
    (datetime.timedelta(days=90), datetime.timedelta(seconds=43200), datetime.timedelta(days=28))
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*([hdw])\s*", text.lower(), re.ASCII)
    if found is None or not int(found[1]):
        raise OptionError(
            f"{text!r} is not a length of time",
            fix="write a number of hours, days or weeks, such as 12h, 90d or 4w",
        )
    unit = {"h": "hours", "d": "days", "w": "weeks"}[found[2]]
    return timedelta(**{unit: int(found[1])})
