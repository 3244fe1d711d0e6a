"""How far a judge agrees with people: κ, rates and bias, with intervals.

Pairs of one question are not independent, so whole questions are resampled: the intervals of κ are
those of a bootstrap (BCa, widened as `karat.statistics.intervals` says), those of rates Wilson's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.statistics.clusters import as_units, cluster_codes
from karat.statistics.intervals import RESAMPLES, interval
from karat.statistics.limits import Estimate, bca_wide
from karat.statistics.resampling import bootstrap_means

if TYPE_CHECKING:
    from karat.data import Floats, Ints

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
    said: Ints, true: Ints, questions: Sequence[str], *, rel: int, level: float, seed: int
) -> list[Figure]:
    """Return the figures of a judge's grades against people's labels, pair by pair.

    A judge says yes from grade 1 on, people from `rel` on. The weighted κ compares grades, weighing
    a disagreement by the square of its size; it is left out where people gave only two of them.

    >>> found = figures(np.array([3, 0, 2, 0]), np.array([1, 0, 0, 0]), "abcd", rel=1, level=0.9,
    ...                 seed=0)
    >>> {figure.statistic: figure.value for figure in found}
    {'kappa': 0.5, 'accuracy': 0.75, 'precision': 0.5, 'recall': 1.0, 'bias': 0.25}
    """
    yes, right = (said > 0).astype(np.int64), (true >= rel).astype(np.int64)
    codes = cluster_codes(questions, len(questions))
    found = [_kappa("kappa", yes, right, codes, level, seed, squared=False)]
    if len(np.unique(true)) > 2:
        found.append(_kappa("weighted kappa", said, true, codes, level, seed, squared=True))
    rates = {
        "accuracy": (yes == right, np.ones(len(yes), dtype=bool), "no pair"),
        "precision": (right, yes > 0, "the judge never says yes"),
        "recall": (yes, right > 0, "people never say yes"),
        "bias": (yes - right, np.ones(len(yes), dtype=bool), "no pair"),
    }
    for name, (values, which, missing) in rates.items():
        each = interval(
            values[which].astype(np.float64), level=level, clusters=codes[which], seed=seed
        )
        reason = each.reason if which.any() else missing
        found.append(Figure(name, each.value, each.low, each.high, each.n, reason))
    return found


def _kappa(  # noqa: PLR0917
    name: str, said: Ints, true: Ints, codes: Ints, level: float, seed: int, *, squared: bool
) -> Figure:
    """Return κ with the interval of a bootstrap over questions."""
    cells = np.eye(GRADES * GRADES)[said * GRADES + true]
    units = as_units(cells, codes)
    n = len(said)
    value = float(kappas(units.sums.sum(axis=0)[np.newaxis], squared=squared)[0])
    if np.isnan(value):
        return Figure(name, None, None, None, n, "all verdicts and labels are the same one")
    if len(units) < 2:
        return Figure(name, value, None, None, n, "one question says nothing about the spread")
    without = kappas(units.sums.sum(axis=0) - units.sums, squared=squared)
    influence = np.nan_to_num((len(units) - 1) * (value - without))
    influence -= influence.mean()
    draws = kappas(bootstrap_means(units.sums, units.sizes, RESAMPLES, seed), squared=squared)
    if not influence.any():
        return Figure(name, value, None, None, n, "no question differs from the others")
    estimate = Estimate(value, influence, draws[~np.isnan(draws)], n)
    low, high = bca_wide(estimate, level)
    return Figure(name, value, low, high, n)


def kappas(cells: Floats, *, squared: bool) -> Floats:
    """Return Cohen's κ of tables of counts or shares, a row a table; NaN where undefined.

    >>> kappas(np.array([[2, 0, 0, 0, 1, 1] + [0] * 10]), squared=False).tolist()
    [0.5]
    """
    table = cells.reshape(-1, GRADES, GRADES).astype(np.float64)
    grade = np.arange(GRADES)
    apart = np.abs(grade[:, np.newaxis] - grade)
    weight = (apart**2 if squared else apart > 0).astype(np.float64)
    total = table.sum(axis=(1, 2))
    chance = table.sum(axis=2)[:, :, np.newaxis] * table.sum(axis=1)[:, np.newaxis, :]
    met = (weight * table).sum(axis=(1, 2)) * total
    expected = (weight * chance).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(expected > 0, 1 - met / expected, np.nan)
    return found
