"""From values side by side to rows: differences, tests, intervals, corrections, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from findwell.core.errors import OptionError, choose
from findwell.core.findings import FindingKind
from findwell.statistics.aggregate import aggregate
from findwell.statistics.paired import TESTS, Paired, difference_interval, paired
from findwell.statistics.significance import (
    Significance,
    adjust,
    decide_zero,
    error_rates,
    out_of_reach,
    rejects,
)
from findwell.statistics.tukey import tukey
from findwell.statistics.unpaired import Unpaired, unpaired, unpaired_interval
from findwell.statistics.values import to_scale

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

    from findwell.core.data import Bools, Floats
    from findwell.core.estimate import Estimate
    from findwell.evaluation.comparison.pairing import Pairing
    from findwell.measures import Measure

Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[int, int]  # the numbers of baseline and system

BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "same", "unclear"
UNKNOWN = "unknown"  # the judge gives no verdict about systems
NOTHING_SHARED = "no retrieved document is in the gold, so that nothing was compared"
NO_TUKEY = "the correction for all pairs takes queries of a cluster as independent"

ROWS: dict[str, PolarsDataType] = {
    **dict.fromkeys(("baseline", "system", "measure"), pl.String),
    "verdict": pl.String,  # better, worse, same, unclear: by the corrected p; or unknown
    "difference": pl.Float64,  # system − baseline
    **dict.fromkeys(("low", "high", "p", "p_adjusted", "effect"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "n", "left_out"), pl.Int64),
    **dict.fromkeys(("baseline_value", "system_value"), pl.Float64),
    **dict.fromkeys(("test", "correction", "method"), pl.String),
    # the interval corrected as p_adjusted is: 0 is outside where the verdict is better or worse
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
    test: Significance
    clusters: tuple[object, ...] | None
    unpaired: bool = False

    def correct(self, p: float | None, correction: str, rate: float) -> None:
        """Give the row its corrected p, and the interval for the error rate that is left to it."""
        self.row.update({"p_adjusted": p, "correction": correction})
        self._put(self._interval(rate, self.test))

    def correct_jointly(self, p: float | None, correction: str, alpha: float, tests: int) -> None:
        """Give the row a p that holds for all tests together, which decides about 0.

        The interval is that of the error rate that is left to each if all have the same.
        """
        self.row.update({"p_adjusted": p, "correction": correction})
        self._put(decide_zero(self._interval(alpha / tests, None), p, alpha))

    def _interval(self, rate: float, test: Significance | None) -> Estimate:
        options: dict[str, Any] = {
            "statistic": self.measure.aggregation,
            "level": 1 - rate,
            "bounds": self.measure.bounds,
        }
        if self.unpaired:
            labels = None if self.clusters is None else (self.clusters, self.clusters)
            return unpaired_interval(*self.values, test=test, clusters=labels, **options)
        return difference_interval(*self.values, test=test, clusters=self.clusters, **options)

    def _put(self, found: Estimate) -> None:
        self.row.update({"low_adjusted": found.low, "high_adjusted": found.high})

    @property
    def on_scale(self) -> float:
        """The mean difference on the scale of the statistic: of logarithms, where it is one."""
        sides = (to_scale(side[:, None], [self.measure.aggregation]) for side in self.values)
        before, after = sides
        return float(np.nanmean(after - before)) if self.row["n"] else 0.0


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
        test=how.test,
        permutations=how.permutations,
        seed=how.seed,
    )
    rows = []
    for column, each in enumerate(found):
        pair, measure = pairs[column // len(measures)], measures[column % len(measures)]
        values = before[:, column], after[:, column]
        row = _row(pairing, pair, measure, each, values)
        rows.append(Contrast(row, values, measure, each.test, how.clusters))
    return rows


def _row(
    pairing: Pairing,
    pair: Pair,
    measure: Measure,
    found: Paired,
    values: tuple[Floats, Floats],
) -> Row:
    both = ~(np.isnan(values[0]) | np.isnan(values[1]))
    won, lost = found.wins, found.losses
    if not measure.higher_is_better:  # to win is to be better, not to have more
        won, lost = lost, won
    test = found.test
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
            yield Contrast(row, values, measure, found.test, how.clusters, unpaired=True)


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
            each.correct(p, method, rate)


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
        for each in rows[at :: len(found)]:
            p = every.chance(each.on_scale) if each.row["n"] else None
            each.correct_jointly(p, "tukey", 1 - how.level, len(every.p))
            why = (each.row["reason"], every.reason, NO_TUKEY if how.clusters else "")
            each.row["reason"] = _joined(*why)


def decide_verdicts(rows: Iterable[Contrast], pairing: Pairing, level: float) -> None:
    """Give each row its verdict, by the corrected p: the only place that decides.

    `same` is said where no query differs, but not where nothing was compared.
    """
    strangers = {each.run for each in pairing.findings if each.kind == FindingKind.NOTHING_SHARED}
    for each in rows:
        row = each.row
        row["verdict"] = UNCLEAR
        if row["difference"] is None or row["p_adjusted"] is None:
            continue
        if row["wins"] == 0 and row["losses"] == 0:
            sides = {row["baseline"], row["system"]}
            if sides & strangers and not row["baseline_value"]:
                row["reason"] = _joined(NOTHING_SHARED, row["reason"])
            else:
                row["verdict"] = SAME
        elif row["difference"] and rejects(row["p_adjusted"], 1 - level):
            higher = (row["difference"] > 0) == each.measure.higher_is_better
            row["verdict"] = BETTER if higher else WORSE


def withhold(rows: Iterable[Row], limits: Mapping[str, str]) -> None:
    """Take back the verdicts of measures whose judge gives none about systems, and say why."""
    for row in rows:
        if limit := limits.get(row["measure"]):
            row |= {"p": None, "p_adjusted": None, "verdict": UNKNOWN}
            row["reason"] = _joined(row["reason"], limit)


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
    decide_verdicts(rows, pairing, how.level)
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
