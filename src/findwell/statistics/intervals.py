"""Values aggregated to one number, and its interval: one method at any number of queries.

What could the mean be, had one further unit been drawn? Units (queries, or clusters of them) are
given random weights, all sets of weights as likely as any other (the Bayesian bootstrap, Rubin
1981). The upper limit is a quantile of the weighted mean, with one further unit among the others
that lies above the value; the lower one has a unit that lies below. If that unit lies at the bound
of the values, this is the interval of Gaffke (2005; also Learned-Miller and Thomas 2019), and of
values 0 and 1 that of Clopper and Pearson.

Nothing is drawn: the quantile is solved for, with the saddlepoint approximation of a weighted mean
(r*, Barndorff-Nielsen 1986). Its limits are right to 1 % of the width, mostly to far less. They
stay inside the bounds of the values, and they differ even if all values seen are equal, since the
next query may score otherwise. In simulations of 20 kinds of values between 0 and 1, with 2 to
5,000 queries, 95 % intervals held the true mean in 94 to 100 % of samples
(docs/decisions/0009-one-interval.md).

Quantiles, such as the 90th percentile of latencies, have intervals from the ordered values: how
many of n values lie below the true quantile is binomial, whatever their distribution. So two of the
ordered values hold it with a known chance: nothing is drawn, and nothing is assumed about the tail
(David and Nagaraja: Order Statistics, 2003, chapter 7). Where there are too few values for a limit
on one side, as above the 99th percentile of 50, that limit is unknown.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import InputError, check_share, choose, needs_package
from findwell.core.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.measure import Measure


STATISTICS = ("mean", "sum", "geometric")
GEOMETRIC_FLOOR = 0.00001  # a zero would make every geometric mean zero
UNIT = (0.0, 1.0)  # most measures lie in between

Bounds: TypeAlias = tuple[float, float]
Statistic: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number, or None and the reason."""

    value: float | None
    reason: str = ""


def as_columns(values: ArrayLike) -> Floats:
    """Return the values as a table: one row per query, one column per measure or system.

    >>> as_columns([1.0, np.nan]).shape
    (2, 1)
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, np.newaxis]
    if table.ndim != 2:
        raise InputError(f"values have {table.ndim} dimensions, not one or two")
    refuse_infinite(table)
    return table


def refuse_infinite(table: Floats) -> None:
    """Raise if a value is infinite: no mean, spread or rank of it says anything."""
    if np.isinf(table).any():
        raise InputError("a value is infinite", fix="make it NaN if it is undefined")


def same_shape(first: Floats, second: Floats) -> None:
    """Raise unless the two tables can be paired by position."""
    if first.shape != second.shape:
        raise InputError(
            f"values of shape {first.shape} cannot be paired with values of shape {second.shape}",
            fix="give both a row for every query, NaN where there is no value",
        )


def is_binary(values: Floats) -> bool:
    """Say whether every value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def scipy(part: str) -> Any:  # noqa: ANN401
    """Return a part of SciPy, such as `stats`; nothing else here imports it."""
    with needs_package("this", "stats"):
        return importlib.import_module(f"scipy.{part}")


def choose_statistic(name: str) -> str:
    """Return the name if it is that of a statistic; otherwise raise the error."""
    return name if name in STATISTICS else choose("statistic", name, STATISTICS)


def each_statistic(statistic: Statistic, columns: int) -> list[str]:
    """Return the statistic of every column."""
    names = [statistic] * columns if isinstance(statistic, str) else list(statistic)
    if len(names) != columns:
        raise InputError(f"{len(names)} statistics were given for {columns} columns")
    return [choose_statistic(name) for name in names]


def to_scale(table: Floats, names: Sequence[str]) -> Floats:
    """Return the values whose mean the statistic of each column is made from."""
    if "geometric" not in names:
        return table
    scaled = table.copy()
    geometric = np.array([name == "geometric" for name in names])
    scaled[:, geometric] = np.log(np.maximum(table[:, geometric], GEOMETRIC_FLOOR))
    return scaled


