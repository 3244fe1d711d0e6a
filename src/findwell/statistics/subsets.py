"""Is a part of the queries lower than the rest? All parts at once, by dealing values anew."""

from __future__ import annotations

from math import erfc, sqrt
from typing import TYPE_CHECKING

import numpy as np

from findwell.statistics.values import check_draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

DRAWS = 10_000
WORK = 1 << 27  # values dealt in all, at most
BLOCK = 1 << 22  # values dealt at once
MANY = 50  # queries in a part and outside, beyond which the mean of a random part is normal


def subset_p(
    values: ArrayLike, parts: Sequence[ArrayLike], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float | None, ...]:
    """Return p for each part of the values, not corrected: is its mean that of a random part?

    `parts` are masks over the values, which have no gaps. p is how often as many values, drawn at
    random, have a mean as far from that of all; where the part and the rest hold 50 or more, from
    the normal distribution with the variance that drawing has. An empty part, or all, has none.

    >>> inside = np.arange(20) < 6
    >>> subset_p(np.where(inside, 0.1, 0.8) + np.arange(20) / 100, [inside])[0] < 0.001
    True
    >>> subset_p([0.5] * 8, [np.arange(8) < 4])
    (1.0,)
    """
    check_draws("draws", draws)
    known = np.asarray(values, dtype=np.float64)
    masks = [np.asarray(part, dtype=bool) for part in parts]
    sizes = [int(mask.sum()) for mask in masks]
    mean, total = (float(known.mean()) if len(known) else 0.0), len(known)
    far = [
        abs(float(known[mask].mean()) - mean) if 0 < size < total else None
        for mask, size in zip(masks, sizes, strict=True)
    ]
    few = {size for size in sizes if 0 < min(size, total - size) < MANY}
    dealt = _far_at_random(known - mean, sorted(few), draws, seed) if few else {}
    variance = float(known.var(ddof=1)) if total > 1 else 0.0

    def chance(size: int, distance: float) -> float:
        if size in dealt:
            as_far = int((dealt[size] >= distance - 1e-12).sum())
            return (as_far + 1) / (len(dealt[size]) + 1)
        deviation = sqrt(variance / size * (1 - size / total))
        return erfc(distance / deviation / sqrt(2)) if deviation > 0 else 1.0

    return tuple(
        None if distance is None else chance(size, distance)
        for size, distance in zip(sizes, far, strict=True)
    )


def _far_at_random(
    centred: Floats, sizes: Sequence[int], draws: int, seed: int
) -> dict[int, Floats]:
    """Return how far from 0 the means of random parts lie, by size: one shuffle serves all."""
    rng = np.random.default_rng(seed)
    count = max(min(draws, WORK // len(centred)), 1)
    ends = np.array(sizes) - 1
    found = []
    for start in range(0, count, step := max(BLOCK // len(centred), 1)):
        rows = np.tile(centred, (min(step, count - start), 1))
        shuffled = rng.permuted(rows, axis=1)[:, : ends[-1] + 1]
        found.append(np.abs(np.cumsum(shuffled, axis=1)[:, ends]) / (ends + 1))
    return dict(zip(sizes, np.concatenate(found).T, strict=True))
