"""`karat curve`: measures at many cutoffs, and the smallest one that is enough."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import click

from karat.cli import asking, options


@click.command("curve", short_help="Show measures at many cutoffs.")
@options.inputs
@options.measures("recall, P", "recall or nDCG, without a cutoff")
@click.option("--at", default="1,3,5,10,20", metavar="K,K,…", help="Cutoffs to measure at.")
@click.option(
    "--reach",
    multiple=True,
    metavar="MEASURE>=VALUE",
    help="Also find the smallest cutoff at which a measure reaches a value; may be repeated.",
)
@options.measuring
@asking.judging
@options.output(("table", "json", "csv", "markdown"))
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    at: str,
    reach: tuple[str, ...],
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Show how measures grow and fall with the cutoff, for RUN files or one saved result.

    \b
    karat curve run.trec --gold qrels.txt
    karat curve run.trec --gold qrels.txt --at 1,5,20 --reach "recall>=0.9"
    karat curve samples.jsonl -m context_recall --judge openai:MODEL --at 1,3,5
    karat curve results/monday -m recall -m nDCG
    """
    from karat.dialects import resolve_measures  # noqa: PLC0415
    from karat.evaluation.evaluate import evaluate  # noqa: PLC0415
    from karat.relate.match.judged import has_own_depth  # noqa: PLC0415
    from karat.reports.result import render_curve, with_relation  # noqa: PLC0415
    from karat.results.cutoffs import at_cutoff, curve  # noqa: PLC0415
    from karat.results.summaries import unmeasured  # noqa: PLC0415

    cutoffs = _cutoffs(at)
    targets = [_target(text) for text in reach]
    saved = options.saved_result(runs, choices | {"gold": gold}, "rel")
    choices |= asking.take(choices)
    dialect = saved.dialect if saved else choices["dialect"]
    bases = resolve_measures(measures or ["recall", "P"], dialect, choices["rel"])
    # a judge is asked no deeper than somebody looks: for a target that may be to the end
    needed = [
        at_cutoff(base, cutoff)
        for base in bases
        for cutoff in (cutoffs if has_own_depth(base) else cutoffs[-1:])
    ]
    named = [name for name, _ in targets]
    if named:
        needed += map(at_cutoff, resolve_measures(named, dialect, choices["rel"]))
    with options.progress("measuring") as progress:
        if saved is not None:
            result = saved.score(needed)
        else:
            files, gold = options.paths(runs, gold)
            result = evaluate(files, gold, needed, progress=progress, **choices)
        if asking.write_dry_run(choices, how, output):
            return 0
        table = curve(result, bases, cutoffs)
        enough = _enough(result, targets)
        matched_by = {
            str(replace(measure, k=None)): result.relation_name(measure)
            for measure in result.measures
        }
    if how == "json":
        findings = [finding.as_dict() for finding in result.findings]
        shown = {"curve": table.to_dicts(), "reach": enough, "matched_by": matched_by}
        shown["findings"] = findings
        text = json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    elif how == "csv":
        text = with_relation(table, matched_by).write_csv()
    else:
        text = render_curve(table, enough, how, matched_by)
    options.write(text, output)
    if how != "json":
        options.tell(result.findings)
    return options.tell_unmeasured(unmeasured(result))


def _enough(result: Any, targets: list[tuple[str, float]]) -> list[dict[str, Any]]:  # noqa: ANN401
    from karat.results.cutoffs import smallest_k  # noqa: PLC0415

    return [
        {
            "run": run,
            "measure": name,
            "target": value,
            "k": smallest_k(result, name, value, run=run),
        }
        for run in result.runs
        for name, value in targets
    ]


def _cutoffs(text: str) -> list[int]:
    if not re.fullmatch(r"\s*[1-9]\d{0,8}(\s*,\s*[1-9]\d{0,8})*\s*", text):
        raise click.BadParameter(
            f"{text!r} is not a list of cutoffs such as 1,5,10", param_hint="--at"
        )
    return sorted({int(part) for part in text.split(",")})


def _target(text: str) -> tuple[str, float]:
    name, found, value = text.partition(">=")
    try:
        return (name.strip(), float(value)) if found else ("", float("x"))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a target such as recall>=0.9", param_hint="--reach"
        ) from None
