"""The largest memory of a process is its own, not that of the process that started it."""

from __future__ import annotations

import subprocess
import sys

HOLDING = """
import time
from findwell.retrievers.memory import LOOK_SECONDS, PeakMemory
peak = PeakMemory()
said = [peak()]
held = b"x" * (int(said[0] * 1e6) + (64 << 20))
for _ in range(2):
    time.sleep(2 * LOOK_SECONDS)
    said.append(peak())
    size = len(held or b"")
    held = None
    print(said[-1], size)
"""
CHILD = "from findwell.retrievers.memory import peak_bytes; print(peak_bytes())"


def told(code: str) -> list[float]:
    """Return the numbers that a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return [float(word) for word in done.stdout.split()]


def test_a_peak_holds_what_was_held_once() -> None:
    with_it, size, after, nothing = told(HOLDING)
    assert with_it * 1e6 > size > 64 << 20
    assert nothing == 0
    assert after >= with_it


def test_a_child_does_not_begin_with_the_peak_of_its_parent() -> None:
    held = b"x" * (300 << 20)
    [peak] = told(CHILD)
    assert 0 < peak < len(held)
