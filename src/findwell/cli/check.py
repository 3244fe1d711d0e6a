"""`findwell check`: problems in runs and gold, before anything is measured."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import envelope, options
from findwell.cli.command import Command, option
from findwell.show.tables import describe_finding


@click.command("check", cls=Command, short_help="Report problems in runs and their gold labels.")
@options.runs
@options.reading("latency_unit")
@options.dialect
@option(
    "--chunks FILE...",
    "All chunks of the documents of --corpus. Report what they leave out of each document "
    "and which labels they cut; may be repeated, for several ways of chunking.",
)
@option("--strict", "Exit with code 1 if anything is found.")
@options.output(("table", "json"))
def command(
    runs: tuple[str, ...],
    gold: str | None,
    how: str,
    output: str | None,
    *,
    chunks: tuple[str, ...],
    strict: bool,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Report problems in RUN files and their gold, and what to do about them.

    Such as missing, extra and repeated ids, scores that are not numbers, blank texts.

    \b
    findwell check run.trec --gold qrels.txt
    findwell check samples.jsonl --strict
    findwell check run.jsonl --gold spans.jsonl --corpus docs --chunks all.jsonl
    """
    from findwell.evaluation.evaluate import check  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415

    files, gold = options.paths(runs, gold)
    with options.progress("checking") as progress:
        findings = check(
            files, gold, chunks=list(chunks) or None, progress=progress, **grouped(choices)
        )
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    if strict and findings:
        envelope.fail("FindingsFound", f"{count} with --strict")
    if how == "json":
        envelope.answer({"count": len(findings)}, output, findings=findings)
    else:
        lines = [
            f"{finding.kind}: {describe_finding(finding)}\n  fix: {finding.fix}\n"
            for finding in findings
        ]
        text = "".join(lines) + (f"{count}\n" if findings else "no problems were found\n")
        options.write(text, output, how)
    return 1 if strict and findings else 0
