"""The choice of a setting: by hand, against brute force, and under shuffled queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from findwell.core.errors import InputError, OptionError
from findwell.loop.tuning.choice import (
    DRAWS,
    Choice,
    ChoiceRule,
    against_best,
    choose_setting,
    value_order,
)
from findwell.statistics.resampling import balanced_folds, bootstrap_counts

if TYPE_CHECKING:
    from findwell.core.data import Floats

GRID = np.linspace(0, 1, 21)
PLACES = GRID[:, np.newaxis]


def hills(queries: int, seed: int = 0, middle: float = 0.6) -> Floats:
    """Return values that fall off on both sides of a peak that differs by query."""
    rng = np.random.default_rng(seed)
    peak = np.clip(rng.normal(middle, 0.3, queries), 0, 1)
    height = rng.random(queries)
    return np.asarray(np.clip(height - 0.5 * np.abs(GRID[:, np.newaxis] - peak), 0, 1))


def numbers(found: Choice) -> list[object]:
    return [
        found.chosen,
        found.best,
        round(found.held_out.value or 0, 12),
        round(found.optimism or 0, 12),
        found.plateau,
        found.stability,
        [each.p for each in found.behind],
    ]


def test_each_query_is_scored_by_a_setting_that_it_did_not_choose() -> None:
    values = hills(40)
    found = choose_setting(values, places=PLACES, rule=ChoiceRule(repeats=3))
    order = value_order(values)
    counts = bootstrap_counts(40, DRAWS, 0)
    folds = balanced_folds(40, 5, 3, 0)
    assert (found.fold[:, order] == folds).all()
    expected = np.zeros(40)
    for repeat in range(3):
        for fold in range(5):
            train = folds[repeat] != fold
            sums = counts[:, train] @ values[:, order][:, train].T
            votes = np.zeros(len(GRID))
            for row in sums:
                winners = np.flatnonzero(row >= row.max() - 1e-9)
                votes[winners] += 1 / len(winners)
            some = np.flatnonzero(votes)
            cost = [sum(votes[o] * abs(GRID[o] - GRID[s]) for o in some) for s in some]
            assert found.picks[repeat, fold] == some[int(np.argmin(cost))]
            expected[order[~train]] += values[found.picks[repeat, fold], order[~train]] / 3
    assert_allclose(found.values, expected)
    assert found.held_out.value == pytest.approx(expected.mean())
    assert found.in_sample.value == pytest.approx(values[found.chosen].mean())


def test_shuffled_queries_give_the_same_numbers() -> None:
    values = hills(60)
    clusters = [f"c{number // 3}" for number in range(60)]
    shuffle = np.random.default_rng(7).permutation(60)
    for labels in (None, clusters):
        plain = choose_setting(values, ChoiceRule(clusters=labels), places=PLACES)
        again = choose_setting(
            values[:, shuffle],
            ChoiceRule(clusters=labels and [f"renamed {labels[place]}" for place in shuffle]),
            places=PLACES,
        )
        assert numbers(plain) == numbers(again)
        assert_allclose(plain.values[shuffle], again.values)


def test_queries_of_a_cluster_stay_in_one_fold() -> None:
    clusters = [f"c{number % 12}" for number in range(60)]
    found = choose_setting(hills(60), ChoiceRule(clusters=clusters), places=PLACES)
    for fold in found.fold:
        by_cluster = {(name, place) for name, place in zip(clusters, fold.tolist(), strict=True)}
        assert len(by_cluster) == 12
    assert found.held_out.clusters == 12


def test_noise_alone_is_optimistic_in_sample_but_not_held_out() -> None:
    rng = np.random.default_rng(3)
    gaps = []
    for _ in range(20):
        found = choose_setting(rng.random((50, 30)), ChoiceRule(permutations=200))
        assert found.in_sample.value is not None
        assert found.held_out.value is not None
        gaps.append((found.in_sample.value - 0.5, found.held_out.value - 0.5))
        assert found.optimism == found.in_sample.value - found.held_out.value
    in_sample, held_out = np.mean(gaps, axis=0)
    assert in_sample > 0.05
    assert abs(held_out) < 0.03


def test_two_peaks_do_not_lead_into_the_valley_between_them() -> None:
    rng = np.random.default_rng(0)
    left = rng.random(40) < 0.5
    values = np.where(left, 1 - GRID[:, np.newaxis], GRID[:, np.newaxis]) ** 4
    found = choose_setting(values, places=PLACES)
    assert found.chosen in (0, len(GRID) - 1)


def test_equally_good_settings_share_the_vote() -> None:
    flat = np.tile(np.linspace(0.2, 0.9, 20), (21, 1))
    flat[:5] -= 0.1
    found = choose_setting(flat, places=PLACES)
    assert found.chosen == 12  # the median of 5 … 20
    assert found.plateau == tuple(range(5, 21))
    assert_allclose(found.votes[5:], 1 / 16)
    assert (found.optimism, found.stability) == (0, 1)


def test_lower_is_better_is_the_mirror_of_higher() -> None:
    values = hills(40)
    up = choose_setting(values, places=PLACES)
    down = choose_setting(1 - values, ChoiceRule(higher_is_better=False), places=PLACES)
    assert (down.chosen, down.best, down.plateau) == (up.chosen, up.best, up.plateau)
    assert down.optimism == pytest.approx(up.optimism)
    assert_allclose(1 - down.values, up.values)


def test_a_geometric_mean_is_chosen_by_logarithms() -> None:
    values = np.full((2, 20), 0.5)
    values[1, :10], values[1, 10:] = 0.01, 1.0  # a better mean, a worse geometric mean
    assert choose_setting(values).chosen == 1
    found = choose_setting(values, ChoiceRule(statistic="geometric"))
    assert found.chosen == 0
    assert [found.held_out.value, found.in_sample.value] == pytest.approx([0.5, 0.5])


def test_a_query_without_a_value_somewhere_is_left_out_everywhere() -> None:
    values = hills(30)
    holes = np.concatenate([values, np.full((21, 2), np.nan)], axis=1)
    holes[:3, -1] = 1.0  # some settings have a value
    plain, found = (choose_setting(each, places=PLACES) for each in (values, holes))
    assert numbers(plain) == numbers(found)
    assert (found.n, found.left_out) == (30, 2)
    assert np.isnan(found.values[-2:]).all()


def test_the_choices_of_the_folds_can_be_read_by_another_measure() -> None:
    values = hills(30)
    found = choose_setting(values, places=PLACES)
    assert_allclose(found.held_out_values(values), found.values)
    assert_allclose(found.held_out_values(values * 2), found.values * 2)


def test_the_plateau_is_a_holm_test_against_the_best() -> None:
    table = np.tile([0.9, 0.1, 0.9, 0.8], (12, 1)) + np.linspace(0, 0.1, 12)[:, np.newaxis]
    table[:6, 3] = 0.9 + np.linspace(0, 0.1, 12)[:6]
    best, far, same, close = against_best(table, best=0)
    assert (best.p, same.p) == (None, 1.0)
    assert far.p == 2 * 2 / 2**12  # two other columns than the best, all 12 queries differ
    assert close.p == 2 / 2**6


@pytest.mark.parametrize("higher", [True, False])
def test_the_band_of_a_setting_holds_0_exactly_where_it_cannot_be_ruled_out(
    higher: bool,
) -> None:
    values = hills(60) if higher else 1 - hills(60)
    found = choose_setting(values, ChoiceRule(higher_is_better=higher), places=PLACES)
    assert 1 < len(found.plateau) < len(values)
    for number, each in enumerate(found.behind):
        difference = each.difference
        assert_allclose(
            difference.value or 0.0, (values[number] - values[found.best]).mean(), atol=1e-12
        )
        if number == found.best:
            assert difference.value == 0
            continue
        assert difference.low is not None
        assert difference.high is not None
        inside = difference.low <= 0 <= difference.high
        assert inside == (number in found.plateau)


@pytest.mark.parametrize(
    ("values", "options", "says"),
    [
        (hills(9), {}, "9 queries"),
        (hills(20), {"folds": 1}, "1 folds"),
        (hills(20), {"repeats": 0}, "0 repeats"),
        (hills(20), {"clusters": ["a", "b"] * 10}, "2 clusters"),
    ],
)
def test_what_cannot_be_chosen_is_refused(
    values: Floats, options: dict[str, Any], says: str
) -> None:
    with pytest.raises((InputError, OptionError), match=says):
        choose_setting(values, ChoiceRule(**options))


def test_many_settings_can_still_be_shown_to_be_worse() -> None:
    """As many tests as permutations: without more of them every setting were on the plateau."""
    rng = np.random.default_rng(0)
    values = np.clip(rng.random((300, 40)) * 0.2, 0, 1)
    values[7] += 0.7
    assert choose_setting(values, ChoiceRule(permutations=100)).plateau == (7,)
