"""Asks the questions: one after the other, in threads, or in tasks of an event loop.

An answer is measured around the call alone. A question that raises, or that has no answer in time,
is a failure of that question with its reason; it is asked again as often as `retries` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, InputError, RetrieverError
from findwell.retrievers.answers import RetrieverAnswer
from findwell.retrievers.memory import PeakMemory
from findwell.retrievers.retriever import Call, Retriever, call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

PAUSE = 0.1  # seconds before a question is asked again; twice as many each time
ALL_FAIL = 10  # failures after which a retriever that never answered is given up
REASON = 300  # characters of a reason that are kept
LOOK = 0.05  # seconds between looks at the threads


@dataclass(slots=True)
class _Attempt:
    """A question that is being asked."""

    number: int
    question: str
    attempt: int = 0
    started: float = 0.0  # when it was asked first
    since: float | None = None  # when it was asked last; None while nothing is asked
    dropped: bool = False  # its time was over: whatever comes is too late


@dataclass(slots=True)
class Dispatcher:
    """Asks a retriever; every answer is handed to `take`, one at a time.

    `since` is how many seconds had been asked before, in a process that ended.
    """

    retriever: Retriever
    read: Callable[[Any], list[dict[str, Any]]]
    take: Callable[[RetrieverAnswer], None]
    since: float = 0.0
    memory: PeakMemory = field(default_factory=PeakMemory)
    answered: int = 0
    failed: int = 0
    _zero: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: BaseException | None = None

    def ask(self, work: Sequence[tuple[int, str]], warmup: Sequence[str] = ()) -> None:
        """Ask every question, numbered by its query."""
        call = call_of(self.retriever.target, self.retriever.k)
        jobs = (_Attempt(number, question) for number, question in work)
        if call.awaited:
            _run(self._in_tasks(call, jobs, warmup))
        else:
            for question in warmup:
                with contextlib.suppress(Exception):  # it fails again when it counts
                    _now(call.function(question))
            self._zero = time.perf_counter() - self.since
            if self.retriever.concurrency == 1 and self.retriever.timeout is None:
                for job in jobs:
                    self._finish(self._ask(call, job))
            else:
                self._in_threads(call, jobs)
        if self._stopped is not None:
            raise self._stopped

    def _ask(self, call: Call, job: _Attempt) -> RetrieverAnswer:
        """Ask a question until there is an answer, or no attempt is left."""
        cpu = time.process_time()
        while True:
            self._begin(job)
            try:
                answer = _now(call.function(job.question))
            except Exception as error:  # noqa: BLE001 - whatever a retriever raises
                if self._again(job):
                    time.sleep(self._pause(job))
                    continue
                return self._failure(job, error)
            return self._answer(job, answer, time.perf_counter(), time.process_time() - cpu)

    def _in_threads(self, call: Call, jobs: Iterator[_Attempt]) -> None:
        """Ask in threads; one whose time is over is left alone, and another takes its place."""
        working: dict[threading.Thread, _Attempt] = {}

        def work(first: _Attempt | None) -> None:
            me = threading.current_thread()
            while self._stopped is None:
                with self._lock:
                    job = first or next(jobs, None)
                    if job is None:
                        return
                    first, working[me] = None, job
                try:
                    answer = self._ask(call, job)
                    with self._lock:
                        if job.dropped:  # told by the thread that waits
                            return
                        job.since = None
                        self._finish(answer)
                except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                    self._stop(error)

        def start(first: _Attempt | None = None) -> threading.Thread:
            thread = threading.Thread(target=work, args=(first,), daemon=True)
            thread.start()
            return thread

        threads = [start() for _ in range(self.retriever.concurrency)]
        while threads and self._stopped is None:
            threads[0].join(LOOK)
            for late in self._late(working):
                threads.remove(late)
                job = working.pop(late)
                again = _Attempt(job.number, job.question, job.attempt, job.started)
                left = self._again(again)
                if not left:
                    with self._lock:
                        self._finish(self._failure(job, self._too_late()))
                threads.append(start(again if left else None))
            threads = [thread for thread in threads if thread.is_alive()]

    def _late(self, working: dict[threading.Thread, _Attempt]) -> list[threading.Thread]:
        """Return the threads whose question has had its time, and drop what they may answer."""
        limit, now = self.retriever.timeout, time.perf_counter()
        if limit is None:
            return []
        late = []
        with self._lock:
            for thread, job in working.items():
                if job.since is not None and now - job.since > limit:
                    job.dropped = True
                    late.append(thread)
        return late

    async def _in_tasks(self, call: Call, jobs: Iterator[_Attempt], warmup: Sequence[str]) -> None:
        for question in warmup:
            with contextlib.suppress(Exception):
                await call.function(question)
        self._zero = time.perf_counter() - self.since

        async def work() -> None:
            for job in jobs:
                if self._stopped is not None:
                    return
                self._finish(await self._ask_async(call, job))

        await asyncio.gather(*(work() for _ in range(self.retriever.concurrency)))

    async def _ask_async(self, call: Call, job: _Attempt) -> RetrieverAnswer:
        cpu = time.process_time()
        while True:
            self._begin(job)
            try:
                if self.retriever.timeout is None:
                    answer = await call.function(job.question)
                else:
                    async with asyncio.timeout(self.retriever.timeout) as limit:
                        answer = await call.function(job.question)
            except Exception as failed:  # noqa: BLE001 - whatever a retriever raises
                error = failed
                if isinstance(failed, TimeoutError) and self.retriever.timeout and limit.expired():
                    error = self._too_late()
                if self._again(job):
                    await asyncio.sleep(self._pause(job))
                    continue
                return self._failure(job, error)
            ended = time.perf_counter()
            return self._answer(job, answer, ended, time.process_time() - cpu)

    def _stop(self, error: BaseException) -> None:
        """Remember what ends it all, to be raised in the thread that waits; the first counts."""
        if self._stopped is None:
            self._stopped = error

    def _begin(self, job: _Attempt) -> None:
        job.since = time.perf_counter()
        job.started = job.started or job.since

    def _again(self, job: _Attempt) -> bool:
        """Count an attempt that failed; tell whether another is left."""
        job.attempt += 1
        return job.attempt <= self.retriever.retries and not job.dropped

    @staticmethod
    def _pause(job: _Attempt) -> float:
        job.since = None
        return PAUSE * float(2 ** (job.attempt - 1))

    def _too_late(self) -> Exception:
        return TimeoutError(f"no answer within {self.retriever.timeout:g} s")

    def _answer(self, job: _Attempt, answer: object, ended: float, cpu: float) -> RetrieverAnswer:
        try:
            if answer is None:
                raise InputError(
                    "the retriever returned None",
                    fix="return a list, an empty one where nothing was found; is a return missing?",
                )
            entries = self.read(answer)[: self.retriever.k]
            for entry in entries:
                entry.pop("metadata", None)  # its id is taken from it; the rest would fill memory
        except FindwellError as error:
            return self._failure(job, error)
        times, wide = (job.started - self._zero, ended - self._zero), self.retriever.concurrency
        # what the processor did meanwhile is this question's only if no other was asked
        own = cpu if wide == 1 else None
        return RetrieverAnswer(job.number, entries, None, *times, own, self.memory(), wide)

    def _failure(self, job: _Attempt, error: BaseException) -> RetrieverAnswer:
        times = job.started - self._zero, time.perf_counter() - self._zero
        wide = self.retriever.concurrency
        return RetrieverAnswer(job.number, None, _reason(error), *times, None, self.memory(), wide)

    def _finish(self, answer: RetrieverAnswer) -> None:
        """Hand an answer on; stop if too many have failed."""
        self.take(answer)
        if answer.error is None:
            self.answered += 1
            return
        self.failed += 1
        most = self.retriever.max_errors
        given_up = not self.answered and self.failed >= ALL_FAIL
        if (most is not None and self.failed > most) or (most is None and given_up):
            self._stopped = too_many(self.answered, self.failed, answer.error)
            raise self._stopped


def too_many(answered: int, failed: int, reason: str) -> RetrieverError:
    """Return the error about a retriever that fails too often."""
    return RetrieverError(
        f"the retriever failed for {failed} of {answered + failed} questions, the last time with "
        f"{reason}",
        fix="fix the retriever and start again; --max-errors (max_errors=) allows more failures",
    )


def _reason(error: BaseException) -> str:
    """Return in one line what went wrong."""
    if isinstance(error, FindwellError):
        return f"{error.what} (fix: {error.fix})"[:REASON] if error.fix else error.what[:REASON]
    lines = str(error).strip().splitlines() or [""]
    name = type(error).__name__
    return f"{name}: {lines[0]}"[:REASON] if lines[0] else name


def _now(answer: Any) -> Any:  # noqa: ANN401
    """Return an answer as it is once it is there: what a generator yields is asked for here."""
    if isinstance(answer, list | dict):
        return answer
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InputError(
            "the retriever returned something to be awaited",
            fix="make it an async function (async def), so that findwell awaits it",
        )
    return list(answer) if isinstance(answer, Iterator) else answer


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run tasks to the end; in a thread of its own where an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
