"""What `findwell.spark.evaluate` returns: a summary here, the values of the queries in Spark."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import AlignError, InputError, MeasureError, OptionError, choose
from findwell.core.findings import Finding, FindingKind, first_findings
from findwell.core.frames import pl
from findwell.core.spelling import counted, spell_relation
from findwell.core.values import BOUNDS
from findwell.evaluation.assessment import provenance_of
from findwell.evaluation.results.provenance import Input
from findwell.evaluation.results.result import Result, SummaryOptions
from findwell.evaluation.results.store import manifest_of, result_of
from findwell.evaluation.results.summaries import METHOD, schema
from findwell.evaluation.spark.session import TABLE, naming_errors
from findwell.evaluation.spark.summary import (
    ALL,
    NOTED,
    SCHEMA,
    Notes,
    SummaryPlan,
    Tally,
    value_of,
)
from findwell.evaluation.spark.task import SAMPLE, UNMET, VALUES, relevant_fact
from findwell.evaluation.spark.worker import merge_part, summarise_part
from findwell.judges.limits import judge_limits, judge_lines
from findwell.measures.dialects import resolve_measures, select_measures
from findwell.relations.match.spans import require_places
from findwell.relations.preflight import UnmetRun, no_shared_document
from findwell.statistics.values import bounds_on_scale

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from findwell.evaluation.plan import Plan
    from findwell.measures import Measure

MODES = ("append", "overwrite")
# what Spark escapes in the name of a folder, and reads back
SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


@dataclass(frozen=True, slots=True)
class Made:
    """How a result was made."""

    plan: Plan
    run: str
    run_id: str
    slices: tuple[str, ...] = ()
    bootstrap: int = 0
    sampled: float = 0.0


@dataclass(frozen=True, eq=False)
class SparkResult:
    """What `findwell.spark.evaluate` returns; `summary` is polars, `per_query` a Spark frame."""

    rows: DataFrame  # as `findwell.evaluation.spark.task` returns them
    made: Made
    tallies: Mapping[tuple[str, str | None, int], Tally]
    findings: tuple[Finding, ...]
    counts: Mapping[str, int] = field(default_factory=dict)  # queries, documents, …
    judge: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def summarise(cls, rows: DataFrame, made: Made) -> SparkResult:
        """Add up the values in Spark, and return the result."""
        plan = SummaryPlan(
            statistics=tuple(measure.aggregation for measure in made.plan.measures),
            slices=made.slices,
            samples=made.bootstrap,
            clustered=made.plan.cluster is not None,
        )
        tallies, notes = add_up(rows, plan)
        for at in range(len(made.plan.measures)):  # also where every query is left out
            tallies.setdefault((ALL, None, at), Tally())
        result = cls(rows, made, tallies, (), notes.facts, notes.judge)
        return replace(result, findings=_checked(notes, made))

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.made.run

    @property
    def runs(self) -> list[str]:
        """The names of the runs: one."""
        return [self.made.run]

    @property
    def run_id(self) -> str:
        """What tells this evaluation from others in a table of results."""
        return self.made.run_id

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What was measured."""
        return self.made.plan.measures

    @property
    def dialect(self) -> str:
        """Whose numbers these are."""
        return self.made.plan.dialect.name

    @property
    def level(self) -> float | None:
        """The level of the intervals; None if there are none."""
        return self.made.plan.level

    @property
    def queries(self) -> int:
        """How many queries have a row in the result."""
        first = self.tallies.get((ALL, None, 0))
        return 0 if first is None else first.moments.n + first.undefined + first.failed

    @property
    def matched_by(self) -> dict[str, str]:
        """The relation that each measure reads, with its parameters."""
        plan = self.made.plan
        settings = {name: matcher.settings() for name, matcher in plan.matchers.items()}
        names = {str(each): each.relation or plan.drawn_by for each in self.measures}
        return {each: spell_relation(name, settings.get(name, {})) for each, name in names.items()}

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row for each measure, as in a `findwell.Result`."""
        return self._rows(ALL).drop("slice", *METHOD)

    def by(self, column: str) -> pl.DataFrame:
        """Return one row for each slice of a column, and measure."""
        choose("slice", column, self.made.slices, none="none was asked for")
        return self._rows(column).drop(METHOD)

    @property
    def values(self) -> dict[str, float | None]:
        """The aggregated value of every measure."""
        return dict(self.summary.select("measure", "value").iter_rows())

    __iter__ = None  # it is read by name: Python would try the numbers 0, 1, 2 as names

    def __getitem__(self, name: str) -> float | None:
        """Return an aggregated value: `result["recall@5"]`."""
        same = select_measures(name, self.measures, self.dialect)
        if len(same) != 1:
            (wanted,) = resolve_measures(name, self.dialect)
            measured = ", ".join(map(str, self.measures))
            raise MeasureError(f"{wanted} was not measured", fix=f"measured: {measured}")
        return self.values[str(same[0])]

    def interval_row(self, measure: Measure, level: float) -> dict[str, Any]:
        """Return the row of a measure, with how its interval was made, or why there is none."""
        at = self.measures.index(measure)
        return self._row(at, self.tallies[ALL, None, at], level)

    @cached_property
    def _bounded(self) -> frozenset[int]:
        """The measures with bounds: all where asked for, otherwise those with failed verdicts."""
        failed = {at for (_, _, at), tally in self.tallies.items() if tally.failed}
        return frozenset(range(len(self.measures)) if self.made.plan.bounds else failed)

    def _rows(self, column: str) -> pl.DataFrame:
        found = []
        keys = (key for key in self.tallies if key[0] == column)
        for _, label, at in sorted(keys, key=lambda key: (key[1] is None, key[1] or "", key[2])):
            row = self._row(at, self.tallies[column, label, at], self.level)
            found.append({"slice": label, **row})
        columns = {"run": pl.String(), "slice": pl.String()} | schema(bounds=bool(self._bounded))
        return pl.DataFrame(found, schema=columns | dict.fromkeys(METHOD, pl.String()))

    def _row(self, at: int, tally: Tally, level: float | None) -> dict[str, Any]:
        measure = self.measures[at]
        how = measure.aggregation
        row: dict[str, Any] = {
            "run": self.run,
            "measure": str(measure),
            "value": value_of(tally, how),
            "n": tally.moments.n,
            "undefined": tally.undefined,
            "failed": tally.failed,
            **dict.fromkeys(("low", "high", "method", "reason")),
        }
        if level is not None and how != "sum":  # a count is a count
            low, high = (float(each[0]) for each in bounds_on_scale(measure.bounds, [how]))
            span = tally.moments.interval(
                level, (low, high), statistic=how, undefined=tally.undefined
            )
            span = tally.bootstrapped(span, how, clustered=self.made.plan.cluster is not None)
            row |= {"low": span.low, "high": span.high}
            row |= {"method": span.method or None, "reason": span.reason or None}
        if at in self._bounded:
            row |= {name: getattr(tally, name).value(how) for name in BOUNDS}
        return row

    @property
    def per_query(self) -> DataFrame:
        """One row for each query and measure: run_id, run, query, measure, value, reason.

        A value that is undefined is null, with its reason.
        """
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        names = F.array(*(F.lit(str(measure)) for measure in self.measures))
        columns = [names.alias("measure"), F.col("values").alias("value")]
        nothing = F.array(*[F.lit(None)] * len(self.measures)).cast("array<string>")
        columns += [F.coalesce("reasons", nothing).alias("reason")]
        if self._bounded:
            columns += [F.coalesce(name, "values").alias(name) for name in BOUNDS]
        zipped = F.explode(F.arrays_zip(*columns)).alias("one")
        rows = self.rows.filter(F.col("kind") == VALUES).select("query", zipped)
        return rows.select(
            F.lit(self.run_id).alias("run_id"),
            F.lit(self.run).alias("run"),
            "query",
            "one.*",
        )

    def write(self, place: str, mode: str = "append") -> None:
        """Write `per_query`, to a path or `table:NAME`, cut by run_id.

        In a folder the rows of this run_id take the place of those that it had: writing again after
        a failure leaves nothing twice. `mode="overwrite"` replaces all that is there.
        """
        choose("mode", mode, MODES)
        rows = self.per_query
        with naming_errors():
            if place.startswith(TABLE):
                name = place.removeprefix(TABLE)
                rows.write.mode(mode).partitionBy("run_id").saveAsTable(name)
            elif mode == "overwrite":
                rows.write.mode(mode).partitionBy("run_id").parquet(place)
            else:
                folder = f"{place.rstrip('/')}/run_id={_as_folder(self.run_id)}"
                rows.drop("run_id").write.mode("overwrite").parquet(folder)

    @cached_property
    def sample(self) -> Result:
        """The sampled queries as a result of findwell: for reports, comparisons, explanations."""
        if not self.made.sampled:
            raise OptionError(
                "no queries were sampled", fix="evaluate with sample=0.01 (--sample 0.01)"
            )
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        kept = self.rows.filter(F.col("kind") == SAMPLE).select("query", "data")
        with naming_errors():
            blobs = pl.DataFrame(kept.toArrow())
        if not blobs.height:
            raise OptionError(
                f"no query is in a sample of {self.made.sampled:g}", fix="sample a larger share"
            )
        tables: dict[str, list[pl.DataFrame]] = {}
        for name, data in blobs.iter_rows():
            tables.setdefault(name, []).append(pl.read_ipc(io.BytesIO(data)))
        whole = {
            name: pl.concat(parts, how="diagonal_relaxed").sort("query", maintain_order=True)
            for name, parts in tables.items()
        }
        result = result_of(self._manifest(), whole)
        found = first_findings((*self._about_sample(result), *self.findings))
        return replace(result, findings=tuple(found))

    def _about_sample(self, result: Result) -> list[Finding]:
        if self.made.sampled >= 1:
            return []
        rows = self.summary.head(3).iter_rows(named=True)
        said = tuple(
            f"{row['measure']}: undefined"
            if row["value"] is None
            else f"{row['measure']}: {row['value']:.4f} over {counted(row['n'])}"
            for row in rows
        )
        return [
            Finding(
                "sampled-queries",
                result.queries.height,
                said,
                f"query of a sample: {self.queries} were measured on Spark, the values of all of "
                "them are",
                "look at the summary of the Spark job for the numbers of all queries",
            )
        ]

    def _manifest(self) -> dict[str, Any]:
        """Return what a saved result says of itself, as JSON gives it back."""
        plan = self.made.plan
        empty = Result(
            relations={},
            measures=self.measures,
            queries=pl.DataFrame(schema={"query": pl.String}),
            findings=(),
            provenance=replace(
                provenance_of(plan),
                inputs=(Input("run", "Spark DataFrame"), Input("gold", "Spark DataFrame")),
                judge=self.judge,
            ),
            options=SummaryOptions(plan.level, plan.cluster, plan.bounds),
        )
        manifest = manifest_of(empty) | {"created": "", "versions": {}}
        found: dict[str, Any] = json.loads(json.dumps(manifest))
        return found

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Save the sampled queries as the folder of a result, for report, compare and view."""
        return self.sample.save(folder)

    def close(self) -> None:
        """Let Spark forget the values that it keeps for this result."""
        self.rows.unpersist()

    def as_dict(self, *, by: Iterable[str] = ()) -> dict[str, Any]:
        """Return the result as the JSON output prints it."""
        slices = [
            {"column": column, **row}
            for column in by
            for row in self.by(column).iter_rows(named=True)
        ]
        return {
            "summary": self.summary.to_dicts(),
            **({"slices": slices} if slices else {}),
            "findings": [finding.as_dict() for finding in self.findings],
            "run_id": self.run_id,
            "queries": self.queries,
            "documents": self.counts.get("documents", 0),
            "dialect": self.dialect,
            "interval": {"level": self.level, "cluster": self.made.plan.cluster},
            "matched_by": self.matched_by,
            "policies": self.made.plan.policy.as_dict(),
            **({"judge": {**self.judge, "limits": judge_limits(self.judge)}} if self.judge else {}),
        }

    def __repr__(self) -> str:
        lines = [
            f"  {row['measure']}  "
            + ("undefined" if row["value"] is None else f"{row['value']:.4f}")
            for row in self.summary.iter_rows(named=True)
        ]
        lines = [*lines, *(f"  {line}" for line in judge_lines([self.judge]))]
        head = f"SparkResult({self.run}, {counted(self.queries)}, dialect {self.dialect})\n"
        return head + "\n".join(lines)


