"""Whether what is worked on is a whole evaluation, or a part of one that an engine cut out.

Some things can be said about a whole input only: that no document of it has a text, or that run and
gold share no query. Of a part they may be true while the whole is fine. A caller that cuts an
evaluation into parts says so with `working_on_part`, and looks at what all parts found in the end.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_part: ContextVar[bool] = ContextVar("part", default=False)


@contextmanager
def working_on_part() -> Iterator[None]:
    """Work on a part of an evaluation.

    >>> with working_on_part():
    ...     is_part()
    True
    >>> is_part()
    False
    """
    token = _part.set(True)
    try:
        yield
    finally:
        _part.reset(token)


def is_part() -> bool:
    """Tell whether the input at hand is a part of another one."""
    return _part.get()
