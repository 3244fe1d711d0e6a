"""`findwell power`: how many queries a comparison needs."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option, typed_options


@click.command("power", cls=Command, short_help="Say how many queries a comparison needs.")
@click.argument("results", nargs=-1, metavar="[RESULT|RUN]...")
@options.reading("missing", "latency_unit")
@options.dialect
@options.rel
@options.measures("those of the first result, or as `findwell score`", "recall@10")
@option("--difference D", "Difference to detect, such as 0.02.")
@option("--sd SD", "Without results: the standard deviation of the differences, mostly 0.2 to 0.4.")
@option(
    "--changed SHARE",
    "Without results, for a hit-or-miss measure: the share of queries that change.",
)
@option(
    "--query-count N",
    "How many queries there are (default: those of the results).",
    name="queries",
    low=1,
)
@option(
    "--correlation R",
    "With one result: the assumed correlation between it and another system.",
    default=0.5,
)
@option("--power SHARE", "Chance to detect the difference.", default=0.8)
@option("--alpha SHARE", "Probability of reporting a difference that does not exist.", default=0.05)
@option(
    "--sizes N,N,…",
    "Numbers of queries to list in the table (default: 12 sizes from 10 up).",
    callback=options.whole_numbers,
)
@judging.judged()
@options.output(("table", "json", "markdown"))
def command(
    *,
    results: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    how: str,
    output: str | None,
    judge: judging.JudgeChoice,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Say how many queries it takes to show a difference, and what the queries at hand can show.

    \b
    findwell power results/main results/branch -m recall@10 --difference 0.02
    findwell power results/main -m recall@10 --difference 0.02
    findwell power old.jsonl new.jsonl --by rouge -m recall@10 --difference 0.02
    findwell power --sd 0.3 --difference 0.02 --power 0.8 --alpha 0.05

    RESULT is a folder that `findwell score --save` wrote. RUN is a file as `findwell score` takes
    it; without --gold its records hold the gold as well. Two of them show how much
    their differences vary from query to query; of one, only its own values are known, and
    --correlation says how another system follows it; without any, give --sd or --changed.
    """
    from findwell.evaluation.comparison.power import power  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    if not results:
        typed = typed_options(click.get_current_context())
        if "gold" in typed:
            raise click.UsageError("--gold needs a RUN to measure")
        # what findwell.toml says of runs is for other commands
        gold, measures = None, measures if "measures" in typed else ()
    files, gold = options.paths(results, gold)
    chosen = options.explicit(choices) | judge.shared_options | {"gold": gold}
    named = list(measures) or None
    if judge.forecast_systems(files, named, chosen, how, output):
        return 0
    found = power(*files, measures=named, **grouped(chosen))
    envelope.show(how, output, document_of(found))
    if how != "json":
        options.print_findings(found.findings)
    empty = (each for each in found.plans if each.queries == 0)
    return options.print_unmeasured(f"{each.measure}: from {each.basis}" for each in empty)
