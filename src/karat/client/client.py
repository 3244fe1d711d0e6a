"""Asks an endpoint: every request through one gate, until it is answered or has failed.

Only what would fail every request raises: no access, no such model, no server. Everything else
ends as a `Failure` of its own request.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, Self

from karat.client.answers import PASSING, Answer, Failure, Outcome, Reason, Reply, read_reply
from karat.client.budget import Budget, guess_usage
from karat.client.complaint import Complaint
from karat.client.pacing import Pacer
from karat.client.wire import Wire
from karat.errors import EndpointError, OptionError

if TYPE_CHECKING:
    import numpy as np

    from karat.client.endpoint import Endpoint
    from karat.client.request import Request
    from karat.client.wording import Wording

BUSY = frozenset({429, 503, 529})
HOPELESS = 10  # requests that fail in a row, at least, before the rest is not sent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How hard and how patiently a server is asked."""

    concurrency: int = 16
    timeout: float = 120.0  # seconds for a whole answer
    attempts: int = 4  # at a request that fails for a reason that may pass
    patience: float = 600.0  # seconds of being told to wait, for one request
    first_wait: float = 0.5  # seconds at most; doubles with every attempt

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("timeout", "patience", "first_wait"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be above 0, not {getattr(self, name)}")


@dataclass(slots=True)
class _Effort:
    """What was done so far for one request."""

    request: Request
    wording: Wording
    attempts: int = 0
    broken: bool = False  # a server error came back for these words, which may be chance
    sent: float = 0.0
    waiting_since: float | None = None


@dataclass(slots=True)
class Client:
    """Asks one endpoint; open it with `async with`, in the loop that uses it."""

    endpoint: Endpoint
    ledger: Budget
    manners: RetryPolicy
    rng: np.random.Generator
    _pacer: Pacer = field(init=False)
    _wire: Wire | None = field(init=False, repr=False, default=None)
    _failed_in_a_row: int = 0

    async def __aenter__(self) -> Self:
        most = self.manners.concurrency
        self._pacer = Pacer(most, first_wait=self.manners.first_wait, rng=self.rng)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def ask(self, request: Request) -> Outcome:
        """Ask until there is an answer, or a reason why there is none."""
        effort = _Effort(request, self.endpoint.accepted.wording)
        while True:
            if self._failed_in_a_row >= max(HOPELESS, self.manners.concurrency):
                return Failure(Reason.STOPPED, f"{self._failed_in_a_row} failed in a row before")
            if not await self._pacer.enter(lambda: self.ledger.room(request)):
                return Failure(Reason.BUDGET, self.ledger.refusal())
            try:
                said = await self._call(effort)
            finally:
                self._pacer.leave()
            outcome = self._meaning(effort, said) if isinstance(said, Complaint) else said
            if outcome is None:
                continue
            if isinstance(outcome, Failure) and outcome.reason in PASSING:
                effort.attempts += 1
                if effort.attempts < self.manners.attempts:
                    await asyncio.sleep(self._pacer.back_off(effort.attempts))
                    continue
            return self._ended(effort, outcome)

    async def _call(self, effort: _Effort) -> Outcome | Complaint:
        """Send a request once."""
        request = effort.request
        wire = self._wire = self._wire or Wire(self.endpoint, self.manners.timeout)
        effort.wording &= self.endpoint.accepted.wording
        expected = self.ledger.begin(request)
        outcome: Outcome | None = None
        try:
            effort.sent = time.monotonic()
            body = effort.wording.body(request, self.endpoint.model)
            reply = await wire.post(request.path, body)
            said = read_reply(reply, request) if isinstance(reply, Reply) else reply
            if isinstance(said, Complaint):
                return replace(said, message=self.endpoint.hide(said.message))
            outcome = self._finished(effort, said)
            return outcome
        finally:
            self.ledger.end(request, expected, outcome)

    def _finished(self, effort: _Effort, said: Outcome) -> Outcome:
        """Complete what was read by what only we know, and remember what the server accepts."""
        request, accepted = effort.request, self.endpoint.accepted
        content = self.endpoint.hide_in_answer(said.content)
        if isinstance(said, Answer) or said.reason not in PASSING:
            accepted.note(effort.wording, request)
            self._pacer.answered()
        if isinstance(said, Failure):
            return replace(said, detail=self.endpoint.hide(said.detail), content=content)
        usage = guess_usage(request, content) if said.usage.estimated else said.usage
        return replace(said, content=content, usage=usage, form=effort.wording.form_for(request))

    def _meaning(self, effort: _Effort, complaint: Complaint) -> Failure | None:
        """Decide what a complaint means: None is to ask again, in other words or later."""
        if complaint.too_long:
            return _failure(Reason.TOO_LONG, complaint)
        if complaint.moderated:
            return _failure(Reason.FILTERED, complaint)
        if complaint.no_credit:
            self._give_up("the account has no credit left", complaint, "pay, or use another key")
        if complaint.status in BUSY:
            return self._wait(effort, complaint)
        if self._can_be_reworded(effort, complaint):
            return None
        if complaint.status >= 500 or complaint.status in (408, 409, 425):
            return _failure(Reason.SERVER, complaint)
        if complaint.status == 401 or not self.endpoint.accepted.answered:
            self._check_access(complaint)
        return _failure(Reason.REJECTED, complaint)

    def _wait(self, effort: _Effort, complaint: Complaint) -> Failure | None:
        now = time.monotonic()
        since = effort.waiting_since = effort.waiting_since or now
        if now + (complaint.wait or 0.0) - since > self.manners.patience:
            return _failure(Reason.BUSY, complaint)
        self._pacer.turned_down(effort.sent, complaint.wait)
        return None

    def _can_be_reworded(self, effort: _Effort, complaint: Complaint) -> bool:
        accepted = self.endpoint.accepted
        narrower = accepted.narrower(effort.wording, effort.request, complaint)
        if narrower is None:
            return False
        plain = not complaint.about_form and narrower.left_out == effort.wording.left_out
        if complaint.status == 500 and plain and not effort.broken:
            effort.broken = True  # so once more in the same words
            return False
        effort.wording, effort.broken = narrower, False
        return True

    def _check_access(self, complaint: Complaint) -> None:
        """Stop the job if the server would turn down every request."""
        if complaint.unknown_model:
            fix = "name a model that the server has"
            self._give_up(f"there is no model {self.endpoint.model!r}", complaint, fix)
        if complaint.status in (401, 403):
            self._give_up("the server gives no access", complaint, self.endpoint.fix_access)
        if 300 <= complaint.status < 400:
            what = "the server sends to another address, to which nothing is sent on"
            self._give_up(what, complaint, "set the base URL to where the server is")
        if complaint.status == 404:
            fix = "check the base URL (it often ends in /v1) and the name of the model"
            self._give_up("there is nothing to ask at this address", complaint, fix)

    def _give_up(self, what: str, complaint: Complaint, fix: str) -> NoReturn:
        raise EndpointError(
            f"{what} ({complaint})",
            where=self.endpoint.identity,
            status=complaint.status,
            fix=fix,
        )

    def _ended(self, effort: _Effort, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Answer) or outcome.reason not in {*PASSING, Reason.BUSY}:
            self._failed_in_a_row = 0
            return outcome
        self._failed_in_a_row += 1
        if outcome.reason is Reason.UNREACHABLE and not self.endpoint.accepted.answered:
            raise EndpointError(
                f"no connection, in {effort.attempts} attempts ({outcome.detail})",
                where=self.endpoint.identity,
                fix="start the server, or check the base URL",
            )
        return outcome


def _failure(reason: Reason, complaint: Complaint) -> Failure:
    return Failure(reason, str(complaint), status=complaint.status)
