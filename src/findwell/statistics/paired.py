"""Two systems on the same queries: the difference, its interval, its test, who wins how often."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, check_share, choose
from findwell.statistics.intervals import (
    UNIT,
    ColumnEstimates,
    Quantity,
    as_columns,
    as_intervals,
    as_units,
    bounds_on_scale,
    cluster_codes,
    each_statistic,
    estimate,
    is_binary,
    limits_of_differences,
    same_rows,
    same_shape,
    to_scale,
)
from findwell.statistics.significance import (
    NO_PAIR,
    NONE_DIFFERS,
    ONE_PAIR,
    PERMUTATIONS,
    ROUNDING,
    SAME_DIFFERENCE,
    Significance,
    decide_by_test,
    mcnemar,
    paired_t,
    sign_flip,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.estimate import Estimate
    from findwell.statistics.intervals import Bounds, SampledUnits, Statistic

TIE = 1e-9  # differences up to this are ties: rounding, no judgement about what matters
TESTS = ("auto", "permutation", "t", "mcnemar")
NOT_IN_CLUSTERS = "McNemar's test knows no clusters"


@dataclass(frozen=True, slots=True)
class Paired:
    """A system against a baseline on one measure; positive where the system has more."""

    difference: Estimate
    test: Significance
    effect: Quantity
    wins: int
    ties: int
    losses: int
    # the interval of the difference at another level; the test, if there is one, decides about 0
    interval: Callable[[float, Significance | None], Estimate] = field(repr=False, compare=False)

    @property
    def n(self) -> int:
        """The queries with a value in both."""
        return self.difference.n

    @property
    def left_out(self) -> int:
        """The queries that lack a value in one or both."""
        return self.difference.undefined


def paired(
    baseline: ArrayLike,
    system: ArrayLike,
    *,
    statistic: Statistic = "mean",
    level: float = 0.95,
    bounds: Bounds | Sequence[Bounds] = UNIT,
    factor: float = 1.0,
    clusters: Sequence[object] | None = None,
    test: str = "permutation",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[Paired, ...]:
    """Compare two tables column by column; row i of both is the same query.

    Columns may be measures, or systems, or both: all share the random signs, and each gets what it
    would get alone. A query without a value in either is left out of that column. `statistic` is
    what the difference is of: of two means, two sums, or two geometric means, which are tested and
    sized by the logarithms. `bounds` are those of the values. The test is `permutation`
    (`sign_flip`), `t`, `mcnemar`, or `auto`: McNemar's where every value is 0 or 1 and there are no
    clusters, otherwise sign flips. It decides whether 0 is in the interval (`decide_zero`); the
    interval of a t test is its own. `factor` multiplies the baseline in the difference and its
    interval, and nowhere else: then the test is about another difference and decides nothing.

    >>> (found,) = paired([0.2, 0.4, 0.6, 0.5], [0.5, 0.5, 0.8, 0.9])
    >>> round(found.difference.value, 3), found.test.p, found.wins
    (0.25, 0.125, 4)
    """
    check_share("level", level)
    before, after = as_columns(baseline), as_columns(system)
    same_shape(before, after)
    names = each_statistic(statistic, before.shape[1])
    codes = None if clusters is None else cluster_codes(clusters, len(before))
    ties = np.abs(after - before) <= TIE
    both = _Both(to_scale(before, names), to_scale(after, names), names, codes, ties)
    tests = _tests(before, after, both, test, clusters, permutations, seed)
    moved = after - before
    wins, losses = (moved > TIE).sum(axis=0), (moved < -TIE).sum(axis=0)
    low, high = bounds_on_scale(bounds, ["mean"] * len(both.names))
    rooms = list(zip(low.tolist(), high.tolist(), strict=True))
    spans = _intervals(both, level, rooms, factor)
    if factor == 1:
        spans = {at: _decided(both, at, spans[at], tests[at], level, rooms) for at in spans}

    def interval(column: int, level: float, test: Significance | None) -> Estimate:
        only = _Both(
            both.before[:, [column]],
            both.after[:, [column]],
            both.names[column : column + 1],
            both.codes,
            both.ties[:, [column]],
        )
        room = rooms[column : column + 1]
        span = _intervals(only, level, room, 1.0)[0]
        return span if test is None else _decided(only, 0, span, test, level, room)

    return tuple(
        Paired(
            # without limits, the interval may have a reason of its own
            difference=spans[column]
            if spans[column].n and spans[column].low is None and spans[column].reason
            else replace(spans[column], reason=tests[column].reason),
            test=tests[column],
            effect=effect_size(both.differences[:, column]),
            wins=int(wins[column]),
            ties=spans[column].n - int(wins[column] + losses[column]),
            losses=int(losses[column]),
            interval=partial(interval, column),
        )
        for column in range(before.shape[1])
    )


def _decided(  # noqa: PLR0917
    both: _Both,
    column: int,
    span: Estimate,
    test: Significance,
    level: float,
    bounds: Sequence[Bounds],
) -> Estimate:
    """Let the test of a column decide whether 0 is in its interval."""
    name, step = both.names[column], 1.0
    if name == "sum":
        step = span.n
    elif name == "geometric" and span.n:
        step = exp(float(np.nanmean(both.before[:, column])))
    low, high = bounds[column]
    room = (high - low) * (span.n if name == "sum" else 1)
    return decide_by_test(span, test, 1 - level, step, room)


def _tests(  # noqa: PLR0917
    before: Floats,
    after: Floats,
    both: _Both,
    test: str,
    clusters: Sequence[object] | None,
    permutations: int,
    seed: int,
) -> Sequence[Significance]:
    """Return the test of each column: sign flips, or what was asked for, or McNemar's."""
    choose("test", test, TESTS)
    if test == "t":
        return paired_t(both.differences, clusters=clusters)
    if test == "mcnemar":
        if clusters is not None:
            raise OptionError(NOT_IN_CLUSTERS, fix="leave out the clusters, or use permutation")
        return mcnemar(before, after)
    hits: list[int] = []
    if test == "auto" and clusters is None:
        hits = [column for column in range(before.shape[1]) if _hit_or_miss(before, after, column)]
    rest = [column for column in range(before.shape[1]) if column not in hits]
    flipped = sign_flip(
        both.differences[:, rest], permutations=permutations, seed=seed, clusters=clusters
    )
    found = dict(zip(rest, flipped, strict=True))
    found |= zip(hits, mcnemar(before[:, hits], after[:, hits]), strict=True)
    return [found[column] for column in range(before.shape[1])]


