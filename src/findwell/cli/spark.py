"""Options of the Spark engine, and `findwell score` on it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from findwell.cli import gating, judging, options

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_MAP = ParameterSource.DEFAULT_MAP
ENGINES = ("local", "spark")
ONLY_SPARK = (
    *("master", "column", "write_to", "sample", "bootstrap", "partitions", "gold_join", "keep_at"),
    *("gateway_host", "gateway_port", "calls_per_minute", "name", "run_id"),
)
# options of `findwell score` that mean the same on Spark
SHARED = (
    *("by", "dialect", "rel", "ids", "missing", "corpus", "embedder", "tokenizer", "bounds"),
    *("cluster", "skip_bad", "queries"),
)
NOT_ON_SPARK = (
    *("run_format", "gold_format", "id_from", "query_from", "latency_unit", "labels"),
    *("per_query", "update_baseline", "dry_run", "explain_verdicts"),
)


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


engine_options = options.option_set(
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="local",
        help="Where it runs: on this machine, or on Spark, where RUN, --gold and --queries are "
        "paths of Parquet, delta:PATH, or table:NAME (docs/spark.md).",
    ),
    click.option(
        "--master",
        metavar="URL",
        help="Spark: the cluster, such as local[4], spark://HOST:7077, yarn or sc://HOST (default: "
        "as spark-submit or spark-defaults says).",
    ),
    click.option(
        "--column",
        multiple=True,
        callback=_as_columns,
        metavar="NAME=COLUMN",
        help="Spark: what a column is called, such as query=qid or gold.doc=pid; may be repeated.",
    ),
    click.option(
        "--write",
        "write_to",
        metavar="PLACE",
        help="Spark: write the values of every query to this path or table:NAME, by run id.",
    ),
    click.option("--name", metavar="NAME", help="Spark: name of the run (default: run)."),
    click.option(
        "--run-id",
        metavar="ID",
        help="Spark: what tells this evaluation from others that are written (default: random).",
    ),
    click.option(
        "--sample",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Spark: share of the queries that --save keeps, for report, compare and view.",
    ),
    click.option(
        "--bootstrap",
        type=click.IntRange(0),
        metavar="N",
        help="Spark: make intervals from this many Poisson samples (default: from moments).",
    ),
    click.option(
        "--partitions",
        type=click.IntRange(1),
        metavar="N",
        help="Spark: how many parts the rows are cut into, by query.",
    ),
    click.option(
        "--gold-join",
        type=click.Choice(["auto", "broadcast", "shuffle"]),
        help="Spark: send a small gold to all executors, or bring its rows to those of the run.",
    ),
    click.option(
        "--keep-at",
        metavar="PATH",
        help="Spark: write values here before they are summarised, so that a lost executor costs "
        "nothing.",
    ),
    click.option(
        "--gateway-host",
        metavar="HOST",
        help="Spark: address of the driver at which tasks ask for a model (default: Spark's).",
    ),
    click.option(
        "--gateway-port",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Spark: port of it (default: any that is free).",
    ),
    click.option(
        "--calls-per-minute",
        type=float,
        metavar="N",
        help="Spark: most calls of a model in a minute, of all tasks together.",
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
        flag = "write" if "write_to" in given else next(iter(given)).replace("_", "-")
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
    from findwell.evaluation.comparison.requirements import parse_requirement  # noqa: PLC0415
    from findwell.io.storage.folders import refuse_foreign  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show.spark import render  # noqa: PLC0415

    for name in options.explicit(dict.fromkeys(NOT_ON_SPARK)):
        raise click.UsageError(f"--{name.replace('_', '-')} is not for --engine spark")
    if len(runs) > 1:
        raise click.UsageError("--engine spark measures one RUN at a time")
    if save is not None:
        refuse_foreign(save)
        given.setdefault("sample", 1.0)
    requirements, baseline, junit = (choices.pop(name) for name in ("require", "baseline", "junit"))
    decisions = gating.take_decisions(choices)
    choices |= judging.take(choices)
    named = [*(measures or DEFAULTS)]
    asked = [parse_requirement(text) for text in requirements]
    named += [each.subject for each in asked if each.is_of_measure]
    wanted = {name: choices[name] for name in (*SHARED, "judge", "base_url") if name in choices}
    place, columns = given.pop("write_to", None), given.pop("column", None)

    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.evaluation.spark.comparing import gate as hold  # noqa: PLC0415
    from findwell.evaluation.spark.job import evaluate  # noqa: PLC0415

    result = evaluate(
        runs[0],
        gold,
        dict.fromkeys(named),
        slices=slices,
        columns=columns,
        level=level or None,
        **grouped(wanted | given),
    )
    if place is not None:
        result.write(place)
        options.note(f"written: {place} (run id {result.run_id})")
    if save is not None:
        result.save(save)
        options.note(f"saved: {save}")
    gate = None
    if requirements:
        gate = hold(result, requirements, baseline=baseline, **decisions)
    screen = options.screen(output)
    text = render(result, how, by=slices, **screen)
    options.write(gating.with_verdicts(text, gate, how, **screen), output, how)
    if how != "json":
        options.print_findings(result.findings)
    lacking = options.print_unmeasured(
        f"{row['measure']}: no query has a value"
        for row in result.summary.iter_rows(named=True)
        if not row["n"]
    )
    if gate is None:
        return lacking
    tables = partial(render, result, "markdown")
    return gating.report_verdicts(gate, how, output, junit, tables) or lacking
