"""Scores scaled list by list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.core.errors import FindwellError, InputError, OptionError
from findwell.loop.tuning import NORMALISERS
from findwell.loop.tuning.formulas import ScoreLists, scale_lists

LOWEST = -2.0
# each formula once more, over one list that differs
FORMULAS: dict[str, Callable[[Any], Any]] = {
    "mm": lambda x: (x - x.min()) / (x.max() - x.min()),
    "tmm": lambda x: (x - LOWEST) / (x.max() - LOWEST),
    "z": lambda x: (x - x.mean()) / x.std(),
    "dbsf": lambda x: (x - x.mean() + 3 * x.std()) / (6 * x.std()),
}
SCORES = st.integers(-200, 1000).map(lambda number: number / 100)
LISTS = st.lists(st.lists(st.one_of(SCORES, st.just(float("nan"))), min_size=1, max_size=6))


def normalise(
    scores: np.ndarray[Any, Any],
    numbers: np.ndarray[Any, Any] | None = None,
    how: str = "mm",
    lowest: float | None = None,
) -> np.ndarray[Any, Any]:
    query = np.zeros(len(scores), dtype=np.int64) if numbers is None else numbers
    return scale_lists(ScoreLists(scores, query), how, lowest)


def alone(values: np.ndarray[Any, Any], how: str) -> list[float]:
    """Scale one list by itself."""
    known = values[~np.isnan(values)]
    least = LOWEST if how == "tmm" else known.min(initial=np.inf)
    if not len(known) or known.max() == least:
        return [float("nan")] * len(values)
    scaled = np.full(len(values), np.nan)
    scaled[~np.isnan(values)] = FORMULAS[how](known)
    return scaled.tolist()


@pytest.mark.parametrize("how", NORMALISERS)
@given(lists=LISTS)
@settings(deadline=None)
def test_many_lists_at_once_are_each_alone(how: str, lists: list[list[float]]) -> None:
    numbers = np.repeat(np.arange(len(lists)) * 3, [len(each) for each in lists])  # with gaps
    scores = np.array([score for each in lists for score in each], dtype=float)
    before = scores.copy()
    found = normalise(scores, numbers, how, lowest=LOWEST)
    expected = [value for each in lists for value in alone(np.array(each), how)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(scores, before)


def test_what_every_formula_promises() -> None:
    scores = np.array([5, 3, 1, 0.4, 0.2])
    scaled = {how: normalise(scores, how=how, lowest=0.0) for how in NORMALISERS}
    assert (scaled["mm"].min(), scaled["mm"].max()) == (0, 1)
    assert scaled["tmm"].max() == 1
    assert scaled["tmm"].min() == pytest.approx(0.04)
    assert scaled["z"].mean() == pytest.approx(0)
    assert scaled["z"].std() == pytest.approx(1)
    np.testing.assert_allclose(scaled["dbsf"], scaled["z"] / 6 + 0.5)


@pytest.mark.parametrize("how", NORMALISERS)
@pytest.mark.parametrize("score", [0.0, 0.1, 1e300, 7.3])
def test_equal_scores_say_nothing(how: str, score: float) -> None:
    # 0.1 has a standard deviation by rounding: its mean is not 0.1
    assert np.isnan(normalise(np.full(3, score), how=how, lowest=score)).all()
    assert np.isnan(normalise(np.array([score]), how=how, lowest=score)).all()


def test_one_document_above_the_lowest_is_the_best() -> None:
    assert normalise(np.array([0.3]), how="tmm", lowest=-1.0).tolist() == [1.0]


def test_nothing_to_scale() -> None:
    assert normalise(np.array([])).tolist() == []
    assert np.isnan(normalise(np.full(2, np.nan), how="tmm", lowest=0.0)).all()


@pytest.mark.parametrize("how", ["z", "dbsf"])
def test_a_difference_too_small_to_square(how: str) -> None:
    assert np.isnan(normalise(np.array([1e-200, 2e-200]), how=how)).all()


@pytest.mark.parametrize(
    ("scores", "how", "lowest", "error", "message"),
    [
        ([1.0, 2.0], "tmm", None, OptionError, "tmm needs the lowest score"),
        ([-3.0, -2.0], "tmm", 0.0, OptionError, "all scores of a query lie below 0"),
        ([np.inf, 1.0], "mm", None, InputError, "infinite, or too far apart"),
        ([-np.inf, 1.0], "z", None, InputError, "infinite, or too far apart"),
        ([-1e308, 1e308], "mm", None, InputError, "infinite, or too far apart"),
    ],
)
def test_what_cannot_be_scaled(
    scores: list[float], how: str, lowest: float | None, error: type[FindwellError], message: str
) -> None:
    with pytest.raises(error, match=message):
        normalise(np.array(scores), how=how, lowest=lowest)