def bounds_on_scale(
    bounds: Bounds | Sequence[Bounds], names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the lower and the upper bound of each column, as its values are after `to_scale`.

    >>> [bound.tolist() for bound in bounds_on_scale((0.0, 1.0), ["mean", "geometric"])]
    [[0.0, -11.512925464970229], [1.0, 0.0]]
    """
    table = np.asarray(bounds, dtype=np.float64)
    if table.ndim == 1:
        table = np.tile(table, (len(names), 1))
    if table.shape != (len(names), 2):
        raise InputError(f"{len(table)} pairs of bounds were given for {len(names)} columns")
    low, high = to_scale(table.T, names)
    return low, high


def from_scale(mean: float, name: str, n: int) -> float:
    """Return the statistic of `n` values whose mean on its scale is known.

    >>> from_scale(0.25, "sum", 8)
    2.0
    """
    if name == "geometric":
        return float(np.exp(mean))
    return mean * n if name == "sum" else mean


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number over many queries; None where no query has a value."""

    value: float | None
    n: int  # queries with a value
    undefined: int  # queries without one


def aggregate(measure: Measure, values: Floats) -> Aggregate:
    """Aggregate the values of a measure over queries; NaN is undefined and left out.

    >>> from findwell.measures import parse_measure
    >>> aggregate(parse_measure("AP"), np.array([1.0, 0.5, np.nan]))
    Aggregate(value=0.75, n=2, undefined=1)
    """
    defined = values[~np.isnan(values)]
    value = statistic_of(defined, measure.aggregation)
    return Aggregate(value, len(defined), len(values) - len(defined))


def statistic_of(values: Floats, name: str) -> float | None:
    """Return a statistic of values without NaN; None without a value."""
    if not len(values):
        return None
    if name == "sum":
        return float(values.sum())
    return from_scale(float(to_scale(values[:, np.newaxis], [name])[:, 0].mean()), name, 1)


METHOD = "further-unit"
ORDERED = "order-statistics"
CELLS = 1 << 18  # numbers that are worked on at once, so that they stay in the processor's cache
CLOSE_LIMITS = 1e-7  # of a standard error: limits this close are found
ROUNDS = 60  # five or six are enough, but for a handful of extreme values

NONE_DEFINED = "no query has a value"
ONE = "one query says nothing about the spread"
ONE_CLUSTER = "one cluster says nothing about the spread between clusters"
TOO_FEW_QUERIES = "there are too few queries for limits on both sides"
EQUAL_VALUES = "all values are equal, and nothing bounds them: the spread is unknown"

Limits: TypeAlias = tuple["Floats", "Floats"]  # lower and upper, by column


def interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    statistic: str = "mean",
    bounds: Bounds = UNIT,
    clusters: Sequence[object] | None = None,
) -> Estimate:
    """Return the interval of one list of values; see `intervals`.

    >>> found = interval([1, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    >>> print(f"{found.value} [{found.low:.2f}, {found.high:.2f}]")
    0.8 [0.44, 0.97]
    >>> found = interval([0.2, 0.2])
    >>> print(f"{found.value} [{found.low:.2f}, {found.high:.2f}]")
    0.2 [0.03, 0.88]
    """
    (found,) = intervals(values, level=level, statistic=statistic, bounds=bounds, clusters=clusters)
    return found


def intervals(
    values: ArrayLike,
    *,
    level: float = 0.95,
    statistic: Statistic = "mean",
    bounds: Bounds | Sequence[Bounds] = UNIT,
    clusters: Sequence[object] | None = None,
) -> tuple[Estimate, ...]:
    """Return the interval of each column of a table with one row per query.

    NaN is undefined and left out. `statistic` is mean, sum or geometric, and `bounds` are between
    what values can lie (infinite where nothing bounds them), one for all columns or one each;
    values outside of them move the bounds out. The interval of a sum is that of the mean times the
    number of defined values, that of a geometric mean is taken of the logarithms. `clusters` has a
    label for each query: queries with the same one are not independent, so that a cluster is one
    unit.
    """
    check_share("level", level)
    table = as_columns(values)
    names = each_statistic(statistic, table.shape[1])
    low, high = bounds_on_scale(bounds, names)
    codes = None if clusters is None else cluster_codes(clusters, len(table))
    scaled = to_scale(table, names)
    found: dict[int, Estimate] = {}
    for rows, columns in same_rows(scaled):
        inside = (scaled if rows.all() else scaled[rows])[:, columns]
        units = as_units(inside, None if codes is None else codes[rows])
        made = estimate(units)
        limits, unknown = None, np.zeros(len(columns), dtype=bool)
        if len(units) > 1:
            least = np.minimum(low[columns], inside.min(axis=0))
            most = np.maximum(high[columns], inside.max(axis=0))
            # what the limits are found from is as large as the table: hold one, not three
            inside, units = inside[:0].copy(), replace(units, sums=units.sums[:0].copy())
            lower, upper = limits_of_means(made, least, most, level)
            limits = np.maximum(lower, least), np.minimum(upper, most)
            unknown = made.flat & (np.isinf(least) | np.isinf(most))
        why = [EQUAL_VALUES if each else "" for each in unknown]
        named = [names[column] for column in columns]
        spans = as_intervals(made, units, limits, named, why, level=level, queries=len(table))
        found |= dict(zip(columns, spans, strict=True))
    return tuple(found[column] for column in range(table.shape[1]))


