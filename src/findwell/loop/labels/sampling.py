"""A probability sample of pairs: every pair has a known chance to be labelled.

Pairs of all queries are drawn together, not whole queries: that halves the error of P@10 for the
same number of labels. Where a judge has spoken, each of its grades is a stratum, and each stratum
gets its share of the labels. The pairs are labelled in an order of which every beginning is such a
sample, so that who stops early has a smaller sample and not a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats, Ints

LEAST = 2  # labels of a stratum, without which its variance is unknown


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSample:
    """Which pairs are in the sample, in which order they are labelled, and their chances."""

    place: Ints  # from 0; -1: not in the sample
    probability: Floats  # of every pair, drawn or not


def draw(
    strata: Sequence[str], keys: Floats, budget: int | None, held: Bools | None = None
) -> DrawnSample:
    """Draw a stratified sample without replacement; `keys` are independent numbers from 0 to 1.

    The pairs with the smallest keys of each stratum are drawn, so that the same keys with a larger
    budget give a sample that holds the smaller one; `held` are the pairs that it must hold.

    >>> drawn = draw(["a", "a", "a", "a", "b", "b"], np.array([.4, .1, .3, .2, .6, .5]), 3)
    >>> drawn.place.tolist(), drawn.probability.tolist()
    ([-1, 0, -1, 2, -1, 1], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    names, stratum = np.unique(np.array(strata, dtype=object).astype(str), return_inverse=True)
    sizes = np.bincount(stratum, minlength=len(names))
    least = None if held is None else np.bincount(stratum[held], minlength=len(names))
    counts = allocate(sizes, budget, least)
    order = np.lexsort((keys, stratum))
    within = np.empty(len(order), dtype=np.int64)
    within[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    drawn = within < counts[stratum]
    # the n-th of a stratum comes when n parts of it are due, so that all strata grow together
    due = (within + 0.5) / np.maximum(counts[stratum], 1)
    place = np.full(len(order), -1, dtype=np.int64)
    chosen = np.flatnonzero(drawn)
    place[chosen[np.lexsort((keys[chosen], due[chosen]))]] = np.arange(len(chosen))
    return DrawnSample(place, (counts / np.maximum(sizes, 1))[stratum])


def allocate(sizes: Ints, budget: int | None, before: Ints | None = None) -> Ints:
    """Share a budget among strata in proportion to their sizes, at least LEAST each if it can be.

    No stratum gets less than it had `before`.

    >>> allocate(np.array([90, 9, 1]), 20).tolist()
    [17, 2, 1]
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    if budget is None or budget >= sizes.sum():
        return sizes.copy()
    least = np.minimum(sizes, LEAST)
    if budget < len(sizes):
        raise OptionError(
            f"a budget of {budget} is less than one label for each of the {len(sizes)} strata",
            fix="give a larger budget, or leave out the judge",
        )
    if budget < least.sum():
        least = np.minimum(sizes, 1)
    counts = least.copy() if before is None else np.maximum(least, before)
    while (left := budget - int(counts.sum())) > 0:
        ideal = sizes * (budget / sizes.sum())
        short = np.where(counts < sizes, ideal - counts, -np.inf)
        step = np.minimum(np.maximum(np.floor(short), 0), sizes - counts).astype(np.int64)
        if 0 < step.sum() <= left:
            counts += step
        else:
            counts[int(np.argmax(short))] += 1
    return counts
