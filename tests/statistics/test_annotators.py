"""Agreement of several annotators: published examples, other libraries, properties."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from findwell.core.errors import InputError
from findwell.statistics.agreement import FORMULAS, agreement_of, kappa, prevalence_of

NAN = np.nan
TWO = [(0, 1), (0, 2), (1, 2)]
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", example C: 12 units, four
# observers, values 1 to 5, some missing
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
# Fleiss (1971), table 1: 30 patients, six psychiatrists each, five diagnoses
DIAGNOSES = """
444444 222555 233335 555555 222444 113333 333355 113334 114444 555555 144444 124444 222333 144444
224445 333335 111455 111112 224444 133555 555555 244444 224555 114444 144445 222224 111155 224444
133333 555555
"""


@pytest.mark.parametrize(
    ("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_2011(scale: str, value: float) -> None:
    found = agreement_of(EXAMPLE, f"alpha ({scale})")
    assert found.value == pytest.approx(value, abs=5e-4)
    assert found.n == 11  # a unit with one value cannot be paired
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high  # type: ignore[operator]


def test_fleiss_1971() -> None:
    patients = [[float(diagnosis) for diagnosis in word] for word in DIAGNOSES.split()]
    assert agreement_of(patients, "fleiss_kappa").value == pytest.approx(0.430, abs=5e-4)


def test_fleiss_as_statsmodels_has_it() -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rng = np.random.default_rng(3)
    for _ in range(5):
        ratings = rng.integers(0, 4, (40, 5)).astype(float)
        counts, _ = inter_rater.aggregate_raters(ratings)
        expected = inter_rater.fleiss_kappa(counts)
        assert agreement_of(ratings, "fleiss_kappa", samples=0).value == pytest.approx(expected)


def test_cohen_as_statsmodels_has_it() -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    first = np.array([0, 0, 1, 1, 2, 2, 3, 3, 1, 0])
    second = np.array([0, 1, 1, 1, 2, 3, 3, 3, 0, 0])
    counts = np.zeros((4, 4))
    np.add.at(counts, (first, second), 1)
    expected = inter_rater.cohens_kappa(counts).kappa
    assert kappa(first.tolist(), second.tolist()).value == pytest.approx(expected)
    both = np.column_stack([first, second])
    assert agreement_of(both, "cohen_kappa").value == pytest.approx(expected)


def test_cohen_of_several_is_the_mean_of_two() -> None:
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 2, (30, 3)).astype(float)
    ratings[:10, 0] = ratings[20:, 2] = NAN
    each = [kappa(ratings[:, a].tolist(), ratings[:, b].tolist()).value for a, b in TWO]
    expected = np.mean([value for value in each if value is not None])
    assert agreement_of(ratings, "cohen_kappa").value == pytest.approx(expected)


def test_gwet_on_the_skewed_example() -> None:
    """Gwet (2008): 125 subjects, 118 agreed positive; κ is below 0 and AC1 is .94.

    Two raters, cells 118, 5, 2, 0: pa .944, shares .972 and .028, pe 2·.972·.028 = .0544.
    """
    cells = {(1, 1): 118, (1, 0): 5, (0, 1): 2}
    ratings = [list(cell) for cell, count in cells.items() for _ in range(count)]
    assert agreement_of(ratings, "gwet_ac1").value == pytest.approx(0.9408, abs=5e-5)
    first, second = zip(*ratings, strict=True)
    assert kappa(first, second).value == pytest.approx(-0.0234, abs=5e-5)


def test_gwet_on_krippendorffs_example() -> None:
    """The value that the handbook of Gwet and its software report for these ratings."""
    assert agreement_of(EXAMPLE, "gwet_ac1").value == pytest.approx(0.77544, abs=5e-6)


def alpha_by_pairs(ratings: np.ndarray, scale: str) -> float:
    """Compute α pair by pair, as its definition says."""
    pairs: list[tuple[float, float, float]] = []
    for row in ratings:
        given = row[~np.isnan(row)]
        pairs += [(*pair, 1 / (len(given) - 1)) for pair in permutations(given.tolist(), 2)]
    values = np.array([first for first, _, _ in pairs])
    weights = np.array([weight for *_, weight in pairs])
    n = weights.sum()
    margin = {value: weights[values == value].sum() for value in np.unique(values)}

    def far(one: float, other: float) -> float:
        if scale == "nominal":
            return float(one != other)
        if scale == "interval":
            return (one - other) ** 2
        low, high = min(one, other), max(one, other)
        between = sum(count for value, count in margin.items() if low <= value <= high)
        return float(between - (margin[low] + margin[high]) / 2) ** 2

    met = sum(weight * far(one, other) for one, other, weight in pairs) / n
    expected = sum(
        margin[one] * margin[other] * far(one, other) for one in margin for other in margin
    ) / (n * (n - 1))
    return float(1 - met / expected)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_against_its_definition(scale: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(5):
        ratings = rng.integers(0, 4, (25, 4)).astype(float)
        ratings[rng.random(ratings.shape) < 0.3] = NAN
        found = agreement_of(ratings, f"alpha ({scale})", samples=0).value
        assert found == pytest.approx(alpha_by_pairs(ratings, scale))


@pytest.mark.parametrize("statistic", FORMULAS)
def test_properties(statistic: str) -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, (60, 1)).astype(float)
    same = np.repeat(truth, 3, axis=1)
    assert agreement_of(same, statistic, samples=0).value == pytest.approx(1.0)
    noisy = np.where(rng.random(same.shape) < 0.3, rng.integers(0, 3, same.shape), same)
    value = agreement_of(noisy, statistic).value
    shuffled = noisy[rng.permutation(60)][:, rng.permutation(3)]
    assert agreement_of(shuffled, statistic, samples=0).value == pytest.approx(value)
    lonely = np.vstack([noisy, np.full((1, 3), NAN)])
    assert agreement_of(lonely, statistic, samples=0).value == pytest.approx(value)
    chance = rng.integers(0, 2, (4000, 3)).astype(float)
    expected = 0.5 if statistic == "agreement" else 0.0
    assert agreement_of(chance, statistic, samples=0).value == pytest.approx(expected, abs=0.03)
    again = agreement_of(noisy, statistic)
    assert again == agreement_of(noisy, statistic)  # the same seed


@pytest.mark.parametrize("statistic", FORMULAS)
def test_undefined_with_a_reason(statistic: str) -> None:
    nothing = agreement_of([[1.0, NAN], [NAN, 0.0]], statistic)
    assert (nothing.value, nothing.reason) == (None, "no item has two labels")
    alone = agreement_of([[1.0, 0.0], [1.0, NAN]], statistic)
    assert alone.low is None
    same = agreement_of([[1, 1], [1, 1]], statistic)
    if statistic in ("agreement", "gwet_ac1"):
        assert same.value == 1.0
    else:
        assert (same.value, same.reason[:14]) == (None, "all labels are")


def test_labels_that_cannot_be_given() -> None:
    with pytest.raises(InputError, match="the label 5 is not one"):
        agreement_of([[5, 1]], "agreement", labels=[0, 1])


def test_labels_that_were_never_given_count_for_chance() -> None:
    ratings = [[0, 0], [1, 1], [0, 1], [1, 1]]
    two = agreement_of(ratings, "gwet_ac1", samples=0).value
    four = agreement_of(ratings, "gwet_ac1", labels=[0, 1, 2, 3], samples=0).value
    assert two is not None
    assert four is not None
    assert four > two


def test_prevalence() -> None:
    assert prevalence_of([[NAN, NAN]]) is None
    assert prevalence_of([[2, 1], [1, 0]], rel=2) == 0.25


@pytest.mark.slow
@pytest.mark.parametrize("statistic", FORMULAS)
def test_intervals_cover(statistic: str) -> None:
    """The figure of a large population lies in 95 % of the intervals of samples of 60 of it."""
    rng = np.random.default_rng(17)
    truth = rng.choice(3, 20_000, p=[0.6, 0.3, 0.1])
    ratings = np.repeat(truth[:, np.newaxis], 3, axis=1).astype(float)
    noise = rng.random(ratings.shape) < 0.25
    ratings[noise] = rng.integers(0, 3, int(noise.sum()))
    true = agreement_of(ratings, statistic, samples=0).value
    assert true is not None
    covered = 0
    for number in range(400):
        some = ratings[rng.choice(len(ratings), 60, replace=False)]
        found = agreement_of(some, statistic, samples=500, seed=number)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= true <= found.high
    assert 0.90 <= covered / 400 <= 0.98
