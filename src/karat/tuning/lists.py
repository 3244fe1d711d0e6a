"""The scores of one run, list by list: extremes, sums, means, and scores made comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from karat.errors import InputError, OptionError, choose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from karat.core.data import Floats, Ints

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
        there = np.where(self.known, values, values.dtype.type(0))
        return np.add.reduceat(there, self._start) if len(self._start) else there

    def largest(self, values: NDArray[Any], nothing: float) -> NDArray[Any]:
        """Return the largest value of each list, or `nothing` where that is larger."""
        there = np.where(self.known, values, values.dtype.type(nothing))
        largest = np.maximum.reduceat(there, self._start) if len(self._start) else there
        found: NDArray[Any] = np.maximum(largest, values.dtype.type(nothing))
        return found

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
        with np.errstate(invalid="ignore"):
            mean: NDArray[Any] = self.total(self.score) / self.count
        return mean

    def deviation(self, less: int = 0) -> NDArray[Any]:
        """Return the standard deviation of each list, divided by n - `less`."""
        with np.errstate(all="ignore"):
            squares = self.total((self.score - self.spread(self.mean)) ** 2)
            root: NDArray[Any] = np.sqrt(squares / (self.count - self.score.dtype.type(less)))
        return root


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
