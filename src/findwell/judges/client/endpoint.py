"""Where a model is asked: the address of a server, the name of the model, its key, and the proxy.

This is the only place that decides where texts go and which key goes with them, for judges and
embeddings alike. What is given comes first. For `openai:MODEL` that is followed by
`FINDWELL_BASE_URL`, `OPENAI_BASE_URL` and OpenAI, for any other provider
(`findwell.judges.client.providers`) by its own variable and its own address. A key of the
environment belongs to the server that it was set for: `OPENAI_API_KEY` to that of
`OPENAI_BASE_URL`, or to OpenAI, the key of another provider to its address, `FINDWELL_API_KEY` to
that of `FINDWELL_BASE_URL` if there is one. No other server gets it. Texts for a server on this
machine, or in a private network, never go to a proxy outside it, whatever the environment says.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from findwell.core.errors import InputError, OptionError
from findwell.judges.client.protocol import CallFormat, ServerSupport
from findwell.judges.client.providers import BEARER, DEFAULT_URL, OPENAI, Provider, split_spec

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json

# where an address is named, where its key is, and what the key is for where no address is named
VARIABLES = (
    ("FINDWELL_BASE_URL", "FINDWELL_API_KEY", ""),  # for whatever findwell asks
    ("OPENAI_BASE_URL", "OPENAI_API_KEY", DEFAULT_URL),
)
# that people leave at the end of a base URL
PATHS = ("/chat/completions", "/embeddings", "/rerank", "/score")
VERSION = "OPENAI_API_VERSION"  # of Azure's protocol
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# headers that would change what is sent, or to whom
FIXED_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection"}
)
SECRET = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
# names of what must not stand on a command line, where other users of the machine can read it
NAMED_SECRET = re.compile(r"authorization|key|token|secret|cookie|password", re.IGNORECASE)
NOWHERE = "nowhere"  # the address of a provider that is not known
HIDDEN = "***"
REAL_KEY = 16  # shorter ones are the dummies of local servers, and may be ordinary words
KEY_BEGINNING = 6  # characters at the beginning of a real key by which an echo of it is recognised
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


def referenced(text: str, what: str) -> Secret | None:
    """Return the secret that `env:VARIABLE` or `file:PATH` refers to; None for any other text."""
    kind, colon, place = text.partition(":")
    if not colon or kind not in ("env", "file"):
        return None
    if kind == "env":
        if place not in os.environ:
            raise OptionError(f"the environment variable {place} is not set", where=what)
        return Secret(os.environ[place].strip())
    try:
        return Secret(Path(place).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise InputError(f"the secret cannot be read: {reason}", where=place) from None


def header_value(name: str, text: str) -> Secret:
    """Return the value of a header: from the environment, from a file, or as it is written.

    >>> header_value("Accept-Language", "de")
    ***
    """
    found = referenced(text, f"header {name}")
    if found is None and NAMED_SECRET.search(name):
        raise visible_secret(f"the header {name}")
    return Secret(text) if found is None else found


def visible_secret(what: str) -> OptionError:
    """Return the error about a secret that is written where others can read it."""
    return OptionError(
        f"{what} is a secret, and other users can read it in the list of processes or in the file",
        fix="replace this secret, and refer to the new one with env:VARIABLE or file:PATH",
    )


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

    files: str = field(default="", repr=False)  # where files and batches are
    headers: Mapping[str, Secret] = field(default_factory=dict, repr=False, compare=False)
    provider: Provider = field(default=OPENAI, repr=False)

    @classmethod
    def find(
        cls,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        provider: Provider = OPENAI,
        headers: Mapping[str, str] | None = None,
    ) -> Endpoint:
        """Take what is not given from the environment; a local server needs no key."""
        if not model.strip():
            raise OptionError("no model is named", fix=f"name one, as in {provider.spelling}")
        parts = _split(_named(provider) if base_url is None else base_url)
        host = parts.netloc.rpartition("@")[2].lower()
        path = parts.path.rstrip("/")
        for ending in PATHS:
            path = path.removesuffix(ending)
        base = f"{parts.scheme}://{host}{path}"
        place = provider.address(base, parts.query, model.strip(), _variable(VERSION))
        known, withheld = (key, ()) if key is not None else _key_for(parts, provider)
        return cls(
            model.strip(),
            place.base,
            query=place.query,
            user=unquote(parts.username or ""),
            password=Secret(unquote(parts.password or "")),
            key=_checked(known, provider),
            withheld=withheld,
            support=ServerSupport(CallFormat.for_provider(provider)),
            files=place.files,
            headers=_headers(headers or {}, provider, parts),
            provider=provider,
        )

    def url(self, path: str) -> str:
        """Return the address that requests go to."""
        return self._at(self.identity, path)

    def files_url(self, path: str) -> str:
        """Return the address of files and batches."""
        return self._at(self.files or self.identity, path)

    def _at(self, base: str, path: str) -> str:
        path, _, query = path.partition("?")
        both = "&".join(filter(None, (self.query, query)))
        return f"{base}{path}" + (f"?{both}" if both else "")

    def require_access(self) -> None:
        """Refuse to send texts to a provider without the key that it needs."""
        if self.key or self.user or BEARER.lower() in map(str.lower, self.headers):
            return
        if self.provider is OPENAI:
            if _origin(self.identity) == _origin(DEFAULT_URL):
                raise OptionError(
                    "no server is named, and OpenAI's needs a key",
                    where=self.identity,
                    fix="set FINDWELL_BASE_URL to your server, or OPENAI_API_KEY for OpenAI's",
                )
        elif self.provider.key and reach(urlsplit(self.identity).hostname or "") is Reach.PUBLIC:
            raise OptionError(
                f"{self.provider.title} needs a key", where=self.identity, fix=self.fix_access
            )

    @property
    def fix_access(self) -> str:
        """What to do about a server that does not accept the key, or wants one."""
        kept = f" ({' and '.join(self.withheld)} belongs to another server, and was not sent)"
        own = "" if self.provider is OPENAI else self.provider.key
        if own in self.withheld:  # the address is not that of the provider
            own = ""
        return f"set {own or VARIABLES[0][1]} to a key that this server accepts" + (
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
        for secret in (self.key, self.password, self.login, *self._secret_headers()):
            text = secret.hide_in(text)
        if len(self.key.reveal()) >= REAL_KEY:  # servers echo keys whole, masked, or cut off
            beginning = re.escape(self.key.reveal()[:KEY_BEGINNING])
            text = re.sub(rf"""{beginning}[^\s"']*""", HIDDEN, text)
        return text

    def hide_in_answer(self, text: str) -> str:
        """Return an answer without the key, unless the key may be a word that answers use."""
        for secret in (self.key, *self._secret_headers()):
            text = secret.hide_in(text) if len(secret.reveal()) >= REAL_KEY else text
        return text

    def _secret_headers(self) -> list[Secret]:
        """Return what headers carry that no one should read: the last word, behind Bearer."""
        values = (value for name, value in self.headers.items() if SECRET.search(name))
        return [Secret(value.reveal().split()[-1]) for value in values if value.reveal().split()]


