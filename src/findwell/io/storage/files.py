"""Files and folders: of this user alone, written whole or not at all, and removed when temporary.

What holds questions, texts, labels or answers is created by these functions, and only its user may
read it, whatever the umask is. What is there already keeps its mode: a user may share a folder.

No way of ending but a kill -9 leaves temporary files behind: each is on a list as long as it is
there, and `remove_temporary` deletes what is on the list; the command line calls it when a signal
ends it. What a killed process left in the folder for temporary files is deleted by the next one
that needs such a folder: those in use are locked, and the lock of a dead process is free.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import InputError, SaveError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from io import BufferedReader

FOLDER_MODE, FILE_MODE = 0o700, 0o600
DAY = 86_400  # seconds after which a writer counts as dead where folders cannot be locked
PREFIX, ENDING = "findwell-", ".work"  # of folders that may be deleted when their lock is free
TMPDIR_FIX = "set TMPDIR to a folder on a disk with more room"

HELPS = {  # what to do where something cannot be written, by the number of the error
    errno.ENOENT: "make the folder that it is to be in",
    errno.EISDIR: "there is a folder of this name; name a file",
    errno.EACCES: "name a place that you may write to",
    errno.EROFS: "name a place that you may write to",
    errno.ENOSPC: "free some space or name another place",
}

_listed: dict[Path, int] = {}  # what is to be deleted, and by which process


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it where they are missing; return the new ones, inner first."""
    made = []
    for each in reversed([path for path in [folder, *folder.parents] if not path.exists()]):
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
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
        place.chmod(FILE_MODE)
    return place


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


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the path without links: what a link points to is replaced, not the link."""
    return Path(os.path.realpath(path))


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a text file whole or not at all; letters that UTF-8 cannot write are escaped."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), private=private)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all; of a link it is the file that the link points to.

    One that is `private` may be read by this user alone, unless it was there with another mode.
    """
    target = real_path(path)
    draft = target.with_name(f".findwell-{os.urandom(8).hex()}")
    try:
        if _is_stream(Path(path)):
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
        raise not_written("file", path, error) from error


def not_written(what: str, path: str | os.PathLike[str], error: BaseException) -> SaveError:
    """Return the error about a file or folder that could not be written, with what helps then.

    >>> print(not_written("file", "new/a.csv", FileNotFoundError(errno.ENOENT, "No such file")))
    new/a.csv: the file could not be written: No such file
      fix: nothing was written; make the folder that it is to be in
    """
    reason = getattr(error, "strerror", None) or str(error)
    helps = HELPS.get(getattr(error, "errno", None) or 0, f"name another {what}")
    if os.strerror(errno.ENOSPC) in reason:  # polars has no number of it
        reason, helps = os.strerror(errno.ENOSPC), HELPS[errno.ENOSPC]
    fix = f"nothing was written; {helps}"
    return SaveError(f"the {what} could not be written: {reason}", where=os.fspath(path), fix=fix)


def _is_stream(place: Path) -> bool:
    """Tell whether this is a pipe, a device or the like, which must not be replaced by a file."""
    if place.absolute().parts[1:2] in (("dev",), ("proc",)):  # /dev/stdout may lead to a file
        return True
    return place.exists() and not place.is_file() and not place.is_dir()


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
def removed_at_the_end(path: Path) -> Iterator[None]:
    """Delete a file or folder in the end, even if a signal ends the process before."""
    _listed[path] = os.getpid()
    try:
        yield
    finally:
        remove_temporary(path)


def remove_temporary(*paths: Path) -> None:
    """Delete temporary files and folders of this process, all by default."""
    for path in paths or tuple(_listed):
        if _listed.get(path) == os.getpid():  # else it belongs to the process that forked this one
            with contextlib.suppress(OSError):
                path.unlink()
            shutil.rmtree(path, ignore_errors=True)
            if not os.path.lexists(path):  # else it is tried again at the end
                _listed.pop(path, None)


atexit.register(remove_temporary)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder, which only this user may read, and delete it in the end."""
    with contextlib.ExitStack() as held:

        def name() -> Path:
            path = parent / f"{PREFIX}{os.urandom(8).hex()}{ENDING}"
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
    what = f"a temporary file could not be written: {error.strerror or error}"
    return SaveError(what, where=os.fspath(where), fix=TMPDIR_FIX)


def _clear_dead(parent: Path) -> None:
    """Delete what killed processes of this user left; other users may write there, too."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows: each user has a folder
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            named = entry.name.startswith(PREFIX) and entry.name.endswith(ENDING)
            if (
                named
                and entry.is_dir(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_uid == user
            ):
                with contextlib.suppress(OSError), locked(Path(entry.path), wait=False) as free:
                    if free:
                        shutil.rmtree(entry.path, ignore_errors=True)


def require_layout(
    connection: sqlite3.Connection,
    path: Path,
    *,
    application: int,
    layout: int,
    written: str,
    other: str,
    fix: str,
) -> None:
    """Raise if a database is of another application (`other`, `fix`), or of a newer layout.

    `written` is what it holds and was written, for messages: "the labels were written".
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != application:
        raise InputError(other, where=str(path), fix=fix)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > layout:
        what = f"{written} by a newer findwell: layout {found}, this one knows {layout}"
        raise InputError(what, where=str(path), fix="install a newer findwell; nothing was changed")
