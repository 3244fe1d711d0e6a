"""Reliability, expected calibration error, Brier score: figures by hand, and what must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.statistics.calibration import Calibration, calibration
from tests.strategies import examples

CHANCES = [0.05, 0.15, 0.12, 0.55, 0.95, 0.91, 0.99, 1.0]
TRUE = [0, 0, 1, 1, 1, 1, 0, 1]


def calibrated(*given: Any, **options: Any) -> Calibration:
    found = calibration(*given, **options)
    assert found is not None
    return found


def test_figures_by_hand() -> None:
    found = calibrated(CHANCES, TRUE)
    bins = [(each.start, each.end, each.n) for each in found.bins]
    assert bins == [(0.0, 0.1, 1), (0.1, 0.2, 2), (0.5, 0.6, 1), (0.9, 1.0, 4)]
    assert [each.observed for each in found.bins] == [0.0, 0.5, 1.0, 0.75]
    means = [0.05, 0.135, 0.55, 0.9625]
    assert [each.predicted for each in found.bins] == pytest.approx(means)
    # (1 · 0.05 + 2 · 0.365 + 1 · 0.45 + 4 · 0.2125) / 8
    assert found.expected_calibration_error == pytest.approx(0.26)
    # 0.0025 + 0.0225 + 0.7744 + 0.2025 + 0.0025 + 0.0081 + 0.9801 + 0, over 8
    assert found.brier == pytest.approx(1.9926 / 8)
    assert found.uninformed == pytest.approx(5 / 8 * 3 / 8)
    assert found.brier_low is not None
    assert found.brier_high is not None
    assert found.brier_low < found.brier < found.brier_high
    for each in found.bins[1::2]:
        assert each.low is not None
        assert each.high is not None
        assert each.observed is not None
        assert 0 <= each.low < each.observed < each.high <= 1
    assert found.bins[0].low is None  # one pair says nothing about the spread


def test_limits_of_bins_belong_to_the_higher_bin() -> None:
    edges = [each / 10 for each in range(11)]
    found = calibrated(edges, [0] * 11).bins
    assert [each.n for each in found] == [1] * 9 + [2]
    assert [each.start for each in found] == edges[:-1]


def test_pairs_of_one_question_are_one_unit() -> None:
    chances, true = [0.8] * 40, [1, 1, 1, 0] * 10
    (apart,) = calibrated(chances, true).bins
    (together,) = calibrated(chances, sorted(true), clusters=[at // 10 for at in range(40)]).bins
    assert (apart.n, together.n, apart.observed) == (40, 40, together.observed)
    assert None not in (apart.low, together.low)
    assert together.low < apart.low  # type: ignore[operator]


def test_pairs_without_a_probability_are_left_out() -> None:
    found = calibration([0.5, np.nan, 0.5], [1, 1, 0])
    assert found is not None
    assert (found.n, found.brier, found.expected_calibration_error) == (2, 0.25, 0.0)
    assert calibration([np.nan], [1]) is None
    assert calibration([], []) is None


@pytest.mark.parametrize(
    ("chances", "true", "message"),
    [
        ([0.5], [1, 0], "1 probabilities were given for 2 outcomes"),
        ([1.5], [1], "not between 0 and 1"),
        ([0.5], [2], "neither 0 nor 1"),
    ],
)
def test_what_is_no_probability(chances: list[float], true: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibration(chances, true)


def test_there_is_a_bin() -> None:
    with pytest.raises(OptionError, match="the number of bins is 0"):
        calibration([0.5], [1], bins=0)


@examples(60)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), st.randoms())
def test_what_holds_for_any_probabilities(pairs: list[tuple[float, bool]], random: object) -> None:
    chances, true = ([each[side] for each in pairs] for side in (0, 1))
    found = calibrated(chances, true)
    error = found.expected_calibration_error
    assert 0 <= error <= 1
    # a single bin compares the means; more bins never find less
    one_bin = calibrated(chances, true, bins=1).expected_calibration_error
    assert one_bin == pytest.approx(abs(np.mean(chances) - np.mean(true)))
    assert error >= one_bin - 1e-12
    parts = sum(each.n * abs(each.predicted - (each.observed or 0.0)) for each in found.bins)
    assert error == pytest.approx(parts / len(pairs))
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = [[each[side] for each in shuffled] for side in (0, 1)]
    assert calibrated(*other).expected_calibration_error == pytest.approx(error)
    assert calibrated(*other).brier == pytest.approx(found.brier)
    assert Calibration.of(found.as_dict(), 0.95) == found
