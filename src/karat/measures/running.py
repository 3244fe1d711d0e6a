"""Sums down to a rank: what was gained so far, query by query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.core.relation import ANY_GAIN
from karat.measures.gain import gains

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints
    from karat.core.relation import Relation


def running_sums(value: Floats, count: Ints) -> Floats:
    """Add up values from the left, anew in each group; the groups hold `count` values each.

    One step adds the next value of every group that has one, so that the sum of a query does not
    depend on the queries before it.

    >>> running_sums(np.array([1.0, 2.0, 5.0, 1.0, 1.0]), np.array([2, 0, 3])).tolist()
    [1.0, 3.0, 5.0, 6.0, 7.0]
    """
    sums = value.astype(np.float64)
    longest_first = np.argsort(-count, kind="stable")
    start = (np.cumsum(count) - count)[longest_first]
    having = np.searchsorted(-count[longest_first], -np.arange(count.max(initial=0)), side="left")
    for step, groups in enumerate(having[1:].tolist(), start=1):
        at = start[:groups] + step
        sums[at] += sums[at - 1]
    return sums


def ndcg_at(relation: Relation, gain: str, query: Ints, rank: Ints) -> Floats:
    """Return nDCG down to these ranks of these queries; beyond its end a list gains nothing."""
    hits = relation.credits(ANY_GAIN)
    found = relation.count(hits.query)
    gained = gains(gain, relation.item_grade.take(hits.item)) / relation.discount.take(hits.rank)
    down_to = relation.unit_key(query, np.minimum(rank, relation.depth[query]))
    end = np.searchsorted(relation.unit_key(hits.query, hits.rank), down_to, side="right")
    start = (np.cumsum(found) - found)[query]
    sums = np.concatenate((running_sums(gained, found), [0.0]))  # [0.0]: nobody gained anything
    dcg = np.where(end > start, sums[end - 1], 0.0)
    _, place, item = relation.ideal()
    ideal = gains(gain, relation.item_grade.take(item)) / relation.discount.take(place)
    items = np.diff(relation.item_offset)
    last = relation.item_offset[query] + np.minimum(rank, items[query]) - 1
    return np.minimum(dcg / running_sums(ideal, items)[last], 1.0)
