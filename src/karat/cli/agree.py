"""`karat agree`: do two rankings, two orders of systems or two sets of labels agree?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.report.agreement import FORMATS

if TYPE_CHECKING:
    from karat.comparison.agreements import Agreement

KINDS = ("rankings", "labels", "systems")


@click.command("agree", short_help="Say how far two rankings, labellings or results agree.")
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="SECOND")
@click.option("--as", "kind", type=click.Choice(KINDS), help="What they are, if that is not told.")
@click.option("-m", "--measure", "measures", multiple=True, help="What results order systems by.")
@click.option("-p", "--persistence", type=float, default=0.9, show_default=True, help="Of RBO.")
@click.option("-k", "--depth", type=click.IntRange(min=1), help="Cut rankings here.")
@click.option("--column", metavar="NAME", help="Tables of labels: the column of the labels.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--details", is_flag=True, help="Also query by query, or system by system.")
@click.option("--format", "how", type=click.Choice(FORMATS), default="table")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
def command(
    *,
    first: str,
    second: str,
    how: str,
    output: str | None,
    details: bool,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Compare two sides that should say the same.

    \b
    karat agree old.trec new.trec                       rankings: RBO, Kendall's tau, tau-AP
    karat agree qrels-anna.txt qrels-ben.txt            labels: Cohen's kappa, plain and weighted
    karat agree anna.csv judge.csv --column verdict     labels in tables: query, doc, verdict
    karat agree results/gold results/judge -m recall@5  orders of the same systems: tau, tau-AP
    """
    from karat.report.agreement import render  # noqa: PLC0415

    found = _agreement(first, second, **choices)
    options.write(render(found, how, details=details), output)
    if how != "json":
        options.tell(found.findings)


def _agreement(
    first: str,
    second: str,
    *,
    kind: str | None,
    measures: tuple[str, ...],
    persistence: float,
    depth: int | None,
    column: str | None,
    level: float,
) -> Agreement:
    from karat.comparison.agreements import (  # noqa: PLC0415
        agree_on_labels,
        agree_on_rankings,
        agree_on_systems,
    )

    kind = kind or ("labels" if column is not None else _kind(first, second))
    if kind == "systems":
        return agree_on_systems(first, second, measures=list(measures) or None)
    if kind == "labels":
        return agree_on_labels(first, second, column=column, level=level)
    return agree_on_rankings(first, second, p=persistence, k=depth)


def _kind(first: str, second: str) -> str:
    """Tell what the two sides are, from what the first one can be read as."""
    from karat.errors import KaratError  # noqa: PLC0415
    from karat.read import load_gold, load_run  # noqa: PLC0415
    from karat.storage.folders import is_folder  # noqa: PLC0415

    if is_folder(first) and is_folder(second):
        return "systems"
    try:
        next(load_run(first).batches(), None)
    except KaratError as no_run:
        try:
            load_gold(first)
        except KaratError:
            raise no_run from None
        return "labels"
    try:
        load_gold(first)
    except KaratError:
        return "rankings"
    raise click.UsageError(f"{first} may hold rankings or labels: say --as rankings or --as labels")
