"""Simulations, seeded: levels, coverage and power are what they are said to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from karat.statistics.intervals import intervals
from karat.statistics.paired import paired
from karat.statistics.power import power_at
from karat.statistics.several import tukey
from karat.statistics.significance import EXACT, sign_flip
from tests.statistics.scores import POPULATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karat.statistics.intervals import Interval

pytestmark = pytest.mark.slow

RUNS = 2_000
NOISE = 3 * np.sqrt(0.05 * 0.95 / RUNS)  # three standard errors of a share of 5 %


def coverage(found: Iterable[Interval], truth: float) -> float:
    """Return the share of intervals that hold the truth."""
    hits = [
        each.low - 1e-12 <= truth <= each.high + 1e-12
        for each in found
        if each.low is not None and each.high is not None
    ]
    assert len(hits) == RUNS
    return float(np.mean(hits))


def rejected(found: Iterable[float | None], level: float = 0.05) -> float:
    """Return the share of p-values up to the level."""
    return float(np.mean([p is not None and p <= level for p in found]))


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("queries", [EXACT - 4, 25, 100])
def test_the_sign_flip_rejects_at_its_level(name: str, queries: int) -> None:
    draw, _ = POPULATIONS[name]
    rng = np.random.default_rng([1, queries])
    shape = (queries, RUNS)
    differences = draw(rng, shape) - draw(rng, shape)
    share = rejected(each.p for each in sign_flip(differences, permutations=999))
    assert share <= 0.05 + NOISE
    # discrete sums of hits and misses, or few of them, cannot reach every level
    if queries > EXACT and not name.startswith("hit"):
        assert share >= 0.05 - NOISE


def test_the_sign_flip_of_clusters_rejects_at_its_level() -> None:
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(30), 4)
    differences = rng.normal(size=(30, RUNS)).repeat(4, axis=0) + rng.normal(size=(120, RUNS))
    aware = sign_flip(differences, permutations=999, clusters=list(labels))
    assert rejected(each.p for each in aware) == pytest.approx(0.05, abs=NOISE)
    unaware = sign_flip(differences, permutations=999)
    assert rejected(each.p for each in unaware) > 0.15


@pytest.mark.parametrize(("queries", "name"), [(12, "skewed"), (40, "P@10"), (1_200, "skewed")])
def test_all_pairs_raise_a_false_alarm_at_their_level(queries: int, name: str) -> None:
    draw, _ = POPULATIONS[name]
    rng = np.random.default_rng([3, queries])
    runs = 1_000
    hard = rng.random((queries, 1, runs))
    values = 0.3 * hard + draw(rng, (queries, 5, runs))
    smallest = [
        min(pair.p for pair in each.pairs if pair.p is not None)
        for each in tukey(values, permutations=499)
    ]
    assert rejected(smallest) == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / runs))


# From 20 queries on at most a point and a half, beside the noise, is missing; more is covered
# than asked for where values are lumpy. With 10 queries of skewed values, three points.
@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize(
    ("queries", "below", "above"),
    [(10, 0.035, 0.035), (20, 0.015, 0.025), (50, 0.01, 0.02), (300, 0.005, 0.01)],
)
def test_default_intervals_cover(name: str, queries: int, below: float, above: float) -> None:
    draw, truth = POPULATIONS[name]
    values = draw(np.random.default_rng([4, queries]), (queries, RUNS))
    share = coverage(intervals(values), truth)
    if name == "hit .95" and queries <= 20:
        below = 0.035  # a rate between two of the few that can be seen
    if name == "hit .5" and queries == 50:
        below = 0.02
    assert 0.95 - below - NOISE <= share <= 0.95 + above + NOISE


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_of_many_queries_cover(name: str) -> None:
    draw, truth = POPULATIONS[name]
    values = draw(np.random.default_rng(5), (1_500, RUNS))
    assert coverage(intervals(values), truth) == pytest.approx(0.95, abs=0.005 + NOISE)


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_other_levels_cover(level: float) -> None:
    draw, truth = POPULATIONS["P@10"]
    values = draw(np.random.default_rng(6), (60, RUNS))
    noise = 3 * np.sqrt(level * (1 - level) / RUNS)
    share = coverage(intervals(values, level=level), truth)
    assert share == pytest.approx(level, abs=0.015 + noise)


@pytest.mark.parametrize(("clusters", "size"), [(15, 5), (60, 4), (1_100, 2)])
def test_clustered_intervals_cover(clusters: int, size: int) -> None:
    rng = np.random.default_rng([7, clusters])
    labels = list(np.repeat(np.arange(clusters), size))
    shared = rng.normal(size=(clusters, RUNS)).repeat(size, axis=0)
    values = shared + rng.normal(size=shared.shape)
    assert coverage(intervals(values, clusters=labels), 0) == pytest.approx(0.95, abs=0.01 + NOISE)
    assert coverage(intervals(values), 0) < 0.92 - NOISE
    chance = rng.beta(4, 2, (clusters, RUNS)).repeat(size, axis=0)
    hits = (rng.random(chance.shape) < chance).astype(float)
    share = coverage(intervals(hits, clusters=labels), 4 / 6)
    assert share == pytest.approx(0.95, abs=0.02 + NOISE)


@pytest.mark.parametrize("statistic", ["geometric", "sum"])
def test_intervals_of_other_statistics_cover(statistic: str) -> None:
    rng = np.random.default_rng(8)
    values = np.exp(rng.normal(-1, 0.5, (40, RUNS)))
    truth = np.exp(-1) if statistic == "geometric" else 40 * np.exp(-1 + 0.125)
    share = coverage(intervals(values, statistic=statistic), truth)
    assert share == pytest.approx(0.95, abs=0.015 + NOISE)


@pytest.mark.parametrize("queries", [20, 60, 300])
def test_intervals_of_differences_cover(queries: int) -> None:
    rng = np.random.default_rng([9, queries])
    shape = (queries, RUNS)
    before = rng.beta(0.6, 1, shape)
    after = np.clip(before + rng.normal(0, 0.2, shape), 0, 1)
    clipped = np.clip(rng.beta(0.6, 1, 4_000_000) + rng.normal(0, 0.2, 4_000_000), 0, 1)
    truth = float(clipped.mean()) - 0.6 / 1.6
    found = (each.difference for each in paired(before, after, permutations=1))
    assert coverage(found, truth) == pytest.approx(0.95, abs=0.015 + NOISE)


@pytest.mark.parametrize("queries", [10, 20, 60, 300])
@pytest.mark.parametrize(("won", "lost"), [(0.3, 0.2), (0.1, 0.05), (0.02, 0.01)])
def test_intervals_of_hit_or_miss_differences_cover(queries: int, won: float, lost: float) -> None:
    rng = np.random.default_rng([10, queries])
    chance = rng.random((queries, RUNS))
    both = (rng.random((queries, RUNS)) < 0.6).astype(float)
    before = np.where(chance < lost, 1.0, np.where(chance < lost + won, 0.0, both))
    after = np.where(chance < lost, 0.0, np.where(chance < lost + won, 1.0, both))
    found = (each.difference for each in paired(before, after, permutations=1))
    assert coverage(found, won - lost) >= 0.94 - NOISE


@pytest.mark.parametrize(
    ("queries", "effect"), [(10, 1.0), (30, 0.3), (30, 0.6), (100, 0.2), (300, 0.2)]
)
@pytest.mark.parametrize("shape", ["normal", "scores", "hits"])
def test_power_is_within_three_points(queries: int, effect: float, shape: str) -> None:
    rng = np.random.default_rng([11, queries])
    size = (queries, RUNS)
    changed = None
    if shape == "normal":
        differences = rng.normal(effect, 1, size)
        mean, sd = effect, 1.0
    elif shape == "scores":  # of two systems on queries of any difficulty
        noise = rng.beta(2, 2, size) - rng.beta(2, 2, size)
        sd = float(np.sqrt(2 * 0.05))
        mean = effect * sd
        differences = noise + mean
    else:
        changed = 0.6 if effect > 0.5 else 0.3
        mean = effect * float(np.sqrt(changed / (1 + effect**2)))
        won, chance = (changed + mean) / 2, rng.random(size)
        differences = np.where(chance < won, 1.0, np.where(chance < changed, -1.0, 0.0))
        sd = float(np.sqrt(changed - mean**2))
    predicted = power_at(queries, mean, sd, changed=changed).value
    assert predicted is not None
    by_signs = rejected(each.p for each in sign_flip(differences, permutations=999))
    assert by_signs == pytest.approx(predicted, abs=0.03)
    if shape != "hits":
        by_t = float((stats.ttest_1samp(differences, 0).pvalue <= 0.05).mean())
        assert by_t == pytest.approx(predicted, abs=0.03)
