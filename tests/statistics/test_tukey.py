"""All pairs of systems: against enumeration, the sign test and SciPy."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.statistics.resampling import normal_ranges, shuffled_ranges
from findwell.statistics.significance import (
    NO_QUERY,
    NO_SYSTEM_DIFFERS,
    ONE_SYSTEM,
    SHUFFLED_QUERIES,
    sign_flip,
    tukey,
)
from tests.lazy import lazy
from tests.statistics.scores import columns
from tests.strategies import examples

stats = lazy("scipy.stats")

RNG = np.random.default_rng(9)


def by_hand(values: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the exact p of every pair by dealing the values of every query in every order."""
    queries, systems = values.shape
    sums = values.sum(axis=0)
    orders = list(permutations(range(systems)))
    ranges = [
        np.ptp(sum(values[query, list(order)] for query, order in enumerate(dealt)))
        for dealt in product(orders, repeat=queries)
    ]
    return {
        (first, second): float(np.mean(np.array(ranges) >= abs(sums[first] - sums[second]) - 1e-9))
        for first in range(systems)
        for second in range(first + 1, systems)
    }


def chances(values: np.ndarray, permutations: int) -> dict[tuple[int, int], float | None]:
    (found,) = tukey(values, permutations=permutations)
    return dict(found.p)


@pytest.mark.parametrize("shape", [(5, 2), (4, 3), (3, 4)])
def test_all_pairs_against_every_order(shape: tuple[int, int]) -> None:
    values = RNG.random(shape) + np.arange(shape[1]) / 6
    exact, found = by_hand(values), chances(values, permutations=20_000)
    for pair, p in exact.items():
        assert found[pair] == pytest.approx(p, abs=4 * np.sqrt(0.25 / 20_000))


def test_two_systems_are_the_sign_test() -> None:
    values = RNG.random((200, 2)) + np.array([0.0, 0.04])
    (signs,) = sign_flip(values[:, 1] - values[:, 0], permutations=20_000)
    assert chances(values, permutations=20_000)[0, 1] == pytest.approx(signs.p, abs=0.015)


def test_many_queries_are_normal() -> None:
    systems, draws = 6, 20_000
    values = RNG.beta(0.4, 2, (2 * SHUFFLED_QUERIES, systems)) + np.arange(systems) * 0.004
    (normal,) = tukey(values, permutations=draws)
    assert normal.method == "normal"
    centred = (values - values.mean(axis=1, keepdims=True))[:, :, np.newaxis]
    shuffled = np.concatenate(list(shuffled_ranges(centred, 4_000, seed=5)))[:, 0]
    for (first, second), p in normal.p.items():
        apart = abs(centred[:, first].sum() - centred[:, second].sum())
        assert p == pytest.approx((shuffled >= apart).mean(), abs=0.035)


def test_ranges_of_normal_numbers_are_scipys() -> None:
    ranges = normal_ranges(5, 40_000, seed=1)
    for quantile in (2.0, 3.5, 3.86):
        expected = stats.studentized_range.sf(quantile, 5, np.inf)
        assert (ranges >= quantile).mean() == pytest.approx(expected, abs=0.01)


def test_every_order_is_as_likely() -> None:
    values = np.array([0.0, 1.0, 10.0])
    table = np.broadcast_to(values, (1, 3))[:, :, np.newaxis]
    # one query: the range is always the same; two queries: it tells how the orders meet
    assert np.ptp(np.concatenate(list(shuffled_ranges(table, 50, seed=1)))) == 0
    twice = np.repeat(table, 2, axis=0)
    found = np.concatenate(list(shuffled_ranges(twice, 60_000, seed=1)))[:, 0]
    meets = [np.ptp(values + values[list(order)]) for order in permutations(range(3))]
    for total in set(meets):
        share = np.mean(np.isclose(found, total))
        assert share == pytest.approx(meets.count(total) / 6, abs=0.01)


def test_a_few_decisive_queries_among_many_are_shuffled() -> None:
    values = np.repeat(RNG.random((5_000, 1)), 4, axis=1)
    values[:6, 3] = values[:6, :1].ravel() + 0.3
    (found,) = tukey(values)
    assert found.method == "permutation"
    assert found.n == 5_000
    assert found.p[0, 1] == 1.0
    assert found.p[0, 3] == pytest.approx(4 / 4**6, abs=0.002)


def test_measures_share_what_they_can_and_get_what_they_would_alone() -> None:
    values = RNG.random((30, 4, 3))
    values[2, 1, 1] = np.nan
    values[:, :, 2] = np.round(values[:, :, 2])
    together = tukey(values, permutations=500, seed=4)
    for measure in range(3):
        assert together[measure] == tukey(values[:, :, measure], permutations=500, seed=4)[0]
    assert [found.n for found in together] == [30, 29, 30]
    assert together != tukey(values, permutations=500, seed=5)


@examples(30)
@given(values=columns(least=1, most=12, sides=4), shift=st.floats(-2, 2))
def test_shift_swap_and_bounds(values: np.ndarray, shift: float) -> None:
    values = np.round(values, 3)
    found = chances(values, permutations=200)
    assert all(p is not None and 1 / 201 <= p <= 1 for p in found.values())
    moved = chances(values + shift, permutations=200)
    assert moved == found
    apart = {
        (one, other): abs(values[:, one].sum() - values[:, other].sum()) for one, other in found
    }
    for near, far in product(found, repeat=2):
        if apart[far] > apart[near] + 1e-9:
            assert (found[far] or 0) <= (found[near] or 0)


def test_geometric_means() -> None:
    values = RNG.random((20, 3)) + 0.1
    (logs,), (found,) = tukey(np.log(values)), tukey(values, statistic="geometric")
    assert found.p == logs.p
    assert tukey(values, statistic="sum") == tukey(values)


def test_edges() -> None:
    (alike,) = tukey(np.repeat(RNG.random((9, 1)), 3, axis=1))
    assert list(alike.p.values()) == [1.0] * 3
    assert alike.reason == NO_SYSTEM_DIFFERS
    (one_query,) = tukey([[0.1, 0.5, 0.9]])
    assert one_query.p[0, 2] == 1.0
    (more_systems,) = tukey(RNG.random((3, 12)), permutations=100)
    assert len(more_systems.p) == 66
    (none,) = tukey(np.full((4, 3), np.nan))
    assert (none.n, none.reason) == (0, NO_QUERY)
    assert set(none.p.values()) == {None}
    assert tukey(np.zeros((0, 3)))[0].reason == NO_QUERY
    (alone,) = tukey(RNG.random((5, 1)))
    assert (alone.p, alone.reason) == ({}, ONE_SYSTEM)
    assert tukey(np.zeros((5, 0)))[0].p == {}
    with pytest.raises(InputError, match="infinite"):
        tukey([[0.1, np.inf]])
    with pytest.raises(InputError, match="1 dimensions"):
        tukey([0.1])
    with pytest.raises(OptionError, match="0 permutations"):
        tukey([[0.1, 0.2]], permutations=0)
