"""How much memory the process has had at most."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1e6
OFTEN = 0.005  # seconds between two looks: asking the system costs more than a quick search
# what the system counts in: kilobytes, on a Mac bytes
UNIT = 1 if sys.platform == "darwin" else 1024


class PeakMemory:
    """Tells the largest memory of this process so far in megabytes; None where nobody knows.

    >>> PeakMemory()() > 1
    True
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._until = 0.0

    def __call__(self) -> float | None:
        """Return what the system says, which is asked again only after a while."""
        now = time.perf_counter()
        if now >= self._until:
            self._until = now + OFTEN
            found = _read()
            self._last = None if found is None else round(found / MEGABYTE, 1)
        return self._last


def _by_resource() -> Callable[[], float | None]:
    from resource import RUSAGE_SELF, getrusage  # noqa: PLC0415 - not on Windows

    return lambda: getrusage(RUSAGE_SELF).ru_maxrss * UNIT


def _by_psutil() -> Callable[[], float | None]:
    import psutil  # noqa: PLC0415 - where it is installed

    process = psutil.Process()

    def read() -> float | None:
        memory = process.memory_info()
        return float(getattr(memory, "peak_wset", memory.rss))

    return read


def _choose() -> Callable[[], float | None]:
    """Return how it is read: by the system itself, else by psutil, as on Windows."""
    for way in (_by_resource, _by_psutil):
        try:
            return way()
        except ImportError:
            continue
    return lambda: None


_read = _choose()
