"""A retriever that must be asked: its configurations, what they find, and what the best is worth.

Few questions are asked of all configurations, more of the best of them
(`findwell.loop.tuning.halving`); what is claimed rests on questions that chose nothing. Answers are
kept as they come, so that a process that was killed goes on where it ended.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.data import Gold
from findwell.core.errors import OptionError, RetrieverError, SaveError
from findwell.core.findings import Finding, finding_about, merge_findings
from findwell.core.frames import pl
from findwell.core.progress import Progress
from findwell.core.values import Values
from findwell.evaluation.evaluate import cluster_column, execute
from findwell.evaluation.inputs import with_columns
from findwell.evaluation.plan import Plan
from findwell.evaluation.results.timing import Timing, timing
from findwell.io.read import load_gold
from findwell.io.storage.files import make_folder
from findwell.judges.limits import limit_findings
from findwell.loop.tuning.choice import (
    CURRENT,
    FEWEST_QUERIES,
    Choice,
    ChoiceRule,
    choose_setting,
    gains_over,
    optimism_of,
)
from findwell.loop.tuning.fusion_settings import SettingGrid
from findwell.loop.tuning.halving import Halving, HalvingPlan, deal_queries, halve, plan_halving
from findwell.loop.tuning.history import remember
from findwell.loop.tuning.space import Knobs, Space, choose_knob, identify
from findwell.loop.tuning.tuning import MeasuredChoice, Tuning, limits_of
from findwell.measures.dialects import expand_measures
from findwell.retrievers.answers import AnswerLog, to_run
from findwell.retrievers.retrieve import ask_all, questions_for
from findwell.retrievers.retriever import (
    Call,
    RetrievalOptions,
    Retriever,
    call_of,
    describe,
    name_of,
)

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints, Run
    from findwell.core.estimate import Estimate
    from findwell.core.progress import Report
    from findwell.io.read import GoldLike
    from findwell.loop.tuning.choice import Gain
    from findwell.loop.tuning.space import SpaceLike
    from findwell.measures import Measure

RESUMED_KIND = "resumed-answer"
ANSWER_FILE = re.compile(r"[0-9a-f]{16}\.jsonl")  # of one configuration
CALLED_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        return {
            "setting": self.setting.as_dict(),
            **limits_of(self.value),
            "rung": self.rung,
            "queries": self.queries,
            "p50_ms": None if self.timing is None else self.timing.p50,
            "p90_ms": None if self.timing is None else self.timing.p90,
            "failed": self.failed,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Calls:
    """How many questions were to be asked, and how many were."""

    planned: int  # at most, with nothing kept from before
    asked: int  # in this process; attempts that failed included
    kept: int  # answers from before
    failed: int  # questions without an answer


@dataclass(frozen=True, slots=True, eq=False)
class AskedRetriever:
    """What a tuning says about a retriever that was asked."""

    settings: tuple[AskedSetting, ...]  # in the order of the space; the current one may be last
    plan: HalvingPlan
    calls: Calls
    halving: Halving
    queries: tuple[str, ...]  # the columns of its values

    def as_dict(self, tuning: Tuning) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        return {
            "held_out": limits_of(tuning.held_out) | {"n": tuning.held_out.n},
            "settings": [each.as_dict() for each in self.settings],
            "rungs": [[rung.settings, rung.queries] for rung in self.plan.rungs],
            "calls": asdict(self.calls),
        }


def tune_retriever(
    make: Callable[..., Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    *,
    space: SpaceLike | None,
    current: object,
    answers: str | os.PathLike[str] | None,
    announce: Callable[[HalvingPlan, int], None] | None,
    retrieval: RetrievalOptions | None,
    cluster: str | None,
    rule: ChoiceRule,
    queries: object,
    progress: Report | None,
    options: Mapping[str, Any],
) -> Tuning:
    """Find the best configuration of a retriever by successive halving over the queries.

    `make(**setting)` returns a retriever for a value of each knob of the `space`. The configuration
    that is left, and the `current` one (that of the space, or the defaults of `make`), are asked
    questions that were not asked before. `announce` gets the plan and the number of calls
    before anything is asked. `options` are those of `findwell.evaluate`.
    """
    if space is None or gold is None:
        lacking, option = ("space", "--space FILE") if space is None else ("gold", "--gold FILE")
        raise OptionError(
            f"tuning a retriever needs a search space and gold labels; there is no {lacking}",
            fix=f"{option} ({lacking}=); see docs/tuning-retrievers.md",
        )
    space = Space.of(space)
    search = space.search
    if search.how == "optuna":
        raise OptionError(
            "Optuna is for recorded runs; retrievers are asked by successive halving",
            where=f"{space.where}: search",
            fix='how = "random" draws settings of a space that is too large for a grid',
        )
    settings, now = _with_current(make, space, current)
    wanted = expand_measures(measures, options["dialect"], options["rel"])
    measure = wanted[0]
    if measure.aggregation != "mean":
        raise OptionError(f"{measure} is not a mean over queries", fix="choose by one that is")
    reading: dict[str, Any] = {"format": options.get("gold_format")}
    reading["skip_bad"] = options.get("skip_bad", False)
    reading |= {name: options.get(name) for name in ("id_from", "fields")}
    known = load_gold(gold, **reading, texts=True)
    known = with_columns(known, queries)
    table, undefined = _questions(known, queries, measure, options)
    column = cluster_column(known.queries, cluster)
    clusters = None if column is None else table[column].to_list()
    plan = plan_halving(
        len(settings), table.height, eta=search.eta, first=search.first, final=search.final
    )
    order, final = deal_queries(
        table["question"].to_list(), plan, seed=search.seed, clusters=clusters
    )
    plan = replace(plan, final=len(final))
    trials = RetrieverTrials(
        make=make,
        settings=settings,
        retrieval={**space.retrieval, **(retrieval or {})},
        folder=None if answers is None else Path(answers),
        table=table,
        gold=known,
        measures=wanted,
        options=options,
        planned=plan.calls(1 if now is None else 2),
        progress=progress,
    )
    if announce is not None:
        announce(plan, trials.planned)
    try:
        found = halve(
            trials.measure, plan, order, final, current=now,
            higher_is_better=measure.higher_is_better,
        )  # fmt: skip
    except RetrieverError as error:
        reasons = [f"{settings[at]}: {why}" for at, why in trials.reasons.items()]
        raise RetrieverError("; ".join([error.what, *reasons[:1]]), fix=error.fix) from None
    rule = replace(rule.by(measure), clusters=clusters)
    choice = _choice(found, trials, rule)
    others = []
    for at, other in enumerate(wanted[1:], start=1):
        values, by = trials.values.table[found.chosen, at], rule.by(other)
        inside, held_out = (
            by.only(side).interval(values[side]) for side in (found.search, found.final)
        )
        others.append(MeasuredChoice(str(other), inside.value, held_out))
    rows = tuple(
        AskedSetting(
            setting,
            choice.curve[at],
            sum(at in rung for rung in found.rungs),
            int(found.asked[at]),
            trials.timing(at),
            trials.failures(at),
            trials.reasons.get(at, ""),
        )
        for at, setting in enumerate(settings)
    )
    used = remember(
        known,
        table["query"].gather(found.final),
        what=f"{name_of(make)} by {measure}",
        settings=[identify(setting) for setting in settings],
        values=found.values[[found.chosen, found.chosen if now is None else now]][:, found.final],
        held_out=choice.held_out.value,
    )
    return Tuning(
        engine=name_of(make),
        measures=wanted,
        grid=SettingGrid(tuple(settings), None, "knobs"),
        choice=choice,
        gains=_gains(found, trials, rule, now),
        current=None if now is None else settings[now],
        findings=(*known.findings, *undefined, *trials.limits, *used, *trials.all_findings(rows)),
        level=rule.level,
        cluster=column,
        others=tuple(others),
        source=AskedRetriever(
            rows,
            plan,
            Calls(trials.planned, trials.calls, trials.kept, sum(row.failed for row in rows)),
            found,
            tuple(table["query"]),
        ),
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
                f"{current!r} is not a setting of a retriever",
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
    return (settings, same[0]) if same else ([*settings, Knobs(today)], len(settings))


def _questions(
    gold: Gold, queries: object, measure: Measure, options: Mapping[str, Any]
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return the questions to ask: those of queries on which the measure can have a value."""
    table = questions_for(gold, queries)
    extra = [name for name in gold.queries.columns if name not in table.columns]
    table = table.hstack(gold.queries.select(extra)) if extra else table
    if Plan.of([measure], **options).judge is not None:
        return table, []  # what a judge would say is not known before it is asked
    empty: dict[str, list[str]] = {query: [] for query in table["query"]}
    (values,) = execute(Plan.of([measure], level=None, **options), empty, gold).arrays.values()
    known = ~np.isnan(values)
    if not known.any():
        return table, []
    message = "# query|queries has|have no value of the measure and is|are not asked."
    undefined = finding_about("undefined-query", table["query"].filter(~known), message)
    return table.filter(pl.Series(known)), undefined


