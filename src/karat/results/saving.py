"""From a result to its folder, and back."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.core.policy import Policy
from karat.dialects import resolve_measures
from karat.findings import Finding
from karat.results import store
from karat.results.result import Kept, Provenance, Result, SummaryOptions

if TYPE_CHECKING:
    from pathlib import Path

    from karat.core.relation import Relation


def save(result: Result, folder: str | os.PathLike[str]) -> Path:
    """Write a result as a folder, whole or not at all."""
    tables = {
        "per_query": result.per_query,
        "queries": result.queries,
        "relation": pl.concat(
            [
                store.relation_rows(run, relation).with_columns(
                    relation=pl.lit(name), lenient=pl.lit(lenient)
                )
                for (run, name), drawn in result.relations.items()
                for lenient, relation in enumerate((drawn, drawn.lenient))
                if relation is not None
            ],
            how="diagonal",
        ),
    }
    for name, by_run in (("about", result.about), ("listed", result.kept.listed)):
        if by_run:
            named = [table.with_columns(run=pl.lit(run)) for run, table in by_run.items()]
            tables[name] = pl.concat(named, how="diagonal_relaxed")
    if result.kept.verdicts is not None:
        tables["verdicts"] = result.kept.verdicts
    return store.write_folder(folder, _manifest(result), result.summary.to_dicts(), tables)


def _manifest(result: Result) -> dict[str, Any]:
    made = result.provenance
    return {
        "runs": result.runs,
        "measures": [str(measure) for measure in result.measures],
        "relation": made.drawn_by,
        "relations": made.settings,
        "ids": made.ids,
        "dialect": made.dialect,
        "policies": made.policy.as_dict(),
        "bounds": result.options.bounds,
        "interval": result.interval,
        "judge": dict(made.judge),
        "inputs": [entry.as_dict() for entry in made.inputs],
        "findings": [finding.as_dict() for finding in result.findings],
    }


def load(folder: str | os.PathLike[str]) -> Result:
    """Read a result folder; `result.score([…])` then computes other measures without the inputs."""
    manifest, tables = store.read_folder(folder)
    rows = tables["relation"]
    lenient = _relations(rows.filter(pl.col("lenient") == 1))
    return Result(
        relations={
            key: replace(each, lenient=lenient.get(key))
            for key, each in _relations(rows.filter(pl.col("lenient") == 0)).items()
        },
        measures=resolve_measures(manifest["measures"], manifest["dialect"]),
        queries=tables["queries"],
        findings=tuple(
            Finding(**{**found, "examples": tuple(found["examples"])})
            for found in manifest["findings"]
        ),
        provenance=Provenance(
            dialect=manifest["dialect"],
            policy=Policy(**manifest["policies"]),
            drawn_by=manifest["relation"],
            settings=manifest["relations"],
            ids=manifest["ids"],
            inputs=tuple(
                store.Input(**{**entry, "sha256": entry["sha256"] or ""})
                for entry in manifest["inputs"]
            ),
            judge=manifest["judge"],
            saved={name: manifest[name] for name in ("created", "versions")},
        ),
        options=SummaryOptions(
            level=manifest["interval"]["level"],
            cluster=manifest["interval"]["cluster"],
            bounds=manifest["bounds"],
        ),
        about=_by_run(tables.get("about")),
        kept=Kept(_by_run(tables.get("listed")), tables.get("verdicts")),
    )


def _relations(rows: pl.DataFrame) -> dict[tuple[str, str], Relation]:
    return {
        (run, name): store.relation_of(
            rows.filter(pl.col("run") == run, pl.col("relation") == name)
        )
        for run, name in rows.select("run", "relation").unique(maintain_order=True).rows()
    }


def _by_run(table: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """Split a table of all runs."""
    if table is None:
        return {}
    parts = table.partition_by("run", as_dict=True, include_key=False, maintain_order=True)
    return {str(run): part for (run,), part in parts.items()}
