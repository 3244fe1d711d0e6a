"""The best way to fuse runs, and what it is worth on queries that took no part in the choice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from findwell.core.errors import OptionError, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.plan import InputOptions, Plan
from findwell.judges.limits import verdict_limit
from findwell.judges.settings import Judge
from findwell.loop.tuning.choice import DRAWS, FOLDS, REPEATS
from findwell.loop.tuning.conclusion import Tuning, conclude
from findwell.loop.tuning.engines import Engine, find_engine
from findwell.loop.tuning.grid import grid_of, setting_of
from findwell.loop.tuning.measured import measure_settings, name_runs
from findwell.loop.tuning.tune_retriever import tune_retriever
from findwell.loop.tuning.tune_space import tune_space
from findwell.measures.dialects import expand_measures
from findwell.statistics.significance import PERMUTATIONS
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.io.read import GoldLike, RunLike
    from findwell.loop.tuning.halving import HalvingPlan
    from findwell.loop.tuning.retriever_tuning import RetrieverTuning
    from findwell.loop.tuning.space import SpaceLike
    from findwell.measures import Measure
    from findwell.relations.match import Matcher
    from findwell.retrievers.retriever import RetrievalOptions

MEASURE = "nDCG@10"


class TuneOptions(InputOptions, total=False):
    """All options of `tune`."""

    engine: str | Engine | None
    space: SpaceLike | None
    current: object
    retrieval: RetrievalOptions | None
    answers: str | os.PathLike[str] | None
    announce: Callable[[HalvingPlan, int], None] | None
    step: float | None
    k: float | None
    window: int | None
    normaliser: str | Sequence[str] | None
    fill: float | None
    disjoint: bool
    folds: int
    repeats: int
    cluster: str | None
    slices: Iterable[str] | str
    queries: object
    rel: float | None
    dialect: str
    level: float
    permutations: int
    draws: int
    seed: int
    progress: Report | None


@overload
def tune(
    runs: Callable[..., Any],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    **options: Unpack[TuneOptions],
) -> RetrieverTuning: ...


@overload
def tune(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    **options: Unpack[TuneOptions],
) -> Tuning: ...


@takes_options(InputOptions)
def tune(
    runs: Sequence[RunLike] | Mapping[str, RunLike] | Callable[..., Any],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    *,
    engine: str | Engine | None = None,
    space: SpaceLike | None = None,
    current: object = None,
    retrieval: RetrievalOptions | None = None,
    answers: str | os.PathLike[str] | None = None,
    announce: Callable[[HalvingPlan, int], None] | None = None,
    step: float | None = None,
    k: float | None = None,
    window: int | None = None,
    normaliser: str | Sequence[str] | None = None,
    fill: float | None = None,
    disjoint: bool = False,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    cluster: str | None = None,
    slices: Iterable[str] | str = (),
    queries: object = None,
    rel: float | None = None,
    dialect: str = "findwell",
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Report | None = None,
    **options: Unpack[InputOptions],
) -> Tuning | RetrieverTuning:
    """Choose the weights with which an engine fuses two to five runs, and say what they are worth.

    `engine` names the formula (`findwell fuse --list` lists them); its weights are searched in even
    `step`s, or its constant where it has no weights. `k`, `window`, `normaliser` and `fill` are
    kept at the values given, or at the engine's own. The first measure chooses; the others are
    reported for the same choice.

    A `space` has more than one knob, engines among them: a TOML file or a dict. With a function in
    the place of runs, its knobs are arguments: `make(**setting)` returns a retriever, and
    configurations are asked by successive halving; `retrieval` says how (options of
    `findwell.Retriever`), `answers` is a folder that keeps answers, and `announce` is called with
    the plan and the number of calls before anything is asked. See docs/tuning-retrievers.md.

    Each query is scored by a setting that it took no part in choosing: `repeats` times the queries
    are dealt into `folds`, and the setting for a fold is chosen by the others (bagged argmax, see
    `findwell.loop.tuning.choice`). Queries that share the value of the column `cluster` stay
    together. Where the choice is not better on held-out queries than a run alone, or than
    `current`, `keep` of the result names that, and there is no `snippet`. Runs that share almost no
    document are refused, unless `disjoint` says that they search different collections. `current`
    is the setting in use: the share of the first of two runs (0.5), weights, or a dict of knobs;
    the choice is tested against it and against each run alone. `slices` are columns of the queries:
    for each of their values a setting of its own is chosen. Further options (`by`, `corpus`,
    `judge`, …) are those of `findwell.evaluate`. A judge is asked once about each document.

    >>> gold = {f"q{n}": [f"d{n}"] for n in range(12)}
    >>> lexical = {q: {doc: 9.0, "x": 3.0} for q, (doc,) in gold.items()}
    >>> dense = {q: {"x": 0.9, doc: 0.8} for q, (doc,) in gold.items()}
    >>> found = tune([dense, lexical], gold, "RR", engine="autorag-cc")
    >>> found.choice.held_out.value, [(gain.over, gain.verdict) for gain in found.gains]
    (1.0, [('run 1', 'better'), ('run 2', 'unclear')])
    >>> found.keep, found.snippet
    ('run 2', None)
    """
    refuse_after_fork()
    check_share("level", level)
    _refuse_smoke_test(measures, options.get("by"), dialect, options.get("judge", "local"))
    how = {"dialect": dialect, "rel": rel, "queries": queries, "progress": progress}
    how["disjoint"] = disjoint
    sampled = {"level": level, "permutations": permutations, "seed": seed}
    knobs = {"k": k, "window": window, "normaliser": normaliser, "fill": fill}
    fixed = {name: value for name, value in knobs.items() if value is not None}
    if callable(runs):
        _refuse_idle(
            {
                "engine": engine,
                "slices": slices or None,
                "step": step,
                "disjoint": disjoint or None,
                **fixed,
            },
            "retriever",
        )
        return tune_retriever(
            runs,
            gold,
            measures,
            space=space,
            current=current,
            queries=queries,
            answers=answers,
            level=level,
            cluster=cluster,
            rel=rel,
            dialect=dialect,
            announce=announce,
            retrieval=retrieval,
            progress=progress,
            **options,
        )
    live = {"retrieval": retrieval, "answers": answers, "announce": announce}
    _refuse_idle(live, "recorded run")
    if space is not None:
        _refuse_idle({"step": step, **fixed}, "space")
        return tune_space(
            runs,
            gold,
            measures,
            space=space,
            engine=engine if engine is None or isinstance(engine, str) else engine.name,
            current=current,
            folds=folds,
            repeats=repeats,
            cluster=cluster,
            slices=slices,
            sampled=sampled,
            draws=draws,
            options={**how, **options},
        )
    if engine is None:
        raise OptionError(
            "no engine is named, and so no formula",
            fix="name the one that you use: --engine elasticsearch-rrf (engine=); `findwell fuse "
            "--list` lists them",
        )
    formula = find_engine(engine) if isinstance(engine, str) else engine
    named = name_runs(runs)
    grid = grid_of(formula, len(named), step, fixed)
    now = None if current is None else setting_of(formula, len(named), current, fixed)
    place = None if now is None else grid.find(now)
    tried = grid.settings if now is None or place is not None else (*grid.settings, now)
    measured = measure_settings(named, gold, measures, formula, tried, {**how, **options})
    values = measured.values[measured.measures[0]]
    return conclude(
        Tuning,
        measured,
        grid,
        formula,
        tried=len(tried),
        current=now,
        in_use=None if now is None else values[len(grid.settings) if place is None else place],
        cluster=cluster,
        slices=slices,
        sampled=sampled,
        folds=folds,
        repeats=repeats,
        draws=draws,
    )


def _refuse_smoke_test(
    measures: Iterable[str | Measure] | str, by: str | Matcher | None, name: str, judge: object
) -> None:
    """Refuse a judge that gives no verdict about systems: to choose a setting is one."""
    settings = Judge(judge) if isinstance(judge, str) else judge
    if isinstance(settings, Judge) and settings.asks_model:
        return
    first = expand_measures(measures, name)[:1]
    plan = Plan.of(first, by=by, dialect=name, judge=judge)
    if plan.judge is not None:
        about = {"name": plan.judge.name, **plan.judge.about()}
        limits = (verdict_limit(about, each) for each in plan.matchers)
        if limit := next(filter(None, limits), ""):
            raise OptionError(
                f"{limit}: it cannot choose a setting",
                fix="ask another judge: --judge local, or a language model (judge=)",
            )


def _refuse_idle(given: Mapping[str, object], beside: str) -> None:
    idle = [name for name, value in given.items() if value is not None]
    if idle:
        fix = f"write {idle[0]} into the space, below [knobs]"
        raise OptionError(
            f"{idle[0]} has no effect beside a {beside}",
            fix=fix if beside == "space" else f"leave out {idle[0]}",
        )
