"""SQLite files that lose nothing: on disk before a call returns, safe for several writers."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, InputError, SaveError
from findwell.io.storage.private import create_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

BUSY_TIMEOUT = 20.0  # seconds to wait for another process that writes
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


@dataclass(frozen=True, slots=True)
class DurableKind:
    """What such a file holds, for messages, and how one is told from another."""

    holds: str  # "labels"
    reopen: str  # how it is opened again
    check: Callable[[sqlite3.Connection, Path], None]  # raises if it is another kind, or newer

    def failure(self, error: sqlite3.Error, path: Path) -> FindwellError:
        """Say what is wrong with the file and what to do; what was saved before is not lost."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = str(path)
        if code in DAMAGED:
            return InputError(
                f"the database of {self.holds} is damaged: {error}",
                where=where,
                fix="keep the file; sqlite3 FILE .recover saves what is whole",
            )
        if code in LOCKED:
            return SaveError(
                f"another process holds the database of {self.holds}, and does not let go",
                where=where,
                fix="end what has it open, then try again; this was not saved, all before it is",
            )
        if code in FULL:
            return SaveError(
                f"the disk takes no more {self.holds}: {error}",
                where=where,
                fix="free some space, then try again; this was not saved, all before it is",
            )
        return SaveError(
            f"the database of {self.holds} cannot be used: {error}",
            where=where,
            fix="check who may read and write the file and its folder",
        )


class DurableFile:
    """An open file of that kind; its failures are findwell's errors."""

    def __init__(self, path: Path, kind: DurableKind, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.path = path
        self.kind = kind
        self._lock = threading.RLock()  # threads of a server share the connection
        self._connection = _opened(path, kind, timeout)

    def close(self) -> None:
        """Close the file; the last one to do so puts everything into the one file."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write all of it or nothing; on disk when this ends without an error.

        Inside of another `writing` it is a part of that.
        """
        with self._lock, self._failing():
            inside = self._connection.in_transaction
            if inside:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read several things as they are at one moment."""
        with self._lock, self._failing():
            inside = self._connection.in_transaction
            if inside:
                yield self._connection
                return
            self._connection.execute("BEGIN")
            try:
                yield self._connection
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
            raise SaveError(
                f"the {self.kind.holds} are closed",
                where=str(self.path),
                fix=f"open them again: {self.kind.reopen}",
            ) from None
        except sqlite3.Error as error:
            raise self.kind.failure(error, self.path) from None


def _opened(path: Path, kind: DurableKind, timeout: float) -> sqlite3.Connection:
    connection = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        kind.check(connection, path)
        _prepare(connection)
    except (sqlite3.Error, FindwellError) as error:
        if connection is not None:
            connection.close()
        raise error if isinstance(error, FindwellError) else kind.failure(error, path) from None
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Have every commit on the disk before it returns, and readers not wait for writers."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in LOCKED:
            raise  # otherwise another process has the file, and the mode is in it already
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


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
            connection.execute("BEGIN EXCLUSIVE")
            for statement in _statements(statements):
                connection.execute(statement)
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


def _statements(text: str) -> Iterator[str]:
    """Split at the semicolons that end a statement, not at those inside a trigger."""
    statement = ""
    for part in text.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip(" \n;"):
        yield statement
