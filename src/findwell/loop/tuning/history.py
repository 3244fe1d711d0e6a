"""Which queries earlier tunings held out: a value on queries that were used often is too good.

Each tuning is remembered in a file of the cache folder, by hashes of its held-out queries. The
environment variable FINDWELL_TUNINGS names another file, or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError
from findwell.core.findings import EXAMPLES, Finding
from findwell.core.frames import pl
from findwell.io.storage.database import Database, cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.data import Floats, Gold

VARIABLE, FILE, LAYOUT = "FINDWELL_TUNINGS", "tunings.sqlite", 1
TABLES = """
CREATE TABLE IF NOT EXISTS tuning (
    key BLOB PRIMARY KEY, time REAL NOT NULL, what TEXT NOT NULL, value REAL
);
CREATE TABLE IF NOT EXISTS held_out (
    query BLOB NOT NULL, tuning BLOB NOT NULL, PRIMARY KEY (query, tuning)
) WITHOUT ROWID
"""
SAME_SHARE = 0.5  # of the held-out queries: from here on two tunings use the same questions


def remember(
    gold: Gold,
    queries: Iterable[str],
    *,
    what: str,
    settings: object,
    values: Floats,
    held_out: float | None,
) -> list[Finding]:
    """Remember a tuning, and report how many others held out the same queries before.

    `what` names what was tuned and by which measure. The same `settings` with the same `values` are
    the same tuning, however often it is made.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen.casefold() == "none" or not (marks := _marks(gold, queries)):
        return []
    path = Path(chosen).expanduser() if chosen else cache_folder() / FILE
    about = json.dumps([what, str(settings), sorted(mark.hex() for mark in marks)])
    key = hashlib.blake2b(about.encode() + values.round(10).tobytes(), digest_size=16).digest()
    file = Database(path, "tunings", TABLES, LAYOUT)
    try:
        with closing(file.open()) as connection:
            earlier = _earlier(file, connection, key, marks)
            connection.execute("BEGIN IMMEDIATE")
            row = (key, time.time(), what, held_out)
            connection.execute("INSERT OR IGNORE INTO tuning VALUES (?, ?, ?, ?)", row)
            connection.executemany(
                "INSERT OR IGNORE INTO held_out VALUES (?, ?)", [(mark, key) for mark in marks]
            )
            connection.execute("COMMIT")
    except (FindwellError, sqlite3.Error) as error:  # a tuning is not lost for want of a memory
        return [
            Finding(
                "not-remembered",
                1,
                (str(path),),
                f"# tuning|tunings could not be remembered ({str(error).splitlines()[0]}). Later "
                "ones will not know that these queries were used.",
                f"make the file writable, or set {VARIABLE} to another, or to none",
            )
        ]
    if not earlier:
        return []
    one = len(earlier) == 1
    return [
        Finding(
            "reused-held-out",
            len(marks),
            tuple(_described(*each) for each in earlier[:EXAMPLES]),
            f"# held-out query|queries was|were also used by {len(earlier)} earlier tuning"
            f"{'' if one else 's'}. The best of several values on the same queries is too high.",
            "put all that you compare into one --space (space=), whose choice is held out as a "
            "whole, and confirm the winner on new questions",
        )
    ]


def _marks(gold: Gold, queries: Iterable[str]) -> list[bytes]:
    """Return a hash of each query: its id, its question, and what should be found."""
    items = gold.rows().select("query", item=pl.format("{} {}", "doc", "grade"))
    wanted = items.group_by("query").agg(pl.col("item").sort().str.join("\n"))
    table = gold.queries.join(wanted, on="query", how="left")
    asked = table["question"].cast(pl.String) if "question" in table.columns else [None]
    asked = list(asked) if len(asked) == table.height else [None] * table.height
    known = {
        query: f"{query}\0{question}\0{item}"
        for query, question, item in zip(table["query"], asked, table["item"], strict=True)
    }
    marked = (known.get(query, query) for query in queries)
    return [hashlib.blake2b(each.encode(), digest_size=8).digest() for each in marked]


def _earlier(
    file: Database, connection: sqlite3.Connection, key: bytes, marks: list[bytes]
) -> list[tuple[float, str, float | None]]:
    """Return the other tunings that held out as many of these queries, the last first."""
    counts: dict[bytes, int] = {}
    query = "SELECT tuning FROM held_out WHERE tuning != ? AND query IN"
    for (tuning,) in file.find(connection, query, (key,), marks):
        counts[tuning] = counts.get(tuning, 0) + 1
    same = [tuning for tuning, count in counts.items() if count >= SAME_SHARE * len(marks)]
    rows: list[Any] = list(
        file.find(connection, "SELECT time, what, value FROM tuning WHERE key IN", (), same)
    )
    return sorted(rows, reverse=True, key=lambda row: row[0])


def _described(when: float, what: str, value: float | None) -> str:
    day = time.strftime("%Y-%m-%d", time.localtime(when))
    return f"{day} {what}: {'no value' if value is None else f'{value:.4f}'}"
