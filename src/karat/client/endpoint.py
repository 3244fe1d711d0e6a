"""Where a model is asked: the address of a server, the name of the model, its key, and the proxy.

This is the only place that decides where texts go and which key goes with them, for judges and
embeddings alike. What is given comes first, then `KARAT_BASE_URL`, then `OPENAI_BASE_URL`, then
OpenAI. A key of the environment belongs to the server that it was set for: `OPENAI_API_KEY` to that
of `OPENAI_BASE_URL`, or to OpenAI, `KARAT_API_KEY` to that of `KARAT_BASE_URL` if there is one. No
other server gets it. Texts for a server on this machine, or in a private network, never go to a
proxy outside it, whatever the environment says.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import re
import socket
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from karat.client.requests import ServerSupport
from karat.errors import OptionError

DEFAULT_URL = "https://api.openai.com/v1"
# where an address is named, where its key is, and what the key is for where no address is named
VARIABLES = (
    ("KARAT_BASE_URL", "KARAT_API_KEY", ""),  # for whatever karat asks
    ("OPENAI_BASE_URL", "OPENAI_API_KEY", DEFAULT_URL),
)
PATHS = ("/chat/completions", "/embeddings")  # that people leave at the end of a base URL
HIDDEN = "***"
REAL_KEY = 16  # shorter ones are the dummies of local servers, and may be ordinary words
TELLING = 6  # characters at the beginning of a real key by which an echo of it is recognised
# names of this machine, and the last parts of names in private networks
THIS_MACHINE = (
    "localhost",
    "host.docker.internal",
    "gateway.docker.internal",
    "host.containers.internal",
)
PRIVATE = ("local", "lan", "internal", "intranet", "corp", "home", "home.arpa", "private")


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
    withheld: tuple[str, ...] = field(default=(), repr=False, compare=False)  # keys of others
    support: ServerSupport = field(default_factory=ServerSupport, repr=False, compare=False)

    @classmethod
    def find(cls, model: str, *, base_url: str | None = None, key: str | None = None) -> Endpoint:
        """Take what is not given from the environment; a local server needs no key."""
        if not model.strip():
            raise OptionError("no model is named", fix="name one, as in openai:MODEL")
        named = (_variable(url) for url, _, _ in VARIABLES)
        parts = _split(base_url or next(filter(None, named), DEFAULT_URL))
        host = parts.netloc.rpartition("@")[2].lower()
        path = parts.path.rstrip("/")
        for ending in PATHS:
            path = path.removesuffix(ending)
        known, withheld = (key, ()) if key is not None else _key_for(parts)
        return cls(
            model.strip(),
            f"{parts.scheme}://{host}{path}",
            query=parts.query,
            user=unquote(parts.username or ""),
            password=Secret(unquote(parts.password or "")),
            key=_checked(known),
            withheld=withheld,
        )

    def url(self, path: str) -> str:
        """Return the address that requests go to."""
        return f"{self.identity}{path}" + (f"?{self.query}" if self.query else "")

    def require_access(self) -> None:
        """Refuse to send texts to OpenAI without a key: who has none means another server."""
        if _origin(self.identity) == _origin(DEFAULT_URL) and not (self.key or self.user):
            raise OptionError(
                "no server is named, and OpenAI's needs a key",
                where=self.identity,
                fix="set KARAT_BASE_URL to your server, or OPENAI_API_KEY for OpenAI's",
            )

    @property
    def fix_access(self) -> str:
        """What to do about a server that does not accept the key, or wants one."""
        kept = f" ({' and '.join(self.withheld)} belongs to another server, and was not sent)"
        return f"set {VARIABLES[0][1]} to a key that this server accepts" + (
            kept if self.withheld else ""
        )

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
        if len(self.key.reveal()) >= REAL_KEY:  # servers echo keys whole, masked, or cut off
            beginning = re.escape(self.key.reveal()[:TELLING])
            text = re.sub(rf"""{beginning}[^\s"']*""", HIDDEN, text)
        return text

    def hide_in_answer(self, text: str) -> str:
        """Return an answer without the key, unless the key may be a word that answers use."""
        return self.key.hide_in(text) if len(self.key.reveal()) >= REAL_KEY else text


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _key_for(address: SplitResult) -> tuple[str, tuple[str, ...]]:
    """Return the key of the environment for an address, and the keys that are for others."""
    withheld = []
    for url, name, usual in VARIABLES:
        home = _variable(url) or usual
        if key := _variable(name):
            if not home or _origin(home) == _origin(address.geturl()):
                return key, ()
            withheld.append(name)
    return "", tuple(withheld)


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port; None if it is no address."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, (parts.hostname or "").rstrip("."), port
    except ValueError:
        return None


def _checked(key: str) -> Secret:
    """Return the key without blanks around it, if it can be sent at all."""
    bare = key.strip()
    if not all("!" <= letter <= "~" for letter in bare):
        names = " or ".join(name for _, name, _ in VARIABLES)
        raise OptionError("the key has characters that no key has", fix=f"set {names} again")
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
            "the base URL is not an http address", fix="give one like http://localhost:8000/v1"
        )
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if any(word in name.lower() for word in ("key", "token", "secret", "password")):
            raise OptionError(
                f"the base URL has a {name!r} in it, which would end up in logs",
                fix=f"set {VARIABLES[0][1]} in the environment instead",
            )
    return parts


class Reach(IntEnum):
    """How far a host is away."""

    THIS_MACHINE = 0
    PRIVATE = 1  # a private network
    PUBLIC = 2


def reach(host: str) -> Reach:
    """Tell how far away a host is, by its name; no server is asked for that.

    >>> [reach(host).name for host in ("localhost", "127.1", "10.0.0.7", "gpu-box", "example.com")]
    ['THIS_MACHINE', 'THIS_MACHINE', 'PRIVATE', 'PRIVATE', 'PUBLIC']
    """
    name = host.lower().strip("[]").partition("%")[0].rstrip(".")
    address = _address(name)
    if address is not None:
        if address.is_loopback or address.is_unspecified:
            return Reach.THIS_MACHINE
        return Reach.PUBLIC if address.is_global else Reach.PRIVATE
    if name in THIS_MACHINE or name.endswith(".localhost"):
        return Reach.THIS_MACHINE
    alone = "." not in name or name.endswith(tuple(f".{each}" for each in PRIVATE))
    return Reach.PRIVATE if alone else Reach.PUBLIC


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is written as, in any of its forms; None for a name."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(name)
        inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return inner or found
    with contextlib.suppress(OSError, UnicodeError):
        return ipaddress.IPv4Address(socket.inet_aton(name))
    return None


def proxy_for(scheme: str, host: str, netloc: str) -> str | None:
    """Return the proxy that the environment names for an address, unless it is farther away."""
    proxies = getproxies()
    if proxy_bypass(netloc):
        return None
    named = proxies.get(scheme) or proxies.get("all")
    if not named:
        return None
    url = named if "://" in named else f"http://{named}"
    try:
        near = reach(urlsplit(url).hostname or "") <= reach(host)
    except ValueError:
        near = True  # no address at all: connecting to it fails with a message
    return url if near else None
