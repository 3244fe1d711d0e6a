"""Points and lengths of time, as options and reports write them; everything is in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from findwell.core.errors import OptionError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
UNITS = {"w": WEEK, "d": DAY, "h": HOUR, "m": timedelta(minutes=1)}
LENGTHS = ("1m", "5m", "15m", "1h", "3h", "6h", "12h", "1d", "1w", "4w", "13w", "52w", "520w")
USUAL_POINTS = 60  # points of a chart, at most about
NAMED_LENGTHS = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (in_utc(moment) - EPOCH) // MICROSECOND


def parse_moment(text: str) -> datetime:
    """Return a date or time as ISO 8601 writes it; without a zone it is in UTC.

    >>> parse_moment("2026-11-02").isoformat(), parse_moment("2026-11-02T08:00+01:00").isoformat()
    ('2026-11-02T00:00:00+00:00', '2026-11-02T07:00:00+00:00')
    """
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise OptionError(
            f"{text!r} is not a date or time", fix="write 2026-11-02, or 2026-11-02T08:00"
        ) from None


def bucket_length(every: str) -> timedelta:
    """Return the length of a bucket: minute, hour, day, week, or a number of them, as in 15m or 6h.

    >>> bucket_length("15m"), bucket_length("day")
    (datetime.timedelta(seconds=900), datetime.timedelta(days=1))
    """
    found = re.fullmatch(r"([1-9]\d{0,4})([mhdw])", NAMED_LENGTHS.get(every, every))
    if not found:
        raise OptionError(
            f"{every!r} is not a length of time",
            fix="write 15m, 1h, 6h, 1d or 1w, or hour, day, week",
        )
    return int(found[1]) * UNITS[found[2]]


def fitting_length(span: timedelta) -> str:
    """Return the length of a bucket that makes a chart of a time.

    >>> fitting_length(timedelta(days=4)), fitting_length(timedelta(days=365))
    ('3h', '1w')
    """
    fits = (each for each in LENGTHS if span / bucket_length(each) <= USUAL_POINTS)
    return next(fits, LENGTHS[-1])


def parse_period(text: str) -> timedelta:
    """Return how long something is kept, or ago.

    >>> parse_period("90d"), parse_period("12h"), parse_period("4w")
    (datetime.timedelta(days=90), datetime.timedelta(seconds=43200), datetime.timedelta(days=28))
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*([hdw])\s*", text.lower(), re.ASCII)
    if found is None or not int(found[1]):
        raise OptionError(
            f"{text!r} is not a length of time",
            fix="write a number of hours, days or weeks, such as 12h, 90d or 4w",
        )
    return int(found[1]) * UNITS[found[2]]


def spelled_length(length: timedelta, units: str = "wdhm") -> str:
    """Write a length of time, in the largest unit that divides it.

    >>> spelled_length(HOUR), spelled_length(WEEK), spelled_length(WEEK, "dhm")
    ('1h', '1w', '7d')
    """
    unit = next(unit for unit in units if not length % UNITS[unit] or unit == "m")
    return f"{length // UNITS[unit]}{unit}"
