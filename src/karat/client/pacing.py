"""How fast to ask: one gate for all workers of a job.

A server that says "too many requests" means all of us. So everybody waits until it is time again,
and fewer go through at once: the number allowed is halved, and grows by one each time that many
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

LONGEST = 60.0  # seconds of waiting that nobody asked for
SHRINK = 0.5


class Room(Enum):
    """Whether there is room for one more call."""

    NOW = "now"
    LATER = "later"  # perhaps, when one that is under way turns out smaller than it might
    NEVER = "never"


class Pacer:
    """Lets workers through: not too many, not too early."""

    def __init__(self, most: int, *, first_wait: float, rng: np.random.Generator) -> None:
        self.most = most
        self.allowed = float(most)
        self.in_flight = 0
        self._first_wait = first_wait
        self._rng = rng
        self._open_from = 0.0
        self._slowed = 0.0
        self._refusals = 0  # in a row
        self._queue: deque[asyncio.Future[None]] = deque()  # who waits for others to leave

    async def enter(self, room: Callable[[], Room]) -> bool:
        """Wait for a turn; False if there is never going to be room. Who entered must leave."""
        while True:
            if (wait := self._open_from - time.monotonic()) > 0:
                await asyncio.sleep(wait)
                continue
            if self.in_flight < int(self.allowed):
                answer = room()
                if answer is Room.NOW:
                    self.in_flight += 1
                    return True
                if answer is Room.NEVER or not self.in_flight:
                    self._call_next()  # who is told the same, most likely
                    return False
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            await turn

    def leave(self) -> None:
        """Make room for the next."""
        self.in_flight -= 1
        self._call_next()

    def _call_next(self) -> None:
        """Have as many of those who wait look again as may go through."""
        for _ in range(min(int(self.allowed) - self.in_flight, len(self._queue))):
            turn = self._queue.popleft()
            if not turn.done():  # cancelled, when the job is given up
                turn.set_result(None)

    def answered(self) -> None:
        """Speed up a little."""
        self._refusals = 0
        self.allowed = min(self.allowed + 1 / self.allowed, float(self.most))

    def turned_down(self, sent: float, wait: float | None) -> None:
        """Slow down; until the time that the server named, or for a while, nobody goes through."""
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
