"""Baselines: what signals are compared with: a window of time, a saved result, or a number.

    yesterday, last-week, last-month    whole days, weeks from Monday, months; in UTC
    last-24h, last-7d, last-4w          up to now
    2026-11-02/2026-11-09               from a date or time, up to another
    before:v2.3                         from the mark before, or the beginning, up to the mark v2.3
    results/main                        the folder of a saved result with the same measures
    0.7                                 a number, for all alerts that need a baseline

A window that is meant as of now is found once, when an alert is first checked with it, and kept:
a baseline that moved along would take a slow decline for usual.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, nearest
from findwell.evaluation.results.reuse import require_result
from findwell.io.storage.folders import is_folder
from findwell.loop.monitoring.times import DAY, EPOCH, UNITS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats
    from findwell.evaluation.results.result import Result
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark

WORDS = ("yesterday", "last-week", "last-month")
FORM = (
    "write last-week, yesterday, last-7d, 2026-11-02/2026-11-09, before:MARK, a folder or a number"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?P<percent>\s*%)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What values are compared with; one of number, result and window."""

    text: str
    number: float | None = None
    result: Result | None = None
    window: tuple[datetime, datetime] | None = None

    def values(self, signal: Signal) -> Floats:
        """Return the values of a signal in the saved result: those of the measure of its name."""
        if self.result is None:
            return np.empty(0)
        for measure in self.result.measures:
            if _plain(str(measure)) in {_plain(signal.name), *map(_plain, signal.aliases)}:
                runs = self.result.runs
                if len(runs) > 1:
                    raise OptionError(
                        f"the baseline has several runs: {', '.join(runs)}",
                        where=self.text,
                        fix="save a result of the run that is in production",
                    )
                return np.asarray(self.result.arrays[runs[0], measure], dtype=np.float64)
        named = ", ".join(map(str, self.result.measures))
        raise OptionError(
            f"the baseline has no measure {signal.name} (it has: {named})",
            where=self.text,
            fix=f"findwell score … -m {signal.name} --save DIR, or name a window of time",
        )


def find_baseline(text: str, now: datetime, marks: Sequence[Mark] = ()) -> Baseline:
    """Return the baseline that a text means at a moment; of marks with one name the latest counts.

    >>> now = datetime(2026, 11, 12, 15, tzinfo=UTC)
    >>> [str(each.date()) for each in find_baseline("last-week", now).window]
    ['2026-11-02', '2026-11-09']
    >>> find_baseline("70%", now).number
    0.7
    """
    plain = text.strip()
    number = _NUMBER.fullmatch(plain)
    if number is not None:
        percent = number["percent"] or ""
        value = float(plain.removesuffix(percent)) / (100 if percent else 1)
        if not np.isfinite(value):
            raise OptionError(f"the baseline {text!r} is not a finite number", fix=FORM)
        return Baseline(plain, number=value)
    window = _window(plain.lower(), now) or _marked(plain, marks) or _interval(plain)
    if window is not None:
        if window[0] >= window[1]:
            raise OptionError(f"the baseline {text!r} ends before it begins", fix=FORM)
        return Baseline(plain, window=window)
    if is_folder(plain):
        return Baseline(plain, result=require_result(plain))
    raise OptionError(f"unknown baseline {text!r}", fix=f"{nearest(plain, WORDS)} {FORM}".strip())


def _window(word: str, now: datetime) -> tuple[datetime, datetime] | None:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if word == "yesterday":
        return today - DAY, today
    if word == "last-week":
        monday = today - today.weekday() * DAY
        return monday - 7 * DAY, monday
    if word == "last-month":
        first = today.replace(day=1)
        return (first - DAY).replace(day=1), first
    recent = re.fullmatch(r"last-([1-9]\d{0,3})([hdw])", word)
    if recent is None:
        return None
    return now - int(recent[1]) * UNITS[recent[2]], now


def _marked(text: str, marks: Sequence[Mark]) -> tuple[datetime, datetime] | None:
    if not text.lower().startswith("before:"):
        return None
    name = text[len("before:") :].strip()
    times = [each.time for each in marks if each.name == name]
    if not times:
        names = list(dict.fromkeys(each.name for each in marks))
        known = ", ".join(names) or "there is none yet: findwell monitor mark NAME"
        raise OptionError(f"unknown mark {name!r}", fix=f"{nearest(name, names)} ({known})".strip())
    until = max(times)
    earlier = [each.time for each in marks if each.time < until]
    return max(earlier, default=EPOCH), until


def _interval(text: str) -> tuple[datetime, datetime] | None:
    since, slash, until = text.partition("/")
    if not slash or not re.match(r"\d{4}-\d\d", since):
        return None
    return parse_moment(since), parse_moment(until)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")
