"""Values like those of retrieval measures, and hypothesis strategies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from karat.data import Floats

    Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

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


def columns(
    least: int = 1, most: int = 40, *, nan: bool = False, sides: int = 1
) -> SearchStrategy[Floats]:
    """Return tables of scores between 0 and 1, a row a query, a column a side."""
    numbers = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 2 / 3, 0.9, 1.0]) | st.floats(0, 1)
    elements = numbers | st.just(float("nan")) if nan else numbers
    sizes = st.integers(least, most).map(lambda size: (size, sides))
    return arrays.arrays(np.float64, sizes, elements=elements)
