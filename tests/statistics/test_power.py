"""Power: against statsmodels, published tables, and its own inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.statistics.paired import paired
from findwell.statistics.sample_size import (
    NO_DIFFERENCE,
    NO_SPREAD,
    OUT_OF_REACH,
    TOO_FEW,
    TOO_MANY,
    PlannedComparison,
    sd_of_difference,
    spread,
)
from tests.lazy import lazy
from tests.statistics.scores import limits
from tests.strategies import examples

stats = lazy("scipy.stats")
power_of_others = lazy("statsmodels.stats.power")


@pytest.mark.parametrize(
    ("effect", "power", "queries"),
    # two-sided paired t at 5 %, as G*Power 3 has it: small, medium and large effects
    [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.2, 0.95, 327), (0.5, 0.95, 54)],
)
def test_queries_needed_as_in_the_tables(effect: float, power: float, queries: int) -> None:
    assert PlannedComparison(1.0, power=power).queries_needed(effect).value == queries
    assert PlannedComparison(0.1, power=power).queries_needed(-effect / 10).value == queries


@pytest.mark.parametrize("queries", [5, 50, 500])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_detectable_differences_are_statsmodels(queries: int, alpha: float) -> None:
    theirs = power_of_others.TTestPower().solve_power(nobs=queries, alpha=alpha, power=0.9)
    found = PlannedComparison(0.2, power=0.9, alpha=alpha).detectable_difference(queries)
    assert found.value == pytest.approx(0.2 * float(np.ravel(theirs)[0]), rel=1e-5)


@pytest.mark.parametrize("queries", [2, 3, 10, 100, 10_000])
@pytest.mark.parametrize("effect", [1e-4, 0.05, 0.5])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2])
def test_the_power_is_that_of_statsmodels(queries: int, effect: float, alpha: float) -> None:
    theirs = float(power_of_others.TTestPower().power(effect, queries, alpha))
    assert PlannedComparison(1.0, alpha=alpha).power_at(queries, effect).value == pytest.approx(
        theirs, abs=1e-9
    )


@examples(8)
@given(
    difference=st.floats(0.001, 3),
    sd=st.floats(0.01, 1),
    power=st.floats(0.1, 0.99),
    alpha=st.floats(0.001, 0.09),
)
def test_the_three_questions_have_one_answer(
    difference: float, sd: float, power: float, alpha: float
) -> None:
    needed = PlannedComparison(sd, power=power, alpha=alpha).queries_needed(difference).value
    assert needed is not None
    queries = int(needed)
    enough = PlannedComparison(sd, alpha=alpha).power_at(queries, difference).value
    assert enough is not None
    assert enough >= power - 1e-9
    if queries > 2:
        fewer = PlannedComparison(sd, alpha=alpha).power_at(queries - 1, difference).value
        assert fewer is not None
        assert fewer < power
    seen = PlannedComparison(sd, power=power, alpha=alpha).detectable_difference(queries).value
    assert seen is not None
    assert seen <= difference * (1 + 1e-6)


@pytest.mark.parametrize(("queries", "effect", "alpha"), [(3, 8.0, 1e-4), (5, 5.0, 1e-4)])
def test_where_the_non_central_t_gives_up(queries: int, effect: float, alpha: float) -> None:
    assert np.isnan(power_of_others.TTestPower().power(effect, queries, alpha))
    draws = np.random.default_rng(1).normal(effect, 1, (200_000, queries))
    rejected = stats.ttest_1samp(draws, 0, axis=1).pvalue < alpha
    found = PlannedComparison(1.0, alpha=alpha).power_at(queries, effect).value
    assert found == pytest.approx(rejected.mean(), abs=0.005)


def test_power_rises_without_a_jump() -> None:
    for queries in (2, 10, 10**6):
        for alpha in (0.05, 1e-4):
            powers = [
                PlannedComparison(1.0, alpha=alpha).power_at(queries, x).value
                for x in np.geomspace(1e-4, 1e4, 25)
            ]
            assert np.all(np.diff(np.array(powers, dtype=float)) > -1e-6)
            assert powers[0] == pytest.approx(alpha, abs=0.01)


@pytest.mark.parametrize("queries", [10, 30, 200, 1_500])
def test_the_expected_width_is_the_average_one(queries: int) -> None:
    rng = np.random.default_rng([2, queries])
    smooth = {sd: rng.normal(0, sd, (queries, 300)).clip(-1, 1) for sd in (0.05, 0.1, 0.3)}
    for sd, moved in smooth.items():
        found = PlannedComparison(sd, alpha=0.1).expected_width(queries).value
        assert found == pytest.approx(mean_width(moved, 0.9), rel=0.1)
    for changed in (0.05, 0.3):
        chance = rng.random((queries, 300))
        moved = (chance < changed / 2) * 1.0 - (chance > 1 - changed / 2)
        found = PlannedComparison(np.sqrt(changed), changed=changed).expected_width(queries).value
        assert found == pytest.approx(mean_width(moved, 0.95), rel=0.08)


def mean_width(moved: np.ndarray, level: float) -> float:
    """Return how wide the intervals of columns of differences are."""
    room = np.maximum(-moved, 0)
    found = [each.difference for each in paired(room, room + moved, level=level, permutations=400)]
    return float(np.mean([high - low for low, high in map(limits, found)]))


def test_the_curve() -> None:
    points = PlannedComparison(0.1).curve(0.02)
    assert points[0].queries == 10
    assert points[-1].queries == 2 * 199
    assert [point.queries for point in points] == sorted({point.queries for point in points})
    for point in points:
        assert point.power == PlannedComparison(0.1).power_at(point.queries, 0.02).value
        assert point.detectable == PlannedComparison(0.1).detectable_difference(point.queries).value
        assert point.width == PlannedComparison(0.1).expected_width(point.queries).value
    assert [point.queries for point in PlannedComparison(0.1).curve(0.02, [30, 1])] == [30, 1]
    assert PlannedComparison(0.1).curve(0.02, [1])[0].power is None
    assert len(PlannedComparison(0.1).curve(0.0)) > 3


def test_spread_of_observed_differences() -> None:
    differences = np.random.default_rng(3).normal(0, 0.2, 50)
    found = spread(np.append(differences, np.nan))
    assert found.sd == pytest.approx(differences.std(ddof=1))
    assert found.changed is None
    assert spread([0.1]).reason == TOO_FEW
    assert spread([0.1, 0.1]).sd == 0.0
    assert spread([1.0, 0.0, np.nan, -1.0, 0.0]).changed == 0.5
    assert spread([0.0, 0.0]).changed is None  # no change says nothing about the measure


def test_power_of_hit_or_miss_by_enumeration() -> None:
    queries, difference, changed, alpha = 9, 0.35, 0.6, 0.2
    won, lost = (changed + difference) / 2, (changed - difference) / 2
    total = 0.0
    for wins in range(queries + 1):
        for losses in range(queries + 1 - wins):
            chance = stats.multinomial.pmf(
                [wins, losses, queries - wins - losses], queries, [won, lost, 1 - changed]
            )
            p = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
            total += chance * (p <= alpha)
    sd = float(np.sqrt(changed - difference**2))
    found = PlannedComparison(sd, alpha=alpha, changed=changed).power_at(queries, difference).value
    assert found == pytest.approx(total, abs=1e-8)


def test_hit_or_miss_sees_less_until_there_is_much_to_see() -> None:
    for queries, slack in [(100, 0.1), (3_000, 0.02), (34_000, 0.005)]:
        difference = 0.8 / np.sqrt(queries)
        sd = float(np.sqrt(0.3 - difference**2))
        smooth = PlannedComparison(sd).power_at(queries, difference).value
        hits = PlannedComparison(sd, changed=0.3).power_at(queries, difference).value
        assert smooth is not None
        assert hits is not None
        assert smooth - slack < hits <= smooth + 1e-3
    needed = PlannedComparison(0.54, changed=0.3).queries_needed(0.05).value
    plain = PlannedComparison(0.54).queries_needed(0.05).value
    assert needed is not None
    assert plain is not None
    assert plain < needed < 1.1 * plain
    power = PlannedComparison(0.54, changed=0.3).power_at(int(needed), 0.05).value
    assert power == pytest.approx(0.8, abs=0.005)
    seen = PlannedComparison(0.54, changed=0.3).detectable_difference(int(needed)).value
    assert seen == pytest.approx(0.05, rel=0.01)
    assert PlannedComparison(0.3, changed=0.1).detectable_difference(5).reason == OUT_OF_REACH
    assert PlannedComparison(0.1, changed=1.0).power_at(6, 1.0).value == pytest.approx(
        1.0
    )  # six wins: p = 1/32
    assert PlannedComparison(0.1, changed=1.0).power_at(5, 1.0).value == pytest.approx(0.0)
    assert PlannedComparison(0.54, changed=0.3).curve(0.05, [int(needed)])[0].power == power


def test_sd_of_a_difference_from_those_of_the_systems() -> None:
    rng = np.random.default_rng(4)
    both = rng.multivariate_normal([0, 0], [[0.09, 0.045], [0.045, 0.09]], 200_000)
    found = sd_of_difference(0.3, 0.5)
    assert found == pytest.approx((both[:, 1] - both[:, 0]).std(), rel=0.01)
    assert sd_of_difference(0.3, 1.0) == 0.0


def test_edges() -> None:
    assert PlannedComparison(0.1).power_at(1, 0.1).reason == TOO_FEW
    assert PlannedComparison(0.1).detectable_difference(1).reason == TOO_FEW
    assert PlannedComparison(0.1).expected_width(0).reason == TOO_FEW
    assert PlannedComparison(0.1).queries_needed(0.0).reason == NO_DIFFERENCE
    assert PlannedComparison(1.0).queries_needed(1e-9).reason == TOO_MANY
    for found in (
        PlannedComparison(0.0).power_at(5, 0.1),
        PlannedComparison(0.0).queries_needed(0.1),
        PlannedComparison(0.0).detectable_difference(5),
    ):
        assert found.value is not None
        assert found.reason == NO_SPREAD
    assert PlannedComparison(0.1).power_at(50, 0.0).value == pytest.approx(0.05)
    assert PlannedComparison(0.1, power=0.04).detectable_difference(50).value == 0.0


def test_mistakes_are_explained() -> None:
    with pytest.raises(OptionError, match="the sd is -1"):
        PlannedComparison(-1).power_at(10, 0.1)
    with pytest.raises(OptionError, match="the difference is nan"):
        PlannedComparison(0.1).queries_needed(float("nan"))
    with pytest.raises(OptionError, match="the power is 80"):
        PlannedComparison(0.1, power=80).queries_needed(0.1)
    with pytest.raises(OptionError, match="the error rate is 0"):
        PlannedComparison(0.1, alpha=0).detectable_difference(10)
    with pytest.raises(OptionError, match="the correlation is 2"):
        sd_of_difference(0.1, 2)
    with pytest.raises(OptionError, match=r"needs more than 0\.1 of the queries to change"):
        PlannedComparison(0.3, changed=0.1).power_at(10, 0.2)
    with pytest.raises(OptionError, match=r"the share of queries that change is 1\.5"):
        PlannedComparison(0.3, changed=1.5).power_at(10, 0.2)


@pytest.mark.parametrize("effect", [0.004, 0.03, 0.11, 0.3])
def test_queries_needed_by_many_are_the_same_without_scipy(effect: float) -> None:
    planned = PlannedComparison(1.0)
    needed = planned.queries_needed(effect).value
    assert needed is not None
    for more_than in (50, 1_000):
        assert planned.queries_needed(effect, more_than=more_than).value == max(
            needed, more_than + 1
        )
