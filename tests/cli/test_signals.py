"""Signals: the exit code tells which one it was, whenever it comes, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import sample
from tests.members import quick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Process, Save

STOPPED = {
    signal.SIGINT: "findwell: interrupted",
    signal.SIGTERM: "findwell: ended by SIGTERM",
    signal.SIGHUP: "findwell: ended by SIGHUP",
}
ONCE = 20  # seconds in which a process must have ended


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@contextlib.contextmanager
def reading_a_pipe(
    folder: Path, *, begun: bool = True, ignored: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Start findwell, which waits for the rest of a pipe, or for somebody who opens it."""
    pipe, room = folder / "pipe", folder / "tmp"
    gold = folder / "gold.txt"
    gold.write_text(sample.qrels())
    os.mkfifo(pipe)
    room.mkdir(exist_ok=True)

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever this process was started with
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    with subprocess.Popen(
        [
            *(sys.executable, "-m", "findwell", "score", str(pipe), "-g", str(gold)),
            *("--save", str(folder / "saved"), "-o", str(folder / "out")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(room)},
        text=True,
        preexec_fn=ignore,  # noqa: PLW1509
    ) as running:
        writer = None
        try:
            if begun:
                writer = os.open(pipe, os.O_WRONLY)  # returns when findwell reads
                os.write(writer, sample.trec_run().encode())
                wait_until_written(room)
            else:
                wait_until_blocked(running.pid)
            yield running
        finally:
            running.kill()
            pipe.unlink()
            if writer is not None:
                os.close(writer)


def wait_until_written(room: Path) -> None:
    for _ in range(300):
        time.sleep(0.05)
        if any(path.is_file() for path in room.rglob("*")):
            return
    raise AssertionError


def wait_until_blocked(pid: int) -> None:
    """Wait until a process sleeps in opening a pipe that nobody writes to."""
    deadline = None  # where the kernel does not tell what it waits for
    for _ in range(300):
        time.sleep(0.1)
        tasks = Path(f"/proc/{pid}/task").glob("*/wchan")
        if any("wait_for_partner" in task.read_text() for task in tasks):
            return
        if deadline is None and "polars" in Path(f"/proc/{pid}/maps").read_text():
            deadline = time.monotonic() + 3
        if deadline is not None and time.monotonic() > deadline:
            return
    raise AssertionError


@pytest.mark.parametrize("number", quick(STOPPED, signal.SIGTERM))
def test_while_a_pipe_is_read(number: signal.Signals, tmp_path: Path) -> None:
    with reading_a_pipe(tmp_path) as running:
        assert names(tmp_path / "tmp")  # what came out of the pipe so far
        running.send_signal(number)
        out, err = running.communicate(timeout=ONCE)
    assert running.returncode == 128 + number
    assert (out, err.strip()) == ("", STOPPED[number])
    assert names(tmp_path) == ["gold.txt", "tmp"]


def test_while_nobody_writes_to_the_pipe(tmp_path: Path) -> None:
    with reading_a_pipe(tmp_path, begun=False) as running:
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=ONCE)
    assert (running.returncode, out, err.strip()) == (130, "", "findwell: interrupted")
    assert names(tmp_path) == ["gold.txt", "tmp"]


def test_what_is_to_be_ignored_is_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    with reading_a_pipe(tmp_path, ignored=(signal.SIGHUP, signal.SIGINT)) as running:
        running.send_signal(signal.SIGHUP)
        running.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)
        running.send_signal(signal.SIGTERM)
        assert running.wait(ONCE) == 143


def test_what_a_killed_process_left_is_cleared_by_the_next(
    tmp_path: Path, process: Process, save: Save
) -> None:
    room = tmp_path / "tmp"
    (room / "findwell-of-somebody-else").mkdir(parents=True)
    with reading_a_pipe(tmp_path) as killed:
        killed.kill()
        killed.wait(ONCE)
    (left,) = room.glob("findwell-*.work")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tmp").symlink_to(room)
    with reading_a_pipe(tmp_path / "other") as alive:
        (used,) = room.glob("findwell-*.work")
        assert used != left  # it was cleared away when this one was made
        gold = save("qrels.txt", sample.qrels())
        environment = {**os.environ, "TMPDIR": str(room)}
        run = sample.trec_run().encode()
        assert process("score", "-", "-g", gold, input=run, env=environment).code == 0
        assert list(room.glob("findwell-*.work")) == [used]  # it is in use
        alive.send_signal(signal.SIGTERM)
        assert alive.wait(ONCE) == 143
    assert names(room) == ["findwell-of-somebody-else"]


# a process that is signalled at a certain point of its work, by itself
HEAD = """
import os, signal, sys, threading, time
def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)
class At:
    def find_spec(self, name, *_):
        if name == IMPORTED:
            send()
IMPORTED = sys.argv[1]
sys.meta_path.insert(0, At())
from findwell.__main__ import main
sys.argv[:2] = ["findwell"]
"""
MEASURE = """
import findwell, polars as pl
@findwell.plugins.register_measure
class Signalled(findwell.Measure):
    '''Sends a signal.'''
    name = "signalled"
    at = None
    def compute(self, relation):
        work()
        return relation.count(relation.units(1, k=1).query)
"""


