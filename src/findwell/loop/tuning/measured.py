"""From runs and gold to the values of every setting, and of each run alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.core.errors import InputError, OptionError
from findwell.evaluation.assessment import assess
from findwell.evaluation.inputs import read_inputs
from findwell.evaluation.plan import EvaluationOptions, Plan
from findwell.judges.limits import limit_findings
from findwell.loop.tuning.grid import STEPS
from findwell.loop.tuning.pool import Pool
from findwell.loop.tuning.pooled import (
    FusedLists,
    PooledEngine,
    deepest,
    refuse_lists,
    setting_values,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats, Gold, Run
    from findwell.core.findings import Finding
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.loop.tuning.engines import Engine, Setting
    from findwell.measures import Measure

MOST_RUNS = max(STEPS)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSettings:
    """The values of every setting, and of each run alone."""

    lists: FusedLists
    loaded: tuple[Run, ...]  # what was read
    gold: Gold
    result: Result  # over all candidates
    drawing: PooledEngine  # which moves them
    measures: tuple[Measure, ...]
    values: Mapping[Measure, Floats]  # settings and single runs × queries
    queries: pl.DataFrame
    findings: tuple[Finding, ...]
    matched_by: str

    def measure(self, setting: Setting) -> dict[Measure, Floats]:
        """Return the values of a further setting of the same engine, one for each query."""
        self.lists.settings = [setting]
        found = setting_values(self.result, self.drawing, self.measures, lists=1)
        return {measure: values[0] for measure, values in found.items()}


def name_runs(runs: Sequence[RunLike] | Mapping[str, RunLike]) -> dict[str, Any]:
    """Return the runs by name; a name that is empty is that of the file."""
    if isinstance(runs, Mapping):
        named = {str(name): data for name, data in runs.items()}
    else:
        given = [runs] if isinstance(runs, str | bytes) else list(runs)
        named = {f"run {number}": data for number, data in enumerate(given, start=1)}
    if not 2 <= len(named) <= MOST_RUNS:
        raise OptionError(
            f"{len(named)} run{'s' * (len(named) != 1)} to fuse", fix=f"give 2 to {MOST_RUNS} runs"
        )
    return named


def plan_of(measures: Iterable[str | Measure] | str, options: Mapping[str, Any]) -> Plan:
    """Return the plan of the options that are those of an evaluation."""
    given = {each: options[each] for each in EvaluationOptions.__optional_keys__ & options.keys()}
    return Plan.of(measures, **given)


def measure_settings(  # noqa: PLR0917
    named: Mapping[str, Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    engine: Engine,
    settings: Sequence[Setting],
    options: Mapping[str, Any],
) -> MeasuredSettings:
    """Read the inputs, draw the relations of all candidates, and measure every setting."""
    plan = plan_of(measures, options)
    refuse_lists(list(plan.matchers.values()))
    with ExitStack() as held:
        data = read_inputs(plan, _as_given(named), gold, held)
        loaded = [stream.collect() for stream in data.runs]
        pool = engine.arranged(Pool.of(loaded, disjoint=options.get("disjoint", False)))
        unshared = _check_queries(pool)
        lists = FusedLists(engine, pool, settings)
        drawing = PooledEngine(lists, deepest(plan.measures))
        result = assess(
            data.plan,
            [lists.candidates().stream()],
            data.gold,
            corpus=data.corpus,
            engine=drawing,
            progress=options.get("progress"),
        )
        values = setting_values(result, drawing, plan.measures)
    findings = [replace(each, run="") for each in result.findings]
    findings += unshared
    findings += limit_findings(result.judge, result.matched_by)
    findings += data.findings
    names = pl.DataFrame({"query": result.relation(result.runs[0]).queries})
    return MeasuredSettings(
        lists=lists,
        loaded=tuple(loaded),
        gold=data.gold,
        result=result,
        drawing=drawing,
        measures=plan.measures,
        values=values,
        queries=names.join(result.queries, on="query", how="left", maintain_order="left"),
        findings=tuple(findings),
        matched_by=result.matched_by[str(plan.measures[0])],
    )


def _as_given(named: Mapping[str, Any]) -> object:
    """Return runs as they are read: files under their own names."""
    files = all(isinstance(data, str | os.PathLike) for data in named.values())
    return list(named.values()) if files else dict(named)


def _check_queries(pool: Pool) -> list[Finding]:
    """Refuse runs that share no query, and report queries that only some of them have."""
    answered = pool.answered()
    for number, name in enumerate(pool.runs[1:], start=1):
        if not (answered[0] & answered[number]).any():
            raise InputError(
                f"it shares no query with {pool.runs[0]}",
                where=f"run {name}",
                fix="fuse runs of the same queries",
            )
    return pool.unshared_queries()
