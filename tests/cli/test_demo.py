"""`findwell demo`: runs as it says, with what it says."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell

if TYPE_CHECKING:
    from tests.conftest import Findwell


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_it_suggests_works(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("demo")
    assert done.code == 0
    assert "bm25" in done.out
    assert "minilm" in done.out
    assert "Traceback" not in done.err
    commands = [
        shlex.split(line)[1:]
        for line in done.out.replace("\\\n", "").splitlines()
        if line.strip().startswith("findwell ")
    ]
    assert len(commands) == 3
    for command in commands:
        assert cli(*command).code == 0, command


def test_save_and_files(cli: Findwell, tmp_path: Path) -> None:
    done = cli("demo", "--save", tmp_path / "result", "--files", tmp_path / "files")
    assert done.code == 0
    assert findwell.load(tmp_path / "result").runs == ["bm25", "minilm"]
    names = ["bm25.trec", "minilm.trec", "passages.jsonl", "questions.jsonl"]
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == names


def test_files_alone_print_nothing_but_their_place(cli: Findwell, tmp_path: Path) -> None:
    done = cli("demo", "--files", tmp_path / "files")
    assert (done.code, done.out) == (0, "")
    assert str(tmp_path / "files") in done.err


def test_every_demo_has_the_same_report(cli: Findwell, cache: Path) -> None:
    for _ in range(2):
        shown = cli("demo").out.splitlines()[-1].rpartition(": ")[2]
        assert shown == str(cache / "demo" / "report.html")
    assert [path.name for path in (cache / "demo").iterdir()] == ["report.html"]
    assert not list(Path(tempfile.gettempdir()).glob("findwell-demo-*"))


def test_without_a_folder_for_caches(cli: Findwell, cache: Path) -> None:
    cache.write_text("in the way")
    done = cli("demo")
    assert done.code == 0
    report = Path(done.out.splitlines()[-1].rpartition(": ")[2])
    assert report.read_bytes().startswith(b"<!doctype html>")
    report.unlink()
    report.parent.rmdir()


@pytest.mark.parametrize("option", ["--save", "--files"])
def test_a_file_in_the_way(option: str, cli: Findwell, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = cli("demo", option, tmp_path / "taken")
    assert done.code == 2
    assert "taken" in done.err
    assert (tmp_path / "taken").read_text() == "mine"
