"""The scores of one run, list by list: extremes, sums, means, and scores made comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError, OptionError, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from findwell.core.data import Bools, Floats, Ints
    from findwell.loop.tuning.pool import Pool

NORMALISERS = {
    "mm": "(score − min) ÷ (max − min): the list's worst is 0, its best 1",
    "tmm": "(score − lowest) ÷ (max − lowest), with the lowest score the retriever can give",
    "z": "(score − mean) ÷ standard deviation",
    "dbsf": "(score − (mean − 3σ)) ÷ 6σ: what lies within three standard deviations is 0…1",
}


class ScoreLists:
    """Scores of which each query has a list; NaN is no score and does not count.

    What is computed has one value per list; `spread` gives it to every score.

    >>> lists = ScoreLists(np.array([5.0, 3.0, np.nan, 7.0]), np.array([0, 0, 0, 1]))
    >>> lists.low.tolist(), lists.high.tolist(), lists.mean.tolist()
    ([3.0, 7.0], [5.0, 7.0], [4.0, 7.0])
    >>> lists.spread(lists.count).tolist()
    [2.0, 2.0, 2.0, 1.0]
    """

    def __init__(self, score: NDArray[Any], query: Ints) -> None:
        self.score = score
        self.known = ~np.isnan(score)
        begins = np.diff(query, prepend=query[:1] - 1) != 0
        self._number = np.cumsum(begins) - 1
        self._start = np.flatnonzero(begins)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the value of each list to its scores."""
        spread: NDArray[Any] = values[self._number]
        return spread

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up values in each list."""
        # in 64 bits, so that the order of the rows does not matter
        there = np.where(self.known, values, 0).astype(np.float64)
        total = np.add.reduceat(there, self._start) if len(self._start) else there
        return total.astype(values.dtype)

    def largest(self, values: NDArray[Any], nothing: float) -> NDArray[Any]:
        """Return the largest value of each list, or `nothing` where there is none."""
        there = np.where(self.known, values, values.dtype.type(nothing))
        return np.maximum.reduceat(there, self._start) if len(self._start) else there

    @property
    def count(self) -> NDArray[Any]:
        """How many scores each list has."""
        return self.total(np.ones_like(self.score))

    @property
    def high(self) -> NDArray[Any]:
        """The highest score of each list; -inf where it has none."""
        return self.largest(self.score, -np.inf)

    @property
    def low(self) -> NDArray[Any]:
        """The lowest score of each list; inf where it has none."""
        return -self.largest(-self.score, -np.inf)

    @property
    def mean(self) -> NDArray[Any]:
        """The mean score of each list; NaN where it has none."""
        return self._mean().astype(self.score.dtype)

    def deviation(self, less: int = 0) -> NDArray[Any]:
        """Return the standard deviation of each list, divided by n - `less`."""
        exact = self.score.astype(np.float64)
        with np.errstate(all="ignore"):
            squares = self.total((exact - self.spread(self._mean())) ** 2)
            root = np.sqrt(squares / (self.count.astype(np.float64) - less))
        return root.astype(self.score.dtype)

    def _mean(self) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            mean: NDArray[np.float64] = self.total(self.score.astype(np.float64)) / self.count
        return mean


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
    lists = ScoreLists(score, np.zeros(len(score), np.int64) if query is None else query)
    with np.errstate(all="ignore"):
        count, high, low = lists.count, lists.high, lists.low
        least = np.full(len(low), lowest) if how == "tmm" else low
        if ((high < least) & (count > 0)).any():
            raise OptionError(
                f"all scores of a query lie below {lowest:g}, the lowest score given",
                fix="give tmm the lowest score that the retriever can give",
            )
        floor, span = least, high - least
        if how in {"z", "dbsf"}:
            floor, span = lists.mean, lists.deviation()
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
        scaled: Floats = (score - lists.spread(floor)) / lists.spread(span)
    return scaled


def scaled_scores(
    pool: Pool,
    normaliser: str | Sequence[str] = "mm",
    lowest: Sequence[float] | None = None,
    fill: float = 0.0,
    inside: Bools | None = None,
) -> Floats:
    """Return the normalised scores of a pool, runs × rows, with `fill` where there is none.

    `normaliser` is one for all runs, or one for each. What is not `inside` a list does not count.
    """
    runs = len(pool.runs)
    names = [normaliser] * runs if isinstance(normaliser, str) else normaliser
    lows = [None] * runs if lowest is None else lowest
    if len(lows) != runs:
        raise OptionError(f"{len(lows)} lowest scores for {runs} runs", fix="give one for each run")
    scores = pool.scores() if inside is None else np.where(inside, pool.scores(), np.nan)
    scaled = np.array(
        [
            normalise(score, pool.query, name, lowest=low)
            for score, name, low in zip(scores, names, lows, strict=True)
        ]
    )
    return np.where(np.isnan(scaled), fill, scaled)


def reciprocal_ranks(ranks: Ints, k: float) -> Floats:
    """Return 1 ÷ (k + rank) of ranks from 1; rank 0 means not retrieved, and gives 0.

    >>> reciprocal_ranks(np.array([1, 2, 0]), 1).round(4).tolist()
    [0.5, 0.3333, 0.0]
    """
    found = ranks > 0
    return np.where(found, 1 / (k + np.where(found, ranks, 1)), 0.0)
