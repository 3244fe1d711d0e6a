"""What installed packages add to findwell, by entry points."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any


def entry_points(*, group: str) -> list[metadata.EntryPoint]:
    """Return the entry points of a group, such as `findwell.measures`."""
    return list(_every().select(group=group))


@functools.cache
def _every() -> Any:  # noqa: ANN401 - its type differs between versions of Python
    """Look at all installed packages, which takes a while, once for all groups."""
    return metadata.entry_points()
