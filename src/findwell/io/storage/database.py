"""The cache folder, and the SQLite files in it that several processes may share."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from findwell.core.errors import FindwellError, InputError, SaveError
from findwell.io.storage.private import create_file, make_folder

BUSY_TIMEOUT = 60.0  # seconds to wait for another process that writes
KEYS = 500  # in one query
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def cache_folder() -> Path:
    """Return `$FINDWELL_CACHE_DIR`, or the folder that the system has for caches."""
    if chosen := os.environ.get("FINDWELL_CACHE_DIR", ""):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        roaming = os.environ.get("LOCALAPPDATA", "") or Path.home() / "AppData" / "Local"
        return Path(roaming) / "findwell" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "findwell"
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "findwell"


@dataclass(frozen=True, slots=True)
class Database:
    """A file of tables, or without a path tables in memory; its failures are findwell's errors."""

    path: Path | None
    holds: str  # what is in it, for messages: "vectors"
    tables: str  # the statements that make them
    layout: int  # raised when the tables change

    def open(self) -> sqlite3.Connection:
        """Open the file, creating it if there is none; each statement is committed by itself.

        With a write-ahead log, what was committed survives the death of the process, and readers
        do not wait for writers.
        """
        connection = None
        try:
            if self.path is not None:
                make_folder(self.path.parent)
                create_file(self.path)
            connection = sqlite3.connect(
                self.path or ":memory:",
                timeout=BUSY_TIMEOUT,
                isolation_level=None,
                check_same_thread=False,  # one thread at a time, but not always the same one
            )
            self._prepare(connection)
        except (OSError, sqlite3.Error, FindwellError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, OSError):
                raise self._unusable(str(error.strerror)) from None
            raise error if isinstance(error, FindwellError) else self.failure(error) from None
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, self.layout):
            raise InputError(
                f"the cache of {self.holds} has layout {found}, this findwell knows {self.layout}",
                where=str(self.path),
                fix="delete the file, or name another folder with FINDWELL_CACHE_DIR",
            )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise  # otherwise another process has the file, and the next one sets the mode
        connection.execute("PRAGMA synchronous = NORMAL")
        if found == self.layout:
            return
        connection.execute("BEGIN EXCLUSIVE")  # one process at a time creates the tables
        for statement in self.tables.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {self.layout}")
        connection.execute("COMMIT")

    @staticmethod
    def find(
        connection: sqlite3.Connection, query: str, values: Sequence[object], keys: Sequence[bytes]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that ends in `KEY IN`; `values` are those of its other `?`."""
        for start in range(0, len(keys), KEYS):
            some = keys[start : start + KEYS]
            marks = ",".join("?" * len(some))
            yield from connection.execute(f"{query} ({marks})", (*values, *some))

    def failure(self, error: sqlite3.Error) -> FindwellError:
        """Say what is wrong with the file, and what to do about it."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in DAMAGED:
            return InputError(
                f"the cache of {self.holds} is damaged: {error}",
                where=str(self.path),
                fix="delete the file; its contents are computed again",
            )
        return self._unusable(str(error))

    def _unusable(self, reason: str) -> SaveError:
        return SaveError(
            f"the cache of {self.holds} cannot be used: {reason}",
            where=str(self.path or "memory"),
            fix="set FINDWELL_CACHE_DIR to a folder on a local disk that you may write to",
        )
