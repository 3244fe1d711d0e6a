"""Folders that are locked as long as their writer lives: the lock of a dead one is free."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from findwell.io.storage.private import FOLDER_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DAY = 86_400  # seconds after which a writer counts as dead where folders cannot be locked


@contextlib.contextmanager
def new_locked_folder(name: Callable[[], Path]) -> Iterator[Path]:
    """Make a folder under a name that nothing has, for this user alone, and lock it."""
    with contextlib.ExitStack() as held:
        while True:
            folder = name()
            folder.mkdir(mode=FOLDER_MODE)
            with contextlib.suppress(FileNotFoundError):
                folder.chmod(FOLDER_MODE)
            with contextlib.suppress(FileNotFoundError):
                held.enter_context(locked(folder, wait=True))
            if folder.exists():  # else another process found it before it was locked
                break
        yield folder


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Lock a folder as long as this process lives; tell whether it is free without its lock."""
    old = time.time() - folder.stat().st_mtime > DAY
    if sys.platform == "win32":
        yield old
        return
    import fcntl  # noqa: PLC0415

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        except OSError:  # disks of other machines may have no locks
            free = old
        yield free
    finally:
        os.close(handle)
