"""The gate: how many go through, who waits, and how long."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from findwell.judges.client.budget import Capacity
from findwell.judges.client.client import LONGEST_WAIT, Pacer
from findwell.judges.client.protocol import retry_after


def pacer(most: int = 8, seed: int = 1) -> Pacer:
    return Pacer(most, first_wait=0.5, rng=np.random.default_rng(seed))


def now() -> Capacity:
    return Capacity.NOW


async def entered(tasks: list[asyncio.Task[bool]]) -> int:
    """Let all that can go through do so, and count them."""
    for _ in range(10):
        await asyncio.sleep(0)
    return sum(task.done() for task in tasks)


def test_no_more_than_allowed_go_through() -> None:
    async def main() -> None:
        gate = pacer(3)
        tasks = [asyncio.create_task(gate.enter(now)) for _ in range(5)]
        assert await entered(tasks) == 3 == gate.in_flight
        gate.leave()
        assert await entered(tasks) == 4
        gate.leave()
        gate.leave()
        assert await entered(tasks) == 5
        assert gate.in_flight == 2

    asyncio.run(main())


def test_those_turned_down_together_count_once() -> None:
    gate = pacer(16)
    sent = time.monotonic()
    for _ in range(16):
        gate.turned_down(sent, 0.0)
    assert gate.allowed == 8
    gate.turned_down(time.monotonic(), 0.0)
    assert gate.allowed == 4


def test_the_allowed_number_never_falls_below_one_and_grows_back_to_the_most() -> None:
    gate = pacer(4)
    for _ in range(10):
        gate.turned_down(time.monotonic(), 0.0)
    assert gate.allowed == 1
    gate.answered()
    assert gate.allowed == 2  # one more after one answer, then after two, …
    gate.answered()
    assert 2 < gate.allowed < 3
    for _ in range(100):
        gate.answered()
    assert gate.allowed == 4


def test_everybody_waits_until_the_time_that_one_was_told() -> None:
    async def main() -> None:
        gate = pacer(4)
        start = time.monotonic()
        gate.turned_down(start, 0.05)
        gate.turned_down(start, 0.02)  # told to the same group: the later time holds
        assert all(await asyncio.gather(gate.enter(now), gate.enter(now)))
        assert time.monotonic() - start >= 0.05

    asyncio.run(main())


@pytest.mark.parametrize("told", [None, 0.0])
def test_who_is_told_no_time_waits_all_the_same(told: float | None) -> None:
    gate = pacer(4)
    before = time.monotonic()
    gate.turned_down(before, told)
    assert gate._open_from > before
    opens = gate._open_from
    gate.turned_down(before, told)  # of the same group: nothing new
    assert gate._open_from == opens


@pytest.mark.parametrize("attempt", [1, 2, 5, 30, 10_000])
def test_waits_are_random_up_to_a_doubling_time(attempt: int) -> None:
    longest = min(0.5 * 2.0 ** min(attempt - 1, 30), LONGEST_WAIT)
    waits = [pacer(seed=seed).back_off(attempt) for seed in range(200)]
    assert all(0 <= wait <= longest for wait in waits)
    assert min(waits) < 0.1 * longest
    assert max(waits) > 0.9 * longest
    assert waits == [pacer(seed=seed).back_off(attempt) for seed in range(200)]


def test_who_has_no_room_ever_is_sent_away_and_who_may_later_waits() -> None:
    async def main() -> None:
        gate = pacer(4)
        assert not await gate.enter(lambda: Capacity.NEVER)
        assert not await gate.enter(lambda: Capacity.LATER)  # nobody is under way: later is never
        assert gate.in_flight == 0
        rooms = iter([Capacity.LATER, Capacity.NOW])
        assert await gate.enter(now)
        task = asyncio.create_task(gate.enter(lambda: next(rooms)))
        assert await entered([task]) == 0
        gate.leave()
        assert await task
        assert gate.in_flight == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("header", "expected"),
    [("3", 3), ("-3", 0), ("nan", None), ("inf", None), ("", None), ("soon", None), (None, None)],
)
def test_retry_after_is_read_with_care(header: str | None, expected: float | None) -> None:
    assert retry_after({} if header is None else {"retry-after": header}) == expected


def test_retry_after_may_be_a_date() -> None:
    wait = retry_after({"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"})
    assert wait is not None
    assert wait > 1e8
    assert retry_after({"retry-after": "Fri, 31 Dec 1999 23:59:59"}) == 0
