"""Measures at many cutoffs, or budgets: how much more is found, and how much noise comes along."""

from __future__ import annotations

import os
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import MeasureError, choose, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.measure import UNITS, Budget
from findwell.evaluation.results.result import require_result
from findwell.measures.dialects import resolve_measures, select_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.measure import Cutoff
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

CUTOFFS = (1, 3, 5, 10, 20)
# where curves are measured, by what they go over
POINTS: dict[str, tuple[int, ...]] = {
    "k": CUTOFFS,
    "tokens": (250, 500, 1000, 2000, 4000, 8000),
    "chars": (1000, 2000, 4000, 8000, 16000, 32000),
    "hops": (1, 2, 3, 4, 5),
}
MONOTONE = ("recall", "success", "all_found", "relevant_retrieved")  # never fall with k


@takes_options()
def curve(
    result: Result | str | os.PathLike[str],
    measures: Iterable[str | Measure] | str = ("recall", "P"),
    cutoffs: Sequence[int] | None = None,
    over: str = "k",
) -> pl.DataFrame:
    """Return measures of a result, or of a saved one's folder, at many cutoffs.

    There is one row for each run, measure and k. With `over` a unit of budgets (`tokens`, `chars`
    or `hops`) k is an amount of it, as in `recall@2000tokens`. The result must know what chunks
    cost: evaluate with a measure that has such a budget, or save a result that does.

    >>> from findwell import evaluate
    >>> result = evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b"]})
    >>> curve(result, ["recall", "P"], [1, 3]).select("measure", "k", "value").rows()[:2]
    [('recall', 1, 0.5), ('recall', 3, 1.0)]
    >>> texts = {"a": "Press twice.", "x": "It is warm.", "b": "Call us at night."}
    >>> run, gold = {"q": ["a", "x", "b"]}, {"q": ["a", "b"]}
    >>> result = evaluate(run, gold, ["recall@20chars"], corpus=texts)
    >>> curve(result, "recall", [20, 40], over="chars").select("k", "value").rows()
    [(20, 0.5), (40, 1.0)]
    """
    refuse_after_fork()
    result = require_result(result)
    rows = []
    for base in resolve_measures(measures, result.dialect):
        cut = {k: at_cutoff(base, cutoff_of(k, over)) for k in points_of(cutoffs, over)}
        table = result.score(cut.values()).summary
        by_name = {str(measure): k for k, measure in cut.items()}
        rows.append(
            table.with_columns(
                measure=pl.lit(str(replace(base, k=None))),
                k=pl.col("measure").replace_strict(by_name, return_dtype=pl.Int64),
            ).select("run", "measure", "k", "value", "n", "undefined")
        )
    return pl.concat(rows)


@takes_options()
def smallest_k(
    result: Result | str | os.PathLike[str],
    measure: str,
    target: float,
    *,
    run: str | None = None,
    over: str = "k",
) -> int | None:
    """Return the smallest cutoff at which a measure reaches a target; None if none does.

    A measure without a relevance level is taken at that of the result. With `over` a unit of
    budgets it is the smallest budget, as in `curve`.

    >>> from findwell import evaluate
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
    relation = result.relation(name, base)
    deepest = int((relation.depth if over == "k" else relation.spent(over)).max(initial=1)) or 1

    def reaches(k: int) -> bool:
        cut = at_cutoff(base, cutoff_of(k, over))
        value = result.score([cut])[name, str(cut)]
        return value is not None and value >= target

    if base.name not in MONOTONE:
        # between two sums of costs nothing changes
        sums = range(1, deepest + 1) if over == "k" else np.unique(relation.spent(over)).astype(int)
        return next((int(k) for k in sums if k > 0 and reaches(int(k))), None)
    return bisect_left(range(deepest), True, 1, key=reaches) if reaches(deepest) else None


def points_of(cutoffs: Sequence[int] | None, over: str) -> Sequence[int]:
    """Return where a curve is measured: as asked for, or as usual."""
    return POINTS[choose("what a curve goes over", over, POINTS)] if cutoffs is None else cutoffs


def cutoff_of(k: int, over: str) -> Cutoff:
    """Return the cutoff after k ranks, or the budget of k tokens, characters or hops."""
    return k if choose("what a curve goes over", over, ("k", *UNITS)) == "k" else Budget(k, over)


def at_cutoff(measure: Measure, k: Cutoff | None = None) -> Measure:
    """Return a measure at another cutoff, or without one."""
    if measure.at != "k":
        raise MeasureError(f"{measure.name} takes no cutoff", fix="for example recall, P or nDCG")
    return replace(measure, k=k)
