"""Alerts: what an alarm is to be raised about, in a line of text.

    context_relevancy drops         below what it was in the baseline; also rises, changes, worsens
    context_relevancy drops by 0.05 by more than that; or by 5%
    empty>2%                        a share above a number
    p95>800ms                       a percentile of the latency: p50, p90, p99, latency_p95
    documents<3                     of a signal without bounds: its median
    top_score changes by tenant     the same for every tenant, each by itself

How an alert is decided is in `findwell.loop.monitoring.detectors`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
from findwell.loop.monitoring.signals import SIGNALS, find_signal

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.loop.monitoring.signals import Signal

FORM = 'for example "context_relevancy drops", "empty>2%", "p95>800ms", "top_score changes by user"'
DIRECTIONS = {
    "drops": "below",
    "falls": "below",
    "rises": "above",
    "grows": "above",
    "changes": "both",
    "worsens": "",  # what is worse is known of each signal
}
SHOWN = {"below": "drops", "above": "rises", "both": "changes"}
WORSE = {"lower": "below", "higher": "above", "either": "both"}
COUNTED = ("documents", "characters")  # units of whole numbers: 3 or less is below 4
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
    margin: float = 0.0  # how far from the baseline is no alarm yet
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
    if sign.endswith("=") and signal.unit in COUNTED:
        number = ceil(number) - 1 if sign[0] == ">" else floor(number) + 1
    low, high = signal.bounds
    if not low <= number <= high:
        raise OptionError(
            f"{signal.name} lies between {low:g} and {high:g}, and {text!r} is outside",
            fix=f"write a share, such as {signal.name}>2%"
            if high == 1
            else "choose another number",
        )
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
    side = DIRECTIONS[word] or WORSE[signal.worse]
    shown = f"{_name(signal, quantile, found['signal'])} {SHOWN[side]}"
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
