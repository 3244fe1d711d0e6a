"""`findwell tune`: the weights of a hybrid, chosen on some queries and measured on others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import judging, options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.loop.tuning.halving import HalvingPlan
    from findwell.loop.tuning.tuning import Tuning

FUNCTION = re.compile(r"[\w.]+:[\w.]+")  # in a module


@click.command("tune", short_help="Choose the weights with which runs are fused.")
@options.runs
@options.reading
@options.dialect
@options.measures("nDCG@10", "nDCG@10: the first one chooses")
@click.option(
    "--engine",
    metavar="NAME",
    help="Whose formula fuses the runs, such as elasticsearch-rrf or weaviate-relative "
    "(`findwell fuse --list` lists all).",
)
@click.option(
    "--space",
    metavar="FILE",
    help="TOML file of more than one knob and their values; for a retriever, of its arguments.",
)
@click.option(
    "--answers",
    metavar="FOLDER",
    help="Keep the answers of a retriever here (default: until the command has ended well).",
)
@click.option("--fresh", is_flag=True, help="Ignore saved answers and ask the retriever again.")
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
@options.disjoint
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
    findwell tune bm25.trec dense.trec --gold qrels.txt --engine elasticsearch-rrf
    findwell tune bm25.trec dense.trec --gold qrels.txt \\
        --engine weaviate-relative \\
        -m nDCG@10 -m recall@20 --current 0.5 -o fused.trec -o tuning.html
    findwell tune a.trec b.trec c.trec --gold qrels.txt --engine opensearch-rrf
    findwell tune bm25.trec dense.trec --gold qrels.txt --space space.toml
    findwell tune app:make_retriever --gold gold.jsonl --space space.toml

    The value that counts is the one held out: every query is scored with a setting that other
    queries chose. It says what the setting gains over each run alone and over --current, whether
    that is shown, and how many queries it would take if not. The fused run of -o is that of the
    setting chosen from all queries.

    Instead of runs, module:function may make a retriever of the values of knobs. Configurations are
    asked by successive halving; what is claimed rests on questions that chose nothing. After an
    interruption the same command goes on where it ended.
    """
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.loop.tuning.choice import TooFewQueriesError  # noqa: PLC0415
    from findwell.loop.tuning.tune import tune  # noqa: PLC0415

    named = list(measures) or "nDCG@10"
    kept = {name: choices.pop(name) for name in ("answers", "fresh")}
    if _makes_retrievers(runs):
        return _tune_retriever(runs[0], gold, named, how, outputs, kept, choices)
    for name, value in kept.items():
        if value:
            raise click.UsageError(f"--{name} is for a retriever: module:function")
    files, gold = options.paths(runs, gold)
    chosen = {**judging.take(choices), **choices}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    with options.progress("judging") as progress:
        try:
            tuning = tune(files, gold, named, progress=progress, **grouped(chosen))
        except TooFewQueriesError:
            if judging.write_dry_run(chosen, how, None):  # nobody judged, so there is no value
                return 0
            raise
    _write(tuning, how, outputs)
    return 0


def _makes_retrievers(runs: Sequence[str]) -> bool:
    """Tell a function that makes retrievers from files."""
    return len(runs) == 1 and bool(FUNCTION.fullmatch(runs[0])) and not Path(runs[0]).exists()


def _tune_retriever(  # noqa: PLR0917
    function: str,
    gold: str | None,
    measures: list[str] | str,
    how: str,
    outputs: Sequence[str],
    kept: Mapping[str, Any],
    choices: dict[str, Any],
) -> int:
    """Ask configurations of a retriever; answers are kept until the end, or for good."""
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.loop.tuning.retriever_trials import remove_answers  # noqa: PLC0415
    from findwell.loop.tuning.tune import tune  # noqa: PLC0415
    from findwell.retrievers.retriever import import_retriever  # noqa: PLC0415

    pages = [output for output in outputs if Path(output).suffix.lower() not in (".html", ".htm")]
    if pages:
        raise click.UsageError(f"-o {pages[0]}: of a tuned retriever there is a page (.html)")
    dry, choices["dry_run"] = choices["dry_run"], False
    judge = judging.take(choices)
    given = options.explicit(choices)
    idle = [name for name in ("folds", "repeats", "seed") if given.pop(name, None) is not None]
    if idle:
        raise click.UsageError(
            f"--{idle[0]} has no effect on a retriever; the seed stands in the space"
        )

    def announce(plan: HalvingPlan, calls: int) -> None:
        options.note(f"up to {calls:,} questions; {plan}")
        if dry:
            raise click.exceptions.Exit(0)

    folder = Path(kept["answers"] or f"{function.rpartition(':')[2]}.part")
    if kept["fresh"]:
        remove_answers(folder)
    make = import_retriever(function)
    if not callable(make):
        raise click.UsageError(f"{function} is a {type(make).__name__}, and makes no retrievers")
    with options.progress("asking") as progress:
        tuning = tune(
            make,
            options.paths((), gold)[1],
            measures,
            answers=None if dry else folder,
            announce=announce,
            progress=progress,
            **grouped(given | judge),
        )
    _write(tuning, how, outputs)
    if not kept["answers"]:
        remove_answers(folder)
    return 0


def _write(tuning: Tuning, how: str, outputs: Sequence[str]) -> None:
    """Write a tuning, and what was asked for, by the ending of each file."""
    from findwell.io.read.trec import as_trec  # noqa: PLC0415
    from findwell.retrievers.answers import as_json_lines  # noqa: PLC0415
    from findwell.show.charts import write_image  # noqa: PLC0415
    from findwell.show.tuning import charts, page, render  # noqa: PLC0415

    for output in outputs:
        kind = Path(output).suffix.lower()
        if kind in (".svg", ".png"):
            if not charts(tuning):
                raise click.UsageError(f"-o {output}: a space of several knobs has no curve")
            write_image(charts(tuning)[0], output)
        elif kind in (".html", ".htm"):
            options.write(page(tuning), output)
        elif kind == ".jsonl":
            options.write("".join(as_json_lines(tuning.run)), output)
        else:
            options.write(as_trec(tuning.run), output)
    options.write(render(tuning, how, **options.screen(None)), None)
    if how not in ("json", "html"):
        options.print_findings(tuning.findings)
