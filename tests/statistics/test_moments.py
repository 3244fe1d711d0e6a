"""Sums that many machines add up: exact, and with intervals that cover what they should."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from findwell.statistics.intervals import interval
from findwell.statistics.moments import (
    ExactSum,
    Moments,
    bootstrap_limits,
    name_hashes,
    poisson_weights,
)
from tests.strategies import examples

NUMBERS = st.lists(st.floats(-1e9, 1e9, allow_nan=False), max_size=80)


@examples(50)
@given(NUMBERS, st.integers(1, 9))
def test_sums_are_those_of_fractions_however_they_are_cut(values: list[float], size: int) -> None:
    total = ExactSum()
    for start in range(0, len(values), size):
        part = ExactSum()
        part.add(values[start : start + size])
        total.add(part.compact())
    assert total.value == float(sum(map(Fraction, values), Fraction(0)))


def test_moments_of_parts_are_those_of_the_whole() -> None:
    values = np.random.default_rng(1).random(1000)
    whole, merged = Moments(), Moments()
    whole.add(values)
    for part in np.array_split(values, 7):
        each = Moments()
        each.add(part)
        merged.merge(each)
    assert whole.interval(0.95, (0, 1)) == merged.interval(0.95, (0, 1))
    assert whole.mean == pytest.approx(values.mean(), abs=1e-15)


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize(
    ("chances", "values"),
    [
        ([0.5, 0.5], [0.0, 1.0]),
        ([0.1, 0.9], [0.0, 1.0]),
        ([0.6, 0.2, 0.1, 0.1], [0.0, 0.1, 0.5, 1.0]),
        ([0.85, 0.05, 0.1], [0.0, 0.3, 0.5]),
    ],
)
def test_intervals_cover_the_truth(n: int, chances: list[float], values: list[float]) -> None:
    rng = np.random.default_rng(n)
    truth = float(np.dot(chances, values))
    inside = 0
    tries = 600
    for _ in range(tries):
        found = Moments()
        found.add(rng.choice(values, n, p=chances))
        span = found.interval(0.95, (0.0, 1.0))
        assert span.low is not None
        assert span.high is not None
        inside += span.low <= truth <= span.high
    assert inside / tries > 0.925  # 0.95, less three standard errors


def test_with_many_values_it_is_the_interval_of_one_machine() -> None:
    values = np.random.default_rng(2).beta(0.5, 2, 20_000)
    found = Moments()
    found.add(values)
    ours, theirs = found.interval(0.95, (0, 1)), interval(values)
    width = (theirs.high or 0) - (theirs.low or 0)
    assert ours.low == pytest.approx(theirs.low, abs=0.02 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.02 * width)


def test_what_says_nothing_has_no_limits() -> None:
    none = Moments()
    assert none.interval(0.95, (0, 1)).reason
    none.add(np.array([0.5]))
    assert none.interval(0.95, (0, 1)).low is None
    none.add(np.array([0.5]))
    equal = none.interval(0.95, (0, 1))
    assert equal.low is not None
    assert equal.low < 0.5
    assert none.interval(0.95, (0, math.inf)).reason
    assert bootstrap_limits([math.nan, 1.0], 0.95) is None


def test_a_bootstrap_by_names_agrees_with_moments() -> None:
    values = np.random.default_rng(3).beta(0.5, 2, 3000)
    weights = poisson_weights(name_hashes(range(3000)), 400)
    limits = bootstrap_limits(values @ weights / weights.sum(axis=0), 0.95)
    found = Moments()
    found.add(values)
    span = found.interval(0.95, (0, 1))
    assert limits is not None
    width = (span.high or 0) - (span.low or 0)
    assert limits == pytest.approx((span.low, span.high), abs=0.15 * width)
    again = poisson_weights(name_hashes(range(1500, 3000)), 400)
    assert (weights[1500:] == again).all()
