"""`karat tune`: the weights of a hybrid, chosen on some queries and measured on others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import judging, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.tuning.conclusion import Tuning


@click.command("tune", short_help="Choose the weights with which runs are fused.")
@options.runs
@options.reading
@options.dialect
@options.measures("nDCG@10", "nDCG@10: the first one chooses")
@click.option(
    "--engine",
    required=True,
    metavar="NAME",
    help="Whose formula fuses the runs, such as elasticsearch-rrf or weaviate-relative "
    "(`karat fuse --list` lists all).",
)
@click.option(
    "--current",
    metavar="SHARE|W,W,…",
    help="Setting in use, to compare with: the share of the first of two runs, or one weight for "
    "each run; k, where the engine has no weights.",
)
@click.option(
    "--step",
    type=float,
    metavar="SHARE",
    help="How far apart the shares are that are tried (default: 0.01 for two runs, 0.05 for "
    "three, 0.1 for four, 0.2 for five).",
)
@click.option("--k", type=float, metavar="N", help="Constant of a rank fusion (default: its own).")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many documents of each run the engine reads (default: as the engine does).",
)
@click.option(
    "--normaliser",
    metavar="NAME",
    help="How the engine makes scores comparable, where it can be set (default: its own).",
)
@click.option(
    "--fill",
    type=float,
    metavar="VALUE",
    help="What counts for a document that a run lacks, where it can be set (default: as the "
    "engine does).",
)
@click.option(
    "--engine-version",
    "version",
    metavar="NAME",
    help="Which version of the engine's formula counts, where it has several (default: today's).",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    metavar="N",
    help="Parts of the queries; each is scored with the setting that the others choose.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=10,
    metavar="N",
    help="How many times the queries are dealt into folds.",
)
@click.option(
    "--seed", type=int, default=0, metavar="N", help="Seed of folds, bootstraps and tests."
)
@options.measuring
@options.slicing
@options.level
@judging.judge_options
@options.output_format(("table", "json", "markdown", "html"))
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the runs fused with the chosen setting (.trec, .jsonl), the page (.html) or the "
    "chart (.svg, .png); may be repeated.",
)
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    how: str,
    outputs: tuple[str, ...],
    **choices: Any,  # noqa: ANN401
) -> int:
    """Choose the weights with which an engine fuses two to five RUN files.

    \b
    karat tune bm25.trec dense.trec --gold qrels.txt --engine elasticsearch-rrf
    karat tune bm25.trec dense.trec --gold qrels.txt --engine weaviate-relative \\
        -m nDCG@10 -m recall@20 --current 0.5 -o fused.trec -o tuning.html
    karat tune a.trec b.trec c.trec --gold qrels.txt --engine opensearch-rrf

    The value that counts is the one held out: every query is scored with a setting that other
    queries chose. It says what the setting gains over each run alone and over --current, whether
    that is shown, and how many queries it would take if not. The fused run of -o is that of the
    setting chosen from all queries.
    """
    from karat.reports.tuning import render  # noqa: PLC0415
    from karat.tuning.choice import TooFewQueriesError  # noqa: PLC0415
    from karat.tuning.tune import tune  # noqa: PLC0415

    files, gold = options.paths(runs, gold)
    chosen = {**judging.take(choices), **choices}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    named = list(measures) or "nDCG@10"
    with options.progress("judging") as progress:
        try:
            tuning = tune(files, gold, named, progress=progress, **chosen)
        except TooFewQueriesError:
            if judging.write_dry_run(chosen, how, None):  # nobody judged, so there is no value
                return 0
            raise
    _write_files(tuning, outputs)
    options.write(render(tuning, how, color=options.use_color()), None)
    if how not in ("json", "html"):
        options.print_findings(tuning.findings)
    return 0


def _write_files(tuning: Tuning, outputs: Sequence[str]) -> None:
    """Write what was asked for, by the ending of each file."""
    from karat.reports.charts import write_image  # noqa: PLC0415
    from karat.reports.tuning import charts, page  # noqa: PLC0415
    from karat.tuning.run_file import run_text  # noqa: PLC0415

    for output in outputs:
        kind = Path(output).suffix.lower()
        if kind in (".svg", ".png"):
            write_image(charts(tuning)[0], output)
        elif kind in (".html", ".htm"):
            options.write(page(tuning), output)
        else:
            options.write(run_text(tuning.run, output), output)
