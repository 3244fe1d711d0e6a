"""`karat compare`: is one system better than another?"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import click

from karat.cli import asking, gating, options
from karat.reports.tables import FORMATS


@click.command("compare", short_help="Test whether one system is better than another.")
@options.inputs
@click.option("-m", "--measure", "measures", multiple=True, help="A measure: recall@5, nDCG@10, …")
@options.measuring
@click.option(
    "--queries", metavar="FILE", help="A table with columns about the queries, to slice by."
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Also compare by this column of the queries.",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Queries with the same value in this column are not independent.",
)
@click.option("--baseline", metavar="NAME", help="The system to compare with (default: the first).")
@click.option("--all-pairs", is_flag=True, help="Compare every pair of systems.")
@click.option(
    "--test",
    type=click.Choice(["auto", "permutation", "t", "mcnemar"]),
    default="auto",
    show_default=True,
    help="The test of the difference; auto: McNemar's for hit or miss, else a permutation test.",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Level of the intervals."
)
@click.option(
    "--permutations",
    type=int,
    default=10_000,
    show_default=True,
    help="How many random permutations a test draws.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the random permutations."
)
@click.option(
    "--moved",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many queries to show that gained most, and that lost most.",
)
@click.option(
    "--no-regression",
    multiple=True,
    metavar="MEASURE,…",
    help="A gate: no system may be worse than the baseline in these measures.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How much worse --no-regression still accepts.",
)
@asking.judging
@gating.deciding
@click.option("--format", "how", type=click.Choice(FORMATS), default="table")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this file instead of standard output."
)
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    no_regression: tuple[str, ...],
    margin: float,
    moved: int,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Compare systems on the same queries: run files with a gold, records, or saved results.

    \b
    karat compare old.trec new.trec --gold qrels.txt -m recall@10
    karat compare results/main results/branch --no-regression recall@5,nDCG@10 --margin 0.02
    karat compare a.trec b.trec c.trec --gold qrels.txt --all-pairs --format latex
    karat compare a.jsonl b.jsonl -m context_recall --judge openai:MODEL --max-cost 5

    The first one is the baseline. Without --gold each is a file whose records hold what was
    retrieved and what is gold, or the folder of a result that `karat score --save` wrote.
    """
    from karat.comparison import gates  # noqa: PLC0415
    from karat.comparison.compare import compare  # noqa: PLC0415
    from karat.reports.comparison import render, unmeasured  # noqa: PLC0415

    gating_options = gating.GateOptions.take(choices)
    guarded = [name for text in no_regression for name in _split(text)]
    if gating_options.junit is not None and not guarded:
        raise click.UsageError("--junit needs --no-regression")
    files, gold = options.systems(runs, gold)
    judge = asking.for_all(asking.take(choices))
    named = [*measures, *guarded] or None
    chosen = options.given(choices) | judge | {"gold": gold, "moved": moved}
    with options.progress("comparing") as progress:
        chosen |= {} if progress is None else {"progress": progress}
        if asking.dry_run(files, named, chosen, how, output):
            return 0
        comparison = compare(*files, measures=named, **chosen)
    asked = gates.no_regression(comparison, guarded, margin) if guarded else []
    how_decided = {"decide": gating_options.decide, "undecided": gating_options.undecided}
    gate = gates.gate(comparison, asked, **how_decided)
    text = render(comparison, how, moved=moved, color=options.use_color())
    options.write(gating.with_verdicts(text, gate, how), output)
    if how != "json":
        options.tell(comparison.findings)
    lacking = options.tell_unmeasured(unmeasured(comparison))
    tables = partial(render, comparison, "markdown", moved=moved)
    return gating_options.finish(gate, how, output, tables) or lacking


def _split(text: str) -> list[str]:
    """Split a list of measures; commas also stand between cutoffs and parameters.

    >>> _split("recall@1,5, F(beta=2,rel=2)@5,nDCG@10")
    ['recall@1,5', 'F(beta=2,rel=2)@5', 'nDCG@10']
    """
    return re.split(r",\s*(?=[^\W\d])(?![^()]*\))", text.strip())
