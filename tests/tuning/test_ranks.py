"""Ranks without sorting all rows: the same as with it, ties and dropped rows included."""

from __future__ import annotations

import numpy as np
import pytest

from findwell.loop.tuning.fused_values import TopRows
from findwell.relations.align import positions


def sorted_ranks(scores: np.ndarray, query: np.ndarray) -> np.ndarray:
    order = np.lexsort((-scores, query))
    order = order[~np.isnan(scores[order])]
    found = np.zeros(len(scores), dtype=np.int64)
    found[order] = positions(query[order])
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", [None, 2, 7])
def test_ranks_are_those_of_a_sort(seed: int, limit: int | None) -> None:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(9), rng.integers(0, 30, 9))
    scores = rng.choice([0.1, 0.5, 0.5000001, 1.0, -2.0, np.nan, np.inf, -np.inf], len(query))
    expected = sorted_ranks(scores, query)
    expected[expected > (limit or len(query))] = 0
    top = TopRows.of(query, 5)
    assert top is not None
    expected[expected > 5] = 0
    assert (top.ranks(scores, limit) == expected).all()


def test_short_lists_are_left_to_the_sort() -> None:
    assert TopRows.of(np.repeat(np.arange(3), 9), 5) is None
