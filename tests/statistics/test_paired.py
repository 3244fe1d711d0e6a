"""Two systems side by side: the parts fit together, at any edge of the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.aggregate import aggregate
from karat.errors import InputError, OptionError
from karat.measures import parse
from karat.statistics.intervals import METHODS, interval
from karat.statistics.paired import effect_size, paired
from karat.statistics.significance import (
    NO_PAIR,
    NONE_DIFFERS,
    ONE_PAIR,
    SAME_DIFFERENCE,
    sign_flip,
)
from tests.statistics.scores import columns

RNG = np.random.default_rng(8)
BEFORE = RNG.beta(0.6, 1, 50)
AFTER = np.clip(BEFORE + RNG.normal(0.05, 0.1, 50), 0, 1)


def test_the_parts_are_those_of_the_differences() -> None:
    (found,) = paired(BEFORE, AFTER, seed=2)
    moved = AFTER - BEFORE
    alone = interval(moved, method="bca-wide", seed=2)
    assert (found.difference.low, found.difference.high) == (alone.low, alone.high)
    assert found.difference.value == pytest.approx(moved.mean())
    assert found.test == sign_flip(moved, seed=2)[0]
    assert found.effect.value == pytest.approx(moved.mean() / moved.std(ddof=1))
    assert (found.wins, found.ties, found.losses) == (
        (moved > 0).sum(),
        (moved == 0).sum(),
        (moved < 0).sum(),
    )
    assert (found.n, found.left_out) == (50, 0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_interval_of_the_difference(method: str) -> None:
    (found,) = paired(BEFORE, AFTER, method=method)
    alone = interval(AFTER - BEFORE, method=method)
    assert (found.difference.low, found.difference.high) == (alone.low, alone.high)
    assert found.difference.method == alone.method


@settings(deadline=None, max_examples=50)
@given(sides=columns(most=30, nan=True, sides=2), statistic=st.sampled_from(["mean", "sum"]))
def test_swapping_the_systems_mirrors_everything(sides: np.ndarray, statistic: str) -> None:
    options = {"permutations": 99, "resamples": 500, "statistic": statistic}
    (there,) = paired(sides[:, 0], sides[:, 1], **options)  # type: ignore[arg-type]
    (back,) = paired(sides[:, 1], sides[:, 0], **options)  # type: ignore[arg-type]
    assert there.test == back.test
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.wins + there.ties + there.losses == there.n
    assert there.n + there.left_out == len(sides)
    if there.effect.value is not None and back.effect.value is not None:
        assert there.effect.value == pytest.approx(-back.effect.value)
    if there.difference.low is not None and there.difference.value is not None:
        mirrored = back.difference
        assert mirrored.low is not None
        assert mirrored.high is not None
        width = mirrored.high - mirrored.low
        # the quantiles of a bootstrap interpolate between draws from one side
        slack = 1e-9 + (0.1 * width if mirrored.method == "bca-wide" else 0.0)
        assert there.difference.low == pytest.approx(-mirrored.high, abs=slack)
        assert there.difference.high == pytest.approx(-mirrored.low, abs=slack)


@settings(deadline=None, max_examples=30)
@given(sides=columns(most=30, sides=2), shift=st.floats(-3, 3))
def test_a_shift_of_both_changes_nothing(sides: np.ndarray, shift: float) -> None:
    sides = np.round(sides, 3)
    (still,) = paired(sides[:, 0], sides[:, 1], permutations=99, method="normal")
    (moved,) = paired(sides[:, 0] + shift, sides[:, 1] + shift, permutations=99, method="normal")
    assert still.test.p == moved.test.p
    assert (still.wins, still.ties) == (moved.wins, moved.ties)
    assert still.difference.low == pytest.approx(moved.difference.low, abs=1e-9)


def test_unequal_query_sets_are_joined_where_both_have_a_value() -> None:
    before, after = BEFORE.copy(), AFTER.copy()
    before[:5], after[3:9] = np.nan, np.nan
    (found,), (inside,) = paired(before, after), paired(BEFORE[9:], AFTER[9:])
    assert (found.n, found.left_out) == (41, 9)
    assert (found.difference.low, found.wins) == (inside.difference.low, inside.wins)
    assert found.effect == inside.effect


def test_a_column_gets_the_same_in_any_company() -> None:
    before, after = RNG.random((80, 6)), RNG.random((80, 6))
    before[:7, 1], after[:, 2] = np.nan, before[:, 2]
    before[:, 3], after[:, 3] = before[:, 3] > 0.5, after[:, 3] > 0.4
    names = ["mean", "mean", "mean", "mean", "geometric", "sum"]
    together = paired(before, after, statistic=names, seed=9, permutations=500)
    for column, name in enumerate(names):
        (alone,) = paired(
            before[:, column], after[:, column], statistic=name, seed=9, permutations=500
        )
        other = together[column]
        assert (alone.test, alone.effect, alone.wins) == (other.test, other.effect, other.wins)
        limits = (other.difference.low, other.difference.high)
        assert (alone.difference.low, alone.difference.high) == pytest.approx(limits, abs=1e-12)


def test_geometric_means_and_sums() -> None:
    gm, total = parse("gm_map"), parse("num_ret")
    before, after = BEFORE + 0.1, AFTER + 0.1
    (found,) = paired(before, after, statistic="geometric")
    one, other = aggregate(gm, before).value, aggregate(gm, after).value
    assert one is not None
    assert other is not None
    assert found.difference.value == pytest.approx(other - one)
    assert found.test == sign_flip(np.log(after) - np.log(before))[0]
    theirs = stats.bootstrap(
        (before, after),
        lambda x, y, axis: np.exp(np.log(y).mean(axis=axis)) - np.exp(np.log(x).mean(axis=axis)),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    (plain,) = paired(before, after, statistic="geometric", method="bca", resamples=20_000)
    width = theirs.high - theirs.low
    assert plain.difference.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert plain.difference.high == pytest.approx(theirs.high, abs=0.03 * width)
    (summed,) = paired(before, after, statistic="sum")
    before_sum, after_sum = aggregate(total, before).value, aggregate(total, after).value
    assert before_sum is not None
    assert after_sum is not None
    assert summed.difference.value == pytest.approx(after_sum - before_sum)
    (mean,) = paired(before, after)
    assert mean.difference.low is not None
    assert summed.difference.low == pytest.approx(50 * mean.difference.low)
    assert summed.test == mean.test


def test_hit_or_miss_by_agresti_and_min() -> None:
    # the approval table of Agresti 10.1 again: 150 changed one way, 86 the other, of 1600
    before = np.repeat([1.0, 1.0, 0.0, 0.0], [794, 150, 86, 570])
    after = np.repeat([1.0, 0.0, 1.0, 0.0], [794, 150, 86, 570])
    (found,) = paired(before, after)
    assert found.difference.method == "agresti-min"
    assert found.difference.value == pytest.approx(-0.04)
    # Wald gives (-0.059, -0.021); half a query more in each cell moves it by less than .0001
    assert found.difference.low == pytest.approx(-0.0587, abs=2e-4)
    assert found.difference.high == pytest.approx(-0.0213, abs=2e-4)
    (wins_only,) = paired([0.0] * 20, [1.0] * 3 + [0.0] * 17)
    assert wins_only.difference.low == pytest.approx(3 / 22 - 1.959964 * 0.0861, abs=1e-3)


def test_clusters_widen_the_interval_and_the_test() -> None:
    labels = np.repeat(np.arange(25), 4)
    before = RNG.random(100)
    after = before + np.repeat(RNG.normal(0.05, 0.2, 25), 4)
    (alone,), (clustered,) = paired(before, after), paired(before, after, clusters=list(labels))
    assert clustered.difference.clusters == 25
    assert clustered.difference.low is not None
    assert alone.difference.low is not None
    assert clustered.difference.low < alone.difference.low
    assert clustered.test.p is not None
    assert alone.test.p is not None
    assert clustered.test.p > alone.test.p
    assert clustered.effect == alone.effect


def test_identical_systems() -> None:
    (found,) = paired(BEFORE, BEFORE)
    assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.difference.reason == found.test.reason == found.effect.reason == NONE_DIFFERS
    assert (found.test.p, found.effect.value) == (1.0, 0.0)
    assert (found.wins, found.ties, found.losses) == (0, 50, 0)
    (rounded,) = paired([0.3] * 20, [0.1 + 0.2] * 20)
    assert (rounded.test.p, rounded.ties) == (1.0, 20)
    hits = (BEFORE > 0.4).astype(float)
    (found,) = paired(hits, hits)
    assert (found.test.p, found.difference.reason) == (1.0, NONE_DIFFERS)
    assert found.difference.low == pytest.approx(-1.959964 / 52, abs=1e-6)


def test_one_query_none_and_constant_differences() -> None:
    (one,) = paired([0.2], [0.7])
    assert one.difference.value == pytest.approx(0.5)
    assert (one.difference.low, one.test.p, one.effect.value) == (None, 1.0, None)
    assert one.effect.reason == ONE_PAIR
    assert "one query" in one.difference.reason
    (same_one,) = paired([0.2], [0.2])
    assert "one query" in same_one.difference.reason
    (none,) = paired([], [])
    assert (none.difference.value, none.test.p, none.effect.value, none.n) == (None, None, None, 0)
    assert none.difference.reason == none.test.reason == none.effect.reason == NO_PAIR
    (apart,) = paired([0.5, np.nan], [np.nan, 0.5])
    assert (apart.n, apart.left_out, apart.difference.reason) == (0, 2, NO_PAIR)
    (constant,) = paired(BEFORE, BEFORE + 0.25)
    assert constant.difference.low == pytest.approx(0.25)
    assert constant.difference.high == pytest.approx(0.25)
    assert constant.difference.reason == constant.effect.reason == SAME_DIFFERENCE
    assert constant.test.p == pytest.approx(1 / 10_001)
    assert (constant.wins, constant.effect.value) == (50, None)


def test_what_counts_as_a_tie() -> None:
    (found,) = paired([0.5, 0.5, 0.5, 0.5], [0.5 + 1e-12, 0.51, 0.6, 0.4], tie=0.05)
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)


def test_effect_of_a_published_example() -> None:
    # Cohen's d_z = t / √n: Student's sleep data, t = 4.0621 with 10 patients
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    (found,) = paired(first, second)
    assert found.effect.value == pytest.approx(4.0621 / np.sqrt(10), abs=1e-4)
    assert found.difference.value == pytest.approx(1.58)
    (t,) = paired(first, second, method="t")
    assert (t.difference.low, t.difference.high) == pytest.approx((0.7001, 2.4599), abs=1e-4)
    assert effect_size(np.array(second) - np.array(first)) == found.effect


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 1\) cannot be paired"):
        paired([0.1], [0.1, 0.2])
    with pytest.raises(InputError, match="infinite"):
        paired([0.1], [np.inf])
    with pytest.raises(OptionError, match="unknown interval"):
        paired([0.1], [0.1], method="wald")
    with pytest.raises(OptionError, match="the level is 2"):
        paired([0.1], [0.1], level=2)
