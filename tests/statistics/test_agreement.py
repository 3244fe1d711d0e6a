"""Labels: published kappas, statsmodels, degenerate tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.statistics.agreement import (
    NO_LABEL,
    ONE_LABEL,
    ONE_SIDED,
    confusion,
    kappa,
    kappa_of,
)
from tests.lazy import lazy
from tests.strategies import examples

inter_rater = lazy("statsmodels.stats.inter_rater")

# Fleiss, Cohen and Everitt 1969: two raters and three categories, shares of 200 items
FLEISS = np.array([[53, 5, 2], [11, 14, 5], [1, 6, 3]]) * 2


def labels_of(
    table: np.ndarray, names: tuple[float | str, ...]
) -> tuple[list[float | str], list[float | str]]:
    first = [names[i] for i, row in enumerate(table) for n in row for _ in range(n)]
    second = [names[j] for row in table for j, n in enumerate(row) for _ in range(n)]
    return first, second


def test_the_kappa_of_fleiss_cohen_and_everitt() -> None:
    first, second = labels_of(FLEISS, ("a", "b", "c"))
    found = kappa(first, second)
    assert found.value == pytest.approx(0.429, abs=5e-4)
    assert found.agreement == pytest.approx(0.70)
    assert found.confusion.counts == tuple(map(tuple, FLEISS.tolist()))
    assert found.low is not None
    assert found.high is not None
    # their standard error is 0.054; a further item, which may be the worst, widens the interval
    assert 0.054 < (found.high - found.low) / 2 / 1.96 < 0.06


def test_the_kappa_of_cohens_paper() -> None:
    # Cohen 1960, table 1, as counts of 200 items
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    first, second = labels_of(table, (1.0, 2.0, 3.0))
    assert kappa(first, second).value == pytest.approx(0.492, abs=5e-4)


@examples(60)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60),
    weights=st.sampled_from(["none", "linear", "quadratic"]),
    level=st.sampled_from([0.9, 0.95]),
)
def test_kappa_is_statsmodels(pairs: list[tuple[int, int]], weights: str, level: float) -> None:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    found = kappa(first, second, weights=weights, level=level)
    table = np.array(found.confusion.counts)
    names = found.confusion.labels
    if len(names) < 2:
        assert (found.value, found.reason) == (None, ONE_LABEL)
        return
    how = {} if weights == "none" else {"weights": np.array(names), "wt": weights}
    with np.errstate(all="ignore"):
        theirs = inter_rater.cohens_kappa(table, **how)
    assert found.value == pytest.approx(theirs.kappa, abs=1e-12)
    assert table.sum() == len(pairs)
    swapped = kappa(second, first, weights=weights, level=level)
    assert swapped.value == pytest.approx(found.value, abs=1e-12)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert (found.low, found.high, found.reason) == (None, None, ONE_SIDED)
        return
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert -1 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0.05


def test_weights_follow_the_values_of_the_labels() -> None:
    near, far = [0, 0, 3, 3, 1], [0, 1, 3, 3, 0]
    linear = kappa(near, far, weights="linear").value
    plain = kappa(near, far).value
    assert linear is not None
    assert plain is not None
    assert linear > plain  # the mistakes are by 1 of 3
    words = kappa(["a", "b", "c"], ["a", "c", "c"], weights="linear")
    numbers = kappa([0, 1, 2], [0, 2, 2], weights="linear")
    assert words.value == numbers.value


def test_missing_labels_are_left_out_and_counted() -> None:
    found = confusion([1, None, 2, float("nan"), 2], [1, 1, None, 1, 1])
    assert (found.n, found.left_out) == (2, 3)
    assert found.labels == (1, 2)
    assert found.counts == ((1, 0), (1, 0))
    assert confusion([True, False], [True, True]).labels == (False, True)
    assert confusion(["né", "ok"], ["né", "né"]).counts == ((1, 0), (1, 0))


def test_edges() -> None:
    nothing = kappa([], [])
    assert (nothing.value, nothing.agreement, nothing.reason) == (None, None, NO_LABEL)
    assert nothing.confusion.labels == ()
    same = kappa(["yes"] * 5, ["yes"] * 5)
    assert (same.value, same.agreement, same.reason) == (None, 1.0, ONE_LABEL)
    perfect = kappa([0, 1, 0, 1], [0, 1, 0, 1])
    assert (perfect.value, perfect.high, perfect.reason) == (1.0, 1.0, "")
    assert perfect.low is not None
    assert perfect.low < 0  # four items are few
    opposite = kappa([0, 1, 0, 1], [1, 0, 1, 0])
    assert opposite.value == pytest.approx(-1.0)
    blind = kappa([0, 1, 0, 1], [0, 0, 0, 0])
    assert blind.value == pytest.approx(0.0)
    assert (blind.low, blind.reason) == (None, ONE_SIDED)


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="2 labels cannot be paired with 1"):
        confusion([1, 2], [1])
    with pytest.raises(OptionError, match="some labels are words and some are numbers"):
        kappa(["1", "2"], [1, 2])
    with pytest.raises(OptionError, match="unknown weights 'cubic'"):
        kappa([1], [1], weights="cubic")


@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_what_an_item_does_to_kappa(weights: str) -> None:
    counts = np.array([[20.0, 3, 1], [4, 15, 2], [0, 5, 10]])
    grades = np.arange(3.0)
    apart = np.abs(grades[:, np.newaxis] - grades)
    apart = apart**2 if weights == "quadratic" else np.minimum(apart, 1)
    value, influence = kappa_of(counts, apart)
    assert (influence * counts).sum() == pytest.approx(0, abs=1e-9)
    for cell in np.ndindex(3, 3):
        more = counts.copy()
        more[cell] += 1e-6
        slope = (kappa_of(more, apart)[0] - value) / 1e-6 * counts.sum()
        assert slope == pytest.approx(influence[cell], rel=1e-3, abs=1e-4)
