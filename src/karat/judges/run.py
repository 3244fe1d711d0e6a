"""Ask many requests: each once, answered in order, from any script or notebook."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from karat.errors import KaratError
from karat.judges.answers import Answer, Outcome
from karat.judges.budget import Ledger
from karat.judges.cache import Cache
from karat.judges.client import Client, Manners

if TYPE_CHECKING:
    from karat.judges.endpoint import Endpoint
    from karat.judges.request import Request

TICK = 0.2  # seconds after which a waiting caller looks up; some systems see Ctrl-C only then


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is; tokens and cost are the ledger's, which may have served other jobs."""

    done: int
    total: int
    stored: int
    failed: int
    tokens: int
    cost: float | None


Report: TypeAlias = Callable[[Progress], None]
News: TypeAlias = "queue.SimpleQueue[Progress | None]"


def ask_all(
    requests: Iterable[Request],
    endpoint: Endpoint,
    *,
    cache: Cache | None = None,
    ledger: Ledger | None = None,
    manners: Manners | None = None,
    rng: np.random.Generator | None = None,
    progress: Report | None = None,
) -> list[Outcome]:
    """Ask all requests and return how each ended, in their order.

    Works where an event loop is running already, as in a notebook: it has a thread and a loop of
    its own, and `progress` is called in the caller's thread. Ctrl-C stops it; what was answered
    until then is in the cache.
    """
    with contextlib.nullcontext(cache) if cache is not None else Cache.open(mode="off") as store:
        job = Job(endpoint, store, ledger if ledger is not None else Ledger())
        job.add(requests)
        work = job.run(manners or Manners(), rng or np.random.default_rng(0))
        _in_own_thread(work, job.news, progress)
        return job.result()


@dataclass(slots=True)
class Job:
    """The requests of a job, each kind once, and how they ended."""

    endpoint: Endpoint
    cache: Cache
    ledger: Ledger
    news: News = field(default_factory=queue.SimpleQueue)
    _keys: list[bytes] = field(default_factory=list)
    _copies: Counter[bytes] = field(default_factory=Counter)
    _requests: dict[bytes, Request] = field(default_factory=dict)
    _outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    _done: int = 0
    _stored: int = 0
    _failed: int = 0

    def add(self, requests: Iterable[Request]) -> None:
        """Take requests, and the answers that are known already."""
        for request in requests:
            key = request.key(self.endpoint)
            self._keys.append(key)
            self._requests.setdefault(key, request)
        self._copies.update(self._keys)
        self.ledger.requests += len(self._keys)
        self.ledger.repeated += len(self._keys) - len(self._requests)
        for key, answer in self.cache.get(list(self._requests)).items():
            self._end(key, answer)
        self._tell()

    async def run(self, manners: Manners, rng: np.random.Generator) -> None:
        """Ask what is not known yet, several at a time."""
        pending = [key for key in self._requests if key not in self._outcomes]
        if not pending:
            return
        client = Client(self.endpoint, self.ledger, manners, rng)
        queued = iter(pending)
        try:
            async with client, asyncio.TaskGroup() as workers:
                for _ in range(min(manners.concurrency, len(pending))):
                    workers.create_task(self._work(queued, client))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _work(self, queued: Iterator[bytes], client: Client) -> None:
        for key in queued:
            outcome = self._look_up(key) or await client.ask(self._requests[key])
            if isinstance(outcome, Answer) and not outcome.stored:
                self.cache.put(key, outcome)
            self._end(key, outcome)
            self._tell()

    def _look_up(self, key: bytes) -> Answer | None:
        """Return what another process may have been answered since the job began."""
        with contextlib.suppress(KaratError):
            return self.cache.get([key]).get(key)
        return None

    def _end(self, key: bytes, outcome: Outcome) -> None:
        self._outcomes[key] = outcome
        self.ledger.note(outcome)
        self._done += self._copies[key]
        if not isinstance(outcome, Answer):
            self._failed += self._copies[key]
        elif outcome.stored:
            self._stored += self._copies[key]

    def _tell(self) -> None:
        counts = (self._done, len(self._keys), self._stored, self._failed)
        self.news.put(Progress(*counts, self.ledger.tokens, self.ledger.cost))

    def result(self) -> list[Outcome]:
        """Return how each request ended."""
        return [self._outcomes[key] for key in self._keys]


class _Thread(threading.Thread):
    """Runs a coroutine in an event loop of its own; None is its last news."""

    def __init__(self, work: Coroutine[Any, Any, None], news: News) -> None:
        super().__init__(name="karat-judge", daemon=True)
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


def _next(news: News) -> Progress | None:
    while True:
        with contextlib.suppress(queue.Empty):
            return news.get(timeout=TICK)
