"""How often intervals hold the truth: exactly where values are few, by simulation elsewhere.

The numbers in docs/decisions/0009-one-interval.md are those of this file. Whether 0 is in the
interval of a difference is decided by a test (docs/decisions/0022-one-test-decides.md).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.statistics.agreement import kappa
from findwell.statistics.intervals import interval, intervals
from findwell.statistics.paired import paired
from tests.lazy import lazy
from tests.statistics.scores import CHANGES, UNBOUNDED, VALUES, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from findwell.core.data import Floats
    from findwell.core.estimate import Estimate

stats = lazy("scipy.stats")

LEAST = 0.93
QUERIES = (2, 3, 5, 10, 20, 50, 300, 1_001, 5_000)


def coverage(found: Iterable[Estimate], truth: float) -> float:
    """Return the share of intervals that hold the truth; one without limits does not."""
    hits = [
        each.low is not None
        and each.high is not None
        and each.low - 1e-12 <= truth <= each.high + 1e-12
        for each in found
    ]
    return float(np.mean(hits))


def differences(values: Floats, **options: object) -> list[Estimate]:
    """Return the intervals of columns of differences."""
    rooms = np.maximum(-values, 0)
    found = paired(rooms, rooms + values, permutations=999, **options)  # type: ignore[arg-type]
    return [each.difference for each in found]


def runs_of(queries: int) -> int:
    return 4_000 if queries <= 300 else 2_000 if queries <= 1_001 else 1_000


# quick


@pytest.mark.parametrize("queries", [2, 3, 10, 50, 300, 1_000, 1_001])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.9), (0.0, 0.1), (0.1, 1.0)])
def test_two_values_are_covered_at_any_rate(queries: int, low: float, high: float) -> None:
    counts = np.arange(min(queries, 60) + 1)  # more hits than 60 are as good as impossible below
    table = np.where(np.arange(queries)[:, np.newaxis] < counts, high, low)
    found = np.array([limits(each) for each in intervals(table)])
    for rate in (0.003, 0.01, 0.1, 0.3, 0.5) if queries <= 50 else (0.5 / queries, 0.003, 0.02):
        truth = low + (high - low) * rate
        inside = (found[:, 0] <= truth) & (truth <= found[:, 1])
        assert stats.binom.pmf(counts, queries, rate)[inside].sum() >= 0.949


@pytest.mark.parametrize("name", ["beta .2 4", "reciprocal rank", "one in 300"])
@pytest.mark.parametrize("queries", [3, 10, 60])
def test_skewed_values_are_covered(name: str, queries: int) -> None:
    draw, truth = VALUES[name]
    values = draw(np.random.default_rng([1, queries]), (queries, 1_000))
    assert coverage(intervals(values), truth) >= LEAST
    draw, truth = CHANGES["one in 20 won"]
    values = draw(np.random.default_rng([2, queries]), (queries, 500))
    assert coverage(differences(values), truth) >= LEAST


# slow


@pytest.mark.slow
@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, queries: int) -> None:
    draw, truth = VALUES[name]
    values = draw(np.random.default_rng([3, queries]), (queries, runs_of(queries)))
    found = intervals(values)
    assert coverage(found, truth) >= LEAST
    assert min(limits(each)[0] for each in found) >= 0
    assert max(limits(each)[1] for each in found) <= 1
    assert min(np.subtract(*limits(each)[::-1]) for each in found) > 0


@pytest.mark.slow
@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str, queries: int) -> None:
    draw, truth = CHANGES[name]
    values = draw(np.random.default_rng([4, queries]), (queries, runs_of(queries) // 2))
    assert coverage(differences(values), truth) >= LEAST


@pytest.mark.parametrize(("queries", "least"), [(10, 0.88), (20, 0.86), (50, 0.92), (200, 0.93)])
def test_small_gains_and_large_losses(queries: int, least: float) -> None:
    """Without a difference on average, coverage is that of the sign flips, which take it even."""
    rng = np.random.default_rng([10, queries])
    values = np.where(rng.random((queries, 1_500)) < 0.8, 0.2, -0.8)
    values *= rng.random(values.shape) < 0.5
    assert coverage(differences(values), 0.0) >= least


@pytest.mark.slow
@pytest.mark.parametrize("queries", [50, 300, 1_001])
def test_well_behaved_values_pay_little_for_it(queries: int) -> None:
    for name in ("reciprocal rank", "nDCG", "nDCG with ends", "P@10", "hit .5"):
        values = VALUES[name][0](np.random.default_rng([5, queries]), (queries, 500))
        width = np.mean([high - low for low, high in map(limits, intervals(values))])
        assert width <= 1.1 * student(values)
    for name in ("small", "smaller", "reciprocal ranks"):
        values = CHANGES[name][0](np.random.default_rng([6, queries]), (queries, 500))
        width = np.mean([high - low for low, high in map(limits, differences(values))])
        assert width <= 1.12 * student(values)


def student(values: Floats) -> float:
    """Return the mean width of Student's intervals."""
    queries = len(values)
    reach = stats.t.ppf(0.975, queries - 1) / np.sqrt(queries)
    return float(2 * reach * values.std(axis=0, ddof=1).mean())


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
@pytest.mark.parametrize("queries", [3, 20, 300, 1_001])
def test_other_levels(level: float, queries: int) -> None:
    for name in ("hit .02", "beta .2 4", "reciprocal rank", "P@10"):
        draw, truth = VALUES[name]
        values = draw(np.random.default_rng([7, queries]), (queries, 2_000))
        assert coverage(intervals(values, level=level), truth) >= level - 0.02
    for name in ("one in 20 won", "small", "reciprocal ranks"):
        draw, truth = CHANGES[name]
        values = draw(np.random.default_rng([8, queries]), (queries, 1_000))
        assert coverage(differences(values, level=level), truth) >= level - 0.025


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [2, 3, 5, 10, 20, 50, 200])
@pytest.mark.parametrize("sizes", ["equal", "geometric", "one in ten is large"])
def test_clusters(clusters: int, sizes: str) -> None:
    rng = np.random.default_rng([9, clusters, len(sizes)])
    models: list[tuple[Callable[[], Floats], float]] = [
        (lambda: rng.beta(4, 2, clusters), 4 / 6),
        (lambda: (rng.random(clusters) < 0.05) * rng.random(clusters), 0.025),
        (lambda: rng.normal(0.6, 0.1, clusters).clip(0, 1), 0.6),
    ]
    size: dict[str, Callable[[], np.ndarray]] = {
        "equal": lambda: np.full(clusters, 5),
        "geometric": lambda: rng.geometric(0.2, clusters),
        "one in ten is large": lambda: np.where(rng.random(clusters) < 0.1, 20, 2),
    }
    for chance, truth in models:
        found, moved = [], []
        for _ in range(400):
            labels = np.repeat(np.arange(clusters), size[sizes]())
            hits = (rng.random(len(labels)) < chance()[labels]).astype(float)
            found.append(interval(hits, clusters=labels.tolist()))
            (change,) = paired(1 - hits, hits * 0 + 1, clusters=labels.tolist(), permutations=999)
            moved.append(change.difference)
        assert coverage(found, truth) >= 0.92  # of 400
        assert coverage(moved, truth) >= 0.92


