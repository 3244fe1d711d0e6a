"""`findwell tune`: the weights of a hybrid, chosen on some queries and measured on others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option, option_set
from findwell.cli.fuse import engine_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.loop.tuning.halving import HalvingPlan
    from findwell.loop.tuning.tuning import Tuning


@click.command("tune", cls=Command, short_help="Choose the weights with which runs are fused.")
@options.runs
@options.reading("missing", "cluster", queries_too=True)
@options.dialect
@options.measures("nDCG@10", "nDCG@10")
@options.rel
@options.slices
@options.level
@option_set(
    option(
        "--engine NAME",
        "Search engine whose formula fuses the runs. Such as elasticsearch-rrf or "
        "weaviate-relative (`findwell fuse --list` lists all).",
    ),
    engine_settings,
    option(
        "--space FILE", "TOML file of knobs and their values. For a retriever, of its arguments."
    ),
    option(
        "--current SHARE|W,W,…",
        "Setting in use, to compare with. The share of the first of two runs, or one weight "
        "for each run; k, where the engine has no weights.",
    ),
    option(
        "--step SHARE",
        "Step between the shares that are tried (default: 0.01 for two runs, 0.05 for three, "
        "0.1 for four, 0.2 for five).",
        rare=True,
    ),
    option(
        "--folds N",
        "Parts of the queries. Each is scored with the setting that the others choose.",
        low=2,
        default=5,
        rare=True,
    ),
    option(
        "--repeats N",
        "How many times the queries are dealt into folds.",
        low=1,
        default=10,
        rare=True,
    ),
    option("--seed N", "Seed of folds, bootstraps and tests.", default=0, rare=True),
    options.disjoint,
    option(
        "--answers FOLDER",
        "Keep the answers of a retriever here (default: until the command has ended well).",
    ),
    option("--fresh", "Ignore saved answers and ask the retriever again."),
    group="Tuning",
)
@judging.judged()
@options.output_format(("table", "json", "markdown", "html"))
@option(
    "-o, --output FILE...",
    "Write the fused run, the page or the chart. The runs fused with the chosen setting "
    "(.trec, .jsonl), the page (.html), the chart (.svg, .png) or, with --format json, the whole "
    "answer (.json); may be repeated.",
    name="outputs",
    group="Output",
)
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    how: str,
    outputs: tuple[str, ...],
    judge: judging.JudgeChoice,
    engine_settings: dict[str, Any],
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
    that is certain, and how many queries it would take if not. The fused run of -o is that of the
    setting chosen from all queries.

    Instead of runs, module:function may make a retriever of the values of knobs. Configurations are
    asked by successive halving; the reported gain is measured on questions that took no part in the
    choice. After an interruption the same command continues where it stopped.
    """
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.loop.tuning.choice import TooFewQueriesError  # noqa: PLC0415
    from findwell.loop.tuning.tune import tune  # noqa: PLC0415

    named = list(measures) or "nDCG@10"
    kept = {name: choices.pop(name) for name in ("answers", "fresh")}
    choices |= engine_settings
    if _makes_retrievers(runs):
        return _tune_retriever(runs[0], gold, named, how, outputs, kept, choices, judge)
    for name, value in kept.items():
        if value:
            raise click.UsageError(f"--{name} is for a retriever: module:function")
    files, gold = options.paths(runs, gold)
    chosen = {**judge.options, **choices}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    with options.progress("judging") as progress:
        try:
            tuning = tune(files, gold, named, progress=progress, **grouped(chosen))
        except TooFewQueriesError:
            if judge.write_forecast(how, None):  # no judge answered, so there is no value
                return 0
            raise
    _write(tuning, how, outputs)
    return 0


def _makes_retrievers(runs: Sequence[str]) -> bool:
    """Tell a function that makes retrievers from files."""
    from findwell.io.read.format import FUNCTION  # noqa: PLC0415

    return len(runs) == 1 and bool(FUNCTION.fullmatch(runs[0])) and not Path(runs[0]).exists()


def _tune_retriever(  # noqa: PLR0917
    function: str,
    gold: str | None,
    measures: list[str] | str,
    how: str,
    outputs: Sequence[str],
    kept: Mapping[str, Any],
    choices: dict[str, Any],
    judge: judging.JudgeChoice,
) -> int:
    """Ask configurations of a retriever; answers are kept until the end, or for good."""
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.loop.tuning.retriever_trials import remove_answers  # noqa: PLC0415
    from findwell.loop.tuning.tune import tune  # noqa: PLC0415
    from findwell.retrievers.retriever import import_retriever  # noqa: PLC0415

    known = (".html", ".htm", ".json")
    others = [output for output in outputs if Path(output).suffix.lower() not in known]
    if others:
        raise click.UsageError(f"-o {others[0]}: write a tuned retriever as a page (.html)")
    asked = replace(judge, dry_run=False).options
    given = options.explicit(choices)
    idle = [name for name in ("folds", "repeats", "seed") if given.pop(name, None) is not None]
    if idle:
        raise click.UsageError(
            f"--{idle[0]} has no effect on a retriever; set the seed in the space"
        )

    def announce(plan: HalvingPlan, calls: int) -> None:
        options.note(f"up to {calls:,} questions; {plan}")
        if judge.dry_run:
            envelope.answer({"forecast": {"questions": calls, "plan": str(plan)}}, None)
            raise click.exceptions.Exit(0)

    folder = Path(kept["answers"] or f"{function.rpartition(':')[2]}.part")
    if kept["fresh"]:
        remove_answers(folder)
    make = import_retriever(function)
    if not callable(make):
        raise click.UsageError(f"{function} is of type {type(make).__name__}, not a function")
    with options.progress("asking") as progress:
        tuning = tune(
            make,
            options.paths((), gold)[1],
            measures,
            answers=None if judge.dry_run else folder,
            announce=announce,
            progress=progress,
            **grouped(given | asked),
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
    from findwell.show.document import document_of  # noqa: PLC0415
    from findwell.show.tuning import charts, page  # noqa: PLC0415

    whole = next((each for each in outputs if Path(each).suffix.lower() == ".json"), None)
    if whole is not None and how != "json":
        raise click.UsageError(f"-o {whole} needs --format json")
    for output in outputs:
        kind = Path(output).suffix.lower()
        if kind in (".svg", ".png"):
            if not charts(tuning):
                raise click.UsageError(f"-o {output}: a space of several knobs has no curve")
            write_image(charts(tuning)[0], output)
            envelope.wrote(output)
        elif kind in (".html", ".htm"):
            options.write(page(tuning), output)
        elif kind == ".jsonl":
            options.write("".join(as_json_lines(tuning.run)), output)
        elif kind != ".json":  # the whole answer, which is written in the end
            options.write(as_trec(tuning.run), output)
    if how == "html":
        options.write(page(tuning), None)
    else:
        envelope.show(how, whole, document_of(tuning))
    if how not in ("json", "html"):
        # what the judge is worth is said above
        options.print_findings(each for each in tuning.findings if each.kind != "judge-limits")
