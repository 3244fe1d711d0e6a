"""The file of the labels: SQLite, on disk before a call returns, safe for several writers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from findwell.io.read.labels_database import APPLICATION, LAYOUT, TABLES, check_layout
from findwell.io.storage.database import BUSY_TIMEOUT, DurableFile, DurableKind, create_durable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LABELS = DurableKind("labels", "Labels.open", check_layout)

SAY = """
INSERT INTO event (
    time, annotator, kind, pair, subtopic, grade, note, start, "end", probability, stratum, design
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class LabelsFile(DurableFile):
    """An open database of labels; its failures are findwell's errors."""

    def __init__(self, path: Path, *, timeout: float = BUSY_TIMEOUT) -> None:
        super().__init__(path, LABELS, timeout=timeout)


def create(path: Path, tables: Mapping[str, Sequence[Sequence[object]]]) -> None:
    """Make a new database with these rows of its tables, whole or not at all."""
    create_durable(path, LABELS, TABLES, application=APPLICATION, layout=LAYOUT, rows=tables)


def now() -> float:
    """Return the time as it is kept with a label: seconds since 1970, UTC."""
    return time.time()
