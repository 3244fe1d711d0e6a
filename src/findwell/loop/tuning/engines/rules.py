"""What entries of the table share: rules of weights, of ties, and short ways to write them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.loop.tuning.engines.engine import Formula, WeightRule
from findwell.loop.tuning.engines.values import RankValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Ints
    from findwell.loop.tuning.engines.engine import Join, ListValues
    from findwell.loop.tuning.pool import Pool


def ones(runs: int) -> tuple[float, ...]:
    """Return a weight of 1 for each run."""
    return (1.0,) * runs


def shares(runs: int) -> tuple[float, ...]:
    """Return the same share of 1 for each run."""
    return (1 / runs,) * runs


def these(*weights: float) -> WeightRule:
    """Return the rule of two weights that add up to 1, with their defaults."""
    return WeightRule(lambda _: weights, high=1, total=1, about="two numbers that add up to 1")


def by_id(pool: Pool) -> Sequence[Ints]:
    """Break ties by the id of the document, ascending; whole numbers come first, by value."""
    number = pool.doc.cast(pl.Int64, strict=False).fill_null(np.iinfo(np.int64).max)
    return number.to_numpy(), pool.doc.rank("dense").to_numpy().astype(np.int64)


def by_last_score(pool: Pool) -> Sequence[Ints | Floats]:
    """Break ties by the score in the last list that has the document, then by id."""
    last = pool.score[0]
    for each in pool.score[1:]:
        last = np.where(np.isnan(each), last, each)
    return (-last, *by_id(pool))


def by_last_list(pool: Pool) -> Sequence[Ints]:
    """Break ties by the rank in the last list, then in the one before it."""
    absent = pool.rank.max(initial=0) + 1
    return tuple(np.where(each > 0, each, absent) for each in pool.rank[::-1])


def all_the_same(names: tuple[str, ...]) -> bool:
    """Tell whether one normaliser holds for all runs."""
    return len(set(names)) == 1


def all_or_distances(names: tuple[str, ...]) -> bool:
    """Tell whether every run is normalised, or none but distances among similarities."""
    return "none" not in names or set(names) <= {"none", "l2"}


ANY = WeightRule(ones)
SHARES = WeightRule(shares, high=1, total=1, about="numbers from 0 that add up to 1")
MADE_SHARES = WeightRule(shares)
OF_ONE = WeightRule(
    ones, high=1, total=1, tolerance=0.01, about="numbers from 0 to 1 that add up to 1 (± 0.01)"
)
KEYWORD_VECTOR = ("keyword", "vector")
INTERNAL_TIES = "ties go by internal document numbers; here by id, ascending"
UNDEFINED_TIES = "the order of ties is undefined; here by id, ascending"
UNKNOWN_TIES = "the order of ties is not documented; here by id, ascending"
DIVISOR = partial(RankValues, gives="divisor")
NEGATIVE = "a list of negative scores is scaled as if its best score were 0"


def only(lists: ListValues, join: Join, *, every_list: bool = False) -> dict[str, Formula]:
    """Return the formulas of an engine that has always computed the same."""
    return {"": Formula(lists=lists, join=join, every_list=every_list)}
