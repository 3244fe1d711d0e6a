"""Several ranked lists become one: by weighted scores made comparable, or by ranks alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, choose
from findwell.core.forks import refuse_after_fork
from findwell.loop.tuning.engines import Engine, find_engine
from findwell.loop.tuning.engines.joins import add_up
from findwell.loop.tuning.engines.problems import fusion_findings, refuse_strangers
from findwell.loop.tuning.lists import reciprocal_ranks, scaled_scores
from findwell.loop.tuning.pool import Pool
from findwell.relations.align import positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from findwell.core.data import Floats, Run
    from findwell.io.read import RunLike


RANKS = {"rank": "course-rrf", "score": "autorag-rrf"}  # the engine that ranks so


def fuse(
    runs: Sequence[RunLike] | Pool,
    engine: str | Engine,
    *,
    weights: Sequence[float] | None = None,
    k: float | None = None,
    window: int | None = None,
    normaliser: str | Sequence[str] | None = None,
    fill: float | None = None,
    version: str | None = None,
    depth: int | None = None,
    disjoint: bool = False,
) -> Run:
    """Fuse runs by the formula of an engine, as the engine would, with its own defaults.

    `weights` has one number for each run, `k` is the constant of a rank fusion, `window` how many
    documents of each run the engine reads, `normaliser` how it makes scores comparable (one for
    all runs, or one for each), `fill` what stands for a document that a list lacks, and `version`
    which of its formulas counts. What an engine does not have cannot be set. The result keeps the
    first `depth` documents of each query. `findwell fuse --list` prints the engines.

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
        len(pool.runs),
        weights=weights,
        k=k,
        window=window,
        normaliser=normaliser,
        fill=fill,
        version=version,
    )
    refuse_strangers(pool)
    pool = chosen.arranged(pool)
    scores = chosen.scores(pool, setting)
    order = chosen.order(pool, scores, setting)
    if depth is not None:
        order = order[positions(pool.query[order]) <= depth]
    fused = pool.as_run(order, scores)
    return replace(fused, findings=(*fused.findings, *fusion_findings(chosen, pool, setting)))


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
    scaled = scaled_scores(pool, normaliser, lowest, fill)
    return pool.best_first(weighted_sum(scaled, weights), k)


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
    engine = find_engine(RANKS[choose("kind of rank", by, RANKS)])
    pool = Pool.of(runs)
    setting = engine.setting(len(pool.runs), k=_constant(rrf_k))
    return pool.best_first(engine.scores(pool, setting), k)


def reciprocal_rank_scores(ranks: ArrayLike, rrf_k: float = 60) -> Floats:
    """Return Σ 1 ÷ (rrf_k + rank) over the first axis, the runs; rank 0 means not retrieved.

    >>> float(reciprocal_rank_scores([2, 10], rrf_k=0))
    0.6
    >>> reciprocal_rank_scores([[1, 2, 0], [0, 1, 2]], rrf_k=1).round(4).tolist()
    [0.5, 0.8333, 0.3333]
    """
    total: Floats = reciprocal_ranks(np.asarray(ranks), _constant(rrf_k)).sum(axis=0)
    return total


def weighted_sum(scaled: Floats, weights: Sequence[float]) -> Floats:
    """Return Σ weight × scores over the runs.

    >>> weighted_sum(np.array([[1.0, 0.0], [0.5, 1.0]]), [0.25, 0.75]).tolist()
    [0.625, 0.75]
    """
    if len(weights) != len(scaled):
        raise OptionError(
            f"{len(weights)} weights for {len(scaled)} runs", fix="give one for each run"
        )
    if not (all(weight >= 0 for weight in weights) and math.isclose(math.fsum(weights), 1)):
        raise OptionError(
            f"the weights {', '.join(f'{weight:g}' for weight in weights)} are not shares of 1",
            fix="give weights that are not negative and add up to 1",
        )
    # run by run instead of a matrix product, whose rounding depends on the machine and breaks ties
    return add_up(np.asarray(weights, dtype=np.float64)[:, None] * scaled)


def _constant(rrf_k: float) -> float:
    """Return the constant, or raise the error that says what it may be."""
    if not (math.isfinite(rrf_k) and rrf_k >= 0):
        raise OptionError(f"rrf_k={rrf_k} is not a number from 0", fix="60 is usual; 0 is 1 ÷ rank")
    return rrf_k
