"""What an evaluation returns: numbers by query, aggregated and by slice, and what made them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from findwell.core import display
from findwell.core.errors import (
    FindwellError,
    InputError,
    MeasureError,
    OptionError,
    choose,
    choose_column,
    nearest,
    takes_options,
)
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import Viewed, as_given, changed, pl, unmade
from findwell.core.slices import has_slices, slice_labels
from findwell.core.spelling import spell_relation
from findwell.core.values import Values
from findwell.evaluation.inputs import DataSet, Input, data_set_of
from findwell.evaluation.results import summaries
from findwell.evaluation.results.summaries import without_method
from findwell.evaluation.results.timing import Timing, timing
from findwell.io.read import Kind, kind_of
from findwell.io.storage.folders import MANIFEST, is_folder
from findwell.judges.limits import judge_limits
from findwell.measures.dialects import resolve_measures, select_measures
from findwell.relations.preflight import SYNTHETIC_COLUMN, synthetic_questions
from findwell.statistics.intervals import aggregate

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.findings import Finding
    from findwell.core.policy import Policy
    from findwell.core.relation import Relation
    from findwell.evaluation.results.estimates import Estimates
    from findwell.measures import Measure


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Where a result came from: enough to make it again."""

    dialect: str
    policy: Policy
    drawn_by: str = "ids"  # the relation of measures that name none
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of each relation
    ids: str = "identity"  # how document ids were normalised
    tokenizer: str = ""  # what counted tokens, if anything did
    inputs: tuple[Input, ...] = ()
    judge: Mapping[str, Any] = field(default_factory=dict)  # who judged: model, prompts, cost
    saved: Mapping[str, Any] = field(default_factory=dict)  # when, and by which versions

    @property
    def data_set(self) -> DataSet:
        """What the numbers were measured on."""
        return data_set_of(each.as_dict() for each in self.inputs)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What a result remembers for reports and explanations, where that was asked for."""

    listed: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # the lists of each run
    verdicts: pl.DataFrame | None = None  # of a judge, about each chunk and item


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How values are summarised."""

    level: float | None = 0.95  # of the intervals; None: no intervals
    cluster: str | None = None  # a column of the queries: those that share a value count as one
    bounds: bool = False  # also the values if all unjudged documents were relevant, or all were not


