"""What was said is on disk: through a kill, a full disk, a lock, and with several writers."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.core.errors import InputError, SaveError

if TYPE_CHECKING:
    from pathlib import Path

DOCS = [f"d{number}" for number in range(40)]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    findwell.labels.pool([{"q": DOCS}], tmp_path / "pool", depth=len(DOCS))
    return tmp_path / "pool"


WRITER = """
import sys
import findwell
labels = findwell.labels.Labels.open(sys.argv[1], sys.argv[2])
for number, doc in enumerate(sys.argv[3:]):
    labels.set("q", doc, number % 4)
    print(doc, flush=True)
sys.stdin.read()
"""


def start(pool: Path, name: str, docs: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(pool), name, *docs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
def test_a_killed_process_loses_nothing(pool: Path) -> None:
    with start(pool, "ann", DOCS) as writer:
        assert writer.stdout is not None
        for number, line in enumerate(writer.stdout, start=1):
            last = line.strip()
            if number == 25:
                break
        os.kill(writer.pid, signal.SIGKILL)
    with findwell.labels.Labels.open(pool) as labels:
        said = labels.frame()["doc"].to_list()
    assert said[:25] == DOCS[:25]  # everything that was acknowledged; perhaps more
    assert last in said
    with closing(sqlite3.connect(pool / "labels.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_two_processes_at_once_lose_nothing(pool: Path) -> None:
    writers = [start(pool, name, DOCS) for name in ("ann", "ben")]
    for writer in writers:
        writer.communicate("")
        assert writer.returncode == 0
    with findwell.labels.Labels.open(pool) as labels:
        said = labels.frame()
    assert said.height == 2 * len(DOCS)
    for name in ("ann", "ben"):
        of_one = said.filter(annotator=name)
        assert of_one["doc"].to_list() == DOCS
        assert of_one["grade"].to_list() == [number % 4 for number in range(len(DOCS))]


def test_threads_of_one_server_lose_nothing(pool: Path) -> None:
    """Two browsers of one annotator, and one of another, on one connection."""
    with findwell.labels.Labels.open(pool) as labels:

        def work(name: str, grade: int) -> None:
            for doc in DOCS:
                labels.set("q", doc, grade, annotator=name)

        threads = [
            threading.Thread(target=work, args=each)
            for each in (("ann", 1), ("ann", 2), ("ben", 3))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert labels.history().height == 3 * len(DOCS)
        assert labels.frame().height == 2 * len(DOCS)


def test_a_commit_waits_for_the_disk(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        assert labels._file.rows("PRAGMA synchronous") == [(2,)]  # FULL
        assert labels._file.rows("PRAGMA journal_mode") == [("wal",)]


def test_a_full_disk(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q", "d0", 1)
        (pages,) = labels._file.rows("PRAGMA page_count")[0]
        labels._file.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(SaveError, match="the disk has no room for more labels") as stop:
            labels.set("q", "d1", 2, note="x" * 100_000)
        assert "everything before was" in stop.value.fix
        before = labels.frame()
        assert before.filter(doc="d0")["grade"].to_list() == [1.0]
        labels._file.rows("PRAGMA max_page_count = 100000")
        labels.set("q", "d2", 3)  # it goes on when there is room again
    with findwell.labels.Labels.open(pool) as labels:
        assert labels.frame().height == before.height + 1


def test_a_locked_database(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann", timeout=0.1) as labels:
        labels.set("q", "d0", 1)
        with closing(sqlite3.connect(pool / "labels.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(SaveError, match="the database of labels is locked"):
                labels.set("q", "d1", 1)
            pair = labels.next()  # readers do not wait
            assert pair is not None
            assert labels.frame()["doc"].to_list() == ["d0"]
            other.execute("ROLLBACK")
        labels.set("q", "d1", 1)
        assert labels.frame().height == 2


def test_a_database_of_a_newer_version(pool: Path) -> None:
    with closing(sqlite3.connect(pool / "labels.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (pool / "labels.db").read_bytes()
    for read in (findwell.labels.Labels.open, findwell.io.load_gold):
        with pytest.raises(InputError, match="newer findwell: layout 99") as stop:
            read(pool)
        assert "newer findwell" in stop.value.fix
    assert (pool / "labels.db").read_bytes() == before


def test_a_damaged_database(pool: Path) -> None:
    file = pool / "labels.db"
    content = bytearray(file.read_bytes())
    content[100:4096] = b"\xff" * 3996
    file.write_bytes(content)
    with (
        pytest.raises(InputError, match=r"damaged|cannot be read"),
        findwell.labels.Labels.open(pool) as labels,
    ):
        labels.frame()


def test_nobody_can_delete_or_change_what_was_said(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q", "d0", 1)
    with closing(sqlite3.connect(pool / "labels.db")) as connection:
        for statement in ("DELETE FROM event", "UPDATE event SET grade = 3"):
            with pytest.raises(sqlite3.IntegrityError, match="labels are never"):
                connection.execute(statement)


def test_closed_labels(pool: Path) -> None:
    labels = findwell.labels.Labels.open(pool, "ann")
    labels.close()
    with pytest.raises(SaveError, match="the labels are closed"):
        labels.set("q", "d0", 1)
