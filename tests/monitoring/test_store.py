"""The store: each call once, on disk when acknowledged, the same whichever way it is read."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from findwell.core.errors import InputError, OptionError, SaveError
from findwell.io.read.traces.schema import TRACE_SCHEMA, number_hops, outermost
from findwell.loop.monitoring import store_files
from findwell.loop.monitoring.store import Batch, TraceStore
from tests.monitoring.conftest import NOON, calls

if TYPE_CHECKING:
    from pathlib import Path


def held(store: TraceStore) -> pl.DataFrame:
    return store.scan().sort("time", "trace", "span").collect()


def test_what_is_added_is_read_again(store: TraceStore) -> None:
    given = calls(50, every=timedelta(hours=1))
    assert store.add(given[:30]).new == 30
    added = store.add(given)
    assert (added.new, added.repeated) == (20, 30)
    assert_frame_equal(held(store), given)  # as long as it waits
    assert store.flush() == 50
    assert_frame_equal(held(store), given)  # and from files
    assert store.add(given).new == 0
    days = sorted(path.name for path in (store.path / "queries").iterdir())
    assert days == [f"day={NOON + timedelta(days=each):%Y-%m-%d}" for each in range(3)]


def test_users_read_the_files_without_findwell(store: TraceStore) -> None:
    given = calls(50, every=timedelta(hours=1))
    store.add(given)
    store.flush()
    (store.path / ".findwell-0123456789abcdef.draft").write_bytes(b"another process is writing it")
    found = pl.scan_parquet(store.path / "queries").sort("time").collect()
    assert_frame_equal(found.select(*TRACE_SCHEMA), given)
    assert found["day"].cast(pl.String).to_list() == found["time"].dt.strftime("%Y-%m-%d").to_list()


def test_the_order_and_the_size_of_batches_do_not_matter(tmp_path: Path) -> None:
    """Calls of a trace arrive in any order: hops, rerankers, retrievers inside of others."""
    place = pl.int_range(pl.len()) % 6
    traces = calls(60).with_columns(
        trace=pl.format("{}", pl.int_range(pl.len()) // 6),
        kind=pl.when(place.is_in([2, 5])).then(pl.lit("reranker")).otherwise("kind"),
        parent=pl.when(place == 1)
        .then(pl.col("span").shift(1))
        .otherwise(pl.when(place.is_in([0, 5])).then(pl.lit("left")).otherwise(pl.lit("right"))),
    )
    expected = number_hops(outermost(traces))
    # the second is inside the first; the rerankers belong to the last beside them, where one is
    assert expected["hop"].to_list()[:5] == [0, 0, 1, 2, 0]
    assert expected.height == 50
    for seed in range(3):
        order = list(range(60))
        random.Random(seed).shuffle(order)
        with TraceStore.open(tmp_path / str(seed), create=True) as store:
            for start in range(0, 60, 7 + seed):
                store.add(traces[order[start : start + 7 + seed]])
                if start % 3 == 0:
                    store.flush()
            assert_frame_equal(held(store), expected)
            later = store.scan(since=NOON + timedelta(minutes=20)).sort("time").collect()
            assert_frame_equal(
                later, expected.filter(pl.col("time") >= NOON + timedelta(minutes=20))
            )


def test_retrievers_known_to_be_inside_of_others_are_not_counted(store: TraceStore) -> None:
    given = calls(3).with_columns(
        trace=pl.lit("ab"),
        parent=pl.col("span").shift(1),
        kind=pl.Series(["retriever", "inner", "retriever"]),
    )
    added = store.add(given[1:]), store.add(given[:1]), store.add(given)
    assert [(each.new, each.repeated) for each in added] == [(1, 0), (1, 0), (0, 2)]
    assert store.flush() == store.counts().calls == 2
    assert held(store)["span"].to_list() == given["span"].to_list()[:1]


def test_a_part_of_the_time(store: TraceStore) -> None:
    given = calls(100, every=timedelta(hours=1)).with_columns(trace=pl.lit("ab"))
    store.add(given[:50])
    store.flush()
    store.add(given[50:])
    since, until = NOON + timedelta(hours=30), NOON + timedelta(hours=60)
    found = store.scan(since=since, until=until).sort("time").collect()
    assert found["time"].to_list() == given["time"].to_list()[30:60]
    # the hops of the first are those it has in its trace, as far as that goes back by a day
    assert found["hop"].to_list() == list(range(24, 54))
    naive = store.scan(since.replace(tzinfo=None), until.replace(tzinfo=None)).collect()
    assert naive.height == 30


def test_small_files_become_one_and_readers_do_not_notice(store: TraceStore) -> None:
    given = calls(store_files.MANY_FILES * 2)
    for row in range(given.height):
        store.add(given[row])
        if row % 2:
            store.flush()
    before = store.scan()  # reads only when it is asked to
    assert store.counts().files == store_files.MANY_FILES
    assert store.compact() == store_files.MANY_FILES - 1
    assert len(list(store.path.rglob("*.parquet"))) == store.counts().files == 1
    assert_frame_equal(held(store), given)
    assert_frame_equal(before.sort("time").collect(), given)


def test_many_small_parts_wait_as_one(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_files, "WAITING_PARTS", 10)
    given = calls(25)
    for row in range(given.height):
        store.add(given[row])
    parts = store._catalogue.rows("SELECT count(*) FROM waiting")[0][0]
    assert parts < 10
    assert_frame_equal(held(store), given)


def test_retention_deletes_days_and_takes_no_older_ones_in(store: TraceStore) -> None:
    old = calls(10, first=100, start=NOON - timedelta(days=30))
    given = calls(10)
    store.add(pl.concat([given, old]))
    assert store.retain("14d") == 10
    assert_frame_equal(held(store), given)
    assert list(store.path.rglob(f"day={NOON - timedelta(days=30):%Y-%m-%d}")) == []
    added = store.add(old)
    assert (added.new, sum(added.dropped.values())) == (0, 10)
    assert store.counts().dropped == {"older than what is kept": 10}
    assert store.add(given).repeated == 10
    with TraceStore.open(store.path) as anew:
        assert anew.add(old).new == 10  # their keys went with them


@pytest.mark.parametrize("text", ["", "d", "0d", "-3d", "90 years", "9999999d", "1.5d"])
def test_lengths_of_time(text: str, store: TraceStore) -> None:
    with pytest.raises(OptionError, match="is not a length of time"):
        store.retain(text)


def test_counts(store: TraceStore) -> None:
    given = calls(6)
    first = Batch(given[:4], 24, {"no id": 2}, b"one")
    second = Batch(given[2:], 20, {"no id": 1, "no time": 1}, b"two")
    for batch in (first, first, second):  # the first is sent again as a whole
        store.add_batches([batch])
    counts = store.counts()
    assert (counts.calls, counts.spans, counts.repeated) == (6, 44, 6)
    assert counts.malformed == {"no id": 3, "no time": 1}
    assert (counts.first, counts.last) == (NOON, NOON + timedelta(minutes=5))
    store.flush()
    assert store.counts().calls == 6


def test_times_that_cannot_be(store: TraceStore) -> None:
    far = calls(2, start=NOON + timedelta(days=400))
    ancient = calls(2, start=NOON - timedelta(days=365 * 40))
    assert store.add(pl.concat([far, ancient, calls(1, first=9)])).new == 1
    assert store.counts().dropped == {"in the future": 2, "older than what is kept": 2}


def test_marks(store: TraceStore) -> None:
    late = store.mark("v2.4", NOON + timedelta(days=1))
    store.mark(" v2.3 ", NOON)
    store.mark("v2.3", NOON)  # once
    assert [(each.name, each.time) for each in store.marks()] == [
        ("v2.3", NOON),
        ("v2.4", late.time),
    ]
    for name in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(OptionError, match="one line"):
            store.mark(name)


def test_states_change_in_one_step(store: TraceStore) -> None:
    assert store.state("alarms") is None
    with store.changing_states("alarms") as (state,):
        state["since"] = 3
    with pytest.raises(ZeroDivisionError), store.changing_states("alarms") as (state,):
        state["since"] = 1 / 0
    assert store.state("alarms") == {"since": 3}


def test_what_is_no_store(tmp_path: Path, store: TraceStore) -> None:
    with pytest.raises(InputError, match="there is no trace store here"):
        TraceStore.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(SaveError, match="holds something else"):
        TraceStore.open(other, create=True)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="not a table of calls: trace"):
        store.add(pl.DataFrame({"query": ["q"]}))
    with pytest.raises(InputError, match="no trace, span or time"):
        store.add(calls(2).with_columns(span=pl.lit(None, pl.String)))
    assert store.counts().calls == 0


def test_a_store_of_a_newer_version(store: TraceStore) -> None:
    with closing(sqlite3.connect(store.path / "catalogue.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="written by a newer findwell: layout 99"):
        TraceStore.open(store.path)


def test_a_full_disk(store: TraceStore) -> None:
    """What was acknowledged stays; what could not be saved is not, and can be sent again."""
    given = calls(400)
    store.add(given[:10])
    (pages,) = store._catalogue.rows("PRAGMA page_count")[0]
    store._catalogue.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SaveError, match="the disk has no room for more traces"):
        store.add(given)
    assert_frame_equal(held(store), given[:10])
    store._catalogue.rows("PRAGMA max_page_count = 100000")
    assert store.add(given).new == 390
    assert_frame_equal(held(store), given)


def test_a_disk_that_takes_no_files(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are acknowledged and wait in the catalogue, until a file can be written."""
    monkeypatch.setattr(store_files, "WAITING_BYTES", 1)
    in_the_way = store.path / "queries" / f"day={NOON:%Y-%m-%d}"
    in_the_way.write_text("not a folder")
    given = calls(10)
    assert store.add(given).new == 10
    with pytest.raises(SaveError, match="could not be written to a file"):
        store.flush()
    assert_frame_equal(held(store), given)
    in_the_way.unlink()
    assert store.flush() == 10
    assert_frame_equal(held(store), given)