def without_secrets(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of a call without texts that their names say are secret.

    >>> without_secrets({"max_tokens": 8, "user_config": {"api_key": "sk-1234", "team": "a"}})
    {'max_tokens': 8, 'user_config': {'api_key': '***', 'team': 'a'}}
    """
    return {name: _shown(name, value) for name, value in fields.items()}


def _shown(name: str, value: Json) -> Json:
    if isinstance(value, dict):
        return without_secrets(value)
    if isinstance(value, list):
        return [_shown(name, each) for each in value]
    return HIDDEN if isinstance(value, str) and SECRET.search(name) else value


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _named(provider: Provider) -> str:
    """Return the address that the environment names for a provider, or its usual one."""
    if provider is OPENAI:
        named = (_variable(url) for url, _, _ in VARIABLES)
        return next(filter(None, named), DEFAULT_URL)
    named_by = provider.url_variable
    address = _variable(named_by) if named_by else ""
    if address and not provider.deployments:
        address = _completed(address, provider.url)
    if found := address or provider.url:
        return found
    raise OptionError(
        f"the address of {provider.title} is not known",
        fix=f"set {named_by} to it, such as https://NAME.openai.azure.com, or give -J base_url",
    )


class SharedAddress(str):
    """Where a judge is asked, as an address for the embedder, too, if that is `openai:MODEL`.

    An embedder that names a provider of its own is asked there.
    """

    __slots__ = ()


def distance(address: str) -> Reach:
    """Tell how far the server at an address is away."""
    return reach(_split(address).hostname or "")


def shared_address(spec: str, named: Provider | None = None) -> SharedAddress | None:
    """Return the address of a judge's provider if it is not public: its texts must stay there."""
    provider = named or (split_spec(spec) or (OPENAI, ""))[0]
    if provider is OPENAI:
        return None  # which the embedder finds by itself
    address = _named(provider)
    return None if distance(address) is Reach.PUBLIC else SharedAddress(address)


def _completed(address: str, usual: str) -> str:
    """Return the address of a client from one that may be that of a server: 0.0.0.0, no path.

    >>> _completed("0.0.0.0", "http://localhost:11434/v1")
    'http://127.0.0.1:11434/v1'
    >>> _completed("https://models.example.com", "http://localhost:11434/v1")
    'https://models.example.com/v1'
    """
    whole = address if "://" in address else f"http://{address}"
    try:
        parts, model = urlsplit(whole), urlsplit(usual)
        port, bare = parts.port, parts.hostname is not None and "://" not in address
    except ValueError:
        return address  # refused with a message, where it is taken apart
    netloc = parts.netloc if port or not bare else f"{parts.netloc}:{model.port}"
    if parts.hostname in ("0.0.0.0", "::"):  # noqa: S104 - where a server listens: everywhere
        netloc = netloc.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104
    path = parts.path.rstrip("/") or model.path
    return urlunsplit((parts.scheme, netloc, path, parts.query, ""))


def _homes(provider: Provider) -> tuple[tuple[str, str], ...]:
    """Return the addresses that keys belong to, with the variables of the keys, in order."""
    if provider is OPENAI:
        return tuple((_variable(url) or usual, name) for url, name, usual in VARIABLES)
    general = (_variable(VARIABLES[0][0]), VARIABLES[0][1])
    if not provider.key:
        return (general,)
    try:
        home = _named(provider)
    except OptionError:  # every user has another address, and none is named
        home = NOWHERE
    return (home, provider.key), general


def _key_for(address: SplitResult, provider: Provider) -> tuple[str, tuple[str, ...]]:
    """Return the key of the environment for an address, and the keys that are for others."""
    withheld = []
    for home, name in _homes(provider):
        if key := _variable(name):
            domain = home == NOWHERE and (address.hostname or "").endswith(
                tuple(f".{each}" for each in provider.domains)
            )
            if not home or domain or _origin(home) == _origin(address.geturl()):
                return key, ()
            withheld.append(name)
    return "", tuple(withheld)


def _headers(
    given: Mapping[str, str], provider: Provider, address: SplitResult
) -> dict[str, Secret]:
    """Return the headers of all calls: those of the provider at its own address, and the given."""
    found: dict[str, Secret] = {}
    if provider.extra_headers and _origin(address.geturl()) == _origin(_named(provider)):
        for variable, name in provider.extra_headers.items():
            if value := _variable(variable):
                found[name] = Secret(value)
    for name, value in given.items():
        if not HEADER.fullmatch(name) or name.lower() in FIXED_HEADERS:
            raise OptionError(
                f"{name!r} cannot be given as a header", fix="for example 'X-Team: search'"
            )
        if not (value.isascii() and value.isprintable()):
            raise OptionError(
                f"the header {name} has characters that headers cannot have",
                fix="use printable ASCII characters",
            )
        found = {each: kept for each, kept in found.items() if each.lower() != name.lower()}
        found[name] = Secret(value.strip())
    return found


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port; None if it is not an address."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, (parts.hostname or "").rstrip("."), port
    except ValueError:
        return None


def _checked(key: str, provider: Provider) -> Secret:
    """Return the key without blanks around it, if it can be sent at all."""
    bare = key.strip()
    if not all("!" <= letter <= "~" for letter in bare):
        names = " or ".join(name for _, name in _homes(provider))
        raise OptionError("the key has characters that keys cannot have", fix=f"set {names} again")
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
