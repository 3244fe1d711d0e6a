"""A terminal to run commands on: a real pseudo-terminal, with the command in this process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from findwell.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def on_terminal(arguments: Sequence[object], columns: int, **environment: str) -> tuple[str, int]:
    """Run findwell on a terminal of so many columns; return what it showed, and its exit code."""
    known = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    blocks: list[bytes] = []
    reader = threading.Thread(target=_read, args=(screen, blocks))
    reader.start()
    with (
        mock.patch.dict(os.environ, {**known, "TERM": "xterm", **environment}, clear=True),
        _standard_streams(end),
        pytest.raises(SystemExit) as stop,
    ):
        main([str(each) for each in arguments])
    reader.join()
    os.close(screen)
    assert isinstance(stop.value.code, int)
    return b"".join(blocks).decode().replace("\r\n", "\n"), stop.value.code


def _read(screen: int, blocks: list[bytes]) -> None:
    """Read what a terminal shows, until nobody can write to it."""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while block := os.read(screen, 65_536):
            blocks.append(block)


@contextlib.contextmanager
def _standard_streams(end: int) -> Iterator[None]:
    """Let standard output and standard error be one end of a terminal, which is closed then."""
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(end, number)
        os.close(end)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False) as err,
            mock.patch.multiple(sys, stdout=out, stderr=err, __stdout__=out),
        ):
            yield
    finally:
        for number, other in kept.items():
            os.dup2(other, number)
            os.close(other)
