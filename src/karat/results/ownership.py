"""Which folders are results of karat, so that it may replace or delete them, and which are not."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from karat.errors import SaveError

MANIFEST, SUMMARY = "manifest.json", "summary.json"
TABLES = ("per_query", "queries", "relation", "about", "listed", "verdicts")
FILES = frozenset({MANIFEST, SUMMARY, *(f"{name}.parquet" for name in TABLES)})
SHOWN = 3  # names in a message


def refuse_foreign(folder: str | os.PathLike[str]) -> None:
    """Raise unless a new result may be put there: over nothing, or over a result of karat."""
    refuse(why_foreign(real_path(folder)), folder)


def refuse(reason: str, where: str | os.PathLike[str]) -> None:
    """Raise if there is a reason why a folder must stay as it is."""
    if reason:
        raise SaveError(
            f"this is not a karat result that may be replaced: {reason}",
            where=os.fspath(where),
            fix="name a new folder; karat deletes nothing but its own results",
        )


def why_foreign(target: Path) -> str:
    """Say why what stands there is not ours to replace; an empty string, if it is."""
    try:
        return _why_foreign(target)
    except OSError as error:
        return f"it cannot be looked into: {error.strerror}"


def _why_foreign(target: Path) -> str:
    if not os.path.lexists(target):
        return ""
    if target.is_symlink() or not target.is_dir():
        return "it is not a folder"
    if target == Path.cwd():
        return "it is the folder you are in"
    strangers = _strangers(target)
    if strangers:
        more = ", …" if len(strangers) > SHOWN else ""
        return f"it holds {', '.join(strangers[:SHOWN])}{more}"
    if any(target.iterdir()) and not _is_manifest(target / MANIFEST):
        return f"it has no {MANIFEST} that karat wrote"
    return "" if os.access(target, os.W_OK) else "it is write-protected"


def _strangers(folder: Path) -> list[str]:
    """Return the names of what is not a file of a result."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name not in FILES or not entry.is_file(follow_symlinks=False)
        )


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
        if not _strangers(folder):
            for path in sorted(folder.iterdir(), key=lambda path: path.name == MANIFEST):
                path.unlink()  # the manifest last: it tells whose folder this is
            folder.rmdir()


def real_path(folder: str | os.PathLike[str]) -> Path:
    """Return the path without links: what a link points to is replaced, not the link."""
    return Path(os.path.realpath(folder))
