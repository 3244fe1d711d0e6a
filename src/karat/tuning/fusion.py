"""Several ranked lists become one: by weighted scores made comparable, or by ranks alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError, choose
from karat.forks import refuse_after_fork
from karat.tuning.pool import Pool

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from karat.core.data import Floats, Ints, Run
    from karat.read import RunLike


NORMALISERS = {
    "mm": "(score − min) ÷ (max − min): the list's worst is 0, its best 1",
    "tmm": "(score − lowest) ÷ (max − lowest), with the lowest score the retriever can give",
    "z": "(score − mean) ÷ standard deviation",
    "dbsf": "(score − (mean − 3σ)) ÷ 6σ: what lies within three standard deviations is 0…1",
}


RANKS = {
    "rank": "the place in the list",
    "score": "1 + how many score higher: equal scores share the better rank",
}


def normalise(
    score: Floats,
    query: Ints | None = None,
    how: str = "mm",
    *,
    lowest: float | None = None,
) -> Floats:
    """Scale the scores of one retriever, the list of each query by itself.

    `query` is the number of the query of each score, sorted; without it all are one list. A score
    that is not a number is missing: it stays NaN and does not count. Where all scores of a list
    are equal they say nothing, and the result is NaN. σ divides by n, not n − 1.

    >>> normalise(np.array([5.0, 3.0, 1.0])).tolist()
    [1.0, 0.5, 0.0]
    >>> normalise(np.array([0.8, 0.2]), how="tmm", lowest=-1.0).round(4).tolist()
    [1.0, 0.6667]
    >>> normalise(np.array([5.0, 3.0, 7.0, 7.0]), np.array([0, 0, 1, 1])).tolist()
    [1.0, 0.0, nan, nan]
    """
    choose("normaliser", how, NORMALISERS)
    if how == "tmm" and lowest is None:
        raise OptionError(
            "tmm needs the lowest score that each retriever can give",
            fix="for example -1 for a cosine, 0 for BM25: lowest=(-1, 0)",
        )
    score = np.asarray(score, dtype=np.float64)
    if not len(score):
        return score.copy()
    query = np.zeros(len(score), np.int64) if query is None else query
    begins = np.diff(query, prepend=query[0] - 1) != 0
    number, start, known = np.cumsum(begins) - 1, np.flatnonzero(begins), ~np.isnan(score)

    def total(values: Floats) -> Floats:
        """Add up the values of each list."""
        sums: Floats = np.add.reduceat(np.where(known, values, 0.0), start)
        return sums

    with np.errstate(all="ignore"):
        count = total(np.ones(len(score)))
        high = np.maximum.reduceat(np.where(known, score, -np.inf), start)
        low = np.minimum.reduceat(np.where(known, score, np.inf), start)
        least = np.full(len(start), lowest) if how == "tmm" else low
        if ((high < least) & (count > 0)).any():
            raise OptionError(
                f"all scores of a query lie below {lowest:g}, the lowest score given",
                fix="give tmm the lowest score that the retriever can give",
            )
        floor, span = least, high - least
        if how in {"z", "dbsf"}:
            floor = total(score) / count
            span = np.sqrt(total((score - floor[number]) ** 2) / count)
        if how == "dbsf":
            bottom = floor - 3 * span
            floor, span = bottom, (floor + 3 * span) - bottom
        # equal scores may have a deviation by rounding, and nearly equal ones none
        span = np.where((high > least) & (span > 0), span, np.nan)
        bad = (count > 0) & (np.isinf(low) | np.isinf(high) | np.isinf(span))
        if bad.any():
            raise InputError(
                f"the scores of {int(bad.sum())} lists are infinite, or too far apart to be scaled",
                fix="give finite scores, or fuse by rank, which needs none",
            )
        scaled: Floats = (score - floor[number]) / span[number]
    return scaled


def convex_combination(
    runs: Sequence[RunLike] | Pool,
    weights: Sequence[float],
    *,
    normaliser: str = "mm",
    lowest: Sequence[float] | None = None,
    fill: float = 0.0,
    k: int | None = None,
) -> Run:
    """Fuse runs by the weighted sum of their normalised scores: Σ weight × normalised score.

    The weights are not negative and add up to 1. What a run does not score, because it lacks the
    document or because all its scores of the query are equal, counts as `fill`: 0 is the worst
    under `mm`, but the mean under `z`. `lowest` are the lowest scores that the retrievers can
    give, for `tmm`. The result keeps the first k documents; equal sums keep the order in which
    the documents are first met, run by run.

    >>> semantic, lexical = {"q": {"a": 0.9, "b": 0.7, "c": 0.5}}, {"q": {"c": 8.0, "d": 2.0}}
    >>> convex_combination([semantic, lexical], [0.6, 0.4]).rows["doc"].to_list()
    ['a', 'c', 'b', 'd']
    """
    refuse_after_fork()
    pool = Pool.of(runs)
    scaled = scaled_scores(pool, normaliser, lowest, fill)
    return pool.best_first(weighted_sum(scaled, weights), k)


def reciprocal_rank_fusion(
    runs: Sequence[RunLike] | Pool, rrf_k: float = 60, *, by: str = "rank", k: int | None = None
) -> Run:
    """Fuse runs by Σ 1 ÷ (rrf_k + rank), over the runs that retrieved the document.

    `by` says what the rank is: the place in the list ("rank"), or 1 + how many documents of the
    list score higher ("score"), so that equal scores share a rank. The result keeps the first k
    documents; equal sums keep the order in which the documents are first met, run by run.

    Cormack, Clarke & Buettcher, SIGIR 2009.

    >>> fused = reciprocal_rank_fusion([{"q": ["a", "b", "c"]}, {"q": ["c", "a"]}])
    >>> fused.rows["doc"].to_list()
    ['a', 'c', 'b']
    """
    refuse_after_fork()
    choose("kind of rank", by, RANKS)
    pool = Pool.of(runs)
    ranks = pool.rank if by == "rank" else pool.score_ranks()
    return pool.best_first(reciprocal_rank_scores(ranks, rrf_k), k)


def reciprocal_rank_scores(ranks: ArrayLike, rrf_k: float = 60) -> Floats:
    """Return Σ 1 ÷ (rrf_k + rank) over the first axis, the runs; rank 0 means not retrieved.

    >>> float(reciprocal_rank_scores([2, 10], rrf_k=0))
    0.6
    >>> reciprocal_rank_scores([[1, 2, 0], [0, 1, 2]], rrf_k=1).round(4).tolist()
    [0.5, 0.8333, 0.3333]
    """
    if not (math.isfinite(rrf_k) and rrf_k >= 0):
        raise OptionError(f"rrf_k={rrf_k} is not a number from 0", fix="60 is usual; 0 is 1 ÷ rank")
    given = np.asarray(ranks)
    found = given > 0
    total: Floats = np.where(found, 1 / (rrf_k + np.where(found, given, 1)), 0.0).sum(axis=0)
    return total


def scaled_scores(
    pool: Pool, normaliser: str = "mm", lowest: Sequence[float] | None = None, fill: float = 0.0
) -> Floats:
    """Return the normalised scores of a pool, runs × rows, with `fill` where there is none."""
    lows = [None] * len(pool.runs) if lowest is None else lowest
    if len(lows) != len(pool.runs):
        raise OptionError(
            f"{len(lows)} lowest scores for {len(pool.runs)} runs", fix="give one for each run"
        )
    scaled = np.array(
        [
            normalise(score, pool.query, normaliser, lowest=low)
            for score, low in zip(pool.scores(), lows, strict=True)
        ]
    )
    return np.where(np.isnan(scaled), fill, scaled)


def weighted_sum(scaled: Floats, weights: Sequence[float]) -> Floats:
    """Return Σ weight × scores over the runs.

    >>> weighted_sum(np.array([[1.0, 0.0], [0.5, 1.0]]), [0.25, 0.75]).tolist()
    [0.625, 0.75]
    """
    if len(weights) != len(scaled):
        raise OptionError(
            f"{len(weights)} weights for {len(scaled)} runs", fix="give one for each run"
        )
    if not (all(weight >= 0 for weight in weights) and math.isclose(math.fsum(weights), 1)):
        raise OptionError(
            f"the weights {', '.join(f'{weight:g}' for weight in weights)} are not shares of 1",
            fix="give weights that are not negative and add up to 1",
        )
    # run by run instead of a matrix product, whose rounding depends on the machine and breaks ties
    total = np.zeros(scaled.shape[1])
    for weight, scores in zip(weights, scaled, strict=True):
        total += weight * scores
    return total
