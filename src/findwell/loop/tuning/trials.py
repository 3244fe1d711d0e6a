"""Fusions to try: every setting of a space, as many as are drawn, or as a sampler proposes them.

A sampler that learns (Optuna's TPE) looks where earlier settings were good on the queries that it
is told about. If it is told about all of them, the settings that it tries have seen the queries
that are held out: in a simulation without real differences (docs/tuning-retrievers.md) a quarter
of the optimism came back that way. So it searches once for each fold, and is told about the other
folds only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, naming_files, needs_package
from findwell.loop.tuning.choice import (
    DRAWS,
    FOLDS,
    NEAR,
    Choice,
    Sampling,
    choose_setting,
    value_order,
)
from findwell.loop.tuning.engines import Setting, find_engine
from findwell.loop.tuning.grid import shares_of, weight_shares, weights_of
from findwell.loop.tuning.space import (
    MOST,
    Knob,
    Space,
    as_shares,
    choose_knob,
    refuse_too_many,
    rounded,
)
from findwell.statistics.intervals import intervals
from findwell.statistics.significance import ROUNDING
from findwell.statistics.values import UNIT

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.loop.tuning.engines import Engine
    from findwell.statistics.values import Bounds

KNOBS = tuple(each.name for each in fields(Setting))
REPEATS = 1  # of the folds: a sampler that learns searches once for each fold


MeasureTrial: TypeAlias = "Callable[[Setting], Floats]"  # one value for each query


def fusion_trials(space: Space, runs: int, engine: str | None = None) -> list[Setting]:
    """Return the settings of a space that is a grid, or drawn at random, each once.

    Engines that lack a knob are tried without it, and without a weight of 0 if they take none; a
    knob that none of them has is an error. `engine` is the one that is meant if the space names
    none. Shares become weights that are as large together as the engine's own.

    >>> space = Space.of({"knobs": {"weights": {"step": 0.5}, "window": [10, 100]}})
    >>> [str(trial) for trial in fusion_trials(space, 2, "elasticsearch-rrf")][:2]
    ['elasticsearch-rrf w=0,2 k=60 window=10', 'elasticsearch-rrf w=0,2 k=60 window=100']
    """
    fitted = fit_to_runs(space, runs, engine)
    drawn = fitted.settings()
    taken = [as_trial(each, runs, space.where) for each in drawn if _takes_weights(each)]
    return list(dict.fromkeys(taken))


def fit_to_runs(space: Space, runs: int, engine: str | None = None) -> Space:
    """Check a space for fusions, and write out the weights of so many runs."""
    for knob in space.knobs:
        choose_knob(knob.name, KNOBS, space.where)
    knobs = {knob.name: knob for knob in space.knobs}
    if "engine" not in knobs:
        if engine is None:
            raise OptionError(
                "the space names no engine", where=space.where, fix='engine = ["qdrant-rrf"]'
            )
        knobs = {"engine": Knob("engine", (engine,)), **knobs}
    with naming_files({"": f"{space.where}: engine"}):
        engines = [find_engine(str(name)) for name in knobs["engine"].values]
    for name in knobs:
        if name != "engine" and not any(name in each.knobs for each in engines):
            lacking = engines[0].name if len(engines) == 1 else "none of the engines"
            verb = "has no" if len(engines) == 1 else "has"
            raise OptionError(
                f"{lacking} {verb} {name} to set",
                where=f"{space.where}: {name}",
                fix=f"{engines[0].name} has {', '.join(engines[0].knobs)}",
            )
    if "weights" in knobs:
        with naming_files({"": f"{space.where}: weights"}):
            knobs["weights"] = _weights(knobs["weights"], runs)
    fitted = replace(space, knobs=tuple(knobs.values()))
    if space.search.how == "grid":
        refuse_too_many(fitted.size or 0, space.where)
    return fitted


def _weights(knob: Knob, runs: int) -> Knob:
    """Return weights as one number for each run; one number alone is the weight of the first."""
    if knob.share is not None:
        shares = (Shares(map(rounded, each)) for each in weight_shares(runs, knob.share))
        return replace(knob, values=tuple(islice(shares, MOST + 1)))
    alone = knob.continuous or any(not isinstance(value, tuple) for value in knob.values)
    if alone and runs != 2:
        raise OptionError(
            f"one weight cannot be shared by {runs} runs",
            fix="give steps, { step = 0.1 }, or a list with a weight for each run",
        )
    if knob.continuous:
        return knob
    return replace(knob, values=tuple(_pair(value) for value in knob.values))


class Shares(tuple[float, ...]):
    """What part of the sum each run has; an engine's weights may add up to more than 1."""

    __slots__ = ()


