"""Several ranked lists become one; the best weight or constant, as AutoRAG searches for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import AlignError, OptionError, choose, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.evaluation.evaluate import evaluate
from findwell.io.read import load_gold
from findwell.loop.tuning.engines import Engine, Setting, WeightRule, find_engine
from findwell.loop.tuning.formulas import NORMALISERS, scale_lists, weighted_sum
from findwell.loop.tuning.pool import Pool
from findwell.measures.dialects import expand_measures
from findwell.measures.dialects.autorag import select_best

if TYPE_CHECKING:
    from findwell.core.data import Gold, Run
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect

RANK_ENGINES = {"rank": "course-rrf", "score": "autorag-rrf"}  # by what their ranks are
SEARCHED_RRF_KS = tuple(range(4, 81))


@takes_options()
def fuse(
    runs: Sequence[RunLike] | Pool,
    engine: str | Engine,
    *,
    weights: Sequence[float] | None = None,
    k: float | None = None,
    window: int | None = None,
    normaliser: str | Sequence[str] | None = None,
    fill: float | None = None,
    depth: int | None = None,
    disjoint: bool = False,
) -> Run:
    """Fuse runs by the formula of an engine, as the engine would, with its own defaults.

    `weights` has one number for each run, `k` is the constant of a rank fusion, `window` how many
    documents of each run the engine reads, `normaliser` how it makes scores comparable (one for
    all runs, or one for each), and `fill` what stands for a document that a list lacks. What an
    engine does not have cannot be set. The result keeps the first `depth` documents of each query.
    `findwell fuse --list` prints the engines.

    Runs that share almost no document are refused, since they mostly name the same documents
    differently; `disjoint` says that they search different collections.

    >>> fuse([{"q": ["a", "b", "c"]}, {"q": ["c", "d"]}], "qdrant-rrf").rows.rows()[:2]
    [('q', 'c', 0.75), ('q', 'a', 0.5)]
    """
    refuse_after_fork()
    if depth is not None and (type(depth) is not int or depth < 1):
        raise OptionError(f"depth={depth!r} is not a whole number from 1", fix="for example 10")
    chosen = find_engine(engine) if isinstance(engine, str) else engine
    pool = Pool.of(runs, disjoint=disjoint)
    if len(pool.runs) == 1:
        raise OptionError("there is one run, and nothing to fuse it with", fix="give two or more")
    setting = chosen.setting(
        len(pool.runs), weights=weights, k=k, window=window, normaliser=normaliser, fill=fill
    )
    if not (pool.answered().sum(axis=0) > 1).any():
        raise AlignError(
            "the runs share no query",
            where=" and ".join(dict.fromkeys(pool.runs)),
            fix="give runs of the same queries, under the same ids",
        )
    pool = chosen.arranged(pool)
    scores = chosen.scores(pool, setting)
    limits = [limit for limit in (depth, setting.window if chosen.cut else None) if limit]
    fused = pool.as_run(pool.order(scores, min(limits, default=None)), scores)
    found = (*pool.unshared_queries(), *chosen.findings(pool, setting))
    return replace(fused, findings=(*fused.findings, *found))


@takes_options()
def convex_combination(
    runs: Sequence[RunLike] | Pool,
    weights: Sequence[float],
    *,
    normaliser: str = "mm",
    lowest: Sequence[float] | None = None,
    fill: float = 0.0,
    k: int | None = None,
) -> Run:
    """Fuse runs by the weighted sum of their normalised scores: Σ weight × normalised score.

    The weights are not negative and add up to 1. What a run does not score, because it lacks the
    document or because all its scores of the query are equal, counts as `fill`: 0 is the worst
    under `mm`, but the mean under `z`. `lowest` are the lowest scores that the retrievers can
    give, for `tmm`. The result keeps the first k documents; equal sums keep the order in which
    the documents are first met, run by run.

    >>> semantic, lexical = {"q": {"a": 0.9, "b": 0.7, "c": 0.5}}, {"q": {"c": 8.0, "d": 2.0}}
    >>> convex_combination([semantic, lexical], [0.6, 0.4]).rows["doc"].to_list()
    ['a', 'c', 'b', 'd']
    """
    refuse_after_fork()
    pool = Pool.of(runs)
    engine = _convex_engine(len(pool.runs), normaliser, lowest, fill)
    return pool.best_first(engine.scores(pool, engine.setting(len(pool.runs), weights=weights)), k)


def _convex_engine(
    runs: int, normaliser: str, lowest: Sequence[float] | None, fill: float
) -> Engine:
    """Return the engine that a convex combination of this many runs is."""
    choose("normaliser", normaliser, NORMALISERS)
    lows = [None] * runs if lowest is None else lowest
    if len(lows) != runs:
        raise OptionError(f"{len(lows)} lowest scores for {runs} runs", fix="give one for each run")
    ways = tuple(partial(scale_lists, how=normaliser, lowest=low) for low in lows)
    return Engine(
        name="a convex combination",
        formula="Σ w·n",
        source="",
        template="",
        join=weighted_sum,
        normalisers={normaliser: ways},
        unscored=fill,
        weights=WeightRule(
            highest=1, total=1, about="weights that are not negative and add up to 1"
        ),
    )


@takes_options()
def reciprocal_rank_fusion(
    runs: Sequence[RunLike] | Pool, rrf_k: float = 60, *, by: str = "rank", k: int | None = None
) -> Run:
    """Fuse runs by Σ 1 ÷ (rrf_k + rank), over the runs that retrieved the document.

    `by` says what the rank is: the place in the list ("rank"), or 1 + how many documents of the
    list score higher ("score"), so that equal scores share a rank. The result keeps the first k
    documents; equal sums keep the order in which the documents are first met, run by run.

    Cormack, Clarke & Buettcher, SIGIR 2009.

    >>> fused = reciprocal_rank_fusion([{"q": ["a", "b", "c"]}, {"q": ["c", "a"]}])
    >>> fused.rows["doc"].to_list()
    ['a', 'c', 'b']
    """
    refuse_after_fork()
    engine = find_engine(RANK_ENGINES[choose("kind of rank", by, RANK_ENGINES)])
    pool = Pool.of(runs)
    return pool.best_first(engine.scores(pool, engine.setting(len(pool.runs), k=rrf_k)), k)


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The candidates of a search, and the best of them."""

    best: float
    run: Run  # fused with the best candidate
    result: Result  # of that run
    table: pl.DataFrame  # one row per candidate: its value, then one column per measure


@takes_options()
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

    The candidates are 0, 0.01, … 1 unless given. Several measures are weighed up by the
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
    engine = _convex_engine(2, normaliser, lowest, fill)
    prepared = engine.prepare(pool, Setting())

    def fuse(weight: float) -> Run:
        setting = engine.setting(2, weights=(weight, 1.0 - weight))
        return pool.best_first(engine.combine(prepared, setting), k)

    candidates = [float(w) for w in (np.linspace(0, 1, 101) if weights is None else weights)]
    return _search(
        "weight", candidates, fuse, known, measures=measures, strategy=strategy, dialect=dialect
    )


@takes_options()
def tune_rrf_k(
    runs: Sequence[RunLike] | Pool,
    gold: GoldLike,
    measures: Iterable[str | Measure] | str,
    *,
    rrf_ks: Iterable[float] = SEARCHED_RRF_KS,
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