@pytest.mark.parametrize("column", ["name", "day"])
def test_a_catalogue_cannot_name_files_outside_the_store(
    column: str, tmp_path: Path, store: TraceStore
) -> None:
    """A store may be somebody else's; what it lists is read, merged and deleted."""
    for number in range(3):
        store.add(calls(10, first=number * 10))
        store.flush()
    victim = tmp_path / "calls-0123456789abcdef.parquet"
    calls(3).write_parquet(victim)
    with closing(sqlite3.connect(store.path / "catalogue.db")) as connection, connection:
        place = {"name": "../../../" + victim.name, "day": "0/../../../.."}[column]
        listed = connection.execute("SELECT max(number) FROM file").fetchone()[0]
        values = {"name": victim.name} | {column: place}
        for name, value in values.items():
            connection.execute(f"UPDATE file SET {name} = ? WHERE number = ?", (value, listed))
    for use in (
        lambda: store.scan().collect(),
        store.compact,
        lambda: store.retain(timedelta(days=1)),
    ):
        with pytest.raises(InputError, match="lists a file that does not hold calls"):
            use()
    assert victim.exists()


def test_what_a_killed_process_left_is_not_read(store: TraceStore) -> None:
    """A file whose calls were not acknowledged: between its name and the catalogue came the end."""
    given = calls(10)
    store.add(given[:5])
    store.flush()
    folder = store.path / "queries" / f"day={NOON:%Y-%m-%d}"
    left = folder / "calls-0123456789abcdef.parquet"
    given.write_parquet(left)
    mine = folder / "notes.parquet"
    mine.write_bytes(b"not findwell's")
    assert_frame_equal(held(store), given[:5])
    with TraceStore.open(store.path) as anew:
        anew.add(given)
        anew.flush()
        assert_frame_equal(held(anew), given)
    assert mine.exists()
    assert not left.exists()