def _pair(value: Any) -> tuple[float, ...]:  # noqa: ANN401
    """Return weights as they were given, or the shares that one number means."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, str) or not 0 <= value <= 1:
        raise OptionError(f"the share of the first run is {value!r}", fix="give a share of 1")
    return Shares((float(value), rounded(1 - value)))


def as_trial(values: Mapping[str, Any], runs: int, where: str = "space") -> Setting:
    """Return the trial that a value for each knob makes; what an engine lacks is left out."""
    engine = find_engine(values["engine"])
    given = {name: value for name, value in values.items() if name in engine.knobs}
    if "weights" in given:
        weights = given["weights"]
        shares = weights if isinstance(weights, Shares) else _pair(weights)
        given["weights"] = weights_of(engine, shares) if isinstance(shares, Shares) else shares
    with naming_files({"": where}):
        return as_engine_setting(engine, runs, engine.setting(runs, **given))


def as_engine_setting(engine: Engine, runs: int, setting: Setting | None = None) -> Setting:
    """Return a setting, or the engine's own, that names its engine."""
    return replace(engine.setting(runs) if setting is None else setting, engine=engine.name)


def _takes_weights(values: Mapping[str, Any]) -> bool:
    """Say whether an engine takes shares: some refuse a weight of 0."""
    rule = find_engine(values["engine"]).weights
    weights = values.get("weights")
    shares = _pair(weights) if weights is not None and rule is not None else ()
    return rule is None or not (rule.positive and isinstance(shares, Shares) and 0 in shares)


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """What a sampler tried, and the choice among it."""

    trials: list[Setting]
    values: Floats  # trials × queries
    choice: Choice


def search_by_optuna(
    space: Space,
    runs: int,
    values: MeasureTrial,
    engine: str | None = None,
    *,
    clusters: Sequence[object] | None = None,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    seed: int = 0,
    level: float = 0.95,
    statistic: str = "mean",
    bounds: Bounds = UNIT,
    higher_is_better: bool = True,
    **rule: Any,  # noqa: ANN401
) -> Searched:
    """Let Optuna search: once on all queries, and once for each fold on the queries of the others.

    The first search chooses. The others say what such a choice is worth on queries that had no part
    in it, neither in what was tried nor in what was chosen. `values` measures trials on all
    queries; `rule` are further options of `choose_setting`.
    """
    fitted = fit_to_runs(space, runs, engine)
    measured = _Measured(values)
    sign = 1.0 if higher_is_better else -1.0

    def search(inside: Bools, number: int) -> list[int]:
        """Return which trials are tried if only some queries are known."""

        def score(trial: Setting) -> float:
            seen = measured.row(trial)[inside]
            seen = seen[~np.isnan(seen)]
            # in whatever order the queries come, the sampler is told the same number
            return sign * math.fsum(seen) / len(seen) if len(seen) else 0.0

        tried = _proposed(fitted, runs, score, number)
        return list(dict.fromkeys(measured.number(trial) for trial in tried))

    main = search(np.ones(measured.row(_first_trial(fitted, runs)).shape, bool), seed)
    # folds and draws go by the values of what was tried, not by the order of the queries
    order = value_order(sign * measured.table())
    back = np.argsort(order)
    labels = None if clusters is None else [clusters[place] for place in order]
    draws = rule.get("draws", DRAWS)
    sampling = Sampling.of(
        measured.table()[:, order], labels, folds=folds, repeats=repeats, draws=draws, seed=seed
    )
    tried = [
        [search((fold >= 0) & (fold != at), seed + 1 + at) for at in range(folds)]
        for fold in sampling.fold[:, back]
    ]
    table = measured.table()
    where = places_of(measured.trials)
    scores = sampling.scores(table[:, order], statistic, higher_is_better=higher_is_better)

    def pick(among: list[int], units: Bools) -> int:
        seen = np.where(units[:, np.newaxis], scores[:, among], 0.0)
        return among[sampling.pick(seen, where[among])[0]]

    picks = [
        [pick(among, dealt != at) for at, among in enumerate(searches)]
        for dealt, searches in zip(sampling.unit_fold, tried, strict=True)
    ]
    chosen = pick(main, np.ones(sampling.units, dtype=bool))
    options: dict[str, Any] = {
        "clusters": clusters,
        "level": level,
        "statistic": statistic,
        "bounds": bounds,
    }
    whole = choose_setting(
        table,
        places=where,
        folds=folds,
        repeats=1,
        seed=seed,
        higher_is_better=higher_is_better,
        **options,
        **rule,
    )
    fold = sampling.fold[:, back]
    found = replace(whole, picks=np.array(picks), fold=fold, chosen=chosen)
    held = found.held_out_values(table, statistic)
    (held_out,) = intervals(held, **options)
    in_sample = whole.curve[chosen]
    apart = np.abs(where[found.picks] - where[chosen]).max(axis=2)
    return Searched(
        measured.trials,
        table,
        replace(
            found,
            in_sample=in_sample,
            held_out=held_out,
            values=held,
            optimism=sign * ((in_sample.value or 0.0) - (held_out.value or 0.0)),
            stability=float((apart <= rule.get("near", NEAR) + ROUNDING).mean()),
        ),
    )


