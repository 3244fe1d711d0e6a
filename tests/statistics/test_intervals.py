"""Intervals: exact ones where these are known, invariances, bounds, clusters, degenerate input."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.measures import parse_measure
from findwell.statistics.intervals import (
    EQUAL_VALUES,
    METHOD,
    NONE_DEFINED,
    ONE,
    aggregate,
    interval,
    intervals,
)
from tests.lazy import lazy
from tests.statistics.scores import columns, limits
from tests.strategies import examples

stats = lazy("scipy.stats")
proportion = lazy("statsmodels.stats.proportion")

RNG = np.random.default_rng(6)
SKEWED = RNG.beta(0.4, 2, 60)


# what it should be


@pytest.mark.parametrize(
    ("hits", "n"), [(0, 2), (1, 2), (0, 10), (8, 10), (10, 10), (3, 1_000), (263, 10_000)]
)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_hit_or_miss_is_clopper_and_pearson(hits: int, n: int, level: float) -> None:
    low, high = limits(interval([1.0] * hits + [0.0] * (n - hits), level=level))
    exact = proportion.proportion_confint(hits, n, alpha=1 - level, method="beta")
    assert (low, high) == pytest.approx(exact, abs=0.01 * (exact[1] - exact[0]))
    assert low >= 0
    assert high <= 1


@pytest.mark.parametrize("size", [2, 3, 8, 20])
@pytest.mark.parametrize("skew", [1, 4])
def test_a_limit_is_the_quantile_of_randomly_weighted_means(size: int, skew: int) -> None:
    values = np.round(RNG.beta(1, skew, size), 3)
    mean = values.mean()
    low, high = limits(interval(values))
    above = np.append((values - mean)[values > mean], 1 - mean)
    below = np.append((mean - values)[values < mean], mean)
    for limit, offset, share in (
        (high, (above**3).sum() / (above**2).sum(), 0.975),
        (low, -(below**3).sum() / (below**2).sum(), 0.025),
    ):
        weights = RNG.exponential(size=(100_000, size + 1))
        means = weights @ np.append(values, mean + offset) / weights.sum(axis=1)
        assert float((means < limit).mean()) == pytest.approx(share, abs=0.0025)


def test_well_behaved_values_have_nearly_the_interval_of_student() -> None:
    for values in (RNG.beta(2, 1.5, 100), RNG.binomial(10, 0.4, 100) / 10, RNG.random(1_001)):
        low, high = limits(interval(values))
        theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert high - low == pytest.approx(theirs.high - theirs.low, rel=0.1)
        assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.1 * (high - low))


def test_nothing_changes_at_a_number_of_queries() -> None:
    values = (RNG.random(1_001) < 0.003) * RNG.random(1_001)
    some, more = limits(interval(values[:-1])), limits(interval(values))
    assert some == pytest.approx(more, rel=0.01)
    assert some[0] > 0


# bounds


@pytest.mark.parametrize("queries", [2, 5, 50, 2_000])
@pytest.mark.parametrize("value", [0.0, 0.2, 0.1 + 0.2, 1.0])
def test_equal_values_still_have_a_width(queries: int, value: float) -> None:
    low, high = limits(interval([value] * queries))
    assert 0 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1
    assert high - low == pytest.approx(1 - 0.025 ** (1 / queries), rel=0.02)


@examples(200)
@given(values=columns(least=2, nan=True), level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_interval_holds_the_value_and_stays_in_range(values: np.ndarray, level: float) -> None:
    found = interval(values, level=level)
    assume(found.low is not None)
    low, high = limits(found)
    assert found.value is not None
    assert 0 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1
    assert high - low > 0


@examples(60)
@given(values=columns(least=2), shift=st.floats(-5, 5), factor=st.floats(0.1, 10))
def test_limits_move_along_with_values_and_bounds(
    values: np.ndarray, shift: float, factor: float
) -> None:
    low, high = limits(interval(values))
    moved = interval(values * factor + shift, bounds=(shift, factor + shift))
    expected = (low * factor + shift, high * factor + shift)
    assert limits(moved) == pytest.approx(expected, abs=1e-6 * factor)


def test_nearer_bounds_are_known_better() -> None:
    values = [0.2, 0.3, 0.25, 0.2]
    narrow, wide = limits(interval(values, bounds=(0.1, 0.4))), limits(interval(values))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    # values outside of the bounds move them out: rounding, or a measure that breaks its promise
    assert 1 < limits(interval([0.5, 1.2]))[1] <= 1.2


def test_unbounded_values() -> None:
    values = RNG.gamma(2, 1.5, 80)
    low, high = limits(interval(values, bounds=(0.0, inf)))
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert high - low == pytest.approx(theirs.high - theirs.low, rel=0.15)
    assert limits(interval(values - 9, bounds=(-inf, inf)))[0] < low - 9 + 0.1
    for constant in ([2.5] * 7, [0.0, 0.0], [-7.0] * 3):
        found = interval(constant, bounds=(-inf, inf))
        assert (found.value, found.low, found.high, found.reason) == (
            constant[0],
            None,
            None,
            EQUAL_VALUES,
        )
    assert interval([0.0, 0.0], bounds=(0.0, inf)).reason == EQUAL_VALUES


# clusters


def test_clusters_of_one_query_change_nothing() -> None:
    alone = interval(SKEWED)
    labelled = interval(SKEWED, clusters=[f"doc {n}" for n in range(60)])
    assert limits(labelled) == pytest.approx(limits(alone), rel=1e-9)
    assert interval(SKEWED, clusters=[None] * 60) == labelled
    assert (labelled.clusters, alone.clusters) == (60, None)


def test_a_cluster_of_copies_counts_as_one_query() -> None:
    copies, labels = np.repeat(SKEWED, 5), list(np.repeat(np.arange(60), 5))
    once, again = limits(interval(SKEWED)), limits(interval(copies))
    assert limits(interval(copies, clusters=labels)) == pytest.approx(once, rel=1e-9)
    assert again[0] > once[0]
    assert again[1] < once[1]


def test_clusters_of_unequal_size_widen_the_interval_and_stay_in_bounds() -> None:
    sizes = [1] * 12 + [40]
    labels = list(np.repeat(np.arange(13), sizes))
    values = np.repeat(RNG.beta(2, 2, 13), sizes)
    low, high = limits(interval(values, clusters=labels))
    equal = limits(interval(values, clusters=list(np.arange(52) % 13)))
    assert high - low > 1.5 * (equal[1] - equal[0])
    lone = limits(interval(np.repeat([0.0, 1.0], [1, 50]), clusters=[0] + [1] * 50))
    assert lone[0] >= 0
    assert lone[1] == 1


# other statistics


@pytest.mark.parametrize(
    ("measure", "statistic"), [("AP", "mean"), ("num_ret", "sum"), ("gm_map", "geometric")]
)
def test_the_value_is_that_of_aggregate(measure: str, statistic: str) -> None:
    values = np.append(SKEWED, [np.nan, 0.0])
    expected = aggregate(parse_measure(measure), values)
    found = interval(values, statistic=statistic)
    assert parse_measure(measure).aggregation == statistic
    assert found.value == pytest.approx(expected.value)
    assert (found.n, found.undefined) == (expected.n, expected.undefined)
    low, high = limits(found)
    assert found.value is not None
    assert low < found.value < high


def test_a_sum_scales_and_a_geometric_mean_is_taken_of_logarithms() -> None:
    mean, total = limits(interval(SKEWED)), limits(interval(SKEWED, statistic="sum"))
    assert total == pytest.approx((60 * mean[0], 60 * mean[1]))
    logs = interval(np.log(SKEWED + 0.1), bounds=(np.log(0.00001), 0.0))
    geometric = interval(SKEWED + 0.1, statistic="geometric")
    assert limits(geometric) == pytest.approx(tuple(np.exp(limits(logs))))
    low, high = limits(interval([1.0, 1.0, 1.0], statistic="geometric"))
    assert 0.00001 < low < 0.01
    assert high == 1


def test_a_statistic_and_bounds_for_each_column() -> None:
    table = np.column_stack([SKEWED, SKEWED])
    mean, total = intervals(table, statistic=["mean", "sum"], bounds=[(0, 1), (0, 2)])
    assert limits(mean) == pytest.approx(limits(interval(SKEWED)))
    assert limits(total) == pytest.approx(
        limits(interval(SKEWED, statistic="sum", bounds=(0.0, 2.0)))
    )
    with pytest.raises(InputError, match="3 statistics were given for 2 columns"):
        intervals(table, statistic=["mean"] * 3)
    with pytest.raises(InputError, match="3 pairs of bounds were given for 2 columns"):
        intervals(table, bounds=[(0, 1)] * 3)


# in company


def test_a_column_gets_the_same_in_any_company() -> None:
    table = RNG.random((40, 5))
    table[3, 1] = table[:9, 2] = np.nan
    table[:, 3] = table[:, 3] > 0.3
    together = intervals(table)
    for column in range(5):
        alone = interval(table[:, column])
        assert limits(alone) == pytest.approx(limits(together[column]), abs=1e-9)
        assert (alone.method, alone.n) == (together[column].method, together[column].n)
    dropped = interval(table[~np.isnan(table[:, 2]), 2])
    assert limits(dropped) == pytest.approx(limits(together[2]))
    assert (together[2].n, together[2].undefined) == (31, 9)


def test_many_columns_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RNG.random((50, 7))
    whole = intervals(table)
    monkeypatch.setattr("findwell.statistics.intervals.CELLS", 120)
    for one, other in zip(whole, intervals(table), strict=True):
        assert limits(one) == pytest.approx(limits(other))


# nothing to go by


def test_too_little_has_no_interval() -> None:
    nothing = interval([])
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)
    assert (nothing.n, nothing.method, nothing.reason) == (0, "", NONE_DEFINED)
    undefined = interval([np.nan, np.nan])
    assert (undefined.value, undefined.undefined, undefined.reason) == (None, 2, NONE_DEFINED)
    one = interval([0.4, np.nan])
    assert (one.value, one.low, one.high, one.reason) == (0.4, None, None, ONE)
    cluster = interval([0.4, 0.5], clusters=["a", "a"])
    assert cluster.value == pytest.approx(0.45)
    assert cluster.low is None
    assert "one cluster" in cluster.reason
    assert intervals(np.zeros((5, 0))) == ()
    assert interval([0.4, 0.5]).method == METHOD


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="infinite"):
        interval([0.1, np.inf])
    with pytest.raises(OptionError, match="the level is 95"):
        interval([0.1, 0.2], level=95)
    with pytest.raises(OptionError, match="unknown statistic 'median'"):
        interval([0.1, 0.2], statistic="median")
    with pytest.raises(InputError, match="1 cluster labels were given for 2 queries"):
        interval([0.1, 0.2], clusters=["a"])
    with pytest.raises(InputError, match="3 dimensions"):
        intervals(np.zeros((2, 2, 2)))
