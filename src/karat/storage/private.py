"""Files and folders that only this user may read, whatever the umask is.

What holds questions, texts, labels or answers is created by these functions. What is there already
keeps its mode: a user who shares a folder goes on sharing it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

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


def create_file(path: str | os.PathLike[str]) -> Path:
    """Make an empty file, unless it is there, for code that then opens it by its path."""
    place = Path(path)
    with contextlib.suppress(FileExistsError):
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
        os.close(handle)
        place.chmod(FILE_MODE)
    return place
