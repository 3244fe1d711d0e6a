"""What `findwell.spark.evaluate` returns: a result whose values are here and whose lists are not.

Summaries, slices, comparisons, gates and tables read `Values`, so they are those of every other
result. The retrieved lists stay in Spark; what needs them reads `SparkResult.sample`.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from findwell.core.errors import InputError, MeasureError, OptionError, choose, takes_options
from findwell.core.findings import Finding, FindingKind, first_findings, merge_findings
from findwell.core.frames import pl
from findwell.core.spelling import counted
from findwell.core.values import BOUNDS, Values
from findwell.evaluation.evaluate import cluster_column, provenance_of
from findwell.evaluation.inputs import Input, no_known_query
from findwell.evaluation.results.result import Result, SummaryOptions
from findwell.evaluation.results.store import manifest_of, result_of
from findwell.evaluation.spark.session import TABLE, naming_errors, open_session, read_frame
from findwell.evaluation.spark.task import UNMET_ID
from findwell.evaluation.spark.value_rows import NOTES, ROW, SAMPLE, VALUES, values_of
from findwell.relations.match.spans import require_places
from findwell.relations.pipeline import require_relevant
from findwell.relations.preflight import (
    UnmetRun,
    missing_error,
    no_shared_document,
    no_shared_query,
    refuse_hashes,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from findwell.core.relation import Relation
    from findwell.evaluation.plan import Plan
    from findwell.evaluation.spark.task import TaskPlan
    from findwell.measures import Measure

MODES = ("append", "overwrite")
WRITTEN_COLUMNS = ("run", "query", "measure", "value", "reason", "provenance")  # but for run_id
NO_RELATION = {"run": pl.String, "relation": pl.String, "lenient": pl.Int32}
# what Spark escapes in the name of a folder, and reads back
SPECIAL_CHARACTER = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


@dataclass(frozen=True, eq=False, repr=False)
class ValuesResult(Result):
    """A result that has the values of its queries and nothing of the lists that they came from."""

    stored: Values = field(kw_only=True)

    def __post_init__(self) -> None:
        """Take the names of the runs from the values."""
        super().__post_init__()
        self.__dict__["runs"] = list(self.stored.runs)

    @cached_property
    def measured(self) -> Values:
        """The values of the measures; nothing else can be measured without the lists."""
        known, wanted = self.stored.measures, self.measures
        for measure in wanted:
            if measure not in known:
                raise MeasureError(
                    f"{measure} was not measured",
                    fix=f"evaluate with it, too (measured: {', '.join(map(str, known))})",
                )
        if wanted == known:
            return self.stored
        at, stored = [known.index(measure) for measure in wanted], self.stored
        return replace(
            stored,
            measures=wanted,
            table=stored.table[:, at],
            failed=None if stored.failed is None else stored.failed[:, at],
            bounds=stored.bounds and (stored.bounds[0][:, at], stored.bounds[1][:, at]),
        )

    def relation(self, run: str, measure: Measure | None = None) -> Relation:
        """Raise the error that says where the lists are."""
        del run, measure
        raise OptionError(
            "this needs the retrieved lists, which stayed in Spark",
            fix="evaluate with sample=0.01 and use result.sample (-S sample=0.01 --save DIR)",
        )

    def among(self, names: pl.Series) -> Self:
        """Return the result of some queries."""
        inside = self.queries["query"].is_in(names.implode()).to_numpy()
        return replace(self, queries=self.queries.filter(inside), stored=self.stored.only(inside))


@dataclass(frozen=True, eq=False, repr=False)
class SparkResult(ValuesResult):
    """A result of `findwell.spark.evaluate`; `table` has the values as a Spark frame."""

    task_rows: DataFrame = field(kw_only=True)
    labels: tuple[str, ...] = ()  # the columns about the queries
    run_id: str = ""  # distinguishes this evaluation from others in a table of results
    documents: int = 0
    sampled: float = 0.0

    @classmethod
    def of(
        cls,
        found: pl.DataFrame,
        plan: Plan,
        task: TaskPlan,
        *,
        task_rows: DataFrame,
        run_id: str = "",
        sampled: float = 0.0,
        about_judge: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
    ) -> SparkResult:
        """Return the result of rows that all tasks returned."""
        notes = BatchNotes()
        for data in found.filter(pl.col("kind") == NOTES)["data"]:
            notes.add(json.loads(data))
        findings = notes.check(plan, task.run)
        values = values_of(found, task.run, plan.measures, task.labels)
        inputs = Input("run", "Spark DataFrame"), Input("gold", "Spark DataFrame")
        cluster = cluster_column(values.queries, plan.cluster)
        return cls(
            relations={},
            measures=plan.measures,
            queries=values.queries,
            findings=findings,
            provenance=replace(
                provenance_of(replace(plan, judge=None)),
                inputs=inputs,
                judge=about_judge(notes.judge),
            ),
            options=SummaryOptions(plan.level, cluster, plan.bounds),
            stored=values,
            labels=task.labels,
            documents=notes.counts["documents"],
            task_rows=task_rows,
            run_id=run_id,
            sampled=sampled,
        )

    @cached_property
    def table(self) -> DataFrame:
        """The values as a Spark frame, one row for each query and measure, for `write`.

        A value that is undefined is null, with its reason. `about` has what is known about the
        query, `provenance` how it was measured, as JSON: `findwell.spark.load` reads both.
        """
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        names = F.array(*(F.lit(str(measure)) for measure in self.measures))
        nothing = F.array(*[F.lit(None)] * len(self.measures)).cast("array<string>")
        columns = [names.alias("measure"), F.col("values").alias("value")]
        columns += [F.coalesce("reasons", nothing).alias("reason")]
        if self.measured.bounds is not None:
            columns += [F.coalesce(name, "values").alias(name) for name in BOUNDS]
        about = F.map_from_arrays(F.array(*map(F.lit, self.labels)), "labels")
        interval = {"level": self.level, "cluster": self.options.cluster}
        made = manifest_of(self) | {"findings": [], "interval": interval, "labels": self.labels}
        zipped = F.explode(F.arrays_zip(*columns)).alias("one")
        rows = self.task_rows.filter(F.col("kind") == VALUES).select("query", "labels", zipped)
        return rows.select(
            F.lit(self.run_id).alias("run_id"),
            F.lit(self.runs[0]).alias("run"),
            "query",
            "one.*",
            *([about.alias("about")] if self.labels else []),
            F.lit(json.dumps(made)).alias("provenance"),
        )

    def write(self, place: str, mode: str = "append") -> None:
        """Write `table`, to a path or `table:NAME`, cut by run_id; `findwell.spark.load` reads it.

        In a folder the rows of this run_id replace those that it had: writing again after a failure
        leaves nothing twice. `mode="overwrite"` replaces all that is there.
        """
        choose("mode", mode, MODES)
        with naming_errors():
            if place.startswith(TABLE):
                name = place.removeprefix(TABLE)
                self.table.write.mode(mode).partitionBy("run_id").saveAsTable(name)
            elif mode == "overwrite":
                self.table.write.mode(mode).partitionBy("run_id").parquet(place)
            else:
                folder = f"{place.rstrip('/')}/run_id={_as_folder(self.run_id)}"
                self.table.drop("run_id").write.mode("overwrite").parquet(folder)

    @cached_property
    def sample(self) -> Result:
        """The sampled queries as a result of findwell: for reports, comparisons, explanations."""
        if not self.sampled:
            raise OptionError(
                "no queries were sampled", fix="evaluate with sample=0.01 (-S sample=0.01)"
            )
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        kept = self.task_rows.filter(F.col("kind") == SAMPLE).select("query", "data")
        with naming_errors():
            blobs = pl.DataFrame(kept.toArrow())
        if not blobs.height:
            raise OptionError(
                f"no query is in a sample of {self.sampled:g}", fix="sample a larger share"
            )
        tables: dict[str, list[pl.DataFrame]] = {}
        for name, data in blobs.iter_rows():
            tables.setdefault(name, []).append(pl.read_ipc(io.BytesIO(data)))
        whole = {
            name: pl.concat(parts, how="diagonal_relaxed").sort("query", maintain_order=True)
            for name, parts in tables.items()
        }
        result = _restored(json.dumps(manifest_of(self)), whole)
        about = [] if self.sampled == 1 else [self._about_sample(result.n)]
        return replace(result, findings=tuple(first_findings([*about, *self.findings])))

    def _about_sample(self, size: int) -> Finding:
        said = (
            f"{row['measure']}: undefined"
            if row["value"] is None
            else f"{row['measure']}: {row['value']:.4f} over {counted(row['n'])}"
            for row in self.rows[:3]
        )
        return Finding(
            "sampled-queries",
            size,
            tuple(said),
            f"# sampled query|queries makes|make up this result; the Spark job measured {self.n}.",
            "look at the summary of the Spark job for the numbers of all queries",
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Save the sampled queries as the folder of a result, for report, compare and view."""
        return self.sample.save(folder)

    def close(self) -> None:
        """Let Spark forget the values that it keeps for this result."""
        self.task_rows.unpersist()

    def as_dict(
        self, *, per_query: bool = False, by: Iterable[str] = (), misses: bool = False
    ) -> dict[str, Any]:
        """Return the result as the JSON output prints it."""
        own = {"run_id": self.run_id, "queries": self.n, "documents": self.documents}
        return super().as_dict(per_query=per_query, by=by, misses=misses) | own


