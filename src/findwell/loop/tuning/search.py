"""The best weight or constant of a fusion: every candidate is measured, and the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.evaluate import evaluate
from findwell.io.read import load_gold
from findwell.loop.tuning.fusion import reciprocal_rank_fusion, weighted_sum
from findwell.loop.tuning.lists import scaled_scores
from findwell.loop.tuning.pool import Pool
from findwell.measures.dialects import expand_measures
from findwell.measures.dialects.autorag import select_best

if TYPE_CHECKING:
    from findwell.core.data import Floats, Gold, Run
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect

RRF_KS = tuple(range(4, 81))


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The candidates of a search, and the best of them."""

    best: float
    run: Run  # fused with the best candidate
    result: Result  # of that run
    table: pl.DataFrame  # one row per candidate: its value, then one column per measure


def weight_grid(size: int = 101, low: float = 0.0, high: float = 1.0) -> Floats:
    """Return evenly spaced weights, both ends included.

    >>> weight_grid(5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if size < 1 or not 0 <= low <= high <= 1:
        raise OptionError(
            f"there is no grid of {size} weights from {low:g} to {high:g}",
            fix="weights lie between 0 and 1, for example weight_grid(101)",
        )
    return np.linspace(low, high, size)


def tune_weight(
    runs: Sequence[RunLike] | Pool,
    gold: GoldLike,
    measures: Iterable[str | Measure] | str,
    *,
    weights: Iterable[float] | None = None,
    normaliser: str = "mm",
    lowest: Sequence[float] = (-1.0, 0.0),
    fill: float = 0.0,
    k: int | None = None,
    strategy: str = "mean",
    dialect: str | Dialect = "findwell",
) -> Tuned:
    """Find the weight of the first of two runs in a convex combination; the other has the rest.

    The candidates are `weight_grid()` unless given. Several measures are weighed up by the
    strategies of `findwell.measures.dialects.autorag.select_best`; equally good candidates: the
    first wins. The best of many candidates looks better on these queries than it will on others:
    measure it again on queries that did not choose it.

    >>> semantic, lexical = {"q": {"a": 0.9, "b": 0.7}}, {"q": {"b": 8.0, "c": 2.0}}
    >>> tuned = tune_weight([semantic, lexical], {"q": ["a"]}, "RR", weights=[0, 0.5, 1])
    >>> tuned.best, tuned.table["RR"].round(4).to_list()
    (0.5, [0.5, 1.0, 1.0])
    """
    refuse_after_fork()
    known = load_gold(gold)
    pool = Pool.of(runs, known)
    if len(pool.runs) != 2:
        raise OptionError(
            f"one weight cannot be shared by {len(pool.runs)} runs", fix="pass two runs"
        )
    scaled = scaled_scores(pool, normaliser, lowest, fill)

    def fuse(weight: float) -> Run:
        return pool.best_first(weighted_sum(scaled, (weight, 1.0 - weight)), k)

    candidates = [float(w) for w in (weight_grid() if weights is None else weights)]
    return _search(
        "weight", candidates, fuse, known, measures=measures, strategy=strategy, dialect=dialect
    )


def tune_rrf_k(
    runs: Sequence[RunLike] | Pool,
    gold: GoldLike,
    measures: Iterable[str | Measure] | str,
    *,
    rrf_ks: Iterable[float] = RRF_KS,
    by: str = "rank",
    k: int | None = None,
    strategy: str = "mean",
    dialect: str | Dialect = "findwell",
) -> Tuned:
    """Find the constant of a reciprocal rank fusion; see `tune_weight`.

    >>> runs = [{"q": ["a", "b", "c"]}, {"q": ["d", "c"]}]
    >>> tune_rrf_k(runs, {"q": ["c"]}, "RR", rrf_ks=[0, 60]).best
    60.0
    """
    refuse_after_fork()
    known = load_gold(gold)
    pool = Pool.of(runs, known)

    def fuse(rrf_k: float) -> Run:
        return reciprocal_rank_fusion(pool, rrf_k, by=by, k=k)

    candidates = [float(rrf_k) for rrf_k in rrf_ks]
    return _search(
        "rrf_k", candidates, fuse, known, measures=measures, strategy=strategy, dialect=dialect
    )


def _search(
    name: str,
    candidates: Sequence[float],
    fuse: Callable[[float], Run],
    gold: Gold,
    *,
    measures: Iterable[str | Measure] | str,
    strategy: str,
    dialect: str | Dialect,
) -> Tuned:
    if not candidates:
        raise OptionError(f"there is no {name} to try", fix="give at least one")
    wanted = expand_measures(measures, dialect)
    for measure in wanted:
        if not measure.higher_is_better:
            raise OptionError(
                f"{measure} is better when it is lower", fix="tune for another measure"
            )
    columns = [str(measure) for measure in wanted]
    rows = []
    for candidate in candidates:
        result = evaluate(fuse(candidate), gold, wanted, dialect=dialect)
        rows.append([result.values[column] for column in columns])
    choices = {
        str(number): {column: [value] for column, value in zip(columns, row, strict=True)}
        for number, row in enumerate(rows)
    }
    best = candidates[int(select_best(choices, strategy))]
    run = fuse(best)
    table = pl.DataFrame(
        [[candidate, *row] for candidate, row in zip(candidates, rows, strict=True)],
        schema=dict.fromkeys([name, *columns], pl.Float64),
        orient="row",
    )
    return Tuned(best, run, evaluate(run, gold, wanted, dialect=dialect), table)
