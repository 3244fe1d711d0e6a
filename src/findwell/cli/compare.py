"""`findwell compare`: is one system better than another?"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import click

from findwell.cli import envelope, gating, judging, options
from findwell.cli.command import Command, option, option_set, typed_options
from findwell.show.tables import FORMATS


@click.command("compare", cls=Command, short_help="Test whether one system is better than another.")
@options.runs
@options.reading("missing", "cluster", "latency_unit", queries_too=True)
@options.labels
@options.measures("those of the first result, or as `findwell score`")
@options.rel
@options.dialect
@options.slices
@option_set(
    option("--baseline NAME", "What to compare with: one of the systems (default: the first)."),
    option(
        "--unpaired",
        "Compare systems that were asked different queries. Such as those of two periods.",
    ),
    option("--all-pairs", "Compare every pair of systems."),
    option(
        "--test TEST",
        "Test of the differences: auto, permutation, t or mcnemar. Auto is McNemar's test for "
        "values that are all 0 or 1, else a permutation test.",
        type=click.Choice(["auto", "permutation", "t", "mcnemar"]),
        default="auto",
        rare=True,
    ),
    options.level,
    option("--seed N", "Seed of the random permutations.", default=0, rare=True),
    option(
        "--moved N",
        "How many queries to show of those that gained most, and of those that lost most.",
        low=0,
        default=3,
        rare=True,
    ),
    group="Comparison",
)
@judging.judged()
@option_set(
    option(
        "--no-regression MEASURE,…...",
        "Measures that must not get worse. No system may be worse than the baseline in them; "
        "may be repeated.",
    ),
    option("--margin D", "How much worse --no-regression allows.", low=0, default=0.0),
    gating.decision_options,
    group="Gates",
)
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
    labels: str | None,
    judge: judging.JudgeChoice,
    undecided: str,
    decide: str,
    junit: str | None,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Compare systems on the same queries: run files with gold labels, records, or saved results.

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
    from findwell.show.comparison import unmeasured  # noqa: PLC0415
    from findwell.show.document import document_of, render  # noqa: PLC0415

    guarded = [name for text in no_regression for name in _split(text)]
    typed = typed_options(click.get_current_context())
    idle = next((typed[name] for name in ("junit", "margin") if name in typed), "")
    if idle and not guarded:
        raise click.UsageError(f"{idle} needs --no-regression")
    files, gold = options.paths(runs, gold)
    if labels is not None and guarded:
        raise click.UsageError("--no-regression and --labels exclude each other")
    named = [*measures, *guarded] or None
    chosen = options.explicit(choices) | judge.shared_options | {"gold": gold, "moved": moved}
    with options.progress("comparing") as progress:
        chosen |= {} if progress is None else {"progress": progress}
        if labels is not None:
            return _estimate(files, labels, named, chosen, how, output, judge)
        if judge.forecast_systems(files, named, chosen, how, output):
            return 0
        comparison = compare(*files, measures=named, **grouped(chosen))
    requirements = gates.no_regression(comparison, guarded, margin) if guarded else []
    gate = gates.gate(comparison, requirements, undecided=undecided, decide=decide)
    document = document_of(comparison, moved=moved)
    envelope.show(how, output, document, *gating.shown_with(gate, how))
    if how != "json":
        options.print_findings(comparison.findings)
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
    judge: judging.JudgeChoice,
) -> int:
    """Estimate the systems and their differences from labels of some pairs."""
    from findwell.evaluation.plan import PlanOptions  # noqa: PLC0415
    from findwell.loop.labels.estimates import evaluate_with_labels  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    given = {name: value for name, value in chosen.items() if value not in (None, ())}
    given.pop("moved", None)
    refused = given.keys() - PlanOptions.__optional_keys__ - {"level"}
    if refused:
        name = min(refused).replace("_", "-")
        raise click.UsageError(f"--{name} and --labels exclude each other")
    result = evaluate_with_labels(files, labels, measures or DEFAULTS, **given)
    if judge.write_forecast(how, output):
        return 0
    envelope.show(how, output, document_of(result))
    if how != "json":
        options.print_findings(result.findings)
    return 0


def _split(text: str) -> list[str]:
    """Split a list of measures; commas also stand between cutoffs and parameters.

    >>> _split("recall@1,5, F(beta=2,rel=2)@5,nDCG@10")
    ['recall@1,5', 'F(beta=2,rel=2)@5', 'nDCG@10']
    """
    return re.split(r",\s*(?=[^\W\d])(?![^()]*\))", text.strip())
