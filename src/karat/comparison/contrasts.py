"""From values side by side to rows: differences, intervals, tests, corrected p-values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from karat.errors import OptionError, choose
from karat.measures.aggregate import aggregate
from karat.statistics.paired import Paired, paired
from karat.statistics.significance import Significance, adjust, mcnemar, out_of_reach, paired_t
from karat.statistics.tukey import tukey
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
    "smallest_p": pl.Float64,  # that the test can give, before correction; null: any
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class Statistics:
    """How differences are judged."""

    level: float
    permutations: int
    seed: int
    test: str
    clusters: tuple[object, ...] | None

    def only(self, inside: Bools) -> Statistics:
        """Return the same for some of the queries."""
        if self.clusters is None:
            return self
        kept = tuple(label for label, keep in zip(self.clusters, inside, strict=True) if keep)
        return replace(self, clusters=kept)


def contrasts(pairing: Pairing, pairs: Sequence[Pair], how: Statistics) -> list[Row]:
    """Return a row for each pair of systems and each measure, p-values not corrected yet."""
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
        rows.append(_row(pairing, pair, measure, each, test, values))
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


def correct(rows: Iterable[Row], method: str) -> None:
    """Correct the p-values of the rows of each measure for their number.

    A single p-value needs no correction.
    """
    by_measure: dict[str, list[Row]] = {}
    for row in rows:
        by_measure.setdefault(row["measure"], []).append(row)
    for family in by_measure.values():
        if len(family) == 1:
            continue
        for row, p in zip(family, adjust([row["p"] for row in family], method), strict=True):
            row |= {"p_adjusted": p, "correction": method}


def explain_reach(rows: Iterable[Row], how: Statistics) -> None:
    """Say of each row whether its test could have shown anything: with few units it cannot."""
    rows = list(rows)
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


def correct_all_pairs(rows: Sequence[Row], pairing: Pairing, how: Statistics) -> None:
    """Correct the p-values of all pairs of systems, in order: randomised Tukey HSD."""
    found = tukey(
        pairing.values,
        statistic=[measure.aggregation for measure in pairing.measures],
        permutations=how.permutations,
        seed=how.seed,
    )
    for at, every in enumerate(found):
        for p, row in zip(every.p.values(), rows[at :: len(found)], strict=True):
            row |= {"p_adjusted": p, "correction": "tukey"}
            row["reason"] = _joined(row["reason"], every.reason, NO_TUKEY if how.clusters else "")


def slice_rows(
    pairing: Pairing,
    pairs: Sequence[Pair],
    columns: Iterable[str],
    how: Statistics,
) -> list[Row]:
    """Return the rows of every slice, corrected for all slices and systems of a measure."""
    rows = list(slice_contrasts(pairing, pairs, columns, how))
    correct(rows, "bh")
    explain_reach(rows, how)
    return rows


def slice_contrasts(
    pairing: Pairing, pairs: Sequence[Pair], columns: Iterable[str], how: Statistics
) -> Iterator[Row]:
    """Yield the rows of every slice, p-values not corrected yet."""
    for column in dict.fromkeys(columns):
        labels = pairing.column(column).cast(pl.String)
        for value in labels.unique(maintain_order=True).sort(nulls_last=True):
            inside = labels.eq_missing(value).to_numpy()
            part = replace(
                pairing, values=pairing.values[inside], queries=pairing.queries.filter(inside)
            )
            for row in contrasts(part, pairs, how.only(inside)):
                yield {"column": column, "slice": value, **row}
