"""What was sent in batches and has not arrived yet, call by call, in a file beside the answers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from findwell.io.storage.database import Database

FILE = "batches.sqlite"
LAYOUT = 1
TABLES = """
CREATE TABLE IF NOT EXISTS batch (
    tag TEXT PRIMARY KEY, server TEXT NOT NULL, file TEXT NOT NULL, batch TEXT, time REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS line (name TEXT PRIMARY KEY, tag TEXT NOT NULL)
"""
KEPT = 30 * 86_400.0  # seconds for which servers keep what they wrote


class BatchRecord(NamedTuple):
    """A batch as it was written down; without an id it may or may not have been created."""

    tag: str
    file: str
    batch: str


class BatchRecords:
    """What was sent in batches and has not arrived yet: in a file, so that it outlives us."""

    def __init__(self, folder: Path | None, server: str) -> None:
        path = None if folder is None else folder / FILE
        self._file = Database(path, "batches", TABLES, LAYOUT)
        self._connection = self._file.open()
        self._server = server
        self._run("DELETE FROM batch WHERE time < ?", time.time() - KEPT)
        self._run("DELETE FROM line WHERE tag NOT IN (SELECT tag FROM batch)")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._file.failure(error) from None

    def find(self, name: str) -> BatchRecord | None:
        """Return the batch that a call was sent in."""
        rows = self._run(
            "SELECT batch.tag, file, batch FROM line JOIN batch USING (tag) "
            "WHERE name = ? AND server = ?",
            *(name, self._server),
        )
        return BatchRecord(rows[0][0], rows[0][1], rows[0][2] or "") if rows else None

    def add(self, record: BatchRecord, names: Iterable[str]) -> None:
        """Write down what is about to be created."""
        self._run("BEGIN IMMEDIATE")
        row = (record.tag, self._server, record.file, None, time.time())
        self._run("INSERT INTO batch VALUES (?, ?, ?, ?, ?)", *row)
        for name in names:
            self._run("INSERT OR REPLACE INTO line VALUES (?, ?)", name, record.tag)
        self._run("COMMIT")

    def created(self, tag: str, batch: str) -> None:
        """Write down the id that the server gave."""
        self._run("UPDATE batch SET batch = ? WHERE tag = ?", batch, tag)

    def remove(self, tag: str) -> None:
        """Forget a batch: nothing more will come of it."""
        self._run("DELETE FROM line WHERE tag = ?", tag)
        self._run("DELETE FROM batch WHERE tag = ?", tag)

    def names(self, tag: str) -> list[str]:
        """Return the calls of a batch that have not arrived."""
        return [row[0] for row in self._run("SELECT name FROM line WHERE tag = ?", tag)]

    def cross_out(self, names: Iterable[str]) -> None:
        """Forget calls whose answers are safe, and batches of which nothing is left."""
        self._run("BEGIN IMMEDIATE")
        for name in names:
            self._run("DELETE FROM line WHERE name = ?", name)
        self._run("DELETE FROM batch WHERE tag NOT IN (SELECT tag FROM line)")
        self._run("COMMIT")
