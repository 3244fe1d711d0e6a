"""From values side by side to rows: differences, tests, intervals, corrections, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from findwell.core.findings import FindingKind
from findwell.core.verdict import UNKNOWN
from findwell.statistics.unpaired import Unpaired
from findwell.statistics.verdicts import contrasts as compared
from findwell.statistics.verdicts import correct

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

    from findwell.evaluation.comparison.pairing import Pairing
    from findwell.statistics.verdicts import Contrast, DifferenceTest, Pair

Row: TypeAlias = dict[str, Any]

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


def contrasts(
    pairing: Pairing,
    pairs: Sequence[Pair],
    how: DifferenceTest,
    limits: Mapping[str, str] | None = None,
) -> list[Contrast]:
    """Return what differs between each pair of systems by each measure, not corrected yet.

    `limits` are the measures whose judge gives no verdict about systems, and why.
    """
    strangers = {each.run for each in pairing.findings if each.kind == FindingKind.NOTHING_SHARED}
    numbers = [at for at, name in enumerate(pairing.systems) if name in strangers]
    found = compared(pairing.values, pairing.measures, pairs, how, strangers=numbers)
    if not limits:
        return found
    return [replace(each, limit=limits.get(str(each.measure), "")) for each in found]


def row_of(pairing: Pairing, each: Contrast) -> Row:
    """Return a contrast as a row of the tables."""
    found, verdict = each.found, each.verdict
    left_out = found.difference.undefined
    if isinstance(found, Unpaired):
        asked = zip(each.values, each.pair, strict=True)
        left_out = sum(int(np.isnan(side[pairing.present[:, at]]).sum()) for side, at in asked)
    return {
        "baseline": pairing.systems[each.pair[0]],
        "system": pairing.systems[each.pair[1]],
        "measure": str(each.measure),
        "verdict": verdict.word,
        "difference": verdict.difference.value,
        "low": found.difference.low,
        "high": found.difference.high,
        "p": None if verdict.word == UNKNOWN else found.test.p,
        "p_adjusted": verdict.p,
        "effect": found.effect.value,
        "wins": verdict.won,
        "ties": verdict.tied,
        "losses": verdict.lost,
        "n": found.n,
        "left_out": left_out,
        "baseline_value": each.sides[0],
        "system_value": each.sides[1],
        "test": verdict.test,
        "correction": verdict.correction,
        "method": found.difference.method or None,
        "low_adjusted": verdict.difference.low,
        "high_adjusted": verdict.difference.high,
        "smallest_p": found.test.smallest,
        "reason": verdict.reason,
        **({"baseline_n": found.baseline_n} if isinstance(found, Unpaired) else {}),
    }


def slice_rows(
    pairing: Pairing,
    pairs: Sequence[Pair],
    columns: Iterable[str],
    how: DifferenceTest,
    limits: Mapping[str, str] | None = None,
) -> list[Row]:
    """Return the rows of every slice, corrected for all slices and systems of a measure."""
    found: list[Contrast] = []
    about: list[tuple[Row, Pairing]] = []
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
            new = contrasts(part, pairs, how.only(inside), limits)
            found += new
            about += [({"column": column, "slice": value}, part)] * len(new)
    return [
        name | row_of(part, each)
        for (name, part), each in zip(about, correct(found, "bh"), strict=True)
    ]
