"""`karat agree`: do two rankings, two orders of systems or two sets of labels agree?"""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options
from karat.reports.agreement import FORMATS

KINDS = ("rankings", "labels", "systems")


@click.command("agree", short_help="Say how far two rankings, labellings or results agree.")
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="SECOND")
@click.option("--kind", type=click.Choice(KINDS), help="What they are (default: detected).")
@click.option(
    "-m", "--measure", "measures", multiple=True, help="Results: a measure that orders systems."
)
@click.option(
    "-p",
    "--persistence",
    type=float,
    default=0.9,
    show_default=True,
    help="Rankings: the p of RBO, how far down the reader goes.",
)
@click.option("-k", "--depth", type=click.IntRange(min=1), help="Rankings: cut them at this rank.")
@click.option("--column", metavar="NAME", help="Labels in tables: their column.")
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Level of the intervals."
)
@options.some("ids", "run_format", "gold_format", "skip_bad", of=options.reading)
@click.option("--details", is_flag=True, help="Also print every query or every system.")
@click.option("--format", "how", type=click.Choice(FORMATS), default="table")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this file instead of standard output."
)
def command(
    *,
    first: str,
    second: str,
    measures: tuple[str, ...],
    how: str,
    output: str | None,
    details: bool,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Say how far two rankings, two sets of labels or two results agree.

    \b
    karat agree old.trec new.trec                       rankings: RBO, Kendall's tau, tau-AP
    karat agree qrels-anna.txt qrels-ben.txt            labels: Cohen's kappa, plain and weighted
    karat agree anna.csv judge.csv --column verdict     labels in tables: query, doc, verdict
    karat agree results/gold results/judge -m recall@5  orders of the same systems: tau, tau-AP
    """
    from karat.comparison.agree import agree  # noqa: PLC0415
    from karat.reports.agreement import render  # noqa: PLC0415

    found = agree(first, second, measures=list(measures) or None, **choices)
    options.write(render(found, how, details=details), output)
    if how != "json":
        options.tell(found.findings)