def run_signalled(
    code: str, files: tuple[Path, Path], *, at: str = "", measure: str = "RR"
) -> subprocess.CompletedProcess[str]:
    run, gold = map(str, files)
    return subprocess.run(
        [sys.executable, "-c", HEAD + code, at, "score", run, "-g", gold, "-m", measure],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "module",
    quick(
        [
            "click",
            "findwell.core.errors",
            "findwell.cli.score",
            "numpy",
            "findwell.evaluation.evaluate",
            "findwell.io.read.trec",
        ],
        "click",
    ),
)
def test_while_a_module_is_imported(module: str, files: tuple[Path, Path]) -> None:
    done = run_signalled("main()", files, at=module)
    assert done.returncode == 130
    assert (done.stdout, done.stderr.strip()) == ("", "findwell: interrupted")


WORK = {
    "in Python": "send()",
    "in a thread": "each = threading.Thread(target=send); each.start(); each.join()",
    "in polars": (
        "threading.Timer(0.2, send).start()\n"
        "    while True: pl.int_range(0, 3_000_000, eager=True).shuffle(1).sort()"
    ),
    "in a function that polars calls": (
        "pl.Series([1]).map_elements(lambda each: send() or each, return_dtype=pl.Int64)"
    ),
    "where exceptions are lost": (
        "class Gone:\n        def __del__(self): send()\n    Gone(); time.sleep(0.01)"
    ),
    "again while it is stopping": (
        "try:\n        send()\n    finally:\n        send(); time.sleep(60); os._exit(0)"
    ),
    "where it is caught": (
        "try:\n        send()\n    except BaseException:\n        raise ValueError('no')"
    ),
}


@pytest.mark.parametrize("where", quick(WORK, "where it is caught", "again while it is stopping"))
def test_at_work(where: str, files: tuple[Path, Path]) -> None:
    code = f"{MEASURE}\ndef work():\n    {WORK[where]}\nmain()"
    done = run_signalled(code, files, measure="signalled")
    assert done.returncode == 130, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("findwell: interrupted") == (where != "again while it is stopping")


def test_while_python_ends(files: tuple[Path, Path]) -> None:
    done = run_signalled("import atexit\natexit.register(send)\nmain()", files)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


SLOW_DISK = """
import threading
from findwell.core.data import RunStream
from findwell.io.read.format import Format, register_format
import polars as pl
@register_format
class Slow(Format):
    '''A disk that stops answering.'''
    name = "slow"
    roles = frozenset({"run"})
    order = 0
    def sniff(self, look, role):
        return False
    def run(self, source, name):
        def batches():
            yield pl.DataFrame({"query": ["q1"], "doc": ["d1"], "score": [1.0]})
            threading.Timer(0.5, send).start()
            time.sleep(300)
        return RunStream(name, batches)
sys.argv += ["--read", "run_format=slow"]
main()
"""


def test_while_the_next_batch_is_waited_for(files: tuple[Path, Path]) -> None:
    done = run_signalled(SLOW_DISK, files)
    assert (done.returncode, done.stderr.strip()) == (130, "findwell: interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("twice", [False, True])
def test_at_any_time(number: signal.Signals, twice: bool, tmp_path: Path) -> None:
    queries = range(10_000)
    rows = [f"{query} Q0 d{rank} {rank} {-rank} t\n" for query in queries for rank in range(50)]
    rng = random.Random(number + 2 * twice)
    rng.shuffle(rows)  # so that temporary files are needed
    run, gold, room = tmp_path / "run", tmp_path / "gold", tmp_path / "tmp"
    run.write_text("".join(rows))
    gold.write_text("".join(f"{query} 0 d7 1\n" for query in queries))
    room.mkdir()
    command = [sys.executable, "-m", "findwell", "score", str(run), "-g", str(gold)]
    environment = {**os.environ, "TMPDIR": str(room)}
    begun = time.monotonic()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    whole = time.monotonic() - begun
    tries = stopped = 0
    while tries < 6 or stopped < 2:  # how long a process takes changes with what else is at work
        tries += 1
        assert tries <= 40
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            time.sleep(rng.uniform(0, whole))
            for _ in range(1 + twice):
                running.send_signal(number)
                time.sleep(rng.uniform(0, 0.01))
            _, err = running.communicate(timeout=60)
        assert not names(room)
        # before Python has begun with findwell, a signal means what it means to Python: it dies of
        # the signal, or says that it could not be started
        unable = any(text in err for text in ("Fatal Python error: ", "Could not import runpy"))
        unbegun = unable and running.returncode == 1
        if unbegun or running.returncode == -number:
            continue
        assert running.returncode in (0, 128 + number), err
        assert "Traceback" not in err, err
        stopped += running.returncode == 128 + number
