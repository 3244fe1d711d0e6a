"""Values like those of retrieval measures, and hypothesis strategies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from findwell.core.data import Floats
    from findwell.core.estimate import Estimate

    Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

_RANKS = np.append(1 / np.arange(1, 11), 0)

# what draws values, and their true mean
POPULATIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "u-shaped": (lambda rng, shape: rng.beta(0.5, 0.5, shape), 0.5),
    "high": (lambda rng, shape: rng.beta(5, 1, shape), 5 / 6),
    "skewed": (lambda rng, shape: rng.beta(0.3, 2, shape), 0.3 / 2.3),
    "P@10": (lambda rng, shape: rng.binomial(10, rng.beta(0.5, 1.5, shape)) / 10, 0.25),
    "hit .5": (lambda rng, shape: (rng.random(shape) < 0.5).astype(float), 0.5),
    "hit .8": (lambda rng, shape: (rng.random(shape) < 0.8).astype(float), 0.8),
    "hit .95": (lambda rng, shape: (rng.random(shape) < 0.95).astype(float), 0.95),
}


# between 0 and 1, from well-behaved to hardly ever seen
VALUES: dict[str, tuple[Draw, float]] = {
    "hit .003": (lambda rng, shape: _hits(rng, shape, 0.003), 0.003),
    "hit .02": (lambda rng, shape: _hits(rng, shape, 0.02), 0.02),
    "hit .5": (lambda rng, shape: _hits(rng, shape, 0.5), 0.5),
    "hit .97": (lambda rng, shape: _hits(rng, shape, 0.97), 0.97),
    "beta .2 4": (lambda rng, shape: rng.beta(0.2, 4, shape), 0.2 / 4.2),
    "beta 4 .2": (lambda rng, shape: rng.beta(4, 0.2, shape), 4 / 4.2),
    "one in 300": (
        lambda rng, shape: _hits(rng, shape, 0.003) / rng.integers(1, 11, shape),
        float(0.003 * (1 / np.arange(1, 11)).mean()),
    ),
    "one in 20": (lambda rng, shape: _hits(rng, shape, 0.05) * rng.random(shape), 0.025),
    ".2 or .9": (lambda rng, shape: 0.2 + 0.7 * _hits(rng, shape, 0.05), 0.235),
    ".1 or 1": (lambda rng, shape: 0.1 + 0.9 * _hits(rng, shape, 0.01), 0.109),
    ".2 or .21": (lambda rng, shape: 0.2 + 0.01 * _hits(rng, shape, 0.5), 0.205),
    "small, and 1": (
        lambda rng, shape: np.where(_hits(rng, shape, 0.02), 1, rng.uniform(0, 0.1, shape)),
        0.98 * 0.05 + 0.02,
    ),
    "high, and 0": (
        lambda rng, shape: np.where(_hits(rng, shape, 0.03), 0, rng.uniform(0.7, 0.9, shape)),
        0.97 * 0.8,
    ),
    "half, and 0 or 1": (
        lambda rng, shape: np.where(_hits(rng, shape, 0.04), _hits(rng, shape, 0.5), 0.5),
        0.5,
    ),
    "reciprocal rank": (
        lambda rng, shape: _hits(rng, shape, 0.8) / _deep(rng.geometric(0.35, shape)),
        float(0.8 * sum(0.35 * 0.65 ** (rank - 1) / rank for rank in range(1, 11))),
    ),
    "nDCG": (lambda rng, shape: rng.beta(2, 1.5, shape), 2 / 3.5),
    "nDCG with ends": (
        lambda rng, shape: np.where(
            _hits(rng, shape, 0.15), 0, np.where(_hits(rng, shape, 0.3), 1, rng.beta(3, 2, shape))
        ),
        0.85 * (0.3 + 0.7 * 0.6),
    ),
    "P@10": (lambda rng, shape: rng.binomial(10, rng.beta(0.5, 1.5, shape)) / 10, 0.25),
    "P@5, high": (lambda rng, shape: rng.binomial(5, rng.beta(8, 1, shape)) / 5, 8 / 9),
    "alike": (lambda rng, shape: rng.normal(0.6, 0.05, shape).clip(0, 1), 0.6),
}

# between −1 and 1: what one system has more than another
CHANGES: dict[str, tuple[Draw, float]] = {
    "hits": (lambda rng, shape: _wins(rng, shape, 0.3, 0.2), 0.1),
    "few hits": (lambda rng, shape: _wins(rng, shape, 0.02, 0.01), 0.01),
    "hits, no miss": (lambda rng, shape: _wins(rng, shape, 0.01, 0.0), 0.01),
    "small": (lambda rng, shape: rng.normal(0, 0.2, shape).clip(-1, 1), 0.0),
    "smaller": (lambda rng, shape: rng.normal(0.05, 0.1, shape), 0.05),
    "one in 5": (lambda rng, shape: _hits(rng, shape, 0.2) * rng.uniform(-1, 1, shape), 0.0),
    "one in 20 won": (lambda rng, shape: _hits(rng, shape, 0.05) * rng.random(shape), 0.025),
    "one in 300 won": (lambda rng, shape: _hits(rng, shape, 0.003) * rng.random(shape), 0.0015),
    "one in 20, .1": (lambda rng, shape: _hits(rng, shape, 0.05) * 0.1, 0.005),
    "reciprocal ranks": (lambda rng, shape: _ranks(rng, shape) - _ranks(rng, shape), 0.0),
    "3 of 10 ranks": (
        lambda rng, shape: (
            _hits(rng, shape, 0.3)
            * np.abs(_ranks(rng, shape) - _ranks(rng, shape))
            * np.where(rng.random(shape) < 0.8, 1, -1)
        ),
        float(0.3 * 0.6 * np.abs(np.subtract.outer(_RANKS, _RANKS)).mean()),
    ),
    "beta .2 4": (lambda rng, shape: rng.beta(0.2, 4, shape), 0.2 / 4.2),
    "half of them .1": (lambda rng, shape: _hits(rng, shape, 0.5) * 0.1, 0.05),
    "betas .2 4": (lambda rng, shape: rng.beta(0.2, 4, shape) - rng.beta(0.2, 4, shape), 0.0),
}

# from 0 up
UNBOUNDED: dict[str, tuple[Draw, float]] = {
    "DCG": (lambda rng, shape: _hits(rng, shape, 0.8) * rng.gamma(2, 1.5, shape), 2.4),
    "exponential": (lambda rng, shape: rng.exponential(1, shape), 1.0),
    "counts": (lambda rng, shape: rng.poisson(2, shape).astype(float), 2.0),
}


def _hits(rng: np.random.Generator, shape: tuple[int, ...], rate: float) -> Floats:
    return (rng.random(shape) < rate).astype(float)


def _wins(rng: np.random.Generator, shape: tuple[int, ...], won: float, lost: float) -> Floats:
    chance = rng.random(shape)
    return np.where(chance < won, 1.0, np.where(chance < won + lost, -1.0, 0.0))


def _ranks(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return reciprocal ranks up to 10, each as likely, and 0."""
    return _RANKS[rng.integers(0, 11, shape)]


def _deep(ranks: np.ndarray) -> Floats:
    """Return ranks, infinite beyond 10."""
    return np.where(ranks > 10, np.inf, ranks)


def columns(
    least: int = 1, most: int = 40, *, nan: bool = False, sides: int = 1
) -> SearchStrategy[Floats]:
    """Return tables of scores between 0 and 1, a row a query, a column a side."""
    numbers = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 2 / 3, 0.9, 1.0]) | st.floats(0, 1)
    elements = numbers | st.just(float("nan")) if nan else numbers
    sizes = st.integers(least, most).map(lambda size: (size, sides))
    return arrays.arrays(np.float64, sizes, elements=elements)


def limits(found: Estimate) -> tuple[float, float]:
    """Return the limits of an interval that has some."""
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high
