"""How often estimates from few labels hold the truth: the tables of docs/estimates.md.

    python -m benchmarks.label_estimates

The first table has the worlds of `tests/statistics/test_label_simulations.py`. In the second, n of
100 queries are labelled; the judge is right about 60 % of the values and guesses the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from findwell.statistics.prediction_powered import SampledLabels
from tests.statistics import test_label_simulations as worlds

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.core.data import Floats

    Draw = Callable[[np.random.Generator], SampledLabels]

QUERIES, RIGHT = 100, 0.6
VALUES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "nDCG around .67": lambda rng: rng.beta(3, 1.5, QUERIES),
    "reciprocal rank": lambda rng: 1 / np.minimum(rng.geometric(0.45, QUERIES), 10),
    "success, 90 % hits": lambda rng: (rng.random(QUERIES) < 0.9).astype(np.float64),
    "P@5 around .25": lambda rng: rng.binomial(5, rng.beta(1, 3, QUERIES)) / 5,
    "small differences of nDCG": lambda rng: rng.normal(0.02, 0.05, QUERIES),
    "differences of success": lambda rng: rng.choice((-1.0, 0.0, 1.0), QUERIES, p=(0.1, 0.7, 0.2)),
}


def few_whole(rng: np.random.Generator, name: str, labelled: int) -> SampledLabels:
    """Label some queries as a whole, all of which a judge has rated."""
    values, other = VALUES[name](rng), VALUES[name](rng)
    judged = np.where(rng.random(QUERIES) < RIGHT, values, other)
    known, zero = rng.permutation(QUERIES) < labelled, np.zeros(QUERIES)
    paired = "differences" in name
    return SampledLabels(
        np.arange(QUERIES), zero + 1, np.where(known, values, np.nan), judged,
        zero + labelled / QUERIES, zero.astype(np.int64), QUERIES,
        bounds=(-1.0 if paired else 0.0, 1.0), paired=paired,
    )  # fmt: skip


def judged(draw: Callable[[np.random.Generator, float], SampledLabels], kappa: float) -> Draw:
    """Return what draws labels with a judge of this κ."""
    return lambda rng: draw(rng, kappa)


def show(name: str, found: list[tuple[Floats, Floats, float]], *, alone: bool) -> None:
    """Print how often intervals with the judge hold the truth, and widths."""
    cells = [
        f"{held[1]:.1%}, {width[1]:.2f} ({held[0]:.1%}, {width[0]:.2f})"
        if alone
        else f"{held[1]:.1%}, {width[1] / width[0]:.0%}"
        for held, width, _ in found
    ]
    print(f"| {name} | {' | '.join(cells).replace('%', ' %')} |", flush=True)


if __name__ == "__main__":
    kappas, coverage = (0.0, 0.3, 0.6), worlds.coverage
    for name, (draw, truth) in worlds.MEASURES.items():
        found = [coverage(judged(draw, k), truth) for k in kappas]
        show(name, found, alone=False)
    many = worlds.Draw.of(np.random.default_rng(5), 0.0, 400_000).truth
    for value in (worlds.ndcg, worlds.ndcg_difference):
        truth, whole = float(np.nanmean(value(many))), partial(worlds.whole_queries, value=value)
        found = [coverage(judged(whole, k), truth) for k in kappas]
        show(value.__name__, found, alone=False)
    for name, values in VALUES.items():
        rng = np.random.default_rng(5)
        truth = float(np.mean([values(rng).mean() for _ in range(10_000)]))
        few = partial(few_whole, name=name)
        found = [coverage(partial(few, labelled=n), truth) for n in (10, 12, 15, 20)]
        show(name, found, alone=True)
