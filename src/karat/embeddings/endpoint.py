"""Embeddings from any server that speaks OpenAI's protocol: `POST BASE_URL/embeddings`.

Texts go in batches, a few at a time. A server that is busy (429), broken (5xx), silent or cut off
is asked again, a bounded number of times, when it says so (Retry-After) or after a growing pause;
the pause holds for all requests in flight. The key is in the request's header and nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from karat.embeddings.embedder import TextEmbedder, need
from karat.errors import EndpointError, OptionError
from karat.patience import pause

OPENAI = "https://api.openai.com/v1"
TEXTS, CHARACTERS = 64, 200_000  # the most in one request
PARALLEL = 4  # requests at a time
ATTEMPTS = 6
SHOWN = 300  # characters of an answer that an error shows

FIXES = {
    400: "check the model's name; a text may be too long for it: max_chars cuts texts",
    401: "set OPENAI_API_KEY to a key that this server accepts",
    403: "set OPENAI_API_KEY to a key that may use this model",
    404: "check the model's name, and that the base URL ends where /embeddings follows (often /v1)",
    413: "a text is too long for this server: max_chars cuts texts",
    429: "wait, or raise the limits of your account",
}


class Unanswered(Exception):  # noqa: N818 - not an error yet: it is tried again
    """A request that may succeed later, and when the server said so."""

    def __init__(self, what: str, status: int | None = None, after: str | None = None) -> None:
        super().__init__(what)
        self.status = status
        self.after = after


@dataclass(frozen=True, slots=True)
class Manners:
    """How patiently a server is asked."""

    attempts: int = ATTEMPTS
    parallel: int = PARALLEL
    timeout: float = 120.0  # seconds for one answer, from the first byte sent to the last received
    sleep: Callable[[float], object] | None = None  # in place of a sleep that failure interrupts


class Endpoint:
    """A function from texts to vectors, answered by a server."""

    def __init__(
        self, model: str, base_url: str, api_key: str, *, max_chars: int | None, manners: Manners
    ) -> None:
        self._httpx = need("httpx", "an embedding endpoint", "'karat[judge]'")
        self._model = model
        self._url = f"{base_url}/embeddings"
        self._key = api_key
        self._max_chars = max_chars
        self._manners = manners
        self._lock = threading.Lock()
        self._resume = 0.0  # when the server wants to be asked again
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        timeout = self._httpx.Timeout(manners.timeout, connect=min(10.0, manners.timeout))
        try:
            self._client = self._httpx.Client(headers=headers, timeout=timeout)
        except Exception as error:  # noqa: BLE001 - its text may hold the password of a proxy
            raise OptionError(
                f"connections cannot be made as the environment wants: {type(error).__name__}",
                fix="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
            ) from None
        weakref.finalize(self, self._client.close)

    def __repr__(self) -> str:
        return f"Endpoint({self._model!r}, {self._url!r})"

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text."""
        cut = [text[: self._max_chars] for text in texts]
        stop = threading.Event()
        pool = ThreadPoolExecutor(self._manners.parallel)
        try:
            answers = [pool.submit(self._ask, batch, stop) for batch in _batches(cut)]
            for answer in as_completed(answers):
                answer.result()  # the first failure ends it
            return [vector for answer in answers for vector in answer.result()]
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _ask(self, texts: list[str], stop: threading.Event) -> list[list[float]]:
        attempt = 0
        while True:
            attempt += 1
            self._wait(stop)
            if stop.is_set():
                return []  # another request failed: nobody listens
            try:
                return self._vectors(self._post(texts), len(texts))
            except Unanswered as failure:
                if attempt >= self._manners.attempts:
                    what = f"{failure}, in {attempt} attempts"
                    raise self._error(what, failure.status) from None
                with self._lock:
                    until = time.monotonic() + pause(attempt, failure.after)
                    self._resume = max(self._resume, until)

    def _wait(self, stop: threading.Event) -> None:
        """Sleep until the server wants to be asked again; all requests wait for one."""
        left = self._resume - time.monotonic()
        if left > 0:
            (self._manners.sleep or stop.wait)(left)

    def _post(self, texts: list[str]) -> bytes:
        """Return the body of the answer, complete and with status 200."""
        body = {"model": self._model, "input": texts}
        limit = time.monotonic() + self._manners.timeout
        parts = []
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                for part in response.iter_bytes():
                    parts.append(part)
                    if time.monotonic() > limit:
                        raise Unanswered("the server was too slow to answer")
        except self._httpx.TimeoutException:
            raise Unanswered("the server did not answer in time") from None
        except self._httpx.TransportError as error:
            raise Unanswered(f"the connection failed: {self._shown(str(error))}") from None
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise self._error(f"the request failed: {self._shown(str(error))}") from None
        self._check(response, b"".join(parts))
        return b"".join(parts)

    def _check(self, response: Any, body: bytes) -> None:  # noqa: ANN401
        status = response.status_code
        if status == 200:
            return
        what = f"the server answered {status}: {self._shown(body.decode(errors='replace'))}"
        spent = b"insufficient_quota" in body  # OpenAI's 429 that no waiting cures
        if (status in (408, 429) or status >= 500) and not spent:
            raise Unanswered(what, status, response.headers.get("Retry-After"))
        raise self._error(what, status)

    def _vectors(self, body: bytes, count: int) -> list[list[float]]:
        try:
            answer = json.loads(body)
        except ValueError:
            shown = self._shown(body.decode(errors="replace"))
            raise Unanswered(f"the answer is not JSON: {shown}", 200) from None
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(
            isinstance(row, dict) and isinstance(row.get("embedding"), list) for row in data
        ):
            shown = self._shown(body.decode(errors="replace"))
            raise self._error(f"the answer holds no embeddings: {shown}", 200)
        if len(data) != count:
            raise self._error(f"the answer holds {len(data)} embeddings for {count} texts", 200)
        if any("index" in row for row in data):
            numbers = [row.get("index") for row in data]
            if any(type(n) is not int for n in numbers) or {*numbers} != {*range(count)}:
                raise self._error("the answer does not number its embeddings 0, 1, 2, …", 200)
            data.sort(key=lambda row: row["index"])
        return [row["embedding"] for row in data]

    def _shown(self, text: str) -> str:
        """Return the beginning of a text from outside: without the key, on one line."""
        # servers echo keys whole, masked in the middle, or escaped: the beginning gives them away
        safe = re.sub(rf'{re.escape(self._key[:6])}[^\s"]*', "[key]", text) if self._key else text
        line = " ".join(safe.split())
        line = "".join(letter if letter.isprintable() else "·" for letter in line)
        return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"

    def _error(self, what: str, status: int | None = None) -> EndpointError:
        fix = FIXES.get(status or 0, "check the base URL and that the server is up")
        return EndpointError(what, where=self._url, status=status, fix=fix)


