"""Which fusions are tried, and where they lie: weights by their shares, constants by their size.

Without a space the weights of one engine are tried, or its constant where it has no weights. A
space has any knobs of any engines: all settings of it, as many as are drawn, or as a sampler
proposes them. A sampler that learns (Optuna's TPE) looks where earlier settings were good on the
queries whose values it knows. If it knows all of them, the settings that it tries have seen
the queries that are held out: in a simulation without real differences (docs/tuning-retrievers.md)
a quarter of the optimism came back that way. So it searches once for each fold, and
knows the values of the other folds only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, naming_files, needs_package
from findwell.loop.tuning.choice import (
    USUAL_RULE,
    Choice,
    ChoiceRule,
    Sampling,
    choose_setting,
    optimism_of,
    stability_of,
    value_order,
)
from findwell.loop.tuning.engines import Setting, find_engine
from findwell.loop.tuning.space import (
    MOST_SETTINGS,
    Knob,
    Space,
    as_shares,
    choose_knob,
    refuse_too_many,
    rounded,
)

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.values import Values
    from findwell.loop.tuning.engines import Engine

# how fine the shares are, by number of runs: 101, 231, 286 and 126 combinations
STEPS = {2: 0.01, 3: 0.05, 4: 0.1, 5: 0.2}
SEARCHED_CONSTANTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200)
# constants that differ by a factor of 1.2 are as near as shares 0.05 apart
CONSTANT_SCALE = 0.05 / math.log(1.2)
SPACE = "space"  # the axis of a grid with more than one knob

MeasureSettings: TypeAlias = "Callable[[Sequence[Setting]], Values]"


@dataclass(frozen=True, slots=True, eq=False)
class SettingGrid:
    """Settings to choose from: those of engines, or the knobs of a retriever."""

    settings: tuple[Any, ...]  # each has `as_dict`, and is written by `str`
    # settings × numbers: the shares of all runs but the last, or the constant
    places: Floats | None
    axis: str  # what differs: weights or k; space: more than one knob

    def label(self, number: int) -> str:
        """Return what distinguishes a setting from the others."""
        setting = self.settings[number]
        if self.axis == "weights":
            return str(Setting(weights=setting.weights))
        return str(Setting(k=setting.k)) if self.axis == "k" else str(setting)

    def find(self, setting: Setting) -> int | None:
        """Return the number of a setting, or of the one with the same shares; None: not in it."""
        if setting in self.settings:
            return self.settings.index(setting)
        rest = replace(setting, weights=())
        for number, each in enumerate(self.settings if self.axis != SPACE else ()):
            if replace(each, weights=()) == rest and np.allclose(
                shares_of(each.weights), shares_of(setting.weights)
            ):
                return number
        return None


def weight_shares(runs: int, step: float) -> Iterator[tuple[float, ...]]:
    """Yield every way to share 1 among runs in steps, the first run's share ascending.

    They are counted in whole steps, so that none is lost to rounding.

    >>> list(weight_shares(2, 0.5))
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    >>> len(list(weight_shares(3, 0.1))), len(list(weight_shares(4, 0.1)))
    (66, 286)
    """
    steps = round(1 / step) if step > 0 else 0
    if steps < 1 or abs(steps * step - 1) > 1e-6:
        raise OptionError(f"steps of {step:g} do not add up to 1", fix="for example 0.01 or 0.1")

    def spread(left: int, parts: int) -> Iterator[tuple[int, ...]]:
        if parts == 1:
            yield (left,)
            return
        for first in range(left + 1):
            yield from ((first, *others) for others in spread(left - first, parts - 1))

    for counts in spread(steps, runs):
        yield tuple(count / steps for count in counts)


def shares_of(weights: Sequence[float]) -> Floats:
    """Return what part of the sum each weight is."""
    given = np.array(weights, dtype=np.float64)
    return given / given.sum() if len(given) else given


def weights_of(engine: Engine, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the weights with these shares, as large together as those of the engine are.

    An engine may multiply by weights or divide by them, so that their size may count.
    """
    if engine.weights is None:
        raise _no_knob(engine, "weights")
    scale = math.fsum(engine.weights.default(len(shares)))
    if scale > engine.weights.highest:
        scale = 1.0
    return tuple(share * scale for share in shares)


