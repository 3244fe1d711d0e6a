"""How honest the choice is, simulated: TREC-like pairs of retrievers, with the truth known.

A pair of retrievers answers thousands of queries, which stand for all there are: the value of a
weight on them is the truth. Small samples of these queries then choose a weight, as users do.
`python -m tests.tuning.simulation` prints the table of docs/tuning-honesty.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.loop.tuning.choice import ChoiceRule, choose_setting, gains_over
from findwell.loop.tuning.engines import find_engine
from findwell.loop.tuning.fused_values import RecordedRuns
from findwell.loop.tuning.fusion_settings import grid_of

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

SIZES = (10, 20, 30, 50, 100, 200)
GRID = np.linspace(0, 1, 101)


def population(seed: int, queries: int = 3_000, depth: int = 50) -> Floats:
    """Return nDCG@10 of 101 weights, settings × queries, for a random pair of retrievers.

    A query has 1 to 30 relevant documents of grades 1 to 3 (few have many, as in TREC). A document
    scores its grade times the skill of the retriever at this query, and noise that the two
    retrievers share in part; the skills differ from query to query.
    """
    rng = np.random.default_rng(seed)
    skill, shared = rng.uniform(0.3, 1.2, 2), rng.uniform(0.0, 0.6)
    documents = 200
    relevant = np.minimum(rng.geometric(0.15, queries), 30)
    grade = np.zeros((queries, documents))
    for query, count in enumerate(relevant):
        grade[query, :count] = rng.choice([1, 2, 3], count, p=[0.6, 0.3, 0.1])
    common = rng.normal(size=(queries, documents))
    runs = {}
    for name, strength in zip(("dense", "sparse"), skill, strict=True):
        own = rng.normal(size=(queries, documents))
        noise = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
        at_query = np.maximum(rng.normal(strength, 0.5, (queries, 1)), 0)
        score = grade * at_query + noise
        best = np.argsort(-score, axis=1)[:, :depth]
        runs[name] = _frame(best, np.take_along_axis(score, best, axis=1))
    found = np.argwhere(grade > 0)
    gold = pl.DataFrame(
        {
            "query": [f"q{query}" for query in found[:, 0]],
            "doc": [f"d{doc}" for doc in found[:, 1]],
            "grade": grade[grade > 0],
        }
    )
    engine = find_engine("autorag-cc")
    grid = grid_of(engine, 2, None, {})
    options = {"dialect": "findwell", "rel": None, "queries": None}
    source = RecordedRuns(runs, gold, "nDCG@10", options, engine)
    values: Floats = source.values(grid.settings).table[: len(grid.settings), 0]
    return values


def _frame(docs: Ints, scores: Floats) -> pl.DataFrame:
    queries, depth = docs.shape
    return pl.DataFrame(
        {
            "query": np.repeat([f"q{number}" for number in range(queries)], depth),
            "doc": [f"d{doc}" for doc in docs.ravel()],
            "score": scores.ravel(),
        }
    )


@dataclass(frozen=True, slots=True)
class Simulated:
    """What samples of one size did, on average."""

    size: int
    optimism: float  # the value in sample - the truth of the chosen weight
    held_out: float  # the held-out value - the truth
    covered: float  # how often the interval of the held-out value holds the truth
    covered_in_sample: float  # the same of the interval in sample
    loss: float  # the truth of the best weight - that of the chosen one
    loss_argmax: float  # the same, choosing the best in sample
    loss_half: float  # the same, for a weight of 0.5 without choosing
    # how often the choice is called better than the best weight there is: held out, in sample
    false_alarms: float
    false_alarms_in_sample: float


def simulate(
    size: int, populations: list[Floats], samples: int, seed: int = 0, *, permutations: int = 500
) -> Simulated:
    """Choose from samples of this many queries, and hold what is said against the truth."""
    rng = np.random.default_rng((seed, size))
    rows = []
    for values in populations:
        truth = values.mean(axis=1)
        best = int(truth.argmax())
        for _ in range(samples):
            drawn = rng.choice(values.shape[1], size, replace=False)
            some = values[:, drawn]
            rule = ChoiceRule(permutations=1, seed=int(rng.integers(1_000_000_000)))
            found = choose_setting(some, rule, places=GRID[:, np.newaxis])
            true = truth[found.chosen]
            held, inside = found.held_out, found.in_sample
            other = {"best": some[best]}
            tested = ChoiceRule(permutations=permutations)
            (gain,) = gains_over(found.values, other, tested)
            (naive,) = gains_over(some[found.best], other, tested)
            assert None not in (held.value, held.low, held.high, inside.low, inside.high)
            rows.append(
                [
                    (inside.value or 0) - true,
                    (held.value or 0) - true,
                    (held.low or 0) <= true <= (held.high or 1),
                    (inside.low or 0) <= true <= (inside.high or 1),
                    truth[best] - true,
                    truth[best] - truth[found.best],
                    truth[best] - truth[50],
                    gain.verdict.word == "better",
                    naive.verdict.word == "better",
                ]
            )
    return Simulated(size, *np.array(rows, dtype=float).mean(axis=0).tolist())


def main() -> None:
    """Print the table of the documentation."""
    populations = [population(seed) for seed in range(12)]
    out = sys.stdout
    for size in SIZES:
        found = simulate(size, populations, 60)
        out.write(
            f"| {size} | {found.optimism:+.4f} | {found.held_out:+.4f} | {found.covered:.1%} "
            f"| {found.false_alarms_in_sample:.1%} | {found.false_alarms:.1%} "
            f"| {found.loss:.4f} | {found.loss_argmax:.4f} | {found.loss_half:.4f} |\n"
        )
        out.flush()


if __name__ == "__main__":
    main()
