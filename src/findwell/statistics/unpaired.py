"""Two groups of different queries: the difference of their values, its interval, its test.

Two periods of production, or two sets of questions, cannot be compared query by query. What differs
between queries then counts in full, so that it takes many more of them than a paired comparison.

The interval puts the limits of the two groups together (MOVER: Zou and Donner 2008): each group has
the interval of `findwell.statistics.intervals`, and the distances of the limits from the values are
added as standard errors are. Whether 0 is in it is decided by the test; Welch's has an interval of
its own. The test divides all queries at random into two groups of the same
sizes, and counts how often the difference, in standard errors, is as large (Janssen 1997): valid
also if the spreads differ. Clusters stay whole; one with queries in both groups changes sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, check_draws, check_share
from findwell.core.estimate import Estimate
from findwell.statistics.intervals import METHOD as OF_GROUP
from findwell.statistics.intervals import (
    UNIT,
    Quantity,
    as_columns,
    choose_statistic,
    cluster_codes,
    intervals,
    scipy,
    to_scale,
)
from findwell.statistics.resampling import divisions
from findwell.statistics.significance import (
    PERMUTATIONS,
    Significance,
    decide_by_test,
    rejects,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats, Ints
    from findwell.statistics.intervals import Bounds

METHOD = f"{OF_GROUP}, two groups"
PERMUTATION, WELCH = "division", "welch"
NO_VALUE = "one of the groups has no query with a value"
ONE_VALUE = "one query or cluster of a group says nothing about its spread"
SUMS = "sums over different queries cannot be compared"
NO_SPREAD = "all values are equal"
ROUNDING = 1e-9

Labels: TypeAlias = "tuple[Sequence[object], Sequence[object]]"  # of baseline and system


@dataclass(frozen=True, slots=True)
class Unpaired:
    """A group against a baseline of other queries; positive where the group has more."""

    difference: Estimate
    test: Significance
    effect: Quantity  # in standard deviations of the queries (Cohen's d)
    baseline_n: int
    n: int
    # the interval of the difference at another level; the test, if there is one, decides about 0
    interval: Callable[[float, Significance | None], Estimate] = field(repr=False, compare=False)
    wins: None = None  # the queries are different ones, so that none wins
    ties: None = None
    losses: None = None


def unpaired(
    baseline: ArrayLike,
    system: ArrayLike,
    *,
    statistic: str = "mean",
    level: float = 0.95,
    bounds: Bounds = UNIT,
    clusters: Labels | None = None,
    test: str = PERMUTATION,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Unpaired:
    """Compare two lists of values of different queries.

    NaN is undefined and left out. `clusters` has the labels of both lists: queries with one label
    are not independent, whichever list they are in. `test` is `division` or `welch` (SciPy).

    >>> found = unpaired([0.2, 0.4, 0.3, 0.9] * 9, [0.7, 0.9, 0.6, 0.8] * 5)
    >>> print(f"{found.difference.value:.2f} [{found.difference.low:.2f}, "
    ...       f"{found.difference.high:.2f}]")
    0.30 [0.14, 0.40]
    >>> found.test.p < 0.001
    True
    """
    check_share("level", level)
    check_draws("permutations", permutations)
    groups = _groups(baseline, system, clusters, choose_statistic(statistic))
    sizes = len(groups.before), len(groups.after)

    def interval(level: float, test: Significance | None) -> Estimate:
        span = _interval(groups, statistic, level, bounds)
        if test is None:
            return span
        scaled = statistic == "geometric" and sizes[0] > 0
        step = float(np.exp(groups.before.mean())) if scaled else 1.0
        return decide_by_test(span, test, 1 - level, step, bounds[1] - bounds[0])

    if statistic == "sum" or not min(sizes):
        reason = SUMS if statistic == "sum" else NO_VALUE
        none = Significance(None, test, sizes[1], reason=reason)
        return Unpaired(interval(level, None), none, Quantity(None, reason), *sizes, interval)
    if test == WELCH:
        tested = _welch(groups)
    elif test == PERMUTATION:
        tested = _divided(groups, permutations, seed, 1 - level)
    else:
        raise OptionError(
            f"the test {test!r} needs the same queries on both sides", fix="leave it out, or use t"
        )
    return Unpaired(interval(level, tested), tested, _effect(groups), *sizes, interval)


def unpaired_interval(
    baseline: ArrayLike,
    system: ArrayLike,
    *,
    level: float = 0.95,
    bounds: Bounds = UNIT,
    clusters: Labels | None = None,
) -> Estimate:
    """Return the interval of a difference of means; no test decides whether 0 is in it.

    >>> before, after = [0.2, 0.4, 0.3, 0.5], [0.7, 0.9, 0.6, 0.8]
    >>> unpaired_interval(before, after).value == unpaired(before, after).difference.value
    True
    """
    check_share("level", level)
    return _interval(_groups(baseline, system, clusters, "mean"), "mean", level, bounds)


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """The values of both groups on the scale of their statistic, without NaN."""

    before: Floats
    after: Floats
    raw: tuple[Floats, Floats]
    codes: tuple[Ints, Ints] | None  # clusters, numbered over both groups
    missing: int

    def units(self) -> tuple[Floats, Floats]:
        """Return sums and sizes of each cluster, or query, in both groups: 2 × units each."""
        if self.codes is None:
            count = len(self.before), len(self.after)
            sums, sizes = np.zeros((2, sum(count))), np.zeros((2, sum(count)))
            sums[0, : count[0]], sums[1, count[0] :] = self.before, self.after
            sizes[0, : count[0]] = sizes[1, count[0] :] = 1
            return sums, sizes
        units = int(max(each.max(initial=-1) for each in self.codes)) + 1
        both = list(zip((self.before, self.after), self.codes, strict=True))
        sums = np.array([np.bincount(codes, values, units) for values, codes in both])
        sizes = np.array([np.bincount(codes, minlength=units) for _, codes in both], dtype=float)
        return sums, sizes


def _groups(
    baseline: ArrayLike, system: ArrayLike, clusters: Labels | None, statistic: str
) -> _Groups:
    sides = [as_columns(each)[:, 0] for each in (baseline, system)]
    defined = [~np.isnan(each) for each in sides]
    raw = sides[0][defined[0]], sides[1][defined[1]]
    scaled = [to_scale(each[:, np.newaxis], [statistic])[:, 0] for each in raw]
    codes = None
    if clusters is not None:
        if [len(each) for each in clusters] != [len(each) for each in sides]:
            raise OptionError("there must be a cluster label for each query of both groups")
        every = cluster_codes([*clusters[0], *clusters[1]], sum(map(len, sides)))
        kept = every[np.concatenate(defined)]
        _, kept = np.unique(kept, return_inverse=True)
        codes = kept[: len(raw[0])], kept[len(raw[0]) :]
    missing = int(sum((~each).sum() for each in defined))
    return _Groups(scaled[0], scaled[1], raw, codes, missing)


def _interval(groups: _Groups, statistic: str, level: float, bounds: Bounds) -> Estimate:
    labels = (None, None) if groups.codes is None else groups.codes
    one, other = (
        intervals(values, statistic=statistic, level=level, bounds=bounds, clusters=codes)[0]  # type: ignore[arg-type]
        for values, codes in zip(groups.raw, labels, strict=True)
    )
    clusters = None if groups.codes is None else len(np.unique(np.concatenate(groups.codes)))
    value, low, high, reason = None, None, None, ""
    if statistic == "sum" or one.value is None or other.value is None:
        reason = SUMS if statistic == "sum" else NO_VALUE
    else:
        value = other.value - one.value
        reason = one.reason or other.reason
        if (limits := limits_from_groups(one, other, _correlation(groups))) is not None:
            room, reason = bounds[1] - bounds[0], ""
            low, high = max(limits[0], -room), min(limits[1], room)
    method = "" if low is None else METHOD
    return Estimate(value, low, high, level, method, other.n, groups.missing, clusters, reason)


def limits_from_groups(
    one: Estimate, other: Estimate, together: float = 0.0
) -> tuple[float, float] | None:
    """Return the limits of other − one from those of both (MOVER), None if one is not known.

    `together` is how far the two go together.

    >>> one, other = (Estimate(each, each - 3, each + 3, 0.95, "some", 9) for each in (10.0, 20.0))
    >>> print("{:.2f} {:.2f}".format(*limits_from_groups(one, other)))
    5.76 14.24
    """
    if one.value is None or other.value is None:
        return None
    if one.low is None or other.low is None or one.high is None or other.high is None:
        return None

    def reach(first: float, second: float) -> float:
        return sqrt(max(first**2 + second**2 - 2 * together * first * second, 0.0))

    value = other.value - one.value
    low = value - reach(one.high - one.value, other.value - other.low)
    return low, value + reach(one.value - one.low, other.high - other.value)


def _correlation(groups: _Groups) -> float:
    """Return how the means of the groups go together, through clusters that are in both.

    A further cluster may go apart: the correlation is not 1 for a few that happen to agree.
    """
    if groups.codes is None:
        return 0.0
    sums, sizes = groups.units()
    off = sums - (sums.sum(axis=1) / sizes.sum(axis=1))[:, np.newaxis] * sizes
    spread = sqrt(float((off[0] ** 2).sum() * (off[1] ** 2).sum()))
    units = sizes.shape[1]
    found = (off[0] * off[1]).sum() / spread * units / (units + 1) if spread > 0 else 0.0
    return float(np.clip(found, -1.0, 1.0))


def _moments(sums: Floats, sizes: Floats) -> Floats:
    """Return what means and their standard errors are made of, summed over units: units × 6."""
    present = (sizes > 0).astype(np.float64)
    return np.stack([sums, sums**2, sums * sizes, sizes, sizes**2, present], axis=-1)


def _standardised(before: Floats, after: Floats) -> Floats:
    """Return differences of means in standard errors, from the moments of both groups."""
    means, squares = [], []
    for moments in (before, after):
        sums, square, product, size, size2, count = np.moveaxis(moments, -1, 0)
        mean = sums / size
        spread = np.maximum(square - 2 * mean * product + mean**2 * size2, 0.0)
        spread[spread <= ROUNDING**2 * np.maximum(square, ROUNDING)] = 0.0
        means.append(mean)
        squares.append(spread / size**2 * count / (count - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = means[1] - means[0]
        moved[np.abs(moved) <= ROUNDING * np.maximum(np.abs(means[0]), np.abs(means[1]))] = 0.0
        found = moved / np.sqrt(squares[0] + squares[1])
    return np.where(np.isnan(found), 0.0, found)


def _divided(groups: _Groups, permutations: int, seed: int, alpha: float) -> Significance:
    """Test by dividing the units into two groups at random."""
    sums, sizes = groups.units()
    n = len(groups.after)
    counts = (sizes > 0).sum(axis=1)
    if counts.min() < 2:
        return Significance(None, PERMUTATION, n, reason=ONE_VALUE)
    if np.ptp(np.concatenate([groups.before, groups.after])) <= ROUNDING:
        return Significance(1.0, PERMUTATION, n, 0.0, NO_SPREAD)
    here, there = (_moments(sums[side], sizes[side]) for side in (0, 1))
    seen = float(_standardised(here.sum(axis=0)[np.newaxis], there.sum(axis=0)[np.newaxis])[0])
    both = (sizes > 0).all(axis=0)
    alone, kept = np.flatnonzero(~both), np.flatnonzero(both)
    side = sizes[1, alone] > 0
    total = here + there  # of units that are in one group only
    hits = 1
    for assigned, swapped in divisions(side, len(kept), permutations, seed):
        # einsum adds in a fixed order; of a matrix product the last digit depends on the threads
        second = np.einsum("ij,jk->ik", assigned, total[alone]) + there[kept].sum(axis=0)
        second += np.einsum("ij,jk->ik", swapped, here[kept] - there[kept])
        first = total.sum(axis=0) - second
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = _standardised(first, second)
        hits += int((np.abs(drawn) >= abs(seen) * (1 - ROUNDING)).sum())
    smallest = max(1 / (permutations + 1), 1 / (comb(len(alone), int(side.sum())) * 2 ** len(kept)))
    reason = (
        ""
        if rejects(smallest, alpha)
        else f"so few queries or clusters: p cannot fall below {smallest:.3g}"
    )
    return Significance(hits / (permutations + 1), PERMUTATION, n, seen, reason)


def _welch(groups: _Groups) -> Significance:
    """Test by Welch's t, with the standard errors between clusters."""
    stats = scipy("stats")
    sums, sizes = groups.units()
    counts = (sizes > 0).sum(axis=1)
    n = len(groups.after)
    if counts.min() < 2:
        return Significance(None, WELCH, n, reason=ONE_VALUE)
    means = sums.sum(axis=1) / sizes.sum(axis=1)
    off = (sums - means[:, np.newaxis] * sizes) / sizes.sum(axis=1)[:, np.newaxis]
    squares = (off**2).sum(axis=1) * counts / (counts - 1)
    error = squares.sum() - 2 * (off[0] * off[1]).sum()
    if error <= ROUNDING**2:
        same = abs(means[1] - means[0]) <= ROUNDING
        return Significance(1.0 if same else None, WELCH, n, reason=NO_SPREAD)
    t = float((means[1] - means[0]) / np.sqrt(error))
    freedom = squares.sum() ** 2 / (squares**2 / (counts - 1)).sum()
    p = float(2 * stats.t.sf(abs(t), freedom))
    return Significance(p, WELCH, n, t, error=float(np.sqrt(error)), freedom=float(freedom))


def _effect(groups: _Groups) -> Quantity:
    """Return Cohen's d: the difference in standard deviations within the groups."""
    sides = groups.before, groups.after
    freedom = sum(map(len, sides)) - 2
    if freedom < 1:
        return Quantity(None, ONE_VALUE)
    square = sum(float(((each - each.mean()) ** 2).sum()) for each in sides) / freedom
    moved = float(groups.after.mean() - groups.before.mean())
    if square > ROUNDING**2:
        return Quantity(moved / sqrt(square))
    return Quantity(0.0 if abs(moved) <= ROUNDING else None, NO_SPREAD)
