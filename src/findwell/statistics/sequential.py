"""Numbers you can check as often as you like: they stay valid after every look (anytime-valid).

An interval for a fixed number of queries is wrong too often if it is looked at again and again:
some look finds chance on its side. A confidence sequence holds the true mean at all times at once,
with the stated chance. It comes from betting: a gambler bets on each value before it is seen,
against the claim that the mean is m. If the claim is true, no way of betting makes money on
average, so that the capital, 1 at first, reaches 1 ÷ α at any time with a chance of α at
most (Ville 1939). Claims against which the gambler has grown rich are left out (Waudby-Smith and
Ramdas: Estimating means of bounded random variables by betting, JRSS B 86, 2024).

Values lie between 0 and 1, in the order of time: one list, or a table with one column per stream. A
value that is NaN is undefined: no bet is made on it. Nothing is assumed about the values but that
their mean, given what came before, stays the same. Capitals are logarithms, so that none overflows.

A gambler who began to bet long before a change has lost the money by then. So one begins at every
moment, each with a part of the money, and a change finds a gambler who has just begun. Two promises
can be had from that:

- `change_evidence`: the parts sum to 1. While nothing changes, the evidence reaches 1 ÷ α at any
  time with a chance of α at most, for as long as it is watched. A late change is found later, by
  the logarithm of the time that has passed.
- `shiryaev_roberts`, `cusum`: each gambler begins with 1 (Shin, Ramdas and Rinaldo: E-detectors,
  2023). The evidence reaches A again and again, though nothing changes, after A values or more on
  average: the average run length. How late a change comes makes no difference.

Every gambler spreads the money over several sizes of bets, since the size of a change is unknown.

Where `mean` is None the values are ranks that are spread evenly between 0 and 1 while nothing
changes, as those of `conformal_ranks`. A bet on a rank p then pays 1 + s · (1 − 2p), which finds a
mean rank that is lower, or κ · p^(κ − 1), which pays much for a rank that is nearly 0: each has the
mean 1 while nothing changes. `above` bets on 1 − p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import InputError, check_share, choose
from findwell.statistics.intervals import as_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats, Ints

SIDES = ("below", "above", "both")
BISECTIONS = 40
LEAST_MARGIN = 1e-3  # what a share that is lost for certain counts as at least
# sizes of bets, as parts of the largest that no value can turn into a loss of everything
BET_SHARES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
BET_POWERS, BET_SLOPES = (0.1, 0.25, 0.5, 0.75), (0.16, 0.32, 0.64)  # of bets on ranks: κ and s
SMALLEST_RANK = 1e-12  # rank that counts as more than 0

# what gains since the beginning, the same one moment earlier, and the number of values give
StartRule: TypeAlias = "Callable[[Floats, Floats, Ints], Floats]"


def timeline(values: ArrayLike) -> Floats:
    """Return values as a table with one row per moment; raise if one is not between 0 and 1."""
    table = as_columns(values)
    if (table < 0).any() or (table > 1).any():
        raise InputError(
            "a value is not between 0 and 1",
            fix="scale the values to that range first",
        )
    return table


def _as_given(table: Floats, values: ArrayLike) -> Floats:
    """Return a list where a list was given."""
    return table[:, 0] if np.ndim(values) < 2 else table


class _Bets:
    """What is known before each value: the mean and the spread so far, and the size of a bet."""

    def __init__(self, table: Floats, alpha: float) -> None:
        self.defined = ~np.isnan(table)
        self.values = np.where(self.defined, table, 0.0)
        seen = np.cumsum(self.defined, axis=0)
        means = (0.5 + np.cumsum(self.values, axis=0)) / (seen + 1)
        squares = np.where(self.defined, (self.values - means) ** 2, 0.0)
        spreads = (0.25 + np.cumsum(squares, axis=0)) / (seen + 1)
        self.mean, self.spread = _before(means, 0.5), _before(spreads, 0.25)
        count = np.maximum(seen, 1)
        size = np.sqrt(2 * log(2 / alpha) / (count * np.log1p(count) * self.spread))
        self.size = np.where(self.defined, size, 0.0)


def _before(table: Floats, first: float) -> Floats:
    """Return what was known before each moment."""
    return np.vstack([np.full((1, table.shape[1]), first), table[:-1]])


def bernstein_sequence(values: ArrayLike, *, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """Return the lower and upper limits of the mean after each value (empirical Bernstein).

    The cheap one: a few sums, also over millions of values. All limits together are right with a
    chance of 1 − `alpha`; each is the tightest so far. If a lower limit passes the upper one, the
    mean has not stayed the same.

    >>> low, high = bernstein_sequence([1.0, 0.0] * 200)
    >>> f"{low[-1]:.3f} {high[-1]:.3f}"
    '0.409 0.594'
    """
    check_share("error rate", alpha)
    table = timeline(values)
    bets = _Bets(table, alpha)
    size = np.minimum(bets.size, 0.5)
    total = np.cumsum(size, axis=0)
    off = np.where(bets.defined, (bets.values - bets.mean) ** 2, 0.0)
    margin = log(2 / alpha) + np.cumsum((-np.log1p(-size) - size) * off, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.cumsum(size * bets.values, axis=0) / total
        reach = margin / total
    low, high = np.nan_to_num(centre - reach, nan=0.0), np.nan_to_num(centre + reach, nan=1.0)
    low = np.maximum.accumulate(np.maximum(low, 0.0), axis=0)
    high = np.minimum.accumulate(np.minimum(high, 1.0), axis=0)
    return _as_given(low, values), _as_given(high, values)


def hedged_limits(values: ArrayLike, *, alpha: float = 0.05) -> tuple[float, float]:
    """Return the limits of the mean after all values (hedged betting); (0, 1) of no value.

    Tighter than `bernstein_sequence`, above all for rare events. One gambler bets that the mean is
    more than m, another that it is less, each with half of the money.

    >>> low, high = hedged_limits([1.0, 0.0] * 200)
    >>> f"{low:.4f} {high:.4f}"
    '0.4110 0.5948'
    """
    check_share("error rate", alpha)
    table = timeline(values)
    if table.shape[1] != 1:
        raise InputError("hedged limits take one list of values")
    bets = _Bets(table, alpha)
    kept = bets.defined[:, 0]
    x, size, line = bets.values[kept], bets.size[kept], log(2 / alpha)
    if not len(x):
        return 0.0, 1.0
    return _lower_limit(x, size, line), 1.0 - _lower_limit(1 - x, size, line)


def _lower_limit(x: Floats, size: Floats, line: float) -> float:
    """Return the largest mean against which the capital has reached a line at some time."""

    def is_out(mean: float) -> bool:
        capital = np.cumsum(_log_more(x, size, np.array([mean])), axis=0)
        return bool(capital.max() >= line)

    if not is_out(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_out(middle) else (low, middle)
    return low


def _log_more(x: Floats, size: Floats, means: Floats) -> Floats:
    """Return the gains of bets that the mean is more than each of some means: moments × means."""
    with np.errstate(divide="ignore"):
        most = 0.5 / means
    return np.asarray(np.log1p(np.minimum(size, most) * (x - means)))


def betting_capital(values: ArrayLike, mean: float, *, side: str = "below") -> Floats:
    """Return the logarithm of the capital after each value, betting against one mean.

    `below` bets against the claim that the mean is `mean` or more, and grows rich if it is less;
    `above` bets against `mean` or less; `both` with half of the money each. Under the claim the
    capital reaches 1 ÷ α with a chance of α at most, however often it is looked at. The size
    of a bet is chosen by the mean and spread so far: nothing is bet while they fit the claim.

    >>> drop = betting_capital([0.9] * 20 + [0.1] * 20, 0.8)
    >>> bool(drop.max() > np.log(20))
    True
    >>> bool(betting_capital([0.9, 0.8] * 20, 0.8).max() > np.log(20))
    False
    """
    choose("side", side, SIDES)
    if side == "both":
        two = [betting_capital(values, mean, side=each) for each in SIDES[:2]]
        return np.asarray(np.logaddexp(*two) - log(2))
    if not 0 <= mean <= 1:
        raise InputError(f"the mean {mean} is not between 0 and 1")
    table, mean = (timeline(values), mean) if side == "below" else (1 - timeline(values), 1 - mean)
    bets = _Bets(table, 0.5)
    short = mean - bets.mean
    size = np.clip(short / (bets.spread + short**2), 0.0, 0.5 / max(1 - mean, LEAST_MARGIN))
    gains = np.where(bets.defined, np.log1p(size * (mean - bets.values)), 0.0)
    return _as_given(np.cumsum(gains, axis=0), values)


def e_bh(log_evidence: Sequence[float] | Floats, alpha: float = 0.05) -> tuple[bool, ...]:
    """Say which of a family of claims are rejected, so that few of the rejections are wrong.

    The evidence of each is the logarithm of an e-value: a capital, at any time at which it was
    chosen to look. With m claims, those with the k largest are rejected, for the largest k of which
    the smallest is at least m ÷ (αk). The share of wrong rejections is α at most on average,
    however the claims depend on each other (Wang and Ramdas 2022). A rejection needs a mean of all
    e-values of 1 ÷ α, which is a capital again: if all claims are true, a rejection at any time has
    a chance of α at most.

    >>> e_bh(np.log([100, 1, 45, 0.5]), 0.05)
    (True, False, True, False)
    >>> e_bh(np.log([70, 1, 1, 1]), 0.05)
    (False, False, False, False)
    """
    check_share("error rate", alpha)
    evidence = np.asarray(log_evidence, dtype=np.float64)
    order = np.argsort(-evidence, kind="stable")
    count = len(evidence)
    needed = log(max(count, 1) / alpha) - np.log(np.arange(1, count + 1))
    enough = np.flatnonzero(evidence[order] >= needed - 1e-12)
    rejected = np.zeros(count, dtype=bool)
    if len(enough):
        rejected[order[: enough[-1] + 1]] = True
    return tuple(rejected.tolist())


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Where the mean most likely began to differ."""

    start: int  # the first value after the change
    log_capital: float  # of the gambler who began there


