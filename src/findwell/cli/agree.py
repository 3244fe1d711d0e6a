"""`findwell agree`: do two rankings, orders of systems or sets of labels, or annotators agree?"""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import options
from findwell.show.agreement import FORMATS

KINDS = ("rankings", "labels", "systems")


@click.command("agree", short_help="Say how far two rankings, labellings or results agree.")
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="[SECOND]", required=False)
@click.option(
    "--kind", type=click.Choice(KINDS), help="What the two sides are (default: detected)."
)
@options.measures("those of the first result", "recall@5, by which results order systems")
@click.option(
    "-p",
    "--persistence",
    type=float,
    default=0.9,
    metavar="P",
    help="Rankings: p of RBO, the chance that a reader goes on to the next rank.",
)
@click.option(
    "-k",
    "--depth",
    type=click.IntRange(min=1),
    metavar="K",
    help="Rankings: cut them at this rank (default: whole lists).",
)
@click.option("--column", metavar="NAME", help="Labels in tables: the column that holds them.")
@options.level
@options.run_format
@options.gold_format
@options.skip_bad
@options.id_from
@options.ids
@click.option("--details", is_flag=True, help="Also print every query or every system.")
@options.output(FORMATS)
def command(
    *,
    first: str,
    second: str | None,
    measures: tuple[str, ...],
    how: str,
    output: str | None,
    details: bool,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Say how far two rankings, two sets of labels, two results or the annotators of a pool agree.

    \b
    findwell agree old.trec new.trec                    two rankings
    findwell agree qrels-anna.txt qrels-ben.txt         two sets of labels
    findwell agree anna.csv judge.csv --column verdict  labels in tables
    findwell agree results/gold results/judge           two orders of systems
    findwell agree pool/                                annotators of one pool

    Rankings are compared by RBO, Kendall's tau and tau-AP, labels by Cohen's kappa, plain and
    weighted, and orders of systems, one for each measure, by tau and tau-AP. Tables of labels
    have the columns query, doc and the one that --column names. Annotators are compared by Cohen's
    and Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, with the prevalence next to them; with
    --details also one by one, and query by query, the least clear ones first.
    """
    from findwell.loop.labels.agree import agree  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    found = agree(first, second, measures=list(measures) or None, **choices)
    options.write(render(found, how, details=details, width=options.width(output)), output, how)
    if how != "json":
        options.print_findings(found.findings)
