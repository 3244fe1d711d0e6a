"""Groups of different queries: against SciPy, invariances, clusters, and what cannot be said."""

from __future__ import annotations

import numpy as np
import pytest

from findwell.core.errors import FindwellError
from findwell.statistics.intervals import interval
from findwell.statistics.unpaired import NO_SPREAD, NO_VALUE, SUMS, unpaired, unpaired_interval
from tests.lazy import lazy

stats = lazy("scipy.stats")

RNG = np.random.default_rng(4)
BEFORE, AFTER = RNG.beta(4, 2, 120), RNG.beta(3, 2, 70)


def test_p_is_that_of_welch_and_of_scipy_permutations() -> None:
    found = unpaired(BEFORE, AFTER, permutations=4_000)
    expected = stats.ttest_ind(AFTER, BEFORE, equal_var=False)
    assert unpaired(BEFORE, AFTER, test="welch").test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.test.statistic == pytest.approx(expected.statistic, rel=1e-9)

    def statistic(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(stats.ttest_ind(x, y, equal_var=False, axis=axis).statistic)

    drawn = stats.permutation_test(
        (AFTER, BEFORE), statistic, n_resamples=4_000, vectorized=True, rng=1
    )
    assert found.test.p == pytest.approx(drawn.pvalue, abs=0.02)
    spread = np.sqrt((119 * BEFORE.var(ddof=1) + 69 * AFTER.var(ddof=1)) / 188)
    assert found.effect.value == pytest.approx((AFTER.mean() - BEFORE.mean()) / spread)


def test_the_interval_is_near_that_of_welch_and_turns_with_the_groups() -> None:
    found = unpaired_interval(BEFORE, AFTER)
    expected = stats.ttest_ind(AFTER, BEFORE, equal_var=False).confidence_interval()
    assert found.low == pytest.approx(expected.low, abs=0.01)
    assert found.high == pytest.approx(expected.high, abs=0.01)
    turned = unpaired_interval(AFTER, BEFORE)
    assert (turned.low, turned.high) == pytest.approx((-(found.high or 0), -(found.low or 0)))
    shuffled = unpaired_interval(RNG.permutation(BEFORE), np.append(AFTER[::-1], np.nan))
    assert (shuffled.low, shuffled.high) == pytest.approx((found.low, found.high))
    sides = interval(BEFORE), interval(AFTER)
    reach = np.hypot(sides[0].high - sides[0].value, sides[1].value - sides[1].low)  # type: ignore[operator]
    assert found.low == pytest.approx(found.value - reach)


def test_clusters_of_one_query_are_queries() -> None:
    names = [f"a{at}" for at in range(120)], [f"b{at}" for at in range(70)]
    plain, clustered = unpaired(BEFORE, AFTER), unpaired(BEFORE, AFTER, clusters=names)
    assert clustered.difference.low == pytest.approx(plain.difference.low, abs=1e-6)
    assert clustered.test.p == pytest.approx(plain.test.p, abs=0.01)
    assert clustered.difference.clusters == 190


def test_repeating_every_query_in_its_cluster_shows_nothing_new() -> None:
    names = list(range(120)), [f"b{at}" for at in range(70)]
    plain = unpaired(BEFORE, AFTER)
    labels = np.repeat(names[0], 3).tolist(), np.repeat(names[1], 3).tolist()
    repeated = unpaired(np.repeat(BEFORE, 3), np.repeat(AFTER, 3), clusters=labels)
    assert repeated.difference.low == pytest.approx(plain.difference.low, abs=0.003)
    assert repeated.test.p == pytest.approx(plain.test.p, abs=0.01)
    wrong = unpaired(np.repeat(BEFORE, 3), np.repeat(AFTER, 3))
    assert wrong.difference.high - wrong.difference.low < 0.7 * (  # type: ignore[operator]
        plain.difference.high - plain.difference.low  # type: ignore[operator]
    )


def test_clusters_in_both_groups_are_taken_as_pairs() -> None:
    level = RNG.normal(0, 0.2, 60)
    before = np.clip(0.5 + level + RNG.normal(0, 0.03, 60), 0, 1)
    after = np.clip(0.54 + level + RNG.normal(0, 0.03, 60), 0, 1)
    sources = [f"s{at}" for at in range(60)]
    alone, shared = unpaired(before, after), unpaired(before, after, clusters=(sources, sources))
    assert alone.test.p is not None
    assert alone.test.p > 0.1
    assert shared.test.p is not None
    assert shared.test.p < 0.001
    assert shared.difference.low is not None
    assert 0 < shared.difference.low < shared.difference.high < 0.1  # type: ignore[operator]
    welch = unpaired(before, after, clusters=(sources, sources), test="welch").test.p
    assert welch is not None
    assert welch < 0.001


def test_small_and_strange_groups() -> None:
    few = unpaired([0.1, 0.2], [0.8, 0.9])
    assert few.test.p is not None
    assert few.test.p > 0.05
    assert "cannot fall below 0.167" in few.test.reason
    assert few.difference.low is not None
    for one in (unpaired([], [0.5, 0.6]), unpaired([np.nan], [0.5, 0.6])):
        assert one.difference.value is None
        assert one.test.p is None
        assert one.test.reason == NO_VALUE
    alone = unpaired([0.5], [0.5, 0.6])
    assert alone.difference.value == pytest.approx(0.05)
    assert alone.difference.low is None
    assert alone.test.p is None
    equal = unpaired([0.5] * 5, [0.5] * 8)
    assert equal.test.p == 1.0
    assert equal.test.reason == NO_SPREAD
    assert equal.difference.low is not None
    assert equal.difference.low < 0
    apart = unpaired([0.0] * 10, [1.0] * 10)
    assert apart.test.p is not None
    assert apart.test.p < 0.001
    total = unpaired(BEFORE, AFTER, statistic="sum")
    assert total.difference.value is None
    assert total.test.reason == SUMS
    logs = unpaired(BEFORE, AFTER, statistic="geometric").difference
    expected = stats.gmean(AFTER) - stats.gmean(BEFORE)
    assert logs.value == pytest.approx(expected)
    assert logs.low < expected < logs.high
    for wrong in (
        {"test": "mcnemar"},
        {"level": 2},
        {"clusters": ([1], [2])},
        {"statistic": "max"},
    ):
        with pytest.raises(FindwellError):
            unpaired(BEFORE, AFTER, **wrong)