@takes_options()
def load(
    place: DataFrame | str, *, run_id: str | None = None, master: str | None = None
) -> ValuesResult:
    """Load the values that `SparkResult.write` wrote, for `findwell.compare` and `findwell.gate`.

    `place` is a path, `table:NAME` or a frame; of several evaluations `run_id` chooses one.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    where = place if isinstance(place, str) else "frame"
    frame = read_frame(open_session(master), place) if isinstance(place, str) else place
    lacking = {*WRITTEN_COLUMNS} - set(frame.columns)
    if lacking:
        raise InputError(
            f"the frame has no column {' or '.join(sorted(lacking))}",
            where=where,
            fix="give what write() of a result of findwell.spark.evaluate wrote",
        )
    ids = ["run_id"] if "run_id" in frame.columns else []  # a folder may be that of one run_id
    if run_id is not None and ids:
        frame = frame.filter(frame["run_id"] == run_id)
    with naming_errors():
        made = pl.DataFrame(frame.select("provenance", *ids).distinct().limit(2).toArrow())
        if made.height != 1:
            named = ", ".join(made["run_id"].unique().sort()) if ids else ""
            raise OptionError(
                f"there are several evaluations: {named}, …" if made.height else "it has no row",
                where=where,
                fix="choose one by its id: findwell.spark.load(place, run_id=…)",
            )
        manifest = json.loads(made["provenance"][0])
        labels = [frame["about"][name] for name in manifest["labels"]]
        bounds = [name for name in BOUNDS if name in frame.columns]
        listed = F.array(*labels).cast("array<string>").alias("labels")
        wanted = frame.select("run", "query", "measure", "value", "reason", *bounds, listed)
        rows = pl.DataFrame(wanted.toArrow())
    places = {name: at for at, name in enumerate(manifest["measures"])}
    rows = rows.with_columns(at=pl.col("measure").replace_strict(places)).sort("query", "at")
    (count,) = rows.select(pl.len().over("query", "measure").max()).row(0)
    wide = rows.group_by("query", maintain_order=True).agg(
        pl.col("labels").first(),
        *(pl.col(name) for name in bounds),
        values="value",
        reasons="reason",
    )
    if rows.height != wide.height * len(places):
        raise InputError(
            f"a measure of a query is there {count} times"
            if count > 1
            else "some queries lack a row for some measures",
            where=where,
            fix="keep one row for each query and measure; writing a run_id to a table again "
            "appends its rows",
        )
    wide = pl.concat(
        [pl.DataFrame(schema=ROW), wide.with_columns(kind=VALUES)], how="diagonal_relaxed"
    )
    queries = pl.DataFrame({"query": wide["query"]})
    tables = {"relation": pl.DataFrame(schema=NO_RELATION), "queries": queries}
    restored = _restored(made["provenance"][0], tables)
    values = values_of(wide, rows["run"][0], restored.measures, manifest["labels"])
    known = {each.name: getattr(restored, each.name) for each in fields(Result) if each.init}
    return ValuesResult(**known | {"queries": values.queries}, stored=values)


def _restored(manifest: str, tables: dict[str, pl.DataFrame]) -> Result:
    """Return the result that a manifest, as JSON, and tables describe."""
    return result_of(json.loads(manifest) | {"created": "", "versions": {}}, tables)


def _as_folder(value: str) -> str:
    """Return a value as Spark names the folder of a partition.

    >>> _as_folder("2026/11: 5%")
    '2026%2F11%3A 5%25'
    """
    return SPECIAL_CHARACTER.sub(lambda found: f"%{ord(found[0]):02X}", value)


@dataclass(slots=True)
class BatchNotes:
    """What is worth knowing about the queries of all batches."""

    findings: tuple[Finding, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    highest: float | None = None  # the highest grade of the gold
    judge: dict[str, Any] = field(default_factory=dict)

    def add(self, said: dict[str, Any]) -> None:
        """Add what one batch has to say."""
        found = []
        for each in said["findings"]:
            text = each["template"]
            if each["kind"] == "tied-scores":  # the values of a batch are not those of the whole
                text = text.partition(" Another tie order")[0]
            found.append(Finding(**{**each, "template": text, "examples": (*each["examples"],)}))
        self.findings = merge_findings((*self.findings, *found))
        self.counts.update(said["counts"])
        highest = [each for each in (self.highest, said.get("highest")) if each is not None]
        self.highest = max(highest, default=None)
        self.judge = self.judge or said.get("judge", {})

    def check(self, plan: Plan, run: str) -> tuple[Finding, ...]:
        """Return the findings of the whole; raise what is an error there, as one machine does."""
        counts, findings = self.counts, list(self.findings)
        unmet = {each.message: each for each in findings if each.kind == UNMET_ID}
        kinds = {each.kind: each for each in findings}

        def examples(found: Finding | None) -> pl.Series:
            return pl.Series(() if found is None else found.examples, dtype=pl.String)

        missing = kinds.get("missing-query")
        if counts["documents"] and not counts["shared"]:
            ours, theirs = examples(kinds.get("extra-query")), examples(missing)
            raise no_shared_query(ours, theirs, run, "at least ")
        if "queries" in unmet and not counts["described"]:
            raise no_known_query(unmet["queries"].examples[0], "queries")
        levels = {
            measure: measure.level()
            for name, matcher in plan.matchers.items()
            for measure in plan.readers(name)
            if measure.needs_relevant and not matcher.judged
        }
        require_relevant(self.highest, plan.policy, levels)
        if plan.policy.missing == "error" and missing is not None:
            raise missing_error(missing.count, missing.examples[0], run)
        if sum(matcher.reads_texts for matcher in plan.matchers.values()) == 1:
            about_run = [each for each in findings if each.run == run]
            left = require_places(about_run, counts["documents"], f"run {run}")
            findings = [each for each in findings if each.run != run] + left
        findings = [each for each in findings if each.kind not in (UNMET_ID, FindingKind.BARE_TEXT)]
        if counts["documents"] and not counts["judged"] and {*plan.matchers} == {"ids"}:
            keys, docs = (examples(unmet.get(side)) for side in ("run", "gold"))
            nothing = UnmetRun(run, keys, counts["queries"], tuple(findings))
            news = no_shared_document(nothing, docs, chosen=plan.chosen)
            findings += (replace(each, run=run) for each in news)
        if "ids" in plan.matchers and not (plan.chosen or counts["hashes"]):
            refuse_hashes(findings, run)
        return tuple(findings)