def same_rows(table: Floats) -> Iterator[tuple[Bools, list[int]]]:
    """Yield the columns that are defined for the same queries, and which queries these are."""
    defined = ~np.isnan(table)
    groups: dict[bytes, list[int]] = {}
    for column in range(table.shape[1]):
        groups.setdefault(defined[:, column].tobytes(), []).append(column)
    for columns in groups.values():
        yield defined[:, columns[0]], columns


def as_intervals(
    made: ColumnEstimates,
    units: SampledUnits,
    limits: Limits | None,
    names: Sequence[str],
    reasons: Sequence[str],
    *,
    level: float,
    queries: int,
) -> Iterator[Estimate]:
    """Yield the interval of each column; without limits if there are none, or there is a reason."""
    n = made.n
    few = NONE_DEFINED if not n else ONE_CLUSTER if units.clustered and n > 1 else ONE
    for column, name in enumerate(names):
        reason = few if limits is None else reasons[column]
        value, low, high = (
            from_scale(float(each[column]), name, n)
            for each in (made.values, *(limits or (made.values, made.values)))
        )
        yield Estimate(
            value=value if n else None,
            low=None if reason else low,
            high=None if reason else high,
            level=level,
            method="" if reason else METHOD,
            n=n,
            undefined=queries - n,
            clusters=len(units) if units.clustered else None,
            reason=reason,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SampledUnits:
    """Columns of values, summed over the queries of each unit."""

    sums: Floats  # units × columns
    sizes: Floats  # queries of each unit
    clustered: bool

    def __len__(self) -> int:
        return len(self.sizes)


def cluster_codes(labels: Sequence[object] | np.ndarray, queries: int) -> Ints:
    """Return a number for the cluster of each query; one without a label stands alone.

    >>> cluster_codes(["a.pdf", "b.pdf", None, "a.pdf", None], 5).tolist()
    [0, 1, 2, 0, 3]
    """
    if len(labels) != queries:
        raise InputError(f"{len(labels)} cluster labels were given for {queries} queries")
    codes: dict[object, int] = {}
    found = np.empty(queries, dtype=np.int64)
    for number, label in enumerate(labels):
        alone = label is None or label != label  # noqa: PLR0124  NaN differs from itself
        key = (number, "alone") if alone else label
        found[number] = codes.setdefault(key, len(codes))
    return found


def as_units(columns: Floats, codes: Ints | None) -> SampledUnits:
    """Return the units of columns that have no NaN; without codes every query is one."""
    if codes is None:
        return SampledUnits(columns, np.ones(len(columns)), clustered=False)
    _, unit = np.unique(codes, return_inverse=True)
    sizes = np.bincount(unit).astype(np.float64)
    sums = np.zeros((len(sizes), columns.shape[1]))
    np.add.at(sums, unit, columns)
    return SampledUnits(sums, sizes, clustered=True)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEstimates:
    """The means of some columns, and what each unit does to them."""

    values: Floats  # by column
    influence: Floats  # columns × units; sum to 0; values + influence are values with these means
    n: int  # queries
    size: float = 1.0  # of a further unit: quadratic mean of the clusters' sizes ÷ their mean

    @property
    def units(self) -> int:
        """How many units there are."""
        return int(self.influence.shape[1])

    @property
    def flat(self) -> np.ndarray:
        """Which columns have no unit that differs from the others by more than rounding."""
        largest = _largest(self.influence)
        return np.asarray(largest <= 1e-12 * np.maximum(1.0, np.abs(self.values)))


def estimate(units: SampledUnits) -> ColumnEstimates:
    """Return the means of columns that have no NaN."""
    n = int(units.sizes.sum())
    if not n:
        columns = units.sums.shape[1]
        return ColumnEstimates(np.full(columns, np.nan), np.zeros((columns, 0)), 0)
    means = units.sums.sum(axis=0) / n
    influence = np.multiply.outer(means, units.sizes)  # in place: tables of queries are large
    np.subtract(units.sums.T, influence, out=influence)
    influence *= len(units) / n
    size = float(np.sqrt((units.sizes**2).mean()) / units.sizes.mean())
    return ColumnEstimates(means, influence, n, size)


def _largest(rows: Floats) -> Floats:
    """Return the largest absolute value of each row, without a table of them."""
    return np.asarray(np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0)))


