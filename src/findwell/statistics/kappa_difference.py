"""Two judges against the same truth: how much higher κ of one is, and whether by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.statistics.agreement import NO_LABEL, ONE_LABEL, kappa_of
from findwell.statistics.intervals import (
    Estimates,
    as_units,
    cluster_codes,
    estimate,
    limits_of_means,
)
from findwell.statistics.resampling import sign_sums
from findwell.statistics.significance import PERMUTATIONS
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

ONE_UNIT = "one question says nothing about the spread"
SAME = "all labels of both are the same"
ROUNDING = 1e-12
LARGEST = 1.0  # difference that one further question is thought to show: κ may differ by 2


@dataclass(frozen=True, slots=True)
class KappaDifference:
    """How much higher κ of one list of labels is than that of another, against the same truth."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n: int  # items that both have labelled
    units: int  # clusters of items, or items
    reason: str = ""  # why something is not known


def kappa_difference(
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    *,
    clusters: Sequence[object] | None = None,
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> KappaDifference:
    """Return κ of the first against the truth, less that of the second; labels are 0 and 1.

    The limits come from how far each cluster moves both: in simulations of 8, 12, 30 and 100
    clusters of four items, 95 % intervals held the true difference in 99, 98, 98 and 96 % of
    samples (those of a paired bootstrap in 87, 92, 94 and 94 %). The p-value is that of a
    permutation test: if both were as good, the two might be exchanged in each cluster, and the
    difference is held against those of random exchanges.

    >>> found = kappa_difference([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0])
    >>> found.value, found.n
    (0.5, 4)
    """
    check_share("level", level)
    labels = [np.asarray(each).astype(np.int64) for each in (first, second, truth)]
    n = len(labels[0])
    codes = cluster_codes(range(n) if clusters is None else clusters, n)
    one, other = (as_units(np.eye(4)[each * 2 + labels[2]], codes) for each in labels[:2])
    if not n:
        return KappaDifference(None, None, None, None, 0, 0, NO_LABEL)
    sides = [
        kappa_of(units.sums.sum(axis=0).reshape(2, 2), 1 - np.eye(2)) for units in (one, other)
    ]
    if any(np.isnan(value) for value, _ in sides):
        return KappaDifference(None, None, None, None, n, len(one), ONE_LABEL)
    (high_one, moved_one), (high_other, moved_other) = sides
    value = high_one - high_other
    if len(one) < 2:
        return KappaDifference(value, None, None, None, n, 1, ONE_UNIT)
    influence = one.sums * moved_one.ravel() - other.sums * moved_other.ravel()
    made = Estimates(
        np.array([value]),
        (influence.sum(axis=1) * (len(one) / n))[np.newaxis],
        len(one),
        estimate(one).size,
    )
    both, apart = (one.sums + other.sums).sum(axis=0), one.sums - other.sums
    if not apart.any():
        return KappaDifference(0.0, 0.0, 0.0, 1.0, n, len(one), SAME)
    bound = max(LARGEST, abs(value))
    low, high = limits_of_means(made, np.array([-bound]), np.array([bound]), level)
    reach, extreme = abs(value) - ROUNDING, 0
    for sums in sign_sums(apart, permutations, seed):
        gaps = _kappas((both + sums) / 2) - _kappas((both - sums) / 2)
        extreme += int((np.abs(gaps) >= reach).sum())
    return KappaDifference(
        value,
        max(-bound, float(low[0])),
        min(bound, float(high[0])),
        (1 + extreme) / (1 + permutations),
        n,
        len(one),
    )


def _kappas(counts: Floats) -> Floats:
    """Return κ of many tables of two labels, each a row of four counts; 0 where it is undefined."""
    total = counts.sum(axis=1)
    no_no, no_yes, yes_no, yes_yes = counts.T
    met = (no_no + yes_yes) / total
    chance = ((no_no + no_yes) * (no_no + yes_no) + (yes_no + yes_yes) * (no_yes + yes_yes)) / (
        total * total
    )
    room = 1 - chance
    found = np.zeros(len(counts))
    np.divide(met - chance, room, out=found, where=room > 0)
    return found
