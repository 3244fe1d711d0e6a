"""Orders: published numbers, enumeration, invariances."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.statistics.agreement import (
    ALL_TIED,
    BOTH_EMPTY,
    TOO_FEW,
    in_common,
    kendall_tau,
    rbo,
    rbo_of_lists,
    tau_ap,
)
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.statistics.intervals import Quantity

stats = lazy("scipy.stats")

# The test data of ircor, the R package of Urbano and Marrero: true and estimated scores,
# without and with ties, and the correlations it gives.
SETS = [
    (
        [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
        [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
        (0.8519, 0.7454, 0.8333, 0.7321),
    ),
    (
        [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
        [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
        (0.2504, 0.2692, 0.2880, 0.297),
    ),
    (
        [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445],
        [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25],
        (-0.6971, -0.5558, -0.668, -0.7047),
    ),
]
# Extrapolated RBO as Webber's own program gives it, against the alphabet; the first three are
# permutations of its first 25 letters, the others are compared with all 26.
WEBBER = [
    ("erqalcnuhjvoxgiybskzdtmwf", 0.9, 0.408634),
    ("achudyxfktsrzwbgqjenolivm", 0.5, 0.774012),
    ("agmtrsyhfidnjobwzkxvucqel", 0.99, 0.91136),
    ("karfvodcjmwgzlypebunq", 0.9, 0.468431),
    ("f", 0.9, 0.053090),
    ("zclx", 0.9, 0.233312),
    ("nxqyk", 0.9, 0.049050),
    ("av", 0.2, 0.900000),
    ("bcxhkur", 0.4, 0.212763),
    ("z", 0.1, 0.0),
]
orders = st.permutations(range(8))


@pytest.mark.parametrize(("truth", "estimate", "expected"), SETS)
def test_ap_correlations_as_published(
    truth: list[float], estimate: list[float], expected: tuple[float, ...]
) -> None:
    symmetric, agreement = expected[2:]
    tied = np.round(estimate, 1)
    assert tau_ap(truth, estimate).value == pytest.approx(symmetric, abs=5e-5)
    both = tau_ap(np.round(truth, 1), tied).value
    assert both == pytest.approx(agreement, abs=5e-5)


def plain_tau_ap(truth: list[int], estimate: list[int]) -> float:
    """Return τ_AP of two orders of items, best first, by its definition."""
    rank = {item: number for number, item in enumerate(truth)}
    shares = [
        sum(rank[above] < rank[item] for above in estimate[:place]) / place
        for place, item in enumerate(estimate)
        if place
    ]
    return 2 * sum(shares) / len(shares) - 1


@given(truth=orders, estimate=orders)
def test_tau_ap_is_its_definition(truth: list[int], estimate: list[int]) -> None:
    true = [-truth.index(item) for item in range(8)]
    guess = [-estimate.index(item) for item in range(8)]
    expected = plain_tau_ap(truth, estimate)
    other = plain_tau_ap(estimate, truth)
    assert tau_ap(true, guess).value == pytest.approx((expected + other) / 2)


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=15))
def test_correlations_are_bounded_and_indifferent_to_scale(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs, dtype=float).T
    for correlation in (kendall_tau, tau_ap):
        found = correlation(one, other)
        if found.value is None:
            assert found.reason == ALL_TIED
            continue
        assert -1 - 1e-12 <= found.value <= 1 + 1e-12
        assert correlation(3 * one + 1, np.exp(other)).value == pytest.approx(found.value)
        distinct = np.arange(len(one))
        assert correlation(distinct, distinct).value == pytest.approx(1)
        assert correlation(distinct, -distinct).value == pytest.approx(-1)
    assert tau_ap(one, other) == tau_ap(other, one)


def test_kendalls_tau_is_scipys_and_leaves_out_what_is_undefined() -> None:
    one, other = np.array(SETS[0][0]), np.round(SETS[0][1], 1)
    assert kendall_tau(one, other).value == pytest.approx(stats.kendalltau(one, other).statistic)
    more = kendall_tau([*one, np.nan, 5.0], [*other, 1.0, np.nan])
    assert more.value == pytest.approx(stats.kendalltau(one, other).statistic)


@pytest.mark.parametrize("correlation", [kendall_tau, tau_ap])
def test_edges_of_correlations(
    correlation: Callable[[list[float], list[float]], Quantity],
) -> None:
    assert correlation([], []).reason == TOO_FEW
    assert correlation([1.0, np.nan], [1.0, 2.0]).reason == TOO_FEW
    with pytest.raises(InputError, match="cannot be paired"):
        correlation([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="infinite"):
        correlation([1.0, np.inf], [1.0, 2.0])


@pytest.mark.parametrize(("ranking", "p", "expected"), WEBBER)
def test_rbo_is_webbers(ranking: str, p: float, expected: float) -> None:
    other = sorted(ranking) if len(ranking) == 25 else ascii_lowercase
    assert rbo(other, ranking, p).value == pytest.approx(expected, abs=1.5e-6)
    assert rbo(ranking, other, p).value == pytest.approx(expected, abs=1.5e-6)


def test_rbo_by_hand() -> None:
    # depths 1 and 2 share 0 and 2 items: (1-p)/p × (0 p + 1 p²) + 1 p² = p
    assert rbo("ab", "ba", 0.7).value == pytest.approx(0.7)
    # shares a at depth 1, nothing more: (1-p)/p × (p + p²/2) + p²/2
    assert rbo("ab", "ac", 0.8).value == pytest.approx(0.2 * (1 + 0.4) + 0.32)


@settings(deadline=None)
@given(
    one=st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True),
    other=st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True),
    p=st.floats(0.05, 0.99),
)
def test_rbo_is_symmetric_and_bounded(one: list[str], other: list[str], p: float) -> None:
    found = rbo(one, other, p)
    assert found == rbo(other, one, p)
    if found.value is None:
        assert not one
        assert not other
        return
    assert -1e-12 <= found.value <= 1 + 1e-12
    if one:
        assert rbo(one, one, p).value == pytest.approx(1)
        assert rbo([*one, *one[:2]], other, p).value == pytest.approx(found.value)
    if not set(one) & set(other):
        assert found.value == 0


def test_edges_of_rbo() -> None:
    assert rbo([], []).reason == BOTH_EMPTY
    assert rbo([], ["a"]).value == 0.0
    assert rbo(["ä", 1], ["ä", 1]).value == pytest.approx(1)
    for p in (0.0, 1.0, -0.1):
        with pytest.raises(OptionError, match="the persistence p is"):
            rbo(["a"], ["a"], p)


def test_rankings_are_compared_by_what_they_share() -> None:
    one, other = ["a", "b", "c", "d"], ["x", "b", "a", "d", "a"]
    shared = in_common(one, other)
    assert kendall_tau(*shared).value == pytest.approx(1 / 3)
    both = plain_tau_ap([0, 1, 3], [1, 0, 3]) + plain_tau_ap([1, 0, 3], [0, 1, 3])
    assert tau_ap(*shared).value == pytest.approx(both / 2)
    assert in_common(["a"], ["b"]) == ([], [])


def test_the_overlap_of_many_lists_is_that_of_each_pair() -> None:
    random = np.random.default_rng(1)

    def lists() -> list[list[str]]:
        sizes = random.integers(0, 7, 400)
        return [[f"d{each}" for each in random.integers(0, 8, size)] for size in sizes]

    one, other = lists(), lists()
    first, second = (pl.Series(each, dtype=pl.List(pl.String)) for each in (one, other))
    found = rbo_of_lists(first, second, 0.8)
    alone = [rbo(*pair, 0.8).value for pair in zip(one, other, strict=True)]
    expected = np.array([np.nan if each is None else each for each in alone])
    assert np.isnan(expected).any()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
