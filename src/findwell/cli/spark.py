"""Options of the Spark engine, and `findwell score` on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from findwell.cli import gating, judging, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.evaluation.results.result import Result

DEFAULT_MAP = ParameterSource.DEFAULT_MAP
NOT_ON_SPARK = ("labels", "update_baseline", "dry_run", "explain_verdicts")


def _as_columns(
    _: click.Context, __: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str] | None:
    """Read the names of columns."""
    found = {}
    for pair in pairs:
        name, equals, column = (part.strip() for part in pair.partition("="))
        if not (name and equals and column):
            raise click.BadParameter(f"{pair!r} is not NAME=COLUMN")
        found[name] = column
    return found or None


# metavar and help of the options that only this engine has
ONLY_SPARK: dict[str, tuple[str | None, str]] = {
    "master": (
        "URL",
        "the cluster: local[4], spark://HOST:7077, yarn, sc://HOST (default: of spark-submit).",
    ),
    "column": (
        "NAME=COLUMN",
        "what a column is called, such as query=qid or gold.doc=pid; may be repeated.",
    ),
    "write": ("PLACE", "write the values of every query to this path or table:NAME, by run id."),
    "name": ("NAME", "name of the run (default: run)."),
    "run_id": ("ID", "identifies this evaluation among those that are written (default: random)."),
    "sample": ("SHARE", "share of the queries that --save keeps, for report, compare and view."),
    "partitions": ("N", "how many parts the rows are cut into, by query."),
    "gold_join": (
        None,
        "send a small gold to all executors, or bring its rows to those of the run.",
    ),
    "keep_at": (
        "PATH",
        "write values here before they are collected, so that a lost executor costs nothing.",
    ),
    "gateway_host": (
        "HOST",
        "address of the driver at which tasks ask for a model (default: Spark's).",
    ),
    "gateway_port": ("PORT", "port of it (default: any that is free)."),
    "calls_per_minute": ("N", "most calls of a model in a minute, of all tasks together."),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "column": {"multiple": True, "callback": _as_columns},
    "sample": {"type": click.FloatRange(0, 1)},
    "partitions": {"type": click.IntRange(1)},
    "gold_join": {"type": click.Choice(["auto", "broadcast", "shuffle"])},
    "gateway_port": {"type": click.IntRange(0, 65535)},
    "calls_per_minute": {"type": float},
}
engine_options = options.option_set(
    click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        help="Where it runs: on this machine, or on Spark, where RUN, --gold and --queries are "
        "paths of Parquet, delta:PATH, or table:NAME (docs/spark.md).",
    ),
    *(
        click.option(
            f"--{name.replace('_', '-')}",
            metavar=metavar,
            help=f"Spark: {text}",
            **SETTINGS.get(name, {}),
        )
        for name, (metavar, text) in ONLY_SPARK.items()
    ),
)


def take(choices: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Take the options about the engine out of all; refuse those of the other one."""
    engine = choices.pop("engine")
    given = {name: choices.pop(name) for name in ONLY_SPARK}
    given = {name: value for name, value in given.items() if value is not None}
    if engine == "local":  # what a project has settled about Spark does not matter here
        source = click.get_current_context().get_parameter_source
        given = {name: each for name, each in given.items() if source(name) is not DEFAULT_MAP}
    if engine == "local" and given:
        flag = next(iter(given)).replace("_", "-")
        raise click.UsageError(f"--{flag} needs --engine spark")
    return engine, given


def score(  # noqa: PLR0917
    runs: Sequence[str],
    gold: str | None,
    measures: Sequence[str],
    slices: Sequence[str],
    how: str,
    output: str | None,
    save: str | None,
    level: float,
    given: dict[str, Any],
    choices: dict[str, Any],
) -> int:
    """Measure a run on Spark, print it, and return the exit code."""
    from findwell.evaluation.results.store import load as load_folder  # noqa: PLC0415
    from findwell.evaluation.results.summaries import unmeasured  # noqa: PLC0415
    from findwell.evaluation.spark.job import LOCAL_OPTIONS, SparkOptions, evaluate  # noqa: PLC0415
    from findwell.evaluation.spark.result import load  # noqa: PLC0415
    from findwell.io.storage.folders import MANIFEST, refuse_foreign  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show.result import render  # noqa: PLC0415

    idle = sorted(LOCAL_OPTIONS & choices.keys())
    for name in options.explicit(dict.fromkeys([*NOT_ON_SPARK, *idle])):
        raise click.UsageError(f"--{name.replace('_', '-')} is not for --engine spark")
    if len(runs) > 1:
        raise click.UsageError("--engine spark measures one RUN at a time")
    if save is not None:
        refuse_foreign(save)
        given.setdefault("sample", 1.0)

    def load_baseline(place: str) -> Result:
        """Load a saved result, or the values that a Spark job wrote."""
        saved = (Path(place) / MANIFEST).is_file()
        return load_folder(place) if saved else load(place, master=given.get("master"))

    gates = gating.Requirements.take(choices, load_baseline)
    choices |= judging.take(choices)
    shared = (SparkOptions.__annotations__.keys() | {"queries"}) - LOCAL_OPTIONS - {"level"}
    place, columns = given.pop("write", None), given.pop("column", None)
    result = evaluate(
        runs[0],
        gold,
        dict.fromkeys([*(measures or DEFAULTS), *gates.measures]),
        slices=slices,
        columns=columns,
        level=level or None,
        **{name: choices[name] for name in shared & choices.keys()},
        **given,
    )
    if place is not None:
        result.write(place)
        options.note(f"written: {place} (run id {result.run_id})")
    if save is not None:
        result.save(save)
        options.note(f"saved: {save}")
    gate = gates.hold(result)
    screen = options.screen(output)
    text = render(result, how, per_query=choices["per_query"], by=slices, **screen)
    options.write(gating.with_verdicts(text, gate, how, **screen), output, how)
    if how != "json":
        options.print_findings(result.findings)
    lacking = options.print_unmeasured(unmeasured(result))
    return gates.finish(gate, result, how, output, slices=slices, lacking=lacking)
