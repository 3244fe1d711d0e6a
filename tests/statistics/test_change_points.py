"""Change detectors and ranks: against recursions and counting, where the change is put."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from findwell.core.errors import InputError
from findwell.statistics.sequential import (
    BET_SHARES,
    change_evidence,
    change_point,
    conformal_ranks,
    cusum,
    shiryaev_roberts,
)

RNG = np.random.default_rng(3)
VALUES = RNG.beta(4, 2, 300)


def recursions(values: np.ndarray, mean: float) -> np.ndarray:
    """Return the three detectors after each value, from their recursions."""
    sizes = np.array(BET_SHARES) / (1 - mean)
    roberts, best, waiting = np.zeros(len(sizes)), np.zeros(len(sizes)), 1.0
    begun = np.zeros(len(sizes))
    rows = []
    for t, x in enumerate(values, start=1):
        gain = 1 + sizes * (mean - x)
        left = 1 / (1 + log(1 + t))
        roberts = (roberts + 1) * gain
        best = np.maximum(best, 1) * gain
        begun = (begun + waiting - left) * gain
        waiting = left
        rows.append([roberts.mean(), best.mean(), begun.mean() + waiting])
    return np.log(rows)


def test_detectors_are_their_recursions() -> None:
    found = [method(VALUES, 0.6) for method in (shiryaev_roberts, cusum, change_evidence)]
    np.testing.assert_allclose(
        np.column_stack(found), recursions(VALUES, 0.6), rtol=1e-9, atol=1e-9
    )
    turned = [method(1 - VALUES, 0.4, side="above") for method in (shiryaev_roberts, cusum)]
    np.testing.assert_allclose(
        np.column_stack(turned), recursions(VALUES, 0.6)[:, :2], rtol=1e-9, atol=1e-9
    )
    both = change_evidence(VALUES, 0.6, side="both")
    halves = [change_evidence(VALUES, 0.6, side=side) for side in ("below", "above")]
    np.testing.assert_allclose(both, np.logaddexp(*halves) - log(2))


def test_long_streams_and_extremes_stay_finite() -> None:
    falling = np.zeros(20_000)
    for method in (shiryaev_roberts, cusum, change_evidence):
        for mean in (0.0, 0.5, 1.0):
            assert np.isfinite(method(falling, mean)).all()
            assert np.isfinite(method(1 - falling, mean, side="both")).all()
    assert change_evidence(falling, 0.5)[-1] > 1000
    assert len(change_evidence([], 0.5)) == 0
    assert change_point([], 0.5) is None


def test_undefined_values_and_columns() -> None:
    gaps = np.insert(VALUES, [0, 7, 300], np.nan)
    for method in (shiryaev_roberts, cusum, change_evidence):
        whole = method(VALUES, 0.6)
        np.testing.assert_allclose(method(gaps, 0.6)[~np.isnan(gaps)], whole)
        table = np.column_stack([VALUES[::-1], VALUES])
        np.testing.assert_array_equal(method(table, 0.6)[:, 1], whole)


def test_the_start_of_a_change_is_found() -> None:
    rng = np.random.default_rng(8)
    for before, after, side in ((0.8, 0.4, "below"), (0.02, 0.2, "above"), (0.8, 0.4, "both")):
        starts = []
        for _ in range(20):
            values = rng.random(500) < np.where(np.arange(500) < 400, before, after)
            found = change_point(values, before, side=side)
            assert found is not None
            starts.append(found.start)
        assert abs(np.median(starts) - 400) <= 10


def test_ranks_count_what_came_before() -> None:
    values, reference = RNG.normal(size=120), RNG.normal(size=30)
    ranks = conformal_ranks(values, reference)
    for t, x in enumerate(values):
        earlier = np.concatenate([reference, values[:t]])
        smaller = (earlier < x).sum()
        among = len(earlier) + 1
        assert smaller / among <= ranks[t] <= (smaller + 1) / among
    gaps = conformal_ranks(np.insert(values, 5, np.nan), np.append(reference, np.nan))
    assert np.isnan(gaps[5])
    np.testing.assert_allclose(np.delete(gaps, 5), ranks)
    np.testing.assert_allclose(conformal_ranks(np.exp(values), np.exp(reference)), ranks)
    with pytest.raises(InputError):
        conformal_ranks(np.zeros((2, 2)), reference)


def test_equal_values_are_no_change() -> None:
    ranks = conformal_ranks(np.full(2000, 3.0), np.full(50, 3.0))
    assert abs(ranks.mean() - 0.5) < 0.03
    assert change_evidence(ranks, 0.5, side="both").max() < log(20)
    moved = conformal_ranks(np.full(60, 2.0), np.full(500, 3.0))
    assert change_evidence(moved, 0.5)[-1] > log(20)


def test_a_rank_stays_as_it_was_when_more_values_come() -> None:
    """Else every look would draw anew, and one of many looks would find chance on its side."""
    values = np.random.default_rng(4).normal(size=80).round(1)
    ranks = conformal_ranks(values, [0.1, -0.4, 0.1])
    for count in (1, 17, 50):
        assert conformal_ranks(values[:count], [0.1, -0.4, 0.1]).tolist() == ranks[:count].tolist()


def test_values_that_are_gone_take_their_money_with_them() -> None:
    whole = change_evidence(VALUES, 0.6)
    for gone in (1, 20, len(VALUES) - 1):
        rest = change_evidence(VALUES[gone:], 0.6, earlier=gone)
        assert (rest <= whole[gone:] + 1e-9).all()
        anew = change_evidence(VALUES[gone:], 0.6)
        assert rest[0] < anew[0]
    late = np.concatenate([VALUES, np.zeros(60)])
    kept = change_evidence(late[len(VALUES) :], 0.6, earlier=len(VALUES))
    assert kept[-1] > log(20)  # a change is still found