def limits_of_means(made: ColumnEstimates, low: Floats, high: Floats, level: float) -> Limits:
    """Return the limits of means whose values lie between two bounds, which may be infinite.

    The further unit lies off the value as the units on that side do, and as one at the bound would:
    the mean of these deviations, each weighted by its square. A few large deviations, or none that
    say anything, put it near the bound; many small ones bring it closer.
    """
    unknown = _unseen(_largest(made.influence), made.units - 1, level)
    above = np.where(np.isinf(high), unknown, np.maximum(high - made.values, 0)) * made.size
    below = np.where(np.isinf(low), unknown, np.maximum(made.values - low, 0)) * made.size
    up = _offset(np.maximum(made.influence, 0), above)
    under = np.minimum(made.influence, 0)
    down = _offset(np.negative(under, out=under), below)
    return _limits(made, down, up, level)


def limits_of_differences(
    made: ColumnEstimates, changes: Floats, most: Floats, level: float
) -> Limits:
    """Return the limits of mean differences, from how much each unit changed, and can at most.

    The further unit changes as those did that changed, and as one by all that is possible would: by
    the quadratic mean of these changes, whatever their sign. If that is nearer to the mean
    difference than units are on average, it lies as far off as these, and as one by all that is
    possible. Of changes by −1, 0 and 1, the limits leave out 0 where the exact test of wins and
    losses (McNemar's) does.
    """
    mean, changed = changes.mean(axis=1), (changes != 0).sum(axis=1)
    unknown = _unseen(np.abs(changes).max(axis=1), changed, level)
    largest = np.where(np.isinf(most), unknown, most * made.size)
    squares = np.einsum("ij,ij->i", changes, changes)
    change = np.sqrt((squares + largest**2) / (changed + 1))
    spread = np.einsum("ij,ij->i", made.influence, made.influence)

    def offset(toward: Floats) -> Floats:
        room = np.maximum(largest - toward, 0)
        usual = np.sqrt((spread + room**2) / (made.units + 1))
        return np.asarray(np.maximum(change - toward, np.minimum(usual, room)))

    return _limits(made, offset(-mean), offset(mean), level)


def _unseen(largest: Floats, seen: Ints | int, level: float) -> Floats:
    """Return how large deviations may be, if nothing but those seen is known of them.

    If deviations were spread evenly up to some limit, this limit would be above what is returned
    as often as a value is above the upper limit of its interval.
    """
    return largest * ((1 - level) / 2) ** (-1 / np.maximum(seen, 1))


def _offset(above: Floats, largest: Floats) -> Floats:
    """Return the mean of the deviations above 0 and of the largest one, weighted by squares."""
    squares = above**2
    total = squares.sum(axis=1) + largest**2
    cubes = np.einsum("ij,ij->i", squares, above) + largest**3
    return np.asarray(np.divide(cubes, total, out=np.zeros_like(total), where=total > 0))


