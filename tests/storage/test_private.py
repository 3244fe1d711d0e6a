"""What holds texts, labels or answers is the user's alone, whatever the umask is."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.core.errors import SaveError
from findwell.evaluation.results.notes import ResultNotes, write_notes
from findwell.io.storage import files
from findwell.io.storage.files import make_folder
from findwell.judges.client.cache import Cache
from findwell.judges.embeddings import find_embedder
from findwell.judges.embeddings.embedder import cached
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.tuning.retriever_trials import remove_answers
from tests import saving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Findwell, Save

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")


@pytest.fixture(params=[0o000, 0o022, 0o377], ids=oct)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is there already, under an umask that lets all or nothing through."""
    place = tmp_path / "open"
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    before = os.umask(request.param)
    try:
        yield place
    finally:
        os.umask(before)


def _result(folder: Path) -> None:
    saving.sample(5).save(folder / "results" / "monday")


def _pool(folder: Path) -> None:
    runs = [{"q1": [("a", 2.0), ("b", 1.0)]}]
    findwell.labels.pool(
        runs, folder / "pools" / "pool", depth=2, purpose="ordering", method="depth"
    )
    with findwell.labels.Labels.open(folder / "pools" / "pool") as labels:  # also its log
        labels.set("q1", "a", 1, annotator="anna")


def _answers(folder: Path) -> None:
    Cache.open(folder / "cache" / "answers")


def _vectors(folder: Path) -> None:
    embedder = find_embedder(lambda texts: [[1.0] for _ in texts], name="ones")
    cached(embedder, folder / "cache" / "vectors").embed(["a"])


def _log(folder: Path) -> None:
    findwell.retrieve(lambda _: ["a"], {"q1": "why?"}, resume=folder / "run.part")


@pytest.mark.parametrize("make", [_result, _pool, _answers, _vectors, _log])
def test_what_is_kept_is_the_users_alone(make: Callable[[Path], None], folder: Path) -> None:
    make(folder)
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}
    assert found
    assert found == {path: 0o700 if path.is_dir() else 0o600 for path in found}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755  # not ours to close


def test_a_trace_store_is_the_users_alone(folder: Path, cli: Findwell, save: Save) -> None:
    call = '{"question": "Q?", "retrieved": ["d1"], "time": "2026-02-02T10:00:00Z"}\n'
    traces = save("traces.jsonl", call)
    traces.chmod(0o644)
    assert cli("monitor", "ingest", traces, "--store", folder / "a" / "store").code == 0
    with TraceStore.open(folder / "a" / "store") as store:
        store.mark("v2")
        store.flush()
        found = {path: stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}
    assert any(path.suffix == ".parquet" for path in found)
    assert found == {path: 0o700 if path.is_dir() else 0o600 for path in found}


def test_what_is_shared_stays_so(tmp_path: Path) -> None:
    shared = tmp_path / "r"
    saving.sample(5).save(shared)
    shared.chmod(0o755)
    for path in shared.iterdir():
        path.chmod(0o644)
    saving.sample(6).save(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in shared.iterdir()} == {0o644}


def test_notes_are_private_and_files_of_the_user_as_open_as_wanted(tmp_path: Path) -> None:
    saving.sample(5).save(tmp_path / "r")
    before = os.umask(0o022)
    try:
        write_notes(tmp_path / "r", ResultNotes(("a",), "note"))
        files.write_text(tmp_path / "report.html", "page")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "r.notes.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o644


def test_answers_are_not_written_through_a_link(tmp_path: Path) -> None:
    """`FILE.part` is a name that the user did not choose, and may come with a repository."""
    (tmp_path / "theirs").write_text("of the user")
    (tmp_path / "run.part").symlink_to(tmp_path / "theirs")
    with pytest.raises(SaveError, match="this is a link"):
        findwell.retrieve(lambda _: ["a"], {"q1": "why?"}, resume=tmp_path / "run.part")
    assert (tmp_path / "theirs").read_text() == "of the user"


def test_a_folder_is_made_with_those_above_it(folder: Path) -> None:
    inner = folder / "a" / "b"
    assert make_folder(inner) == [inner, inner.parent]
    assert make_folder(inner) == []
    (folder / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(folder / "file")


def test_only_answers_are_deleted_with_a_folder_of_answers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    mine, answers = data / "gold.jsonl", data / f"{'0a' * 8}.jsonl"
    for file in (mine, answers):
        file.write_text("{}\n")
    (tmp_path / "make.part").symlink_to(data)
    remove_answers(tmp_path / "make.part")
    assert answers.exists()
    remove_answers(data)
    assert list(data.iterdir()) == [mine]