def _no_knob(engine: Engine, what: str) -> OptionError:
    return OptionError(
        f"{engine.name} has no {what} to tune",
        fix="fuse with it as it is (findwell fuse), or tune another engine (findwell fuse --list)",
    )


def grid_of(engine: Engine, runs: int, step: float | None, fixed: Mapping[str, Any]) -> SettingGrid:
    """Return what is tried with an engine: its weights, or without weights its constant.

    `fixed` are knobs with a value that is not searched for.
    """
    if engine.weights is not None:
        shares = [
            each
            for each in weight_shares(runs, STEPS[runs] if step is None else step)
            if not (engine.weights.positive and 0 in each)
        ]
        tried = [{**fixed, "weights": weights_of(engine, each)} for each in shares]
        places = np.array([each[:-1] for each in shares])
    else:
        if step is not None:
            raise OptionError(f"a step has no effect: {engine.name} has no weights to search")
        if engine.k is None or fixed.get("k") is not None:
            raise _no_knob(engine, "weights and no constant")
        lowest, highest = engine.k_range
        wanted = sorted({*SEARCHED_CONSTANTS, engine.k})
        constants = [k for k in wanted if lowest <= k <= highest]
        tried = [{**fixed, "k": k} for k in constants]
        places = (np.log(np.maximum(constants, 0.5)) * CONSTANT_SCALE)[:, np.newaxis]
    settings = tuple(engine.setting(runs, **knobs) for knobs in tried)
    return SettingGrid(settings, places, "k" if engine.weights is None else "weights")


def setting_of(engine: Engine, runs: int, given: object, fixed: Mapping[str, Any]) -> Setting:
    """Return a setting that was named in short.

    A number is the share of the first of two runs, or the constant of an engine without weights;
    several numbers are the weights; a dict has the names of knobs.
    """
    if isinstance(given, Setting):
        return given
    if isinstance(given, Mapping):
        return engine.setting(runs, **{**fixed, **given})
    parts: Any = given.split(",") if isinstance(given, str) else given
    try:
        numbers = [float(each) for each in (parts if isinstance(parts, Sequence) else [parts])]
    except (TypeError, ValueError):
        raise OptionError(
            f"{given!r} is not a setting",
            fix="give a share such as 0.5, or weights such as 0.7,0.3",
        ) from None
    if engine.weights is None:
        if len(numbers) != 1:
            raise _no_knob(engine, "weights")
        return engine.setting(runs, **{**fixed, "k": numbers[0]})
    if len(numbers) == 1:
        if runs != 2 or not 0 <= numbers[0] <= 1:
            raise OptionError(
                f"{numbers[0]:g} is not a current setting of {runs} runs",
                fix="give the share of the first of two runs, from 0 to 1, or one weight per run: "
                + ",".join(["0.5", "0.3", "0.2", "0", "0"][:runs]),
            )
        numbers = list(weights_of(engine, (numbers[0], 1 - numbers[0])))
    return engine.setting(runs, **{**fixed, "weights": numbers})


# settings of a space


class Shares(tuple[float, ...]):
    """What part of the sum each run has; an engine's weights may add up to more than 1."""

    __slots__ = ()


def fusion_settings(space: Space, runs: int) -> list[Setting]:
    """Return the settings of a fitted space that is a grid, or drawn at random, each once.

    Engines that lack a knob are tried without it, and without a weight of 0 if they take none.
    Shares become weights that are as large together as the engine's own.

    >>> space = Space.of({"knobs": {"weights": {"step": 0.5}, "window": [10, 100]}})
    >>> fitted = fit_to_runs(space, 2, "elasticsearch-rrf")
    >>> [str(setting) for setting in fusion_settings(fitted, 2)][:2]
    ['elasticsearch-rrf w=0,2 k=60 window=10', 'elasticsearch-rrf w=0,2 k=60 window=100']
    """
    drawn = (
        as_setting(each, runs, space.where) for each in space.settings() if _takes_weights(each)
    )
    return list(dict.fromkeys(drawn))


