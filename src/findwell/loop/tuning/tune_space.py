"""More than one knob: fusions of recorded runs with any engine, weights, constants and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import OptionError
from findwell.evaluation.assessment import cluster_column
from findwell.loop.tuning.conclusion import Tuning, conclude, kind_of
from findwell.loop.tuning.engines import Setting, find_engine
from findwell.loop.tuning.grid import SettingGrid, setting_of
from findwell.loop.tuning.measured import MeasuredSettings, measure_settings, name_runs, plan_of
from findwell.loop.tuning.once import OnceJudge
from findwell.loop.tuning.space import Space
from findwell.loop.tuning.trials import (
    Searched,
    as_engine_setting,
    as_trial,
    fusion_trials,
    places_of,
    search_by_optuna,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats, Run
    from findwell.io.read import GoldLike, RunLike
    from findwell.loop.tuning.space import SpaceLike
    from findwell.measures import Measure

SPACE = "space"  # the axis of a grid with more than one knob


@dataclass(frozen=True, eq=False)
class SpaceTuning(Tuning):
    """The setting that was chosen in a space; those of its grid also name their engine."""

    how: str = "grid"  # grid, random or optuna

    @property
    def setting(self) -> Setting:
        """The setting that was chosen."""
        return self.grid.settings[self.choice.chosen]

    @property
    def run(self) -> Run:
        """The runs, fused with the setting that was chosen."""
        return self.lists.run(0)

    def as_dict(self) -> dict[str, Any]:
        """Return the choice as the JSON output prints it."""
        return {**Tuning.as_dict(self), "search": self.how}


def tune_space(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    *,
    space: SpaceLike,
    engine: str | None = None,
    current: object = None,
    folds: int,
    repeats: int,
    cluster: str | None,
    slices: Iterable[str] | str,
    sampled: Mapping[str, Any],
    draws: int,
    options: Mapping[str, Any],
) -> SpaceTuning:
    """Choose a setting of a space, and say what it is worth; see `findwell.tune`."""
    space = Space.of(space)
    if space.retrieval:
        raise OptionError(
            "recorded runs are not asked",
            where=f"{space.where}: retrieval",
            fix="leave out [retrieval], or name a retriever",
        )
    named = name_runs(runs)
    measuring = _Measuring(named, gold, measures, options)
    now = _current(space, engine, len(named), current)
    if space.search.how == "optuna":
        if slices:
            raise OptionError(
                "slices have no effect: Optuna searches for one setting for all",
                fix='search = { how = "grid" } chooses one for each slice as well',
            )
        return _searched(space, engine, measuring, now, cluster, folds, sampled, draws)
    trials = fusion_trials(space, len(named), engine)
    if len(trials) < 2:
        raise OptionError(
            "one setting leaves nothing to choose",
            where=space.where,
            fix="give a knob of the space several values",
        )
    asked = [*trials, *([] if now is None or now in trials else [now])]
    return measuring.concluded(
        asked,
        measuring.values(asked),
        grid=len(trials),
        now=now,
        cluster=cluster,
        slices=slices,
        sampled=sampled,
        folds=folds,
        repeats=repeats,
        draws=draws,
        how=space.search.how,
    )


def _searched(  # noqa: PLR0917
    space: Space,
    engine: str | None,
    measuring: _Measuring,
    now: Setting | None,
    cluster: str | None,
    folds: int,
    sampled: Mapping[str, Any],
    draws: int,
) -> SpaceTuning:
    """Let Optuna search, and conclude."""
    first = as_engine_setting(find_engine(_engines(space, engine)[0]), len(measuring.named))
    about = measuring.of(first).queries
    column = cluster_column(about, cluster)
    measure = measuring.of(first).measures[0]
    found: Searched = search_by_optuna(
        space,
        len(measuring.named),
        lambda trial: measuring.values([trial])[measure][0],
        engine,
        clusters=None if column is None else about[column].to_list(),
        folds=folds,
        draws=draws,
        **sampled,
        **kind_of(measure),
    )
    asked = [*found.trials, *([] if now is None or now in found.trials else [now])]
    return measuring.concluded(
        asked,
        measuring.values(asked),
        grid=len(found.trials),
        now=now,
        cluster=cluster,
        slices=(),
        sampled=sampled,
        folds=folds,
        repeats=len(found.choice.picks),
        draws=draws,
        choice=found.choice,
        how=space.search.how,
    )


def _engines(space: Space, engine: str | None) -> list[str]:
    named = [str(name) for knob in space.knobs if knob.name == "engine" for name in knob.values]
    return named or ([] if engine is None else [engine])


def _current(space: Space, engine: str | None, runs: int, current: object) -> Setting | None:
    """Return the setting in use: as it was given, or as the space has it."""
    names = _engines(space, engine)
    if isinstance(current, Mapping):
        space, current = space.with_current(current), None
    if current is None:
        if space.current is None:
            return None
        values = {"engine": names[0], **space.current} if names else dict(space.current)
        return as_trial(values, runs, f"{space.where}: current")
    if len(names) != 1:
        raise OptionError(
            f"{current} is a setting of which engine?",
            fix="write the current setting into the space: [current]",
        )
    found = find_engine(names[0])
    return as_engine_setting(found, runs, setting_of(found, runs, current, {}))


class _Measuring:
    """Measures settings of any engine; inputs are read once, and judged once."""

    def __init__(
        self,
        named: Mapping[str, Any],
        gold: GoldLike | None,
        measures: Iterable[str | Measure] | str,
        options: Mapping[str, Any],
    ) -> None:
        self.named = named
        self._gold: Any = gold
        self._options = dict(options)
        plan = plan_of(measures, options)
        self.measures = plan.measures
        if plan.judge is not None:
            self._options["judge"] = OnceJudge(plan.judge)
        self._known: dict[str, MeasuredSettings] = {}
        self._values: dict[Setting, dict[Measure, Floats]] = {}

    def of(self, setting: Setting) -> MeasuredSettings:
        """Return what was drawn for the engine of a setting."""
        return self._drawn(setting.engine, [setting])

    def _drawn(self, engine: str, settings: Sequence[Setting]) -> MeasuredSettings:
        if engine not in self._known:
            runs, gold = self.named, self._gold
            if self._known:  # what was read is not read again
                first = next(iter(self._known.values()))
                runs, gold = {run.name: run for run in first.loaded}, first.gold
            self._known[engine] = measure_settings(
                runs, gold, self.measures, find_engine(engine), settings, self._options
            )
            values = self._known[engine].values
            for at, setting in enumerate(settings):
                self._values[setting] = {measure: each[at] for measure, each in values.items()}
        return self._known[engine]

    def values(self, settings: Sequence[Setting]) -> dict[Measure, Floats]:
        """Return the values of settings by each measure, and those of the single runs."""
        for engine in dict.fromkeys(each.engine for each in settings):
            self._drawn(engine, [each for each in settings if each.engine == engine])
        for setting in settings:
            if setting not in self._values:
                self._values[setting] = self._known[setting.engine].measure(setting)
        some = self._known[settings[0].engine]
        alone = {measure: each[-len(self.named) :] for measure, each in some.values.items()}
        return {
            measure: np.array(
                [*(self._values[setting][measure] for setting in settings), *alone[measure]]
            )
            for measure in self.measures
        }

    def concluded(
        self,
        settings: Sequence[Setting],
        values: dict[Measure, Floats],
        *,
        grid: int,
        now: Setting | None,
        **how: Any,  # noqa: ANN401
    ) -> SpaceTuning:
        """Choose among the first settings, and say what that is worth."""
        some = self._known[settings[0].engine]
        first = self.measures[0]
        tried: tuple[Setting, ...] = tuple(settings[:grid])
        found = conclude(
            SpaceTuning,
            replace(some, values=values),
            SettingGrid(tried, places_of(settings[:grid]), SPACE),
            some.lists.engine,
            tried=len(settings),
            current=now,
            in_use=None if now is None else values[first][settings.index(now)],
            **how,
        )
        chosen = found.setting
        lists = self._known[chosen.engine].lists
        return replace(found, engine=lists.engine, lists=replace(lists, settings=[chosen]))
