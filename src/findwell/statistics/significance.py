"""Tests: could chance alone have made a difference? Corrections for several of them.

Of paired differences (`sign_flip`, `paired_t`, `mcnemar`), of all pairs of systems at once
(`tukey`), of parts of the queries (`subset_p`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil, comb, erfc, exp, inf, lgamma, log, log2, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, check_draws, choose
from findwell.statistics.intervals import (
    as_columns,
    as_units,
    cluster_codes,
    each_statistic,
    estimate,
    is_binary,
    refuse_infinite,
    same_rows,
    same_shape,
    scipy,
    to_scale,
)
from findwell.statistics.resampling import (
    all_sign_sums,
    normal_ranges,
    shuffled_ranges,
    sign_sums,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats
    from findwell.core.estimate import Estimate
    from findwell.statistics.intervals import Statistic

CORRECTIONS = ("holm", "bh")
PERMUTATIONS = 10_000
T_TESTS = ("t", "welch")
EXACT_UNITS = 16  # units that differ, up to which all 2 ** 16 signs are tried: finer than at random
ROUNDING = 1e-12  # of the sum of absolute differences: sums this close are the same sum

NO_PAIR = "no query has a value in both"
ONE_PAIR = "one query says nothing about the spread"
NONE_DIFFERS = "no query differs"
SAME_DIFFERENCE = "every query differs by the same amount"
NOT_BINARY = "not every value is 0 or 1"
EQUAL_RATES = 1e-9  # p-values and rates that differ by this share are equal
SMALLEST_P = 1e-300  # p-values below have no normal quantile
LEAST_SHARE = 1e-4  # of the difference, that a limit next to 0 is away from it
MOVED_LIMIT = "limit next to 0 by the test"

SHUFFLED_QUERIES = 500  # queries that carry the spread, beyond which sums of shuffles are normal
NO_QUERY = "no query has a value in every system"
ONE_SYSTEM = "there is one system"
NO_SYSTEM_DIFFERS = "no query differs between the systems"

DRAWS = 10_000
DEALT_VALUES = 1 << 27  # values dealt in all, at most
BLOCK_VALUES = 1 << 22
MANY_QUERIES = 50  # in a part and outside, beyond which the mean of a random part is normal


@dataclass(frozen=True, slots=True)
class Significance:
    """How often chance makes such a difference; None with a reason where that is unknown."""

    p: float | None
    method: str
    n: int  # queries with a value in both
    statistic: float | None = None
    reason: str = ""
    smallest: float | None = None  # the smallest p that such a test can give; None: any
    error: float | None = None  # of a t test: the standard error, and its degrees of freedom
    freedom: float | None = None


def rejects(p: float | None, alpha: float) -> bool:
    """Say whether a p-value is small enough: at most alpha.

    >>> rejects(0.05, 1 - 0.95), rejects(0.051, 1 - 0.95), rejects(None, 0.05)
    (True, False, False)
    """
    return p is not None and p <= alpha * (1 + EQUAL_RATES)


def decide_zero(found: Estimate, p: float | None, alpha: float) -> Estimate:
    """Return the interval of a difference so that 0 is outside exactly where a test rejects it.

    `p` is that of the test whether the difference is 0, and `alpha` is the error rate that the
    interval is made for. Where the two disagree about 0, the limit next to 0 becomes that of the
    test: the difference times 1 − z(alpha) ÷ z(p), which is where a test with this p stops to
    reject if its standard error is the same everywhere (Miettinen 1976).

    >>> from findwell.core.estimate import Estimate
    >>> wide = Estimate(0.1, -0.02, 0.3, 0.95, "some", 20, 0)
    >>> print(f"{decide_zero(wide, 0.01, 0.05).low:.4f}", decide_zero(wide, 0.2, 0.05).low)
    0.0239 -0.02
    """
    if p is None:  # nothing is tested: no limit may say that 0 is excluded
        return replace(found, low=None, high=None, method="")
    if not found.value or found.low is None or found.high is None:
        return found
    shown, inside = rejects(p, alpha), found.low <= 0 <= found.high
    if shown != inside:
        return found
    up = found.value > 0
    allowed, seen = (
        -NormalDist().inv_cdf(max(each, SMALLEST_P) / 2)
        for each in (alpha * (1 + EQUAL_RATES), min(p, 1))
    )
    share = 1 - allowed / seen if seen > 0 else -inf
    # where p is alpha this is 0: that the limit is on the right side can be seen all the same
    limit = found.value * (max(share, LEAST_SHARE) if shown else min(share, -LEAST_SHARE))
    if not shown:  # no farther than the other limit: a p of 1 says nothing about the distance
        limit = max(limit, -found.high) if up else min(limit, -found.low)
    limits = {"low": limit} if up else {"high": limit}
    return replace(found, method=f"{found.method}, {MOVED_LIMIT}", **limits)  # type: ignore[arg-type]


def decide_by_test(
    found: Estimate, test: Significance, alpha: float, step: float, room: float
) -> Estimate:
    """Return the interval of a difference that a test decides about; that of a t test is its own.

    A t test has the difference ± t × its error. `step` is what 1 on the scale of the test is worth,
    where the difference does not say it, and no difference is larger than `room`.
    """
    if test.method not in T_TESTS:
        return decide_zero(found, test.p, alpha)
    if test.p is None:  # all differences are equal, so that the test knows no spread
        return replace(found, low=None, high=None, method="", reason=test.reason or found.reason)
    if found.value is None or test.error is None or test.freedom is None:  # none differs
        return found
    if found.value and test.statistic and test.error:
        step = found.value / (test.statistic * test.error)
    reach = float(scipy("stats").t.isf(alpha / 2, test.freedom)) * test.error * abs(step)
    low, high = max(found.value - reach, -room), min(found.value + reach, room)
    # rounding may put a limit on the wrong side of 0
    return decide_zero(replace(found, low=low, high=high, method=test.method), test.p, alpha)


def sign_flip(
    differences: ArrayLike,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    clusters: Sequence[object] | None = None,
) -> tuple[Significance, ...]:
    """Test whether the mean of each column of differences is 0, by flipping their signs.

    If two systems are alike, which of them scored which value of a query is chance, so any signs
    of the differences were as likely as those seen. p is the share of sign patterns with a sum at
    least as extreme: of all patterns if few units differ (`exact`), otherwise of random ones,
    counting the pattern seen as one of them (`permutation`; Phipson and Smyth 2010). NaN is left
    out. Queries of a cluster flip together. Two-sided.

    >>> sign_flip([0.3, 0.1, 0.2, 0.4])[0].p
    0.125
    """
    check_draws("permutations", permutations)
    table = as_columns(differences)
    pairs = (~np.isnan(table)).sum(axis=0)
    filled = _without_rounding(np.nan_to_num(table))  # a 0 has no sign: as good as left out
    moved = (filled != 0).any(axis=0)
    if clusters is not None:
        filled = _without_rounding(as_units(filled, cluster_codes(clusters, len(table))).sums)
    differ = (filled != 0).sum(axis=0)
    shares = np.zeros(table.shape[1])
    for column in np.flatnonzero(differ <= EXACT_UNITS):
        values = filled[filled[:, column] != 0, column]
        shares[column] = _extreme(all_sign_sums(values), values).mean()
    many = np.flatnonzero(differ > EXACT_UNITS)
    if len(many):
        chosen = np.ascontiguousarray(filled[:, many])
        hits = np.ones(len(many))  # the signs as they are count as one draw
        for sums in sign_sums(chosen, permutations, seed):
            hits += _extreme(sums, chosen).sum(axis=0)
        shares[many] = hits / (permutations + 1)
    found = []
    for number, n in enumerate(pairs.tolist()):
        exact = bool(differ[number] <= EXACT_UNITS)
        p, method = (float(shares[number]) if n else None), "exact" if exact else "permutation"
        smallest = _smallest(int(differ[number])) if exact else 1 / (permutations + 1)
        reason = "" if moved[number] else NONE_DIFFERS if n else NO_PAIR
        found.append(Significance(p, method, n, reason=reason, smallest=smallest))
    return tuple(found)


def _smallest(differ: int) -> float | None:
    """Return the share of sign patterns that are as extreme as the most extreme of all."""
    return min(1.0, 2 / 2**differ) if differ else None


def out_of_reach(
    test: str, smallest: float | None, alpha: float, *, tests: int = 1, clustered: bool = False
) -> str:
    """Say that p cannot fall to alpha, and what it takes; nothing if it can.

    `tests` is what p is multiplied by, to correct for their number.

    >>> print(out_of_reach("exact", 0.0625, 0.05, clustered=True))
    5 clusters differ, so that p cannot fall below 0.0625: it takes 6 for p ≤ 0.05
    """
    if smallest is None or rejects(smallest * tests, alpha):
        return ""
    floor = f"p cannot fall below {smallest:.3g}"
    if tests > 1:
        floor += f", or {min(1.0, smallest * tests):.3g} corrected for {tests} tests"
    share = tests / round(alpha, 12)  # 1 − 0.95 is a little more than 0.05
    if test == "permutation":
        drawn = f"{round(1 / smallest) - 1} permutations are drawn"
        return f"{drawn}, so that {floor}: it takes {ceil(share) - 1} for p ≤ {alpha:.3g}"
    differ, needed = round(1 - log2(smallest)), ceil(1 + log2(share))
    one, many = ("cluster", "clusters") if clustered else ("query", "queries")
    units = f"1 {one} differs" if differ == 1 else f"{differ} {many} differ"
    return f"{units}, so that {floor}: it takes {needed} for p ≤ {alpha:.3g}"


def paired_t(
    differences: ArrayLike, *, clusters: Sequence[object] | None = None
) -> tuple[Significance, ...]:
    """Test whether the mean of each column of differences is 0, by Student's t (SciPy).

    Two-sided. With clusters the standard error is that between clusters, and their number gives
    the degrees of freedom.
    """
    stats = scipy("stats")
    table = as_columns(differences)
    codes = None if clusters is None else cluster_codes(clusters, len(table))
    found: dict[int, Significance] = {}
    for rows, columns in same_rows(table):
        units = as_units(table[rows][:, columns], None if codes is None else codes[rows])
        made = estimate(units)
        for column, value, influence, flat in zip(
            columns, made.values.tolist(), made.influence, made.flat, strict=True
        ):
            if len(units) < 2:
                reason = ONE_PAIR if len(units) else NO_PAIR
                found[column] = Significance(None, "t", made.n, reason=reason)
            elif flat:  # nothing differs, or nothing can be said
                same = abs(value) <= ROUNDING
                found[column] = Significance(
                    1.0 if same else None,
                    "t",
                    made.n,
                    0.0 if same else None,
                    NONE_DIFFERS if same else SAME_DIFFERENCE,
                )
            else:
                test = stats.ttest_1samp(value + influence, 0.0)
                t, p = float(test.statistic), float(test.pvalue)
                error = float(np.std(influence, ddof=1)) / sqrt(len(units))
                found[column] = Significance(
                    p, "t", made.n, t, error=error, freedom=len(units) - 1.0
                )
    return tuple(found[column] for column in range(table.shape[1]))


def mcnemar(baseline: ArrayLike, system: ArrayLike) -> tuple[Significance, ...]:
    """Test hit or miss of the same queries, column by column (McNemar, exact).

    Only queries that one system hit and the other missed count: are they as often one way as the
    other? Two-sided. The binomial distribution is exact at any number of queries.

    >>> mcnemar([0, 0, 0, 0, 1], [1, 1, 1, 1, 0])[0].p
    0.375
    """
    before, after = as_columns(baseline), as_columns(system)
    same_shape(before, after)
    return tuple(_mcnemar(before[:, column], after[:, column]) for column in range(before.shape[1]))


def _mcnemar(before: Floats, after: Floats) -> Significance:
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    n = len(before)
    if not n:
        return Significance(None, "mcnemar", 0, reason=NO_PAIR)
    if not (is_binary(before) and is_binary(after)):
        return Significance(None, "mcnemar", n, reason=NOT_BINARY)
    lost, won = int((before > after).sum()), int((after > before).sum())
    if not lost + won:
        return Significance(1.0, "mcnemar", n, 0.0, reason=NONE_DIFFERS)
    rarer, changed = min(lost, won), lost + won
    p = min(1.0, 2 * _fair_coin(rarer, changed))
    return Significance(p, "mcnemar", n, float(rarer), smallest=_smallest(changed))


def _fair_coin(heads: int, tosses: int) -> float:
    """Return the chance of at most this many heads, which are no more than the tails.

    The last term exactly, or by logarithms of factorials; each one before it by its ratio to it.
    """
    if tosses <= 10_000:
        last = comb(tosses, heads) / 2**tosses
    else:
        ways = lgamma(tosses + 1) - lgamma(heads + 1) - lgamma(tosses - heads + 1)
        last = exp(ways - tosses * log(2))
    fewer = np.arange(heads, 0, -1)
    ratios = np.cumprod(fewer / (tosses - fewer + 1))
    return float(last * (1 + ratios.sum()))


def adjust(p_values: Sequence[float | None], method: str = "holm") -> tuple[float | None, ...]:
    """Return p-values corrected for their number; None stays None and does not count.

    `holm` keeps the chance of any false alarm below the level: for several systems against one
    baseline. `bh` (Benjamini and Hochberg) keeps the share of false alarms among the alarms below
    it: for many slices.

    >>> adjust([0.01, 0.04, None, 0.03])
    (0.03, 0.06, None, 0.06)
    """
    choose("correction", method, CORRECTIONS)
    known = [p for p in p_values if p is not None]
    if any(not 0 <= p <= 1 for p in known):
        raise InputError("a p-value is not between 0 and 1")
    order = np.argsort(known, kind="stable")
    ascending, rank = np.array(known)[order], np.arange(1, len(known) + 1)
    if method == "holm":  # each times the number of those not smaller, and none below the last
        raised = np.maximum.accumulate(ascending * (len(known) - rank + 1))
    else:
        raised = np.minimum.accumulate((ascending * len(known) / rank)[::-1])[::-1]
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(raised, 1.0)
    found = iter(adjusted.tolist())
    return tuple(None if p is None else next(found) for p in p_values)


def error_rates(
    p_values: Sequence[float | None], method: str = "holm", alpha: float = 0.05
) -> tuple[float, ...]:
    """Return the error that the corrected test allows each p-value by itself.

    A test at this rate is as strict as the corrected one: it rejects where the corrected p is at
    most alpha. After Holm, p-values that are shown have the rate of their step, equal ones that of
    the first of them, so that their order is of no matter; all others have that of the first step
    that failed. After Benjamini and Hochberg, with R of m shown, all have
    alpha × R ÷ m, and the share of wrong intervals among those shown is alpha at most (Benjamini
    and Yekutieli 2005).

    >>> error_rates([0.01, 0.04, None, 0.03])
    (0.016666666666666666, 0.025, 0.025, 0.025)
    >>> error_rates([0.001, 0.001])
    (0.025, 0.025)
    >>> error_rates([0.01, 0.04, 0.6], "bh")
    (0.016666666666666666, 0.016666666666666666, 0.016666666666666666)
    """
    tests = sum(p is not None for p in p_values)
    shown = [rejects(p, alpha) for p in adjust(p_values, method)]
    count = sum(shown)
    if not tests:
        return (alpha,) * len(p_values)
    if method == "bh":
        return (alpha * max(count, 1) / tests,) * len(p_values)
    ascending = sorted(p for p in p_values if p is not None)
    rest = alpha / max(tests - count, 1)
    return tuple(
        alpha / (tests - bisect_left(ascending, p)) if p is not None and clear else rest
        for p, clear in zip(p_values, shown, strict=True)
    )


def _extreme(sums: Floats, values: Floats) -> np.ndarray:
    """Say which sums are at least as extreme as that of the values as they are."""
    rounding = ROUNDING * np.abs(values).sum(axis=0)
    return np.asarray(np.abs(sums) >= np.abs(values.sum(axis=0)) - rounding)


def _without_rounding(columns: Floats) -> Floats:
    """Return the columns with 0 for what is only rounding next to their largest value."""
    smallest = ROUNDING * np.abs(columns).max(axis=0, initial=0.0)
    return np.where(np.abs(columns) > smallest, columns, 0.0)


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Every pair of systems on one measure."""

    p: Mapping[tuple[int, int], float | None]  # by the numbers of two systems, smaller first
    method: str  # permutation, or normal where there are many queries
    n: int  # queries with a value in every system
    # between the best and the worst mean when values are dealt again, ascending
    ranges: Floats = field(repr=False, compare=False)
    reason: str = ""

    def chance(self, difference: float) -> float | None:
        """Return how often best and worst lie at least this far apart; None without a query.

        A pair that has more queries than those with a value in every system is tested by the
        difference over all of its own.
        """
        return _chance(self.ranges, difference) if self.n else None


