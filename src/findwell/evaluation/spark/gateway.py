"""One way to a language model for all tasks of a job: through the driver.

The driver serves the protocol of OpenAI to its tasks and hands their calls on to the real server.
So the limits, the budget and the pace are those of the whole job, the key never leaves the driver,
and answers are kept in one file, from which a job that is run again takes what it knows.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from findwell.core.errors import OptionError
from findwell.io.storage.database import Database, cache_folder
from findwell.judges.client.client import BUSY, Pacer, Transport
from findwell.judges.client.protocol import ChatRequest, Failure, Message, Usage, json_object
from findwell.judges.client.providers import BEARER
from findwell.judges.llm.check import kept_way

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from concurrent.futures import Future

    from findwell.judges.client.protocol import Outcome
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.settings import Judge

ANSWERS_FILE = "spark-answers.sqlite"
LAYOUT = 1
TABLE = "CREATE TABLE IF NOT EXISTS answer (key BLOB PRIMARY KEY, body BLOB NOT NULL)"
BASE_PATH = "/openai/v1"  # the path that every provider takes as it is
LARGEST_CALL = 32 << 20  # bytes of a call
BUDGET_SPENT = 410  # a client takes it for this one call, and does not try again
CLOSING_SECONDS = 10.0  # seconds that connections and threads have to end
# what a judge counts: verdicts of one task are not those of the job
TASK_COUNTS = (
    *("verdicts", "failed_verdicts", "unproven", "malformed", "asked_again", "cut", "invented"),
    *("agreement", "single"),
)
WAITING_SECONDS = 600.0  # seconds that a task waits for its turn and its answer
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - executors of a cluster are other machines


class ModelGateway:
    """Serves the tasks of one job, until it is closed."""

    def __init__(
        self,
        judge: LLMJudge,
        *,
        host: str | None = None,
        port: int = 0,
        calls_per_minute: float | None = None,
    ) -> None:
        self._given = settings = judge.settings
        if settings.votes > 1:
            raise OptionError(
                "a judge with several votes does not work on Spark",
                fix="leave out votes, or judge on one machine",
            )
        if calls_per_minute is not None and not calls_per_minute > 0:
            raise OptionError(
                f"calls_per_minute is {calls_per_minute}", fix="give a number greater than 0"
            )
        if settings.batch or settings.ask == "auto":
            raise OptionError(
                "on Spark a judge can neither send batches nor find out how it is asked best",
                fix="leave out batch; name the way that `findwell judge check` recommends, as ask=",
            )
        self.endpoint, self.budget = judge.endpoint, judge.budget
        self.endpoint.require_access()
        self._pause = 0.0 if calls_per_minute is None else 60.0 / calls_per_minute
        self._next = 0.0  # when the next call may be sent
        self._token = secrets.token_urlsafe(32)
        self._host, self._port = host or "127.0.0.1", port
        timeout, concurrency = judge.retry.timeout, judge.retry.concurrency
        self._transport = Transport(self.endpoint, timeout=timeout, connections=concurrency)
        self._pacer = Pacer(concurrency, first_wait=0.5, rng=np.random.default_rng(0))
        self._threads: list[threading.Thread] = []
        self._under_way: dict[bytes, asyncio.Future[tuple[int, bytes, str]]] = {}
        self._stored: Any = None
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        where = None if self._given.cache == "off" else cache_folder() / ANSWERS_FILE
        self._stored = Database(where, "answers", TABLE, LAYOUT).open()
        bind = "127.0.0.1" if self._host in ("127.0.0.1", "localhost") else ANY_ADDRESS
        try:
            self._server = _Server((bind, self._port), _Handler)
            self._server.owner = self
        except OSError as error:
            self._stored.close()
            raise OptionError(
                f"the driver cannot listen: {error.strerror}",
                where=f"{bind}:{self._port}",
                fix="choose another port: gateway_port= (-S gateway_port)",
            ) from None
        self._port = int(self._server.server_address[1])
        self._loop = asyncio.new_event_loop()
        # looks that often for the end, so that no one waits for it
        for work in (partial(self._server.serve_forever, 0.02), self._loop.run_forever):
            self._threads.append(
                threading.Thread(target=work, name="findwell-gateway", daemon=True)
            )
            self._threads[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self._begin(self._transport.close()).result(CLOSING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            thread.join(CLOSING_SECONDS)
        self._loop.close()
        self._stored.close()

    def settings(self) -> Judge:
        """Return the judge that tasks make: it asks the driver, which has the key and the cache."""
        return replace(
            self._given,
            base_url=f"http://{self._host}:{self._port}{BASE_PATH}",
            key=self._token,
            headers=None,
            cache="off",
            ask=kept_way(self._given),
            max_calls=None,
            max_tokens=None,
            max_cost=None,
            prices=None,
            budget=None,
            timeout=WAITING_SECONDS,
        )

    def about(self, judge: Mapping[str, Any]) -> dict[str, Any]:
        """Return what one task says of its judge, with the server, calls and cost of the whole job.

        What a task counts in addition is of its own queries alone, and left out.
        """
        if not judge:  # nothing was judged
            return {}
        said = {name: each for name, each in judge.items() if name not in TASK_COUNTS}
        return {**said, "endpoint": self.endpoint.identity, **self.budget.summary()}

    def ask(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, str]:
        """Return status, body and time to wait, for a call of a task; from its own thread."""
        found: tuple[int, bytes, str] = self._begin(self._answer(path, body)).result(
            WAITING_SECONDS
        )
        return found

    def accepts(self, headers: Mapping[str, str]) -> bool:
        """Tell a task of this job by its token, which stands where its provider has the key."""
        header = self.endpoint.provider.header
        expected = f"Bearer {self._token}" if header == BEARER else self._token
        return hmac.compare_digest(headers.get(header, "").encode(), expected.encode())

    def _begin(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, str]:
        """Return what is known, wait for another who asks the same, or ask."""
        said = json.dumps([self.endpoint.identity, path, body], sort_keys=True)
        key = hashlib.sha256(said.encode()).digest()
        refresh = self._given.cache == "refresh"
        found = None
        if not refresh:
            query = "SELECT body FROM answer WHERE key = ?"
            found = self._stored.execute(query, (key,)).fetchone()
        self.budget.requests += 1
        if found is not None:
            self.budget.stored += 1
            return 200, bytes(found[0]), ""
        if key in self._under_way:
            self.budget.repeated += 1
            return await asyncio.shield(self._under_way[key])
        ours = self._under_way[key] = self._loop.create_future()
        try:
            answer = await self._call(path, body)
            if answer[0] == 200:
                self._stored.execute(
                    "INSERT OR REPLACE INTO answer VALUES (?, ?)", (key, answer[1])
                )
            ours.set_result(answer)
        except BaseException:
            ours.cancel()
            raise
        finally:
            del self._under_way[key]
        return answer

    async def _call(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, str]:
        request = _request(body)
        if not await self._pacer.enter(lambda: self.budget.capacity(request)):
            self.budget.failed["budget"] += 1
            return (
                BUDGET_SPENT,
                _error(f"the budget of the job is spent: {self.budget.refusal()}", "budget"),
                "",
            )
        expected = self.budget.begin(request)
        outcome: Outcome | None = None
        try:
            await self._pace()
            sent = time.monotonic()
            reply = await self._transport.post(path, body)
            if isinstance(reply, Failure):
                return 502, _error(self.endpoint.hide(reply.detail), str(reply.reason)), ""
            if reply.status in BUSY:
                wait = reply.headers.get("retry-after", "")
                seconds = float(wait) if wait.replace(".", "", 1).isdigit() else None
                self._pacer.turned_down(sent, seconds)
                return reply.status, self._hidden(reply.body), wait
            self._pacer.answered()
            outcome = _outcome(request, reply.body, reply.seconds)
            if reply.status == 200:
                self.budget.answered += 1
            return reply.status, self._hidden(reply.body), ""
        finally:
            self.budget.end(request, expected, outcome)
            self._pacer.leave()

    async def _pace(self) -> None:
        """Keep the calls of a minute apart."""
        if not self._pause:
            return
        now = time.monotonic()
        turn = max(self._next, now)
        self._next = turn + self._pause
        await asyncio.sleep(turn - now)

    def _hidden(self, content: bytes) -> bytes:
        return self.endpoint.hide(content.decode("utf-8", "replace")).encode()


class _Server(ThreadingHTTPServer):
    """Listens for tasks."""

    daemon_threads = True
    owner: ModelGateway


class _Handler(BaseHTTPRequestHandler):
    """Takes the calls of tasks."""

    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = WAITING_SECONDS

    def do_POST(self) -> None:
        """Answer a call."""
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isascii() and length.isdigit() else -1
        if not self.server.owner.accepts(dict(self.headers)):
            self.close_connection = True
            self._reply(401, _error("this is the driver of another job", "access"))
            return
        if not 0 <= size <= LARGEST_CALL or not self.path.startswith(f"{BASE_PATH}/"):
            self.close_connection = True
            self._reply(400, _error("this is not a call of a task", "call"))
            return
        body = json_object(self.rfile.read(size))
        if not body:
            self._reply(400, _error("the call is not a JSON object", "call"))
            return
        try:
            status, content, wait = self.server.owner.ask(self.path.removeprefix(BASE_PATH), body)
        except Exception as error:  # noqa: BLE001 - a task gets an answer whatever happened
            status, content, wait = 502, _error(type(error).__name__, "gateway"), ""
        self._reply(status, content, wait)

    def _reply(self, status: int, content: bytes, wait: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if wait:
            self.send_header("Retry-After", wait)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing: prompts are private."""


def _request(body: dict[str, Any]) -> ChatRequest:
    """Return a call as the budget estimates it."""
    messages = body.get("messages")
    texts = [
        Message(str(each.get("role", "")), str(each.get("content", "")))
        for each in (messages if isinstance(messages, list) else [])
        if isinstance(each, dict)
    ]
    named = ("max_tokens", "max_completion_tokens")
    return ChatRequest(tuple(texts), options={name: body[name] for name in named if name in body})


def _outcome(request: ChatRequest, content: bytes, seconds: float) -> Outcome | None:
    """Return what a call came to, for the tokens that it used."""
    body = json_object(content)
    outcome = request.read(body, seconds) if body else None
    return outcome if outcome is not None and isinstance(outcome.usage, Usage) else None


def _error(message: str, code: str) -> bytes:
    return json.dumps({"error": {"message": message, "code": code}}).encode()
