"""Two systems on the same queries: the difference, its interval, its test, who wins how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import choose
from karat.statistics.clusters import as_units, cluster_codes
from karat.statistics.intervals import (
    EQUAL,
    METHODS,
    RESAMPLES,
    Interval,
    binary,
    estimates,
    limit,
    off_scale,
    same_rows,
    smooth_method,
)
from karat.statistics.limits import Estimate
from karat.statistics.quantity import Quantity, as_columns, check_draws, check_share, same_shape
from karat.statistics.scale import each_statistic, to_scale
from karat.statistics.significance import (
    NO_PAIR,
    NONE_DIFFERS,
    ONE_PAIR,
    PERMUTATIONS,
    ROUNDING,
    SAME_DIFFERENCE,
    Significance,
    sign_flip,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from karat.data import Bools, Floats, Ints
    from karat.statistics.scale import Statistic

TIE = 1e-9  # differences up to this are ties: rounding, no judgement about what matters


@dataclass(frozen=True, slots=True)
class Paired:
    """A system against a baseline on one measure; positive where the system has more."""

    difference: Interval
    test: Significance
    effect: Quantity
    wins: int
    ties: int
    losses: int

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
    method: str = "auto",
    clusters: Sequence[object] | None = None,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
    alternative: str = "two-sided",
    tie: float = TIE,
    seed: int = 0,
) -> tuple[Paired, ...]:
    """Compare two tables column by column; row i of both is the same query.

    Columns may be measures, or systems, or both: all share the random signs and samples, and each
    gets what it would get alone. A query without a value in either is left out of that column.
    `statistic` is what the difference is of: of two means, two sums, or two geometric means,
    which are tested and sized by the logarithms. The test is `sign_flip`.

    >>> (found,) = paired([0.2, 0.4, 0.6, 0.5], [0.5, 0.5, 0.8, 0.9])
    >>> round(found.difference.value, 3), found.test.p, found.wins
    (0.25, 0.125, 4)
    """
    check_share("level", level)
    check_draws("resamples", resamples)
    choose("interval method", method, METHODS)
    before, after = as_columns(baseline), as_columns(system)
    same_shape(before, after)
    names = each_statistic(statistic, before.shape[1])
    codes = None if clusters is None else cluster_codes(clusters, len(before))
    both = _Both(to_scale(before, names), to_scale(after, names), names, codes)
    tests = sign_flip(
        both.differences,
        permutations=permutations,
        seed=seed,
        alternative=alternative,
        clusters=clusters,
    )
    moved = after - before
    wins, losses = (moved > tie).sum(axis=0), (moved < -tie).sum(axis=0)
    spans = _intervals(both, method, level, resamples, seed)
    return tuple(
        Paired(
            difference=_explained(spans[column], tests[column]),
            test=tests[column],
            effect=effect_size(both.differences[:, column]),
            wins=int(wins[column]),
            ties=spans[column].n - int(wins[column] + losses[column]),
            losses=int(losses[column]),
        )
        for column in range(before.shape[1])
    )


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
        self, before: Floats, after: Floats, names: Sequence[str], codes: Ints | None
    ) -> None:
        self.before, self.after, self.names, self.codes = before, after, names, codes
        moved = after - before
        rounding = ROUNDING * np.maximum(np.abs(before), np.abs(after))
        self.differences = np.where(np.abs(moved) <= rounding, 0.0, moved)

    def method(self, asked: str, rows: Bools, column: int, units: int) -> str:
        """Return the method for the interval of a column."""
        if asked != "auto":
            return asked
        if self.codes is None and self.names[column] != "geometric":
            sides = self.before[rows, column], self.after[rows, column]
            if all(binary(side) for side in sides):
                return "agresti-min"
        return smooth_method(units)


def _intervals(both: _Both, asked: str, level: float, draws: int, seed: int) -> dict[int, Interval]:
    found: dict[int, Interval] = {}
    for rows, columns in same_rows(both.differences):
        inside = None if both.codes is None else both.codes[rows]
        units = as_units(both.differences[rows][:, columns], inside)
        methods = [both.method(asked, rows, column, len(units)) for column in columns]
        made = estimates(units, methods, draws, seed)
        for place, column in enumerate(columns):
            estimate, name = made[place], both.names[column]
            if name == "geometric" and estimate.n:
                sides = [
                    estimates(
                        as_units(side[rows][:, [column]], inside), [methods[place]], draws, seed
                    )[0]
                    for side in (both.before, both.after)
                ]
                estimate, name = _geometric_difference(*sides), "mean"
            undefined = len(rows) - estimate.n
            span = limit(estimate, methods[place], level, undefined, units)
            found[column] = off_scale(span, name)
    return found


def _geometric_difference(before: Estimate, after: Estimate) -> Estimate:
    """Return the difference of two geometric means; both were resampled by the same draws."""
    low, high = float(np.exp(before.value)), float(np.exp(after.value))
    drawn = None
    if before.draws is not None and after.draws is not None:
        drawn = np.exp(after.draws) - np.exp(before.draws)
    influence = high * after.influence - low * before.influence
    return Estimate(high - low, influence, drawn, before.n)


def _explained(span: Interval, test: Significance) -> Interval:
    """Return the interval with its reason in terms of differences."""
    if not span.n or (test.reason and span.low is not None):
        return replace(span, reason=test.reason)
    return replace(span, reason=SAME_DIFFERENCE) if span.reason == EQUAL else span
