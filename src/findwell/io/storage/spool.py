"""Input that can be read only once, such as a pipe, is kept in a temporary file, up to a limit."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import shutil
import signal
import stat
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from findwell.core.errors import InputError, OptionError, SaveError
from findwell.io.storage.files import TMPDIR_FIX, no_room, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "FINDWELL_SPOOL_LIMIT"
# Twice the largest run that findwell is measured with (1 million queries × 100 documents). What is
# longer is more often endless than meant, and who means it has a file or names a limit.
DEFAULT_LIMIT = "8GiB"
CHUNK = 1 << 20  # bytes that are copied at once
LOOK = 64 << 20  # bytes after which the room on the disk is looked at again
ROOM, SHARE = 1 << 30, 0.05  # what stays free for others: 1 GiB, on small disks a twentieth
UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

_chosen: ContextVar[str] = ContextVar("findwell_spool_limit", default="")


@contextlib.contextmanager
def limited(limit: str) -> Iterator[None]:
    """Set the limit for what is read inside."""
    parse_size(limit)
    token = _chosen.set(limit)
    try:
        yield
    finally:
        _chosen.reset(token)


def parse_size(text: str, options: str = f"--read spool_limit, {VARIABLE}") -> int | None:
    """Return a number of bytes; None if there is no limit.

    >>> parse_size("8GiB"), parse_size("500 MB"), parse_size("2g"), parse_size("none")
    (8589934592, 500000000, 2147483648, None)
    """
    if text.strip().lower() == "none":
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(B?)\s*", text.upper(), re.ASCII)
    if found is None or (found[3] and not (found[2] and found[4])):
        raise OptionError(
            f"{text!r} is not a size",
            fix="write a number of bytes, such as 500MB or 20GiB, or none for no limit "
            f"({options})",
        )
    decimal = found[2] and found[4] and not found[3]
    return int(float(found[1]) * (1000 if decimal else 1024) ** UNITS[found[2]])


def spool(path: Path) -> Path:
    """Copy what comes out of a pipe into a temporary file, which is deleted when Python ends."""
    refuse_device(path)
    limit = _chosen.get() or os.environ.get(VARIABLE, "") or DEFAULT_LIMIT
    copy = _folder_of(os.getpid()) / f"{next(_numbers)}-{path.name}"
    if hasattr(signal, "siginterrupt"):  # polars has reads start again, so Ctrl-C would wait
        with contextlib.suppress(ValueError):  # in a thread, where no signal arrives
            signal.siginterrupt(signal.SIGINT, True)
    try:
        with path.open("rb", buffering=0) as pipe:
            copy_bounded(pipe, copy, str(path), limit)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    if copy.stat().st_size == 0:
        raise InputError(
            "the pipe was empty", where=str(path), fix="check the command before the pipe"
        )
    return copy


def copy_bounded(source: Readable, copy: Path, where: str, limit: str = "none") -> None:
    """Copy all there is to a temporary file, up to a limit and while the disk has room."""
    most = parse_size(limit)
    said = f"{limit} bytes" if limit.isdecimal() else limit
    done, look = 0, 0
    with contextlib.ExitStack() as held:
        with _written_to(copy.parent):
            out = held.enter_context(copy.open("wb"))
        while data := source.read(CHUNK):
            done += len(data)
            if most is not None and done > most:
                raise InputError(
                    f"the input did not end within {said}, the most that findwell keeps of a pipe",
                    where=where,
                    fix="if it does end, write it to a file and name that, or raise the limit with "
                    f"--read spool_limit or {VARIABLE}",
                )
            if done > look:
                if nearly_full(copy.parent):
                    raise SaveError(
                        "the disk for temporary files is nearly full after "
                        f"{done >> 20} MiB of {where}",
                        where=str(copy.parent.parent),
                        fix=TMPDIR_FIX,
                    )
                look = done + LOOK
            with _written_to(copy.parent):
                out.write(data)
        with _written_to(copy.parent):
            out.flush()


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes | None: ...  # noqa: D102


_numbers = itertools.count()  # two pipes may have the same name
_held = contextlib.ExitStack()  # for as long as Python runs


@functools.cache
def _folder_of(process: int) -> Path:
    """Return the folder of a process: one that was forked has its own."""
    del process
    return _held.enter_context(temporary_folder())


def refuse_device(path: Path) -> None:
    """Raise if it is a disk, or a device without an end; a terminal is typed into, and ends."""
    found = path.stat()
    if stat.S_ISBLK(found.st_mode):
        raise InputError("this is a disk, not a file", where=str(path), fix="name a file on it")
    if stat.S_ISCHR(found.st_mode) and not path.samefile(os.devnull):
        with path.open("rb", buffering=0) as device:
            if not device.isatty():
                raise InputError(
                    "this is a device, not a file", where=str(path), fix="name a file or a pipe"
                )


def nearly_full(folder: Path) -> bool:
    """Tell whether so little is free that it should be left to others."""
    disk = shutil.disk_usage(folder)
    return disk.free < min(ROOM, SHARE * disk.total)


@contextlib.contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    """Tell what goes wrong with the copy from what goes wrong with what is read."""
    try:
        yield
    except OSError as error:
        raise no_room(error, folder.parent) from None
