"""Parts of the queries against the rest: p by dealing, against other ways to the same number."""

import numpy as np
import pytest

from findwell.statistics.significance import adjust, subset_p
from tests.lazy import lazy

stats = lazy("scipy.stats")


def test_against_scipy_permutations() -> None:
    rng = np.random.default_rng(1)
    values = rng.beta(2, 3, 40).round(2)
    parts = [np.arange(40) < 9, np.arange(40) % 3 == 0]
    for part, p in zip(parts, subset_p(values, parts, seed=3), strict=True):
        # the difference of two means falls and rises with that of one of them
        found = stats.permutation_test(
            (values[part], values[~part]),
            lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
            vectorized=True,
            n_resamples=20_000,
            rng=np.random.default_rng(5),
        )
        assert p == pytest.approx(found.pvalue, abs=0.02)


def test_many_queries_by_the_normal_distribution_agree_with_dealing() -> None:
    rng = np.random.default_rng(2)
    values = rng.beta(2, 3, 400).round(2)
    large, small = np.arange(400) < 60, np.arange(400) < 49
    exact = stats.permutation_test(
        (values[large], values[~large]),
        lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
        vectorized=True,
        n_resamples=5_000,
        rng=np.random.default_rng(5),
    )
    found = subset_p(values, [large, small], seed=1)
    assert found[0] == pytest.approx(exact.pvalue, abs=0.02)
    assert found == subset_p(values, [large, small], seed=1)


def test_false_alarms_after_correction_are_rare() -> None:
    rng = np.random.default_rng(4)
    alarms = 0
    for trial in range(200):
        values, labels = rng.beta(0.5, 0.5, 60).round(1), rng.integers(0, 6, 60)
        parts = [labels == label for label in range(6)]
        corrected = adjust(subset_p(values, parts, draws=1000, seed=trial), "bh")
        alarms += any(p is not None and p < 0.05 for p in corrected)
    assert alarms <= 20  # 5 % of 200 is 10; 20 has a chance of 0.002


def test_no_part_and_no_rest() -> None:
    assert subset_p([0.1, 0.2, 0.3], [[False] * 3, [True] * 3]) == (None, None)
    assert subset_p([], [np.zeros(0, dtype=bool)]) == (None,)