def fit_to_runs(space: Space, runs: int, engine: str | None = None) -> Space:
    """Return a space for fusions, checked, with the weights of this many runs written out.

    A knob that none of its engines has is an error. `engine` is the one that is meant if the space
    names none.
    """
    for knob in space.knobs:
        choose_knob(knob.name, [each.name for each in fields(Setting)], space.where)
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
        return replace(knob, values=tuple(islice(shares, MOST_SETTINGS + 1)))
    alone = knob.continuous or any(not isinstance(value, tuple) for value in knob.values)
    if alone and runs != 2:
        raise OptionError(
            f"one weight cannot be shared by {runs} runs",
            fix="give steps, { step = 0.1 }, or a list with a weight for each run",
        )
    return knob if knob.continuous else replace(knob, values=tuple(map(_pair, knob.values)))


def _pair(value: Any) -> tuple[float, ...]:  # noqa: ANN401
    """Return weights as they were given, or the shares that one number means."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, str) or not 0 <= value <= 1:
        raise OptionError(f"the share of the first run is {value!r}", fix="give a share of 1")
    return Shares((float(value), rounded(1 - value)))


def as_setting(values: Mapping[str, Any], runs: int, where: str = SPACE) -> Setting:
    """Return the setting that a value for each knob makes; what an engine lacks is left out."""
    engine = find_engine(values["engine"])
    given = {name: value for name, value in values.items() if name in engine.knobs}
    if "weights" in given:
        shares = _pair(given["weights"])
        given["weights"] = weights_of(engine, shares) if isinstance(shares, Shares) else shares
    with naming_files({"": where}):
        return replace(engine.setting(runs, **given), engine=engine.name)


def _takes_weights(values: Mapping[str, Any]) -> bool:
    """Say whether an engine takes shares: some refuse a weight of 0."""
    rule, weights = find_engine(values["engine"]).weights, values.get("weights")
    if rule is None or weights is None:
        return True
    shares = _pair(weights)
    return not (rule.positive and isinstance(shares, Shares) and 0 in shares)


def current_of(space: Space, runs: int, current: object) -> Setting | None:
    """Return the setting in use: as it was given, or as the fitted space has it."""
    (engines,) = (knob.values for knob in space.knobs if knob.name == "engine")
    if isinstance(current, Mapping):
        space, current = space.with_current(current), None
    if current is None:
        if space.current is None:
            return None
        values = {"engine": engines[0], **space.current}
        return as_setting(values, runs, f"{space.where}: current")
    if len(engines) != 1:
        raise OptionError(
            f"several engines are in the space, and {current} is a setting of one of them",
            fix="write the current setting into the space: [current]",
        )
    found = find_engine(str(engines[0]))
    return replace(setting_of(found, runs, current, {}), engine=found.name)


def places_of(settings: Sequence[Setting]) -> Floats:
    """Return where settings lie, such that those up to 0.05 apart in every number are alike.

    Weights lie where they are, constants and windows on the scale of logarithms, and what has
    no order, as engines and normalisers, is alike or far apart.

    >>> space = Space.of({"knobs": {"weights": [0.5, 0.54], "k": [10, 60]}})
    >>> fitted = fit_to_runs(space, 2, "qdrant-rrf")
    >>> np.round(places_of(fusion_settings(fitted, 2)), 2).tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.5, 0.5], [0.0, 0.54, 0.46], [1.0, 0.54, 0.46]]
    """
    columns: list[Floats] = []
    for knob in ("k", "window"):
        scale = np.log1p(np.array([getattr(each, knob) or 0.0 for each in settings], float))
        if np.ptp(scale):
            columns.append((scale - scale.min()) / np.ptp(scale))
    names = [(each.engine, each.normaliser) for each in settings]
    kinds = list(dict.fromkeys(names))
    if len(kinds) > 1:
        columns += [np.array([name == kind for name in names], float) for kind in kinds]
    shares = [shares_of(each.weights) for each in settings]
    most = max(map(len, shares))
    for at in range(most):
        columns.append(np.array([each[at] if len(each) else 1 / most for each in shares]))
    return np.array(columns).T if columns else np.zeros((len(settings), 1))


# settings that a sampler proposes


def first_setting(space: Space, runs: int) -> Setting:
    """Return a setting of the space that depends on nothing: each knob at its first value."""
    values = {knob.name: knob.values[0] if knob.values else knob.lowest for knob in space.knobs}
    if "weights" in values:
        values["weights"] = Shares([1 / runs] * runs)
    return as_setting(values, runs, space.where)


def search_by_optuna(
    space: Space, runs: int, measure: MeasureSettings, rule: ChoiceRule = USUAL_RULE
) -> tuple[tuple[Setting, ...], Choice]:
    """Let Optuna search: once on all queries, and once for each fold on the queries of the others.

    Return what was tried, and the choice. The first search chooses. The others say what such a
    choice is worth on queries that had no part in it, neither in what was tried nor in what was
    chosen. `measure` gives the values of settings on all queries; each is measured once. The space
    is fitted to the runs.
    """
    rule = replace(rule, repeats=1)  # a sampler searches once for each fold
    measured: dict[Setting, Floats] = {}
    numbers: dict[Setting, int] = {}

    def row(setting: Setting) -> Floats:
        if setting not in measured:
            numbers[setting] = len(measured)
            measured[setting] = measure([setting]).table[0, 0]
        return measured[setting]

    def search(inside: Bools, seed: int) -> list[int]:
        """Return which settings are tried if only some queries are known."""

        def score(setting: Setting) -> float:
            seen = row(setting)[inside]
            seen = seen[~np.isnan(seen)]
            # in whatever order the queries come, the sampler gets the same number
            return rule.sign * math.fsum(seen) / len(seen) if len(seen) else 0.0

        tried = _proposed(space, runs, score, seed)
        return list(dict.fromkeys(numbers[setting] for setting in tried))

    queries = len(row(first_setting(space, runs)))
    main = search(np.ones(queries, bool), rule.seed)
    # folds and draws go by the values of what was tried, not by the order of the queries
    table = np.array(list(measured.values()))
    order = value_order(rule.sign * table)
    sampling = Sampling.of(table[:, order], rule.only(order))
    fold = sampling.fold[:, np.argsort(order)]
    tried = [
        search((fold[0] >= 0) & (fold[0] != at), rule.seed + 1 + at) for at in range(rule.folds)
    ]
    table, settings = np.array(list(measured.values())), tuple(measured)
    places = places_of(settings)
    scores = sampling.scores(table[:, order], rule)

    def pick(among: list[int], units: Bools) -> int:
        seen = np.where(units[:, np.newaxis], scores[:, among], 0.0)
        return among[sampling.pick(seen, places[among])[0]]

    dealt = sampling.unit_fold[0]
    picks = np.array([[pick(among, dealt != at) for at, among in enumerate(tried)]])
    chosen = pick(main, np.ones(len(dealt), dtype=bool))
    whole = choose_setting(table, rule, places=places)
    found = replace(whole, picks=picks, fold=fold, chosen=chosen, in_sample=whole.curve[chosen])
    held = found.held_out_values(table, rule.statistic)
    held_out = rule.interval(held)
    return settings, replace(
        found,
        held_out=held_out,
        values=held,
        optimism=optimism_of(found.in_sample, held_out, rule),
        stability=stability_of(picks, chosen, places),
    )


def _proposed(
    space: Space, runs: int, score: Callable[[Setting], float], seed: int
) -> list[Setting]:
    """Return the settings that Optuna proposes, each knowing what the earlier ones scored."""
    with needs_package("searching with Optuna", "tune", instead='how = "random"'):
        import optuna  # noqa: PLC0415
    verbosity = optuna.logging.get_verbosity()
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
            setting = as_setting(values, runs, space.where)
            study.tell(asked, score(setting))
            found.append(setting)
    finally:
        optuna.logging.set_verbosity(verbosity)
    return found


def _suggested(asked: Any, knob: Knob, runs: int) -> Any:  # noqa: ANN401
    """Return the value of a knob that a trial of Optuna proposes."""
    if knob.share is not None:
        raw = [asked.suggest_float(f"{knob.name}_{at}", 0.0, 1.0) for at in range(runs)]
        return Shares(as_shares(raw, knob.share))
    if len(knob.values) == 1:
        return knob.values[0]
    if knob.lowest is None or knob.highest is None:  # a list: by place, since values may be lists
        return knob.values[asked.suggest_categorical(knob.name, range(len(knob.values)))]
    if knob.values:  # the steps of a range have an order
        return knob.values[asked.suggest_int(knob.name, 0, len(knob.values) - 1)]
    if knob.whole:
        ends = round(knob.lowest), round(knob.highest)
        return asked.suggest_int(knob.name, *ends, log=knob.log)
    return rounded(asked.suggest_float(knob.name, knob.lowest, knob.highest, log=knob.log))
