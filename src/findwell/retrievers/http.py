"""A retriever behind an address: a search engine, or the search of your own service.

Questions go to this address and to no other: a redirect is a failure, the environment gives neither
headers nor credentials, and a proxy is used only where `findwell.judges.client.endpoint` allows it,
so that nothing meant for a server of this machine leaves it.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from findwell.core.errors import (
    InputError,
    OptionError,
    RetrieverError,
    needs_package,
    takes_options,
)
from findwell.core.findings import shorten
from findwell.judges.client.client import LARGEST_ANSWER
from findwell.judges.client.endpoint import NAMED_SECRET, header_value, proxy_for

if TYPE_CHECKING:
    import httpx

QUESTION, SIZE = "{{question}}", "{{k}}"
REDIRECT_STATUS, ERROR_STATUS = 300, 400
SECONDS = 60.0


@takes_options()
class HttpRetriever:
    """Asks an address by HTTP, and returns the part of the answer that holds the hits.

    `template` is the JSON body of a POST, in which `{{question}}` stands for the question and
    `{{k}}` for the number of documents; without one the address is asked by GET, and they stand in
    the address. `hits` says where in the answer the hits are, as in `hits.hits` or `data.0.chunks`
    (default: findwell looks for them). `headers` are sent with every question; a value `env:NAME`
    or `file:PATH` is taken from there, and is never shown.
    """

    def __init__(
        self,
        url: str,
        template: object = None,
        *,
        hits: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        k: int | None = None,
    ) -> None:
        self._url = _checked(url)
        self._template = _parsed(template)
        asked = url if template is None else json.dumps(self._template)
        if QUESTION not in asked:
            raise OptionError(
                f"there is no {QUESTION} in the {'address' if template is None else 'template'}",
                fix=f'say where the question goes: {{"query": "{QUESTION}"}}',
            )
        self._hits = [] if hits is None else hits.split(".")
        self._headers = {name: header_value(name, each) for name, each in (headers or {}).items()}
        self._timeout = timeout or SECONDS
        self._k = k
        self._client = self._open()
        weakref.finalize(self, self._client.close)  # connections end with the last use of it

    @property
    def configuration(self) -> str:
        """Return what decides about the answers."""
        return json.dumps([self._url, self._template, self._hits], sort_keys=True)

    @property
    def __name__(self) -> str:
        """Return the host, as the name of the run."""
        return urlsplit(self._url).hostname or "server"

    def __call__(self, question: str, k: int | None = None) -> Any:  # noqa: ANN401
        """Ask, and return the hits."""
        content = self._exchange(question, self._k if k is None else k)
        try:
            answer = json.loads(content)
        except ValueError:
            raise RetrieverError(f"the answer is not JSON: {_excerpt(content)!r}") from None
        for name in self._hits:
            answer = _step(answer, name, ".".join(self._hits))
        return answer

    def _exchange(self, question: str, k: int | None) -> bytes:
        import httpx  # noqa: PLC0415 - an extra

        url = self._url.replace(QUESTION, quote(question, safe=""))
        url = url.replace(SIZE, "" if k is None else str(k))
        method, body = "GET", None
        if self._template is not None:
            filled_in = json.dumps(filled(self._template, question, k), ensure_ascii=False)
            method, body = "POST", filled_in.encode("utf-8", "replace")
        received = bytearray()
        try:
            with self._client.stream(method, url, content=body) as response:
                for part in response.iter_bytes():
                    received += part
                    if len(received) > LARGEST_ANSWER:
                        raise RetrieverError(f"the answer has more than {LARGEST_ANSWER:,} bytes")
        except httpx.TimeoutException:
            raise TimeoutError(f"no answer within {self._timeout:g} s") from None
        except httpx.HTTPError as error:
            raise RetrieverError(self._hidden(f"{type(error).__name__}: {error}")) from None
        content = bytes(received)
        if REDIRECT_STATUS <= response.status_code < ERROR_STATUS:
            raise RetrieverError(f"status {response.status_code}: redirects are not followed")
        if response.status_code >= ERROR_STATUS:
            raise RetrieverError(
                self._hidden(f"status {response.status_code}: {_excerpt(content)}")
            )
        return content

    def _hidden(self, text: str) -> str:
        """Return a text without the values of the headers."""
        for secret in self._headers.values():
            text = secret.hide_in(text)
        return text

    def _open(self) -> httpx.Client:
        with needs_package("asking a server", "judge"):
            import httpx  # noqa: PLC0415
        parts = urlsplit(self._url)
        proxy = proxy_for(parts.scheme, parts.hostname or "", parts.netloc)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers |= {name: each.reveal() for name, each in self._headers.items()}
        secure = parts.scheme == "https" or proxy is not None
        return httpx.Client(
            headers=headers,
            timeout=self._timeout,
            follow_redirects=False,
            verify=httpx.create_ssl_context() if secure else False,
            proxy=proxy,
            trust_env=False,
        )


def filled(template: Any, question: str, k: int | None) -> Any:  # noqa: ANN401
    """Return a template with the question, and the number of documents, in it.

    >>> filled({"query": "{{question}}", "size": "{{k}}"}, 'Who said "no"?', 5)
    {'query': 'Who said "no"?', 'size': 5}
    """
    if isinstance(template, dict):
        every = {name: filled(each, question, k) for name, each in template.items()}
        return {name: each for name, each in every.items() if each is not _ABSENT_FIELD}
    if isinstance(template, list):
        return [filled(each, question, k) for each in template]
    if template == SIZE:
        return _ABSENT_FIELD if k is None else k
    if isinstance(template, str):
        return template.replace(SIZE, str(k)).replace(QUESTION, question)
    return template


_ABSENT_FIELD = (
    object()
)  # a field that is left out, so that the server's own number of documents counts


def _checked(url: str) -> str:
    """Refuse what is not an address, or holds a secret; no message repeats it."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise OptionError(
            "this is not an http address", fix="give one like http://localhost:9200/…"
        )
    hidden = [name for name, _ in parse_qsl(parts.query) if NAMED_SECRET.search(name)]
    if parts.username is not None or hidden:
        raise OptionError(
            "the address has a secret in it, which would end up in logs",
            fix="send it as a header: --header Authorization=env:VARIABLE",
        )
    return url


def _parsed(template: object) -> Any:  # noqa: ANN401
    """Return the body of a template: an object, JSON text, or the path of a file with it."""
    where = "template"
    if isinstance(template, os.PathLike):
        where = os.fspath(template)
        try:
            template = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text"
            raise InputError(f"{reason}", where=where) from None
    if not isinstance(template, str):
        return template
    try:
        return json.loads(template)
    except ValueError as error:
        fix = f'write placeholders in quotes: {{"query": "{QUESTION}", "size": "{SIZE}"}}'
        raise InputError(f"the template is not JSON: {error}", where=where, fix=fix) from None


def _step(answer: Any, name: str, path: str) -> Any:  # noqa: ANN401
    """Go one step down a path."""
    if isinstance(answer, Mapping) and name in answer:
        return answer[name]
    listed = isinstance(answer, Sequence) and not isinstance(answer, str)
    if listed and name.isdigit() and int(name) < len(answer):
        return answer[int(name)]
    known = ", ".join(answer) if isinstance(answer, Mapping) else f"a {type(answer).__name__}"
    raise RetrieverError(f"the answer has no {name!r} of {path}, only {shorten(known)}")


def _excerpt(content: bytes) -> str:
    return shorten(" ".join(content[:400].decode("utf-8", "replace").split()), 120)
