"""The catalogue of a trace store: its files, what waits for one, keys of calls, marks, counts."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from findwell.core.errors import InputError
from findwell.io.storage.database import DurableKind, create_durable
from findwell.io.storage.files import removed_at_the_end

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

FILE = "catalogue.db"
APPLICATION = 0x66696E74  # "fint": tells it from other SQLite files
LAYOUT = 1  # raised when the tables or the columns of the Parquet files change

# A batch of calls is in `waiting` when it is acknowledged, and later in a Parquet file; `first`
# and `last` are the earliest and the latest time in it, in microseconds since 1970. `seen` holds
# a hash of the trace and the span of each call that is kept, `batch` one of each body of late.
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


def check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is none of traces, or that a newer findwell wrote."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise InputError(
            "this SQLite database is no catalogue of a trace store",
            where=str(path),
            fix="name the folder that findwell monitor serve or findwell monitor ingest made",
        )
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > LAYOUT:
        raise InputError(
            f"the trace store was written by a newer findwell: layout {found}, this one knows "
            f"{LAYOUT}",
            where=str(path),
            fix="install a newer findwell; nothing was changed",
        )


TRACES = DurableKind("traces", "TraceStore.open", check_layout)


def create_catalogue(path: Path) -> None:
    """Make an empty catalogue, unless another process was faster."""
    draft = path.with_name(f".findwell-{secrets.token_hex(8)}")
    with removed_at_the_end(draft):
        create_durable(draft, TRACES, TABLES, application=APPLICATION, layout=LAYOUT, rows={})
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # a rename would take the place of another one's
