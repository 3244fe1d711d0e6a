"""Temporary files and folders, which no way of ending but a kill -9 leaves behind.

Each is on a list as long as it is there. `remove_temporary` deletes what is on the list: the
command line calls it when a signal ends it. What a killed process left in the folder for temporary
files is deleted by the next one that needs such a folder: those in use are locked.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import SaveError
from findwell.io.storage.locks import locked, new_locked_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX, ENDING = "findwell-", ".work"  # of folders that may be deleted when nobody holds their lock
TMPDIR_FIX = "set TMPDIR to a folder on a disk with more room"

_listed: dict[Path, int] = {}  # what is to be deleted, and by which process


@contextlib.contextmanager
def removed_at_the_end(path: Path) -> Iterator[None]:
    """Delete a file or folder in the end, even if a signal ends the process before."""
    _listed[path] = os.getpid()
    try:
        yield
    finally:
        remove_temporary(path)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder, which only this user may read, and delete it in the end."""
    with contextlib.ExitStack() as held:

        def name() -> Path:
            path = parent / f"{PREFIX}{secrets.token_hex(8)}{ENDING}"
            held.enter_context(removed_at_the_end(path))  # known before it is there
            return path

        try:
            parent = Path(tempfile.gettempdir())
            _clear_dead(parent)
            folder = held.enter_context(new_locked_folder(name))
        except OSError as error:
            raise no_room(error, tempfile.tempdir or "") from None
        yield folder


def no_room(error: OSError, where: str | os.PathLike[str]) -> SaveError:
    """Return the error about a temporary file that could not be written."""
    return SaveError(
        f"a temporary file could not be written: {error.strerror or error}",
        where=os.fspath(where),
        fix=TMPDIR_FIX,
    )


def remove_temporary(*paths: Path) -> None:
    """Delete temporary files and folders of this process, all by default."""
    for path in paths or tuple(_listed):
        if _listed.get(path) == os.getpid():  # else it belongs to the process that forked this one
            with contextlib.suppress(OSError):
                path.unlink()
            shutil.rmtree(path, ignore_errors=True)
            if not os.path.lexists(path):  # else it is tried again at the end
                _listed.pop(path, None)


def _clear_dead(parent: Path) -> None:
    """Delete the folders of processes that were killed."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.name.endswith(ENDING) and _own(entry):
                with contextlib.suppress(OSError), locked(Path(entry.path), wait=False) as free:
                    if free:
                        shutil.rmtree(entry.path, ignore_errors=True)


def _own(entry: os.DirEntry[str]) -> bool:
    """Tell whether it is a folder of this user: anybody may write where temporary files are."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows: each user has a folder
    return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == user


atexit.register(remove_temporary)
