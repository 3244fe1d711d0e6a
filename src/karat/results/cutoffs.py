"""Measures at many cutoffs: how much more is found, and how much noise comes along."""

from __future__ import annotations

import os
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from karat.dialects import resolve_measures, select_measures
from karat.errors import MeasureError
from karat.forks import refuse_after_fork
from karat.results.reuse import require_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karat.measures import Measure
    from karat.results.result import Result

CUTOFFS = (1, 3, 5, 10, 20)
MONOTONE = ("recall", "success", "all_found", "relevant_retrieved")  # never fall with k


def curve(
    result: Result | str | os.PathLike[str],
    measures: Iterable[str | Measure] | str = ("recall", "P"),
    cutoffs: Sequence[int] = CUTOFFS,
) -> pl.DataFrame:
    """Return measures of a result, or of a saved one's folder, at many cutoffs.

    There is one row for each run, measure and k.

    >>> from karat import evaluate
    >>> result = evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]})
    >>> curve(result, ["recall", "P"], [1, 3]).select("measure", "k", "value").rows()[:2]
    [('recall', 1, 0.5), ('recall', 3, 1.0)]
    """
    refuse_after_fork()
    result = require_result(result)
    rows = []
    for base in resolve_measures(measures, result.dialect):
        cut = [at_cutoff(base, k) for k in cutoffs]
        table = result.score(cut).summary
        by_name = {str(measure): measure.k for measure in cut}
        rows.append(
            table.with_columns(
                measure=pl.lit(str(replace(base, k=None))),
                k=pl.col("measure").replace_strict(by_name, return_dtype=pl.Int64),
            ).select("run", "measure", "k", "value", "n", "undefined")
        )
    return pl.concat(rows)


def smallest_k(
    result: Result | str | os.PathLike[str],
    measure: str,
    target: float,
    *,
    run: str | None = None,
) -> int | None:
    """Return the smallest cutoff at which a measure reaches a target; None if none does.

    A measure without a relevance level is taken at that of the result.

    >>> from karat import evaluate
    >>> result = evaluate({"q": ["x", "a", "y", "b"]}, {"q": ["a", "b"]})
    >>> smallest_k(result, "recall", 0.5), smallest_k(result, "recall", 0.9)
    (2, 4)
    """
    refuse_after_fork()
    result = require_result(result)
    uncut = [replace(each, k=None) for each in result.measures]
    base = [
        *select_measures(measure, uncut, result.dialect),
        *resolve_measures(measure, result.dialect),
    ][0]
    name = run or result.runs[0]
    deepest = int(result.relation(name, base).depth.max(initial=1)) or 1

    def reaches(k: int) -> bool:
        cut = at_cutoff(base, k)
        value = result.score([cut])[name, str(cut)]
        return value is not None and value >= target

    if base.name not in MONOTONE:
        return next((k for k in range(1, deepest + 1) if reaches(k)), None)
    return bisect_left(range(deepest), True, 1, key=reaches) if reaches(deepest) else None


def at_cutoff(measure: Measure, k: int | None = None) -> Measure:
    """Return a measure at another cutoff, or without one."""
    if measure.at != "k":
        raise MeasureError(f"{measure.name} takes no cutoff", fix="for example recall, P or nDCG")
    return replace(measure, k=k)
