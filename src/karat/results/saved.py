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
                for lenient, relations in enumerate((result.relations, result.lenient))
                for (run, name), relation in relations.items()
            ],
            how="diagonal",
        ),
    }
    about = [table.with_columns(run=pl.lit(run)) for run, table in result.about.items()]
    if about:
        tables["about"] = pl.concat(about, how="diagonal_relaxed")
    listed = [table.with_columns(run=pl.lit(run)) for run, table in result.listed.items()]
    if listed:
        tables["listed"] = pl.concat(listed, how="diagonal_relaxed")
    if result.verdicts is not None:
        tables["verdicts"] = result.verdicts
    return store.write_folder(folder, _manifest(result), result.summary.to_dicts(), tables)


def _manifest(result: Result) -> dict[str, Any]:
    return {
        "runs": result.runs,
        "measures": [str(measure) for measure in result.measures],
        "relation": result.drawn_by,
        "relations": result.settings,
        "ids": result.ids,
        "dialect": result.dialect,
        "policies": result.policy.as_dict(),
        "bounds": result.bounds,
        "interval": result.interval,
        "judge": dict(result.judge),
        "inputs": [entry.as_dict() for entry in result.inputs],
        "findings": [finding.as_dict() for finding in result.findings],
    }
