"""`findwell curve`: measures at many cutoffs, and the smallest one that is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option


def _targets(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, float]]:
    """Read targets such as recall>=0.9."""
    targets = []
    for text in texts:
        name, *value = text.split(">=", 1)
        try:
            targets.append((name.strip(), float("".join(value))))
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a target such as recall>=0.9") from None
    return targets


@click.command("curve", cls=Command, short_help="Show measures at many cutoffs.")
@options.runs
@options.reading("missing", "latency_unit")
@options.dialect
@options.measures("recall, P", "recall or nDCG, without a cutoff")
@options.rel
@option(
    "--at K,K,…",
    "Cutoffs to measure at, such as 1,5,20 (default: 1,3,5,10,20; over tokens 250 to 8000, over "
    "chars 1000 to 32000).",
    name="cutoffs",
    callback=options.whole_numbers,
)
@option(
    "--over k|tokens|chars|hops",
    "What a cutoff counts: ranks (k), tokens, characters or searches (hops).",
    default="k",
)
@option(
    "--reach MEASURE>=VALUE...",
    "Also find the smallest cutoff at which a measure reaches a value; may be repeated.",
    name="targets",
    callback=_targets,
)
@judging.judged()
@options.output(("table", "json", "csv", "markdown"))
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    cutoffs: list[int] | None,
    over: str,
    targets: list[tuple[str, float]],
    how: str,
    output: str | None,
    judge: judging.JudgeChoice,
    **plan: Any,  # noqa: ANN401
) -> int:
    """Show how measures change with the cutoff, for RUN files or one saved result.

    \b
    findwell curve run.trec --gold qrels.txt
    findwell curve run.trec --gold qrels.txt --at 1,5,20 --reach "recall>=0.9"
    findwell curve run.trec --gold qrels.txt --corpus texts.jsonl --over tokens
    findwell curve samples.jsonl -m context_recall --judge openai:MODEL --at 1,3,5
    findwell curve results/monday -m recall -m nDCG
    """
    from findwell.evaluation.evaluate import execute  # noqa: PLC0415
    from findwell.evaluation.plan import Plan  # noqa: PLC0415
    from findwell.evaluation.results.cutoffs import (  # noqa: PLC0415
        at_cutoff,
        curve,
        cutoff_of,
        points_of,
        smallest_k,
    )
    from findwell.evaluation.results.summaries import unmeasured  # noqa: PLC0415
    from findwell.judges.limits import judge_lines  # noqa: PLC0415
    from findwell.measures.dialects import resolve_measures  # noqa: PLC0415
    from findwell.relations.match.judged import has_own_depth  # noqa: PLC0415
    from findwell.show.result import curve_document  # noqa: PLC0415

    saved = options.saved_result(runs, "rel")
    dialect = saved.dialect if saved else plan["dialect"]
    bases = resolve_measures(measures or ["recall", "P"], dialect, plan["rel"])
    points = points_of(cutoffs, over)
    # a judge is asked no deeper than the last cutoff; a target may need the whole list
    needed = [
        at_cutoff(base, cutoff_of(point, over))
        for base in bases
        for point in (points if has_own_depth(base) else points[-1:])
    ]
    named = [name for name, _ in targets]
    if named:
        needed += map(at_cutoff, resolve_measures(named, dialect, plan["rel"]))
    with options.progress("measuring") as progress:
        if saved is not None:
            result = saved.score(needed)
        else:
            files, gold = options.paths(runs, gold)
            result = execute(Plan.of(needed, **plan, **judge.options), files, gold, progress)
        if judge.write_forecast(how, output):
            return 0
        table = curve(result, bases, points, over)
        enough = [
            {
                "run": run,
                "measure": name,
                "target": value,
                "k": smallest_k(result, name, value, run=run, over=over),
            }
            for run in result.runs
            for name, value in targets
        ]
        matched_by = {
            str(replace(measure, k=None)): result.relation_name(measure)
            for measure in result.measures
        }
    judges, findings = judge_lines([result.judge]), result.findings
    envelope.show(
        how,
        output,
        curve_document(table, enough, matched_by, over, judges=judges, findings=findings),
    )
    if how != "json":
        options.print_findings(findings)
    return options.print_unmeasured(unmeasured(result))
