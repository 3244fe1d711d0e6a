"""Simulations, seeded: levels and power are what they are said to be; coverage has its own file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.statistics.sample_size import PlannedComparison
from findwell.statistics.significance import EXACT_UNITS, sign_flip, tukey
from tests.lazy import lazy
from tests.statistics.scores import POPULATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

stats = lazy("scipy.stats")

pytestmark = pytest.mark.slow

RUNS = 2_000
NOISE = 3 * np.sqrt(0.05 * 0.95 / RUNS)  # three standard errors of a share of 5 %


def rejected(found: Iterable[float | None], level: float = 0.05) -> float:
    """Return the share of p-values up to the level."""
    return float(np.mean([p is not None and p <= level for p in found]))


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("queries", [EXACT_UNITS - 4, 25, 100])
def test_the_sign_flip_rejects_at_its_level(name: str, queries: int) -> None:
    draw, _ = POPULATIONS[name]
    rng = np.random.default_rng([1, queries])
    shape = (queries, RUNS)
    differences = draw(rng, shape) - draw(rng, shape)
    share = rejected(each.p for each in sign_flip(differences, permutations=999))
    assert share <= 0.05 + NOISE
    # discrete sums of hits and misses, or few of them, cannot reach every level
    if queries > EXACT_UNITS and not name.startswith("hit"):
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
        min(p for p in each.p.values() if p is not None) for each in tukey(values, permutations=499)
    ]
    assert rejected(smallest) == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / runs))


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
    predicted = PlannedComparison(sd, changed=changed).power_at(queries, mean).value
    assert predicted is not None
    by_signs = rejected(each.p for each in sign_flip(differences, permutations=999))
    assert by_signs == pytest.approx(predicted, abs=0.03)
    if shape != "hits":
        by_t = float((stats.ttest_1samp(differences, 0).pvalue <= 0.05).mean())
        assert by_t == pytest.approx(predicted, abs=0.03)