def _hit_or_miss(before: Floats, after: Floats, column: int) -> bool:
    one, other = before[:, column], after[:, column]
    both = ~(np.isnan(one) | np.isnan(other))
    return bool(both.any()) and is_binary(one[both]) and is_binary(other[both])


def effect_size(differences: ArrayLike) -> Quantity:
    """Return Cohen's d_z: the mean of the differences over their standard deviation.

    >>> effect_size([1.0, 2.0, 3.0]).value
    2.0
    """
    values = as_columns(differences).ravel()
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Quantity(None, ONE_PAIR if len(values) else NO_PAIR)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if spread > 1e-12 * max(1.0, abs(mean)):
        return Quantity(mean / spread)
    return Quantity(0.0, NONE_DIFFERS) if abs(mean) <= TIE else Quantity(None, SAME_DIFFERENCE)


class _Both:
    """The values of both systems on the scale of their statistics."""

    def __init__(
        self, before: Floats, after: Floats, names: Sequence[str], codes: Ints | None, ties: Bools
    ) -> None:
        self.before, self.after, self.names, self.codes = before, after, names, codes
        self.ties = ties
        moved = after - before
        rounding = ROUNDING * np.maximum(np.abs(before), np.abs(after))
        self.differences = np.where(ties | (np.abs(moved) <= rounding), 0.0, moved)

    def units(self, side: Floats, rows: Bools, columns: Sequence[int]) -> SampledUnits:
        """Return the units of columns of one table."""
        return as_units(side[rows][:, columns], None if self.codes is None else self.codes[rows])

    def estimate(
        self, rows: Bools, columns: list[int], factor: float
    ) -> tuple[ColumnEstimates, Floats]:
        """Return the differences of columns, and what a step of 1 on their scale is worth."""
        before, moved = (
            estimate(self.units(side, rows, columns)) for side in (self.before, self.differences)
        )
        geometric = np.array([self.names[column] == "geometric" for column in columns])
        # exp only of logarithms: that of a mean of thousands of tokens would overflow
        low = np.exp(np.where(geometric, before.values, 0.0))
        high = np.exp(np.where(geometric, before.values + moved.values, 0.0))
        step = high - factor * low
        values = np.where(geometric, step, moved.values + step * before.values)
        # what each unit does to the difference; of geometric means, to first order
        influence = (high * moved.influence.T + step * before.influence.T).T
        return replace(moved, values=values, influence=influence), np.sqrt(low * high)


def _intervals(
    both: _Both, level: float, bounds: Sequence[Bounds], factor: float
) -> dict[int, Estimate]:
    on_scale, plain = (
        high - low
        for names in (both.names, ["mean"] * len(both.names))
        for low, high in [bounds_on_scale(bounds, names)]
    )
    found: dict[int, Estimate] = {}
    for rows, columns in same_rows(both.differences):
        units = both.units(both.differences, rows, columns)
        made, worth = both.estimate(rows, columns, factor)
        limits, unknown = None, np.zeros(len(columns), dtype=bool)
        if len(units) > 1:
            largest = np.abs(both.differences[rows][:, columns]).max(axis=0)
            changes = (units.sums * worth).T * (len(units) / made.n)
            most = worth * np.maximum(on_scale[columns], largest)
            low, high = limits_of_differences(made, changes, most, level)
            room = np.maximum(plain[columns], largest) * max(1.0, abs(factor))
            limits = np.maximum(low, -room), np.minimum(high, room)
            unknown = np.isinf(room) & (largest == 0)
        why = [NONE_DIFFERS if each else "" for each in unknown]
        # a difference of geometric means is on the scale of the values already
        named = [both.names[column].replace("geometric", "mean") for column in columns]
        spans = as_intervals(made, units, limits, named, why, level=level, queries=len(rows))
        found |= dict(zip(columns, spans, strict=True))
    return found
