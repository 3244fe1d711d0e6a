"""Files and folders of this user alone: who may read them, and that they are not links.

What holds questions, texts, labels or answers is created by these functions, and only its user may
read it, whatever the umask is. What is there already keeps its mode: a user may share a folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedReader

FOLDER_MODE, FILE_MODE = 0o700, 0o600


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it where they are missing; return the new ones, inner first."""
    made = []
    missing = [folder, *folder.parents]
    for each in reversed([path for path in missing if not path.exists()]):
        with contextlib.suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=FOLDER_MODE)
            each.chmod(FOLDER_MODE)
            made.append(each)
    folder.mkdir(exist_ok=True)  # raises if it is something else than a folder
    return made[::-1]


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read it: neither what a link points to, nor a pipe, which may never end."""
    if path.is_symlink():  # where the system does not refuse it
        raise OSError(errno.ELOOP, "it is a link", os.fspath(path))
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | careful)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))
    return os.fdopen(handle, "rb")


def create_file(path: str | os.PathLike[str]) -> Path:
    """Make an empty file, unless it is there, for code that then opens it by its path."""
    place = Path(path)
    with contextlib.suppress(FileExistsError):
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
        os.close(handle)
        place.chmod(FILE_MODE)
    return place