def _choice(found: Halving, trials: RetrieverTrials, rule: ChoiceRule) -> Choice:
    """Return the setting that is left, and what it is worth on queries that did not choose it."""

    def interval(setting: int, queries: Ints) -> Estimate:
        return rule.only(queries).interval(found.values[setting, queries])

    curve = tuple(interval(setting, found.search) for setting in range(len(found.values)))
    in_sample, held_out = curve[found.chosen], interval(found.chosen, found.final)
    both = in_sample.value is not None and held_out.value is not None
    # of the last rung: what cannot be ruled out as the best, and how often the choice wins
    plateau, stability = [found.chosen], None
    left = [each for each in found.rungs[-1] if each not in trials.reasons]
    values = found.values[left][:, found.search]
    known = ~np.isnan(values).any(axis=0)
    if known.sum() >= FEWEST_QUERIES and len(left) >= 2:
        last = choose_setting(
            values[:, known], replace(rule.only(found.search[known]), folds=2, repeats=1)
        )
        plateau = [left[number] for number in last.plateau]
        stability = float(last.votes[left.index(found.chosen)])
    return Choice(
        chosen=found.chosen,
        best=found.chosen,
        in_sample=in_sample,
        held_out=held_out,
        optimism=optimism_of(in_sample, held_out, rule) if both else None,
        plateau=tuple(plateau),
        stability=stability,
        curve=curve,
        values=found.values[found.chosen, found.final],
    )


