"""Asks an endpoint until a request is answered or has failed for good.

Only what would fail every request raises: no access, no such model, no server. Everything else
ends as a `Failure` of its own request.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from findwell.core.errors import EndpointError, OptionError
from findwell.judges.client.budget import Budget, estimate_usage
from findwell.judges.client.pacing import Pacer
from findwell.judges.client.protocol import (
    TRANSIENT,
    Answer,
    ErrorResponse,
    Failure,
    Outcome,
    Reason,
    Reply,
    read_reply,
)

if TYPE_CHECKING:
    from findwell.judges.client.batches import BatchTransport
    from findwell.judges.client.endpoint import Endpoint
    from findwell.judges.client.requests import CallFormat, Request
    from findwell.judges.client.transport import Transport

BUSY = frozenset({429, 503, 529})
UNANSWERED = TRANSIENT | {Reason.UNFINISHED}  # which says nothing about what a server accepts
# by a model that was at work, which is paid for
WRITTEN = frozenset({Reason.CUT_OFF, Reason.REFUSED, Reason.FILTERED, Reason.EMPTY})
# sent, and then no answer that can be read: the model may have been at work, which may be billed
MAYBE_BILLED = frozenset({Reason.TIMEOUT, Reason.CONNECTION, Reason.BODY})
HOPELESS = 10  # requests that fail in a row, at least, before the rest is not sent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many calls at a time, how long each may take, and how often it is tried again."""

    concurrency: int = 16
    timeout: float = 120.0  # seconds for a whole answer
    attempts: int = 4  # at a request that fails for a reason that may pass
    max_wait: float = 600.0  # seconds of being asked to wait, for one request
    first_wait: float = 0.5  # seconds at most; doubles with every attempt

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("timeout", "max_wait", "first_wait"):
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
    budget: Budget
    retry: RetryPolicy
    _pacer: Pacer = field(init=False)
    _failed_in_a_row: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self._pacer = Pacer(self.retry.concurrency, first_wait=self.retry.first_wait, rng=rng)

    async def ask(self, request: Request) -> Outcome:
        """Ask until there is an answer, or a reason why there is none."""
        pending = _Pending(request, self.endpoint.support.format)
        while True:
            if self._failed_in_a_row >= max(HOPELESS, self.retry.concurrency):
                return Failure(Reason.STOPPED, f"{self._failed_in_a_row} failed in a row before")
            if not await self._pacer.enter(lambda: self.budget.capacity(request)):
                return Failure(Reason.BUDGET, self.budget.refusal())
            try:
                result = await self._call(pending)
            finally:
                self._pacer.leave()
            outcome = (
                self._after_error(pending, result) if isinstance(result, ErrorResponse) else result
            )
            if outcome is None:
                continue
            if isinstance(outcome, Failure) and outcome.reason in TRANSIENT:
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
        if isinstance(outcome, Answer) or outcome.reason not in UNANSWERED:
            self.endpoint.support.note(pending.format, request)
            self._pacer.answered()
        if isinstance(outcome, Failure):
            paid = outcome.usage
            if paid is None and outcome.reason in WRITTEN:
                paid = estimate_usage(request, content)
            elif paid is None and outcome.reason in MAYBE_BILLED:
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
            self._give_up("the server gives no access", error, self.endpoint.fix_access)
        if 300 <= error.status < 400:
            what = "the server redirects to another address, to which nothing is sent"
            self._give_up(what, error, "set the base URL to where the server is")
        if error.status == 404:
            fix = "check the base URL (it often ends in /v1) and the name of the model"
            self._give_up("there is nothing to ask at this address", error, fix)

    def _give_up(self, what: str, error: ErrorResponse, fix: str) -> NoReturn:
        raise EndpointError(
            f"{what} ({error})", where=self.endpoint.identity, status=error.status, fix=fix
        )

    def _ended(self, pending: _Pending, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Answer) or outcome.reason not in {*TRANSIENT, Reason.BUSY}:
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
