"""The difference of two κ against the same truth: values by hand, p-values, what must hold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from findwell.statistics.agreement import kappa, kappa_difference

TRUTH = [1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0]
GOOD = [1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]
POOR = [0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1]


def test_it_is_the_difference_of_the_two_values() -> None:
    found = kappa_difference(GOOD, POOR, TRUTH)
    one, other = kappa(GOOD, TRUTH).value, kappa(POOR, TRUTH).value
    assert one is not None
    assert other is not None
    assert found.value == pytest.approx(one - other)
    assert (found.n, found.units) == (12, 12)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high  # type: ignore[operator]
    back = kappa_difference(POOR, GOOD, TRUTH)
    assert back.value == pytest.approx(-found.value)  # type: ignore[operator]
    assert back.low == pytest.approx(-found.high)
    assert back.p_value == found.p_value


def test_the_p_value_is_that_of_all_exchanges() -> None:
    """All 2 ** 12 exchanges of single items, one by one, agree with the random ones."""
    one, other, truth = (np.array(each) for each in (GOOD, POOR, TRUTH))

    def apart(swap: np.ndarray) -> float:
        sides = np.where(swap, other, one), np.where(swap, one, other)
        values = [kappa(side.tolist(), truth.tolist()).value or 0.0 for side in sides]
        return values[0] - values[1]

    differ = np.flatnonzero(one != other)
    seen = []
    for chosen in product([False, True], repeat=len(differ)):
        swap = np.zeros(12, dtype=bool)
        swap[differ] = chosen
        seen.append(abs(apart(swap)))
    exact = np.mean(np.array(seen) >= abs(apart(np.zeros(12, dtype=bool))) - 1e-12)
    found = kappa_difference(GOOD, POOR, TRUTH)
    assert found.p_value == pytest.approx(exact, abs=0.01)


def test_pairs_of_one_question_are_exchanged_together() -> None:
    single = kappa_difference(GOOD, POOR, TRUTH)
    grouped = kappa_difference(GOOD, POOR, TRUTH, clusters=list("aaaabbbbcccc"))
    assert grouped.value == single.value
    assert grouped.units == 3
    assert grouped.p_value == pytest.approx(0.25, abs=0.02)  # 2 of the 8 exchanges of questions
    assert grouped.high - grouped.low > single.high - single.low  # type: ignore[operator]


def test_where_there_is_no_difference() -> None:
    same = kappa_difference(GOOD, GOOD, TRUTH)
    assert (same.value, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert kappa_difference([], [], []).reason == "no item has a label in both"
    assert kappa_difference([1, 1], [1, 0], [1, 1]).value is None
    alone = kappa_difference(GOOD, POOR, TRUTH, clusters=["q"] * 12)
    assert alone.value is not None
    assert (alone.low, alone.p_value) == (None, None)
    assert alone.reason == "one question says nothing about the spread"