def change_evidence(
    values: ArrayLike, mean: float | None, *, side: str = "below", earlier: int = 0
) -> Floats:
    """Return the logarithm of the evidence, after each value, that the mean is no longer kept.

    `below`: that it has fallen below `mean`, at some time; `above`, `both`: as in
    `betting_capital`. An e-process: reaching 1 ÷ α at any time, while nothing has changed, has a
    chance of α at most. That stays so where the first `earlier` values are not known any longer:
    the money of those who began with them counts as lost.

    >>> steady, broken = [0.9, 0.7] * 500, [0.5, 0.3] * 30
    >>> evidence = change_evidence(steady + broken, 0.78)
    >>> bool(evidence[:1000].max() < np.log(20) < evidence[-1])
    True
    """
    return _mixed(values, mean, side, partial(_with_waiting_money, first=earlier))


def shiryaev_roberts(values: ArrayLike, mean: float | None, *, side: str = "below") -> Floats:
    """Return the logarithm of the e-detector M = (M + 1) · L after each value.

    Raise an alarm at A and begin again: while nothing changes, A values or more pass on average.
    """
    return _mixed(values, mean, side, _sum_of_starts)


def cusum(values: ArrayLike, mean: float | None, *, side: str = "below") -> Floats:
    """Return the logarithm of the e-detector M = max(M, 1) · L after each value.

    It is never above that of Shiryaev and Roberts, and so keeps its average run length, too.
    """
    return _mixed(values, mean, side, _best_start)


