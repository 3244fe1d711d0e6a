"""Temporary folders: private, gone in the end, and nobody deletes those of others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from findwell.core.errors import SaveError
from findwell.io.storage.files import remove_temporary, removed_at_the_end, temporary_folder


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_of_its_own(room: Path) -> None:
    with temporary_folder() as one, temporary_folder() as other:
        assert one != other
        assert one.parent == room
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "deep").mkdir()
        (one / "deep" / "file").write_text("x")
    assert not list(room.iterdir())


def test_it_is_gone_after_an_error_too(room: Path) -> None:
    with pytest.raises(ZeroDivisionError), temporary_folder():
        1 / 0  # noqa: B018
    assert not list(room.iterdir())


def test_all_are_removed_at_once(room: Path) -> None:
    with temporary_folder() as folder, removed_at_the_end(room / "draft"):
        (room / "draft").write_text("x")
        (folder / "file").write_text("x")
        (room / "mine").write_text("mine")
        remove_temporary()  # what a signal does
        assert [path.name for path in room.iterdir()] == ["mine"]


def test_what_others_left(room: Path) -> None:
    dead = room / "findwell-0123456789abcdef.work"
    (dead / "deep").mkdir(parents=True)
    kept = ["findwell-0123", "other.work", "findwell-demo-x"]
    for name in kept:
        (room / name).mkdir()
    (room / "file").write_text("mine")
    (room / "findwell-link.work").symlink_to(room / "other.work")
    (room / "findwell-file.work").symlink_to(room / "file")
    with temporary_folder() as alive:
        assert not dead.exists()
        with temporary_folder():
            assert alive.exists()
    left = {path.name for path in room.iterdir()}
    assert left == {*kept, "file", "findwell-link.work", "findwell-file.work"}


def test_a_forked_process_deletes_nothing_of_its_parent(room: Path) -> None:
    code = (
        "import os, sys\n"
        "from findwell.io.storage.files import temporary_folder\n"
        "with temporary_folder() as folder:\n"
        "    if os.fork() == 0:\n"
        "        sys.exit()\n"  # the end of the block and of Python
        "    os.wait()\n"
        "    print(folder.exists())\n"
        "    sys.stdout.flush()\n"
        "print(folder.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(room)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "False"]
    assert done.stderr == ""


def test_no_place_for_temporary_files(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(room / "none"))
    with pytest.raises(SaveError, match="a temporary file could not be written") as stop:
        temporary_folder().__enter__()
    assert "TMPDIR" in stop.value.fix
    assert stop.value.where == str(room / "none")
