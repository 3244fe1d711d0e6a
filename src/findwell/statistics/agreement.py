"""Agreement of two sides: of labels (κ), of orders (τ, τ-AP), of rankings (RBO)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import InputError, OptionError, choose
from findwell.statistics.intervals import (
    Estimates,
    as_units,
    cluster_codes,
    estimate,
    limits_of_means,
)
from findwell.statistics.values import Quantity, as_columns, check_share, same_shape, scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

WEIGHTS = ("none", "linear", "quadratic")

NO_LABEL = "no item has a label in both"
ONE_SIDED = "one of the two gives every item the same label, so the spread is unknown"
ONE_LABEL = "all labels of both are the same one, so chance agrees as well"
ONE_CLUSTER = "all items are of one cluster, so the spread is unknown"
TOO_FEW = "there are fewer than two items to order"
ALL_TIED = "all items are tied"
BOTH_EMPTY = "both rankings are empty"

Label: TypeAlias = str | float | bool
Labels: TypeAlias = Sequence[Label | None]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often the first gave the label of a row when the second gave that of a column."""

    labels: tuple[Label, ...]
    counts: tuple[tuple[int, ...], ...]
    n: int  # items with a label in both
    left_out: int


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement beyond chance: 1 is perfect, 0 as by chance; None with a reason if undefined."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    weights: str
    agreement: float | None  # the share of items with the same label
    confusion: Confusion
    reason: str = ""


