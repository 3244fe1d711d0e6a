"""Tests of paired differences: could chance alone have made them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import choose
from karat.statistics.clusters import as_units, cluster_codes
from karat.statistics.intervals import binary, estimates, flat, same_rows
from karat.statistics.quantity import as_columns, check_draws, extra, same_shape
from karat.statistics.resampling import all_sign_sums, sign_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from karat.data import Floats

ALTERNATIVES = ("two-sided", "greater", "less")
PERMUTATIONS = 10_000
EXACT = 16  # units that differ, up to which all 2 ** 16 signs are tried: finer than at random
ROUNDING = 1e-12  # of the sum of absolute differences: sums this close are the same sum

NO_PAIR = "no query has a value in both"
ONE_PAIR = "one query says nothing about the spread"
NONE_DIFFERS = "no query differs"
SAME_DIFFERENCE = "every query differs by the same amount"
NOT_BINARY = "not every value is 0 or 1"


@dataclass(frozen=True, slots=True)
class Significance:
    """How often chance makes such a difference; None with a reason where that is unknown."""

    p: float | None
    method: str
    n: int  # queries with a value in both
    statistic: float | None = None
    reason: str = ""


def sign_flip(
    differences: ArrayLike,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    alternative: str = "two-sided",
    clusters: Sequence[object] | None = None,
) -> tuple[Significance, ...]:
    """Test whether the mean of each column of differences is 0, by flipping their signs.

    If two systems are alike, which of them scored which value of a query is chance, so any signs
    of the differences were as likely as those seen. p is the share of sign patterns with a sum at
    least as extreme: of all patterns if few units differ (`exact`), otherwise of random ones,
    counting the pattern seen as one of them (`permutation`; Phipson and Smyth 2010). NaN is left
    out. Queries of a cluster flip together. `greater` asks whether the mean is above 0.

    >>> sign_flip([0.3, 0.1, 0.2, 0.4])[0].p
    0.125
    """
    choose("alternative", alternative, ALTERNATIVES)
    check_draws("permutations", permutations)
    table = as_columns(differences)
    pairs = (~np.isnan(table)).sum(axis=0)
    filled = _without_rounding(np.nan_to_num(table))  # a 0 has no sign: as good as left out
    moved = (filled != 0).any(axis=0)
    if clusters is not None:
        filled = _without_rounding(as_units(filled, cluster_codes(clusters, len(table))).sums)
    differ = (filled != 0).sum(axis=0)
    shares = np.zeros(table.shape[1])
    for column in np.flatnonzero(differ <= EXACT):
        values = filled[filled[:, column] != 0, column]
        shares[column] = _extreme(all_sign_sums(values), values, alternative).mean()
    many = np.flatnonzero(differ > EXACT)
    if len(many):
        chosen = np.ascontiguousarray(filled[:, many])
        shares[many] = _share_at_random(chosen, permutations, seed, alternative)
    return tuple(map(_flipped, shares.tolist(), pairs.tolist(), differ.tolist(), moved.tolist()))


def _flipped(share: float, n: int, differ: int, moved: bool) -> Significance:
    if not n:
        return Significance(None, "exact", 0, reason=NO_PAIR)
    method = "exact" if differ <= EXACT else "permutation"
    return Significance(share, method, n, reason="" if moved else NONE_DIFFERS)


def _share_at_random(columns: Floats, permutations: int, seed: int, alternative: str) -> Floats:
    """Return the share of random sign patterns, and the one seen, that are as extreme."""
    hits = np.ones(columns.shape[1])
    for sums in sign_sums(columns, permutations, seed):
        hits += _extreme(sums, columns, alternative).sum(axis=0)
    return hits / (permutations + 1)


def paired_t(
    differences: ArrayLike, *, clusters: Sequence[object] | None = None
) -> tuple[Significance, ...]:
    """Test whether the mean of each column of differences is 0, by Student's t (SciPy).

    Two-sided. With clusters the standard error is that between clusters, and their number gives
    the degrees of freedom.
    """
    stats = extra("scipy.stats")
    table = as_columns(differences)
    codes = None if clusters is None else cluster_codes(clusters, len(table))
    found: dict[int, Significance] = {}
    for rows, columns in same_rows(table):
        units = as_units(table[rows][:, columns], None if codes is None else codes[rows])
        made = estimates(units, ["t"] * len(columns), 0, 0)
        for column, estimate in zip(columns, made, strict=True):
            if len(units) < 2:
                reason = ONE_PAIR if len(units) else NO_PAIR
                found[column] = Significance(None, "t", estimate.n, reason=reason)
            elif flat(estimate):
                found[column] = _no_spread("t", estimate.value, estimate.n)
            else:
                test = stats.ttest_1samp(estimate.value + estimate.influence, 0.0)
                t, p = float(test.statistic), float(test.pvalue)
                found[column] = Significance(p, "t", estimate.n, t)
    return tuple(found[column] for column in range(table.shape[1]))


def mcnemar(baseline: ArrayLike, system: ArrayLike) -> tuple[Significance, ...]:
    """Test hit or miss of the same queries, column by column (McNemar, exact; statsmodels).

    Only queries that one system hit and the other missed count: are they as often one way as the
    other? Two-sided. The binomial distribution is exact at any number of queries.
    """
    tables = extra("statsmodels.stats.contingency_tables")
    before, after = as_columns(baseline), as_columns(system)
    same_shape(before, after)
    return tuple(
        _mcnemar(tables, before[:, column], after[:, column]) for column in range(before.shape[1])
    )


def _mcnemar(tables: object, before: Floats, after: Floats) -> Significance:
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    n = len(before)
    if not n:
        return Significance(None, "mcnemar", 0, reason=NO_PAIR)
    if not (binary(before) and binary(after)):
        return Significance(None, "mcnemar", n, reason=NOT_BINARY)
    lost, won = int((before > after).sum()), int((after > before).sum())
    if not lost + won:
        return Significance(1.0, "mcnemar", n, 0.0, reason=NONE_DIFFERS)
    counts = [[int((before + after == 2).sum()), lost], [won, int((before + after == 0).sum())]]
    test = tables.mcnemar(counts, exact=True)  # type: ignore[attr-defined]
    return Significance(float(test.pvalue), "mcnemar", n, float(test.statistic))


def _extreme(sums: Floats, values: Floats, alternative: str) -> np.ndarray:
    """Say which sums are at least as extreme as that of the values as they are."""
    seen = values.sum(axis=0)
    rounding = ROUNDING * np.abs(values).sum(axis=0)
    if alternative == "two-sided":
        return np.asarray(np.abs(sums) >= np.abs(seen) - rounding)
    if alternative == "greater":
        return np.asarray(sums >= seen - rounding)
    return np.asarray(sums <= seen + rounding)


def _without_rounding(columns: Floats) -> Floats:
    """Return the columns with 0 for what is only rounding beside their largest value."""
    smallest = ROUNDING * np.abs(columns).max(axis=0, initial=0.0)
    return np.where(np.abs(columns) > smallest, columns, 0.0)


def _no_spread(method: str, mean: float, n: int) -> Significance:
    """Return what a test without any spread says: nothing differs, or nothing can be said."""
    if abs(mean) <= ROUNDING:
        return Significance(1.0, method, n, 0.0, NONE_DIFFERS)
    return Significance(None, method, n, reason=SAME_DIFFERENCE)
