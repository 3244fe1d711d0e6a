"""`karat check`: what is odd about a run and its gold, before measuring."""

from __future__ import annotations

import json
from typing import Any

import click

from karat.cli import options


@click.command("check", short_help="Say what is odd about a run and its gold.")
@options.inputs
@click.option("--format", "how", type=click.Choice(["table", "json"]), default="table")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything was found.")
def command(
    runs: tuple[str, ...],
    gold: str | None,
    how: str,
    *,
    strict: bool,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Look for missing, extra and repeated ids, NaN scores and the like, with what to do.

    \b
    karat check run.trec --gold qrels.txt
    """
    from karat.evaluation.evaluate import check  # noqa: PLC0415

    files, gold = options.paths(runs, gold)
    with options.progress("checking") as progress:
        findings = check(files, gold, progress=progress, **choices)
    if how == "json":
        shown = {"findings": [finding.as_dict() for finding in findings]}
        click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        for finding in findings:
            click.echo(f"{finding.kind}: {options.describe(finding)}")
            click.echo(f"  fix: {finding.fix}")
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        click.echo(count if findings else "nothing odd was found")
    return 1 if strict and findings else 0
