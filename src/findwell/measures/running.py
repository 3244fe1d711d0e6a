"""Running sums and products: what has come together down to each rank, query by query.

Every step is taken from the left, so that the value of a query does not depend on the queries
next to it, nor on how many are worked on at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

LONG_GROUP = 256  # values from which on a group is worked on by itself


def running_sums(value: Floats, count: Ints) -> Floats:
    """Add up values from the left, within each group; the groups hold `count` values each.

    >>> running_sums(np.array([1.0, 2.0, 5.0, 1.0, 1.0]), np.array([2, 0, 3])).tolist()
    [1.0, 3.0, 5.0, 6.0, 7.0]
    """
    return _accumulated(np.add, value, count)


def running_products(value: Floats, count: Ints) -> Floats:
    """Multiply values from the left, within each group; the groups hold `count` values each.

    >>> running_products(np.array([1.0, 2.0, 5.0, 1.0, 3.0]), np.array([2, 0, 3])).tolist()
    [1.0, 2.0, 5.0, 5.0, 15.0]
    """
    return _accumulated(np.multiply, value, count)


def _accumulated(operation: np.ufunc, value: Floats, count: Ints) -> Floats:
    """Take the next value of all short groups at once, and long groups one after the other."""
    result = value.astype(np.float64)
    start = np.cumsum(count) - count
    is_long = count > LONG_GROUP
    for first, size in zip(start[is_long].tolist(), count[is_long].tolist(), strict=True):
        group = result[first : first + size]
        group[:] = operation.accumulate(group)
    start, count = start[~is_long], count[~is_long]
    longest_first = np.argsort(-count, kind="stable")
    start, count = start[longest_first], count[longest_first]
    having = np.searchsorted(-count, -np.arange(count.max(initial=0)), side="left")
    for step, groups in enumerate(having[1:].tolist(), start=1):
        at = start[:groups] + step
        result[at] = operation(result[at - 1], result[at])
    return result
