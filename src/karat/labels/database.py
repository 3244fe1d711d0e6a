"""The file of the labels: SQLite, on disk before a call returns, safe for several writers."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, KaratError, SaveError
from karat.read.labels_database import APPLICATION, LAYOUT, TABLES, check_layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BUSY_TIMEOUT = 20.0  # seconds to wait for another process that writes
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})

SAY = """
INSERT INTO event (
    time, annotator, kind, pair, subtopic, grade, note, start, "end", probability, stratum, design
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def failure(error: sqlite3.Error, path: Path) -> KaratError:
    """Say what is wrong with the file and what to do; nothing that was saved before is lost."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    where = str(path)
    if code in DAMAGED:
        return InputError(
            f"the database of labels is damaged: {error}",
            where=where,
            fix="keep the file; sqlite3 FILE .recover saves what is whole",
        )
    if code in LOCKED:
        return SaveError(
            "another process holds the database of labels, and does not let go",
            where=where,
            fix="end what has it open, then try again; this was not saved, all before it is",
        )
    if code in FULL:
        return SaveError(
            f"the disk takes no more labels: {error}",
            where=where,
            fix="free some space, then try again; this was not saved, all before it is",
        )
    return SaveError(
        f"the database of labels cannot be used: {error}",
        where=where,
        fix="check who may read and write the file and its folder",
    )


class LabelsFile:
    """An open database of labels; its failures are karat's errors."""

    def __init__(self, path: Path, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.path = path
        self._lock = threading.RLock()  # threads of a server share the connection
        self._connection = _opened(path, timeout)

    def close(self) -> None:
        """Close the file; the last one to do so puts everything into the one file."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write all of it or nothing; on disk when this ends without an error."""
        with self._lock, self._failing():
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
                "the labels are closed", where=str(self.path), fix="open them again: Labels.open"
            ) from None
        except sqlite3.Error as error:
            raise failure(error, self.path) from None


def _opened(path: Path, timeout: float) -> sqlite3.Connection:
    connection = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        check_layout(connection, path)
        _prepare(connection)
    except (sqlite3.Error, KaratError) as error:
        if connection is not None:
            connection.close()
        raise error if isinstance(error, KaratError) else failure(error, path) from None
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


def create(path: Path, tables: Mapping[str, Sequence[Sequence[object]]]) -> None:
    """Make a new database with these rows of its tables, whole or not at all."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
            for statement in _statements(TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            for table, rows in tables.items():
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise failure(error, path) from None


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


def now() -> float:
    """Return the time as it is kept with a label: seconds since 1970, UTC."""
    return time.time()