def _as_folder(value: str) -> str:
    """Return a value as Spark names the folder of a partition.

    >>> _as_folder("2026/11: 5%")
    '2026%2F11%3A 5%25'
    """
    return SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", value)


def add_up(
    rows: DataFrame, plan: SummaryPlan
) -> tuple[dict[tuple[str, str | None, int], Tally], Notes]:
    """Add up rows in Spark: each partition its own, then all that belong to a key."""
    parts = rows.mapInArrow(_summing(plan), SCHEMA)
    keyed = parts.repartition("column", "slice", "measure")
    merged = keyed.sortWithinPartitions("column", "slice", "measure", "sum1", "sum2")
    found = pl.DataFrame(merged.mapInArrow(_merging(plan), SCHEMA).toArrow())
    notes = Notes()
    tallies = {}
    for row in found.iter_rows(named=True):
        if row["column"] == NOTED:
            notes.add(json.loads(row["notes"]))
        else:
            tallies[row["column"], row["slice"], row["measure"]] = Tally.of(row)
    return tallies, notes


def _summing(
    plan: SummaryPlan,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return summarise_part(plan, batches)

    return work


def _merging(
    plan: SummaryPlan,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return merge_part(plan, batches)

    return work


def _checked(notes: Notes, made: Made) -> tuple[Finding, ...]:
    """Look at what all parts found: some of it is an error of the whole."""
    facts, findings = notes.facts, list(notes.findings)
    if facts.get("documents", 0) and not facts.get("shared", 0):
        extra = next((each for each in findings if each.kind == "extra-query"), None)
        example = "" if extra is None else f": the run has {extra.examples[0]!r}"
        raise AlignError(
            f"run and gold share no query{example}",
            where=f"run {made.run} and gold",
            fix="check that both are about the same queries, and that they are not swapped",
        )
    if facts.get("told", 0) and not facts.get("told_of_gold", 0):
        raise InputError(
            "no query of this table is in the gold",
            where="queries",
            fix="use the query ids of the gold",
        )
    _require_relevant(facts, made)
    missing = next((each for each in findings if each.kind == "missing-query"), None)
    if made.plan.policy.missing == "error" and missing is not None:
        count = counted(missing.count)
        verb = "is" if missing.count == 1 else "are"
        raise AlignError(
            f"{count} of the gold {verb} missing, for example {missing.examples[0]!r}",
            where=f"run {made.run}",
            fix="retrieve for every query, or choose what a missing one means: --missing zero "
            "(trec_eval -c) or --missing skip",
        )
    reading = [each for each in made.plan.matchers.values() if each.reads_texts]
    if len(reading) == 1:
        about_run = [each for each in findings if each.run == made.run]
        left = require_places(about_run, facts.get("documents", 0), f"run {made.run}")
        findings = [each for each in findings if each.run != made.run] + left
    findings = [each for each in findings if each.kind != FindingKind.BARE_TEXT]
    if (
        facts.get("documents", 0)
        and not facts.get("judged", 0)
        and set(made.plan.matchers) == {"ids"}
    ):
        seen = {each.message: each.examples for each in findings if each.kind == UNMET}
        run, gold = (pl.Series(seen.get(side, ()), dtype=pl.String) for side in ("run", "gold"))
        unmet = UnmetRun(made.run, run, facts.get("queries", 0), tuple(findings))
        findings += [
            replace(each, run=made.run)
            for each in no_shared_document(unmet, gold, chosen=made.plan.chosen)
        ]
    return tuple(each for each in findings if each.kind != UNMET)


def _require_relevant(facts: Mapping[str, int], made: Made) -> None:
    """Refuse a gold of which nothing is relevant, as one machine does."""
    policy = made.plan.policy
    if policy.no_relevant != "undefined" or policy.nothing != "zero":
        return
    default = next(iter(made.plan.matchers), "")
    for measure in made.plan.measures:
        matcher = made.plan.matchers.get(measure.relation or default)
        if matcher is None or matcher.judged or not measure.needs_relevant:
            continue
        if facts.get(relevant_fact(measure.level()), 1) == 0:
            raise AlignError(
                f"the gold has no relevant item for {measure}: no grade is {measure.level():g} or "
                "more",
                where="gold",
                fix="relevant means a grade of at least 1, or of --rel; check the grade column",
            )
