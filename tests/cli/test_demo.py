"""`karat demo`: runs as it says, with what it says."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

import karat

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Karat


def test_demo(cli: Karat) -> None:
    done = cli("demo")
    assert done.code == 0
    assert "bm25" in done.out
    assert "minilm" in done.out
    assert "Traceback" not in done.err


def test_what_it_suggests_works(
    cli: Karat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [
        shlex.split(line)[1:]
        for line in cli("demo").out.splitlines()
        if line.strip().startswith("karat ")
    ]
    assert len(commands) == 3
    for command in commands:
        assert cli(*command).code == 0, command


def test_save_and_files(cli: Karat, tmp_path: Path) -> None:
    done = cli("demo", "--save", tmp_path / "result", "--files", tmp_path / "files")
    assert done.code == 0
    assert karat.load(tmp_path / "result").runs == ["bm25", "minilm"]
    names = ["bm25.trec", "minilm.trec", "passages.jsonl", "questions.jsonl"]
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == names


@pytest.mark.parametrize("option", ["--save", "--files"])
def test_a_file_in_the_way(option: str, cli: Karat, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = cli("demo", option, tmp_path / "taken")
    assert done.code == 2
    assert "taken" in done.err
    assert (tmp_path / "taken").read_text() == "mine"
