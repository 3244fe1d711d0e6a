"""Jobs of many requests to one endpoint: each request once, many at a time, connections kept.

A `Session` works in a thread with an event loop of its own, so that it can be used from any script
or notebook, and keeps that loop and its connections from job to job.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from findwell.core.errors import SaveError
from findwell.judges.client.batches import BATCH_LINES, BatchRecords, BatchTransport
from findwell.judges.client.budget import CallBudget
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import Client, RetryPolicy, Transport
from findwell.judges.client.protocol import Answer, Failure, Outcome

if TYPE_CHECKING:
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.protocol import ChatRequest, Request

TICK_SECONDS = 0.2  # after which a waiting caller looks up; some systems see Ctrl-C only then
CLOSING_SECONDS = 1.0  # that a session waits for its connections to close
OPEN_PER_CALL = 2  # conversations that are open: the next call is ready when one ends

T = TypeVar("T")
Ask: TypeAlias = "Callable[[ChatRequest], Awaitable[Outcome]]"
Conversation: TypeAlias = Callable[[Ask], Awaitable[T]]
Ended: TypeAlias = "queue.SimpleQueue[int | None]"  # how many conversations; None: all is over


def split_texts(texts: Sequence[str], most: int, characters: int) -> Iterator[slice]:
    """Split texts into requests of a limited number and size.

    >>> [*split_texts(["ab", "c", "defg", "h"], 2, 4)]
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start = size = 0
    for at, text in enumerate(texts):
        if at > start and (at - start == most or size + len(text) > characters):
            yield slice(start, at)
            start, size = at, 0
        size += len(text)
    if texts:
        yield slice(start, len(texts))


class Session:
    """One pool of connections to an endpoint, for any number of jobs, one after another.

    It closes with `with`, with `close`, or when nothing refers to it any longer.
    """

    def __init__(
        self, endpoint: Endpoint, retry: RetryPolicy | None = None, *, batch: bool = False
    ) -> None:
        """Take where to ask; with `batch` conversations are held by batches."""
        self.endpoint = endpoint
        self.retry = retry or RetryPolicy()
        self.batch = batch
        self._thread: _Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; another job would open new ones."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def run(
        self,
        conversations: Iterable[Conversation[T]],
        *,
        cache: Cache | None = None,
        budget: CallBudget | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[T]:
        """Hold all conversations and return what each came to, in their order.

        A conversation asks what it has to ask, several things at once if it likes, and goes on
        with the outcomes. It is begun shortly before its first request can be sent, so that a job
        of any length has few prompts in memory, and what is made of one answer does not keep
        others waiting. `progress` is called in the caller's thread with the number of
        conversations that have ended. Ctrl-C stops the job; what was answered until then is in
        the cache.
        """
        memory = Cache.open(mode="off") if cache is None else contextlib.nullcontext(cache)
        with memory as store:
            store.get([b""])  # a file that cannot be read is reported before anything is asked
            client = self._client(budget)
            job = _Job(client, store)
            client.notice = job.report
            results: dict[int, T] = {}
            work = job.run(conversations, results)
            if self.batch:
                work = self._by_batches(job, store).during(work)
            self._wait(work, job.ended, progress)
            return [results[number] for number in range(len(results))]

    def _by_batches(self, job: _Job, store: Cache) -> BatchTransport:
        """Have the client of a job send batches; what they hold is noted next to the cache."""
        client = job.client

        def notice(text: str) -> None:
            client.budget.under_way = text
            job.report()

        folder = None if store.path is None else store.path.parent
        records = BatchRecords(folder, self.endpoint.identity)
        sent = BatchTransport(self._started().transport, self.retry, records, notice)
        many = replace(self.retry, concurrency=BATCH_LINES)
        job.client = Client(self.endpoint, sent, client.budget, many)
        return sent

    def ask_all(
        self, requests: Iterable[Request], refuse: Callable[[Failure], Exception]
    ) -> list[Answer]:
        """Ask all requests and return their answers, in their order; nothing is cached.

        The first that fails ends it, with the error that `refuse` makes of the failure.
        """
        client = self._client()
        answers: dict[int, Answer] = {}

        async def ask(number: int, request: Request) -> None:
            outcome = await client.ask(request)
            if isinstance(outcome, Failure):
                raise refuse(outcome)
            answers[number] = outcome

        async def ask_together() -> None:
            with _first_error():
                async with asyncio.TaskGroup() as group:
                    for number, request in enumerate(requests):
                        group.create_task(ask(number, request))

        self._wait(ask_together(), queue.SimpleQueue(), None)
        return [answers[number] for number in range(len(answers))]

    def _client(self, budget: CallBudget | None = None) -> Client:
        budget = CallBudget() if budget is None else budget
        return Client(self.endpoint, self._started().transport, budget, self.retry)

    def _started(self) -> _Thread:
        """Return the thread, a new one if there is none, as in a process that was just forked."""
        if self._thread is None or not self._thread.is_alive():
            transport = Transport(
                self.endpoint, timeout=self.retry.timeout, connections=self.retry.concurrency
            )
            self._thread = _Thread(transport)
            self._thread.start()
            weakref.finalize(self, self._thread.stop)
        return self._thread

    def _wait(
        self, work: Coroutine[Any, Any, None], ended: Ended, progress: Callable[[int], None] | None
    ) -> None:
        """Run a coroutine to its end, and report its progress meanwhile."""
        thread = self._started()
        task = thread.begin(work, ended)
        try:
            while (count := _next(ended)) is not None:
                if progress is not None:
                    progress(count)
        except BaseException:  # Ctrl-C, or an error of the caller's own
            thread.cancel(task)
            while _next(ended) is not None:
                pass
            raise
        task[0].result()


