"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from pathlib import Path

from findwell.core.errors import SaveError
from findwell.io.storage.folders import real_path
from findwell.io.storage.private import create_file
from findwell.io.storage.temporary import removed_at_the_end


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a text file whole or not at all; letters that UTF-8 cannot write are escaped."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), private=private)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all; of a link it is the file that the link points to.

    One that is `private` may be read by this user alone, unless it was there with another mode.
    """
    target = real_path(path)
    draft = target.with_name(f".findwell-{secrets.token_hex(8)}")
    try:
        if _is_stream(path):
            Path(path).write_bytes(content)
            return
        with removed_at_the_end(draft):
            if private:
                create_file(draft)
            draft.write_bytes(content)
            if target.exists():
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                shutil.copymode(target, draft)
            draft.replace(target)
    except OSError as error:
        raise SaveError(
            f"the file could not be written: {error.strerror}",
            where=os.fspath(path),
            fix="nothing was written; free some space or name another file",
        ) from error


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether this is a pipe, a device or the like, which must not be replaced by a file."""
    place = Path(path)
    if place.absolute().parts[1:2] in (("dev",), ("proc",)):  # /dev/stdout may lead to a file
        return True
    return place.exists() and not place.is_file() and not place.is_dir()
