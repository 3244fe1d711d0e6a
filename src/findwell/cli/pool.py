"""`findwell pool`: gather what several systems retrieved, to be labelled."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import judging, options
from findwell.core.spelling import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.loop.labels.label_pool import LabelPool

PURPOSES = ("ordering", "values")
METHODS = ("mm-ns", "mtf", "depth")
FORMATS = ("table", "json", "csv", "markdown")
BASIS = {  # where the half-widths come from
    "pilot": "those that the pilot lets expect",
    "judge": "those if the judge were right, without what its strata gain",
    "worst": "those of the worst case; --pilot or --judge tell more",
}
BIASED = "labels in this order tell which run is better; how good it is, only with --for values"


def _share(_: click.Context, __: click.Parameter, text: str) -> float:
    """Read a share: 0.2 or 20%."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 20% or 0.2")
    return share


def _judge_on_request(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of judges; without --judge no judge is asked."""
    added = judging.judge_options(function)
    for each in added.__click_params__:  # type: ignore[attr-defined]
        if each.name == "judge":
            each.help = (
                "Who grades the pool, for the strata: local, local:text, openai:MODEL, "
                "replay:FILE (default: nobody)."
            )
    return added


@click.command("pool", short_help="Gather what systems retrieved, to be labelled.")
@options.runs
@click.option("--queries", metavar="FILE", help="Questions: a table with query and question.")
@click.option("--corpus", metavar="PATH", help="Texts of the documents by id: a file or a folder.")
@click.option(
    "--depth",
    type=click.IntRange(1),
    default=10,
    metavar="K",
    help="How many documents of each run and query are in the pool.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(PURPOSES),
    default="ordering",
    help="What labels are for: ordering systems, or absolute values.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="For ordering: which document comes next (default: mm-ns).",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="How many pairs will be labelled (default: all).",
)
@click.option(
    "--overlap",
    default="0%",
    callback=_share,
    metavar="SHARE",
    help="Share of the pairs that every annotator labels.",
)
@_judge_on_request
@click.option(
    "--judged",
    metavar="PATH",
    help="Grades that a judge gave before, to stratify by: qrels, any other gold, or a saved "
    "result with verdicts about relevance.",
)
@click.option(
    "--pilot",
    metavar="FILE",
    help="Labels that are known already, as any gold or another pool, to tell what precision the "
    "budget buys.",
)
@click.option(
    "--highest",
    type=click.IntRange(1),
    default=3,
    metavar="GRADE",
    help="Highest grade (1: yes/no labels).",
)
@click.option("--guidelines", metavar="FILE", help="Text that annotators see at the side.")
@click.option(
    "--seed", type=int, default=0, metavar="N", help="Seed of the sample and of the overlap."
)
@options.level
@options.run_format
@options.skip_bad
@options.id_from
@options.spool_limit
@options.output_format(FORMATS)
@click.option("-o", "--output", default="pool", metavar="FOLDER", help="Folder of the pool.")
def command(
    *,
    runs: tuple[str, ...],
    output: str,
    how: str,
    pilot: str | None,
    level: float,
    guidelines: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Gather the first documents of every RUN, with their texts, into a folder to label from.

    \b
    findwell pool a.trec b.trec --queries q.jsonl --corpus docs.jsonl -o pool
    findwell pool a.jsonl b.jsonl --budget 300 --overlap 20%
    findwell pool a.jsonl --for values --budget 200 --judge openai:MODEL
    findwell label pool
    findwell pool pool --budget 400

    For ordering, documents that are likely to be relevant come first (mm-ns, a bandit over the
    runs; mtf, move-to-front; depth, by rank), never by the opinion of a judge: few labels then tell
    which system is better, but not how good it is. For values, pairs are a probability sample,
    stratified by the grades of a judge where one is named, and every label keeps its probability.
    What is printed is the precision that the budget buys: the half-widths of the intervals to
    expect about these queries, and about queries like these. With the folder of a pool instead of
    runs, its own labels are the pilot, and --budget has more of it labelled.
    """
    from findwell.io.read.labels_database import database_at  # noqa: PLC0415
    from findwell.io.read.source import Source  # noqa: PLC0415
    from findwell.io.storage.files import temporary_folder  # noqa: PLC0415
    from findwell.loop.labels.pool import pool  # noqa: PLC0415

    budget = choices.pop("budget")  # a judge has a budget, too
    chosen = judging.take(choices) | {"budget": budget, **choices}
    files, _ = options.paths(runs)
    if len(files) == 1 and database_at(files[0]) is not None:
        _extend(files[0], budget, level, how, output)
        return
    if guidelines is not None:
        chosen["guidelines"] = Source.of(guidelines).read().decode("utf-8", "replace")
    with ExitStack() as held, options.progress("judging") as progress:
        dry = isinstance(chosen.get("judge"), judging.DryRunJudge)
        folder = held.enter_context(temporary_folder()) / "pool" if dry else Path(output)
        made = pool(files, folder, progress=progress, pilot=pilot, **chosen)
    if judging.write_dry_run(chosen, how, None):
        return
    found = made.precision(pilot=pilot, level=level)
    _show(made, found.to_dicts(), how, output)


def _extend(folder: str, budget: int | None, level: float, how: str, output: str) -> None:
    """Show what a pool with labels buys, by its own labels, and have more of it labelled."""
    from findwell.loop.labels.labels import Labels  # noqa: PLC0415

    given = set(options.explicit(click.get_current_context().params))
    other = sorted(given - {"runs", "budget", "level", "how", "output"})
    if other:
        name = {"purpose": "for"}.get(other[0], other[0]).replace("_", "-")
        raise click.UsageError(f"--{name} has no effect on a pool that is there already")
    if "output" in given and Path(output).resolve() != Path(folder).resolve():
        raise click.UsageError("a pool is made larger where it is: leave out -o")
    with Labels.open(folder) as labels:
        if budget is not None:
            labels.extend(budget)
        made = labels.pool()
        found = made.precision(pilot=labels if len(labels) else None, level=level)
    _show(made, found.to_dicts(), how, folder)


def _show(made: LabelPool, rows: list[dict[str, Any]], how: str, folder: str) -> None:
    """Print what was made, what it buys, and what to do next."""
    options.write(render(made, rows, how), None)
    options.print_findings(made.findings)
    basis = rows[0]["basis"].split()[0]
    options.note(f"note: half-widths are {BASIS[basis]}")
    if made.settings["design"] != "sample":
        options.note(f"note: {BIASED}")
    options.note(f"note: label it with: findwell label {folder}")


def render(made: LabelPool, rows: list[dict[str, Any]], how: str) -> str:
    """Return the pool and its precision in a format."""
    import polars as pl  # noqa: PLC0415

    from findwell.show.grid import Grid  # noqa: PLC0415
    from findwell.show.tables import number, render_grids, to_json, to_rows  # noqa: PLC0415

    if how == "json":
        about: dict[str, Any] = {"queries": made.pairs["query"].n_unique(), **made.settings}
        about |= {"pairs": made.pairs.height, "runs": list(made.runs)}
        found = [finding.as_dict() for finding in made.findings]
        return to_json({"pool": about, "precision": rows, "findings": found})
    if how == "csv":
        return to_rows(pl.DataFrame(rows), how)
    queries = made.pairs["query"].n_unique()
    sample = made.settings["design"] == "sample"
    title = (
        f"{counted(made.pairs.height, 'pair', 'pairs')}, {counted(queries)}, "
        f"{counted(len(made.runs), 'run', 'runs')} · "
        f"{made.settings['design']} · half-widths"
    )
    header = ["run", "measure", "labels", "these queries", "queries like these"]
    if not sample:
        header = ["run", "measure", "labels", "bounds"]
    cells = [
        [row["run"], row["measure"], str(row["budget"])]
        + [number(row[name]) for name in (("these", "new") if sample else ("these",))]
        for row in rows
        if sample or row["measure"].startswith("P@")
    ]
    grid = Grid(title, header, cells, left=2)
    return render_grids([grid], how, width=options.width(None))
