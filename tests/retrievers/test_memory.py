"""The largest memory of a process is its own, not that of the process that started it."""

from __future__ import annotations

import subprocess
import sys
import time

from karat.retrievers.memory import OFTEN, PeakMemory

CHILD = "from karat.retrievers.memory import peak_bytes; print(peak_bytes())"


def test_a_peak_holds_what_was_held_once() -> None:
    peak = PeakMemory()
    before = peak()
    assert before is not None
    held = b"x" * (int(before * 1e6) + (64 << 20))
    time.sleep(2 * OFTEN)
    with_it = peak()
    assert with_it is not None
    assert with_it * 1e6 > len(held)
    del held
    time.sleep(2 * OFTEN)
    assert peak() == with_it


def test_a_child_does_not_begin_with_the_peak_of_its_parent() -> None:
    held = b"x" * (300 << 20)
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=60
    )
    assert 0 < float(done.stdout) < len(held)
