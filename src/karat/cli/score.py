"""`karat score`: measure runs against a gold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from karat.cli import asking, gating, options

if TYPE_CHECKING:
    from karat.measures import Measure
    from karat.results.result import Result

EXPORTS = ("liverag",)  # dialects whose tool writes files of its own
KEPT = 50  # documents of each list that a saved result remembers, for reports


@click.command("score", short_help="Measure runs against a gold.")
@options.inputs
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help="A measure: nDCG@10, recall@5, P@5/rouge, …",
)
@options.measuring
@click.option("--queries", metavar="FILE", help="A table about the queries, to slice by.")
@click.option("--slice", "slices", multiple=True, metavar="COLUMN", help="Also by this column.")
@click.option("--per-query", is_flag=True, help="Also every single query.")
@click.option("--bounds", is_flag=True, help="Also the bounds that unjudged documents leave.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals; 0 for none.",
)
@click.option("--cluster", metavar="COLUMN", help="Queries that share it are not independent.")
@asking.judging
@gating.requiring
@click.option("--format", "how", type=click.Choice(options.FORMATS), default="table")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write there instead of standard output (--dialect liverag: the files' common beginning).",
)
@click.option("--save", metavar="DIR", help="Save the whole result, for karat.load and later.")
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    slices: tuple[str, ...],
    how: str,
    output: str | None,
    save: str | None,
    per_query: bool,
    level: float,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Measure one or several RUN files against a gold.

    \b
    karat score run.trec --gold qrels.txt -m nDCG@10 -m recall@100
    karat score a.trec b.trec --gold gold.jsonl --slice topic
    karat score samples.jsonl --per-query --format json
    karat score samples.jsonl --by rouge -m recall@5 -m "P@5/rouge-sentence(threshold=0.9)"
    karat score run.trec --gold qrels.txt --require "recall@5>=0.8" --undecided pass
    karat score samples.jsonl -m context_recall -m context_precision@5 --judge openai:MODEL
    karat score monday -m nDCG@5 --slice topic

    Files are TREC, JSON, JSONL, CSV, TSV or Parquet, told by their content; .gz is welcome and -
    is standard input. Without --gold each record holds what was retrieved and what is gold; several
    files then have the same gold for the same queries.
    The folder of a saved result (--save) in the place of RUN is scored again with other measures,
    slices, levels or requirements, without the files that it was made of.
    A measure without a value for any query is exit code 3, and standard error says why.
    """
    from karat.dialects import resolve_measures  # noqa: PLC0415
    from karat.evaluation.evaluate import evaluate  # noqa: PLC0415
    from karat.measures import DEFAULTS  # noqa: PLC0415
    from karat.report.text import render  # noqa: PLC0415
    from karat.results.reuse import rescore  # noqa: PLC0415
    from karat.results.summaries import unmeasured  # noqa: PLC0415
    from karat.storage.folders import refuse_foreign  # noqa: PLC0415

    if save is not None:
        refuse_foreign(save)  # before a judge is paid
    gates = gating.Requirements.take(choices)
    saved = options.saved_result(runs, choices | {"gold": gold}, "rel", "bounds", "cluster")
    choices |= asking.take(choices)
    speaks = choices["dialect"] if saved is None else saved.dialect
    named: list[str | Measure] = [*(measures or (DEFAULTS if saved is None else saved.measures))]
    if gates.measures:  # a requirement names one measure, never a list
        named += resolve_measures(gates.measures, speaks)
    keep = KEPT if save is not None else 0
    with options.progress("measuring") as progress:
        if saved is not None:
            again = {name: choices[name] for name in ("rel", "bounds", "cluster")}
            result = rescore(saved, named, **again, **options.given({"level": level}))
        else:
            files, gold = options.paths(runs, gold)
            result = evaluate(
                files, gold, named, level=level or None, keep=keep, progress=progress, **choices
            )
        if asking.write_dry_run(choices, how, output):
            return 0
        gate = gates.hold(result)
        color, width = options.use_color(), options.width(output)
        text = render(result, how, per_query=per_query, by=slices, color=color, width=width)
    if save is not None:
        result.save(save)
    if output is not None and result.dialect in EXPORTS:
        _export(result, how, output)
    else:
        options.write(gating.with_verdicts(text, gate, how), output)
    if how != "json":
        options.tell(result.findings)
    if save is not None:
        click.echo(f"saved: {save}", err=True)
    lacking = options.tell_unmeasured(unmeasured(result))
    return gates.finish(gate, result, how, output, slices=slices, lacking=lacking)


def _export(result: Result, how: str, output: str) -> None:
    """Write the files of the tool whose dialect was spoken."""
    from karat.report import liverag  # noqa: PLC0415

    lines = how in ("json", "jsonl")
    for name, table in liverag.tables(result).items():
        path = f"{output}.{liverag.EVALUATOR}.eval.{name}.{'jsonl' if lines else 'tsv'}"
        text = table.write_ndjson() if lines else table.write_csv(separator="\t")
        options.write(text, path)
        click.echo(f"written: {path}", err=True)