def confusion(first: Labels, second: Labels) -> Confusion:
    """Count pairs of labels; position i of both is the same item, None or NaN is no label.

    >>> confusion([0, 1, 1, None], [0, 1, 0, 1])
    Confusion(labels=(0, 1), counts=((1, 0), (1, 1)), n=3, left_out=1)
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} labels cannot be paired with {len(second)}")
    pairs = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if not (_missing(one) or _missing(other))
    ]
    counted = Counter(pairs)
    labels = _ordered({label for pair in counted for label in pair if label is not None})
    counts = tuple(tuple(counted[one, other] for other in labels) for one in labels)
    return Confusion(labels, counts, len(pairs), len(first) - len(pairs))


def kappa(
    first: Labels,
    second: Labels,
    *,
    weights: str = "none",
    level: float = 0.95,
    clusters: Sequence[object] | None = None,
) -> Kappa:
    """Return Cohen's κ between two lists of labels, with its interval.

    Items of one of `clusters` are not independent: the cluster is the unit of the interval then.

    `linear` and `quadratic` weigh a disagreement by how far apart the labels are: by their values
    if they are numbers, by their places in the order otherwise.

    >>> round(kappa(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"]).value, 2)
    0.5
    """
    choose("weights", weights, WEIGHTS)
    check_share("level", level)
    table = confusion(first, second)
    counts = np.array(table.counts, dtype=np.float64)
    agreed = float(np.trace(counts)) / table.n if table.n else None
    if len(table.labels) < 2:
        reason = ONE_LABEL if table.n else NO_LABEL
        return Kappa(None, None, None, level, weights, agreed, table, reason)
    value, influence = kappa_of(counts, disagreement(table.labels, weights))
    if is_one_sided(counts):
        return Kappa(value, None, None, level, weights, agreed, table, ONE_SIDED)
    if clusters is None:
        items = np.repeat(influence.ravel(), counts.ravel().astype(np.int64))
        low, high = kappa_limits(value, items, level)
        return Kappa(value, low, high, level, weights, agreed, table)
    place = {label: at for at, label in enumerate(table.labels)}
    known = [
        (influence[place[one], place[other]], name)
        for one, other, name in zip(first, second, clusters, strict=True)
        if one in place and other in place
    ]
    moved = np.array([[each] for each, _ in known])
    units = as_units(moved, cluster_codes([name for _, name in known], len(known)))
    if len(units) < 2:
        return Kappa(value, None, None, level, weights, agreed, table, ONE_CLUSTER)
    by_cluster = units.sums[:, 0] * (len(units) / len(known))
    low, high = kappa_limits(value, by_cluster, level, estimate(units).size)
    return Kappa(value, low, high, level, weights, agreed, table)


def kappa_of(counts: Floats, severity: Floats) -> tuple[float, Floats]:
    """Return κ of a table of counts, and how far an item of each cell moves it, times all items.

    `severity` says how bad it is to give the label of a row for that of a column. NaN if chance
    agrees as well.

    >>> kappa_of(np.array([[2.0, 0.0], [1.0, 1.0]]), 1 - np.eye(2))[0]
    0.5
    """
    shares = counts / counts.sum()
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    # sums instead of products of matrices, whose last digit depends on the number of threads
    of_first, of_second = (severity * second).sum(axis=1), (severity.T * first).sum(axis=1)
    met, expected = float((severity * shares).sum()), float((first * of_first).sum())
    if expected <= 0:
        return float("nan"), np.zeros_like(counts)
    moved = of_first[:, np.newaxis] + of_second - 2 * expected
    return 1 - met / expected, (met * moved / expected - (severity - met)) / expected


def is_one_sided(counts: Floats) -> bool:
    """Tell whether one of the two gives every item the same label."""
    return 1 in {int((counts.sum(axis=side) > 0).sum()) for side in (0, 1)}


def kappa_limits(
    value: float, influence: Floats, level: float, size: float = 1.0
) -> tuple[float, float]:
    """Return the limits of κ, from what each unit does to it; `size` is that of `Estimates`."""
    made = Estimates(np.array([value]), influence[np.newaxis], len(influence), size)
    low, high = limits_of_means(made, np.array([-1.0]), np.array([1.0]), level)
    return max(-1.0, float(low[0])), min(1.0, float(high[0]))


def _missing(label: Label | None) -> bool:
    return label is None or label != label  # noqa: PLR0124  NaN differs from itself


def _ordered(labels: set[Label]) -> tuple[Label, ...]:
    if all(isinstance(label, str) for label in labels) or _numeric(labels):
        return tuple(sorted(labels))
    raise OptionError(
        "some labels are words and some are numbers", fix="read both files with the same type"
    )


def _numeric(labels: Collection[Label]) -> bool:
    return all(isinstance(label, Real) for label in labels)


def disagreement(labels: Sequence[Label], weights: str) -> Floats:
    """Return how bad it is to give one label (row) for another (column)."""
    places = np.arange(len(labels), dtype=np.float64)
    if weights == "none":
        return 1 - np.eye(len(labels))
    if _numeric(labels):
        places = np.array(labels, dtype=np.float64)
    distance = np.abs(places[:, np.newaxis] - places)
    return np.asarray(distance if weights == "linear" else distance**2)


def in_common(
    first: Sequence[Hashable], second: Sequence[Hashable]
) -> tuple[list[float], list[float]]:
    """Return scores, higher for lower ranks, of the items that both rankings hold.

    >>> in_common(["a", "b", "c"], ["c", "a"])
    ([3.0, 1.0], [1.0, 2.0])
    """
    one, other = (
        {item: float(len(ranking) - rank) for rank, item in enumerate(dict.fromkeys(ranking))}
        for ranking in (first, second)
    )
    shared = [item for item in one if item in other]
    return [one[item] for item in shared], [other[item] for item in shared]


def kendall_tau(first: ArrayLike, second: ArrayLike) -> Quantity:
    """Return Kendall's τ-b between the orders that two lists of scores make (SciPy).

    Position i of both is the same item; items that lack a score in either are left out. 1 is the
    same order, −1 the reverse. For two rankings of documents: `kendall_tau(*in_common(a, b))`.

    >>> round(kendall_tau([3.0, 2.0, 1.0], [30.0, 10.0, 20.0]).value, 3)
    0.333
    """
    return _of_orders(
        first, second, lambda one, other: scipy("stats").kendalltau(one, other).statistic
    )


def tau_ap(first: ArrayLike, second: ArrayLike) -> Quantity:
    """Return the AP correlation between two orders (Yilmaz et al. 2008); neither is the true one.

    Like Kendall's τ, but mistakes among the best weigh more: for each item of one order but the
    first, the share of the items above it that the other puts there too; the mean of that, scaled
    to −1…1, and the mean of both directions. Higher scores are better. Tied items are equal, and
    equal in only one of the orders is a mistake: τ_AP,b of Urbano and Marrero (2017).

    >>> round(tau_ap([4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]).value, 3)
    0.778
    """
    return _of_orders(
        first, second, lambda one, other: (_tau_ap_b(one, other) + _tau_ap_b(other, one)) / 2
    )


def rbo(first: Sequence[Hashable], second: Sequence[Hashable], p: float = 0.9) -> Quantity:
    """Return the rank-biased overlap of two rankings, extrapolated (Webber et al. 2010, eq. 32).

    The overlap of the two down to each depth, averaged with weights that fall by `p` a rank: 0.9
    puts 86 % of the weight on the first ten. The rankings may hold different items and be of
    different length; what lies below is taken to agree as much as what is seen. A repeated item
    counts at its first rank. 1 is the same ranking, 0 no item in common.

    >>> rbo(["a", "b", "c"], ["a", "b", "c"]).value
    1.0
    """
    if not 0 < p < 1:
        raise OptionError(f"the persistence p is {p}", fix="give a number between 0 and 1")
    short, long = sorted((list(dict.fromkeys(first)), list(dict.fromkeys(second))), key=len)
    if not long:
        return Quantity(None, BOTH_EMPTY)
    if not short:
        return Quantity(0.0)
    seen = len(short)
    overlap = _overlaps(short, long)
    depth = np.arange(1, len(long) + 1)
    agreement = overlap / depth
    # below its end, the short ranking is taken to agree as it did so far
    agreement[seen:] += overlap[seen - 1] * (depth[seen:] - seen) / (seen * depth[seen:])
    tail = (overlap[-1] - overlap[seen - 1]) / len(long) + overlap[seen - 1] / seen
    return Quantity(float((1 - p) / p * (agreement * p**depth).sum() + tail * p ** len(long)))


def _of_orders(
    first: ArrayLike, second: ArrayLike, statistic: Callable[[Floats, Floats], float]
) -> Quantity:
    """Return a statistic of the items that have a score in both."""
    one, other = as_columns(first), as_columns(second)
    same_shape(one, other)
    one, other = one.ravel(), other.ravel()
    both = ~(np.isnan(one) | np.isnan(other))
    if both.sum() < 2:
        return Quantity(None, TOO_FEW)
    if np.ptp(one[both]) == 0 or np.ptp(other[both]) == 0:
        return Quantity(None, ALL_TIED)
    return Quantity(float(statistic(one[both], other[both])))


def _tau_ap_b(truth: Floats, estimate: Floats) -> float:
    total, counted = 0.0, 0
    order = np.argsort(-estimate, kind="stable")
    level = np.searchsorted(np.unique(truth), truth)[order].tolist()
    ranked = estimate[order]
    ends = [*np.flatnonzero(ranked[1:] != ranked[:-1]).tolist(), len(ranked) - 1]
    above = _Ranks(max(level) + 1)
    start = 0
    for end in ends:  # a group of tied items, from the best on
        group = level[start : end + 1]
        if start:  # the ones above that deserve to be there, of each of the group
            total += sum(start - above.up_to(each) for each in group) / start
            counted += len(group)
        for each in group:
            above.add(each)
        start = end + 1
    return float(2 * total / counted - 1)


class _Ranks:
    """How many of the ranks seen are no higher than one (a tree of sums; Fenwick 1994)."""

    def __init__(self, count: int) -> None:
        self._sums = [0] * (count + 1)

    def add(self, rank: int) -> None:
        """See a rank."""
        at = rank + 1
        while at < len(self._sums):
            self._sums[at] += 1
            at += at & -at

    def up_to(self, rank: int) -> int:
        """Count the ranks seen that are at most this one."""
        at, total = rank + 1, 0
        while at:
            total += self._sums[at]
            at -= at & -at
        return total


def _overlaps(short: Sequence[Hashable], long: Sequence[Hashable]) -> Floats:
    """Return how many items both rankings share down to each depth of the long one."""
    rank = {item: number for number, item in enumerate(short)}
    found = np.zeros(len(long))
    for number, item in enumerate(long):
        if item in rank:
            found[max(number, rank[item])] += 1
    return np.cumsum(found)
