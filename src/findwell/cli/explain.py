"""`findwell explain`: how the numbers of a query are computed."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option


@click.command(
    "explain", cls=Command, short_help="Show step by step how a query's numbers are computed."
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN|RESULT...")
@options.reading("missing")
@options.dialects
@option("-q, --query ID", "Query to explain (default: the worst; see --worst).")
@option(
    "--worst N",
    "Without --query: how many queries to explain. The worst by the first measure.",
    low=1,
    default=1,
)
@option("--system NAME", "Run to explain, if there are several.")
@options.measures(example="AP or nDCG@10")
@options.rel
@judging.judged()
@options.output(("table", "markdown", "json"))
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    dialects: tuple[str, ...],
    how: str,
    output: str | None,
    judge: judging.JudgeChoice,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Explain a query of RUN: the list with its hits, the gold found and missed, sums and divisors.

    A RESULT is a folder that `findwell score --save` wrote; it is explained from what it keeps.
    Of several runs, as findwell.toml may name them, --system says which.

    \b
    findwell explain run.trec --gold qrels.txt -q q17 -m AP -m nDCG@10
    findwell explain run.trec --gold qrels.txt --worst 3 -m recall@5
    findwell explain samples.jsonl -q 1 --dialect findwell --dialect autorag
    findwell explain samples.jsonl -q 1 --by rouge-sentence -m recall@5
    findwell explain samples.jsonl -q 1 -m context_recall --judge openai:MODEL
    findwell explain monday -q q17
    """
    from findwell.evaluation.explanation.explain import explain  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    result = options.saved_result(runs, "rel")
    files, gold = options.paths(runs, gold)
    explained = explain(
        result or (files if files[1:] else files[0]),
        gold,
        measures or None,
        dialects=dialects or None,
        **grouped(choices | judge.options),
    )
    if judge.write_forecast(how, output):
        return
    if how == "json":
        shown = {"explanations": [each.as_dict() for each in explained]}
        envelope.answer(shown, output, findings=explained[0].findings if explained else ())
        return
    screen = options.screen(output)
    texts = (render(each, how, **screen).rstrip() for each in explained)
    options.write("\n\n".join(texts) + "\n", output, how)
    for first in explained[:1]:  # all have the same findings
        options.print_findings(first.findings)