def places_of(trials: Sequence[Setting]) -> Floats:
    """Return where trials lie, such that settings up to 0.05 apart in every number are alike.

    Weights lie where they are, constants and windows on the scale of logarithms, and what has
    no order, as engines and normalisers, is alike or far apart.

    >>> space = Space.of({"knobs": {"weights": [0.5, 0.54], "k": [10, 60]}})
    >>> np.round(places_of(fusion_trials(space, 2, "qdrant-rrf")), 2).tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.5, 0.5], [0.0, 0.54, 0.46], [1.0, 0.54, 0.46]]
    """
    columns: list[Floats] = []
    for knob in ("k", "window"):
        numbers = np.array([getattr(trial, knob) or 0.0 for trial in trials], float)
        scale = np.log1p(numbers)
        if np.ptp(scale):
            columns.append((scale - scale.min()) / np.ptp(scale))
    names = [(trial.engine, trial.normaliser) for trial in trials]
    kinds = list(dict.fromkeys(names))
    if len(kinds) > 1:
        columns += [np.array([name == kind for name in names], float) for kind in kinds]
    shares = [shares_of(trial.weights) for trial in trials]
    most = max(map(len, shares))
    for at in range(most):
        columns.append(np.array([each[at] if len(each) else 1 / most for each in shares]))
    return np.array(columns).T if columns else np.zeros((len(trials), 1))


class _Measured:
    """Trials and their values; each is measured once, whoever proposes it."""

    def __init__(self, values: MeasureTrial) -> None:
        self._values = values
        self._numbers: dict[Setting, int] = {}
        self._rows: list[Floats] = []
        self.trials: list[Setting] = []

    def number(self, trial: Setting) -> int:
        """Return the number of a trial."""
        if trial not in self._numbers:
            self._rows.append(self._values(trial))
            self._numbers[trial] = len(self.trials)
            self.trials.append(trial)
        return self._numbers[trial]

    def row(self, trial: Setting) -> Floats:
        """Return the values of a trial, one for each query."""
        return self._rows[self.number(trial)]

    def table(self) -> Floats:
        """Return all values, trials × queries."""
        return np.array(self._rows)


def _first_trial(space: Space, runs: int) -> Setting:
    """Return a trial of the space that depends on nothing: each knob at its first value."""
    values = {knob.name: knob.values[0] if knob.values else knob.low for knob in space.knobs}
    if "weights" in values:
        values["weights"] = Shares([1 / runs] * runs)
    return as_trial(values, runs, space.where)


def _proposed(
    space: Space, runs: int, score: Callable[[Setting], float], seed: int
) -> list[Setting]:
    """Return the trials that Optuna proposes one after another, told what the last one scored."""
    with needs_package("searching with Optuna", "tune", instead='how = "random"'):
        import optuna  # noqa: PLC0415
    told = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it speaks of every study and trial
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        found = []
        for _ in range(space.search.trials):
            asked = study.ask()
            values = {knob.name: _suggested(asked, knob, runs) for knob in space.knobs}
            if not _takes_weights(values):
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
                continue
            trial = as_trial(values, runs, space.where)
            study.tell(asked, score(trial))
            found.append(trial)
    finally:
        optuna.logging.set_verbosity(told)
    return found


def _suggested(asked: Any, knob: Knob, runs: int) -> Any:  # noqa: ANN401
    """Return the value of a knob that a trial of Optuna proposes."""
    if knob.share is not None:
        raw = [asked.suggest_float(f"{knob.name}_{at}", 0.0, 1.0) for at in range(runs)]
        return Shares(as_shares(raw, knob.share))
    if len(knob.values) == 1:
        return knob.values[0]
    if knob.low is None or knob.high is None:  # a list: by place, since values may be lists
        return knob.values[asked.suggest_categorical(knob.name, range(len(knob.values)))]
    if knob.values:  # the steps of a range have an order
        return knob.values[asked.suggest_int(knob.name, 0, len(knob.values) - 1)]
    if knob.whole:
        return asked.suggest_int(knob.name, round(knob.low), round(knob.high), log=knob.log)
    return rounded(asked.suggest_float(knob.name, knob.low, knob.high, log=knob.log))
