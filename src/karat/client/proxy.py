"""Which proxy of the environment a call goes through: none that is farther away than its server.

Texts for a server on this machine, or in a private network, do not leave for a proxy outside it,
whatever the environment says.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from enum import IntEnum
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

HERE = (
    "localhost",
    "host.docker.internal",
    "gateway.docker.internal",
    "host.containers.internal",
)
INSIDE = ("local", "lan", "internal", "intranet", "corp", "home", "home.arpa", "private")


class Reach(IntEnum):
    """How far a host is away."""

    HERE = 0  # this machine
    INSIDE = 1  # a private network
    OUTSIDE = 2


def reach(host: str) -> Reach:
    """Tell how far away a host is, by its name; no server is asked for that.

    >>> [reach(host).name for host in ("localhost", "127.1", "10.0.0.7", "gpu-box", "example.com")]
    ['HERE', 'HERE', 'INSIDE', 'INSIDE', 'OUTSIDE']
    """
    name = host.lower().strip("[]").partition("%")[0].rstrip(".")
    address = _address(name)
    if address is not None:
        if address.is_loopback or address.is_unspecified:
            return Reach.HERE
        return Reach.OUTSIDE if address.is_global else Reach.INSIDE
    if name in HERE or name.endswith(".localhost"):
        return Reach.HERE
    alone = "." not in name or name.endswith(tuple(f".{each}" for each in INSIDE))
    return Reach.INSIDE if alone else Reach.OUTSIDE


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
    """Return the proxy that the environment names for an address, if it may have its calls."""
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
        near = True  # no address at all: whoever connects says so
    return url if near else None