def _limits(made: ColumnEstimates, down: Floats, up: Floats, level: float) -> Limits:
    """Return the limits with a further unit this far below, or above, the values."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    low, high = made.values.copy(), made.values.copy()
    for part in _batches(made):
        low[part] -= _reach(-made.influence[part], down[part], z)
        high[part] += _reach(made.influence[part], up[part], z)
    return low, high


def _batches(made: ColumnEstimates) -> Iterator[slice]:
    at_once = max(1, CELLS // max(made.units, 1))
    for first in range(0, len(made.values), at_once):
        yield slice(first, first + at_once)


def _reach(deviations: Floats, offset: Floats, z: float) -> Floats:
    """Return how far above the mean of each row the limit at the normal quantile z lies."""
    units = np.column_stack([deviations, offset])
    bottom, top = units.min(axis=1), units.max(axis=1)
    span = top - bottom
    found = np.zeros(len(units))
    varied = span > 0
    if varied.any():
        scaled = units[varied] - bottom[varied, np.newaxis]
        scaled /= span[varied, np.newaxis]
        found[varied] = bottom[varied] + span[varied] * _quantile(scaled, z)
    return found


def _quantile(values: Floats, z: float) -> Floats:
    """Return for each row of values from 0 to 1 where its weighted mean has the quantile z.

    A mean below t has Σ w (x − t) < 0, with exponential weights w. Tilted by `tilt`, the weights
    have their mean at t; r* says how far out in the normal distribution that is. Both follow from
    the tilt directly, so that only one number is looked for, by secants that stay in brackets.
    """
    n = values.shape[1]
    rest = 1 - values
    tilt = z / np.sqrt(((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    tilt = np.minimum(tilt, 5.0)
    low, high = np.zeros(len(values)), np.full(len(values), np.inf)
    before, missed = np.zeros(len(values)), np.full(len(values), -z)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(ROUNDS):
            inverse = values * np.exp(-tilt)[:, np.newaxis]
            inverse += rest
            logarithms = np.log(inverse).sum(axis=1)
            weights = np.reciprocal(inverse, out=inverse)
            total = weights.sum(axis=1)
            mean = np.einsum("ij,ij->i", weights, values) / total
            weights *= values - mean[:, np.newaxis]
            r = np.sqrt(np.maximum(2 * (n * np.log(total / n) + logarithms), 0))
            u = -np.expm1(-tilt) * np.sqrt(np.einsum("ij,ij->i", weights, weights))
            miss = r + np.log(u / r) / r - z
            under = miss < 0
            low, high = np.where(under, tilt, low), np.where(under, high, tilt)
            done = (np.abs(miss) < CLOSE_LIMITS) | (high - low < 1e-12 * high)
            if done.all():
                break
            following = tilt - miss * (tilt - before) / (miss - missed)
            middle = np.where(np.isinf(high), 2 * low, (low + high) / 2)
            inside = (following > low) & (following < high)
            before, missed = tilt, miss
            tilt = np.where(done, tilt, np.where(inside, following, middle))
    return np.asarray(mean)


def quantile_interval(values: ArrayLike, share: float, level: float = 0.95) -> Estimate:
    """Return a quantile, linear between neighbours, and the ordered values that hold the true one.

    >>> found = quantile_interval(list(range(1, 101)), 0.5)
    >>> found.value, found.low, found.high
    (50.5, 40.0, 61.0)
    >>> quantile_interval([1.0, 2.0, 3.0], 0.99).high is None
    True
    """
    check_share("level", level)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if not n:
        return Estimate(None, None, None, level, ORDERED, 0, 0, reason=NONE_DEFINED)
    at_most = np.cumsum(_binomial(n, share))  # chance that no more than i values lie below
    outside = (1 - level) / 2
    below = int(np.searchsorted(at_most, outside, side="right"))  # the value of this rank is below
    above = int(np.searchsorted(at_most, 1 - outside, side="left")) + 1  # and of this one above
    low = float(ordered[below - 1]) if below else None
    high = float(ordered[above - 1]) if above <= n else None
    value = float(np.quantile(ordered, share))
    reason = TOO_FEW_QUERIES if low is None or high is None else ""
    return Estimate(value, low, high, level, ORDERED, n, 0, reason=reason)


def _binomial(n: int, share: float) -> Floats:
    """Return the chance of each number of successes in n trials."""
    counts = np.arange(n + 1)
    ways = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    logs = ways[-1] - ways - ways[::-1]
    chances: Floats = np.exp(logs + counts * math.log(share) + (n - counts) * math.log1p(-share))
    return chances