def change_point(
    values: ArrayLike, mean: float | None, *, side: str = "below"
) -> ChangePoint | None:
    """Return since when the mean has differed: the start whose gambler is richest at the end.

    >>> change_point([1.0] * 50 + [0.0] * 10, 0.9).start
    50
    """
    best: ChangePoint | None = None
    for each in _sides(side):
        sums = _gains(values, mean, each)[..., 0]  # moments × sizes, of one list
        if not len(sums):
            return None
        before = np.vstack([np.zeros((1, sums.shape[1])), sums[:-1]])
        grown = sums[-1] - before
        start, size = np.unravel_index(int(np.argmax(grown)), grown.shape)
        found = ChangePoint(int(start), float(grown[start, size]))
        if best is None or found.log_capital > best.log_capital:
            best = found
    return best


def _sides(side: str) -> tuple[str, ...]:
    choose("side", side, SIDES)
    return SIDES[:2] if side == "both" else (side,)


def _mixed(values: ArrayLike, mean: float | None, side: str, method: StartRule) -> Floats:
    """Return the mean over sides and sizes of bets, of what a method makes of the gains."""
    count = np.cumsum(~np.isnan(timeline(values)), axis=0)[:, np.newaxis]
    parts = []
    for each in _sides(side):
        sums = _gains(values, mean, each)
        before = np.concatenate([np.zeros((1, *sums.shape[1:])), sums[:-1]])
        parts.append(method(sums, before, count))
    every = np.concatenate(parts, axis=1)
    found = np.logaddexp.reduce(every, axis=1) - log(every.shape[1])
    return np.asarray(found[:, 0] if np.ndim(values) < 2 else found)


def _gains(values: ArrayLike, mean: float | None, side: str) -> Floats:
    """Return the logarithms of what bets have made since the beginning: moments × sizes × lists."""
    table = timeline(values)
    table = table if side == "below" else 1 - table
    if mean is None:
        powers, slopes = (np.array(each)[:, np.newaxis] for each in (BET_POWERS, BET_SLOPES))
        ranks = np.maximum(table, SMALLEST_RANK)[:, np.newaxis, :]
        made = [np.log(powers) + (powers - 1) * np.log(ranks), np.log1p(slopes * (1 - 2 * ranks))]
        # nothing is bet on what is undefined
        return np.cumsum(np.nan_to_num(np.concatenate(made, axis=1)), axis=0)
    if not 0 <= mean <= 1:
        raise InputError(f"the mean {mean} is not between 0 and 1")
    mean = mean if side == "below" else 1 - mean
    sizes = np.array(BET_SHARES) / max(1 - mean, LEAST_MARGIN)
    won = np.nan_to_num(mean - table)[:, np.newaxis, :]  # nothing is bet on what is undefined
    return np.cumsum(np.log1p(sizes[:, np.newaxis] * won), axis=0)


