"""How far a judge agrees with people: κ, rates and bias, with intervals.

Pairs of one question are not independent, so that a question is a unit (`karat.statistics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.statistics.agreement import kappa_limits, kappa_of
from karat.statistics.intervals import as_units, cluster_codes, estimate, interval
from karat.statistics.values import UNIT

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints

GRADES = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic with its interval; None where it is undefined, and why."""

    statistic: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def figures(
    said: Ints, true: Ints, questions: Sequence[str], *, rel: int, level: float
) -> list[Figure]:
    """Return the figures of a judge's grades against people's labels, pair by pair.

    A judge says yes from grade 1 on, people from `rel` on. The weighted κ compares grades, weighing
    a disagreement by the square of its size; it is left out where people gave only two of them.

    >>> found = figures(np.array([3, 0, 2, 0]), np.array([1, 0, 0, 0]), "abcd", rel=1, level=0.9)
    >>> {figure.statistic: figure.value for figure in found}
    {'kappa': 0.5, 'accuracy': 0.75, 'precision': 0.5, 'recall': 1.0, 'bias': 0.25}
    """
    yes, right = (said > 0).astype(np.int64), (true >= rel).astype(np.int64)
    codes = cluster_codes(questions, len(questions))
    found = [_kappa("kappa", yes, right, codes, level, squared=False)]
    if len(np.unique(true)) > 2:
        found.append(_kappa("weighted kappa", said, true, codes, level, squared=True))
    rates = {
        "accuracy": (yes == right, np.ones(len(yes), dtype=bool), "no pair"),
        "precision": (right, yes > 0, "the judge never says yes"),
        "recall": (yes, right > 0, "people never say yes"),
        "bias": (yes - right, np.ones(len(yes), dtype=bool), "no pair"),
    }
    for name, (values, which, missing) in rates.items():
        each = interval(
            values[which].astype(np.float64),
            level=level,
            bounds=(-1.0, 1.0) if name == "bias" else UNIT,
            clusters=codes[which],
        )
        reason = each.reason if which.any() else missing
        found.append(Figure(name, each.value, each.low, each.high, each.n, reason))
    return found


def _kappa(
    name: str, said: Ints, true: Ints, codes: Ints, level: float, *, squared: bool
) -> Figure:
    """Return κ, with questions as the units of its interval."""
    n = len(said)
    units = as_units(np.eye(GRADES * GRADES)[said * GRADES + true], codes)
    value, influence = kappa_of(units.sums.sum(axis=0).reshape(GRADES, GRADES), apart(squared))
    if np.isnan(value):
        return Figure(name, None, None, None, n, "all verdicts and labels are the same one")
    if len(units) < 2:
        return Figure(name, value, None, None, n, "one question says nothing about the spread")
    by_question = units.sums @ influence.ravel() * (len(units) / n)
    low, high = kappa_limits(value, by_question, level, estimate(units).size)
    return Figure(name, value, low, high, n)


def apart(squared: bool) -> Floats:
    """Return how grave it is to give one grade for another."""
    grade = np.arange(GRADES, dtype=np.float64)
    distance = np.abs(grade[:, np.newaxis] - grade)
    return distance**2 if squared else np.minimum(distance, 1.0)
