"""How long to wait before asking a server again."""

from __future__ import annotations

import math
import random
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

FIRST, LONGEST = 0.5, 60.0  # seconds


def pause(attempt: int, retry_after: str | None = None) -> float:
    """Return the seconds to wait after a failed attempt.

    What the server asks for, up to a minute; otherwise twice as long each time, a random part
    less, so that clients that failed together do not come back together.

    >>> pause(1, "2")
    2.0
    >>> 0.25 <= pause(1) <= 0.5
    True
    """
    asked = seconds(retry_after)
    if asked is not None:
        return min(asked, LONGEST)
    longest = min(FIRST * 2.0 ** min(attempt - 1, 30), LONGEST)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def seconds(retry_after: str | None, date: str | None = None) -> float | None:
    """Read the header Retry-After, a number of seconds or a date; None where it is neither.

    The header Date shows the server's clock; without it a date is measured by our own.

    >>> seconds("1.5"), seconds("Wed, 21 Oct 2015 07:28:00 GMT"), seconds("soon")
    (1.5, 0.0, None)
    >>> seconds("Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT")
    30.0
    """
    if retry_after is None:
        return None
    try:
        number = float(retry_after)
    except ValueError:
        then = _moment(retry_after)
        if then is None:
            return None
        now = None if date is None else _moment(date)
        number = then - (time.time() if now is None else now)
    return max(number, 0.0) if math.isfinite(number) else None


def _moment(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
