"""The choice held against the truth, in a small version of that of docs/tuning-honesty.md."""

from __future__ import annotations

import pytest

from tests.tuning.simulation import population, simulate


@pytest.mark.slow
def test_the_value_held_out_is_honest_and_the_one_in_sample_is_not() -> None:
    populations = [population(seed, queries=1_500) for seed in range(6)]
    for size in (10, 30, 100):
        found = simulate(size, populations, 40)
        assert found.optimism > 0.003
        assert abs(found.held_out) < 0.015
        assert abs(found.held_out) < found.optimism
        assert found.covered >= 0.92
        assert found.false_alarms <= 0.03
        assert found.loss <= found.loss_argmax + 0.001  # bagging costs nothing


def test_the_population_is_as_described() -> None:
    values = population(0, queries=200, depth=20)
    assert values.shape == (101, 200)
    assert 0 <= values.min() <= values.max() <= 1
    assert values.mean(axis=1).max() > max(values[0].mean(), values[-1].mean())
