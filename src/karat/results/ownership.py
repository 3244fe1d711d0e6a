"""Which folders are results of karat, so that it may replace or delete them, and which are not."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from karat.errors import SaveError

MANIFEST, SUMMARY = "manifest.json", "summary.json"
TABLES = ("per_query", "queries", "relation", "about", "listed", "verdicts")
FILES = frozenset({MANIFEST, SUMMARY, *(f"{name}.parquet" for name in TABLES)})
SHOWN = 3  # names in a message
LOOKS, PAUSE = 3, 0.005  # while another writer replaces it, a look may find half of it; seconds


def refuse_foreign(folder: str | os.PathLike[str]) -> None:
    """Raise unless a new result may be put there: over nothing, or over a result of karat."""
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
    return SaveError(
        f"this is not a karat result that may be replaced: {reason}",
        where=os.fspath(folder),
        fix="name a new folder; karat deletes nothing but its own results",
    )


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
            reason = f"it has no {MANIFEST} that karat wrote"
        if not reason and not os.access(target, os.W_OK):
            reason = "it is write-protected"
    except OSError as error:
        reason = f"it cannot be looked into: {error.strerror}"
    return reason


def strangers(folder: Path) -> str:
    """Say what is in a folder that is not a file of a result; an empty string, if nothing."""
    with os.scandir(folder) as entries:
        names = sorted(
            entry.name
            for entry in entries
            if entry.name not in FILES or not entry.is_file(follow_symlinks=False)
        )
    more = ", …" if len(names) > SHOWN else ""
    return f"it holds {', '.join(names[:SHOWN])}{more}" if names else ""


def _is_manifest(path: Path) -> bool:
    """Tell whether karat wrote this manifest, whichever version it was."""
    try:
        told = json.loads(path.read_bytes())
        return isinstance(told["layout"], int) and isinstance(told["versions"]["karat"], str)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def discard(folder: Path) -> None:
    """Delete a folder of ours, if it can be; one that holds anything else is left as it is."""
    with contextlib.suppress(OSError):
        if not strangers(folder):
            for path in sorted(folder.iterdir(), key=lambda path: path.name == MANIFEST):
                path.unlink()  # the manifest last: it tells whose folder this is
            folder.rmdir()


def real_path(folder: str | os.PathLike[str]) -> Path:
    """Return the path without links: what a link points to is replaced, not the link."""
    return Path(os.path.realpath(folder))
