"""The best configuration of a retriever that must be asked, and what it is worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from karat.core.data import Gold
from karat.dialects import dialect as find_dialect
from karat.dialects import expand_measures
from karat.errors import InputError, OptionError, choose_column
from karat.evaluation.assessment import find_matchers
from karat.evaluation.evaluate import evaluate
from karat.evaluation.inputs import with_columns
from karat.findings import EXAMPLES, Finding, finding_about
from karat.forks import refuse_after_fork
from karat.progress import Progress
from karat.read import load_gold
from karat.results.timing import Timing, timing
from karat.retrievers.questions import questions_for
from karat.retrievers.retriever import RetrievalOptions, name_of
from karat.statistics.intervals import Interval, intervals
from karat.statistics.paired import paired
from karat.statistics.power import PlannedComparison, spread
from karat.statistics.values import Quantity, check_share
from karat.tuning.choice import FEWEST, choose_setting
from karat.tuning.configurations import Configurations, check_factory, defaults_of
from karat.tuning.halving import Halving, HalvingPlan, deal_queries, halve, plan_halving
from karat.tuning.space import Space, describe_setting, identify

if TYPE_CHECKING:
    from karat.core.data import Bools, Floats, Ints
    from karat.evaluation.evaluate import RunOptions
    from karat.measures import Measure
    from karat.progress import Report
    from karat.read import GoldLike
    from karat.statistics.paired import Paired
    from karat.tuning.space import Knobs, SpaceLike

RETRIEVAL = frozenset(RetrievalOptions.__annotations__) - {"resume", "name"}
NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class AskedSetting:
    """A configuration, how far it came, and what asking it cost."""

    setting: Knobs
    value: Interval  # on the queries of the rungs: they chose
    rung: int  # the last that it was part of, from 1
    queries: int  # that it was asked in the rungs
    timing: Timing | None
    failed: int  # questions without an answer
    reason: str = ""  # why it was given up


@dataclass(frozen=True, slots=True)
class RetrieverGain:
    """The chosen configuration against the current one, on queries that did not choose."""

    over: str
    difference: float | None  # chosen − current
    low: float | None
    high: float | None
    p: float | None
    verdict: str  # better, worse, not shown
    value: float | None  # of the current one
    n: int
    needed: int | None  # queries that would show a difference of this size
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Calls:
    """How many questions were to be asked, and how many were."""

    planned: int  # at most, with nothing kept from before
    asked: int  # in this process; attempts that failed included
    kept: int  # answers from before
    failed: int  # questions without an answer


@dataclass(frozen=True, slots=True, eq=False)
class RetrieverTuning:
    """The configuration that successive halving left, and what it is worth on other queries."""

    engine: str  # the function that makes the retrievers
    measure: Measure
    chosen: Knobs
    current: Knobs | None
    in_sample: Interval  # on the queries that chose it
    held_out: Interval  # on queries that did not
    optimism: float | None
    plateau: tuple[Knobs, ...]  # of the last rung: not shown to be worse than its best
    stability: float | None  # share of bootstraps of the last rung that the chosen one wins
    gains: tuple[RetrieverGain, ...]
    settings: tuple[AskedSetting, ...]  # in the order of the space; the current one may be last
    plan: HalvingPlan
    calls: Calls
    halving: Halving
    queries: tuple[str, ...]  # the columns of its values
    findings: tuple[Finding, ...]
    level: float

    def as_dict(self) -> dict[str, Any]:
        """Return the tuning as the JSON output prints it."""
        return {
            "engine": self.engine,
            "measure": str(self.measure),
            "chosen": _listed(self.chosen),
            "current": None if self.current is None else _listed(self.current),
            "in_sample": self.in_sample.value,
            "held_out": _limits(self.held_out) | {"n": self.held_out.n},
            "optimism": self.optimism,
            "plateau": [_listed(setting) for setting in self.plateau],
            "stability": self.stability,
            "gains": [asdict(gain) for gain in self.gains],
            "settings": [_row(each) for each in self.settings],
            "rungs": [[rung.settings, rung.queries] for rung in self.plan.rungs],
            "calls": {name: getattr(self.calls, name) for name in Calls.__dataclass_fields__},
            "level": self.level,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def _listed(setting: Mapping[str, Any]) -> Knobs:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in setting.items()
    }


def _limits(span: Interval) -> dict[str, float | None]:
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


def tune_retriever(
    make: Callable[..., Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    *,
    space: SpaceLike | None,
    current: Mapping[str, Any] | None = None,
    queries: object = None,
    answers: str | os.PathLike[str] | None = None,
    level: float = 0.95,
    cluster: str | None = None,
    rel: float | None = None,
    announce: Callable[[HalvingPlan, int], None] | None = None,
    retrieval: RetrievalOptions | None = None,
    **options: Unpack[RunOptions],
) -> RetrieverTuning:
    """Find the best configuration of a retriever by successive halving over the queries.

    `make(**setting)` returns a retriever for a value of each knob of the `space`. Few questions are
    asked of all configurations, more of the best of them (`karat.tuning.halving`). The one that is
    left, and the `current` one (that of the space, or the defaults of `make`), are then asked
    questions that nobody was asked before: what is claimed rests on these alone.

    `answers` is a folder that keeps the answers of each configuration, so that a process that was
    killed goes on where it ended. `retrieval` are options of `karat.Retriever`; `announce` is told
    the plan and the number of calls before anything is asked. Other options are those of
    `karat.evaluate`.
    """
    refuse_after_fork()
    check_share("level", level)
    if space is None or gold is None:
        lacking, option = ("space", "--space FILE") if space is None else ("gold", "--gold FILE")
        raise OptionError(
            f"a retriever is tuned in a space, against a gold: there is no {lacking}",
            fix=f"{option} ({lacking}=); see docs/tuning-retrievers.md",
        )
    space = Space.of(space)
    if space.search.how == "optuna":
        raise OptionError(
            "Optuna is for recorded runs; retrievers are asked by successive halving",
            where=f"{space.where}: search",
            fix='how = "random" draws settings of a space that is too large for a grid',
        )
    settings, at = _with_current(make, space, current)
    progress = options.pop("progress", None)
    chosen_by = _one_measure(measures, options, rel)
    known = with_columns(load_gold(gold, **_reading(options)), queries)
    asked = _Questions.of(known, queries, chosen_by, rel, options)
    column = None if cluster is None else choose_column(known.queries, cluster)
    clusters = None if column is None else asked.table[column].to_list()
    search = space.search
    plan = plan_halving(
        len(settings),
        asked.table.height,
        eta=search.eta,
        first=search.first,
        final=search.final,
    )
    order, final = deal_queries(
        asked.table["question"].to_list(), plan, seed=search.seed, clusters=clusters
    )
    plan = replace(plan, final=len(final))
    planned = plan.calls(1 if at is None else 2)
    folder = None if answers is None else Path(answers)
    asking = _Asking(
        Configurations(make, settings, dict(retrieval or {}), folder),
        asked.table,
        known,
        chosen_by,
        {**options, "rel": rel},
        planned,
        progress,
    )
    if announce is not None:
        announce(plan, planned)
    better = chosen_by.higher_is_better
    found = halve(asking.measure, plan, order, final, current=at, higher_is_better=better)
    return _Claims(chosen_by, asking, found, plan, level, clusters, at).tuning(
        name_of(make), (*known.findings, *asked.findings)
    )


def _with_current(
    make: Callable[..., Any], space: Space, current: Mapping[str, Any] | None
) -> tuple[list[Knobs], int | None]:
    """Return the settings to try, and which of them is in use; it is tried, too."""
    settings = space.settings()
    check_factory(make, settings[0])
    if current is not None:
        space = space.with_current(current)
    today = space.current or defaults_of(make, space.names)
    if today is None:
        return settings, None
    names = [identify(setting) for setting in settings]
    if identify(today) in names:
        return settings, names.index(identify(today))
    # 1 and 1.0 are one value of a knob
    same = [at for at, setting in enumerate(settings) if setting == dict(today)]
    if same:
        return settings, same[0]
    return [*settings, dict(today)], len(settings)


def _one_measure(
    measures: Iterable[str | Measure] | str, options: Mapping[str, Any], rel: float | None
) -> Measure:
    found = expand_measures(measures, options.get("dialect", "karat"), rel)
    if len(found) != 1:
        raise OptionError(
            f"{len(found)} measures cannot choose at once", fix="name the one that matters most"
        )
    if found[0].aggregation != "mean":
        raise OptionError(f"{found[0]} is not a mean over queries", fix="choose by one that is")
    return found[0]


def _reading(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {"format": options.get("gold_format"), "skip_bad": options.get("skip_bad", False)}
    return chosen | {"texts": True, "id_from": options.get("id_from")}


@dataclass(frozen=True, slots=True)
class _Questions:
    """The questions to ask: those of queries on which the measure can have a value."""

    table: pl.DataFrame
    findings: tuple[Finding, ...]

    @classmethod
    def of(
        cls,
        gold: Gold,
        queries: object,
        measure: Measure,
        rel: float | None,
        options: Mapping[str, Any],
    ) -> _Questions:
        table = questions_for(gold, queries)
        extra = [name for name in gold.queries.columns if name not in table.columns]
        table = table.hstack(gold.queries.select(extra)) if extra else table
        by = options.get("by") or "ids"
        dialect = find_dialect(options.get("dialect", "karat"))
        judged = any(each.judged for each in find_matchers(by, (measure,), dialect).values())
        if judged:  # what a judge would say is not known before it is asked
            return cls(table, ())
        empty: dict[str, list[str]] = {query: [] for query in table["query"]}
        values = evaluate(empty, gold, [measure], rel=rel, level=None, **options).arrays
        (known,) = (~np.isnan(each) for each in values.values())
        if not known.any():
            return cls(table, ())
        message = "query on which the measure has no value: nobody is asked"
        undefined = finding_about("undefined-query", table["query"].filter(~known), message)
        return cls(table.filter(pl.Series(known)), tuple(undefined))


class _Asking:
    """Asks configurations, and measures what they found."""

    def __init__(  # noqa: PLR0917
        self,
        configurations: Configurations,
        table: pl.DataFrame,
        gold: Gold,
        measure: Measure,
        options: Mapping[str, Any],
        planned: int,
        progress: Report | None,
    ) -> None:
        self.configurations, self.table, self.planned = configurations, table, planned
        self._gold, self._measure, self._progress = gold, measure, progress
        self._options = options
        self._done = 0
        self.kept = 0
        self.reasons: dict[int, str] = {}
        self.about: dict[int, list[pl.DataFrame]] = {}
        self.findings: list[Finding] = []

    def measure(self, settings: Sequence[int], queries: Ints) -> tuple[Floats, Bools]:
        """Return the values of settings on queries, and which of the settings failed."""
        order = np.sort(queries)  # as the gold has them
        part = self.table[order]
        pairs = part.select("query", "question")
        runs = {}
        for number in settings:
            found = self.configurations.ask(number, pairs, self._reporter(number))
            self._done += part.height
            self.kept += found.resumed
            if found.run is None:
                self.reasons[number] = found.reason
            else:
                runs[str(number)] = replace(found.run, name=str(number))
                if found.run.about is not None:
                    self.about.setdefault(number, []).append(found.run.about)
        values = np.full((len(settings), len(queries)), np.nan)
        failed = np.array([number in self.reasons for number in settings])
        if runs:
            bare = {name: replace(run, about=None) for name, run in runs.items()}
            gold = _only(self._gold, part["query"])
            result = evaluate(bare, gold, [self._measure], level=None, **self._options)
            self.findings += [finding for finding in result.findings if finding.run]
            back = np.searchsorted(order, queries)
            for at, number in enumerate(settings):
                if str(number) in runs:
                    values[at] = result.arrays[str(number), self._measure][back]
        return values, failed

    def _reporter(self, number: int) -> Report | None:
        if self._progress is None:
            return None
        report, done, name = self._progress, self._done, self.configurations.name(number)

        def told(step: Progress) -> None:
            note = f"{name}, {step.note}" if step.note else name
            report(Progress(done + step.done, self.planned, note))

        return told

    def timing(self, number: int) -> Timing | None:
        """Return what asking a setting cost."""
        tables = self.about.get(number)
        return None if tables is None else timing(pl.concat(tables, how="diagonal"))

    def failures(self, number: int) -> int:
        """Return how many questions a setting did not answer."""
        return sum(table["error"].count() for table in self.about.get(number, []))


def _only(gold: Gold, queries: pl.Series) -> Gold:
    """Return the gold of some of its queries."""
    inside = pl.col("query").is_in(queries.implode())
    flaws = {query: flaw for query, flaw in gold.flaws.items() if query in set(queries)}
    built = Gold.build(gold.rows().filter(inside), queries=gold.queries.filter(inside), flaws=flaws)
    return replace(built, named_by=gold.named_by, carries=gold.carries)


@dataclass(frozen=True, slots=True, eq=False)
class _Claims:
    """What is said about the setting that is left."""

    measure: Measure
    asking: _Asking
    found: Halving
    plan: HalvingPlan
    level: float
    clusters: Sequence[object] | None
    current: int | None

    def tuning(self, engine: str, findings: Iterable[Finding]) -> RetrieverTuning:
        """Put everything together."""
        found, settings = self.found, self.asking.configurations.settings
        in_sample = self._interval(found.chosen, found.search)
        held_out = self._interval(found.chosen, found.final)
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
        )

    def _interval(self, setting: int, queries: Ints) -> Interval:
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

    def _gains(self) -> tuple[RetrieverGain, ...]:
        if self.current is None:
            return ()
        before, after = self.found.values[[self.current, self.found.chosen]][:, self.found.final]
        (found,) = paired(
            before,
            after,
            level=self.level,
            bounds=self.measure.bounds,
            clusters=self._labels(self.found.final),
        )
        same = self.current == self.found.chosen
        reason = "the current setting is the best that was found" if same else found.test.reason
        if self.current in self.asking.reasons:
            reason = f"the current setting failed: {self.asking.reasons[self.current]}"
        needed = _needed(after - before, found.difference.value, self.level).value
        return (
            RetrieverGain(
                over="current",
                difference=found.difference.value,
                low=found.difference.low,
                high=found.difference.high,
                p=found.test.p,
                verdict=self._verdict(found),
                value=self._interval(self.current, self.found.final).value,
                n=found.n,
                needed=None if needed is None else int(needed),
                reason=reason,
            ),
        )

    def _verdict(self, found: Paired) -> str:
        difference, p = found.difference.value, found.test.p
        if difference is None or p is None or p >= 1 - self.level or not difference:
            return NOT_SHOWN
        return "better" if (difference > 0) == self.measure.higher_is_better else "worse"

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


def _needed(moved: Floats, difference: float | None, level: float) -> Quantity:
    """Return how many queries would show a difference of the size that was seen."""
    found = spread(moved)
    if difference is None or found.sd is None:
        return Quantity(None, found.reason)
    try:
        planned = PlannedComparison(found.sd, found.changed, alpha=1 - level)
        return planned.queries_needed(difference)
    except (OptionError, InputError) as error:  # without SciPy, or out of reach
        return Quantity(None, error.what)
