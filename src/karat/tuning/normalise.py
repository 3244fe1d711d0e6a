"""Scores made comparable: a cosine and a BM25 score cannot be added up as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError, choose

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints

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
