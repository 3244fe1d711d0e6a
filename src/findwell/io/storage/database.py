"""SQLite files that several processes share: caches, and databases that lose nothing.

All have a write-ahead log: what was committed survives the death of the process, and readers do not
wait for writers. A `Database` is a cache, whose contents can be computed again. A `DurableFile`
holds what people said or systems did: it is on the disk before a call returns.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, InputError, SaveError
from findwell.io.storage.files import create_file, make_folder

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE_TIMEOUT, BUSY_TIMEOUT = 60.0, 20.0  # seconds to wait for another process that writes
KEYS = 500  # in one query
DAMAGED_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
LOCKED_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
FULL_CODES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


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


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextlib.contextmanager
def _opened(
    place: str | Path,
    timeout: float,
    failure: Callable[[sqlite3.Error], FindwellError],
    *,
    uri: bool = False,
) -> Iterator[sqlite3.Connection]:
    """Open a file for code that prepares it; if that fails, close it and raise findwell's error."""
    connection = None
    try:
        connection = sqlite3.connect(
            place,
            uri=uri,
            timeout=timeout,
            isolation_level=None,  # each statement is committed by itself
            check_same_thread=False,  # one thread at a time, but not always the same one
        )
        yield connection
    except (sqlite3.Error, FindwellError) as error:
        if connection is not None:
            connection.close()
        raise error if isinstance(error, FindwellError) else failure(error) from None


def _write_ahead(connection: sqlite3.Connection, synchronous: str) -> None:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if _code(error) not in LOCKED_CODES:
            raise  # otherwise another process has the file, and sets the mode, or has set it
    connection.execute(f"PRAGMA synchronous = {synchronous}")


def _create(connection: sqlite3.Connection, statements: str) -> None:
    """Begin a transaction, one process at a time, and create the tables in it."""
    connection.execute("BEGIN EXCLUSIVE")
    statement = ""
    for part in statements.split(";"):  # not at those inside a trigger
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    if statement.strip(" \n;"):
        connection.execute(statement)


@dataclass(frozen=True, slots=True)
class Database:
    """A cache of tables in a file, or without a path in memory; its failures are our errors."""

    path: Path | None
    holds: str  # what is in it, for messages: "vectors"
    tables: str  # the statements that make them
    layout: int  # raised when the tables change

    def open(self) -> sqlite3.Connection:
        """Open the file, creating it if there is none."""
        try:
            if self.path is not None:
                make_folder(self.path.parent)
                create_file(self.path)
        except OSError as error:
            raise self._unusable(str(error.strerror)) from None
        with _opened(self.path or ":memory:", CACHE_TIMEOUT, self.failure) as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, self.layout):
                raise InputError(
                    f"the cache of {self.holds} has layout {found}, this findwell knows "
                    f"{self.layout}",
                    where=str(self.path),
                    fix="delete the file, or name another folder with FINDWELL_CACHE_DIR",
                )
            _write_ahead(connection, "NORMAL")
            if found != self.layout:
                _create(connection, self.tables)
                connection.execute(f"PRAGMA user_version = {self.layout}")
                connection.execute("COMMIT")
        return connection

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
        if _code(error) in DAMAGED_CODES:
            what = f"the cache of {self.holds} is damaged: {error}"
            fix = "delete the file; its contents are computed again"
            return InputError(what, where=str(self.path), fix=fix)
        return self._unusable(str(error))

    def _unusable(self, reason: str) -> SaveError:
        what = f"the cache of {self.holds} cannot be used: {reason}"
        fix = "set FINDWELL_CACHE_DIR to a folder on a local disk that you may write to"
        return SaveError(what, where=str(self.path or "memory"), fix=fix)


@dataclass(frozen=True, slots=True)
class DurableKind:
    """What a durable file holds, for messages, and how one is told from another."""

    holds: str  # "labels"
    reopen: str  # how it is opened again
    check: Callable[[sqlite3.Connection, Path], None]  # raises if it is another kind, or newer

    def failure(self, error: sqlite3.Error, path: Path) -> FindwellError:
        """Say what is wrong with the file and what to do; what was saved before is not lost."""
        code, where = _code(error), str(path)
        if code in DAMAGED_CODES:
            return InputError(
                f"the database of {self.holds} is damaged: {error}",
                where=where,
                fix="keep the file; sqlite3 FILE .recover saves what is whole",
            )
        what = f"the database of {self.holds} cannot be used: {error}"
        fix = "check who may read and write the file and its folder"
        if code in LOCKED_CODES:
            what = f"the database of {self.holds} is locked by another process"
            fix = "close it there, then try again; this was not saved, everything before was"
        elif code in FULL_CODES:
            what = f"the disk has no room for more {self.holds}: {error}"
            fix = "free some space, then try again; this was not saved, everything before was"
        return SaveError(what, where=where, fix=fix)


class DurableFile:
    """An open file of that kind; its failures are findwell's errors."""

    def __init__(self, path: Path, kind: DurableKind, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.path = path
        self.kind = kind
        self._lock = threading.RLock()  # threads of a server share the connection
        place = f"{path.absolute().as_uri()}?mode=rw"
        with _opened(place, timeout, lambda error: kind.failure(error, path), uri=True) as file:
            kind.check(file, path)
            _write_ahead(file, "FULL")
            file.execute("PRAGMA foreign_keys = ON")
        self._connection = file

    def close(self) -> None:
        """Close the file; the last one to do so puts everything into the one file."""
        with self._lock:
            self._connection.close()

    def writing(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Write all of it or nothing; on disk when this ends without an error.

        Inside of another `writing` it is a part of that.
        """
        return self._transaction("BEGIN IMMEDIATE", "COMMIT")

    def reading(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Read several things as they are at one moment."""
        return self._transaction("BEGIN", "ROLLBACK")

    @contextlib.contextmanager
    def _transaction(self, begin: str, end: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._failing():
            inside = self._connection.in_transaction
            if inside:
                yield self._connection
                return
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute(end)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def rows(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._lock, self._failing():
            return self._connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed" not in str(error):
                raise
            what = f"the {self.kind.holds} are closed"
            fix = f"open them again: {self.kind.reopen}"
            raise SaveError(what, where=str(self.path), fix=fix) from None
        except sqlite3.Error as error:
            raise self.kind.failure(error, self.path) from None


def create_durable(
    path: Path,
    kind: DurableKind,
    statements: str,
    *,
    application: int,
    layout: int,
    rows: Mapping[str, Sequence[Sequence[object]]],
) -> None:
    """Make a new file with these tables and rows of them, whole or not at all."""
    create_file(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            _create(connection, statements)
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {layout}")
            for table, several in rows.items():
                if several:
                    marks = ", ".join("?" * len(several[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", several)  # noqa: S608
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise kind.failure(error, path) from None
