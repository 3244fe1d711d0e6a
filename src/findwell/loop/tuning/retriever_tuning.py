"""What is said about a retriever that was tuned: values, gains, costs, and what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core import display
from findwell.core.findings import EXAMPLES, Finding, finding_about
from findwell.loop.tuning.choice import FEWEST, choose_setting
from findwell.loop.tuning.gains import CURRENT, Gain, gains_over, worth_keeping
from findwell.loop.tuning.space import describe_setting
from findwell.statistics.intervals import intervals

if TYPE_CHECKING:
    from findwell.core.data import Ints
    from findwell.core.estimate import Estimate
    from findwell.evaluation.results.timing import Timing
    from findwell.loop.tuning.halving import Halving, HalvingPlan
    from findwell.loop.tuning.space import Knobs
    from findwell.loop.tuning.tune_retriever import Asking
    from findwell.measures import Measure


@dataclass(frozen=True, slots=True)
class AskedSetting:
    """A configuration, how far it came, and what asking it cost."""

    setting: Knobs
    value: Estimate  # on the queries of the rungs: they chose
    rung: int  # the last that it was part of, from 1
    queries: int  # that it was asked in the rungs
    timing: Timing | None
    failed: int  # questions without an answer
    reason: str = ""  # why it was given up


@dataclass(frozen=True, slots=True)
class Calls:
    """How many questions were to be asked, and how many were."""

    planned: int  # at most, with nothing kept from before
    asked: int  # in this process; attempts that failed included
    kept: int  # answers from before
    failed: int  # questions without an answer


@dataclass(frozen=True, eq=False, repr=False)
class RetrieverTuning:
    """The configuration that successive halving left, and what it is worth on other queries."""

    engine: str  # the function that makes the retrievers
    measure: Measure
    chosen: Knobs
    current: Knobs | None
    in_sample: Estimate  # on the queries that chose it
    held_out: Estimate  # on queries that did not
    optimism: float | None
    plateau: tuple[Knobs, ...]  # of the last rung: not shown to be worse than its best
    stability: float | None  # share of bootstraps of the last rung that the chosen one wins
    gains: tuple[Gain, ...]
    settings: tuple[AskedSetting, ...]  # in the order of the space; the current one may be last
    plan: HalvingPlan
    calls: Calls
    halving: Halving
    queries: tuple[str, ...]  # the columns of its values
    findings: tuple[Finding, ...]
    level: float
    cluster: str | None  # column of queries that stay together

    @property
    def kept(self) -> Gain | None:
        """The current setting, if the choice is not better on held-out queries, or None."""
        return worth_keeping(self.gains, higher_is_better=self.measure.higher_is_better)

    @property
    def keep(self) -> str | None:
        """What to keep instead of the choice: "current", or None."""
        return None if self.kept is None else self.kept.over

    def as_dict(self) -> dict[str, Any]:
        """Return the tuning as the JSON output prints it."""
        return {
            "engine": self.engine,
            "measure": str(self.measure),
            "keep": self.keep,
            "chosen": _listed(self.chosen),
            "current": None if self.current is None else _listed(self.current),
            "in_sample": self.in_sample.value,
            "held_out": _limits(self.held_out) | {"n": self.held_out.n},
            "optimism": self.optimism,
            "plateau": [_listed(setting) for setting in self.plateau],
            "stability": self.stability,
            "gains": [gain.as_dict() for gain in self.gains],
            "settings": [_row(each) for each in self.settings],
            "rungs": [[rung.settings, rung.queries] for rung in self.plan.rungs],
            "calls": {name: getattr(self.calls, name) for name in Calls.__dataclass_fields__},
            "level": self.level,
            "cluster": self.cluster,
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def to_markdown(self) -> str:
        """Return tables for a pull request."""
        return display.render(self, "markdown")

    def _repr_html_(self) -> str:
        return display.render(self, "html")

    def __repr__(self) -> str:
        return display.render(self, "text")


def _listed(setting: Mapping[str, Any]) -> Knobs:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in setting.items()
    }


def _limits(span: Estimate) -> dict[str, float | None]:
    return {"value": span.value, "low": span.low, "high": span.high}


def _row(each: AskedSetting) -> dict[str, Any]:
    return {
        "setting": _listed(each.setting),
        **_limits(each.value),
        "rung": each.rung,
        "queries": each.queries,
        "p50_ms": None if each.timing is None else each.timing.p50,
        "p90_ms": None if each.timing is None else each.timing.p90,
        "failed": each.failed,
        "reason": each.reason,
    }


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """What is said about the setting that is left."""

    measure: Measure
    asking: Asking
    found: Halving
    plan: HalvingPlan
    level: float
    clusters: Sequence[object] | None
    current: int | None

    @property
    def held_out(self) -> Estimate:
        """The value of the setting that is left, on queries that did not choose it."""
        return self._interval(self.found.chosen, self.found.final)

    def tuning(
        self, engine: str, cluster: str | None, findings: Iterable[Finding]
    ) -> RetrieverTuning:
        """Put everything together."""
        found, settings = self.found, self.asking.configurations.settings
        in_sample = self._interval(found.chosen, found.search)
        held_out = self.held_out
        sign = 1.0 if self.measure.higher_is_better else -1.0
        both = in_sample.value is not None and held_out.value is not None
        plateau, stability = self._last_rung()
        rows = tuple(
            AskedSetting(
                dict(settings[number]),
                self._interval(number, found.search),
                found.left_at(number),
                int(found.asked[number]),
                self.asking.timing(number),
                self.asking.failures(number),
                self.asking.reasons.get(number, ""),
            )
            for number in range(len(settings))
        )
        calls = Calls(
            self.asking.planned,
            self.asking.configurations.calls,
            self.asking.kept,
            sum(row.failed for row in rows),
        )
        return RetrieverTuning(
            engine=engine,
            measure=self.measure,
            chosen=dict(settings[found.chosen]),
            current=None if self.current is None else dict(settings[self.current]),
            in_sample=in_sample,
            held_out=held_out,
            optimism=sign * ((in_sample.value or 0.0) - (held_out.value or 0.0)) if both else None,
            plateau=tuple(dict(settings[number]) for number in plateau),
            stability=stability,
            gains=self._gains(),
            settings=rows,
            plan=self.plan,
            calls=calls,
            halving=found,
            queries=tuple(self.asking.table["query"]),
            findings=tuple(self._findings(findings, rows)),
            level=self.level,
            cluster=cluster,
        )

    def _interval(self, setting: int, queries: Ints) -> Estimate:
        values = self.found.values[setting, queries]
        labels = self._labels(queries)
        (span,) = intervals(values, level=self.level, bounds=self.measure.bounds, clusters=labels)
        return span

    def _labels(self, queries: Ints) -> list[object] | None:
        return None if self.clusters is None else [self.clusters[at] for at in queries]

    def _last_rung(self) -> tuple[list[int], float | None]:
        """Return who is not shown to be worse than the best of the last rung, and who wins it."""
        left = [each for each in self.found.rungs[-1] if each not in self.asking.reasons]
        queries = self.found.search
        values = self.found.values[left][:, queries]
        known = ~np.isnan(values).any(axis=0)
        if known.sum() < FEWEST or len(left) < 2:
            return [self.found.chosen], None
        labels = self._labels(queries[known])
        choice = choose_setting(
            values[:, known],
            clusters=labels,
            folds=2,
            repeats=1,
            level=self.level,
            bounds=self.measure.bounds,
            higher_is_better=self.measure.higher_is_better,
        )
        won = float(choice.votes[left.index(self.found.chosen)])
        return [left[number] for number in choice.plateau], won

    def _gains(self) -> tuple[Gain, ...]:
        """Return the gain over the current setting, on queries that did not choose."""
        if self.current is None:
            return ()
        before, after = self.found.values[[self.current, self.found.chosen]][:, self.found.final]
        (gain,) = gains_over(
            after,
            {CURRENT: before},
            level=self.level,
            bounds=self.measure.bounds,
            clusters=self._labels(self.found.final),
            higher_is_better=self.measure.higher_is_better,
        )
        if self.current == self.found.chosen:
            return (replace(gain, reason="the current setting is the best that was found"),)
        if self.current in self.asking.reasons:
            why = f"the current setting failed: {self.asking.reasons[self.current]}"
            return (replace(gain, reason=why),)
        return (gain,)

    def _findings(
        self, findings: Iterable[Finding], rows: Sequence[AskedSetting]
    ) -> Iterable[Finding]:
        yield from findings
        seen: dict[tuple[str, str], Finding] = {}
        for each in self.asking.findings:
            known = seen.get((each.kind, each.message))
            examples = tuple(dict.fromkeys((*(known.examples if known else ()), *each.examples)))
            count = each.count + (known.count if known else 0)
            seen[each.kind, each.message] = replace(
                each, count=count, examples=examples[:EXAMPLES], run=""
            )
        yield from seen.values()
        if self.asking.kept:
            yield Finding(
                "resumed-answer",
                self.asking.kept,
                (str(self.asking.configurations.folder),),
                "answer kept from before, and not asked for again",
                "--fresh, or another folder (answers=), asks again",
            )
        given_up = [f"{describe_setting(row.setting)}: {row.reason}" for row in rows if row.reason]
        message = "setting that was given up"
        yield from finding_about("failed-setting", given_up, message, "look at the reasons")
