"""Scores made comparable: a cosine and a BM25 score cannot be added up as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError, choose

if TYPE_CHECKING:
    from karat.core.data import Bools, Floats, Ints

NORMALISERS = {
    "mm": "(score − min) ÷ (max − min): the list's worst is 0, its best 1",
    "tmm": "(score − lowest) ÷ (max − lowest), with the lowest score the retriever can give",
    "z": "(score − mean) ÷ standard deviation",
    "dbsf": "(score − (mean − 3σ)) ÷ 6σ: what lies within three standard deviations is 0…1",
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
            "tmm needs the lowest score that the retriever can give",
            fix="for example -1 for a cosine, 0 for BM25",
        )
    score = np.asarray(score, dtype=np.float64)
    if not len(score):
        return score.copy()
    lists = _Lists.of(score, np.zeros(len(score), np.int64) if query is None else query)
    with np.errstate(all="ignore"):
        floor, span = lists.scale(how, 0.0 if lowest is None else lowest)
        _check(lists, span)
        scaled: Floats = (score - floor[lists.number]) / span[lists.number]
    return scaled


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """Scores by list, and what is known of every list."""

    score: Floats
    known: Bools
    start: Ints  # where each list begins
    number: Ints  # the list of each score
    low: Floats
    high: Floats
    count: Ints

    @classmethod
    def of(cls, score: Floats, query: Ints) -> _Lists:
        known = ~np.isnan(score)
        begins = np.diff(query, prepend=query[0] - 1) != 0
        start = np.flatnonzero(begins)
        return cls(
            score=score,
            known=known,
            start=start,
            number=np.cumsum(begins) - 1,
            low=np.minimum.reduceat(np.where(known, score, np.inf), start),
            high=np.maximum.reduceat(np.where(known, score, -np.inf), start),
            count=np.add.reduceat(known.astype(np.int64), start),
        )

    def scale(self, how: str, lowest: float) -> tuple[Floats, Floats]:
        """Return what to subtract and what to divide by, NaN where there is nothing to divide."""
        least = np.full(len(self.start), lowest) if how == "tmm" else self.low
        if ((self.high < least) & (self.count > 0)).any():
            raise OptionError(
                f"all scores of a query lie below {lowest:g}, said to be the lowest",
                fix="give tmm the lowest score that the retriever can give",
            )
        if how in {"mm", "tmm"}:
            floor, span = least, self.high - least
        else:
            mean, deviation = self._moments()
            floor, span = mean, deviation
            if how == "dbsf":
                floor = mean - 3 * deviation
                span = (mean + 3 * deviation) - floor
        # equal scores may have a deviation by rounding, and nearly equal ones none
        return floor, np.where((self.high > least) & (span > 0), span, np.nan)

    def _moments(self) -> tuple[Floats, Floats]:
        mean = self._sum(self.score) / self.count
        return mean, np.sqrt(self._sum((self.score - mean[self.number]) ** 2) / self.count)

    def _sum(self, values: Floats) -> Floats:
        total: Floats = np.add.reduceat(np.where(self.known, values, 0.0), self.start)
        return total


def _check(lists: _Lists, span: Floats) -> None:
    bad = (lists.count > 0) & (np.isinf(lists.low) | np.isinf(lists.high) | np.isinf(span))
    if bad.any():
        raise InputError(
            f"the scores of {int(bad.sum())} lists are infinite, or too far apart to be scaled",
            fix="give finite scores, or fuse by rank, which needs none",
        )
