"""The setting that was chosen, with all that is said about it: value, gains, slices, curves."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core import display
from findwell.core.errors import choose_column
from findwell.core.findings import finding_about, first_findings
from findwell.core.frames import pl
from findwell.evaluation.evaluate import cluster_column
from findwell.loop.tuning.choice import (
    CURRENT,
    ChoiceRule,
    choose_by_slice,
    choose_setting,
    gains_over,
    worth_keeping,
)
from findwell.loop.tuning.fusion_settings import SPACE, SettingGrid, shares_of
from findwell.loop.tuning.history import remember

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.data import Floats, Run
    from findwell.core.estimate import Estimate
    from findwell.core.findings import Finding
    from findwell.core.values import Values
    from findwell.loop.tuning.choice import Choice, Gain, SliceChoice
    from findwell.loop.tuning.engines import Setting
    from findwell.loop.tuning.fused_values import FusedLists, RecordedRuns
    from findwell.loop.tuning.retriever_trials import AskedRetriever
    from findwell.measures import Measure

FEW_QUERIES = 30  # with fewer a choice is mostly luck
SEVERAL_SLICES = (
    "a setting for each slice is chosen from the queries of that slice alone, which are fewer, and "
    "the more slices there are, the sooner one of them looks better by chance"
)
# as the JSON output has them
JSON_KEYS = (
    "engine", "runs", "measure", "keep", "chosen", "in_sample", "held_out", "optimism", "plateau",
    "stability", "gains", "best_in_sample", "current", "curve", "measures", "slices", "queries",
    "left_out", "settings", "rungs", "calls", "snippet", "inexact", "findings", "dialect",
    "matched_by", "level", "cluster", "folds", "repeats", "seed", "search",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredChoice:
    """What the settings that one measure chose are worth by another."""

    measure: str
    in_sample: float | None
    held_out: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        return {**asdict(self), "held_out": limits_of(self.held_out)}


@dataclass(frozen=True, slots=True, eq=False)
class SlicedChoice:
    """A setting for each value of a column, against one for all."""

    column: str
    slices: tuple[SliceChoice, ...]
    gain: Gain  # of one setting for each slice over one for all, held out


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Tuning(display.Shown):
    """The setting that was chosen, and what it is worth on queries that did not choose it."""

    engine: str  # whose formula fuses the runs, or the function that makes retrievers
    measures: tuple[Measure, ...]  # the first one chose
    grid: SettingGrid  # what was tried
    choice: Choice
    gains: tuple[Gain, ...]
    current: Any  # the setting in use, or None
    findings: tuple[Finding, ...]
    level: float
    cluster: str | None  # column of queries that stay together
    others: tuple[MeasuredChoice, ...]  # the same choice by the other measures
    source: FusedRuns | AskedRetriever  # where the values come from

    @property
    def measure(self) -> Measure:
        """The measure that chose."""
        return self.measures[0]

    @property
    def chosen(self) -> Any:  # noqa: ANN401
        """The setting that was chosen: of an engine, or the knobs of a retriever."""
        return self.grid.settings[self.choice.chosen]

    @property
    def in_sample(self) -> Estimate:
        """The value on the queries that chose the setting."""
        return self.choice.in_sample

    @property
    def held_out(self) -> Estimate:
        """The value on queries that did not take part in the choice."""
        return self.choice.held_out

    @property
    def kept(self) -> Gain | None:
        """What the choice is not better than on held-out queries: the best of these, or None."""
        return worth_keeping(self.gains, higher_is_better=self.measure.higher_is_better)

    @property
    def keep(self) -> str | None:
        """What to keep instead of the choice: the name of a run, "current", or None."""
        return None if self.kept is None else self.kept.over

    @property
    def fused(self) -> FusedRuns:
        """What is known where recorded runs were fused."""
        if not isinstance(self.source, FusedRuns):
            raise TypeError("a retriever was asked, and no runs were fused")
        return self.source

    @property
    def asked(self) -> AskedRetriever:
        """What is known where a retriever was asked."""
        if isinstance(self.source, FusedRuns):
            raise TypeError("recorded runs were fused, and no retriever was asked")
        return self.source

    @property
    def run(self) -> Run:
        """The runs, fused with the setting that was chosen."""
        return self.fused.lists.run(self.chosen)

    @property
    def snippet(self) -> str | None:
        """The configuration of the engine, ready to paste; None where it is not worth having."""
        if self.kept is not None or not isinstance(self.source, FusedRuns):
            return None
        return self.fused.lists.engine.snippet(self.chosen, self.fused.runs)

    def as_dict(self) -> dict[str, Any]:
        """Return the tuning as the JSON output prints it."""
        choice = self.choice
        said = {
            "engine": self.engine,
            "measure": str(self.measure),
            "keep": self.keep,
            "chosen": self.chosen.as_dict(),
            "in_sample": choice.in_sample.value,
            "held_out": limits_of(choice.held_out),
            "optimism": choice.optimism,
            "plateau": [self.grid.settings[number].as_dict() for number in choice.plateau],
            "stability": choice.stability,
            "gains": [gain.as_dict() for gain in self.gains],
            "measures": [each.as_dict() for each in self.others],
            "current": None if self.current is None else self.current.as_dict(),
            "findings": [finding.as_dict() for finding in self.findings],
            "level": self.level,
            "cluster": self.cluster,
            **self.source.as_dict(self),
        }
        return {key: said[key] for key in JSON_KEYS if key in said}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FusedRuns:
    """What a tuning says about recorded runs that were fused."""

    runs: tuple[str, ...]
    lists: FusedLists
    current_value: Estimate | None  # on all queries
    sliced: tuple[SlicedChoice, ...]
    values: pl.DataFrame  # one row per query: held out, chosen, current, and each run alone
    dialect: str
    matched_by: str
    rule: ChoiceRule
    search: str = ""  # how a space was searched: grid, random or optuna

    def as_dict(self, tuning: Tuning) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        choice, settings = tuning.choice, tuning.grid.settings
        return {
            "runs": list(self.runs),
            "best_in_sample": settings[choice.best].as_dict(),
            "curve": [
                {
                    "setting": setting.as_dict(),
                    **limits_of(value),
                    "p_worse": behind.p,
                    "votes": float(votes),
                }
                for setting, value, behind, votes in zip(
                    settings, choice.curve, choice.behind, choice.votes, strict=True
                )
            ],
            "slices": [
                {
                    "column": each.column,
                    "slices": [
                        {**asdict(part), "chosen": settings[part.chosen].as_dict()}
                        for part in each.slices
                    ],
                    "gain": each.gain.as_dict(),
                }
                for each in self.sliced
            ],
            "queries": choice.n,
            "left_out": choice.left_out,
            "snippet": tuning.snippet,
            "inexact": self.lists.engine.exact,
            "dialect": self.dialect,
            "matched_by": self.matched_by,
            "folds": self.rule.folds,
            "repeats": self.rule.repeats,
            "seed": self.rule.seed,
            **({"search": self.search} if self.search else {}),
        }


def limits_of(value: Estimate) -> dict[str, float | None]:
    """Return a value and its interval, as the JSON output prints them."""
    return {"value": value.value, "low": value.low, "high": value.high}


def clustered(
    rule: ChoiceRule, values: Values, cluster: str | None
) -> tuple[ChoiceRule, str | None]:
    """Return the rule for the first measure, with clusters, and the column that has them."""
    column = cluster_column(values.queries, cluster)
    clusters = None if column is None else values.queries[column].to_list()
    return replace(rule.by(values.measures[0]), clusters=clusters), column


def conclude(
    source: RecordedRuns,
    grid: SettingGrid,
    rule: ChoiceRule,
    *,
    current: Setting | None,
    cluster: str | None,
    slices: Iterable[str] = (),
    choice: Choice | None = None,
    search: str = "",
) -> Tuning:
    """Choose among the settings of a grid, and say what that is worth.

    A choice that was made elsewhere is taken as it is.
    """
    extra = [] if current is None or grid.find(current) is not None else [current]
    found = source.values([*grid.settings, *extra])
    rule, column = clustered(rule, found, cluster)
    values, count, about = found.table[:, 0], len(grid.settings), found.queries
    if choice is None:
        choice = choose_setting(values[:count], rule, places=grid.places)
    in_use = {}
    if current is not None:
        place = grid.find(current)
        in_use = {CURRENT: values[count if place is None else place]}
    against = {**in_use, **dict(zip(source.runs, values[count + len(extra) :], strict=True))}
    lists = source.lists(grid.settings[choice.chosen])
    by_name = np.flatnonzero(~np.isnan(choice.values))
    by_name = by_name[about["query"].gather(by_name).arg_sort().to_numpy()]
    used = remember(
        source.gold,
        about["query"].gather(by_name),
        what=f"{'a space' if grid.axis == SPACE else lists.engine.name} by {found.measures[0]}",
        settings=[str(setting) for setting in grid.settings],
        values=values[:count, by_name],
        held_out=choice.held_out.value,
    )
    sliced, others = [], []
    for name in slices:
        labels = about[choose_column(about, name)].cast(pl.String).fill_null("(none)").to_list()
        parts, held = choose_by_slice(values[:count], labels, choice, rule, places=grid.places)
        (gain,) = gains_over(held, {"one setting for all": choice.values}, rule)
        sliced.append(SlicedChoice(name, parts, gain))
    for at, other in enumerate(found.measures[1:], start=1):
        by, table = rule.by(other), found.table[:, at]
        value = by.interval(choice.held_out_values(table, other.aggregation))
        others.append(MeasuredChoice(str(other), by.interval(table[choice.chosen]).value, value))
    return Tuning(
        engine=lists.engine.name,
        measures=found.measures,
        grid=grid,
        choice=choice,
        gains=gains_over(choice.values, against, rule, in_sample=values[choice.chosen]),
        current=current,
        findings=tuple(
            first_findings([*source.findings, *_doubts(choice, values, about, column), *used])
        ),
        level=rule.level,
        cluster=column,
        others=tuple(others),
        source=FusedRuns(
            runs=source.runs,
            lists=lists,
            current_value=rule.interval(in_use[CURRENT]) if in_use else None,
            sliced=tuple(sliced),
            values=pl.DataFrame(
                {
                    "query": about["query"],
                    "held_out": choice.values,
                    "chosen": values[choice.chosen],
                    **against,
                }
            ).with_columns(pl.exclude("query").fill_nan(None)),
            dialect=source.result.dialect,
            matched_by=source.result.matched_by[str(found.measures[0])],
            rule=rule,
            search=search,
        ),
    )


def _doubts(
    choice: Choice, values: Floats, queries: pl.DataFrame, column: str | None
) -> list[Finding]:
    """Return what is doubtful about a choice."""
    partly = np.isnan(choice.values) & ~np.isnan(values).all(axis=0)
    found = finding_about(
        "left-out-query",
        queries["query"].filter(pl.Series(partly)),
        "# query|queries has|have a value under some settings only and is|are left out.",
        "choose by a measure that has a value whatever was retrieved",
    )
    units = choice.held_out.clusters if column is not None else choice.n
    if units is not None and units < FEW_QUERIES:
        what = "query|queries" if column is None else f"cluster|clusters by {column}"
        found += finding_about(
            "few-queries",
            ["all"] * units,
            f"# {what} chooses|choose the setting; with so few, the choice is largely luck.",
            "label more questions before you change the setting; the plateau shows what is open",
        )
    return found


# along one axis: the share of a run, or the constant


@dataclass(frozen=True, slots=True, eq=False)
class TuningPoint:
    """One value of the axis, with the best setting that has it."""

    at: float
    setting: int
    value: Estimate
    behind: Estimate  # the difference to the best setting; corrected for the number of settings
    in_plateau: bool


@dataclass(frozen=True, slots=True, eq=False)
class TuningCurve:
    """The values along an axis; with more than two runs the others are at their best."""

    axis: str  # what it is: share of bm25, k
    points: tuple[TuningPoint, ...]
    chosen: float
    current: float | None
    even: bool = True  # the axis is a share from 0 to 1; else the points stand side by side

    @property
    def plateau(self) -> tuple[float, float]:
        """The ends of the plateau."""
        inside = [point.at for point in self.points if point.in_plateau]
        return min(inside), max(inside)

    @property
    def gaps(self) -> bool:
        """Whether something inside the plateau is shown to be worse."""
        begin, end = self.plateau
        return any(begin < point.at < end and not point.in_plateau for point in self.points)


def curves_of(tuning: Tuning) -> tuple[TuningCurve, ...]:
    """Return the curves of a tuning: one of two runs or of a constant, else one for each run.

    A space with more than one knob has none.
    """
    if tuning.grid.axis == "k":
        return (_curve(tuning, "k", 0, even=False),)
    if tuning.grid.axis != "weights":
        return ()
    runs = tuning.fused.runs
    axes = range(1 if len(runs) == 2 else len(runs))
    return tuple(_curve(tuning, f"share of {runs[run]}", run, even=True) for run in axes)


def _curve(tuning: Tuning, axis: str, run: int, *, even: bool) -> TuningCurve:
    def place(setting: Setting) -> float:
        found = float(shares_of(setting.weights)[run]) if even else float(setting.k or 0.0)
        return round(found, 9)

    choice = tuning.choice
    sign = 1.0 if tuning.measure.higher_is_better else -1.0
    values = np.array([sign * (each.value or 0.0) for each in choice.curve])
    places = np.array([place(each) for each in tuning.grid.settings])
    inside = set(choice.plateau)
    points = []
    for at in np.unique(places).tolist():
        here = np.flatnonzero(places == at)
        number = int(here[values[here].argmax()])
        good = any(each in inside for each in here.tolist())
        behind = choice.behind[number].difference  # the best is not uncertain against itself
        behind = replace(behind, low=0.0, high=0.0) if number == choice.best else behind
        points.append(TuningPoint(at, number, choice.curve[number], behind, good))
    now = None if tuning.current is None else place(tuning.current)
    return TuningCurve(axis, tuple(points), float(places[choice.chosen]), now, even)
