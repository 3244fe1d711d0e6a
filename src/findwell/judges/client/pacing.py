"""How fast to ask: one limit on calls under way for all conversations of a job.

A server that answers "too many requests" means all of them. So all wait as long as it asks for,
and fewer calls are allowed at once: their number is halved, and grows by one each time that many
have been answered. Several that were under way together and are turned down together count once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

LONGEST = 60.0  # seconds of waiting that the server did not ask for
SHRINK = 0.5


class Capacity(Enum):
    """Whether there is room for one more call."""

    NOW = "now"
    LATER = "later"  # perhaps, if one that is under way needs less than was expected
    NEVER = "never"


class Pacer:
    """Lets calls through: not too many at a time, not too early."""

    def __init__(self, limit: int, *, first_wait: float, rng: np.random.Generator) -> None:
        self.limit = limit
        self.allowed = float(limit)
        self.in_flight = 0
        self._first_wait = first_wait
        self._rng = rng
        self._open_from = 0.0
        self._slowed = 0.0
        self._refusals = 0  # in a row
        self._queue: deque[asyncio.Future[None]] = deque()  # those who wait for others to leave

    async def enter(self, capacity: Callable[[], Capacity]) -> bool:
        """Wait for a turn; False if there will never be room. Whoever entered must leave."""
        while True:
            if (wait := self._open_from - time.monotonic()) > 0:
                await asyncio.sleep(wait)
                continue
            if self.in_flight < int(self.allowed):
                answer = capacity()
                if answer is Capacity.NOW:
                    self.in_flight += 1
                    return True
                if answer is Capacity.NEVER or not self.in_flight:
                    self._call_next()  # which is refused as well, most likely
                    return False
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            await turn

    def leave(self) -> None:
        """Make room for the next."""
        self.in_flight -= 1
        self._call_next()

    def _call_next(self) -> None:
        """Wake as many of those who wait as may go through."""
        for _ in range(min(int(self.allowed) - self.in_flight, len(self._queue))):
            turn = self._queue.popleft()
            if not turn.done():  # cancelled, when the job is given up
                turn.set_result(None)

    def answered(self) -> None:
        """Speed up a little."""
        self._refusals = 0
        self.allowed = min(self.allowed + 1 / self.allowed, float(self.limit))

    def turned_down(self, sent: float, wait: float | None) -> None:
        """Slow down; nobody goes through for the time that the server named, or a random one."""
        if sent >= self._slowed:
            self._slowed = time.monotonic()
            self.allowed = max(self.allowed * SHRINK, 1.0)
            self._refusals += 1
            wait = wait or self.back_off(self._refusals)
        if wait:
            self._open_from = max(self._open_from, time.monotonic() + wait)

    def back_off(self, attempt: int) -> float:
        """Return a random time up to one that doubles with every attempt (full jitter)."""
        longest = min(self._first_wait * 2.0 ** min(attempt - 1, 30), LONGEST)
        return float(self._rng.uniform(0.0, longest))
