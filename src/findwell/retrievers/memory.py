"""How much memory the process has had at most."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from pathlib import Path

LOOK_SECONDS = 0.005  # seconds between two looks: asking the system costs more than a quick search
# what the system counts in: kilobytes, on a Mac bytes
UNIT = 1 if sys.platform == "darwin" else 1024
STATUS = Path("/proc/self/status")
PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.MULTILINE)


class PeakMemory:
    """Tells the largest memory of this process so far in megabytes; None where it is unknown.

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
            self._until = now + LOOK_SECONDS
            found = peak_bytes()
            # Linux counts roughly: a later look may say a little less
            if found is not None:
                self._last = max(self._last or 0.0, round(found / 1e6, 1))
        return self._last


def peak_bytes() -> float | None:
    """Return the largest memory of this process so far in bytes; None where it is unknown."""
    with contextlib.suppress(OSError):  # Linux, where `getrusage` would begin with the parent's
        found = PEAK.search(STATUS.read_text(encoding="ascii", errors="replace"))
        if found is not None:
            return int(found[1]) * 1024.0
    with contextlib.suppress(ImportError):
        from resource import RUSAGE_SELF, getrusage  # noqa: PLC0415 - not on Windows

        return float(getrusage(RUSAGE_SELF).ru_maxrss * UNIT)
    with contextlib.suppress(ImportError):
        import psutil  # noqa: PLC0415 - where it is installed

        memory = psutil.Process().memory_info()
        return float(getattr(memory, "peak_wset", memory.rss))
    return None
