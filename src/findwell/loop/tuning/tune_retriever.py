"""The best configuration of a retriever that must be asked, and what it is worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from findwell.core.data import Gold
from findwell.core.errors import OptionError, RetrieverError
from findwell.core.findings import Finding, finding_about
from findwell.core.forks import refuse_after_fork
from findwell.core.progress import Progress
from findwell.evaluation.assessment import cluster_column
from findwell.evaluation.evaluate import evaluate
from findwell.evaluation.inputs import with_columns
from findwell.evaluation.plan import Plan
from findwell.evaluation.results.timing import Timing, timing
from findwell.io.read import load_gold
from findwell.judges.limits import limit_findings
from findwell.loop.tuning.configurations import Configurations, check_factory, defaults_of
from findwell.loop.tuning.halving import HalvingPlan, deal_queries, halve, plan_halving
from findwell.loop.tuning.history import remember
from findwell.loop.tuning.retriever_tuning import Claims, RetrieverTuning
from findwell.loop.tuning.space import Space, identify
from findwell.measures.dialects import expand_measures
from findwell.retrievers.retrieve import questions_for
from findwell.retrievers.retriever import RetrievalOptions, name_of
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.progress import Report
    from findwell.evaluation.plan import RunOptions
    from findwell.io.read import GoldLike
    from findwell.loop.tuning.space import Knobs, SpaceLike
    from findwell.measures import Measure


def tune_retriever(
    make: Callable[..., Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    *,
    space: SpaceLike | None,
    current: object = None,
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
    asked of all configurations, more of the best of them (`findwell.loop.tuning.halving`). The one
    that is left, and the `current` one (that of the space, or the defaults of `make`), are then
    asked questions that nobody was asked before: what is claimed rests on these alone.

    `answers` is a folder that keeps the answers of each configuration, so that a process that was
    killed goes on where it ended. `retrieval` are options of `findwell.Retriever`; `announce` is
    told the plan and the number of calls before anything is asked. Other options are those of
    `findwell.evaluate`.
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
    column = cluster_column(known.queries, cluster)
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
    asking = Asking(
        Configurations(make, settings, {**space.retrieval, **(retrieval or {})}, folder),
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
    try:
        found = halve(asking.measure, plan, order, final, current=at, higher_is_better=better)
    except RetrieverError as error:
        reasons = [f"{asking.configurations.name(n)}: {why}" for n, why in asking.reasons.items()]
        raise RetrieverError("; ".join([error.what, *reasons[:1]]), fix=error.fix) from None
    claims = Claims(chosen_by, asking, found, plan, level, clusters, at)
    last = [found.chosen, found.chosen if at is None else at]
    used = remember(
        known,
        asked.table["query"].gather(found.final),
        what=f"{name_of(make)} by {chosen_by}",
        settings=[identify(setting) for setting in settings],
        values=found.values[last][:, found.final],
        held_out=claims.held_out.value,
    )
    return claims.tuning(
        name_of(make), column, (*known.findings, *asked.findings, *asking.limits, *used)
    )


def _with_current(
    make: Callable[..., Any], space: Space, current: object
) -> tuple[list[Knobs], int | None]:
    """Return the settings to try, and which of them is in use; it is tried, too."""
    check_factory(make, dict.fromkeys(space.names))
    settings = space.settings()
    if current is not None:
        if not isinstance(current, Mapping):
            raise OptionError(
                f"{current!r} is no setting of a retriever",
                fix="write it into the space, below [current], or give a dict of knobs",
            )
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
    found = expand_measures(measures, options.get("dialect", "findwell"), rel)
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
        judged = Plan.of([measure], **options).judge is not None
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


class Asking:
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
        self.limits: list[Finding] = []  # what the measure is worth, where a judge decides it

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
            self.limits = limit_findings(result.judge, result.matched_by)
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
