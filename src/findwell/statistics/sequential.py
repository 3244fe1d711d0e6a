"""Numbers that may be looked at at any time: they stay valid after every look.

An interval for a fixed number of queries is wrong too often if it is looked at again and again:
some look finds chance on its side. A confidence sequence holds the true mean at all times at once,
with the stated chance. It comes from betting: a gambler bets on each value before it is seen,
against the claim that the mean is m. If the claim is true, no way of betting makes money on
average, so that the capital, 1 at first, ever reaches 1 ÷ α with a chance of α at most (Ville
1939). Claims against which the gambler has grown rich are left out (Waudby-Smith and Ramdas:
Estimating means of bounded random variables by betting, JRSS B 86, 2024).

Values lie between 0 and 1, in the order of time: one list, or a table with one column per stream. A
value that is NaN is undefined: no bet is made on it. Nothing is assumed about the values but that
their mean, given what came before, stays the same. Capitals are logarithms, so that none overflows.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, choose
from findwell.statistics.values import as_columns, check_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

SIDES = ("below", "above", "both")
GRID = 1000  # steps between 0 and 1 at which a hedged sequence tries means
CELLS = 1 << 20  # numbers that are worked on at once
BISECTIONS = 40
NARROW = 1e-3  # what a share that is lost for certain counts as at least


def timeline(values: ArrayLike) -> Floats:
    """Return values as a table with one row per moment; raise if one is not between 0 and 1."""
    table = as_columns(values)
    if (table < 0).any() or (table > 1).any():
        raise InputError(
            "a value is not between 0 and 1",
            fix="bring values to that range before betting on them",
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


def hedged_sequence(
    values: ArrayLike, *, alpha: float = 0.05, grid: int = GRID
) -> tuple[Floats, Floats]:
    """Return the lower and upper limits of the mean after each value (hedged betting).

    The tighter one, above all for rare events. One gambler bets that the mean is more than m,
    another that it is less, each with half of the money; limits are between the steps of a grid,
    rounded outwards. One list of values; see `hedged_limits` for the last limits alone.

    >>> low, high = hedged_sequence([1.0, 0.0] * 200)
    >>> f"{low[-1]:.3f} {high[-1]:.3f}"
    '0.411 0.595'
    """
    check_share("error rate", alpha)
    table = timeline(values)
    if table.shape[1] != 1:
        raise InputError("a hedged sequence is of one list of values")
    bets = _Bets(table, alpha)
    means = np.linspace(0.0, 1.0, grid + 1)
    line = log(2 / alpha)
    rows = max(1, CELLS // len(means))
    low, high = np.empty(len(table)), np.empty(len(table))
    more, less = np.zeros(len(means)), np.zeros(len(means))
    out_below, out_above = 0, 0  # how many steps are left out at either end
    for first in range(0, len(table), rows):
        part = slice(first, first + rows)
        x, size = bets.values[part], bets.size[part]
        capital = more + np.cumsum(_log_more(x, size, means), axis=0)
        more = capital[-1]
        # the capital against a mean falls as the mean rises: those left out are the first ones
        gone = np.maximum.accumulate((capital >= line).sum(axis=1))
        below = np.maximum(gone, out_below)
        low[part], out_below = means[np.maximum(below - 1, 0)], int(below[-1])
        capital = less + np.cumsum(_log_more(1 - x, size, 1 - means), axis=0)
        less = capital[-1]
        above = np.maximum(np.maximum.accumulate((capital >= line).sum(axis=1)), out_above)
        high[part], out_above = means[::-1][np.maximum(above - 1, 0)], int(above[-1])
    return low, high


def hedged_limits(values: ArrayLike, *, alpha: float = 0.05) -> tuple[float, float]:
    """Return the last limits of the hedged sequence, not rounded to a grid; (0, 1) of no value.

    >>> low, high = hedged_limits([1.0, 0.0] * 200)
    >>> f"{low:.4f} {high:.4f}"
    '0.4110 0.5948'
    """
    check_share("error rate", alpha)
    table = timeline(values)
    if table.shape[1] != 1:
        raise InputError("hedged limits are of one list of values")
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
    capital ever reaches 1 ÷ α with a chance of α at most, however often it is looked at. The size
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
    size = np.clip(short / (bets.spread + short**2), 0.0, 0.5 / max(1 - mean, NARROW))
    gains = np.where(bets.defined, np.log1p(size * (mean - bets.values)), 0.0)
    return _as_given(np.cumsum(gains, axis=0), values)


def stream_differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return d = (second − first + 1) ÷ 2 of the i-th values of two streams, while both last.

    Whether the streams have one mean is whether the mean of d is ½: `betting_capital(d, 0.5)`. NaN
    is left out of each stream before.

    >>> stream_differences([0.5, np.nan, 1.0], [1.0, 0.0, 0.0]).tolist()
    [0.75, 0.0]
    """
    one, other = (timeline(each)[:, 0] for each in (first, second))
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    paired = min(len(one), len(other))
    return np.asarray((other[:paired] - one[:paired] + 1) / 2)


def difference_sequence(
    first: ArrayLike, second: ArrayLike, *, alpha: float = 0.05
) -> tuple[float, float]:
    """Return limits of mean(second) − mean(first), of two streams that need not be as long.

    Each has the hedged sequence at α ÷ 2, so that both may be looked at at any time.

    >>> low, high = difference_sequence([1.0, 0.0] * 200, [0.0] * 300)
    >>> f"{low:.3f} {high:.3f}"
    '-0.601 -0.376'
    """
    check_share("error rate", alpha)
    mine, theirs = (hedged_limits(each, alpha=alpha / 2) for each in (second, first))
    return mine[0] - theirs[1], mine[1] - theirs[0]


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
