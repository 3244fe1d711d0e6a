"""SQLite files that processes share, in the folder for what need not be made twice."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path

from karat.errors import KaratError, SaveError

PATIENCE = 60.0  # seconds to wait for another process that writes
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def cache_folder() -> Path:
    """Return `$KARAT_CACHE_DIR`, or a folder where the system keeps such things."""
    if chosen := os.environ.get("KARAT_CACHE_DIR", ""):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        roaming = os.environ.get("LOCALAPPDATA", "") or Path.home() / "AppData" / "Local"
        return Path(roaming) / "karat" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "karat"
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "karat"


def open_database(path: Path, table: str, layout: int) -> sqlite3.Connection:
    """Open a file with this table, make it where there is none; each statement is committed.

    With a write-ahead log, what was committed survives the death of the process, and readers do
    not wait for writers.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(path, str(error.strerror)) from None
    connection = None
    try:
        connection = _connect(path)
        _prepare(connection, path, table, layout)
    except (sqlite3.Error, KaratError) as error:
        if connection is not None:
            connection.close()
        raise error if isinstance(error, KaratError) else failure(path, error) from None
    return connection


def open_in_memory(table: str) -> sqlite3.Connection:
    """Open the same for this process only."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute(table)
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    # one thread at a time uses it, but not always the one that opened it
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _prepare(connection: sqlite3.Connection, path: Path, table: str, layout: int) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found not in (0, layout):
        raise unusable(path, f"it has layout {found}, this karat knows {layout}")
    with contextlib.suppress(sqlite3.OperationalError):  # busy: another process is doing it
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if found != layout:
        connection.execute("BEGIN IMMEDIATE")  # one process at a time makes the table
        connection.execute(table)
        connection.execute(f"PRAGMA user_version = {layout}")
        connection.execute("COMMIT")


def failure(path: Path, error: sqlite3.Error) -> SaveError:
    """Say what is wrong with a file, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in DAMAGED:
        return SaveError(
            f"the cache is damaged: {error}",
            where=str(path),
            fix="delete the file; what it held is made again",
        )
    return unusable(path, str(error))


def unusable(path: Path, reason: str) -> SaveError:
    """Say that a file cannot serve as a cache."""
    return SaveError(
        f"the cache cannot be used: {reason}",
        where=str(path),
        fix="set KARAT_CACHE_DIR to a folder on a local disk that you may write to",
    )
