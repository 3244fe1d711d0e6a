"""Two systems side by side: the parts fit together, at any edge of the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.measures import parse_measure
from findwell.statistics.intervals import METHOD, aggregate
from findwell.statistics.paired import effect_size, paired
from findwell.statistics.significance import (
    NO_PAIR,
    NONE_DIFFERS,
    ONE_PAIR,
    SAME_DIFFERENCE,
    sign_flip,
)
from tests.lazy import lazy
from tests.statistics.scores import columns, limits
from tests.strategies import examples

stats = lazy("scipy.stats")

RNG = np.random.default_rng(8)
BEFORE = RNG.beta(0.6, 1, 50)
AFTER = np.clip(BEFORE + RNG.normal(0.05, 0.1, 50), 0, 1)


def test_the_parts_are_those_of_the_differences() -> None:
    (found,) = paired(BEFORE, AFTER, seed=2)
    moved = AFTER - BEFORE
    assert found.difference.value == pytest.approx(moved.mean())
    assert found.difference.method == METHOD
    assert found.test == sign_flip(moved, seed=2)[0]
    assert found.effect.value == pytest.approx(moved.mean() / moved.std(ddof=1))
    assert (found.wins, found.ties, found.losses) == (
        (moved > 0).sum(),
        (moved == 0).sum(),
        (moved < 0).sum(),
    )
    assert (found.n, found.left_out) == (50, 0)
    theirs = stats.ttest_1samp(moved, 0).confidence_interval(0.95)
    low, high = limits(found.difference)
    assert high - low == pytest.approx(theirs.high - theirs.low, rel=0.15)


def test_the_limits_are_quantiles_of_randomly_weighted_means() -> None:
    moved = np.append(RNG.normal(0.05, 0.1, 9), [0.0] * 11)
    low, high = limits(paired(np.full(20, 0.5), 0.5 + moved)[0].difference)
    change = np.sqrt(((moved**2).sum() + 1) / 10)
    weights = RNG.exponential(size=(200_000, 21))
    weights /= weights.sum(axis=1, keepdims=True)
    assert (weights @ np.append(moved, change) < high).mean() == pytest.approx(0.975, abs=0.002)
    assert (weights @ np.append(moved, -change) < low).mean() == pytest.approx(0.025, abs=0.002)


@examples(100)
@given(won=st.integers(0, 14), lost=st.integers(0, 14), tied=st.integers(0, 40))
def test_hits_and_misses_are_shown_where_the_exact_test_shows_them(
    won: int, lost: int, tied: int
) -> None:
    assume(won + lost > 0 < won + lost + tied - 1)
    after = np.repeat([1.0, 0.0, 1.0], [won, lost, tied])
    (found,) = paired(np.repeat([0.0, 1.0, 1.0], [won, lost, tied]), after)
    low, high = limits(found.difference)
    p = stats.binomtest(won, won + lost).pvalue
    assume(abs(p - 0.05) > 0.002)  # the limits are right to 1 % of the width
    assert (low > 0 or high < 0) == (p < 0.05)


@examples(50)
@given(sides=columns(most=30, nan=True, sides=2), statistic=st.sampled_from(["mean", "sum"]))
def test_swapping_the_systems_mirrors_everything(sides: np.ndarray, statistic: str) -> None:
    options = {"permutations": 99, "statistic": statistic}
    (there,) = paired(sides[:, 0], sides[:, 1], **options)  # type: ignore[arg-type]
    (back,) = paired(sides[:, 1], sides[:, 0], **options)  # type: ignore[arg-type]
    assert there.test == back.test
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.wins + there.ties + there.losses == there.n
    assert there.n + there.left_out == len(sides)
    if there.effect.value is not None and back.effect.value is not None:
        assert there.effect.value == pytest.approx(-back.effect.value)
    if there.difference.low is not None:
        low, high = limits(back.difference)
        assert limits(there.difference) == pytest.approx((-high, -low), abs=1e-9)


@examples(30)
@given(sides=columns(most=30, sides=2), shift=st.floats(-3, 3))
def test_a_shift_of_both_changes_nothing(sides: np.ndarray, shift: float) -> None:
    sides = np.round(sides, 3)
    (still,) = paired(sides[:, 0], sides[:, 1], permutations=99)
    (moved,) = paired(sides[:, 0] + shift, sides[:, 1] + shift, permutations=99)
    assert still.test.p == moved.test.p
    assert (still.wins, still.ties) == (moved.wins, moved.ties)
    assert still.difference.low == pytest.approx(moved.difference.low, abs=1e-6)


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
    gm, total = parse_measure("gm_map"), parse_measure("num_ret")
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
    )
    low, high = limits(found.difference)
    # a further query may fall from anything to nothing, which a geometric mean does not forgive
    assert low < theirs.confidence_interval.low < theirs.confidence_interval.high < high
    assert high - low < 3 * np.ptp(theirs.confidence_interval)
    (summed,) = paired(before, after, statistic="sum")
    before_sum, after_sum = aggregate(total, before).value, aggregate(total, after).value
    assert before_sum is not None
    assert after_sum is not None
    assert summed.difference.value == pytest.approx(after_sum - before_sum)
    (mean,) = paired(before, after)
    low, high = limits(mean.difference)
    assert limits(summed.difference) == pytest.approx((50 * low, 50 * high))
    assert summed.test == mean.test


def test_a_part_of_the_baseline() -> None:
    (whole,), (part,) = paired(BEFORE, AFTER), paired(BEFORE, AFTER, factor=0.9)
    shift = 0.1 * BEFORE.mean()
    assert part.difference.value == pytest.approx((AFTER - 0.9 * BEFORE).mean())
    assert limits(part.difference)[0] == pytest.approx(
        limits(whole.difference)[0] + shift, abs=0.02
    )
    assert (part.wins, part.test, part.effect) == (whole.wins, whole.test, whole.effect)
    # one query of 300 that lost all is no smaller a matter because of what 0.98 adds to the others
    fell = np.append(0.0, BEFORE.repeat(6)[1:])
    (whole,), (part,) = (paired(BEFORE.repeat(6), fell, factor=factor) for factor in (1.0, 0.98))
    low, high = limits(part.difference)
    assert high - low == pytest.approx(np.subtract(*limits(whole.difference)[::-1]), rel=0.1)
    (geometric,) = paired(BEFORE, AFTER, statistic="geometric", factor=0.9)
    gm = [aggregate(parse_measure("gm_map"), side).value or 0 for side in (BEFORE, AFTER)]
    assert geometric.difference.value == pytest.approx(gm[1] - 0.9 * gm[0])


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
    assert found.difference.value == 0.0
    room = 1 - 0.025 ** (1 / 50)  # the next query may differ by as much as can be
    assert limits(found.difference) == pytest.approx((-room, room), rel=0.01)
    assert found.difference.reason == found.test.reason == found.effect.reason == NONE_DIFFERS
    assert (found.test.p, found.effect.value) == (1.0, 0.0)
    assert (found.wins, found.ties, found.losses) == (0, 50, 0)
    (rounded,) = paired([0.3] * 20, [0.1 + 0.2] * 20)
    assert (rounded.test.p, rounded.ties, rounded.difference.value) == (1.0, 20, 0.0)
    (unbounded,) = paired(BEFORE, BEFORE, bounds=(0.0, np.inf))
    assert (unbounded.difference.low, unbounded.difference.reason) == (None, NONE_DIFFERS)


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
    low, high = limits(constant.difference)
    assert 0.1 < low < 0.25 < high < 0.3
    assert constant.effect.reason == SAME_DIFFERENCE
    assert constant.test.p == pytest.approx(1 / 10_001)
    assert (constant.wins, constant.effect.value) == (50, None)


def test_what_counts_as_a_tie() -> None:
    (found,) = paired([0.5, 0.5, 0.5, 0.5], [0.5 + 1e-12, 0.51, 0.6, 0.4])
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)


def test_effect_of_a_published_example() -> None:
    # Cohen's d_z = t / √n: Student's sleep data, t = 4.0621 with 10 patients
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    (found,) = paired(first, second)
    assert found.effect.value == pytest.approx(4.0621 / np.sqrt(10), abs=1e-4)
    assert found.difference.value == pytest.approx(1.58)
    (unbounded,) = paired(first, second, bounds=(-np.inf, np.inf))
    low, high = limits(unbounded.difference)  # Student's interval: 0.70 to 2.46
    assert 0 < low < 0.8
    assert 2.4 < high < 3.2
    assert effect_size(np.array(second) - np.array(first)) == found.effect


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 1\) cannot be paired"):
        paired([0.1], [0.1, 0.2])
    with pytest.raises(InputError, match="infinite"):
        paired([0.1], [np.inf])
    with pytest.raises(OptionError, match="the level is 2"):
        paired([0.1], [0.1], level=2)
