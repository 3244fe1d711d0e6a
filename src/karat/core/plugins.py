"""What installed packages add to karat, by entry points."""

from __future__ import annotations

import functools
from importlib import metadata


def entry_points(*, group: str) -> metadata.EntryPoints:
    """Return the entry points of a group, such as `karat.measures`."""
    return _every().select(group=group)


@functools.cache
def _every() -> metadata.EntryPoints:
    """Look at all installed packages, which takes a while, once for all groups."""
    return metadata.entry_points()