@dataclass(frozen=True, eq=False, repr=False)
class Result(Viewed, display.Shown):
    """The outcome of `findwell.evaluate`; frames are polars and export Arrow."""

    relations: Mapping[tuple[str, str], Relation]  # by run and by what drew it
    measures: tuple[Measure, ...]
    queries: pl.DataFrame  # query and the columns that describe it
    findings: tuple[Finding, ...]
    provenance: Provenance
    options: SummaryOptions = SummaryOptions()
    # columns about the queries, by run
    about: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    estimates: Estimates | None = None  # from labels of some pairs, where there were any
    runs: list[str] = field(init=False)  # their names
    dialect: str = field(init=False)  # whose numbers these are
    judge: Mapping[str, Any] = field(init=False)  # who judged: name, model, cost; empty: no one
    level: float | None = field(init=False)  # of the intervals; None: without intervals
    n: int = field(init=False)  # how many queries
    query_columns: Sequence[str] = field(init=False)  # of `queries`, which is not made for it

    input_kind: ClassVar = Kind.RESULT

    def __post_init__(self) -> None:
        """Note what is asked for often."""
        self.__dict__.update(
            runs=list(dict.fromkeys(map(itemgetter(0), self.relations))),
            dialect=self.provenance.dialect,
            judge=self.provenance.judge,
            level=self.options.level,
        )
        super().__post_init__()
        given = unmade(self, "queries")
        if given is None or given.strings is None:
            self.__dict__.update(n=self.queries.height, query_columns=self.queries.columns)
        else:
            self.__dict__.update(n=len(given.strings), query_columns=given.columns)

    @property
    def synthetic(self) -> int:
        """How many of the queries a model wrote, as their column `synthetic` says."""
        if SYNTHETIC_COLUMN not in self.query_columns:
            return 0
        return sum(found.count for found in synthetic_questions(self.queries))

    def relation(self, run: str, measure: Measure | None = None) -> Relation:
        """Return the relation of a run that a measure reads, or any of them."""
        if measure is None:
            return next(each for (name, _), each in self.relations.items() if name == run)
        name = measure.relation or self.provenance.drawn_by
        if (run, name) not in self.relations:
            known = dict.fromkeys(name for _, name in self.relations)
            raise MeasureError(
                f"the result has no relation {name!r}",
                fix=f"evaluate again with {measure if measure.relation else f'by={name!r}'}; "
                f"it has {', '.join(known)}",
            )
        found = self.relations[run, name]
        # a relation with a depth of its own, as that of sufficiency, is complete at that depth
        own = self.provenance.settings.get(name, {}).get("depth")
        if found.judged_to is not None and found.judged_to != own:
            depth = measure.depth(listed=found.needed)
            if depth is None or depth > found.judged_to:
                raise MeasureError(
                    f"{measure} needs verdicts that the result does not have: of each list only "
                    f"the first {found.judged_to} were judged by {name}",
                    fix=f"evaluate again with {measure}",
                )
        return found

    def relation_name(self, measure: Measure) -> str:
        """Name the relation that a measure reads, with its parameters."""
        name = measure.relation or self.provenance.drawn_by
        settings = self.provenance.settings.get(name)
        return spell_relation(name, settings) if settings else name

    @property
    def matched_by(self) -> dict[str, str]:
        """The relation that each measure reads, with its parameters."""
        names = [self.relation_name(measure) for measure in self.measures]
        return dict(zip(map(str, self.measures), names, strict=True))

    @cached_property
    def measured(self) -> Values:
        """What was measured, run by run and query by query: whatever concludes reads only this."""
        refuse_after_fork()
        runs, shape = self.runs, (len(self.runs), len(self.measures), self.n)
        table, failed = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        asked = np.zeros((len(runs), self.n), dtype=bool)
        reasons: dict[tuple[str, Measure], Mapping[int, str]] = {}
        try:
            names = dict.fromkeys(measure.relation for measure in self.measures)
            for at, name in product(range(len(runs)), names):
                mine = {i: each for i, each in enumerate(self.measures) if each.relation == name}
                relation = self.relation(runs[at], next(iter(mine.values())))
                places = self._places(relation)
                asked[at, places] = True
                blocks = [  # which bounds the memory
                    list(map(methodcaller("values", block), mine.values()))
                    for block in relation.blocks()
                ]
                for i, parts in zip(mine, zip(*blocks, strict=True), strict=True):
                    values = np.concatenate(parts)
                    table[at, i, places] = self.defined(relation, mine[i], values)
                    if relation.failed_verdicts is not None:
                        failed[at, i, places] = relation.failed_verdicts
                if relation.reasons:
                    where = np.arange(self.n)[places]
                    why = {int(where[query]): why for query, why in relation.reasons.items()}
                    reasons |= {(runs[at], measure): why for measure in mine.values()}
            bounds = self._bounds(shape)
        except FindwellError as error:
            read = (each for each in self.provenance.inputs if each.role in ("gold", "samples"))
            file = next(filter(None, (each.path for each in read)), "gold")
            raise error.in_files({"gold": file})  # noqa: B904 - it is the same error
        return Values(
            queries=as_given(self, "queries"),
            runs=tuple(runs),
            measures=self.measures,
            table=table,
            asked=None if asked.all() else asked,
            reasons=reasons,
            failed=failed if failed.any() else None,
            bounds=bounds,
        )

    def _places(self, relation: Relation) -> Bools | slice:
        """Tell which of the queries a relation is about; they are in the same order."""
        if relation.n == self.n:
            return slice(None)
        return self.queries["query"].is_in(relation.queries.implode()).to_numpy()

    def _bounds(self, shape: tuple[int, ...]) -> tuple[Floats, Floats] | None:
        """Return bounds of the values, where they were asked for or a judge failed."""
        found = summaries.unjudged_bounds(self) | summaries.failed_bounds(self)
        if not found:
            return None
        sides, row = np.full((2, *shape), np.nan), {each: i for i, each in enumerate(self.measures)}
        for (run, measure), ends in found.items():
            places = self._places(self.relation(run, measure))
            for side, values in zip(sides, ends, strict=True):
                side[self.runs.index(run), row[measure], places] = values
        return sides[0], sides[1]

    @cached_property
    def arrays(self) -> dict[tuple[str, Measure], Floats]:
        """One value per query for each run and measure, NaN where undefined."""
        return {
            (run, measure): row[self.measured.was_asked(run)]
            for run, rows in zip(self.runs, self.measured.table, strict=True)
            for measure, row in zip(self.measures, rows, strict=True)
        }

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the summary; each says how its interval was made, or why it has none."""
        return [row for run in self.runs for row in summaries.rows(self, run)]

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row for each run and measure."""
        return pl.DataFrame(map(without_method, self.rows), schema=self._schema)

    @property
    def _schema(self) -> dict[str, Any]:
        return summaries.schema(bounds=self.measured.bounds is not None)

    @cached_property
    def interval(self) -> dict[str, Any]:
        """The level of the intervals, the column that clusters queries, methods, and reasons."""
        found: dict[str, Any] = {"level": self.level, "cluster": self.options.cluster}
        found |= {"methods": {run: {} for run in self.runs}, "reasons": {}}
        for row in self.rows:
            found["methods"][row["run"]][row["measure"]] = row["method"]
            if row["reason"] is not None:
                found["reasons"].setdefault(row["run"], {})[row["measure"]] = row["reason"]
        return found

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """One row for each run, measure and query; an undefined value is null, with its reason."""
        return self.measured.frame()

    def misses(self, measure: str | None = None) -> pl.DataFrame:
        """Return the relevant items that were missed, each with its cause, one row for each.

        The cause is "not retrieved", "below the cutoff", "behind duplicates", "over the budget" or
        "unjudged"; `rank` is where the item stands, if anywhere.
        The cutoff is that of the measure, by default the first one.

        >>> from findwell import evaluate
        >>> result = evaluate({"q": ["a", "x", "b"]}, {"q": ["b", "c"]}, "recall@2")
        >>> result.misses().select("item", "cause", "rank").rows()
        [('b', 'below the cutoff', 3), ('c', 'not retrieved', None)]
        """
        wanted = self.measures[0] if measure is None else self._find(measure)
        from findwell.evaluation.results.misses import misses  # noqa: PLC0415

        return pl.concat(misses(run, self.relation(run, wanted), wanted) for run in self.runs)

    @cached_property
    def timing(self) -> dict[str, Timing]:
        """What retrieval took, by run, where its records or the queries say so."""
        own = {run: timing(table, self.level) for run, table in self.about.items()}
        shared = timing(self.queries, self.level) if len(self.query_columns) > 1 else None
        found = {run: own.get(run) or shared for run in self.runs}
        return {run: each for run, each in found.items() if each is not None}

    def timing_by(self, column: str) -> dict[str, dict[str, Timing]]:
        """What retrieval took by the values of a column: for each run, by slice."""
        values = self._slices(column)["slice"].fill_null("(none)").unique().sort()
        slices = {value: self.where(column, value).timing for value in values}
        return {
            run: {value: found[run] for value, found in slices.items() if run in found}
            for run in self.timing
        }

    @property
    def values(self) -> dict[str, float | None]:
        """The aggregated value of every measure; for several runs, keyed `run: measure`."""
        several = len(self.runs) > 1
        return {
            f"{run}: {measure}" if several else str(measure): self._aggregated(run, measure)
            for run, measure in self.arrays
        }

    def _aggregated(self, run: str, measure: Measure) -> float | None:
        """Return the value over all queries: of those measured, or as labels make estimate it."""
        found = self.estimates and self.estimates.best(run, str(measure))
        return found.value if found else aggregate(measure, self.arrays[run, measure]).value

    __iter__ = None  # it is read by name: Python would try the numbers 0, 1, 2 as names

    def __getitem__(self, key: str | tuple[str, str]) -> float | None:
        """Return an aggregated value: `result["recall@5"]`, `result["bm25", "recall@5"]`."""
        run, name = key if isinstance(key, tuple) else (None, key)
        if run is None:
            if len(self.runs) > 1:
                raise MeasureError(
                    f"there are several runs: {', '.join(self.runs)}",
                    fix=f"name one: result[{self.runs[0]!r}, {name!r}]",
                )
            run = self.runs[0]
        choose("run", run, self.runs)
        return self._aggregated(run, self._find(name))

    def by(self, column: str) -> pl.DataFrame:
        """Aggregate by the values of a column: one row per run, slice and measure."""
        refuse_after_fork()
        rows: list[dict[str, Any]] = []
        for run in self.runs:
            slices = self.queries.select("query").join(
                self._slices(column, run), on="query", how="left", maintain_order="left"
            )["slice"]
            asked = np.zeros(self.n, dtype=bool)
            asked[self.measured.was_asked(run)] = True
            for value in slices.filter(asked).unique(maintain_order=True):
                inside = slices.eq_missing(value).to_numpy() & asked
                found = summaries.rows(self, run, inside)
                rows += ({"slice": value, **without_method(row)} for row in found)
        return pl.DataFrame(rows, schema={"run": pl.String, "slice": pl.String} | self._schema)

    def _slices(self, column: str, run: str | None = None) -> pl.DataFrame:
        """Return the slice of each query by a column of the queries, or else of a run.

        Runs know when they were asked what; without a name, the first that knows it decides.
        """
        own = [self.about[name] for name in ([run] if run else self.runs) if name in self.about]
        tables = [self.queries, *own, *self.about.values()]
        table = next((each for each in tables if has_slices(each, column)), self.queries)
        return table.select("query", slice_labels(table, column).alias("slice"))

    def score(self, measures: Iterable[str | Measure] | str, *, rel: float | None = None) -> Result:
        """Score again with other measures; the inputs are not needed for that."""
        scored = resolve_measures(measures, self.dialect, rel)
        if self.estimates is None or scored == self.measures:
            return replace(self, measures=scored)
        findings = (*self.findings, *self.estimates.unlabelled())
        return replace(self, measures=scored, estimates=None, findings=findings)

    @takes_options(SummaryOptions)
    def with_options(self, **changes: Any) -> Result:  # noqa: ANN401
        """Return the result summarised otherwise: `level`, `cluster`, `bounds`."""
        return replace(self, options=replace(self.options, **changes))

    def only(self, run: str) -> Result:
        """Return the result of one of several runs."""
        refuse_after_fork()
        choose("run", run, self.runs)
        verdicts = self.kept.verdicts
        return changed(
            self,
            relations={key: each for key, each in self.relations.items() if key[0] == run},
            findings=tuple(found for found in self.findings if found.run in ("", run)),
            about={name: each for name, each in self.about.items() if name == run},
            kept=Kept(
                {name: each for name, each in self.kept.listed.items() if name == run},
                None if verdicts is None else verdicts.filter(pl.col("run") == run),
            ),
        )

    def where(self, column: str, value: str) -> Result:
        """Return the result of the queries that have this value in a column; `(none)`: no value.

        >>> from findwell import evaluate
        >>> records = [
        ...     {"id": "q1", "retrieved": ["a"], "gold": ["a"], "topic": "tea"},
        ...     {"id": "q2", "retrieved": ["b"], "gold": ["c"], "topic": "ink"},
        ... ]
        >>> evaluate(records, measures=["RR"]).where("topic", "tea")["RR"]
        1.0
        """
        refuse_after_fork()
        about = self._slices(column)
        label = self.queries.join(about, on="query", how="left", maintain_order="left")["slice"]
        label = label.fill_null("(none)")
        inside = self.queries.filter(label == value)
        if not inside.height:
            choose(f"value of {column}", value, label.unique(maintain_order=True).to_list())
        return self.among(inside["query"])

    def among(self, names: pl.Series) -> Result:
        """Return the result of some queries."""
        queries = names.implode()
        verdicts = self.kept.verdicts
        return replace(
            self,
            queries=self.queries.filter(pl.col("query").is_in(queries)),
            relations={
                key: each.select(each.queries.is_in(queries).to_numpy())
                for key, each in self.relations.items()
            },
            about=summaries.of_queries(self.about, queries),
            kept=Kept(
                summaries.of_queries(self.kept.listed, queries),
                None if verdicts is None else verdicts.filter(pl.col("query").is_in(queries)),
            ),
        )

    @takes_options()
    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the result as a folder, whole or not at all; `findwell.load` reads it again."""
        from findwell.evaluation.results.store import save  # noqa: PLC0415 - it reads results, too

        return save(self, folder)

    def as_dict(
        self, *, per_query: bool = False, by: Iterable[str] = (), misses: bool = False
    ) -> dict[str, Any]:
        """Return the result as the JSON output prints it."""
        by = list(by)
        slices = [
            {"column": column, **row}
            for column in by
            for row in self.by(column).iter_rows(named=True)
        ]
        timings = [{"run": run, **found.as_dict()} for run, found in self.timing.items()]
        sliced = [
            {"column": column, "slice": value, "run": run, **found.as_dict()}
            for column in by
            for run, found_by in self.timing_by(column).items()
            for value, found in found_by.items()
        ]
        return {
            "summary": [without_method(row) for row in self.rows],
            **({"synthetic": self.synthetic} if self.synthetic else {}),
            **({"slices": slices} if slices else {}),
            **({"per_query": self.per_query.to_dicts()} if per_query else {}),
            **({"misses": self.misses().to_dicts()} if misses else {}),
            **({"timing": timings} if timings else {}),
            **({"timing_slices": sliced} if sliced else {}),
            "findings": [finding.as_dict() for finding in self.findings],
            "dialect": self.dialect,
            "interval": self.interval,
            "matched_by": self.matched_by,
            "relation": self.provenance.drawn_by,
            "relations": {name: dict(values) for name, values in self.provenance.settings.items()},
            "policies": self.provenance.policy.as_dict(),
            **({"tokenizer": self.provenance.tokenizer} if self.provenance.tokenizer else {}),
            **({"judge": {**self.judge, "limits": judge_limits(self.judge)}} if self.judge else {}),
            **({} if self.estimates is None else self.estimates.as_dict()),
        }

    def metrics(self) -> dict[str, float]:
        """Return every number, flat, by names that MLflow, W&B and TensorBoard accept.

        `recall@5` is `recall_at_5`, its interval `recall_at_5.low` and `recall_at_5.high`; with
        several runs each name begins with that of its run: `bm25/recall_at_5`. A measure without
        a value is left out.

        >>> from findwell import evaluate
        >>> evaluate({"q": ["a"]}, {"q": ["a"]}, "recall@5", level=None).metrics()
        {'recall_at_5': 1.0, 'queries': 1.0}
        """
        from findwell.evaluation.results.trackers import flat_metrics  # noqa: PLC0415

        return flat_metrics(self)

    def log(self, tracker: object, *, step: int | None = None) -> None:
        """Log `metrics()` to an experiment tracker.

        `tracker` is `mlflow` or `wandb`, which log to the run that is active there, or an object
        that logs: a run of W&B, a `SummaryWriter` of TensorBoard, a logger of Lightning.
        """
        from findwell.evaluation.results.trackers import log_metrics  # noqa: PLC0415

        log_metrics(self.metrics(), tracker, step)

    def plot(
        self,
        chart: str | None = None,
        *,
        baseline: str | None = None,
        only: tuple[str, str] | None = None,
    ) -> display.Picture:
        """Return a chart of this name, or the first one; notebooks show it, `save` writes it.

        The names are those of `findwell report --chart`: `forest`, `ladder`, `causes`,
        `where SYSTEM`, `curve recall`, `distribution recall@5`. `baseline` is the run that others
        are compared with; `only` is a column of the queries and a value.

        >>> from findwell import evaluate
        >>> result = evaluate({"q": ["a", "b"]}, {"q": ["b"]}, "recall@5")
        >>> result.plot("curve recall")
        <chart curve recall: recall at cutoffs 1 to 2: run from 0.000 to 1.000>
        """
        return display.plot(self, chart, baseline=baseline, only=only)

    def _find(self, name: str) -> Measure:
        same = select_measures(name, self.measures, self.dialect)
        if len(same) == 1:
            return same[0]
        known = [str(measure) for measure in self.measures]
        (wanted,) = resolve_measures(name, self.dialect)
        raise MeasureError(
            f"{wanted} was not measured",
            fix=f"{nearest(name, known)} (measured: {', '.join(known)}); "
            "result.score([…]) measures more".strip(),
        )

    def defined(
        self, relation: Relation, measure: Measure, values: Floats, *, failed: bool = True
    ) -> Floats:
        """Apply what the policies say about queries without a value."""
        if self.provenance.policy.no_relevant == "zero":
            values = np.where(measure.undefined(relation), 0.0, values)
        if not relation.reasons:
            return values
        undefined = np.isin(np.arange(relation.n), list(relation.reasons))
        return np.where(undefined if failed else undefined & ~relation.failed, np.nan, values)


def _load(folder: str | os.PathLike[str]) -> Result:
    from findwell.evaluation.results.store import load  # noqa: PLC0415 - most have no folder

    return load(folder)


def as_result(data: Any) -> Result | None:  # noqa: ANN401
    """Return a result, or the one that a folder holds; None for everything else."""
    kind = kind_of(data)
    if kind is Kind.PATH and is_folder(data):
        return _load(data)
    return data if kind is Kind.RESULT else None


def load_only(paths: Sequence[str]) -> Result | None:
    """Return the result of the only path; None if none of them is the folder of a result."""
    if not any(is_folder(path) and (Path(path) / MANIFEST).is_file() for path in paths):
        return None
    if len(paths) > 1:
        raise OptionError(
            "only one saved result can be used instead of runs",
            fix="name one folder, or put several side by side: findwell compare, findwell report",
        )
    return _load(paths[0])


def require_result(data: Any) -> Result:  # noqa: ANN401
    """Return a result, or the one that a folder holds."""
    kind = kind_of(data)
    if kind in {Kind.PATH, Kind.RESULT}:
        return data if kind is Kind.RESULT else _load(data)
    raise InputError(
        f"this is not a result, but {type(data).__name__}",
        fix="give what findwell.evaluate returns, or the folder that Result.save wrote",
    )


def refuse_inputs(names: Iterable[str]) -> None:
    """Raise if there is any of these options: they say how inputs are read, and none are read."""
    for name in names:
        raise OptionError(
            f"{name} has no effect: it says how inputs are read, and a saved result was "
            "evaluated before",
            fix="leave it out, or name the run file instead of the result",
        )


def same_dialect(result: Result, name: str, where: str = "") -> None:
    """Raise unless a result was measured in this dialect."""
    if result.dialect != name:
        raise OptionError(
            f"the result was measured in the dialect {result.dialect}, not in {name}",
            where=where,
            fix=f"leave the dialect out, or evaluate the run again in the dialect {name}",
        )


def rescore(
    result: Result,
    measures: Iterable[str | Measure] | str | None = None,
    *,
    rel: float | None = None,
    level: float | None = None,
    cluster: str | None = None,
    bounds: bool = False,
) -> Result:
    """Score a result again with other measures or options; those left out stay as they were.

    The level 0 means no intervals.
    """
    if measures is not None or rel is not None:
        names = [str(each) for each in result.measures] if measures is None else measures
        result = result.score(names, rel=rel)
    if cluster is not None:
        result = result.with_options(cluster=choose_column(result.queries, cluster))
    if level is not None:
        result = result.with_options(level=level or None)
    return result.with_options(bounds=True) if bounds else result