def _sum_of_starts(sums: Floats, before: Floats, count: Ints) -> Floats:
    new = np.diff(count, axis=0, prepend=0) > 0  # no one begins at a moment without a value
    return np.asarray(sums + np.logaddexp.accumulate(np.where(new, -before, -np.inf), axis=0))


def _best_start(sums: Floats, before: Floats, _count: Ints) -> Floats:
    return np.asarray(sums - np.minimum.accumulate(before, axis=0))


def _with_waiting_money(sums: Floats, before: Floats, count: Ints, *, first: int) -> Floats:
    """Return the sum of the gamblers that have begun, and of the money of those still waiting.

    After n values 1 ÷ (1 + ln(1 + n)) is waiting: it falls slowly, so that late changes are found.
    """
    waiting = 1 / (1 + np.log1p(first + count))
    at_first = np.full((1, *waiting.shape[1:]), 1 / (1 + np.log1p(first)))
    earlier = np.concatenate([at_first, waiting[:-1]])
    with np.errstate(divide="ignore"):
        part = np.log(earlier - waiting)  # no money for a moment without a value
    begun = sums + np.logaddexp.accumulate(part - before, axis=0)
    return np.asarray(np.logaddexp(begun, np.log(waiting)))


def conformal_ranks(values: ArrayLike, reference: ArrayLike, *, seed: int = 0) -> Floats:
    """Return where each value stands among the reference and all values before it, from 0 to 1.

    While values come from where the reference came from, whatever that is, the ranks are
    independent and spread evenly between 0 and 1 (Vovk's conformal test): mean ½. A rank in the
    reference alone would not do, since a reference has chances of its own. Equal values are put in
    random order, by the seed. NaN stays NaN, and is left out of the reference. The rank of a value
    never changes as more values come: else each look would be a new chance to be wrong.

    >>> conformal_ranks([5.0, 9.0, 0.0], [1.0, 2.0, 3.0, 4.0]).round(2).tolist()
    [0.81, 0.87, 0.11]
    """
    table = np.asarray(values, dtype=np.float64)
    known = np.asarray(reference, dtype=np.float64)
    if table.ndim != 1 or known.ndim != 1:
        raise InputError("ranks compare one list of values with another")
    defined = ~np.isnan(table)
    every = np.concatenate([known[~np.isnan(known)], table[defined]])
    ties = _ties(len(every), seed)
    order = np.lexsort((ties, every))
    place = np.empty(len(every), dtype=np.int64)
    place[order] = np.arange(len(every))
    smaller = _smaller_before(place)
    among = np.arange(1, len(every) + 1)
    ranks = (smaller + np.random.default_rng([seed, 1]).random(len(every))) / among
    found = np.full(len(table), np.nan)
    found[defined] = ranks[len(every) - int(defined.sum()) :]
    return found


def reference_ranks(values: ArrayLike, reference: ArrayLike, *, seed: int = 0) -> Floats:
    """Return where each value stands among the reference alone, from 0 to 1.

    Ties are broken as in `conformal_ranks` with the same seed. These ranks say where values are
    now, but not with which chance: a reference has chances of its own. NaN stays NaN.

    >>> reference_ranks([5.0, 1.5, 0.0], [1.0, 2.0, 3.0, 4.0]).tolist()
    [1.0, 0.25, 0.0]
    """
    table = np.asarray(values, dtype=np.float64)
    known = np.sort(np.asarray(reference, dtype=np.float64))
    known = known[~np.isnan(known)]
    defined = ~np.isnan(table)
    below, upto = (np.searchsorted(known, table[defined], side=side) for side in ("left", "right"))
    ties = _ties(len(known) + int(defined.sum()), seed)[len(known) :]
    found = np.full(len(table), np.nan)
    found[defined] = (below + ties * (upto - below)) / len(known)
    return found


def _ties(count: int, seed: int) -> Floats:
    """Return numbers by which equal values are put in order."""
    return np.random.default_rng(seed).random(count)


def _smaller_before(place: Ints) -> Ints:
    """Return for each of different numbers below n how many of those before it are smaller.

    >>> _smaller_before(np.array([2, 0, 3, 1])).tolist()
    [0, 0, 2, 1]
    """
    count = len(place)
    found = np.zeros(count, dtype=np.int64)
    at = np.arange(count)
    width = 1
    while width < count:
        block, right = at // (2 * width), (at // width) % 2 == 1
        key = block * count + place  # numbers of one block stand together, and in order
        left = np.sort(key[~right])
        begin = np.searchsorted(left, block[right] * count)
        found[right] += np.searchsorted(left, key[right]) - begin
        width *= 2
    return found
