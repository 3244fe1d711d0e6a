"""`findwell curve`: measures at many cutoffs, and the smallest one that is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from findwell.cli import judging, options
from findwell.show.tables import cleaner, to_json, to_rows


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


@click.command("curve", short_help="Show measures at many cutoffs.")
@options.inputs
@options.measures("recall, P", "recall or nDCG, without a cutoff")
@click.option(
    "--at",
    "cutoffs",
    callback=options.whole_numbers,
    metavar="K,K,…",
    help="Cutoffs to measure at (default: 1,3,5,10,20; over tokens 250 to 8000, over chars 1000 to "
    "32000).",
)
@click.option(
    "--over",
    type=click.Choice(["k", "tokens", "chars", "hops"]),
    default="k",
    help="What the cutoffs count: ranks (k), or what the list may cost.",
)
@click.option(
    "--reach",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="MEASURE>=VALUE",
    help="Also find the smallest cutoff at which a measure reaches a value; may be repeated.",
)
@options.measuring
@judging.judge_options
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
    **choices: Any,  # noqa: ANN401
) -> int:
    """Show how measures grow and fall with the cutoff, for RUN files or one saved result.

    \b
    findwell curve run.trec --gold qrels.txt
    findwell curve run.trec --gold qrels.txt --at 1,5,20 --reach "recall>=0.9"
    findwell curve run.trec --gold qrels.txt --corpus texts.jsonl --over tokens
    findwell curve samples.jsonl -m context_recall --judge openai:MODEL --at 1,3,5
    findwell curve results/monday -m recall -m nDCG
    """
    from findwell.evaluation.evaluate import evaluate  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
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
    from findwell.show.result import render_curve, with_relation  # noqa: PLC0415

    saved = options.saved_result(runs, choices | {"gold": gold}, "rel")
    choices |= judging.take(choices)
    dialect = saved.dialect if saved else choices["dialect"]
    bases = resolve_measures(measures or ["recall", "P"], dialect, choices["rel"])
    points = points_of(cutoffs, over)
    # a judge is asked no deeper than the last cutoff; a target may need the whole list
    needed = [
        at_cutoff(base, cutoff_of(point, over))
        for base in bases
        for point in (points if has_own_depth(base) else points[-1:])
    ]
    named = [name for name, _ in targets]
    if named:
        needed += map(at_cutoff, resolve_measures(named, dialect, choices["rel"]))
    with options.progress("measuring") as progress:
        if saved is not None:
            result = saved.score(needed)
        else:
            files, gold = options.paths(runs, gold)
            result = evaluate(files, gold, needed, progress=progress, **grouped(choices))
        if judging.write_dry_run(choices, how, output):
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
    judges = judge_lines([result.judge])
    if how == "json":
        shown = {
            "curve": table.to_dicts(),
            "over": over,
            "reach": enough,
            "matched_by": matched_by,
            **({"judges": judges} if judges else {}),
        }
        shown["findings"] = [finding.as_dict() for finding in result.findings]
        text = to_json(shown)
    elif how == "csv":
        text = to_rows(with_relation(table, matched_by), how)
        options.note_judges(judges)
    else:
        text = render_curve(table, enough, how, matched_by, over, width=options.width(output))
        text += "".join(f"\n{cleaner(how)(line)}\n" for line in judges)
    options.write(text, output, how)
    if how != "json":
        options.print_findings(result.findings)
    return options.print_unmeasured(unmeasured(result))
