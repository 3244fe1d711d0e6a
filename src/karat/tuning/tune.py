"""The best way to fuse runs, and what it is worth on queries that took no part in the choice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import numpy as np
import polars as pl

from karat import display
from karat.align.preflight import only_ids
from karat.core.data import FACTS
from karat.dialects import dialect as find_dialect
from karat.dialects import expand_measures
from karat.errors import InputError, OptionError, choose_column, naming_files
from karat.evaluation.assessment import assess, find_matchers, reads_texts, with_missing
from karat.evaluation.evaluate import cluster_column
from karat.evaluation.inputs import files_of, load_inputs, with_columns
from karat.findings import finding_about, first_findings
from karat.forks import refuse_after_fork
from karat.judges.find import find_judge, on_server
from karat.read.corpus import load_corpus
from karat.relate.match.matcher import MatchContext
from karat.results.store import Input
from karat.statistics.intervals import intervals
from karat.statistics.significance import PERMUTATIONS
from karat.statistics.values import check_share
from karat.tuning.choice import DRAWS, FOLDS, REPEATS, choose_by_slice, choose_setting
from karat.tuning.engines import Engine, find_engine
from karat.tuning.gains import gains_over
from karat.tuning.grid import grid_of, setting_of
from karat.tuning.pool import Pool
from karat.tuning.pooled import FusedLists, PooledEngine, deepest, refuse_lists, setting_values

if TYPE_CHECKING:
    from karat.core.data import Bools, Floats, Gold, Run
    from karat.evaluation.evaluate import InputOptions
    from karat.findings import Finding
    from karat.measures import Measure
    from karat.read import GoldLike, RunLike
    from karat.results.result import Result
    from karat.retrievers.retriever import RetrievalOptions
    from karat.statistics.intervals import Interval
    from karat.tuning.choice import Choice, SliceChoice
    from karat.tuning.engines import Setting
    from karat.tuning.gains import Gain
    from karat.tuning.grid import SettingGrid
    from karat.tuning.halving import HalvingPlan
    from karat.tuning.space import SpaceLike
    from karat.tuning.tune_retriever import RetrieverTuning

MEASURE = "nDCG@10"
MOST_RUNS = 5
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
    held_out: Interval


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
    current_value: Interval | None  # on all queries
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
    def snippet(self) -> str:
        """The configuration of the engine, ready to paste."""
        return self.engine.snippet(self.setting, self.runs)

    def as_dict(self) -> dict[str, Any]:
        """Return the choice as the JSON output prints it."""
        choice, settings = self.choice, self.grid.settings
        return {
            "engine": self.engine.name,
            "runs": list(self.runs),
            "measure": str(self.measure),
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


@overload
def tune(
    runs: Callable[..., Any],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    **options: Any,
) -> RetrieverTuning: ...


@overload
def tune(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    **options: Any,
) -> Tuning: ...


def tune(
    runs: Sequence[RunLike] | Mapping[str, RunLike] | Callable[..., Any],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = MEASURE,
    *,
    engine: str | Engine | None = None,
    space: SpaceLike | None = None,
    current: object = None,
    retrieval: RetrievalOptions | None = None,
    answers: str | os.PathLike[str] | None = None,
    announce: Callable[[HalvingPlan, int], None] | None = None,
    step: float | None = None,
    k: float | None = None,
    window: int | None = None,
    normaliser: str | Sequence[str] | None = None,
    version: str | None = None,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    cluster: str | None = None,
    slices: Iterable[str] | str = (),
    queries: object = None,
    rel: float | None = None,
    dialect: str = "karat",
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    draws: int = DRAWS,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> Tuning | RetrieverTuning:
    """Choose the weights with which an engine fuses two to five runs, and say what they are worth.

    `engine` names the formula (`karat fuse --list` lists them); its weights are searched in even
    `step`s, or its constant where it has no weights. `k`, `window`, `normaliser` and `version` are
    kept at the values given, or at the engine's own. The first measure chooses; the others are
    reported for the same choice.

    A `space` has more than one knob, engines among them: a TOML file or a dict. With a function in
    the place of runs, its knobs are arguments: `make(**setting)` returns a retriever, and
    configurations are asked by successive halving; `retrieval` says how (options of
    `karat.Retriever`), `answers` is a folder that keeps answers, and `announce` is called with the
    plan and the number of calls before anything is asked. See docs/tuning-retrievers.md.

    Each query is scored by a setting that it took no part in choosing: `repeats` times the queries
    are dealt into `folds`, and the setting for a fold is chosen by the others (bagged argmax, see
    `karat.tuning.choice`). Queries that share the value of the column `cluster` stay together.
    `current` is the setting in use: the share of the first of two runs (0.5), weights, or a dict
    of knobs; the choice is tested against it and against each run alone. `slices` are columns of
    the queries: for each of their values a setting of its own is chosen. Further options (`by`,
    `corpus`, `judge`, …) are those of `karat.evaluate`. A judge is asked once about each document.

    >>> gold = {f"q{n}": [f"d{n}"] for n in range(12)}
    >>> lexical = {q: {doc: 9.0, "x": 3.0} for q, (doc,) in gold.items()}
    >>> dense = {q: {"x": 0.9, doc: 0.8} for q, (doc,) in gold.items()}
    >>> found = tune([dense, lexical], gold, "RR", engine="autorag-cc")
    >>> found.choice.held_out.value, [(gain.over, gain.verdict) for gain in found.gains]
    (1.0, [('run 1', 'better'), ('run 2', 'not shown')])
    """
    refuse_after_fork()
    check_share("level", level)
    how = {"dialect": dialect, "rel": rel, "queries": queries}
    sampled = {"level": level, "permutations": permutations, "seed": seed}
    fixed = {"k": k, "window": window, "normaliser": normaliser, "version": version}
    fixed = {name: value for name, value in fixed.items() if value is not None}
    if callable(runs):
        from karat.tuning.tune_retriever import tune_retriever  # noqa: PLC0415 - seldom asked for

        _refuse_idle(
            {"engine": engine, "slices": slices or None, "step": step, **fixed}, "retriever"
        )
        return tune_retriever(
            runs,
            gold,
            measures,
            space=space,
            current=current,
            queries=queries,
            answers=answers,
            level=level,
            cluster=cluster,
            rel=rel,
            dialect=dialect,
            announce=announce,
            retrieval=retrieval,
            **options,
        )
    live = {"retrieval": retrieval, "answers": answers, "announce": announce}
    _refuse_idle(live, "recorded run")
    if space is not None:
        from karat.tuning.tune_space import tune_space  # noqa: PLC0415 - it builds on this module

        _refuse_idle({"step": step, **fixed}, "space")
        return tune_space(
            runs,
            gold,
            measures,
            space=space,
            engine=engine if engine is None or isinstance(engine, str) else engine.name,
            current=current,
            folds=folds,
            repeats=repeats,
            cluster=cluster,
            slices=slices,
            sampled=sampled,
            draws=draws,
            options={**how, **options},
        )
    if engine is None:
        raise OptionError(
            "no engine is named, and so no formula",
            fix="name the one that you use: --engine elasticsearch-rrf (engine=); `karat fuse "
            "--list` lists them",
        )
    formula = find_engine(engine) if isinstance(engine, str) else engine
    named = named_runs(runs)
    grid = grid_of(formula, len(named), step, fixed)
    now = None if current is None else setting_of(formula, len(named), current, fixed)
    place = None if now is None else grid.find(now)
    tried = grid.settings if now is None or place is not None else (*grid.settings, now)
    measured = measure_settings(named, gold, measures, formula, tried, {**how, **options})
    values = measured.values[measured.measures[0]]
    return conclude(
        Tuning,
        measured,
        grid,
        formula,
        tried=len(tried),
        current=now,
        in_use=None if now is None else values[len(grid.settings) if place is None else place],
        cluster=cluster,
        slices=slices,
        sampled=sampled,
        folds=folds,
        repeats=repeats,
        draws=draws,
    )


def _refuse_idle(given: Mapping[str, object], beside: str) -> None:
    idle = [name for name, value in given.items() if value is not None]
    if idle:
        fix = f"write {idle[0]} into the space, below [knobs]"
        raise OptionError(
            f"{idle[0]} has no effect beside a {beside}",
            fix=fix if beside == "space" else f"leave out {idle[0]}",
        )


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
    against = {**({} if in_use is None else {"current": in_use}), **alone}
    names = [slices] if isinstance(slices, str) else list(slices)
    by_slice = tuple(
        _sliced(name, about, values[:settings], choice, grid, clusters, options, draws)
        for name in names
    )
    return kind(
        engine=engine,
        runs=measured.lists.pool.runs,
        measures=measured.measures,
        grid=grid,
        choice=choice,
        gains=gains_over(choice.values, against, clusters=clusters, **options),
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
            first_findings([*measured.findings, *_doubts(choice, values, about, column)])
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


def named_runs(runs: Sequence[RunLike] | Mapping[str, RunLike]) -> dict[str, Any]:
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


def measure_settings(  # noqa: PLR0917
    named: Mapping[str, Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    engine: Engine,
    settings: Sequence[Setting],
    options: Mapping[str, Any],
) -> MeasuredSettings:
    """Read the inputs, draw the relations of all candidates, and measure every setting."""
    found = find_dialect(options["dialect"])
    wanted = expand_measures(measures, found, options["rel"])
    by = options.get("by") or "ids"
    matchers = find_matchers(by, wanted, found)
    refuse_lists(list(matchers.values()))
    judging = [matcher for matcher in matchers.values() if matcher.judged]
    judge, server = on_server(options.get("judge", "local"), options.get("base_url"))
    corpus, id_from = options.get("corpus"), options.get("id_from")
    texts = reads_texts(matchers.values(), wanted)
    with ExitStack() as reading:
        streams, known, inputs = load_inputs(
            _as_given(named),
            gold,
            options.get("run_format"),
            options.get("gold_format"),
            reading,
            skip_bad=options.get("skip_bad", False),
            texts=texts,
            id_from=id_from,
            unlabelled=len(judging) == len(matchers),
            queries=options["queries"],
        )
        inputs += [] if corpus is None else [Input.of("corpus", corpus)]
        reading.enter_context(naming_files(files_of(streams, inputs)))
        described = with_columns(known, options["queries"])
        loaded = [stream.collect() for stream in streams]
        pool = engine.arranged(Pool.of(loaded))
        unshared = _check_queries(pool)
        lists = FusedLists(engine, pool, settings, _columns(pool, loaded) if texts else None)
        drawing = PooledEngine(lists, deepest(wanted))
        result = assess(
            [lists.candidates().stream()],
            described,
            wanted,
            with_missing(found, options.get("missing")),
            by,
            MatchContext(
                corpus=None if corpus is None else load_corpus(corpus, id_from=id_from),
                embedder=options.get("embedder"),
                ids=options.get("ids", "identity"),
                base_url=server,
                tokenizer=options.get("tokenizer"),
            ),
            judge=find_judge(judge) if judging else None,
            engine=drawing,
        )
        values = setting_values(result, drawing, wanted)
    forgotten = options.get("by") is None and not any(measure.relation for measure in wanted)
    findings = [replace(each, run="") for each in result.findings]
    findings += unshared
    findings += only_ids(streams, known) if forgotten else []
    names = pl.DataFrame({"query": result.relation(result.runs[0]).queries})
    return MeasuredSettings(
        lists=lists,
        loaded=tuple(loaded),
        gold=described,
        result=result,
        drawing=drawing,
        measures=wanted,
        values=values,
        queries=names.join(result.queries, on="query", how="left", maintain_order="left"),
        findings=tuple(findings),
        matched_by=result.matched_by[str(wanted[0])],
    )


def _as_given(named: Mapping[str, Any]) -> object:
    """Return runs as they are read: files under their own names."""
    files = all(isinstance(data, str | os.PathLike) for data in named.values())
    return list(named.values()) if files else dict(named)


def _columns(pool: Pool, runs: Sequence[Run]) -> pl.DataFrame | None:
    """Return what the runs say about each candidate beside its id: the first that does."""
    known = [
        run.rows.select("query", "doc", *(name for name in run.rows.columns if name in FACTS))
        for run in runs
    ]
    rows = pl.concat(known, how="diagonal").drop_nulls("doc")
    facts = [name for name in rows.columns if name in FACTS]
    if not facts:
        return None
    rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
    candidates = pl.DataFrame({"query": pool.queries.gather(pool.query), "doc": pool.doc})
    joined = candidates.join(rows, on=["query", "doc"], how="left", maintain_order="left")
    return joined.select(facts)


def _check_queries(pool: Pool) -> list[Finding]:
    """Refuse runs that share no query, and report queries that only some of them have."""
    asked: Bools = np.zeros((len(pool.runs), len(pool.queries)), dtype=bool)
    for number, rank in enumerate(pool.rank):
        asked[number, pool.query[rank > 0]] = True
    for number, name in enumerate(pool.runs[1:], start=1):
        if not (asked[0] & asked[number]).any():
            raise InputError(
                f"it shares no query with {pool.runs[0]}",
                where=f"run {name}",
                fix="fuse runs of the same queries",
            )
    some = asked.any(axis=0) & ~asked.all(axis=0)
    return finding_about(
        "unshared-query",
        pool.queries.filter(pl.Series(some)),
        "query for which some of the runs retrieved nothing: it is fused from the others",
        "let every run answer every query",
    )


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
) -> Interval:
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


def _limits(value: Interval) -> dict[str, float | None]:
    return {"value": value.value, "low": value.low, "high": value.high}