def _gains(
    found: Halving, trials: RetrieverTrials, rule: ChoiceRule, current: int | None
) -> tuple[Gain, ...]:
    """Return the gain over the current setting, on queries that did not choose."""
    if current is None:
        return ()
    before, after = found.values[[current, found.chosen]][:, found.final]
    (gain,) = gains_over(after, {CURRENT: before}, rule.only(found.final))
    reason = gain.verdict.reason
    if current == found.chosen:
        reason = "the current setting is the best that was found"
    elif current in trials.reasons:
        reason = f"the current setting failed: {trials.reasons[current]}"
    return (replace(gain, verdict=replace(gain.verdict, reason=reason)),)


@dataclass(frozen=True)
class ConfiguredRetriever(Retriever):
    """A retriever that is known by how it was configured, not by its own name.

    What a function makes is often a closure or a partial object, of which nothing stays the same
    between processes.
    """

    configuration: str = ""

    @property
    def identity(self) -> str:
        """Return what answers are kept under."""
        return self.configuration


@dataclass(slots=True, eq=False, kw_only=True)
class RetrieverTrials:
    """Asks retrievers made by `make(**setting)`, one for each setting, and measures what they find.

    `folder` keeps the answers of each configuration in a file of its own. A retriever is made when
    it is asked, and let go afterwards: configurations may each hold an index in memory.
    """

    make: Callable[..., Any]
    settings: Sequence[Knobs]
    retrieval: Mapping[str, Any]  # options of `findwell.retrievers.Retriever`
    folder: Path | None
    table: pl.DataFrame  # the queries with their questions
    gold: Gold
    measures: tuple[Measure, ...]  # the first one chooses
    options: Mapping[str, Any]  # of `findwell.evaluate`
    planned: int  # questions
    progress: Report | None
    calls: int = 0  # questions asked so far, attempts that failed included
    kept: int = 0  # answers that were kept from before
    reasons: dict[int, str] = field(default_factory=dict)  # why settings were given up
    about: dict[int, list[pl.DataFrame]] = field(default_factory=dict)  # what asking cost
    findings: list[Finding] = field(default_factory=list)
    limits: list[Finding] = field(default_factory=list)  # what a judge's verdicts are worth
    values: Values = field(init=False)  # of all settings; NaN where one was not asked
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Check what was given, before anything is asked."""
        shape = len(self.settings), len(self.measures), self.table.height
        names = tuple(map(str, self.settings))
        self.values = Values(self.table, names, self.measures, np.full(shape, np.nan))
        Retriever(lambda _: [], **{**self.retrieval, "resume": None})  # checks the options
        if self.folder is not None:
            try:
                make_folder(self.folder)
            except OSError as error:
                raise SaveError(
                    f"answers cannot be kept here: {error.strerror}", where=str(self.folder)
                ) from None

    def measure(self, settings: Sequence[int], queries: Ints) -> tuple[Floats, Bools]:
        """Return what settings are worth by the first measure on queries, and which of them failed.

        The values of all measures are kept.
        """
        order = np.sort(queries)  # as the gold labels have them
        part = self.table[order]
        runs = {}
        for number in settings:
            run = self._ask(number, part.select("query", "question"))
            self._done += part.height
            if run is None:
                continue
            runs[str(number)] = replace(run, name=str(number), about=None)
            if run.about is not None:
                self.about.setdefault(number, []).append(run.about)
        if runs:
            gold = _only(self.gold, part["query"])
            result = execute(Plan.of(self.measures, level=None, **self.options), runs, gold)
            self.findings += [finding for finding in result.findings if finding.run]
            self.limits = limit_findings(result.judge, result.matched_by)
            found = result.measured
            for number, values in zip(map(int, found.runs), found.table, strict=True):
                self.values.table[number, :, order] = values.T
        failed = np.array([number in self.reasons for number in settings])
        return self.values.table[list(settings), 0][:, queries], failed

    def timing(self, number: int) -> Timing | None:
        """Return what asking a setting cost."""
        tables = self.about.get(number)
        return None if tables is None else timing(pl.concat(tables, how="diagonal"))

    def failures(self, number: int) -> int:
        """Return how many questions a setting did not answer."""
        return sum(table["error"].count() for table in self.about.get(number, []))

    def all_findings(self, rows: Sequence[AskedSetting]) -> Iterator[Finding]:
        """Return what is worth knowing about what was asked."""
        yield from merge_findings(replace(each, run="") for each in self.findings)
        if self.kept:
            yield Finding(
                RESUMED_KIND,
                self.kept,
                (str(self.folder),),
                "# answer|answers was|were kept from before and not asked for again.",
                "--fresh, or another folder (answers=), asks again",
            )
        given_up = [f"{row.setting}: {row.reason}" for row in rows if row.reason]
        yield from finding_about(
            "failed-setting", given_up, "# setting|settings was|were given up.", "see the reasons"
        )

    def _ask(self, number: int, queries: pl.DataFrame) -> Run | None:
        """Ask one configuration questions, but for those that it has answered; None: it fails."""
        decisive: list[Any] = [describe(self.make), identify(self.settings[number])]
        decisive += [self.retrieval.get("k"), self.retrieval.get("id_from")]
        # a hash of what decides about the answers of a configuration
        identity = hashlib.sha256(json.dumps(decisive, default=str).encode()).hexdigest()[:16]
        log = None if self.folder is None else self.folder / f"{identity}.jsonl"
        if log is not None and log.exists():
            with AnswerLog(log, identity, queries.rows()) as known:
                if len(known.answers) >= queries.height:  # the retriever need not be made
                    self.kept += queries.height
                    answers = [known.answers[at] for at in range(queries.height)]
                    return to_run(str(self.settings[number]), queries, answers)
        made = self._made(number, identity, log)
        if made is None:
            return None
        try:
            run = ask_all(made, queries, self._reporter(number))
        except RetrieverError as error:
            self.reasons[number] = error.what
            return None
        self.kept += sum(found.count for found in run.findings if found.kind == RESUMED_KIND)
        return replace(
            run, findings=tuple(each for each in run.findings if each.kind != RESUMED_KIND)
        )

    def _made(self, number: int, identity: str, log: Path | None) -> ConfiguredRetriever | None:
        """Make a retriever that counts what it is asked; None where the function refuses."""
        try:
            made = self.make(**self.settings[number])
        except Exception as error:  # noqa: BLE001 - whatever the function of the user raises
            lines = str(error).strip().splitlines() or [""]
            reason = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
            self.reasons[number] = f"it cannot be made: {reason}"
            return None
        if inspect.isawaitable(made):
            if inspect.iscoroutine(made):
                made.close()
            raise OptionError(
                f"{name_of(self.make)} returned something to be awaited",
                fix="make it a plain function; what it returns may be async",
            )
        own = {}
        if isinstance(made, Retriever):
            own = {each.name: getattr(made, each.name) for each in fields(Retriever)}
            made = own.pop("target")
        chosen = {**own, **self.retrieval, "name": str(self.settings[number]), "resume": log}
        call = self._counted(call_of(made, chosen.get("k")))
        return ConfiguredRetriever(call, **chosen, configuration=identity)

    def _counted(self, call: Call) -> Callable[[str], Any]:
        def ask(question: str) -> Any:  # noqa: ANN401
            with self._lock:
                self.calls += 1
            return call.function(question)

        async def ask_later(question: str) -> Any:  # noqa: ANN401
            self.calls += 1
            return await call.function(question)

        return ask_later if call.awaited else ask

    def _reporter(self, number: int) -> Report | None:
        if self.progress is None:
            return None
        report, done, name = self.progress, self._done, str(self.settings[number])

        def hand_on(step: Progress) -> None:
            note = f"{name}, {step.note}" if step.note else name
            report(Progress(done + step.done, self.planned, note))

        return hand_on


def _only(gold: Gold, queries: pl.Series) -> Gold:
    """Return the gold labels of some of their queries."""
    inside = pl.col("query").is_in(queries.implode())
    flaws = {query: flaw for query, flaw in gold.flaws.items() if query in set(queries)}
    built = Gold.build(gold.rows().filter(inside), queries=gold.queries.filter(inside), flaws=flaws)
    return replace(built, named_by=gold.named_by, carries=gold.carries)


def check_factory(make: Callable[..., Any], setting: Mapping[str, Any]) -> None:
    """Raise unless the function can be called with the knobs of a setting, by name.

    >>> check_factory(lambda k1, b=0.75: None, {"k2": 1.2})
    Traceback (most recent call last):
    findwell.core.errors.OptionError: space: unknown knob 'k2'
      fix: did you mean k1? (known: k1, b)
    """
    if not callable(make):
        raise OptionError(
            f"a {type(make).__name__} makes no retrievers",
            fix="give a function that takes the knobs by name and returns a retriever",
        )
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # built into the interpreter: nothing is known about it
        return
    known = signature.parameters.values()
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known):
        named = [each.name for each in known if each.kind in CALLED_BY_NAME]
        for knob in setting:
            choose_knob(knob, named, "space")
    try:
        signature.bind(**setting)
    except TypeError as error:
        raise OptionError(
            f"{name_of(make)} cannot be called with the knobs of the space alone: {error}",
            fix="add the knob to the space (one value will do), or give it a default",
        ) from None


def defaults_of(make: Callable[..., Any], knobs: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that the function itself has for the knobs; None unless it has all.

    >>> defaults_of(lambda k1=1.2, b=0.75, n=5: None, ["k1", "b"])
    {'k1': 1.2, 'b': 0.75}
    """
    try:
        known = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return None
    found = {knob: known[knob].default for knob in knobs if knob in known}
    complete = len(found) == len(knobs)
    return found if complete and inspect.Parameter.empty not in found.values() else None


def remove_answers(folder: str | os.PathLike[str]) -> None:
    """Remove the answers that were kept in a folder, and the folder if nothing else is in it.

    Other files stay, and so does what a link points to: the folder's name may not be the user's.
    """
    path = Path(folder)
    if path.is_symlink():
        return
    for each in path.glob("*.jsonl"):
        if ANSWER_FILE.fullmatch(each.name):
            each.unlink(missing_ok=True)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
