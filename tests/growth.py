"""How CPU time grows with an input: measured, and held to be near-linear."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SLACK = 0.05  # seconds: what noise and fixed costs may add


def cpu_seconds(work: Callable[[], object], tries: int = 1) -> float:
    """Return the least CPU time of some tries."""
    times = []
    for _ in range(tries):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def assert_near_linear(
    small: Callable[[], object], large: Callable[[], object], factor: int
) -> tuple[float, float]:
    """Assert that `large`, with `factor` times the input of `small`, takes not its square.

    Linear work takes `factor` times as long, quadratic work its square: the limit lies between the
    two. What is over the limit is measured again, as another process may have been in the way.
    """
    first, second = cpu_seconds(small, 3), float("inf")  # the first time something is imported
    for _ in range(4):
        first = min(first, cpu_seconds(small))
        second = min(second, cpu_seconds(large))
        if second <= factor**1.5 * first + SLACK:
            return first, second
    raise AssertionError(f"{factor} times the input took {first:.3f} s, then {second:.3f} s")