class _Thread(threading.Thread):
    """An event loop in a thread, and the transport that is used in it."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(name="findwell-client", daemon=True)
        self.transport = transport
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        self._loop.run_forever()
        # not by asyncio.Runner: it starts a thread, which an interpreter that ends does not allow
        self._loop.run_until_complete(self._finish())
        self._loop.close()

    async def _finish(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.transport.close()
        await self._loop.shutdown_asyncgens()

    def begin(self, work: Coroutine[Any, Any, None], ended: Ended) -> list[asyncio.Task[None]]:
        """Start a coroutine; its task is in the list when None, the last message, is sent."""
        started: list[asyncio.Task[None]] = []

        def finished(task: asyncio.Task[None]) -> None:
            _ = task.cancelled() or task.exception()  # seen, also if it is never asked for
            ended.put(None)

        def start() -> None:
            started.append(self._loop.create_task(work))
            started[0].add_done_callback(finished)

        self._loop.call_soon_threadsafe(start)
        return started

    def cancel(self, task: list[asyncio.Task[None]]) -> None:
        """Stop a coroutine that was started."""

        def stop() -> None:  # it is in the list by then
            task[0].cancel()

        self._loop.call_soon_threadsafe(stop)

    def stop(self) -> None:
        """Close all connections and end the thread."""
        with contextlib.suppress(RuntimeError):  # it has ended before
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self.is_alive() and self is not threading.current_thread():
            self.join(CLOSING_SECONDS)


@dataclass(slots=True)
class _Job:
    """The conversations of one job: what one of them asked, no other asks again."""

    client: Client
    cache: Cache
    ended: Ended = field(default_factory=queue.SimpleQueue)
    _count: int = 0
    # each request of the job; its outcome, unless it can be found in the cache
    _asked: dict[bytes, asyncio.Future[Outcome] | None] = field(default_factory=dict)

    async def run(self, conversations: Iterable[Conversation[T]], results: dict[int, T]) -> None:
        """Hold the conversations, several at a time, until there are no more."""
        places = asyncio.Semaphore(OPEN_PER_CALL * self.client.retry.concurrency)

        async def hold(number: int, conversation: Conversation[T]) -> None:
            try:
                results[number] = await conversation(self.ask)
            finally:
                places.release()
            self._count += 1
            self.report()

        with _first_error():
            async with asyncio.TaskGroup() as group:
                left = enumerate(conversations)
                await places.acquire()
                while following := next(left, None):
                    group.create_task(hold(*following))
                    await places.acquire()

    def report(self) -> None:
        """Tell the caller how many have ended, or that what was spent has changed."""
        self.ended.put(self._count)

    async def ask(self, request: ChatRequest) -> Outcome:
        """Return what is known, or ask."""
        budget = self.client.budget
        budget.requests += 1
        key = request.key(self.client.endpoint)
        if key in self._asked:
            budget.repeated += 1
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
        budget.note(outcome)
        ours.set_result(outcome)
        if isinstance(outcome, Answer) and (outcome.stored or self.cache.put(key, outcome)):
            self._asked[key] = None
        self.report()
        return outcome

    def _look_up(self, key: bytes) -> Answer | None:
        """Return what was answered before, perhaps to another process and just now."""
        with contextlib.suppress(SaveError):  # a file that others keep busy, not a damaged one
            return self.cache.get([key]).get(key)
        return None


@contextlib.contextmanager
def _first_error() -> Iterator[None]:
    """Raise what went wrong first, alone, instead of a group of errors."""
    try:
        yield
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


def _next(ended: Ended) -> int | None:
    while True:
        with contextlib.suppress(queue.Empty):
            return ended.get(timeout=TICK_SECONDS)
