"""Confidence sequences and capitals: against plain loops, widths, invariances, families."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.core.errors import InputError, OptionError
from findwell.statistics.sequential import (
    bernstein_sequence,
    betting_capital,
    e_bh,
    hedged_limits,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats

RNG = np.random.default_rng(11)
STREAMS = {
    "hits": (RNG.random(500) < 0.3).astype(float),
    "scores": RNG.beta(4, 2, 500),
    "rare": (RNG.random(500) < 0.02).astype(float),
}


def plain_bets(values: list[float], alpha: float) -> list[tuple[float, float]]:
    """Return the mean before each value and the size of the bet on it, as the paper writes them."""
    bets, total, squares = [], 0.0, 0.0
    mean, spread = 0.5, 0.25
    for t, x in enumerate(values, start=1):
        bets.append((mean, sqrt(2 * log(2 / alpha) / (t * log(1 + t) * spread))))
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        spread = (0.25 + squares) / (t + 1)
    return bets


def plain_bernstein(values: list[float], alpha: float) -> list[float]:
    """Return the lower limits, not intersected."""
    lows, weights, sums, loss = [], 0.0, 0.0, 0.0
    for x, (mean, size) in zip(values, plain_bets(values, alpha), strict=True):
        bet = min(size, 0.5)
        weights, sums = weights + bet, sums + bet * x
        loss += (-log(1 - bet) - bet) * (x - mean) ** 2
        lows.append((sums - log(2 / alpha) - loss) / weights)
    return lows


@pytest.mark.parametrize("stream", STREAMS)
def test_bernstein_is_the_formula(stream: str) -> None:
    values = STREAMS[stream]
    low, high = bernstein_sequence(values, alpha=0.1)
    expected = np.maximum.accumulate(np.maximum(plain_bernstein(values.tolist(), 0.1), 0))
    np.testing.assert_allclose(low, expected, rtol=1e-9, atol=1e-12)
    mirrored = plain_bernstein((1 - values).tolist(), 0.1)
    expected = np.minimum.accumulate(np.minimum(1 - np.array(mirrored), 1))
    np.testing.assert_allclose(high, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stream", STREAMS)
def test_hedged_keeps_the_means_that_no_capital_has_refuted(stream: str) -> None:
    values, alpha = STREAMS[stream][:200].tolist(), 0.05
    bets = plain_bets(values, alpha)
    kept = dict.fromkeys(np.linspace(0, 1, 51), True)
    capital = dict.fromkeys(kept, (1.0, 1.0))
    for t, (x, (_, size)) in enumerate(zip(values, bets, strict=True), start=1):
        for m, (more, less) in capital.items():
            up = min(size, 0.5 / m) if m else size
            down = min(size, 0.5 / (1 - m)) if m < 1 else size
            capital[m] = more * (1 + up * (x - m)), less * (1 - down * (x - m))
            kept[m] &= max(capital[m]) / 2 < 1 / alpha
        if t % 10 == 0:
            inside = [m for m, keep in kept.items() if keep]
            low, high = hedged_limits(values[:t], alpha=alpha)
            assert max(min(inside) - 0.02, 0) <= low + 1e-9 <= min(inside) + 2e-9
            assert max(inside) - 2e-9 <= high - 1e-9 <= min(max(inside) + 0.02, 1)


def test_widths_are_those_of_the_published_method() -> None:
    """Medians over samples of 500; single samples of the facts page lie around them."""
    rng = np.random.default_rng(5)
    samples = {
        "hits": ((rng.random((500, 40)) < 0.3).astype(float), 0.148, 0.144),
        "scores": (rng.beta(4, 2, (500, 40)), 0.054, 0.046),
        "rare": ((rng.random((500, 40)) < 0.02).astype(float), 0.041, 0.036),
    }
    for table, bernstein, hedged in samples.values():
        low, high = bernstein_sequence(table)
        assert np.median(high[-1] - low[-1]) == pytest.approx(bernstein, rel=0.08)
        limits = [hedged_limits(column) for column in table.T]
        found = np.median([high - low for low, high in limits])
        assert found == pytest.approx(hedged, rel=0.1)


def hedged(values: Floats) -> tuple[Floats, Floats]:
    """Return the limits after every value."""
    low, high = np.array([hedged_limits(values[: t + 1]) for t in range(len(values))]).T
    return low, high


def test_all_limits_are_nested_and_mirrored() -> None:
    values = STREAMS["scores"][:80]
    for sequence in (bernstein_sequence, hedged):
        low, high = sequence(values)
        assert all(a <= b for a, b in pairwise(low))
        assert all(a >= b for a, b in pairwise(high))
        turned = sequence(1 - values)
        np.testing.assert_allclose(turned[0], 1 - high, atol=1e-9)
        np.testing.assert_allclose(turned[1], 1 - low, atol=1e-9)


def test_undefined_values_are_looks_without_a_bet() -> None:
    values = STREAMS["scores"][:60]
    gaps = np.insert(values, [0, 10, 10, 60], np.nan)
    kept = ~np.isnan(gaps)
    for sequence in (bernstein_sequence, hedged):
        np.testing.assert_allclose(np.array(sequence(gaps))[:, kept], np.array(sequence(values)))
    assert hedged_limits(gaps) == pytest.approx(hedged_limits(values))
    np.testing.assert_allclose(betting_capital(gaps, 0.7)[kept], betting_capital(values, 0.7))
    assert hedged_limits([]) == hedged_limits([np.nan]) == (0.0, 1.0)
    low, high = bernstein_sequence([np.nan, 1.0])
    assert (low[0], high[0]) == (0.0, 1.0)


def test_streams_side_by_side_are_as_each_alone() -> None:
    table = np.column_stack([STREAMS["hits"], STREAMS["scores"]])
    for at in range(2):
        np.testing.assert_array_equal(
            betting_capital(table, 0.4)[:, at], betting_capital(table[:, at], 0.4)
        )
        np.testing.assert_array_equal(
            bernstein_sequence(table)[0][:, at], bernstein_sequence(table[:, at])[0]
        )


def test_capital_grows_only_on_the_side_that_is_true() -> None:
    low = STREAMS["hits"]  # mean near 0.3
    assert betting_capital(low, 0.6)[-1] > log(1e6)
    assert betting_capital(low, 0.6, side="above").max() < log(20)
    assert betting_capital(1 - low, 0.4, side="above")[-1] == pytest.approx(
        betting_capital(low, 0.6)[-1]
    )
    both = betting_capital(low, 0.6, side="both")[-1]
    assert both == pytest.approx(betting_capital(low, 0.6)[-1] - log(2))
    extreme = np.array(
        [betting_capital([0.0] * 5000, 1.0)[-1], betting_capital([1.0] * 9, 0.0)[-1]]
    )
    assert np.isfinite(extreme).all()
    assert extreme[0] > 1000  # as a capital it would be infinite
    assert extreme[1] <= 0


def test_families_of_claims() -> None:
    assert e_bh([]) == ()
    assert e_bh([log(20)], 0.05) == (True,)
    assert e_bh([log(19.9)], 0.05) == (False,)
    assert e_bh(np.log([40.0, 40.0]), 0.05) == (True, True)
    assert e_bh(np.log([20.0, 20.0]), 0.05) == (True, True)
    assert e_bh(np.log([39.0, 19.0]), 0.05) == (False, False)
    assert e_bh([1e4, -np.inf], 0.05) == (True, False)
    order = RNG.permutation(30)
    evidence = RNG.normal(3, 2, 30)
    assert np.array(e_bh(evidence))[order].tolist() == list(e_bh(evidence[order]))


def test_what_cannot_be_bet_on_is_refused() -> None:
    with pytest.raises(InputError, match="not between 0 and 1"):
        bernstein_sequence([0.5, 1.5])
    with pytest.raises(InputError, match="infinite"):
        hedged_limits([np.inf])
    with pytest.raises(InputError, match=r"mean 1\.2"):
        betting_capital([0.5], 1.2)
    with pytest.raises(OptionError, match="side"):
        betting_capital([0.5], 0.2, side="under")
    with pytest.raises(OptionError, match="error rate"):
        hedged_limits([0.5], alpha=0)
