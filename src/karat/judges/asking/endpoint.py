"""Where a model is asked: the address of a server, the name of the model, and a key kept quiet."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from karat.errors import OptionError
from karat.judges.asking.wording import Accepted

DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLES = ("KARAT_BASE_URL", "OPENAI_BASE_URL")
KEY_VARIABLES = ("KARAT_API_KEY", "OPENAI_API_KEY")
PATH = "/chat/completions"
HIDDEN = "***"
REAL_KEY = 16  # shorter ones are the dummies of local servers, and may be ordinary words


class Secret:
    """A text that shows itself only to `reveal`: not in repr, logs or pickles.

    >>> Secret("sk-1234")
    ***
    """

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __repr__(self) -> str:
        return HIDDEN if self._text else "''"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __deepcopy__(self, _: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def hide_in(self, text: str) -> str:
        """Return a text without this secret."""
        return text.replace(self._text, HIDDEN) if self._text else text


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind an OpenAI-compatible address, and what its server was seen to accept.

    >>> Endpoint.find("some-model", base_url="https://me:word@localhost:8000/v1/", key="sk-1234")
    Endpoint(model='some-model', identity='https://localhost:8000/v1')
    """

    model: str
    identity: str  # scheme, host and path: no credentials
    query: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    password: Secret = field(default_factory=Secret, repr=False, compare=False)
    key: Secret = field(default_factory=Secret, repr=False, compare=False)
    accepted: Accepted = field(default_factory=Accepted, repr=False, compare=False)

    @classmethod
    def find(cls, model: str, *, base_url: str | None = None, key: str | None = None) -> Endpoint:
        """Take what is not given from the environment; a local server needs no key."""
        if not model.strip():
            raise OptionError("the judge has no model", fix="name one, as in openai:MODEL")
        parts = _split(base_url or _first(URL_VARIABLES) or DEFAULT_URL)
        host = parts.netloc.rpartition("@")[2].lower()
        path = parts.path.rstrip("/").removesuffix(PATH)
        return cls(
            model.strip(),
            f"{parts.scheme}://{host}{path}",
            query=parts.query,
            user=unquote(parts.username or ""),
            password=Secret(unquote(parts.password or "")),
            key=_checked(_first(KEY_VARIABLES) if key is None else key),
        )

    @property
    def url(self) -> str:
        """The address that requests go to."""
        return f"{self.identity}{PATH}" + (f"?{self.query}" if self.query else "")

    @property
    def login(self) -> Secret:
        """User and password as a header carries them."""
        if not self.user:
            return Secret()
        both = f"{self.user}:{self.password.reveal()}"
        return Secret(base64.b64encode(both.encode()).decode())

    def hide(self, text: str) -> str:
        """Return the text of an error without the secrets of this endpoint."""
        for secret in (self.key, self.password, self.login):
            text = secret.hide_in(text)
        return text

    def hide_in_answer(self, text: str) -> str:
        """Return an answer without the key, unless the key may be a word that answers use."""
        return self.key.hide_in(text) if len(self.key.reveal()) >= REAL_KEY else text


def _first(variables: tuple[str, ...]) -> str:
    return next((value for name in variables if (value := os.environ.get(name, "").strip())), "")


def _checked(key: str) -> Secret:
    """Return the key without blanks around it, if it can be sent at all."""
    bare = key.strip()
    if not all("!" <= letter <= "~" for letter in bare):
        raise OptionError(
            "the key of the judge has characters that no key has",
            fix=f"set {' or '.join(KEY_VARIABLES)} again",
        )
    return Secret(bare)


def _split(url: str) -> SplitResult:
    """Split an address; no message repeats it, as it may hold a password."""
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise OptionError(
            "the base URL of the judge is not an http address",
            fix="give one like http://localhost:8000/v1",
        )
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if any(word in name.lower() for word in ("key", "token", "secret", "password")):
            raise OptionError(
                f"the base URL of the judge has a {name!r} in it, which would end up in logs",
                fix=f"set {KEY_VARIABLES[0]} in the environment instead",
            )
    return parts
