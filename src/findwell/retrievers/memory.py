"""How much memory the process has had at most."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1e6
OFTEN = 0.005  # seconds between two looks: asking the system costs more than a quick search
# what the system counts in: kilobytes, on a Mac bytes
UNIT = 1 if sys.platform == "darwin" else 1024
STATUS = Path("/proc/self/status")
PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.MULTILINE)


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
            found = peak_bytes()
            # Linux counts roughly: a later look may say a little less
            if found is not None:
                self._last = max(self._last or 0.0, round(found / MEGABYTE, 1))
        return self._last


def peak_bytes() -> float | None:
    """Return the largest memory of this process so far in bytes; None where nobody knows."""
    return _read()


def _by_status() -> float | None:
    """Return what Linux tells: `getrusage` would begin with the peak of the parent there."""
    try:
        found = PEAK.search(STATUS.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024.0


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
    if _by_status() is not None:
        return _by_status
    for way in (_by_resource, _by_psutil):
        try:
            return way()
        except ImportError:
            continue
    return lambda: None


_read = _choose()
