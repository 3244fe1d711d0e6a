"""Intervals of quantiles: against scipy, and by how often they hold the true value."""

import numpy as np
import pytest

from findwell.statistics.intervals import TOO_FEW_QUERIES, quantile_interval
from tests.lazy import lazy

scipy_stats = lazy("scipy.stats")


@pytest.mark.parametrize("n", [1, 5, 20, 59, 60, 500, 20_000])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_ranks_are_those_of_the_binomial(n: int, share: float) -> None:
    """The lowest and highest ranks outside of which lies at most 2.5 % on either side."""
    found = quantile_interval(np.arange(1, n + 1), share)
    low = int(scipy_stats.binom.ppf(0.025, n, share))
    high = int(scipy_stats.binom.ppf(0.975, n, share)) + 1
    assert found.low == (low if low >= 1 else None)
    assert found.high == (high if high <= n else None)
    assert found.value == pytest.approx(np.quantile(np.arange(1, n + 1), share))
    assert (found.reason == TOO_FEW_QUERIES) == (found.low is None or found.high is None)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_true_quantile_is_held(share: float) -> None:
    generator = np.random.default_rng(7)
    true = float(-np.log(1 - share))  # of an exponential distribution
    held = 0
    for _ in range(2000):
        found = quantile_interval(generator.exponential(size=100), share)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= true <= found.high
    assert held / 2000 > 0.94


def test_order_and_scale() -> None:
    values = np.random.default_rng(3).random(50)
    one, other = quantile_interval(values, 0.9), quantile_interval(values[::-1] * 10, 0.9)
    assert other.value == pytest.approx(10 * (one.value or 0))
    assert quantile_interval([], 0.9).value is None
