"""`findwell compare`: is one system better than another?"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import click

from findwell.cli import gating, judging, options
from findwell.show.tables import FORMATS, ROW_FORMATS


@click.command("compare", short_help="Test whether one system is better than another.")
@options.inputs
@options.measures("those of the first result, or as `findwell score`")
@options.measuring
@options.slicing
@click.option(
    "--baseline", metavar="NAME", help="System that others are compared with (default: the first)."
)
@click.option(
    "--unpaired",
    is_flag=True,
    help="Compare systems that were asked different queries, such as those of two periods.",
)
@click.option("--all-pairs", is_flag=True, help="Compare every pair of systems.")
@click.option(
    "--test",
    type=click.Choice(["auto", "permutation", "t", "mcnemar"]),
    default="auto",
    help="Test of the differences; auto is McNemar's test for values that are all 0 or 1, else a "
    "permutation test.",
)
@options.level
@click.option(
    "--permutations",
    type=int,
    default=10_000,
    metavar="N",
    help="How many random permutations a test draws.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the random permutations.")
@click.option(
    "--moved",
    type=click.IntRange(min=0),
    default=3,
    metavar="N",
    help="How many queries to show of those that gained most, and of those that lost most.",
)
@click.option(
    "--no-regression",
    multiple=True,
    metavar="MEASURE,…",
    help="Gate: no system may be worse than the baseline in these measures; may be repeated.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="D",
    help="By how much --no-regression lets a system be worse.",
)
@options.labels
@judging.judge_options
@gating.decision_options
@options.output(FORMATS)
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
    findwell compare old.trec new.trec --gold qrels.txt -m recall@10
    findwell compare results/main results/branch --no-regression recall@5,nDCG@10
    findwell compare a.trec b.trec c.trec --gold qrels.txt --all-pairs
    findwell compare a.jsonl b.jsonl -m context_recall --judge openai:MODEL
    findwell compare a.trec b.trec -m P@10 --labels pool/
    findwell compare results/october results/november --unpaired

    The first RUN is the baseline. Without --gold each is a file whose records hold what was
    retrieved and what is gold, or the folder of a result that `findwell score --save` wrote.
    """
    from findwell.evaluation.comparison import gates  # noqa: PLC0415
    from findwell.evaluation.comparison.compare import compare  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.show.comparison import render, unmeasured  # noqa: PLC0415

    decisions, junit = gating.take_decisions(choices), choices.pop("junit")
    guarded = [name for text in no_regression for name in _split(text)]
    if junit is not None and not guarded:
        raise click.UsageError("--junit needs --no-regression")
    files, gold = options.paths(runs, gold)
    labels = choices.pop("labels")
    if labels is not None and guarded:
        raise click.UsageError("--no-regression and --labels exclude each other")
    judge = judging.take_shared(choices)
    named = [*measures, *guarded] or None
    chosen = options.explicit(choices) | judge | {"gold": gold, "moved": moved}
    with options.progress("comparing") as progress:
        chosen |= {} if progress is None else {"progress": progress}
        if labels is not None:
            return _estimate(files, labels, named, chosen, how, output)
        if judging.dry_run(files, named, chosen, how, output):
            return 0
        comparison = compare(*files, measures=named, **grouped(chosen))
    requirements = gates.no_regression(comparison, guarded, margin) if guarded else []
    gate = gates.gate(comparison, requirements, **decisions)
    screen = options.screen(output)
    text = render(comparison, how, moved=moved, **screen)
    options.write(gating.with_verdicts(text, gate, how, **screen), output, how)
    if how != "json":
        options.print_findings(comparison.findings)
    if how in ROW_FORMATS:
        options.note_judges(comparison.judges)
    lacking = options.print_unmeasured(unmeasured(comparison))
    tables = partial(render, comparison, "markdown", moved=moved)
    return gating.report_verdicts(gate, how, output, junit, tables) or lacking


def _estimate(  # noqa: PLR0917
    files: list[str],
    labels: str,
    measures: list[str] | None,
    chosen: dict[str, Any],
    how: str,
    output: str | None,
) -> int:
    """Estimate the systems and their differences from labels of some pairs."""
    from findwell.evaluation.plan import PlanOptions  # noqa: PLC0415
    from findwell.loop.labels.estimates import evaluate_with_labels  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show.result import render  # noqa: PLC0415

    given = {name: value for name, value in chosen.items() if value not in (None, ())}
    given.pop("moved", None)
    refused = given.keys() - PlanOptions.__optional_keys__ - {"level"}
    if refused:
        name = min(refused).replace("_", "-")
        raise click.UsageError(f"--{name} and --labels exclude each other")
    result = evaluate_with_labels(files, labels, measures or DEFAULTS, **given)
    if judging.write_dry_run(chosen, how, output):
        return 0
    options.write(render(result, how, **options.screen(output)), output, how)
    if how != "json":
        options.print_findings(result.findings)
    return 0


def _split(text: str) -> list[str]:
    """Split a list of measures; commas also stand between cutoffs and parameters.

    >>> _split("recall@1,5, F(beta=2,rel=2)@5,nDCG@10")
    ['recall@1,5', 'F(beta=2,rel=2)@5', 'nDCG@10']
    """
    return re.split(r",\s*(?=[^\W\d])(?![^()]*\))", text.strip())
