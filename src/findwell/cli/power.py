"""`findwell power`: how many queries a comparison needs."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import judging, options
from findwell.show.tables import to_json


@click.command("power", short_help="Say how many queries a comparison needs.")
@click.argument("results", nargs=-1, metavar="[RESULT]...")
@options.reading
@options.dialect
@options.latency
@options.measuring
@options.measures("those of the first result, or as `findwell score`", "recall@10")
@click.option("--difference", type=float, metavar="D", help="Difference to detect, such as 0.02.")
@click.option(
    "--sd",
    type=float,
    metavar="SD",
    help="Without results: the standard deviation of the differences, mostly 0.2 to 0.4.",
)
@click.option(
    "--changed",
    type=float,
    metavar="SHARE",
    help="Without results, for a hit-or-miss measure: the share of queries that change.",
)
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many queries there are (default: those of the results).",
)
@click.option(
    "--correlation",
    type=float,
    default=0.5,
    metavar="R",
    help="With one result: the assumed correlation between it and another system.",
)
@click.option(
    "--power", type=float, default=0.8, metavar="SHARE", help="Chance to detect the difference."
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    metavar="SHARE",
    help="Chance to report a difference where there is none.",
)
@click.option(
    "--sizes",
    callback=options.whole_numbers,
    metavar="N,N,…",
    help="Numbers of queries in the table of what more queries bring (default: sizes that suit).",
)
@judging.judge_options
@options.output(("table", "json", "markdown"))
def command(
    *,
    results: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Say how many queries it takes to show a difference, and what the queries at hand can show.

    \b
    findwell power results/main results/branch -m recall@10 --difference 0.02
    findwell power results/main -m recall@10 --difference 0.02
    findwell power old.jsonl new.jsonl --by rouge -m recall@10 --difference 0.02
    findwell power --sd 0.3 --difference 0.02 --power 0.8 --alpha 0.05

    RESULT is a folder that `findwell score --save` wrote, or a file as `findwell score` takes it:
    with --gold a run, without it records that hold the gold as well. Two of them show how much
    their differences vary from query to query; of one, only its own values are known, and
    --correlation says how another system follows it; without any, give --sd or --changed.
    """
    from findwell.evaluation.comparison.power import power  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.show.power import render  # noqa: PLC0415

    if gold is not None and not results:
        raise click.UsageError("--gold needs a run")
    files, gold = options.paths(results, gold)
    judge = judging.take_shared(choices)
    chosen = options.explicit(choices) | judge | {"gold": gold}
    named = list(measures) or None
    if judging.dry_run(files, named, chosen, how, output):
        return 0
    found = power(*files, measures=named, **grouped(chosen))
    if how == "json":
        options.write(to_json(found.as_dict()), output)
    else:
        options.write(render(found.plans, how, width=options.width(output)), output, how)
        options.note_judges(found.judges)
        options.print_findings(found.findings)
    empty = (each for each in found.plans if each.queries == 0)
    return options.print_unmeasured(f"{each.measure}: from {each.basis}" for each in empty)
