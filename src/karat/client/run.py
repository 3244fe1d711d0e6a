"""Hold many talks with a server: each request once, many under way, from any script or notebook."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from karat.client.answers import Answer, Failure, Outcome
from karat.client.budget import Budget
from karat.client.cache import Cache
from karat.client.client import Client, RetryPolicy
from karat.errors import SaveError

if TYPE_CHECKING:
    from karat.client.chat import ChatRequest
    from karat.client.endpoint import Endpoint
    from karat.client.request import Request

TICK = 0.2  # seconds after which a waiting caller looks up; some systems see Ctrl-C only then
OPEN = 2  # talks for each call that may be under way: the next call is ready when one ends

T = TypeVar("T")
Ask: TypeAlias = "Callable[[ChatRequest], Awaitable[Outcome]]"
Talk: TypeAlias = Callable[[Ask], Awaitable[T]]
Report: TypeAlias = Callable[[int], None]  # is told how many talks have ended
News: TypeAlias = "queue.SimpleQueue[int | None]"


def hold_all(
    talks: Iterable[Talk[T]],
    endpoint: Endpoint,
    *,
    cache: Cache | None = None,
    ledger: Budget | None = None,
    manners: RetryPolicy | None = None,
    rng: np.random.Generator | None = None,
    progress: Report | None = None,
) -> list[T]:
    """Hold all talks with an endpoint and return what each came to, in their order.

    A talk asks what it has to ask, several things at once if it likes, and goes on with the
    outcomes. It is begun shortly before its first request can be sent, so that a job of any
    length has few prompts in memory, and what is made of one answer does not keep others waiting.

    Works where an event loop is running already, as in a notebook: it has a thread and a loop of
    its own, and `progress` is called in the caller's thread. Ctrl-C stops it; what was answered
    until then is in the cache.
    """
    with contextlib.nullcontext(cache) if cache is not None else Cache.open(mode="off") as store:
        store.get([b""])  # a file that cannot be read is told of before anything is asked
        ledger = ledger if ledger is not None else Budget()
        client = Client(endpoint, ledger, manners or RetryPolicy(), rng or np.random.default_rng(0))
        job = Job(client, store)
        results: dict[int, T] = {}
        _in_own_thread(job.run(talks, results), job.news, progress)
        return [results[number] for number in range(len(results))]


def ask_all(
    requests: Iterable[Request],
    endpoint: Endpoint,
    *,
    manners: RetryPolicy,
    refuse: Callable[[Failure], Exception],
) -> list[Answer]:
    """Ask all requests and return their answers, in their order; nothing is remembered.

    The first that fails ends it, with the error that `refuse` makes of the failure.
    """
    client = Client(endpoint, Budget(), manners, np.random.default_rng(0))
    answers: dict[int, Answer] = {}

    async def ask(number: int, request: Request) -> None:
        outcome = await client.ask(request)
        if isinstance(outcome, Failure):
            raise refuse(outcome)
        answers[number] = outcome

    async def ask_together() -> None:
        try:
            async with client, asyncio.TaskGroup() as group:
                for number, request in enumerate(requests):
                    group.create_task(ask(number, request))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    _in_own_thread(ask_together(), queue.SimpleQueue(), None)
    return [answers[number] for number in range(len(answers))]


@dataclass(slots=True)
class Job:
    """Talks with one endpoint: what one was told, no other asks for again."""

    client: Client
    cache: Cache
    news: News = field(default_factory=queue.SimpleQueue)
    _done: int = 0
    # each request of the job; its outcome, unless it can be found in the cache
    _asked: dict[bytes, asyncio.Future[Outcome] | None] = field(default_factory=dict)

    async def run(self, talks: Iterable[Talk[T]], results: dict[int, T]) -> None:
        """Hold the talks, several at a time, until there are no more."""
        left = enumerate(talks)
        try:
            async with self.client, asyncio.TaskGroup() as holders:
                for _ in range(OPEN * self.client.manners.concurrency):
                    holders.create_task(self._hold(left, results))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    async def _hold(self, left: Iterator[tuple[int, Talk[T]]], results: dict[int, T]) -> None:
        for number, talk in left:
            results[number] = await talk(self.ask)
            self._done += 1
            self.news.put(self._done)
            await asyncio.sleep(0)  # a talk that had nothing to wait for lets others go on, too

    async def ask(self, request: ChatRequest) -> Outcome:
        """Return what is known, or ask."""
        ledger = self.client.ledger
        ledger.requests += 1
        key = request.key(self.client.endpoint)
        if key in self._asked:
            ledger.repeated += 1
            asked = self._asked[key]
            if asked is not None:
                return await asyncio.shield(asked)
            if (answer := self._look_up(key)) is not None:
                return answer
        self._asked[key] = ours = asyncio.get_running_loop().create_future()
        try:
            outcome = self._look_up(key) or await self.client.ask(request)
        except BaseException:
            ours.cancel()
            raise
        ledger.note(outcome)
        ours.set_result(outcome)
        if isinstance(outcome, Answer) and (outcome.stored or self.cache.put(key, outcome)):
            self._asked[key] = None
        self.news.put(self._done)
        return outcome

    def _look_up(self, key: bytes) -> Answer | None:
        """Return what was answered before, perhaps to another process and just now."""
        with contextlib.suppress(SaveError):  # a file in the way of others, not a damaged one
            return self.cache.get([key]).get(key)
        return None


def _first(error: BaseException) -> BaseException:
    """Return what went wrong first, alone."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Thread(threading.Thread):
    """Runs a coroutine in an event loop of its own; None is its last news."""

    def __init__(self, work: Coroutine[Any, Any, None], news: News) -> None:
        super().__init__(name="karat-client", daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._news = news
        self._ready = threading.Event()
        self._abandon: Callable[[], object] = bool  # nothing to abandon, until it runs

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self.error = error
        finally:
            self._ready.set()
            self._news.put(None)

    async def _main(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            self._abandon = lambda: loop.call_soon_threadsafe(task.cancel)
        self._ready.set()
        await self._work

    def cancel(self) -> None:
        """Stop it, and wait until all connections are closed."""
        self._ready.wait()
        with contextlib.suppress(RuntimeError):  # it has just ended by itself
            self._abandon()
        self.join()


def _in_own_thread(work: Coroutine[Any, Any, None], news: News, report: Report | None) -> None:
    """Run a coroutine to its end, and pass on its news meanwhile."""
    thread = _Thread(work, news)
    thread.start()
    try:
        while (latest := _next(news)) is not None:
            if report is not None:
                report(latest)
    except BaseException:  # Ctrl-C, or an error of the caller's own
        thread.cancel()
        raise
    thread.join()
    if thread.error is not None:
        raise thread.error


def _next(news: News) -> int | None:
    while True:
        with contextlib.suppress(queue.Empty):
            return news.get(timeout=TICK)
