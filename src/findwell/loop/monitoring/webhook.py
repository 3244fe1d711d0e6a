"""News of alarms for another system: one signed HTTP request for each check that has any.

What is sent is the JSON of the check with the alarms that are new or resolved. It has no texts of
questions, unless asked for. With a secret, `X-Findwell-Signature: sha256=…` is the HMAC of the
header `X-Findwell-Timestamp`, a full stop and the body.

A message is saved in the catalogue of the store in the same step as the alarms that it is about,
and deleted when the other system has taken it. So a check that is killed loses no message: the next
one sends it. A message may arrive twice; the header `Idempotency-Key`, and `id` in the body, are
then the same.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np

import findwell
from findwell.core.errors import OptionError
from findwell.judges.client.client import BUSY, Pacer, RetryPolicy
from findwell.judges.client.endpoint import Secret, proxy_for
from findwell.judges.client.protocol import retry_after
from findwell.loop.monitoring.alarm_report import sentence
from findwell.loop.monitoring.check import OUTBOX

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.loop.monitoring.alarm_report import CheckReport
    from findwell.loop.monitoring.store import TraceStore

SECRET = "FINDWELL_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
KEPT_MESSAGES = 1000  # that wait for one address
PATIENT_POLICY = RetryPolicy(timeout=10.0, attempts=4, max_wait=60.0)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where news is sent, and how it is signed."""

    url: str
    secret: Secret = field(default_factory=lambda: Secret(os.environ.get(SECRET, "")))
    retry: RetryPolicy = PATIENT_POLICY
    sleep: Callable[[float], None] = time.sleep
    texts: bool = False  # whether the questions of calls are sent as well

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host:
            raise OptionError(
                "the webhook is not a valid address",
                fix="write one that begins with https:// or http://",
            )

    @property
    def shown(self) -> str:
        """The address without what may be a secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"

    @property
    def _name(self) -> str:
        """What its messages are kept under; the address may hold a secret."""
        return hashlib.sha256(self.url.encode()).hexdigest()

    def enqueue(self, outbox: dict[str, Any], report: CheckReport) -> None:
        """Add a message to those that wait, if the report has news."""
        if report.news:
            news = {"id": uuid.uuid4().hex, **message(report, texts=self.texts)}
            outbox[self._name] = [*outbox.get(self._name, []), news][-KEPT_MESSAGES:]

    def deliver(self, store: TraceStore) -> str:
        """Send the messages that wait; return why it failed, if it did."""
        failure = ""
        for each in (store.state(OUTBOX) or {}).get(self._name, []):
            problem, passing = self.send(each)
            failure = failure or problem
            if not problem:
                with store.changing_states(OUTBOX) as (outbox,):  # which another check may change
                    waiting = outbox.pop(self._name, [])
                    if waiting := [other for other in waiting if other["id"] != each["id"]]:
                        outbox[self._name] = waiting
            elif passing:  # no one is there now; a message that is refused for good stops no other
                break
        return failure

    def send(self, content: dict[str, Any]) -> tuple[str, bool]:
        """Send one message, several times if need be; return why it failed, empty if it did not.

        The second is whether that may pass, or else the message is refused.
        """
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        pacer = Pacer(1, first_wait=self.retry.first_wait, rng=np.random.default_rng())
        failure, passing = "", False
        for attempt in range(1, self.retry.attempts + 1):
            status, wait, failure = self._post(body, content["id"])
            if not failure:
                return "", False
            passing = status is None or status in BUSY or status >= 500 or status in (408, 425)
            if not passing or attempt == self.retry.attempts:
                break
            if wait is not None and wait > self.retry.max_wait:
                return f"{failure}, and asks to wait for {wait:.0f} s", True
            self.sleep(pacer.back_off(attempt) if wait is None else wait)
        return failure, passing

    def _post(self, body: bytes, key: str) -> tuple[int | None, float | None, str]:
        """Return the status, how long the server asks to wait, and what went wrong."""
        parts = urlsplit(self.url)
        proxy = proxy_for(parts.scheme, parts.hostname or "", parts.netloc.rpartition("@")[2])
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({} if proxy is None else {parts.scheme: str(proxy)}),
            _NoRedirect(),
        )
        login, _, netloc = parts.netloc.rpartition("@")
        stamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"findwell/{findwell.__version__}",
            "X-Findwell-Timestamp": stamp,
            "Idempotency-Key": key,
        }
        if self.secret:
            headers["X-Findwell-Signature"] = signature(self.secret.reveal(), stamp, body)
        if login:
            encoded = base64.b64encode(unquote(login).encode()).decode()
            headers["Authorization"] = f"Basic {encoded}"
        address = urlunsplit(parts._replace(netloc=netloc, fragment=""))
        request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310
        try:
            with opener.open(request, timeout=self.retry.timeout) as answer:
                return answer.status, None, ""
        except urllib.error.HTTPError as error:
            headers = {name.lower(): value for name, value in error.headers.items()}
            error.close()
            return error.code, retry_after(headers), f"the server answered {error.code}"
        except (OSError, HTTPException, ValueError) as error:
            cause = getattr(error, "reason", None) or error
            return None, None, f"no answer ({cause})"


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Return the signature of a body: what a receiver has to compute as well, and compare.

    >>> signature("s3cret", "1763288000", b"{}")[:23]
    'sha256=b17b72e8e8cf00ed'
    """
    mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256)
    return f"sha256={mac.hexdigest()}"


def message(report: CheckReport, *, texts: bool = False) -> dict[str, Any]:
    """Return what is sent: the check with what is new, and a line of text for chats."""
    found = report.as_dict(texts=texts)
    found["alerts"] = [each.as_dict(texts=texts) for each in report.news]
    judges = dict.fromkeys(each.judge for each in report.news if each.judge)
    return {"text": "\n".join([*map(sentence, report.news), *judges]), **found}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: news is sent only to the address that was named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        """Follow nothing."""