WRITER = """
import sys
from findwell.loop.monitoring.store import TraceStore
from tests.monitoring.conftest import calls
with TraceStore.open(sys.argv[1], create=True) as store:
    for first in range(0, 60, 3):
        store.add(calls(4, first=first))
        if first % 5 == int(sys.argv[2]):
            store.flush()
            store.compact()
        print(first, flush=True)
    if sys.argv[2] == "9":
        sys.stdin.read()
"""


def start(folder: Path, name: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_three_writers_that_make_the_store_together(tmp_path: Path) -> None:
    """All add the same calls: each is kept once."""
    writers = [start(tmp_path / "store", name) for name in range(3)]
    for writer in writers:
        writer.communicate("")
        assert writer.returncode == 0
    with TraceStore.open(tmp_path / "store") as store:
        found = store.scan().collect()
        assert sorted(found["trace"]) == [f"{number:032x}" for number in range(61)]
        counts = store.counts()
        assert counts.calls + counts.repeated == counts.spans == 3 * 20 * 4


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.slow
def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    with start(tmp_path / "store", 9) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 30:
                break
        os.kill(writer.pid, signal.SIGKILL)
    with TraceStore.open(tmp_path / "store") as store:
        assert store.scan().collect().height >= 34
        store.add(calls(64))
        assert store.scan().collect()["trace"].n_unique() == store.counts().calls == 64
