"""A choice with all that is said about it: what it is worth, gains, slices, other measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from findwell.core import display
from findwell.core.errors import choose_column
from findwell.core.findings import finding_about, first_findings
from findwell.evaluation.assessment import cluster_column
from findwell.loop.tuning.choice import choose_by_slice, choose_setting
from findwell.loop.tuning.gains import CURRENT, gains_over, worth_keeping
from findwell.loop.tuning.history import remember
from findwell.statistics.intervals import intervals

if TYPE_CHECKING:
    from findwell.core.data import Floats, Run
    from findwell.core.estimate import Estimate
    from findwell.core.findings import Finding
    from findwell.loop.tuning.choice import Choice, SliceChoice
    from findwell.loop.tuning.engines import Engine, Setting
    from findwell.loop.tuning.gains import Gain
    from findwell.loop.tuning.grid import SettingGrid
    from findwell.loop.tuning.measured import MeasuredSettings
    from findwell.loop.tuning.pooled import FusedLists
    from findwell.measures import Measure

FEW = 30  # queries; with fewer a choice is mostly luck
SEVERAL_SLICES = (
    "a setting for each slice is chosen from the queries of that slice alone, which are fewer, and "
    "the more slices there are, the sooner one of them looks better by chance"
)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredChoice:
    """What the settings that one measure chose are worth by another."""

    measure: str
    in_sample: float | None
    held_out: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class SlicedChoice:
    """A setting for each value of a column, against one for all."""

    column: str
    slices: tuple[SliceChoice, ...]
    gain: Gain  # of one setting for each slice over one for all, held out


@dataclass(frozen=True, eq=False)
class Tuning:
    """The setting that was chosen, and what it is worth."""

    engine: Engine
    runs: tuple[str, ...]
    measures: tuple[Measure, ...]  # the first one chose
    grid: SettingGrid
    choice: Choice
    gains: tuple[Gain, ...]
    current: Setting | None
    current_value: Estimate | None  # on all queries
    others: tuple[MeasuredChoice, ...]
    sliced: tuple[SlicedChoice, ...]
    findings: tuple[Finding, ...]
    values: pl.DataFrame  # one row per query: held out, chosen, current, and each run alone
    dialect: str
    matched_by: str
    level: float
    folds: int
    repeats: int
    seed: int
    cluster: str | None
    lists: FusedLists

    @property
    def setting(self) -> Setting:
        """The setting that was chosen."""
        return self.grid.settings[self.choice.chosen]

    @property
    def measure(self) -> Measure:
        """The measure that chose."""
        return self.measures[0]

    @property
    def run(self) -> Run:
        """The runs, fused with the setting that was chosen."""
        return self.lists.run(self.choice.chosen)

    @property
    def kept(self) -> Gain | None:
        """What the choice is not better than on held-out queries: the best of these, or None."""
        return worth_keeping(self.gains, higher_is_better=self.measure.higher_is_better)

    @property
    def keep(self) -> str | None:
        """What to keep instead of the choice: the name of a run, "current", or None."""
        return None if self.kept is None else self.kept.over

    @property
    def snippet(self) -> str | None:
        """The configuration of the engine, ready to paste; None where it is not worth having."""
        return None if self.kept is not None else self.engine.snippet(self.setting, self.runs)

    def as_dict(self) -> dict[str, Any]:
        """Return the choice as the JSON output prints it."""
        choice, settings = self.choice, self.grid.settings
        return {
            "engine": self.engine.name,
            "runs": list(self.runs),
            "measure": str(self.measure),
            "keep": self.keep,
            "chosen": self.setting.as_dict(),
            "in_sample": choice.in_sample.value,
            "held_out": _limits(choice.held_out),
            "optimism": choice.optimism,
            "plateau": [settings[number].as_dict() for number in choice.plateau],
            "stability": choice.stability,
            "gains": [gain.as_dict() for gain in self.gains],
            "best_in_sample": settings[choice.best].as_dict(),
            "current": None if self.current is None else self.current.as_dict(),
            "curve": [
                {
                    "setting": setting.as_dict(),
                    **_limits(value),
                    "p_worse": p,
                    "votes": float(votes),
                }
                for setting, value, p, votes in zip(
                    settings, choice.curve, choice.worse, choice.votes, strict=True
                )
            ],
            "measures": [
                {
                    "measure": other.measure,
                    "in_sample": other.in_sample,
                    "held_out": _limits(other.held_out),
                }
                for other in self.others
            ],
            "slices": [
                {
                    "column": each.column,
                    "slices": [
                        {
                            **asdict(part),
                            "chosen": settings[part.chosen].as_dict(),
                        }
                        for part in each.slices
                    ],
                    "gain": each.gain.as_dict(),
                }
                for each in self.sliced
            ],
            "queries": choice.n,
            "left_out": choice.left_out,
            "snippet": self.snippet,
            "inexact": self.engine.exact,
            "findings": [finding.as_dict() for finding in self.findings],
            "dialect": self.dialect,
            "matched_by": self.matched_by,
            "level": self.level,
            "cluster": self.cluster,
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
        }

    def to_markdown(self) -> str:
        """Return tables for a pull request."""
        return display.render(self, "markdown")

    def _repr_html_(self) -> str:
        return display.render(self, "html")

    def __repr__(self) -> str:
        return display.render(self, "text")


AnyTuning = TypeVar("AnyTuning", bound=Tuning)


def conclude(
    kind: type[AnyTuning],
    measured: MeasuredSettings,
    grid: SettingGrid,
    engine: Engine,
    *,
    tried: int,
    current: Setting | None,
    in_use: Floats | None,
    cluster: str | None,
    slices: Iterable[str] | str,
    sampled: Mapping[str, Any],
    folds: int,
    repeats: int,
    draws: int,
    choice: Choice | None = None,
    **more: Any,  # noqa: ANN401
) -> AnyTuning:
    """Choose among the settings of a grid whose values are known, and say what that is worth.

    The values are those of the settings of the grid, of others up to `tried` of them, and of the
    single runs. `in_use` are the values of the current setting. A choice that was made elsewhere
    is taken as it is. `more` are further fields of the `kind` of tuning.
    """
    first, *others = measured.measures
    values, settings = measured.values[first], len(grid.settings)
    about = measured.queries
    column = cluster_column(about, cluster)
    clusters = None if column is None else about[column].to_list()
    options: dict[str, Any] = {**sampled, **kind_of(first)}
    level = sampled["level"]
    if choice is None:
        choice = choose_setting(
            values[:settings],
            places=grid.places,
            clusters=clusters,
            folds=folds,
            repeats=repeats,
            draws=draws,
            **options,
        )
    alone = dict(zip(measured.lists.pool.runs, values[tried:], strict=True))
    against = {**({} if in_use is None else {CURRENT: in_use}), **alone}
    names = [slices] if isinstance(slices, str) else list(slices)
    by_slice = tuple(
        _sliced(name, about, values[:settings], choice, grid, clusters, options, draws)
        for name in names
    )
    known = ~np.isnan(choice.values)
    by_name = np.flatnonzero(known)[about["query"].filter(pl.Series(known)).arg_sort().to_numpy()]
    used = remember(
        measured.gold,
        about["query"].gather(by_name),
        what=f"{'a space' if grid.axis == 'space' else engine.name} by {first}",
        settings=[str(setting) for setting in grid.settings],
        values=values[:settings, by_name],
        held_out=choice.held_out.value,
    )
    return kind(
        engine=engine,
        runs=measured.lists.pool.runs,
        measures=measured.measures,
        grid=grid,
        choice=choice,
        gains=gains_over(
            choice.values,
            against,
            in_sample=measured.values[first][choice.chosen],
            clusters=clusters,
            **options,
        ),
        current=current,
        current_value=None if in_use is None else _interval(in_use, first, level, clusters),
        others=tuple(
            MeasuredChoice(
                str(other),
                _interval(measured.values[other][choice.chosen], other, level, clusters).value,
                _interval(
                    choice.held_out_values(measured.values[other], other.aggregation),
                    other,
                    level,
                    clusters,
                ),
            )
            for other in others
        ),
        sliced=by_slice,
        findings=tuple(
            first_findings([*measured.findings, *_doubts(choice, values, about, column), *used])
        ),
        values=pl.DataFrame(
            {
                "query": about["query"],
                "held_out": choice.values,
                "chosen": values[choice.chosen],
                **against,
            }
        ).with_columns(pl.exclude("query").fill_nan(None)),
        dialect=measured.result.dialect,
        matched_by=measured.matched_by,
        level=level,
        folds=folds,
        repeats=repeats,
        seed=sampled["seed"],
        cluster=column,
        lists=measured.lists,
        **more,
    )


def kind_of(measure: Measure) -> dict[str, Any]:
    """Return what statistics need to know about a measure."""
    return {
        "statistic": measure.aggregation,
        "bounds": measure.bounds,
        "higher_is_better": measure.higher_is_better,
    }


def _doubts(
    choice: Choice, values: Floats, queries: pl.DataFrame, column: str | None
) -> list[Finding]:
    """Return what is doubtful about a choice."""
    partly = np.isnan(choice.values) & ~np.isnan(values).all(axis=0)
    found = finding_about(
        "left-out-query",
        queries["query"].filter(pl.Series(partly)),
        "query with a value under some settings only: it takes no part in the choice",
        "choose by a measure that has a value whatever was retrieved",
    )
    units = choice.held_out.clusters if column is not None else choice.n
    if units is not None and units < FEW:
        what = "queries" if column is None else f"clusters by {column}"
        found += finding_about(
            "few-queries",
            ["all"] * units,
            f"{what} choose the setting: so few mostly choose by luck",
            "label more questions before you change the setting; the plateau shows what is open",
        )
    return found


def _interval(
    values: Floats, measure: Measure, level: float, clusters: Sequence[object] | None
) -> Estimate:
    (found,) = intervals(
        values,
        level=level,
        statistic=measure.aggregation,
        bounds=measure.bounds,
        clusters=clusters,
    )
    return found


def _sliced(  # noqa: PLR0917
    column: str,
    queries: pl.DataFrame,
    values: Floats,
    choice: Choice,
    grid: SettingGrid,
    clusters: Sequence[object] | None,
    how: Mapping[str, Any],
    draws: int,
) -> SlicedChoice:
    labels = queries[choose_column(queries, column)].cast(pl.String).fill_null("(none)")
    slices, held = choose_by_slice(
        values,
        labels.to_list(),
        choice,
        places=grid.places,
        clusters=clusters,
        draws=draws,
        seed=how["seed"],
        statistic=how["statistic"],
        higher_is_better=how["higher_is_better"],
    )
    (gain,) = gains_over(held, {"one setting for all": choice.values}, clusters=clusters, **how)
    return SlicedChoice(column, slices, gain)


def _limits(value: Estimate) -> dict[str, float | None]:
    return {"value": value.value, "low": value.low, "high": value.high}
