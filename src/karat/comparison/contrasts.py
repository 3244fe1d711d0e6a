"""From values side by side to rows: differences, intervals, tests, corrected p-values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from karat.errors import OptionError, choose
from karat.measures.aggregate import aggregate
from karat.statistics.paired import Paired, difference_interval, paired
from karat.statistics.significance import (
    Significance,
    adjust,
    error_rates,
    mcnemar,
    out_of_reach,
    paired_t,
)
from karat.statistics.tukey import tukey
from karat.statistics.unpaired import Unpaired, unpaired, unpaired_interval
from karat.statistics.values import is_binary

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

    from karat.comparison.pairing import Pairing
    from karat.core.data import Bools, Floats
    from karat.measures import Measure

Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[int, int]  # the numbers of baseline and system

TESTS = ("auto", "permutation", "t", "mcnemar")
NOT_IN_CLUSTERS = "McNemar's test knows no clusters"
NO_TUKEY = "the correction for all pairs takes queries of a cluster as independent"

ROWS: dict[str, PolarsDataType] = {
    **dict.fromkeys(("baseline", "system", "measure"), pl.String),
    "difference": pl.Float64,  # system − baseline
    **dict.fromkeys(("low", "high", "p", "p_adjusted", "effect"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "n", "left_out"), pl.Int64),
    **dict.fromkeys(("baseline_value", "system_value"), pl.Float64),
    **dict.fromkeys(("test", "correction", "method"), pl.String),
    # the interval corrected as p_adjusted is: it leaves out 0 where that shows a difference
    **dict.fromkeys(("low_adjusted", "high_adjusted"), pl.Float64),
    "smallest_p": pl.Float64,  # that the test can give, before correction; null: any
    "reason": pl.String,
}


UNPAIRED_ROWS = ROWS | {"baseline_n": pl.Int64()}  # queries of the baseline, which are others


@dataclass(frozen=True, slots=True)
class Statistics:
    """How differences are judged."""

    level: float
    permutations: int
    seed: int
    test: str
    clusters: tuple[object, ...] | None
    unpaired: bool = False  # whether the systems were asked different queries

    def only(self, inside: Bools) -> Statistics:
        """Return the same for some of the queries."""
        if self.clusters is None:
            return self
        kept = tuple(label for label, keep in zip(self.clusters, inside, strict=True) if keep)
        return replace(self, clusters=kept)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A row, and what its interval is made of, to make it at another level."""

    row: Row
    values: tuple[Floats, Floats]  # of baseline and system
    measure: Measure
    clusters: tuple[object, ...] | None
    unpaired: bool = False

    def widen(self, level: float) -> None:
        """Give the row a corrected interval: the same at another level."""
        if self.row["low"] is None:
            return
        options: dict[str, Any] = {
            "statistic": self.measure.aggregation,
            "level": level,
            "bounds": self.measure.bounds,
        }
        if self.unpaired:
            labels = None if self.clusters is None else (self.clusters, self.clusters)
            found = unpaired_interval(*self.values, clusters=labels, **options)
        else:
            found = difference_interval(*self.values, clusters=self.clusters, **options)
        self.row.update({"low_adjusted": found.low, "high_adjusted": found.high})

    def spread(self, reach: float) -> None:
        """Give the row a corrected interval that reaches as far to both sides."""
        if self.row["low"] is None:
            return
        low, high = self.measure.bounds
        room = high - low
        ends = (self.row["difference"] - reach, self.row["difference"] + reach)
        self.row.update({"low_adjusted": max(ends[0], -room), "high_adjusted": min(ends[1], room)})


