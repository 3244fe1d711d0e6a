"""Alerts and baselines: what an alarm is raised about, in a line of text, compared with what.

    context_relevancy drops         below what it was in the baseline; also rises, changes, worsens
    context_relevancy drops by 0.05 by more than that; or by 5%
    empty>2%                        a share above a number
    p95>800ms                       a percentile of the latency: p50, p90, p99, latency_p95
    documents<3                     of a signal without bounds: its median
    top_score changes by tenant     the same for every tenant, each by itself

A baseline is what alerts without a number compare with: a window of time, a saved result, or a
number.

    yesterday, last-week, last-month    whole days, weeks from Monday, months; in UTC
    last-24h, last-7d, last-4w          up to now
    2026-11-02/2026-11-09               from a date or time, up to another
    before:v2.3                         from the mark before, or the beginning, up to the mark v2.3
    results/main                        the folder of a saved result with the same measures
    0.7                                 a number, for all alerts that need a baseline

A window that is meant as of now is found once, when an alert is first checked with it, and kept:
a baseline that moved along would take a slow decline for usual.

How an alert is decided is in `findwell.loop.monitoring.detectors`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, nearest
from findwell.core.requirement import (
    SHARES,
    TIMES,
    in_base_unit,
    plain_text,
    read_number,
    read_percentile,
    split_line,
)
from findwell.evaluation.results.result import require_result
from findwell.io.storage.folders import is_folder
from findwell.loop.monitoring.signals import SIGNALS, find_signal
from findwell.loop.monitoring.times import DAY, EPOCH, UNITS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats
    from findwell.evaluation.results.result import Result
    from findwell.loop.monitoring.signals import Signal
    from findwell.loop.monitoring.store import Mark

FORM = 'for example "context_relevancy drops", "empty>2%", "p95>800ms", "top_score changes by user"'
DIRECTIONS = {
    "drops": "below",
    "falls": "below",
    "rises": "above",
    "grows": "above",
    "changes": "both",
    "worsens": "",  # what is worse is known of each signal
}
SIDE_WORDS = {"below": "drops", "above": "rises", "both": "changes"}
WORSE_SIDES = {"lower": "below", "higher": "above", "either": "both"}
COUNTED_UNITS = ("documents", "characters")  # units of whole numbers: 3 or less is below 4
MOST_SLICED = 3  # columns of one alert

_WORD = re.compile(r"(?P<signal>\S+) (?P<word>[a-z]+)(?: by (?P<margin>[\d.+-].*))?", re.IGNORECASE)
_SLICES = re.compile(r"(?P<rest>.+?) by (?P<names>[^\s\d.+-].*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Alert:
    """What is watched: a signal, a direction, and a line or a baseline."""

    text: str  # as it is shown, and known by in the store
    signal: str  # name in the registry
    side: str  # below, above or both
    line: float | None = None  # a number, in the unit of the signal; None: the baseline
    quantile: float | None = None  # of the values, such as 0.95; None: their mean
    margin: float = 0.0  # how far from the baseline an alarm begins
    relative: bool = False  # whether the margin is a part of the baseline
    by: tuple[str, ...] = ()  # columns or attributes: each value is watched by itself

    @property
    def about(self) -> Signal:
        """The signal."""
        return SIGNALS[self.signal]

    @property
    def needs_baseline(self) -> bool:
        """Whether there has to be something that values are compared with."""
        return self.line is None

    def of(self, values: Floats) -> float | None:
        """Return the mean of values of the signal, as charts show it, or the quantile."""
        known = values[~np.isnan(values)]
        if not len(known):
            return None
        return float(known.mean() if self.quantile is None else np.quantile(known, self.quantile))


def parse_alert(text: str) -> Alert:
    """Read an alert.

    >>> found = parse_alert("p95 > 0.8s")
    >>> found.signal, found.side, found.line, found.quantile
    ('latency_p95', 'above', 800.0, 0.95)
    >>> parse_alert("empty > 2 %").line, parse_alert("empty drops by 10% by tenant").by
    (0.02, ('tenant',))
    >>> parse_alert("top_score drop")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: unknown word 'drop' in 'top_score drop'
      fix: did you mean drops? (known: drops, falls, rises, grows, changes, worsens)
    """
    plain = plain_text(text)
    by: tuple[str, ...] = ()
    if (sliced := _SLICES.fullmatch(plain)) is not None:
        plain = sliced["rest"]
        by = tuple(dict.fromkeys(filter(None, re.split(r"\s*,\s*", sliced["names"].strip()))))
        if not by or len(by) > MOST_SLICED:
            raise OptionError(f"{text!r} is sliced by {len(by)} columns", fix="name one to three")
    if (parts := split_line(plain)) is not None and (number := read_number(parts[2])) is not None:
        return _at_line(text, parts[0], parts[1], number, by)
    if (word := _WORD.fullmatch(plain)) is not None:
        return _against_baseline(text, word, by)
    raise OptionError(f"{text!r} is not a valid alert", fix=FORM)


def _at_line(
    text: str, name: str, sign: str, written: tuple[float, str], by: tuple[str, ...]
) -> Alert:
    signal, quantile = _subject(name, text)
    number = _in_unit(signal, *written, text)
    if sign.endswith("=") and signal.unit in COUNTED_UNITS:
        number = ceil(number) - 1 if sign[0] == ">" else floor(number) + 1
    signal.refuse_outside(number, f"{text!r} is outside")
    if quantile is None and not isfinite(signal.bounds[1]):
        quantile = 0.5  # nothing bounds the mean, so that the median is what can be watched
    shown = f"{number:.10g}"
    if signal.unit in ("ms", "share"):
        shown = f"{number:.10g}ms" if signal.unit == "ms" else f"{100 * number:.10g}%"
    return Alert(
        f"{_name(signal, quantile, name)}{sign[0]}{shown}{_sliced(by)}",
        signal.name,
        "above" if sign[0] == ">" else "below",
        line=number,
        quantile=quantile,
        by=by,
    )


def _against_baseline(text: str, found: re.Match[str], by: tuple[str, ...]) -> Alert:
    word = found["word"].lower()
    if word not in DIRECTIONS:
        known = ", ".join(DIRECTIONS)
        fix = f"{nearest(word, DIRECTIONS)} (known: {known})".strip()
        raise OptionError(f"unknown word {word!r} in {text!r}", fix=fix)
    signal, quantile = _subject(found["signal"], text)
    side = DIRECTIONS[word] or WORSE_SIDES[signal.worse]
    shown = f"{_name(signal, quantile, found['signal'])} {SIDE_WORDS[side]}"
    margin, relative = 0.0, False
    if found["margin"] is not None:
        written = read_number(found["margin"])
        if written is None:
            raise OptionError(f"{text!r} is not a valid alert", fix=FORM)
        relative = written[1] == "%"
        margin = written[0] / 100 if relative else _in_unit(signal, *written, text)
        if margin < 0:
            raise OptionError(f"the margin of {text!r} is below 0", fix="write by how much, from 0")
    if margin:
        shown += f" by {margin:.6g}" if not relative else f" by {100 * margin:.6g}%"
    return Alert(
        shown + _sliced(by),
        signal.name,
        side,
        quantile=quantile,
        margin=margin,
        relative=relative,
        by=by,
    )


def _subject(name: str, text: str) -> tuple[Signal, float | None]:
    """Return the signal, and the quantile of its values that is meant, if one is."""
    share = read_percentile(name)
    if share is not None:
        return SIGNALS.get(f"latency_p{share}", SIGNALS["latency"]), round(float(share) / 100, 9)
    signal = find_signal(name)
    if not signal.per_call:
        raise OptionError(
            f"{signal.name} has no value for a single call, and {text!r} needs one",
            fix="watch it with findwell monitor show, or choose another signal",
        )
    if signal.summary.startswith("p"):
        return signal, float(signal.summary[1:]) / 100
    return signal, None


def _in_unit(signal: Signal, number: float, unit: str, text: str) -> float:
    """Return a number in the unit of the signal."""
    if signal.unit == "ms" and unit not in TIMES:
        raise OptionError(
            f"{text!r} has no unit of time", fix=f"write {signal.name}>{number:g}ms, or s"
        )
    if signal.unit != "ms" and unit == "%" and signal.bounds != (0.0, 1.0):
        raise OptionError(
            f"{signal.name} is not a share, as {text!r} has it", fix="write a number without %"
        )
    units = TIMES if signal.unit == "ms" else SHARES
    if unit not in units:
        raise OptionError(
            f"unknown unit {unit!r} in {text!r}", fix="write a number, or a share in %"
        )
    return in_base_unit(number, unit, units)


def _name(signal: Signal, quantile: float | None, written: str) -> str:
    if quantile is not None and read_percentile(written) is not None:
        return f"p{100 * quantile:g}"
    return signal.name


def _sliced(by: tuple[str, ...]) -> str:
    return f" by {', '.join(by)}" if by else ""


BASELINE_WORDS = ("yesterday", "last-week", "last-month")
BASELINE_FORM = (
    "write last-week, yesterday, last-7d, 2026-11-02/2026-11-09, before:MARK, a folder or a number"
)


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
    if (number := read_number(plain)) is not None and number[1] in SHARES:
        return Baseline(plain, number=in_base_unit(*number, SHARES))
    window = _window(plain.lower(), now) or _marked(plain, marks) or _interval(plain)
    if window is not None:
        if window[0] >= window[1]:
            raise OptionError(f"the baseline {text!r} ends before it begins", fix=BASELINE_FORM)
        return Baseline(plain, window=window)
    if is_folder(plain):
        return Baseline(plain, result=require_result(plain))
    fix = f"{nearest(plain, BASELINE_WORDS)} {BASELINE_FORM}".strip()
    raise OptionError(f"unknown baseline {text!r}", fix=fix)


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
        known = ", ".join(names) or "no marks yet: findwell monitor mark NAME"
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
