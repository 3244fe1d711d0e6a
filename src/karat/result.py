"""What an evaluation returns: numbers by query, aggregated and by slice, and what made them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat import store
from karat.aggregate import aggregate
from karat.align import Policy
from karat.bounds import bounds
from karat.dialects import speak
from karat.errors import MeasureError, choose, nearest
from karat.findings import Finding
from karat.store import Input
from karat.timing import Timing, timing

if TYPE_CHECKING:
    from pathlib import Path

    from polars._typing import PolarsDataType

    from karat.data import Bools, Floats
    from karat.measures import Measure
    from karat.relation import Relation


SUMMARY: dict[str, PolarsDataType] = {
    "run": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "undefined": pl.Int64,
    "failed": pl.Int64,
}
BOUNDS: dict[str, PolarsDataType] = {"lower": pl.Float64, "upper": pl.Float64}


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `karat.evaluate`; frames are polars and export Arrow."""

    relations: Mapping[str, Relation]  # by run
    measures: tuple[Measure, ...]
    queries: pl.DataFrame  # query and the columns that describe it
    findings: tuple[Finding, ...]
    dialect: str
    policy: Policy
    bounds: bool = False
    ids: str = "identity"
    inputs: tuple[Input, ...] = field(default=())

    @property
    def runs(self) -> list[str]:
        """The names of the runs."""
        return list(self.relations)

    @cached_property
    def arrays(self) -> dict[tuple[str, Measure], Floats]:
        """One value a query for each run and measure, NaN where undefined."""
        return {
            (run, measure): self._defined(relation, measure, measure.values(relation))
            for run, relation in self.relations.items()
            for measure in self.measures
        }

    @cached_property
    def bound_arrays(self) -> dict[tuple[str, Measure], tuple[Floats, Floats]]:
        """Lower and upper bound of every value, where bounds were asked for."""
        if not self.bounds:
            return {}
        return {
            (run, measure): (
                self._defined(relation, measure, low),
                self._defined(relation, measure, high),
            )
            for run, relation in self.relations.items()
            for measure, (low, high) in zip(
                self.measures, bounds(relation, self.measures), strict=True
            )
        }

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row for each run and measure."""
        return pl.DataFrame(
            [self._aggregate(run, measure) for run in self.runs for measure in self.measures],
            schema=SUMMARY | (BOUNDS if self.bounds else {}),
        )

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """One row for each run, measure and query; an undefined value is null, with its reason."""
        frames = []
        for (run, measure), values in self.arrays.items():
            bounds = self.bound_arrays.get((run, measure))
            frames.append(
                pl.DataFrame(
                    {
                        "query": self.relations[run].queries,
                        "value": values,
                        "void": self.relations[run].void,
                        **(dict(zip(BOUNDS, bounds, strict=True)) if bounds else {}),
                    }
                ).select(
                    pl.lit(run).alias("run"),
                    "query",
                    pl.lit(str(measure)).alias("measure"),
                    pl.col("value").fill_nan(None),
                    pl.when(pl.col("value").is_nan())
                    .then(pl.col("void").fill_null(measure.why_undefined))
                    .alias("reason"),
                    *(pl.col(name).fill_nan(None) for name in (BOUNDS if bounds else {})),
                )
            )
        return pl.concat(frames)

    @cached_property
    def timing(self) -> Timing | None:
        """Latency, throughput and error rate, where the queries carry them."""
        return timing(self.queries)

    @property
    def values(self) -> dict[str, float | None]:
        """The aggregated value of every measure; for several runs, keyed `run: measure`."""
        several = len(self.relations) > 1
        return {
            f"{row['run']}: {row['measure']}" if several else row["measure"]: row["value"]
            for row in self.summary.iter_rows(named=True)
        }

    def __getitem__(self, key: str | tuple[str, str]) -> float | None:
        """Return an aggregated value: `result["recall@5"]`, `result["bm25", "recall@5"]`."""
        run, name = key if isinstance(key, tuple) else (None, key)
        if run is None:
            if len(self.relations) > 1:
                raise MeasureError(
                    f"there are several runs: {', '.join(self.runs)}",
                    fix=f"name one: result[{self.runs[0]!r}, {name!r}]",
                )
            run = self.runs[0]
        choose("run", run, self.runs)
        measure = self._find(name)
        return aggregate(measure, self.arrays[run, measure]).value

    def by(self, column: str) -> pl.DataFrame:
        """Aggregate by the values of a column of the queries: one row a run, slice and measure."""
        known = [name for name in self.queries.columns if name != "query"]
        choose("slice column", column, known)
        about = self.queries.select("query", pl.col(column).cast(pl.String).alias("slice"))
        rows = []
        for run, relation in self.relations.items():
            slices = pl.DataFrame({"query": relation.queries}).join(
                about, on="query", how="left", maintain_order="left"
            )["slice"]
            for value in slices.unique(maintain_order=True):
                inside = (slices.eq_missing(value)).to_numpy()
                rows += [
                    {"slice": value, **self._aggregate(run, measure, inside)}
                    for measure in self.measures
                ]
        schema = {"run": pl.String, "slice": pl.String, **SUMMARY}
        return pl.DataFrame(rows, schema=schema | (BOUNDS if self.bounds else {}))

    def score(self, measures: Iterable[str | Measure] | str, *, rel: float | None = None) -> Result:
        """Score again with other measures; the inputs are not needed for that."""
        return replace(self, measures=speak(measures, self.dialect, rel))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the result as a folder, whole or not at all; `karat.load` reads it again."""
        summary = self.summary.to_dicts()
        rows = [store.relation_rows(run, relation) for run, relation in self.relations.items()]
        tables = {
            "per_query": self.per_query,
            "queries": self.queries,
            "relation": pl.concat(rows),
        }
        return store.write_folder(folder, self._manifest(), summary, tables)

    def _manifest(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "measures": [str(measure) for measure in self.measures],
            "relation": "ids",
            "ids": self.ids,
            "dialect": self.dialect,
            "policies": self.policy.as_dict(),
            "bounds": self.bounds,
            "inputs": [entry.as_dict() for entry in self.inputs],
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def as_dict(self, *, per_query: bool = False, by: Iterable[str] = ()) -> dict[str, Any]:
        """Return the result as the JSON output prints it."""
        slices = [
            {"column": column, **row}
            for column in by
            for row in self.by(column).iter_rows(named=True)
        ]
        return {
            "summary": self.summary.to_dicts(),
            **({"slices": slices} if slices else {}),
            **({"per_query": self.per_query.to_dicts()} if per_query else {}),
            **({"timing": self.timing.as_dict()} if self.timing else {}),
            "findings": [finding.as_dict() for finding in self.findings],
            "dialect": self.dialect,
            "policies": self.policy.as_dict(),
        }

    def __repr__(self) -> str:
        lines = [
            f"  {row['run']}  {row['measure']}  "
            + ("undefined" if row["value"] is None else f"{row['value']:.4f}")
            for row in self.summary.iter_rows(named=True)
        ]
        return f"Result({len(self.queries)} queries, dialect {self.dialect})\n" + "\n".join(lines)

    def _find(self, name: str) -> Measure:
        (wanted,) = speak(name, self.dialect)
        same = [measure for measure in self.measures if measure == wanted] or [
            # `recall` also finds the recall that was measured at another relevance level
            measure
            for measure in self.measures
            if measure == wanted.with_level(getattr(measure, "rel", None))
        ]
        if len(same) == 1:
            return same[0]
        known = [str(measure) for measure in self.measures]
        raise MeasureError(
            f"{wanted} was not measured",
            fix=f"{nearest(name, known)} (measured: {', '.join(known)}); "
            "result.score([…]) measures more".strip(),
        )

    def _defined(self, relation: Relation, measure: Measure, values: Floats) -> Floats:
        """Apply what the policies say about queries without a value."""
        if self.policy.no_relevant == "zero":
            values = np.where(measure.undefined(relation), 0.0, values)
        return np.where(relation.void.is_null().to_numpy(), values, np.nan)

    def _aggregate(self, run: str, measure: Measure, inside: Bools | None = None) -> dict[str, Any]:
        def over(values: Floats) -> Floats:
            return values if inside is None else values[inside]

        number = aggregate(measure, over(self.arrays[run, measure]))
        row: dict[str, Any] = {
            "run": run,
            "measure": str(measure),
            "value": number.value,
            "low": None,
            "high": None,
            "n": number.n,
            "undefined": number.undefined,
            "failed": 0,
        }
        if self.bounds:
            bounds = self.bound_arrays[run, measure]
            for name, values in zip(BOUNDS, bounds, strict=True):
                row[name] = aggregate(measure, over(values)).value
        return row


def load(folder: str | os.PathLike[str]) -> Result:
    """Read a result folder; `result.score([…])` then measures anew without the inputs."""
    manifest, queries, rows = store.read_folder(folder)
    return Result(
        relations={
            run: store.relation_of(rows.filter(pl.col("run") == run)) for run in manifest["runs"]
        },
        measures=speak(manifest["measures"], manifest["dialect"]),
        queries=queries,
        findings=tuple(
            Finding(**{**found, "examples": tuple(found["examples"])})
            for found in manifest["findings"]
        ),
        dialect=manifest["dialect"],
        policy=Policy(**manifest["policies"]),
        bounds=manifest["bounds"],
        ids=manifest["ids"],
        inputs=tuple(
            Input(entry["role"], entry["kind"], entry["path"]) for entry in manifest["inputs"]
        ),
    )