def _chance(ranges: Floats, difference: float) -> float:
    """Return the share of ascending ranges, and the one seen, that are at least this large."""
    rounding = 1e-9 * ranges[-1]  # sums that differ by no more are equal
    larger = len(ranges) - np.searchsorted(ranges, abs(difference) - rounding, side="left")
    return float((larger + 1) / (len(ranges) + 1))


def tukey(
    values: ArrayLike,
    *,
    statistic: Statistic = "mean",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[AllPairs, ...]:
    """Test all pairs of systems at once: randomised Tukey HSD (Carterette 2012), by measure.

    `values` is queries × systems, or queries × systems × measures. If all systems are alike, the
    values of a query could have been dealt to the systems in any order. They are dealt again at
    random; p of a pair is how often the best and the worst system then lie as far apart as the
    pair does, so that it holds for all pairs together and needs no further correction. A query
    that lacks a value in any system is left out.

    Where more than 500 queries carry the spread between systems, sums over queries are
    normally distributed to a precision that no number of shuffles shows; then (`normal`) the
    ranges are drawn from the normal distribution with the variance that shuffling has. By how
    many queries the spread is carried is (Σ v)² ÷ Σ v², v the variance between systems in a query.
    """
    check_draws("permutations", permutations)
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 2:
        table = table[:, :, np.newaxis]
    if table.ndim != 3:
        raise InputError(f"values have {table.ndim} dimensions, not two or three")
    refuse_infinite(table)
    _, systems, measures = table.shape
    names = each_statistic(statistic, measures)
    scaled = to_scale(table.reshape(-1, measures), names).reshape(table.shape)
    complete = np.asarray(~np.isnan(scaled).any(axis=1))
    filled = np.where(complete[:, np.newaxis, :], scaled, 0.0)
    centred = filled - filled.sum(axis=1, keepdims=True) / max(systems, 1)
    ranges, methods = _ranges(centred, permutations, seed)
    found = []
    for measure in range(measures):
        n = int(complete[:, measure].sum())
        dealt = np.sort(ranges[measure]) / max(n, 1)
        means = centred[:, :, measure].sum(axis=0) / max(n, 1)
        p = {
            (one, other): _chance(dealt, float(means[one] - means[other])) if n else None
            for one, other in combinations(range(systems), 2)
        }
        reason = ONE_SYSTEM if systems < 2 else "" if n else NO_QUERY
        if not reason and np.abs(centred[:, :, measure]).max() <= ROUNDING:
            reason = NO_SYSTEM_DIFFERS
        found.append(AllPairs(p, methods[measure], n, dealt, reason))
    return tuple(found)


def _ranges(centred: Floats, draws: int, seed: int) -> tuple[list[Floats], list[str]]:
    """Return random ranges for each measure, and how they were drawn."""
    queries, systems, measures = centred.shape
    variance = (centred**2).mean(axis=1) if systems else np.zeros((queries, measures))
    total = variance.sum(axis=0)
    carried = total**2 / np.maximum((variance**2).sum(axis=0), np.finfo(float).tiny)
    methods = ["normal" if share > SHUFFLED_QUERIES else "permutation" for share in carried]
    ranges = [np.zeros(draws)] * measures
    standard = normal_ranges(systems, draws, seed) if "normal" in methods else np.zeros(0)
    alike: dict[bytes, list[int]] = {}  # measures that the same queries decide share shuffles
    for measure in range(measures):
        if methods[measure] == "normal":
            ranges[measure] = standard * sqrt(total[measure] * systems / (systems - 1))
        elif total[measure] > 0:
            alike.setdefault((variance[:, measure] > 0).tobytes(), []).append(measure)
    for group in alike.values():
        rows = variance[:, group[0]] > 0
        blocks = list(shuffled_ranges(centred[rows][:, :, group], draws, seed))
        for measure, column in zip(group, np.concatenate(blocks).T, strict=True):
            ranges[measure] = column
    return ranges, methods


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
    few = {size for size in sizes if 0 < min(size, total - size) < MANY_QUERIES}
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
    count = max(min(draws, DEALT_VALUES // len(centred)), 1)
    ends = np.array(sizes) - 1
    found = []
    for start in range(0, count, step := max(BLOCK_VALUES // len(centred), 1)):
        rows = np.tile(centred, (min(step, count - start), 1))
        shuffled = rng.permuted(rows, axis=1)[:, : ends[-1] + 1]
        found.append(np.abs(np.cumsum(shuffled, axis=1)[:, ends]) / (ends + 1))
    return dict(zip(sizes, np.concatenate(found).T, strict=True))
