"""Ranks without sorting all rows: the same as with it, ties and dropped rows included."""

from __future__ import annotations

import numpy as np
import pytest

from findwell.loop.tuning.fused_values import RankCounter
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
    query = np.repeat(np.arange(9), rng.integers(0, 20, 9))
    scores = rng.choice([0.1, 0.5, 0.5000001, 1.0, -2.0, np.nan, np.inf, -np.inf], len(query))
    expected = sorted_ranks(scores, query)
    expected[expected > (limit or len(query))] = 0
    some = np.flatnonzero(rng.random(len(query)) < 0.3)
    counter = RankCounter.of(query, some)
    assert counter is not None
    assert (counter.ranks(scores, limit) == expected[some]).all()


def test_many_rows_are_left_to_the_sort() -> None:
    query = np.repeat(np.arange(3), 40)
    assert RankCounter.of(query, np.arange(120)) is None
    assert RankCounter.of(query, np.arange(0, 120, 10)) is not None
