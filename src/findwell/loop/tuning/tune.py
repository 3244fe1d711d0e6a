"""The best way to fuse runs or to configure a retriever, and what it is worth on other queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from findwell.core.errors import OptionError, check_share
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.plan import InputOptions, Plan, flat_options, takes_plan
from findwell.judges.limits import verdict_limit
from findwell.judges.settings import Judge
from findwell.loop.tuning.choice import DRAWS, FOLDS, REPEATS, ChoiceRule
from findwell.loop.tuning.engines import Engine, find_engine
from findwell.loop.tuning.fused_values import RecordedRuns, name_runs
from findwell.loop.tuning.fusion_settings import (
    SPACE,
    SettingGrid,
    current_of,
    first_setting,
    fit_to_runs,
    fusion_settings,
    grid_of,
    places_of,
    search_by_optuna,
    setting_of,
)
from findwell.loop.tuning.retriever_trials import tune_retriever
from findwell.loop.tuning.space import Space
from findwell.loop.tuning.tuning import Tuning, clustered, conclude
from findwell.measures.dialects import expand_measures
from findwell.statistics.significance import PERMUTATIONS

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.io.read import GoldLike, RunLike
    from findwell.loop.tuning.halving import HalvingPlan
    from findwell.loop.tuning.space import SpaceLike
    from findwell.measures import Measure
    from findwell.relations.match import Matcher
    from findwell.retrievers.retriever import RetrievalOptions


@takes_plan(InputOptions)
def tune(
    runs: Sequence[RunLike] | Mapping[str, RunLike] | Callable[..., Any],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = "nDCG@10",
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
) -> Tuning:
    """Choose the weights with which an engine fuses two to five runs, and say what they are worth.

    `engine` names the formula (`findwell fuse --list` lists them); its weights are searched in even
    `step`s, or its constant where it has no weights. `k`, `window`, `normaliser` and `fill` are
    kept at the values given, or at the engine's own. The first of the measures chooses; the others
    are reported for the same choice.

    A `space` has more than one knob, engines among them: a TOML file or a dict. With a function
    instead of runs, its knobs are arguments: `make(**setting)` returns a retriever, and
    configurations are asked by successive halving; `retrieval` says how (options of
    `findwell.retrievers.Retriever`), `answers` is a folder that keeps answers, and `announce` is
    called with the plan and the number of calls before anything is asked.

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
    >>> found.choice.held_out.value, [(gain.over, gain.verdict.word) for gain in found.gains]
    (1.0, [('run 1', 'better'), ('run 2', 'same')])
    >>> found.keep, found.snippet
    ('run 2', None)
    """
    refuse_after_fork()
    check_share("level", level)
    _refuse_smoke_test(measures, options.get("by"), dialect, options.get("judge"))
    evaluated: dict[str, Any] = {"dialect": dialect, "rel": rel, **flat_options(options)}
    knobs = {"k": k, "window": window, "normaliser": normaliser, "fill": fill}
    fixed = {name: value for name, value in knobs.items() if value is not None}
    names = [slices] if isinstance(slices, str) else list(slices)
    if callable(runs):
        idle = {"engine": engine, "slices": names or None, "disjoint": disjoint or None}
        _refuse_idle({**idle, "step": step, **fixed}, "retriever")
        return tune_retriever(
            runs,
            gold,
            measures,
            space=space,
            current=current,
            answers=answers,
            announce=announce,
            retrieval=retrieval,
            cluster=cluster,
            rule=ChoiceRule(level=level),
            queries=queries,
            progress=progress,
            options=evaluated,
        )
    live = {"retrieval": retrieval, "answers": answers, "announce": announce}
    _refuse_idle(live, "recorded run")
    named = name_runs(runs)
    formula = find_engine(engine) if isinstance(engine, str) else engine
    fitted = None
    if space is not None:
        _refuse_idle({"step": step, **fixed}, "space")
        fitted = _fitted(Space.of(space), len(named), formula, names)
        grid, now = _grid_of(fitted, len(named)), current_of(fitted, len(named), current)
    elif formula is None:
        raise OptionError(
            "tuning needs the search engine that fuses the runs",
            fix="name the one that you use: --engine elasticsearch-rrf (engine=); `findwell fuse "
            "--list` lists them",
        )
    else:
        grid = grid_of(formula, len(named), step, fixed)
        now = None if current is None else setting_of(formula, len(named), current, fixed)
    reading = {**evaluated, "queries": queries, "progress": progress, "disjoint": disjoint}
    source = RecordedRuns(named, gold, measures, reading, formula)
    rule = ChoiceRule(
        folds=folds, repeats=repeats, draws=draws, permutations=permutations, seed=seed, level=level
    )
    choice = None
    if fitted is not None and fitted.search.how == "optuna":
        rule, _ = clustered(rule, source.values([first_setting(fitted, len(named))]), cluster)
        tried, choice = search_by_optuna(fitted, len(named), source.values, rule)
        grid = SettingGrid(tried, places_of(tried), SPACE)
        rule = replace(rule, repeats=len(choice.picks))
    return conclude(
        source,
        grid,
        rule,
        current=now,
        cluster=cluster,
        slices=names,
        choice=choice,
        search="" if fitted is None else fitted.search.how,
    )


def _fitted(space: Space, runs: int, engine: Engine | None, slices: Sequence[str]) -> Space:
    """Return a space for the fusion of this many runs, checked."""
    if space.retrieval:
        raise OptionError(
            "[retrieval] is for a retriever, and recorded runs were given",
            where=f"{space.where}: retrieval",
            fix="leave out [retrieval], or name a retriever",
        )
    if slices and space.search.how == "optuna":
        raise OptionError(
            "slices have no effect: Optuna searches for one setting for all",
            fix='search = { how = "grid" } chooses one for each slice as well',
        )
    return fit_to_runs(space, runs, None if engine is None else engine.name)


def _grid_of(space: Space, runs: int) -> SettingGrid:
    """Return the settings of a space, but for one in which a sampler finds them."""
    if space.search.how == "optuna":
        return SettingGrid((), None, SPACE)
    settings = tuple(fusion_settings(space, runs))
    if len(settings) < 2:
        raise OptionError(
            "one setting leaves nothing to choose",
            where=space.where,
            fix="give a knob of the space several values",
        )
    return SettingGrid(settings, places_of(settings), SPACE)


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


def _refuse_idle(given: Mapping[str, object], tuned: str) -> None:
    """Raise if an option is given that means nothing for what is tuned."""
    for name, value in given.items():
        if value is not None:
            where = f"write {name} into the space, below [knobs]"
            raise OptionError(
                f"{name} has no effect with a {tuned}",
                fix=where if tuned == "space" else f"leave out {name}",
            )
