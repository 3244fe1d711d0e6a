"""`findwell score` on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, gating, options
from findwell.cli.command import typed_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.cli.judging import JudgeChoice
    from findwell.evaluation.results.result import Result

NOT_ON_SPARK = ("labels", "update_baseline", "dry_run", "explain_verdicts", "misses")


def score(
    runs: Sequence[str],
    gold: str | None,
    measures: Sequence[str],
    *,
    slices: Sequence[str],
    how: str,
    output: str | None,
    save: str | None,
    level: float,
    per_query: bool,
    settings: dict[str, Any],
    judge: JudgeChoice,
    gates: gating.Requirements,
    plan: dict[str, Any],
) -> int:
    """Measure a run on Spark, print it, and return the exit code."""
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.evaluation.results.store import load as load_folder  # noqa: PLC0415
    from findwell.evaluation.results.summaries import unmeasured  # noqa: PLC0415
    from findwell.evaluation.spark.job import (  # noqa: PLC0415
        LOCAL_OPTIONS,
        READING_ON_SPARK,
        SparkOptions,
        evaluate,
    )
    from findwell.evaluation.spark.result import load  # noqa: PLC0415
    from findwell.io.storage.folders import MANIFEST, refuse_foreign  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    for name, spelling in typed_options(click.get_current_context()).items():
        if name in NOT_ON_SPARK or name in LOCAL_OPTIONS:
            raise click.UsageError(f"{spelling} is not for --on spark")
    if plan.get("fields"):
        fix = "-S columns.query=NAME says what a column is called"
        raise click.UsageError(f"--map is not for --on spark: {fix}")
    if len(runs) > 1:
        raise click.UsageError("--on spark measures one RUN at a time")
    if save is not None:
        refuse_foreign(save)
        settings.setdefault("sample", 1.0)

    def load_baseline(place: str) -> Result:
        """Load a saved result, or the values that a Spark job wrote."""
        saved = (Path(place) / MANIFEST).is_file()
        return load_folder(place) if saved else load(place, master=settings.get("master"))

    gates = replace(gates, load=load_baseline)
    gates.check()
    shared = (READING_ON_SPARK | SparkOptions.__optional_keys__ | {"queries"}) - {"level"}
    wanted = {name: plan[name] for name in shared & plan.keys()} | judge.options
    place = settings.pop("write", None)
    result = evaluate(
        runs[0],
        gold,
        dict.fromkeys([*(measures or DEFAULTS), *gates.measures]),
        slices=slices,
        level=level or None,
        **grouped(wanted | settings),
    )
    if place is not None:
        result.write(place)
        envelope.wrote(place)
        options.note(f"written: {place} (run id {result.run_id})")
    if save is not None:
        result.save(save)
        envelope.wrote(save)
        options.note(f"saved: {save}")
    gate = gates.hold(result)
    document = document_of(result, per_query=per_query, by=slices)
    envelope.show(how, output, document, *gating.shown_with(gate, how))
    if how != "json":
        options.print_findings(result.findings)
    lacking = options.print_unmeasured(unmeasured(result))
    return gates.finish(gate, result, how, output, slices=slices, lacking=lacking)
