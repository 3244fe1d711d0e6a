"""What happens to a batch in the one step that acknowledges it: told apart, counted, kept."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from findwell.core.errors import InputError
from findwell.io.read.traces.hops import calls_among
from findwell.io.read.traces.schema import TRACE_SCHEMA

if TYPE_CHECKING:
    import sqlite3

REPEATED, SPANS, MALFORMED, DROPPED = "repeated", "spans", "malformed", "dropped"
BATCHES = 3_600.0  # seconds for which a body that is sent again is recognised as a whole
KEYS = 500  # in one query
COUNT = """
INSERT INTO counted VALUES (?, ?, ?)
ON CONFLICT (what, reason) DO UPDATE SET number = number + excluded.number
"""
WAIT = """
INSERT INTO waiting (arrived, calls, bytes, first, last, content) VALUES (?, ?, ?, ?, ?, ?)
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls that arrive together, with what is counted about the spans they were among."""

    frame: pl.DataFrame
    spans: int | None = None  # all that were sent; by default one per call
    malformed: Mapping[str, int] = field(default_factory=dict)
    digest: bytes | None = None  # of the body: the same body again is counted once


@dataclass(frozen=True, slots=True)
class Added:
    """What became of calls: `new` ones are kept, `repeated` ones are there already."""

    new: int = 0
    repeated: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)  # left out by a rule, by reason


@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch, and what the rules of intake leave of it."""

    batch: Batch
    kept: pl.DataFrame
    dropped: Mapping[str, int]
    keys: Sequence[bytes]  # of what is kept


def acknowledge(connection: sqlite3.Connection, arrivals: Sequence[Arrival]) -> list[Added]:
    """Keep the calls that are new, in the transaction of the caller."""
    added, frames = [], []
    for each in arrivals:
        calls = each.batch.frame.select(calls_among()).item()
        if _is_known(connection, each.batch.digest):
            added.append(Added(0, calls, each.dropped))
            _count(connection, {(REPEATED, ""): calls})
            continue
        new = each.kept.filter(pl.Series(_note_new(connection, each.keys), dtype=pl.Boolean))
        frames += [new] if new.height else []
        kept, found = (table.select(calls_among()).item() for table in (new, each.kept))
        added.append(Added(kept, found - kept, each.dropped))
        _count(
            connection,
            {(SPANS, ""): calls if each.batch.spans is None else each.batch.spans}
            | {(REPEATED, ""): found - kept}
            | {(MALFORMED, reason): n for reason, n in each.batch.malformed.items()}
            | {(DROPPED, reason): n for reason, n in each.dropped.items()},
        )
    if frames:
        let_wait(connection, pl.concat(frames))
    connection.execute("DELETE FROM batch WHERE arrived < ?", (time.time() - BATCHES,))
    return added


def check_calls(frame: pl.DataFrame) -> None:
    """Refuse a table that is none of calls."""
    if frame.schema != TRACE_SCHEMA:
        wrong = [name for name, dtype in TRACE_SCHEMA.items() if frame.schema.get(name) != dtype]
        raise InputError(
            f"this is no table of calls: {', '.join(wrong) or 'other columns'}",
            fix="give what findwell.io.read.traces.decode or read_traces returns",
        )
    if frame.select(pl.any_horizontal(pl.col("trace", "span", "time").is_null()).any()).item():
        raise InputError("a call has no trace, span or time", fix="leave such calls out")


def call_keys(frame: pl.DataFrame) -> list[bytes]:
    """Return a hash of trace and span for each call: what tells calls apart."""
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


def _is_known(connection: sqlite3.Connection, digest: bytes | None) -> bool:
    """Tell whether the same body has arrived of late; else note that it has now."""
    if digest is None:
        return False
    added = connection.execute("INSERT OR IGNORE INTO batch VALUES (?, ?)", (digest, time.time()))
    return added.rowcount == 0


def _note_new(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[bool]:
    """Tell which keys are there for the first time, and note them."""
    known: set[bytes] = set()
    for start in range(0, len(keys), KEYS):
        some = keys[start : start + KEYS]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"SELECT key FROM seen WHERE key IN ({marks})", some)  # noqa: S608
        known.update(key for (key,) in rows)
    new = []
    for key in keys:
        new.append(key not in known)
        known.add(key)
    fresh = sorted(key for key, each in zip(keys, new, strict=True) if each)
    connection.executemany("INSERT INTO seen VALUES (?)", [(key,) for key in fresh])
    return new


def _count(connection: sqlite3.Connection, numbers: Mapping[tuple[str, str], int]) -> None:
    connection.executemany(COUNT, [(*name, number) for name, number in numbers.items() if number])
