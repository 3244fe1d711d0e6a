"""The cache of vectors: hits, several processes, kills, damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, SaveError
from findwell.io.storage import database
from findwell.io.storage.database import cache_folder
from findwell.judges.embeddings import EmbeddingError, cached, find_embedder
from findwell.judges.embeddings.embedder import VECTORS_FILE, WRITTEN_TEXTS, CachedEmbedder
from tests.embeddings.counting import Counting
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.judges.embeddings import Vectors


def test_each_distinct_text_is_embedded_once_for_ever(tmp_path: Path) -> None:
    counting = Counting()
    first = cached(counting, tmp_path)
    texts = ["a", "b", "a", "", " ", "c", "b"]
    rows = first.embed(texts)
    assert counting.seen == Counter("abc")
    assert first.name == "counting"
    again = CachedEmbedder(counting, tmp_path)
    np.testing.assert_array_equal(again.embed(texts[::-1]), rows[::-1])
    again.embed(["a", "d"])
    assert counting.seen == Counter("abcd")
    assert (again.found, again.made) == (4, 1)


def test_what_comes_from_the_cache_equals_what_comes_without(tmp_path: Path) -> None:
    texts = ["The cat sleeps.", "漢字かな", "שלום עולם", "", "a\ud800b", "x" * 1_000_000]
    minilm = find_embedder("minilm")
    fresh = minilm.embed(texts)
    for _ in range(2):
        np.testing.assert_array_equal(cached(minilm, tmp_path).embed(texts), fresh)


@examples(30)
@given(st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=4))
def test_any_sequence_of_calls(
    tmp_path_factory: pytest.TempPathFactory, calls: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    counting = Counting()
    plain = find_embedder(Counting())
    for texts in calls:
        full = cached(counting, folder).embed(texts).any(axis=1)
        assert full.tolist() == [bool(text.strip()) for text in texts]
        rows = cached(counting, folder).embed(["x", *texts])
        np.testing.assert_array_equal(rows, plain.embed(["x", *texts]))
    assert all(count == 1 for count in counting.seen.values())


def test_embedders_do_not_share_vectors(tmp_path: Path) -> None:
    one, two = Counting("one"), Counting("two", width=2)
    assert cached(one, tmp_path).embed(["a"]).shape == (1, 3)
    assert cached(two, tmp_path).embed(["a"]).shape == (1, 2)
    assert (one.seen, two.seen) == (Counter("a"), Counter("a"))


def test_texts_are_not_kept(tmp_path: Path) -> None:
    cached(Counting(), tmp_path).embed(["a confidential sentence"])
    assert all(b"confidential" not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_function_without_a_name_is_not_cached(tmp_path: Path) -> None:
    unnamed = find_embedder(lambda texts: [[1.0]] * len(texts))
    assert cached(unnamed, tmp_path) is unnamed
    named = find_embedder(lambda texts: [[1.0]] * len(texts), name="ones")
    assert isinstance(cached(named, tmp_path), CachedEmbedder)


def test_the_file_is_in_wal_mode(tmp_path: Path) -> None:
    cached(Counting(), tmp_path).embed(["a"])
    connection = sqlite3.connect(tmp_path / VECTORS_FILE)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


SCRIPT = """
import sys
from findwell.judges.embeddings import cached
from tests.embeddings.counting import Counting

class Talking(Counting):
    def embed(self, texts):
        print("embed", len(texts), flush=True)
        if WAIT and self.calls == 2:
            sys.stdin.read()  # until we are killed
        return super().embed(texts)

