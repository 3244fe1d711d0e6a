"""Writers of results that are killed: a program of its own, so that kill -9 is meant as it is said.

python saving.py steps FOLDER exchange|aside    dies at every single step of a replacement
python saving.py forever FOLDER exchange|aside  saves two results in turn until it is killed
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from itertools import count, cycle
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.io.storage import folders

if TYPE_CHECKING:
    import findwell

STEPS = frozenset({"fcntl.flock", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir"})
DONE = 0


def no_exchange(one: Path, other: Path) -> None:
    """Fail as systems do that cannot exchange two folders."""
    raise OSError(errno.ENOSYS, f"{one} and {other} stay")


def sample(found: int) -> findwell.Result:
    """Return a small result in which so many of 40 queries find their document."""
    import findwell

    run = {f"q{number}": ["a", "b"] for number in range(40)}
    gold = {f"q{number}": ["a" if number < found else "z"] for number in range(40)}
    return findwell.evaluate(run, gold, ["recall@1", "RR"], level=None)


def dies_at(step: int, old: Path, new: Path, place: Path) -> bool:
    """Replace the old result by the new one in a process that dies before this step."""
    place.mkdir()
    if old.exists():
        shutil.copytree(old, place / "r")
    child = os.fork()
    if not child:
        left = count(step, -1)

        def die(event: str, _: object) -> None:
            if event in STEPS and not next(left):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        with folders.replacing(place / "r") as draft:
            for path in new.iterdir():
                (draft / path.name).write_bytes(path.read_bytes())
        os._exit(DONE)
    return os.waitpid(child, 0)[1] != DONE


def steps(folder: Path) -> None:
    """Leave a folder for each step, as the writer left it that died there."""
    old, new = folder / "old", folder / "new"
    next(step for step in count() if not dies_at(step, old, new, folder / f"step{step:02}"))


def forever(folder: Path) -> None:
    """Save until killed, and say so when it begins."""
    results = [sample(10), sample(20)]
    print("ready", flush=True)  # noqa: T201
    for result in cycle(results):
        result.save(folder)


if __name__ == "__main__":
    if sys.argv[3] == "aside":
        folders._exchange = no_exchange
    {"steps": steps, "forever": forever}[sys.argv[1]](Path(sys.argv[2]))
