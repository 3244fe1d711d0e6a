"""How often unpaired intervals hold the true difference, and tests reject what is true."""

from __future__ import annotations

import numpy as np
import pytest

from findwell.statistics.unpaired import unpaired, unpaired_interval
from tests.statistics.scores import VALUES

pytestmark = pytest.mark.slow

LEAST = 0.93
KINDS = [("hit .5", "hit .97"), ("beta .2 4", "hit .5"), ("beta 4 .2", "beta 4 .2")]


def holds(before: np.ndarray, after: np.ndarray, true: float, **options: object) -> bool:
    found = unpaired_interval(before, after, **options)  # type: ignore[arg-type]
    assert found.low is not None
    assert found.high is not None
    return bool(found.low - 1e-12 <= true <= found.high + 1e-12)


@pytest.mark.parametrize("sizes", [(12, 30), (60, 60), (400, 90)])
@pytest.mark.parametrize("kinds", KINDS)
def test_the_true_difference_is_held(kinds: tuple[str, str], sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(31)
    (one, first), (other, second) = VALUES[kinds[0]], VALUES[kinds[1]]
    held = [
        holds(one(rng, (sizes[0],)), other(rng, (sizes[1],)), second - first) for _ in range(700)
    ]
    assert np.mean(held) >= LEAST


@pytest.mark.parametrize("shared", [False, True])
def test_the_true_difference_is_held_with_clusters(shared: bool) -> None:
    """Questions of one source go together, of sources that are in one group or in both."""
    rng = np.random.default_rng(32)
    held, alone, tested = [], [], []
    for _ in range(300):
        level = rng.uniform(-0.3, 0.3, (2, 40))
        level[1] = level[0] if shared else level[1]
        sides, labels = [], []
        for side, mean in enumerate((0.45, 0.55)):
            source = rng.integers(0, 40, 160)
            sides.append((rng.random(160) < mean + level[side][source]).astype(float))
            labels.append([f"{at}" if shared else f"{side} {at}" for at in source])
        options = {"clusters": tuple(labels)}
        held.append(holds(sides[0], sides[1], 0.1, **options))
        alone.append(holds(sides[0], sides[1], 0.1))
        same = unpaired(sides[0], 1 - sides[1], permutations=399, seed=7, **options)  # type: ignore[arg-type]
        assert same.test.p is not None
        tested.append(same.test.p < 0.05)
    assert np.mean(held) >= LEAST
    if not shared:
        assert np.mean(alone) < LEAST  # clusters matter here
        assert np.mean(tested) < 0.08


@pytest.mark.parametrize("sizes", [(15, 40), (120, 30)])
def test_tests_reject_what_is_true_as_often_as_they_may(sizes: tuple[int, int]) -> None:
    """The same mean, but a spread that differs twofold and groups of different sizes."""
    rng = np.random.default_rng(33)
    rejected = []
    for _ in range(700):
        before, after = rng.beta(8, 8, sizes[0]), rng.beta(1.3, 1.3, sizes[1])
        p = unpaired(before, after, permutations=399).test.p
        assert p is not None
        rejected.append(p < 0.05)
    assert np.mean(rejected) < 0.075
