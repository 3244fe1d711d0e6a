"""All pairs of systems at once: the randomised Tukey test."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError
from findwell.statistics.resampling import normal_ranges, shuffled_ranges
from findwell.statistics.significance import PERMUTATIONS, ROUNDING
from findwell.statistics.values import (
    check_draws,
    each_statistic,
    refuse_infinite,
    to_scale,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats
    from findwell.statistics.values import Statistic


SHUFFLED = 500  # queries that carry the spread, beyond which sums of shuffles are normal
NO_QUERY = "no query has a value in every system"
ONE_SYSTEM = "there is one system"
NONE_DIFFERS = "no query differs between the systems"


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Every pair of systems on one measure."""

    p: Mapping[tuple[int, int], float | None]  # by the numbers of two systems, smaller first
    method: str  # permutation, or normal where there are many queries
    n: int  # queries with a value in every system
    # between the best and the worst mean when values are dealt anew, ascending
    ranges: Floats = field(repr=False, compare=False)
    reason: str = ""

    def chance(self, difference: float) -> float | None:
        """Return how often best and worst lie at least this far apart; None without a query.

        A pair that has more queries than those with a value in every system is tested by the
        difference over all of its own.
        """
        if not self.n:
            return None
        rounding = 1e-9 * self.ranges[-1]  # sums that differ by no more are equal
        at_least = abs(difference) - rounding
        larger = len(self.ranges) - np.searchsorted(self.ranges, at_least, side="left")
        return float((larger + 1) / (len(self.ranges) + 1))


def tukey(
    values: ArrayLike,
    *,
    statistic: Statistic = "mean",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[AllPairs, ...]:
    """Test all pairs of systems at once: randomised Tukey HSD (Carterette 2012), by measure.

    `values` is queries × systems, or queries × systems × measures. If all systems are alike, the
    values of a query could have been dealt to the systems in any order. They are dealt again at
    random; p of a pair is how often the best and the worst system then lie as far apart as the
    pair does, so that it holds for all pairs together and needs no further correction. A query
    that lacks a value in any system is left out.

    Where more than 500 queries carry the spread between systems, sums over queries are
    normally distributed to a precision that no number of shuffles shows; then (`normal`) the
    ranges are drawn from the normal distribution with the variance that shuffling has. By how
    many queries the spread is carried is (Σ v)² ÷ Σ v², v the variance between systems in a query.
    """
    check_draws("permutations", permutations)
    table = _as_cube(values)
    _, systems, measures = table.shape
    names = each_statistic(statistic, measures)
    scaled = to_scale(table.reshape(-1, measures), names).reshape(table.shape)
    complete = np.asarray(~np.isnan(scaled).any(axis=1))
    counts = complete.sum(axis=0)
    filled = np.where(complete[:, np.newaxis, :], scaled, 0.0)
    sums = filled.sum(axis=1, keepdims=True)
    centred = filled - sums / max(systems, 1)
    ranges, methods = _ranges(centred, permutations, seed)
    found = []
    for measure in range(measures):
        n = int(counts[measure])
        chances = _chances(centred[:, :, measure], ranges[measure])
        p = {pair: float(chances[pair]) if n else None for pair in combinations(range(systems), 2)}
        reason = _reason(n, systems, centred[:, :, measure])
        dealt = np.sort(ranges[measure]) / max(n, 1)
        found.append(AllPairs(p, methods[measure], n, dealt, reason))
    return tuple(found)


def _as_cube(values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 2:
        table = table[:, :, np.newaxis]
    if table.ndim != 3:
        raise InputError(f"values have {table.ndim} dimensions, not two or three")
    refuse_infinite(table)
    return table


def _ranges(centred: Floats, draws: int, seed: int) -> tuple[list[Floats], list[str]]:
    """Return random ranges for each measure, and how they were drawn."""
    queries, systems, measures = centred.shape
    variance = (centred**2).mean(axis=1) if systems else np.zeros((queries, measures))
    total = variance.sum(axis=0)
    carried = total**2 / np.maximum((variance**2).sum(axis=0), np.finfo(float).tiny)
    methods = ["normal" if share > SHUFFLED else "permutation" for share in carried]
    ranges = [np.zeros(draws)] * measures
    standard = normal_ranges(systems, draws, seed) if "normal" in methods else np.zeros(0)
    alike: dict[bytes, list[int]] = {}  # measures that the same queries decide share shuffles
    for measure in range(measures):
        if methods[measure] == "normal":
            ranges[measure] = standard * sqrt(total[measure] * systems / (systems - 1))
        elif total[measure] > 0:
            alike.setdefault((variance[:, measure] > 0).tobytes(), []).append(measure)
    for group in alike.values():
        rows = variance[:, group[0]] > 0
        blocks = list(shuffled_ranges(centred[rows][:, :, group], draws, seed))
        for measure, column in zip(group, np.concatenate(blocks).T, strict=True):
            ranges[measure] = column
    return ranges, methods


def _chances(centred: Floats, ranges: Floats) -> Floats:
    """Return p for every pair of systems: systems × systems."""
    sums = centred.sum(axis=0)
    distance = np.abs(sums[:, np.newaxis] - sums)
    rounding = ROUNDING * np.abs(centred).sum()
    # how many of the ranges are at least as large
    larger = len(ranges) - np.searchsorted(np.sort(ranges), distance - rounding, side="left")
    chances: Floats = (larger + 1) / (len(ranges) + 1)
    return chances


def _reason(n: int, systems: int, centred: Floats) -> str:
    if systems < 2:
        return ONE_SYSTEM
    if not n:
        return NO_QUERY
    return "" if np.abs(centred).max() > ROUNDING else NONE_DIFFERS