def openai_embedder(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    max_chars: int | None = None,
    manners: Manners | None = None,
) -> TextEmbedder:
    """Return the embedder `openai:MODEL`; its name has the model and the server, never the key.

    Without arguments the base URL is `$OPENAI_BASE_URL` or OpenAI's, the key `$OPENAI_API_KEY`;
    most servers of one's own need none.
    """
    url = _checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
    key = _checked_key(os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key)
    if url == OPENAI and not key:
        raise OptionError(
            "OpenAI's embeddings need a key",
            fix="set OPENAI_API_KEY, or OPENAI_BASE_URL to a server that needs none",
        )
    if max_chars is not None and max_chars < 1:
        raise OptionError(f"max_chars is {max_chars}", fix="a number of characters above 0")
    cut = f":{max_chars}" if max_chars else ""
    endpoint = Endpoint(model, url, key, max_chars=max_chars, manners=manners or Manners())
    return TextEmbedder(f"openai:{model}@{url}{cut}", endpoint)


def _checked_url(url: str) -> str:
    """Return the URL without its last slash; it goes into names, so it may hold no secret."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise OptionError("the base URL is not a URL") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError(
            "the base URL has more than a server and a path",
            fix="leave out user, password and query; the key belongs into OPENAI_API_KEY",
        )
    if not whole:
        raise OptionError(
            f"the base URL {url!r} names no server", fix="for example http://localhost:8000/v1"
        )
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    """Return the key without blanks around it; others could not be sent."""
    bare = key.strip()
    if not (bare.isascii() and all(letter.isprintable() and letter != " " for letter in bare)):
        raise OptionError(
            "the API key has characters that no key has", fix="set OPENAI_API_KEY again"
        )
    return bare


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Cut texts into requests of a bounded number and size."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == TEXTS or size + len(text) > CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