WAIT = {wait}
print("ready", flush=True)
sys.stdin.readline()
first, last = map(int, sys.argv[2:])
talking = Talking()
rows = cached(talking, sys.argv[1]).embed([f"text {{n}}" for n in range(first, last)])
print("made", sum(talking.seen.values()), flush=True)
"""


def start(folder: Path, first: int, last: int, *, wait: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(wait=wait), folder, str(first), str(last)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def finish(process: subprocess.Popen[str]) -> int:
    """Return how many texts the process embedded."""
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(out.split()[-1])


def test_another_process_finds_the_vectors(tmp_path: Path) -> None:
    one = start(tmp_path, 0, 300)
    go(one)
    assert finish(one) == 300
    two = start(tmp_path, 200, 310)
    go(two)
    assert finish(two) == 10


def test_processes_that_begin_together_share_one_file(tmp_path: Path) -> None:
    processes = [start(tmp_path, 100 * n, 100 * n + 700) for n in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        go(process)
    assert all(finish(process) <= 700 for process in processes)
    counting = Counting()
    cached(counting, tmp_path).embed([f"text {n}" for n in range(1000)])
    assert not counting.seen


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_loses_one_batch(tmp_path: Path) -> None:
    total = 5 * WRITTEN_TEXTS
    process = start(tmp_path, 0, total, wait=True)
    go(process)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(4)]
    assert (
        said == ["ready\n"] + [f"embed {WRITTEN_TEXTS}\n"] * 3
    )  # two are written, the third hangs
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    counting = Counting()
    texts = [f"text {n}" for n in range(total)]
    rows = cached(counting, tmp_path).embed(texts)
    assert counting.seen == Counter(texts[2 * WRITTEN_TEXTS :])
    np.testing.assert_array_equal(rows, Counting().embed(texts))


def test_an_error_half_way_keeps_what_was_made(tmp_path: Path) -> None:
    class Failing(Counting):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if self.calls == 1:
                raise ConnectionError("gone")
            return super().embed(texts)

    texts = [f"text {n}" for n in range(WRITTEN_TEXTS + 1)]
    with pytest.raises(EmbeddingError, match="ConnectionError: gone"):
        cached(Failing(), tmp_path).embed(texts)
    counting = Counting()
    cached(counting, tmp_path).embed(texts)
    assert len(counting.seen) == 1


def test_vectors_that_are_none_are_not_kept(tmp_path: Path) -> None:
    class Broken(Counting):
        def embed(self, texts: Sequence[str]) -> Vectors:
            return super().embed(texts) * np.float32(np.nan)

    with pytest.raises(EmbeddingError, match="not finite"):
        cached(Broken(), tmp_path).embed(["a"])
    counting = Counting()
    cached(counting, tmp_path).embed(["a"])
    assert counting.seen == Counter("a")


@pytest.mark.parametrize(
    "content", [b"this is no database at all", b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_foreign_file_is_a_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / VECTORS_FILE).write_bytes(content)
    with pytest.raises(InputError, match="cache of vectors is damaged") as caught:
        cached(Counting(), tmp_path).embed(["a"])
    assert caught.value.where == str(tmp_path / VECTORS_FILE)
    assert "delete the file" in caught.value.fix
    assert (tmp_path / VECTORS_FILE).read_bytes() == content


def test_pages_overwritten_in_the_middle_are_a_clear_error(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(1000)]
    cached(Counting(), tmp_path).embed(texts)
    content = bytearray((tmp_path / VECTORS_FILE).read_bytes())
    content[4096:] = b"\xab" * len(content[4096:])
    (tmp_path / VECTORS_FILE).write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        cached(Counting(), tmp_path).embed(texts)


@pytest.mark.parametrize(
    "blob", [b"", b"\0\0\0", b"\xff" * 12, np.array([5, 0, 0], "<f4").tobytes(), b"\0" * 16]
)
def test_a_damaged_vector_is_made_again(blob: bytes, tmp_path: Path) -> None:
    rows = cached(Counting(), tmp_path).embed(["a", "b"])
    connection = sqlite3.connect(tmp_path / VECTORS_FILE)
    connection.execute("UPDATE vector SET vector = ? WHERE rowid = 1", (blob,))
    connection.commit()
    connection.close()
    for expected in (1, 0):
        counting = Counting()
        np.testing.assert_array_equal(cached(counting, tmp_path).embed(["a", "b"]), rows)
        assert sum(counting.seen.values()) == expected


def test_a_model_that_changed_its_width_under_one_name(tmp_path: Path) -> None:
    cached(Counting(), tmp_path).embed(["a"])
    changed = Counting(width=2)
    with pytest.raises(EmbeddingError, match="2 numbers, those in the cache 3"):
        cached(changed, tmp_path).embed(["b"])


def test_a_cache_of_another_version(tmp_path: Path) -> None:
    cached(Counting(), tmp_path).embed(["a"])
    connection = sqlite3.connect(tmp_path / VECTORS_FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match="layout 99, this findwell knows 1"):
        cached(Counting(), tmp_path).embed(["a"])


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SaveError, match="cannot be used") as caught:
        cached(Counting(), tmp_path / "file" / "cache").embed(["a"])
    assert "FINDWELL_CACHE_DIR" in caught.value.fix


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / VECTORS_FILE).mkdir()
    with pytest.raises(SaveError, match="unable to open database file"):
        cached(Counting(), tmp_path).embed(["a"])


def test_a_file_that_another_process_will_not_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CACHE_TIMEOUT", 0.01)
    cached(Counting(), tmp_path).embed(["a"])
    other = sqlite3.connect(tmp_path / VECTORS_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert cached(Counting(), tmp_path).embed(["a"]).any()  # who only reads does not mind
    with pytest.raises(SaveError, match="database is locked"):
        cached(Counting(), tmp_path).embed(["b"])
    other.close()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FINDWELL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == Path("/home/me/.cache/findwell")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache_folder() == Path("/home/me/.cache/findwell")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/findwell")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path("/home/me/Library/Caches/findwell")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/findwell/Cache")
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    cached(Counting()).embed(["a"])
    assert (tmp_path / VECTORS_FILE).is_file()
