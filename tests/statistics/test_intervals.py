"""Intervals: against SciPy and statsmodels, published numbers, invariances, degenerate input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from karat.aggregate import aggregate
from karat.errors import InputError, OptionError
from karat.measures import parse
from karat.statistics.intervals import EQUAL, MANY, METHODS, NONE_DEFINED, ONE, interval, intervals
from karat.statistics.limits import Estimate, bca, student_quantile
from karat.statistics.resampling import bootstrap_means
from tests.statistics.scores import columns

RNG = np.random.default_rng(6)
SKEWED = RNG.beta(0.4, 2, 60)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_t_is_scipys(level: float) -> None:
    found = interval(SKEWED, method="t", level=level)
    low, high = stats.ttest_1samp(SKEWED, 0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)
    assert found.value == pytest.approx(SKEWED.mean())
    assert (found.method, found.level, found.n, found.undefined) == ("t", level, 60, 0)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("size", [8, 60])
def test_bca_of_scipys_draws_is_scipys(level: float, size: int) -> None:
    values = SKEWED[:size]
    theirs = stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=4_000, method="BCa", rng=1
    )
    mean = float(values.mean())
    estimate = Estimate(mean, values - mean, theirs.bootstrap_distribution, size)
    low, high = theirs.confidence_interval
    # of 8 values some samples have the same mean, which SciPy tells apart by rounding
    slack = 1e-9 if size > 8 else 0.01 * (high - low)
    assert bca(estimate, level) == pytest.approx((low, high), abs=slack)


def test_draws_vary_as_scipys_do() -> None:
    means = bootstrap_means(SKEWED[:, np.newaxis], np.ones(60), 20_000, seed=3)[:, 0]
    theirs = stats.bootstrap((SKEWED,), np.mean, n_resamples=20_000, rng=1).bootstrap_distribution
    assert stats.ks_2samp(means, theirs).pvalue > 0.01
    assert means.std() == pytest.approx(SKEWED.std() / np.sqrt(60), rel=0.02)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (8, 10), (10, 10), (263, 10_000), (1, 2)])
def test_wilson_is_statsmodels(hits: int, n: int) -> None:
    found = interval([1.0] * hits + [0.0] * (n - hits))
    expected = proportion_confint(hits, n, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.method == "wilson"
    assert not found.reason


def test_wilson_gives_newcombes_published_numbers() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263, 15 of 148, 0 of 20
    for hits, n, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        found = interval([1.0] * hits + [0.0] * (n - hits))
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_the_default_by_number_of_queries() -> None:
    values = RNG.random(MANY + 1)
    assert interval(values[:-1]).method == "bca-wide"
    large = interval(values)
    assert large.method == "normal"
    bootstrap = interval(values, method="bca-wide")
    assert large.low is not None
    assert bootstrap.low is not None
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(large.low - bootstrap.low) < 0.1 * error
    assert large.low == pytest.approx(values.mean() - 1.959964 * error, abs=1e-7)


def test_the_wide_bootstrap_is_as_wide_as_t_where_nothing_is_skewed() -> None:
    values = np.linspace(-1, 1, 12)
    wide, narrow, t = (
        interval(values, method=method, resamples=50_000) for method in ("bca-wide", "bca", "t")
    )
    assert wide.high == pytest.approx(t.high, rel=0.03)
    assert narrow.high is not None
    assert t.high is not None
    assert narrow.high < 0.9 * t.high


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("freedom", [6, 9, 30, 1000])
def test_the_quantile_of_t_without_scipy(level: float, freedom: int) -> None:
    expected = stats.t.ppf((1 + level) / 2, freedom)
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=4e-3)
    if level <= 0.95:
        assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-3)


def test_clustered_errors_are_those_of_statsmodels() -> None:
    labels = RNG.integers(0, 12, 80)
    values = RNG.random(80) + labels / 12
    fit = OLS(values, np.ones(80)).fit(
        cov_type="cluster", cov_kwds={"groups": labels, "use_correction": False}
    )
    groups = len(set(labels))
    reach = stats.t.ppf(0.975, groups - 1) * fit.bse[0] * np.sqrt(groups / (groups - 1))
    found = interval(values, method="t", clusters=list(labels))
    assert found.high == pytest.approx(values.mean() + reach, rel=1e-9)
    assert found.clusters == groups


@pytest.mark.parametrize("method", METHODS)
def test_clusters_of_one_query_change_nothing(method: str) -> None:
    alone = interval(SKEWED, method=method)
    labelled = interval(SKEWED, method=method, clusters=[f"doc {n}" for n in range(60)])
    unlabelled = interval(SKEWED, method=method, clusters=[None] * 60)
    assert (labelled.low, labelled.high) == pytest.approx((alone.low, alone.high), rel=1e-12)
    assert unlabelled == labelled
    assert labelled.clusters == 60
    assert alone.clusters is None


def test_a_cluster_of_copies_counts_as_one_query() -> None:
    copies = np.repeat(SKEWED, 5)
    labels = np.repeat(np.arange(60), 5)
    for method in METHODS:
        once, again = interval(SKEWED, method=method), interval(copies, method=method)
        clustered = interval(copies, method=method, clusters=list(labels))
        assert clustered.low == pytest.approx(once.low, rel=1e-9)
        assert clustered.high == pytest.approx(once.high, rel=1e-9)
        assert again.low is not None
        assert clustered.low is not None
        assert again.low > clustered.low
    hits = np.repeat([1.0, 0.0, 1.0, 1.0], 5)
    clustered = interval(hits, clusters=list(np.repeat(np.arange(4), 5)))
    once = interval([1.0, 0.0, 1.0, 1.0])
    assert clustered.method == "wilson"
    assert clustered.low is not None
    assert once.low is not None
    assert interval(hits).low > clustered.low > once.low - 0.1  # type: ignore[operator]
    sure = interval([1.0] * 20, clusters=list(np.repeat(np.arange(4), 5)))
    assert sure.low == pytest.approx(proportion_confint(4, 4, method="wilson")[0])


@pytest.mark.parametrize(
    ("measure", "statistic"), [("AP", "mean"), ("num_ret", "sum"), ("gm_map", "geometric")]
)
def test_the_value_is_that_of_aggregate(measure: str, statistic: str) -> None:
    values = np.append(SKEWED, [np.nan, 0.0])
    expected = aggregate(parse(measure), values)
    found = interval(values, statistic=statistic)
    assert parse(measure).aggregation == statistic
    assert found.value == pytest.approx(expected.value)
    assert (found.n, found.undefined) == (expected.n, expected.undefined)
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low < found.value < found.high


def test_a_sum_scales_and_a_geometric_mean_is_taken_of_logarithms() -> None:
    mean, total = interval(SKEWED), interval(SKEWED, statistic="sum")
    assert mean.low is not None
    assert total.low == pytest.approx(60 * mean.low)
    logs = interval(np.log(SKEWED + 0.1), method="t")
    geometric = interval(SKEWED + 0.1, statistic="geometric", method="t")
    assert logs.high is not None
    assert geometric.high == pytest.approx(np.exp(logs.high))
    ones = interval([1.0, 1.0, 1.0], statistic="geometric")
    assert (ones.low, ones.high, ones.reason) == (1.0, 1.0, EQUAL)


def test_a_statistic_for_each_column() -> None:
    table = np.column_stack([SKEWED, SKEWED])
    mean, total = intervals(table, statistic=["mean", "sum"])
    assert mean.low == pytest.approx(interval(SKEWED).low)
    assert total.low == pytest.approx(interval(SKEWED, statistic="sum").low)
    with pytest.raises(InputError, match="3 statistics were given for 2 columns"):
        intervals(table, statistic=["mean"] * 3)


def test_a_column_gets_the_same_in_any_company() -> None:
    table = RNG.random((40, 5))
    table[3, 1] = table[:9, 2] = np.nan
    table[:, 3] = table[:, 3] > 0.3
    together = intervals(table, seed=4)
    for column in range(5):
        alone = interval(table[:, column], seed=4)
        assert (alone.low, alone.high) == pytest.approx(
            (together[column].low, together[column].high), abs=1e-12
        )
        assert (alone.method, alone.n) == (together[column].method, together[column].n)
    dropped = interval(table[~np.isnan(table[:, 2]), 2], seed=4)
    assert (dropped.low, dropped.high) == pytest.approx((together[2].low, together[2].high))
    assert (together[2].n, together[2].undefined) == (31, 9)


def test_the_seed_decides() -> None:
    assert interval(SKEWED, seed=1) == interval(SKEWED, seed=1)
    assert interval(SKEWED, seed=1) != interval(SKEWED, seed=2)


@pytest.mark.parametrize("method", METHODS)
def test_too_little_has_no_interval(method: str) -> None:
    nothing = interval([], method=method)
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)
    assert (nothing.n, nothing.method, nothing.reason) == (0, "", NONE_DEFINED)
    undefined = interval([np.nan, np.nan], method=method)
    assert (undefined.value, undefined.undefined, undefined.reason) == (None, 2, NONE_DEFINED)
    one = interval([0.4, np.nan], method=method)
    assert (one.value, one.low, one.high, one.reason) == (0.4, None, None, ONE)
    cluster = interval([0.4, 0.5], method=method, clusters=["a", "a"])
    assert cluster.value == pytest.approx(0.45)
    assert cluster.low is None
    assert "one cluster" in cluster.reason
    assert intervals(np.zeros((5, 0)), method=method) == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.1 + 0.2, -7.0, 1e9])
def test_equal_values_have_no_width_and_say_so(method: str, value: float) -> None:
    found = interval([value] * 7, method=method)
    assert (found.low, found.high) == pytest.approx((value, value))
    assert found.reason == EQUAL


def test_all_hits_are_not_certainty() -> None:
    found = interval([1.0] * 10)
    assert found.low == pytest.approx(0.7225, abs=1e-4)
    assert found.high == 1.0


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="infinite"):
        interval([0.1, np.inf])
    with pytest.raises(OptionError, match="unknown interval method 'bcaa'"):
        interval([0.1, 0.2], method="bcaa")
    with pytest.raises(OptionError, match="the level is 95"):
        interval([0.1, 0.2], level=95)
    with pytest.raises(OptionError, match="unknown statistic 'median'"):
        interval([0.1, 0.2], statistic="median")
    with pytest.raises(OptionError, match="0 resamples"):
        interval([0.1, 0.2], resamples=0)
    with pytest.raises(OptionError, match="the seed is -1"):
        interval([0.1, 0.2], seed=-1)
    with pytest.raises(InputError, match="1 cluster labels were given for 2 queries"):
        interval([0.1, 0.2], clusters=["a"])
    with pytest.raises(InputError, match="3 dimensions"):
        intervals(np.zeros((2, 2, 2)))


@settings(deadline=None, max_examples=60)
@given(values=columns(least=2, nan=True), method=st.sampled_from(METHODS))
def test_the_interval_holds_the_value_and_stays_in_range(values: np.ndarray, method: str) -> None:
    found = interval(values, method=method, resamples=300)
    assume(found.low is not None)
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low <= found.value + 1e-9
    assert found.value <= found.high + 1e-9
    if found.method not in {"t", "normal"}:
        assert found.low >= -1e-9
        assert found.high <= 1 + 1e-9


@settings(deadline=None, max_examples=60)
@given(
    values=columns(least=2),
    method=st.sampled_from([method for method in METHODS if method != "auto"]),
    shift=st.floats(-5, 5),
    factor=st.floats(0.1, 10),
)
def test_shift_and_scale_move_the_limits_along(
    values: np.ndarray, method: str, shift: float, factor: float
) -> None:
    before = interval(values, method=method, resamples=300)
    after = interval(values * factor + shift, method=method, resamples=300)
    assert before.low is not None
    assert before.high is not None
    moved = (before.low * factor + shift, before.high * factor + shift)
    # a draw that equals the value may fall on either side of it by rounding
    slack = 1e-6 + 0.05 * factor * (before.high - before.low)
    assert (after.low, after.high) == pytest.approx(moved, abs=slack)
