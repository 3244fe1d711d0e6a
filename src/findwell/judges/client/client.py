"""Asks one endpoint until a request is answered or has failed for good.

Transport: one `httpx.AsyncClient` with a pool of connections. A call ends in a complete reply
within its time, or in the reason why there is none. httpx gets nothing from the environment by
itself: the proxy is chosen by `proxy_for`, and a redirect is a reply like any other, so that texts
go nowhere but to the endpoint.

Pacing: one limit on calls under way for all conversations of a job. A server that answers "too many
requests" means all of them. So all wait as long as it asks for, and fewer calls are allowed at
once: their number is halved, and grows by one each time that many have been answered. Several that
were under way together and are turned down together count once.

Only what would fail every request raises: no access, no such model, no server. Everything else
ends as a `Failure` of its own request.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

import findwell
from findwell.core.errors import EndpointError, OptionError, needs_package
from findwell.judges.client.budget import CallBudget, Capacity, estimate_usage
from findwell.judges.client.endpoint import proxy_for
from findwell.judges.client.protocol import (
    TRANSIENT_REASONS,
    Answer,
    ErrorResponse,
    Failure,
    Outcome,
    Reason,
    Reply,
    read_reply,
)
from findwell.judges.client.providers import BEARER

if TYPE_CHECKING:
    import httpx

    from findwell.judges.client.batches import BatchTransport
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.protocol import CallFormat, Json, Request


# --- transport ------------------------------------------------------------------------------------

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0  # that a connection may be idle
LARGEST_ANSWER = 16 * 2**20  # bytes of an answer


class Transport:
    """Sends calls to an endpoint; opened by the first call, so that cached jobs need no server."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, connections: int) -> None:
        self.endpoint = endpoint
        self._timeout = timeout
        self._connections = connections
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(self, path: str, body: dict[str, Json]) -> Reply | Failure:
        """Send a call."""
        # half of a surrogate pair cannot be sent: it becomes a question mark
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return await self.call("POST", self.endpoint.url(path), content)

    async def call(
        self,
        method: str,
        url: str,
        content: bytes = b"",
        *,
        kind: str = "application/json",
        timeout: float | None = None,  # noqa: ASYNC109 - of the exchange, whose end is an outcome
        largest: int | None = None,
    ) -> Reply | Failure:
        """Exchange; the time limit is for the whole answer, also if it comes byte by byte."""
        client = self._client = self._client or self._open()
        limit = self._timeout if timeout is None else timeout
        request = client.build_request(
            method, url, content=content or None, headers={"Content-Type": kind}
        )
        try:
            async with asyncio.timeout(limit):
                return await self._exchange(client, request, largest or LARGEST_ANSWER)
        except TimeoutError:
            return Failure(Reason.TIMEOUT, f"no complete answer in {limit:g} s")

    @staticmethod
    async def _exchange(
        client: httpx.AsyncClient, request: httpx.Request, largest: int
    ) -> Reply | Failure:
        import httpx  # noqa: PLC0415

        start = time.monotonic()
        received = bytearray()
        try:
            response = await client.send(request, stream=True)
            try:
                async for part in response.aiter_bytes():
                    received += part
                    if len(received) > largest:
                        return Failure(Reason.BODY, f"more than {largest:,} bytes")
            finally:
                await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError) as error:
            # a host name that cannot be encoded is a UnicodeError
            return Failure(Reason.UNREACHABLE, _cause(error))
        except httpx.DecodingError as error:
            return Failure(Reason.BODY, f"cannot be decoded: {error}")
        except httpx.HTTPError as error:
            return Failure(Reason.CONNECTION, _cause(error))
        seconds = time.monotonic() - start
        return Reply(response.status_code, response.headers, bytes(received), seconds)

    def _open(self) -> httpx.AsyncClient:
        with needs_package("asking a model", "judge"):
            import httpx  # noqa: PLC0415
        self.endpoint.require_access()
        try:
            base = httpx.URL(self.endpoint.identity)
        except httpx.InvalidURL as error:
            raise OptionError(f"not an address: {error}", where=self.endpoint.identity) from None
        proxy = proxy_for(base.scheme, base.host, base.netloc.decode())
        secure = base.scheme == "https" or proxy is not None
        try:
            return httpx.AsyncClient(
                headers=_headers(self.endpoint),
                timeout=httpx.Timeout(None, connect=min(CONNECT_SECONDS, self._timeout)),
                limits=httpx.Limits(
                    max_keepalive_connections=self._connections, keepalive_expiry=IDLE_SECONDS
                ),
                verify=httpx.create_ssl_context() if secure else False,
                proxy=proxy,
                trust_env=False,
            )
        except (ImportError, ValueError, httpx.InvalidURL):
            raise OptionError(
                "the proxy that the environment names cannot be used",
                fix="set http_proxy and https_proxy to http addresses, or no_proxy to the host",
            ) from None