def contrasts(pairing: Pairing, pairs: Sequence[Pair], how: Statistics) -> list[Contrast]:
    """Return a row for each pair of systems and each measure, p-values not corrected yet."""
    if how.unpaired:
        return list(_unpaired_contrasts(pairing, pairs, how))
    measures = pairing.measures
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    shape = (len(pairing.values), len(pairs) * len(measures))
    before = pairing.values[:, first, :].reshape(shape)
    after = pairing.values[:, second, :].reshape(shape)
    found = paired(
        before,
        after,
        statistic=[measure.aggregation for measure in measures] * len(pairs),
        level=how.level,
        bounds=[measure.bounds for measure in measures] * len(pairs),
        clusters=how.clusters,
        permutations=how.permutations,
        seed=how.seed,
    )
    tests = _tests(before, after, found, how)
    rows = []
    for column, (each, test) in enumerate(zip(found, tests, strict=True)):
        pair, measure = pairs[column // len(measures)], measures[column % len(measures)]
        values = before[:, column], after[:, column]
        row = _row(pairing, pair, measure, each, test, values)
        rows.append(Contrast(row, values, measure, how.clusters))
    return rows


def _row(  # noqa: PLR0917
    pairing: Pairing,
    pair: Pair,
    measure: Measure,
    found: Paired,
    test: Significance,
    values: tuple[Floats, Floats],
) -> Row:
    both = ~(np.isnan(values[0]) | np.isnan(values[1]))
    won, lost = found.wins, found.losses
    if not measure.higher_is_better:  # to win is to be better, not to have more
        won, lost = lost, won
    reasons = (test.reason, found.difference.reason, found.effect.reason)
    return {
        "baseline": pairing.systems[pair[0]],
        "system": pairing.systems[pair[1]],
        "measure": str(measure),
        "difference": found.difference.value,
        "low": found.difference.low,
        "high": found.difference.high,
        "p": test.p,
        "p_adjusted": test.p,
        "low_adjusted": found.difference.low,
        "high_adjusted": found.difference.high,
        "effect": found.effect.value,
        "wins": won,
        "ties": found.ties,
        "losses": lost,
        "n": found.n,
        "left_out": found.left_out,
        "baseline_value": aggregate(measure, values[0][both]).value,
        "system_value": aggregate(measure, values[1][both]).value,
        "test": test.method,
        "correction": "none",
        "method": found.difference.method or None,
        "smallest_p": test.smallest,
        "reason": _joined(*reasons),
    }


def _unpaired_contrasts(
    pairing: Pairing, pairs: Sequence[Pair], how: Statistics
) -> Iterator[Contrast]:
    """Yield the rows of systems that were asked different queries."""
    choose("test", how.test, TESTS)
    if how.test == "mcnemar":
        raise OptionError(
            "McNemar's test needs the same queries for both systems",
            fix="leave out the test, or the choice of unpaired queries",
        )
    # an undefined value is no query of the group: it is left out of both alike
    labels = None if how.clusters is None else (how.clusters, how.clusters)
    for pair in pairs:
        for number, measure in enumerate(pairing.measures):
            values = pairing.values[:, pair[0], number], pairing.values[:, pair[1], number]
            found = unpaired(
                *values,
                statistic=measure.aggregation,
                level=how.level,
                bounds=measure.bounds,
                clusters=labels,
                test="welch" if how.test == "t" else "division",
                permutations=how.permutations,
                seed=how.seed,
            )
            row = _unpaired_row(pairing, pair, measure, found, values)
            yield Contrast(row, values, measure, how.clusters, unpaired=True)


def _unpaired_row(
    pairing: Pairing,
    pair: Pair,
    measure: Measure,
    found: Unpaired,
    values: tuple[Floats, Floats],
) -> Row:
    asked = pairing.present[:, pair[0]], pairing.present[:, pair[1]]
    sides = [aggregate(measure, each[here]) for each, here in zip(values, asked, strict=True)]
    test, difference = found.test, found.difference
    return {
        "baseline": pairing.systems[pair[0]],
        "system": pairing.systems[pair[1]],
        "measure": str(measure),
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p": test.p,
        "p_adjusted": test.p,
        "low_adjusted": difference.low,
        "high_adjusted": difference.high,
        "effect": found.effect.value,
        "wins": None,
        "ties": None,
        "losses": None,
        "n": found.n,
        "left_out": sum(each.undefined for each in sides),
        "baseline_value": sides[0].value,
        "system_value": sides[1].value,
        "test": test.method,
        "correction": "none",
        "method": difference.method or None,
        "smallest_p": None,
        "reason": _joined(test.reason, difference.reason, found.effect.reason),
        "baseline_n": found.baseline_n,
    }


def _joined(*reasons: str) -> str:
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _tests(
    before: Floats, after: Floats, found: Sequence[Paired], how: Statistics
) -> Sequence[Significance]:
    """Return the test of each column: sign flips, or what was asked for, or McNemar's."""
    choose("test", how.test, TESTS)
    if how.test == "t":
        return paired_t(after - before, clusters=how.clusters)
    if how.test == "mcnemar":
        if how.clusters is not None:
            raise OptionError(NOT_IN_CLUSTERS, fix="leave out the clusters, or use permutation")
        return mcnemar(before, after)
    flipped = [each.test for each in found]
    if how.test == "permutation" or how.clusters is not None:
        return flipped
    hits = [column for column in range(len(found)) if _hit_or_miss(before, after, column)]
    exact = mcnemar(before[:, hits], after[:, hits])
    for column, test in zip(hits, exact, strict=True):
        flipped[column] = test
    return flipped


def _hit_or_miss(before: Floats, after: Floats, column: int) -> bool:
    one, other = before[:, column], after[:, column]
    both = ~(np.isnan(one) | np.isnan(other))
    return bool(both.any()) and is_binary(one[both]) and is_binary(other[both])


def correct(rows: Iterable[Contrast], method: str, level: float) -> None:
    """Correct the p-values of the rows of each measure for their number, and their intervals.

    A single p-value needs no correction.
    """
    by_measure: dict[str, list[Contrast]] = {}
    for each in rows:
        by_measure.setdefault(each.row["measure"], []).append(each)
    for family in by_measure.values():
        if len(family) == 1:
            continue
        p_values = [each.row["p"] for each in family]
        rates = error_rates(p_values, method, 1 - level)
        for each, p, rate in zip(family, adjust(p_values, method), rates, strict=True):
            each.row.update({"p_adjusted": p, "correction": method})
            each.widen(1 - rate)


def explain_reach(contrasted: Iterable[Contrast], how: Statistics) -> None:
    """Say of each row whether its test could have shown anything: with few units it cannot."""
    rows = [each.row for each in contrasted]
    family = Counter(row["measure"] for row in rows)
    for row in rows:
        reach = out_of_reach(
            row["test"],
            row["smallest_p"],
            1 - how.level,
            tests=family[row["measure"]] if row["correction"] == "holm" else 1,
            clustered=how.clusters is not None,
        )
        row["reason"] = _joined(row["reason"], reach)


def correct_all_pairs(rows: Sequence[Contrast], pairing: Pairing, how: Statistics) -> None:
    """Correct the p-values and intervals of all pairs, in order: randomised Tukey HSD."""
    found = tukey(
        pairing.values,
        statistic=[measure.aggregation for measure in pairing.measures],
        permutations=how.permutations,
        seed=how.seed,
    )
    for at, every in enumerate(found):
        for p, each in zip(every.p.values(), rows[at :: len(found)], strict=True):
            row = each.row
            row |= {"p_adjusted": p, "correction": "tukey"}
            if each.measure.aggregation == "mean":
                each.spread(every.reach(how.level))
            else:  # shuffles are of logarithms or sums
                each.widen(1 - (1 - how.level) / len(every.p))
            row["reason"] = _joined(row["reason"], every.reason, NO_TUKEY if how.clusters else "")


def withhold(rows: Iterable[Row], limits: Mapping[str, str]) -> None:
    """Take back the tests of measures whose judge gives no verdict about systems, and say why."""
    for row in rows:
        if limit := limits.get(row["measure"]):
            row |= {"p": None, "p_adjusted": None, "reason": _joined(row["reason"], limit)}


def slice_rows(
    pairing: Pairing,
    pairs: Sequence[Pair],
    columns: Iterable[str],
    how: Statistics,
) -> list[Row]:
    """Return the rows of every slice, corrected for all slices and systems of a measure."""
    rows = list(slice_contrasts(pairing, pairs, columns, how))
    correct(rows, "bh", how.level)
    explain_reach(rows, how)
    return [each.row for each in rows]


def slice_contrasts(
    pairing: Pairing, pairs: Sequence[Pair], columns: Iterable[str], how: Statistics
) -> Iterator[Contrast]:
    """Yield the rows of every slice, p-values not corrected yet."""
    for column in dict.fromkeys(columns):
        labels = pairing.column(column).cast(pl.String)
        for value in labels.unique(maintain_order=True).sort(nulls_last=True):
            inside = labels.eq_missing(value).to_numpy()
            part = replace(
                pairing,
                values=pairing.values[inside],
                present=pairing.present[inside],
                queries=pairing.queries.filter(inside),
            )
            for each in contrasts(part, pairs, how.only(inside)):
                yield replace(each, row={"column": column, "slice": value, **each.row})
