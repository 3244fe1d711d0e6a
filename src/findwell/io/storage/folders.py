"""A new folder takes the place of an old result in one step, and of nothing but a result.

It is written next to the old one under a hidden name, locked as long as its writer lives. Then the
two change places: at every moment one of them is there. Where a system cannot exchange folders,
the old one steps aside first; the next caller puts it back if the writer died just then. What
killed writers left is cleared away by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import SaveError
from findwell.io.storage.files import locked, make_folder, new_locked_folder, real_path

if TYPE_CHECKING:
    from collections.abc import Iterator


MANIFEST, SUMMARY = "manifest.json", "summary.json"
TABLES = ("per_query", "queries", "relation", "about", "listed", "verdicts")
FILES = frozenset({MANIFEST, SUMMARY, *(f"{name}.parquet" for name in TABLES)})
SHOWN_NAMES = 3  # names in a message
LOOKS, PAUSE = 3, 0.005  # while another writer replaces it, a look may find half of it; seconds


def refuse_foreign(folder: str | os.PathLike[str]) -> None:
    """Raise unless a new result may be put there: over nothing, or over a result of findwell."""
    target = real_path(folder)
    for left in reversed(range(LOOKS)):
        reason = _why_foreign(target)
        if not reason:
            break
        if not left:
            raise foreign(folder, reason)
        time.sleep(PAUSE)


def foreign(folder: str | os.PathLike[str], reason: str) -> SaveError:
    """Return the error about a folder that is not ours to replace."""
    what = f"this is not a findwell result that may be replaced: {reason}"
    fix = "name a new folder; findwell deletes nothing but its own results"
    return SaveError(what, where=os.fspath(folder), fix=fix)


def _why_foreign(target: Path) -> str:
    """Say why what stands there is not ours to replace; an empty string, if it is."""
    try:
        if not os.path.lexists(target):
            return ""
        if target.is_symlink() or not target.is_dir():
            return "it is not a folder"
        if target == Path.cwd():
            return "it is the folder you are in"
        reason = strangers(target)
        if not reason and any(target.iterdir()) and not _is_manifest(target / MANIFEST):
            reason = f"it has no {MANIFEST} that findwell wrote"
        if not reason and not os.access(target, os.W_OK):
            reason = "it is write-protected"
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
    return reason


def strangers(folder: Path) -> str:
    """Say what is in a folder that is not a file of a result; an empty string, if nothing."""
    with os.scandir(folder) as entries:
        names = sorted(
            entry.name
            for entry in entries
            if entry.name not in FILES or not entry.is_file(follow_symlinks=False)
        )
    more = ", …" if len(names) > SHOWN_NAMES else ""
    return f"it holds {', '.join(names[:SHOWN_NAMES])}{more}" if names else ""


def _is_manifest(path: Path) -> bool:
    """Tell whether findwell wrote this manifest, whichever version it was."""
    try:
        manifest = json.loads(path.read_bytes())
        layout, version = manifest["layout"], manifest["versions"]["findwell"]
        return isinstance(layout, int) and isinstance(version, str)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def discard(folder: Path) -> None:
    """Delete a folder of ours, if it can be; one that holds anything else is left as it is."""
    with contextlib.suppress(OSError):
        if not strangers(folder):
            for path in sorted(folder.iterdir(), key=lambda path: path.name == MANIFEST):
                path.unlink()  # the manifest last: it tells whose folder this is
            folder.rmdir()


# endings of hidden folders: with a new result, with one gone aside
NEW_ENDING, OLD_ENDING = ".new", ".old"
RACE_ERRORS = frozenset({errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST})  # came in between
TRIES = 100  # how often others may come in between


@contextlib.contextmanager
def replacing(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty folder to write to; when all is written it takes the place of `folder`."""
    target = real_path(folder)
    refuse_foreign(folder)
    made: list[Path] = []
    try:
        made += make_folder(target.parent)
        is_folder(target)
        _clear_away(target)
        with new_locked_folder(lambda: _name(target, NEW_ENDING)) as draft:
            try:
                yield draft
                _put(draft, target)
            finally:
                discard(draft)  # what is under its name in the end
    finally:
        with contextlib.suppress(OSError):  # a folder that holds the result stays
            for parent in made:
                parent.rmdir()


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder is there; one that went aside for a writer that died is put back."""
    try:
        target = real_path(path)
        if not target.exists():
            # of several, all but the one written last were replaced and should be gone
            for aside in sorted(_hidden(target, OLD_ENDING), key=_written, reverse=True)[:1]:
                with contextlib.suppress(OSError):  # another process was faster, or we may not
                    aside.rename(target)
        return target.is_dir()
    except (OSError, ValueError):  # no path at all: the reader reports it
        return False


def _put(draft: Path, target: Path) -> None:
    """Put a written folder in its place; if one was there, it is where the draft was."""
    if target.exists():
        for path in draft.iterdir():  # on the disk before the old files are given up
            with path.open("r+b") as file:
                os.fsync(file.fileno())
        for each in (*draft.iterdir(), draft):  # a result that is shared stays so
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(target / each.relative_to(draft), each)
    for left in reversed(range(TRIES)):
        for step in (os.rename, _change_places):  # a rename replaces nothing or an empty folder
            try:
                step(draft, target)
            except OSError as error:
                if error.errno not in RACE_ERRORS or not left:
                    raise
            else:
                return


def _change_places(draft: Path, target: Path) -> None:
    """Let the new folder and the old one change places, if the old one is ours."""
    try:
        _exchange(draft, target)
    except OSError:  # this system or this disk cannot
        _step_aside(draft, target)
        return
    try:
        _refuse_what_came(draft, target)
    except SaveError:
        _exchange(draft, target)
        raise


def _exchange(one: Path, other: Path) -> None:
    """Let two folders change places in one step, where the system can do that."""
    first, second = os.fsencode(one), os.fsencode(other)
    here = -100  # AT_FDCWD
    calls: dict[str, tuple[str, tuple[int | bytes, ...]]] = {
        "linux": ("renameat2", (here, first, here, second, 2)),  # RENAME_EXCHANGE
        "darwin": ("renamex_np", (first, second, 2)),  # RENAME_SWAP
    }
    name, arguments = calls.get(sys.platform, ("", ()))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if function(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _step_aside(draft: Path, target: Path) -> None:
    """Move the old folder away and the new one in."""
    aside = _name(target, OLD_ENDING)
    target.rename(aside)
    try:
        _refuse_what_came(aside, target)
        draft.rename(target)
    except BaseException:
        with contextlib.suppress(OSError):  # another writer was faster: the old one is replaced
            aside.rename(target)
        raise
    finally:
        discard(aside)


def _refuse_what_came(aside: Path, target: Path) -> None:
    """Raise if anything was put into the old folder since we looked."""
    with contextlib.suppress(FileNotFoundError):  # others may clear away what is ours
        reason = strangers(aside)
        if reason:
            raise foreign(target, reason)


def _clear_away(target: Path) -> None:
    """Delete what writers of this folder left that are no longer alive."""
    for left in _hidden(target, NEW_ENDING, OLD_ENDING):
        with contextlib.suppress(OSError), locked(left, wait=False) as free:
            if free and (left.suffix == NEW_ENDING or target.exists()):
                discard(left)


def _name(target: Path, ending: str) -> Path:
    """Return a hidden name next to the folder that nothing ever had."""
    return target.with_name(_start(target) + os.urandom(8).hex() + ending)


def _start(target: Path) -> str:
    import hashlib  # noqa: PLC0415 - nothing is written, mostly

    return f".findwell-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"


def _hidden(target: Path, *endings: str) -> list[Path]:
    """Return the hidden folders that writers of this folder made."""
    start = _start(target)
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        return [
            target.with_name(entry.name)
            for entry in entries
            if entry.name.startswith(start)
            and entry.name.endswith(endings)
            and entry.is_dir(follow_symlinks=False)
        ]
    return []


def _written(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return (folder / MANIFEST).stat().st_mtime_ns
    return 0