def _cause(error: BaseException) -> str:
    """Return what the system says: httpx says of a refused connection that all attempts failed."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below.exceptions[0] if isinstance(below, BaseExceptionGroup) else below
    return str(error) or type(error).__name__


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "User-Agent": f"findwell/{findwell.__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    }
    own = endpoint.provider.header
    if endpoint.key:
        word = "Bearer " if own == BEARER else ""
        headers[own] = f"{word}{endpoint.key.reveal()}"
    elif endpoint.user:
        headers[BEARER] = f"Basic {endpoint.login.reveal()}"
    given = {name.lower(): (name, value.reveal()) for name, value in endpoint.headers.items()}
    kept = {name: value for name, value in headers.items() if name.lower() not in given}
    return kept | dict(given.values())


# --- pacing ---------------------------------------------------------------------------------------

LONGEST_WAIT = 60.0  # seconds of waiting that the server did not ask for
SHRINK_FACTOR = 0.5


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
        """Wait for a turn; False if there will never be room. Who entered must leave."""
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
        """Slow down; no call goes through for the time that the server named, or a random one."""
        if sent >= self._slowed:
            self._slowed = time.monotonic()
            self.allowed = max(self.allowed * SHRINK_FACTOR, 1.0)
            self._refusals += 1
            wait = wait or self.back_off(self._refusals)
        if wait:
            self.hold(wait)

    def hold(self, seconds: float) -> None:
        """Let no call through for some time."""
        self._open_from = max(self._open_from, time.monotonic() + seconds)

    def back_off(self, attempt: int) -> float:
        """Return a random time up to one that doubles with every attempt (full jitter)."""
        longest = min(self._first_wait * 2.0 ** min(attempt - 1, 30), LONGEST_WAIT)
        return float(self._rng.uniform(0.0, longest))


# --- asking until there is an answer --------------------------------------------------------------

BUSY = frozenset({429, 503, 529})
# which say nothing about what a server accepts
UNANSWERED_REASONS = TRANSIENT_REASONS | {Reason.UNFINISHED}
# by a model that was at work, which is paid for
WRITTEN_REASONS = frozenset({Reason.CUT_OFF, Reason.REFUSED, Reason.FILTERED, Reason.EMPTY})
# sent, and then no answer that can be read: the model may have been at work, which may be billed
BILLED_REASONS = frozenset({Reason.TIMEOUT, Reason.CONNECTION, Reason.BODY})
GONE = (
    ", the server is gone: start it again and judging goes on (or press Ctrl-C; answers are kept)"
)
LONGEST_LOOK = 5.0  # seconds between two looks whether a server is back
HOPELESS_FAILURES = 10  # requests that fail in a row, at least, before the rest is not sent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many calls at a time, how long each may take, and how often it is tried again."""

    concurrency: int = 16
    timeout: float = 120.0  # seconds for a whole answer
    attempts: int = 4  # at a request that fails for a reason that may pass
    max_wait: float = 600.0  # seconds of being asked to wait, for one request
    first_wait: float = 0.5  # seconds at most; doubles with every attempt
    gone_wait: float = 600.0  # seconds for a server that answered before and cannot be reached

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("timeout", "max_wait", "first_wait", "gone_wait"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be above 0, not {getattr(self, name)}")


@dataclass(slots=True)
class _Pending:
    """What was done so far for one request."""

    request: Request
    format: CallFormat
    attempts: int = 0
    server_error: bool = False  # came back for this format, which may be chance
    sent: float = 0.0
    waiting_since: float | None = None


@dataclass(slots=True)
class Client:
    """Asks one endpoint, for one job."""

    endpoint: Endpoint
    transport: Transport | BatchTransport
    budget: CallBudget
    retry: RetryPolicy
    notice: Callable[[], None] = lambda: None  # called when what the budget says has changed
    _pacer: Pacer = field(init=False)
    _failed_in_a_row: int = 0
    _gone_since: float | None = None

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self._pacer = Pacer(self.retry.concurrency, first_wait=self.retry.first_wait, rng=rng)

    async def ask(self, request: Request) -> Outcome:
        """Ask until there is an answer, or a reason why there is none."""
        pending = _Pending(request, self.endpoint.support.format)
        while True:
            if self._failed_in_a_row >= max(HOPELESS_FAILURES, self.retry.concurrency):
                return Failure(
                    Reason.STOPPED, f"{self._failed_in_a_row} requests in a row failed before"
                )
            if not await self._pacer.enter(lambda: self.budget.capacity(request)):
                return Failure(Reason.BUDGET, self.budget.refusal())
            try:
                result = await self._call(pending)
            finally:
                self._pacer.leave()
            outcome = (
                self._after_error(pending, result) if isinstance(result, ErrorResponse) else result
            )
            if outcome is None or self._awaits_server(outcome):
                continue
            if isinstance(outcome, Failure) and outcome.reason in TRANSIENT_REASONS:
                pending.attempts += 1
                if pending.attempts < self.retry.attempts:
                    await asyncio.sleep(self._pacer.back_off(pending.attempts))
                    continue
            return self._ended(pending, outcome)

    async def _call(self, pending: _Pending) -> Outcome | ErrorResponse:
        """Send a request once."""
        request = pending.request
        pending.format &= self.endpoint.support.format
        expected = self.budget.begin(request)
        outcome: Outcome | None = None
        try:
            pending.sent = time.monotonic()
            body = pending.format.body(request, self.endpoint.model)
            reply = await self.transport.post(request.path, body)
            result = read_reply(reply, request) if isinstance(reply, Reply) else reply
            if isinstance(result, ErrorResponse):
                return replace(result, message=self.endpoint.hide(result.message))
            outcome = self._completed(pending, result)
            return outcome
        finally:
            self.budget.end(request, expected, outcome)

    def _completed(self, pending: _Pending, outcome: Outcome) -> Outcome:
        """Hide secrets in an outcome, add what the server did not say, note what it accepts."""
        request = pending.request
        content = self.endpoint.hide_in_answer(outcome.content)
        if isinstance(outcome, Answer) or outcome.reason not in UNANSWERED_REASONS:
            self.endpoint.support.note(pending.format, request)
            self._pacer.answered()
        if isinstance(outcome, Failure):
            paid = outcome.usage
            if paid is None and outcome.reason in WRITTEN_REASONS:
                paid = estimate_usage(request, content)
            elif paid is None and outcome.reason in BILLED_REASONS:
                paid = self.budget.worst_case(request)
            hidden = self.endpoint.hide(outcome.detail)
            return replace(outcome, detail=hidden, content=content, usage=paid)
        used = outcome.usage
        usage = estimate_usage(request, content) if used.estimated else used
        mode = pending.format.mode_for(request)
        return replace(outcome, content=content, usage=usage, output_mode=mode)

    def _after_error(self, pending: _Pending, error: ErrorResponse) -> Failure | None:
        """Decide what an error means; None is to ask again, in another format or later."""
        if error.too_long:
            return _failure(Reason.TOO_LONG, error)
        if error.moderated:
            return _failure(Reason.FILTERED, error)
        if error.no_credit:
            self._give_up("the account has no credit left", error, "pay, or use another key")
        if error.status in BUSY:
            return self._wait(pending, error)
        if self._has_fallback(pending, error):
            return None
        if error.status >= 500 or error.status in (408, 409, 425):
            return _failure(Reason.SERVER, error)
        if error.status == 401 or not self.endpoint.support.answered:
            self._check_access(error)
        return _failure(Reason.REJECTED, error)

    def _wait(self, pending: _Pending, error: ErrorResponse) -> Failure | None:
        now = time.monotonic()
        since = pending.waiting_since = pending.waiting_since or now
        if now + (error.wait or 0.0) - since > self.retry.max_wait:
            return _failure(Reason.BUSY, error)
        self._pacer.turned_down(pending.sent, error.wait)
        return None

    def _awaits_server(self, outcome: Outcome) -> bool:
        """Hold all calls while a server that answered before cannot be reached, for some time."""
        if isinstance(outcome, Answer) or outcome.reason is not Reason.UNREACHABLE:
            if self._gone_since is not None:
                self._gone_since, self.budget.under_way = None, ""
                self.notice()
            return False
        if not self.endpoint.support.answered:
            return False
        now = time.monotonic()
        since = self._gone_since = self._gone_since or now
        left = since + self.retry.gone_wait - now
        if left <= 0:
            self.budget.under_way = ""
            return False
        self._pacer.hold(min(max(now - since, self.retry.first_wait), LONGEST_LOOK, left))
        self.budget.under_way = GONE
        self.notice()
        return True

    def _has_fallback(self, pending: _Pending, error: ErrorResponse) -> bool:
        """Choose the format to ask in next, if the error may be about the present one."""
        used = pending.format
        fallback = self.endpoint.support.fallback(used, pending.request, error)
        if fallback is None:
            return False
        unexplained = not error.about_output_mode and fallback.left_out == used.left_out
        if error.status == 500 and unexplained and not pending.server_error:
            pending.server_error = True  # so once more in the same format
            return False
        pending.format, pending.server_error = fallback, False
        return True

    def _check_access(self, error: ErrorResponse) -> None:
        """Stop the job if the server would turn down every request."""
        if error.unknown_model:
            fix = "name a model that the server has"
            self._give_up(f"there is no model {self.endpoint.model!r}", error, fix)
        if error.status in (401, 403):
            self._give_up("the server denies access", error, self.endpoint.fix_access)
        if 300 <= error.status < 400:
            what = "the server redirects to another address, which findwell does not follow"
            self._give_up(what, error, "set the base URL to where the server is")
        if error.status == 404:
            fix = "check the base URL (it often ends in /v1) and the name of the model"
            self._give_up("no model answers at this address", error, fix)

    def _give_up(self, what: str, error: ErrorResponse, fix: str) -> NoReturn:
        raise EndpointError(
            f"{what} ({error})", where=self.endpoint.identity, status=error.status, fix=fix
        )

    def _ended(self, pending: _Pending, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Answer) or outcome.reason not in {*TRANSIENT_REASONS, Reason.BUSY}:
            self._failed_in_a_row = 0
            return outcome
        self._failed_in_a_row += 1
        if outcome.reason is Reason.UNREACHABLE and not self.endpoint.support.answered:
            raise EndpointError(
                f"no connection, in {pending.attempts} attempts ({outcome.detail})",
                where=self.endpoint.identity,
                fix="start the server, or check the base URL",
            )
        return outcome


def _failure(reason: Reason, error: ErrorResponse) -> Failure:
    return Failure(reason, str(error), status=error.status)
