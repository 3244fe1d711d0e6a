"""What can be read only once: kept up to a limit, and never until the disk is full."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.cli.command import settings_of
from findwell.cli.score import command as score_command
from findwell.core.errors import InputError, OptionError, SaveError
from findwell.io.storage import spool
from findwell.io.storage.spool import copy_bounded, parse_size
from tests import sample

if TYPE_CHECKING:
    from tests.conftest import Findwell, Process

ENDLESS = "yes 'q1 Q0 d1 1 1 t'"


def score(*words: str, feed: str, room: Path) -> subprocess.CompletedProcess[str]:
    """Score what a shell command writes into findwell's standard input."""
    command = f"{feed} {sys.executable} -m findwell score - --gold gold.txt {' '.join(words)}"
    (room / "gold.txt").write_text(sample.qrels())
    (room / "tmp").mkdir()
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=room,
        env={**os.environ, "TMPDIR": str(room / "tmp")},
    )


def test_an_endless_pipe(tmp_path: Path) -> None:
    done = score("--read", "spool_limit=20MB", feed=f"{ENDLESS} |", room=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "findwell: /dev/stdin: the input did not end within 20MB, the most that findwell keeps "
        "of a pipe\n"
        "  fix: if it does end, write it to a file and name that, or raise the limit with "
        "--read spool_limit or FINDWELL_SPOOL_LIMIT\n"
    )
    assert not list((tmp_path / "tmp").iterdir())


def test_the_variable_is_the_limit_of_every_command(tmp_path: Path) -> None:
    done = score(feed=f"{ENDLESS} | FINDWELL_SPOOL_LIMIT=3MiB", room=tmp_path)
    assert done.returncode == 2
    assert "did not end within 3MiB" in done.stderr


def test_the_option_counts_before_the_variable(tmp_path: Path) -> None:
    feed = "printf 'q1 Q0 d1 1 1 t\\n' | FINDWELL_SPOOL_LIMIT=1"
    done = score("--read", "spool_limit=none", feed=feed, room=tmp_path)
    assert done.returncode == 0, done


def test_a_wrong_limit(tmp_path: Path, cli: Findwell, files: tuple[Path, Path]) -> None:
    done = score(feed="printf 'x\\n' | FINDWELL_SPOOL_LIMIT=lots", room=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("findwell: 'lots' is not a size\n  fix: write a number of bytes")
    run, gold = files
    assert cli("score", run, "--gold", gold, "--read", "spool_limit=lots").code == 2
    assert cli("score", run, "--gold", gold, "--read", "spool_limit=1").code == 0  # no pipe


DEVICE = "this is a device, not a file\n  fix: name a file or a pipe\n"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/full"])
@pytest.mark.parametrize("role", ["run", "gold", "corpus", "queries", "judge", "prices"])
def test_a_device_has_no_end(
    device: str, role: str, cli: Findwell, files: tuple[Path, Path]
) -> None:
    run, gold = map(str, files)
    judged = (run, "--gold", gold, "-m", "P@2/relevance", "--judge")
    asked = {
        "run": (device, "--gold", gold),
        "gold": (run, "--gold", device),
        "corpus": (run, "--gold", gold, "--corpus", device),
        "queries": (run, "--gold", gold, "--queries", device),
        "judge": (*judged, f"replay:{device}"),
        "prices": (
            *judged,
            "openai:m",
            "-J",
            "base_url=http://localhost:9/v1",
            "-J",
            f"prices={device}",
        ),
    }
    done = cli("score", *asked[role])
    assert (done.code, done.err) == (2, f"findwell: {device}: {DEVICE}")


def test_a_device_as_standard_input(process: Process, files: tuple[Path, Path]) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = process("score", "-", "--gold", files[1], stdin=endless)
    assert (done.code, done.err) == (2, f"findwell: /dev/stdin: {DEVICE}")


def test_nothing_and_a_terminal_are_no_endless_devices() -> None:
    with pytest.raises(InputError, match="the pipe was empty"):
        findwell.io.load_run(os.devnull)
    ours, theirs = pty.openpty()
    typed = threading.Thread(target=os.write, args=(ours, b"q1 Q0 d1 1 1 t\n\x04"))
    typed.start()
    run = findwell.io.load_run(os.ttyname(theirs)).collect()
    typed.join()
    assert run.rows["doc"].to_list() == ["d1"]
    os.close(ours)
    os.close(theirs)


DiskUsage = namedtuple("DiskUsage", "total used free")  # noqa: PYI024 - as in shutil


@pytest.mark.parametrize(("total", "free"), [(1 << 40, (1 << 30) - 1), (1 << 20, 52_000)])
def test_room_is_left_on_the_disk(
    total: int, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is nearly full is told by the system's figures; none is filled for the test."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(total, total - free, free))
    with Path("/dev/zero").open("rb") as endless, pytest.raises(SaveError) as stop:
        copy_bounded(endless, tmp_path / "copy", "a pipe")
    assert "the disk for temporary files is nearly full after 1 MiB of a pipe" in str(stop.value)
    assert "TMPDIR" in stop.value.fix


def test_the_room_is_looked_at_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([1 << 40, 1 << 40, 0])
    monkeypatch.setattr(spool, "LOOK", 3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 0, next(left)))
    with Path("/dev/zero").open("rb") as endless, pytest.raises(SaveError, match="after 9 MiB"):
        copy_bounded(endless, tmp_path / "copy", "a pipe")


def test_the_disk_is_full() -> None:
    with Path("/dev/zero").open("rb") as endless, pytest.raises(SaveError) as stop:
        copy_bounded(endless, Path("/dev/full"), "a pipe")
    assert str(stop.value).startswith("/: a temporary file could not be written: No space left")


@pytest.mark.parametrize("text", ["", "8 apples", "-1", "1.", "GiB", "1i", "1iB", "0x10", "١"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(OptionError, match="is not a size"):
        parse_size(text)


def test_the_help_tells_the_default() -> None:
    (read,) = (each for each in settings_of(score_command) if each.table == "read")
    told = read.fields["spool_limit"].help or ""
    assert f"(default: {spool.DEFAULT_LIMIT}; also: {spool.VARIABLE})" in told