@pytest.mark.slow
def test_what_ignores_clusters_does_not_cover() -> None:
    rng = np.random.default_rng(10)
    labels = np.repeat(np.arange(30), 5)
    values = (rng.random((150, 500)) < rng.beta(1, 1, (30, 500))[labels]).astype(float)
    assert coverage(intervals(values, clusters=labels.tolist()), 0.5) >= LEAST
    assert coverage(intervals(values), 0.5) < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("queries", [2, 3, 5, 10, 50, 300, 1_001])
@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded_values(name: str, queries: int) -> None:
    draw, truth = UNBOUNDED[name]
    values = draw(np.random.default_rng([11, queries]), (queries, 2_000))
    found = [each for each in intervals(values, bounds=(0.0, inf)) if not each.reason]
    assert coverage(found, truth) >= 0.9
    moved = draw(np.random.default_rng([12, queries]), (queries, 1_000))
    before = draw(np.random.default_rng([13, queries]), (queries, 1_000))
    pairs = paired(before, moved, bounds=(0.0, inf), permutations=999)
    known = [each.difference for each in pairs if each.difference.low is not None]
    assert coverage(known, 0.0) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("queries", [10, 50, 200, 1_001])
@pytest.mark.parametrize("kind", ["shaken", "lost and found"])
def test_geometric_means(kind: str, queries: int) -> None:
    rng = np.random.default_rng([14, queries])

    def draw(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        before = np.where(rng.random(shape) < 0.1, 0.0, rng.beta(2, 3, shape))
        if kind == "shaken":
            after = (before * np.exp(rng.normal(0.2, 0.5, shape))).clip(0, 1)
            return before, np.where(rng.random(shape) < 0.3, after, before)
        after = np.where(before > 0, 0.0, rng.beta(2, 3, shape))
        return before, np.where(rng.random(shape) < 0.05, after, before)

    before, after = (np.log(np.maximum(side, 1e-5)).mean() for side in draw((8_000_000,)))
    low, high = draw((queries, 1_000))
    assert coverage(intervals(low, statistic="geometric"), float(np.exp(before))) >= LEAST
    found = paired(low, high, statistic="geometric", permutations=999)
    truth = float(np.exp(after) - np.exp(before))
    assert coverage((each.difference for each in found), truth) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("items", [20, 80, 400])
def test_kappas(items: int) -> None:
    rng = np.random.default_rng([15, items])
    found = []
    for _ in range(1_000):
        first = rng.random(items) < 0.3
        second = np.where(rng.random(items) < 0.9, first, ~first)
        found.append(kappa(first.tolist(), second.tolist()))
    yes = 0.3 * 0.9 + 0.7 * 0.1
    chance = 0.3 * yes + 0.7 * (1 - yes)
    truth = (0.9 - chance) / (1 - chance)
    assert np.mean([(each.low or -1) <= truth <= (each.high or 1) for each in found]) >= LEAST
