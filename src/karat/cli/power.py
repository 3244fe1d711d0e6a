"""`karat power`: how many queries a comparison needs."""

from __future__ import annotations

import json
from typing import Any

import click

from karat.cli import asking, options


@click.command("power", short_help="Say how many queries a comparison needs.")
@click.argument("results", nargs=-1, metavar="[RESULT]...")
@options.reading
@options.dialect
@options.latency
@options.measuring
@click.option("-m", "--measure", "measures", multiple=True, help="A measure: recall@10, …")
@click.option("--difference", type=float, metavar="D", help="The difference to detect: 0.02")
@click.option(
    "--sd",
    type=float,
    metavar="SD",
    help="Assume this standard deviation of the differences (mostly 0.2 to 0.4).",
)
@click.option(
    "--changed",
    type=float,
    metavar="SHARE",
    help="For a hit-or-miss measure, assume that this share of the queries changes.",
)
@click.option(
    "--queries", type=click.IntRange(min=1), metavar="N", help="How many queries you have."
)
@click.option(
    "--correlation",
    type=float,
    default=0.5,
    show_default=True,
    help="With one result: the correlation assumed between it and another system.",
)
@click.option(
    "--power", type=float, default=0.8, show_default=True, help="Chance to detect the difference."
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Chance to report a difference where there is none.",
)
@click.option("--sizes", metavar="N,N,…", help="Numbers of queries for the curve.")
@asking.judging
@click.option("--format", "how", type=click.Choice(["table", "json", "markdown"]), default="table")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this file instead of standard output."
)
def command(
    *,
    results: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    sizes: str | None,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Say how many queries show a difference, and which difference the queries at hand show.

    \b
    karat power results/main results/branch -m recall@10 --difference 0.02
    karat power results/main -m recall@10 --difference 0.02
    karat power old.jsonl new.jsonl --by rouge -m recall@10 --difference 0.02
    karat power --sd 0.3 --difference 0.02 --power 0.8 --alpha 0.05

    RESULT is a folder that `karat score --save` wrote, or a file as `karat score` takes it (with
    --gold a run, without it records that hold what is gold as well). Two show how much their
    differences vary from query to query; with one, the --correlation with another system is
    assumed; without any, assume --sd, the standard deviation of the differences.
    """
    from karat.comparison.power import power  # noqa: PLC0415
    from karat.reports.power import render  # noqa: PLC0415

    if gold is not None and not results:
        raise click.UsageError("--gold needs a run")
    files, gold = options.systems(results, gold) if results else ([], None)
    judge = asking.for_all(asking.take(choices))
    chosen = options.given(choices) | judge | {"gold": gold}
    named = list(measures) or None
    if asking.dry_run(files, named, chosen, how, output):
        return 0
    found = power(*files, measures=named, sizes=_sizes(sizes), **chosen)
    if how == "json":
        text = json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n"
    else:
        text = render(found.plans, how)
    options.write(text, output)
    if how != "json":
        options.tell(found.findings)
    empty = (each for each in found.plans if each.queries == 0)
    return options.tell_unmeasured(f"{each.measure}: from {each.basis}" for each in empty)


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 2 <= int(part) <= 10**9 for part in parts):
        raise click.BadParameter(
            f"{text!r} is not a list of sizes such as 100,200,400", param_hint="--sizes"
        )
    return sorted({int(part) for part in parts})
