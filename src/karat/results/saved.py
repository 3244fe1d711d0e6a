"""From a result to its folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.results import store

if TYPE_CHECKING:
    from pathlib import Path

    from karat.results.result import Result


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
    about = [table.with_columns(run=pl.lit(run)) for run, table in result.about.items()]
    if about:
        tables["about"] = pl.concat(about, how="diagonal_relaxed")
    listed = [table.with_columns(run=pl.lit(run)) for run, table in result.kept.listed.items()]
    if listed:
        tables["listed"] = pl.concat(listed, how="diagonal_relaxed")
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
