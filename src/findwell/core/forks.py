"""Processes that were forked after polars had started its threads, where it waits for ever.

A fork copies the memory of a process but only one of its threads. polars then waits for threads
that are not there. findwell says so instead: the public functions ask `refuse_after_fork` first. A
process that was forked before polars was used starts threads of its own, and nothing is refused.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

# without pathlib: this is imported whenever findwell is
PROCESSES = "/proc"  # where Linux tells the names of threads
POLARS = b"polars-"  # and a number: the threads that work

_used = False  # findwell was called in this process
_started = False  # polars had its threads when this process forked
_lost = False  # this process was forked from one where polars had its threads


def refuse_after_fork() -> None:
    """Raise if polars would wait for ever in this process; else note that it is used from now."""
    global _used  # noqa: PLW0603
    if _lost:
        from findwell.core.errors import ForkError  # noqa: PLC0415 - only needed for this error

        raise ForkError(
            "this process was forked after findwell or polars was used: polars would hang in it",
            fix="start processes by spawn or forkserver: "
            "multiprocessing.get_context('spawn'), DataLoader(multiprocessing_context='spawn'), "
            "gunicorn without --preload; or fork before the first use (docs/running.md)",
        )
    _used = True


def not_after_fork(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: `refuse_after_fork` before the function is called."""

    @wraps(function)
    def guarded(*args: P.args, **given: P.kwargs) -> R:
        refuse_after_fork()
        return function(*args, **given)

    return guarded


def _before_fork() -> None:
    global _started  # noqa: PLW0603
    _started = _has_threads()


def _after_fork() -> None:
    global _lost  # noqa: PLW0603
    _lost = _lost or _started


def _has_threads() -> bool:
    """Tell whether polars has started its threads, by whomever it was used."""
    try:
        return any(map(_works, _threads("self")))
    except OSError:  # not Linux: only findwell's own use is known
        return _used


def _works(name: bytes) -> bool:
    return name.startswith(POLARS) and name[len(POLARS) : len(POLARS) + 1].isdigit()


def _threads(process: int | str) -> list[bytes]:
    """Return the names of the threads of a process."""
    folder = f"{PROCESSES}/{process}/task"
    names = []
    for task in os.listdir(folder):  # noqa: PTH208
        try:
            names.append(_content(f"{folder}/{task}/comm"))
        except OSError:  # it has ended
            continue
    return names


def _content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _forked_before_import() -> bool:
    """Tell whether the parent had used polars and then forked this process, which imports findwell.

    polars is loaded, but its threads are only in the parent, which has it at the same place of its
    memory: a process that was not forked from it would have another place.
    """
    if "polars" not in sys.modules:
        return False
    try:
        if any(name.startswith(POLARS) for name in _threads("self")):
            return False
        parent = os.getppid()
        return any(map(_works, _threads(parent))) and _place("self") == _place(parent) != b""
    except OSError:
        return False


def _place(process: int | str) -> bytes:
    """Return where a process has polars in its memory."""
    lines = _content(f"{PROCESSES}/{process}/maps").splitlines()
    return next((line.split(b"-")[0] for line in lines if b"polars" in line), b"")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
    _lost = _forked_before_import()
