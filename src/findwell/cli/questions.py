"""`findwell questions`: a model writes questions about a corpus, with gold spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option
from findwell.show.grid import Grid
from findwell.show.tables import render_grids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.loop.labels.synthetic.questions import SyntheticQuestions


def _as_shares(
    _: click.Context, __: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, float] | None:
    """Read shares such as multi-hop=0.3."""
    found: dict[str, float] = {}
    for pair in pairs:
        kind, equals, value = (part.strip() for part in pair.partition("="))
        try:
            found[kind] = float(value)
        except ValueError:
            equals = ""
        if not kind or not equals:
            raise click.BadParameter(f"{pair!r} is not KIND=SHARE, such as multi-hop=0.3")
    return found or None


@click.command("questions", cls=Command, short_help="Let a model write questions with gold spans.")
@option("--corpus PATH", "Texts of the documents by id. A file or a folder.", required=True)
@option("-n N", "How many questions.", low=1, default=100)
@option(
    "--share KIND=SHARE...",
    "Share of a kind of question, such as multi-hop=0.3. Usual are single-hop=0.4, "
    "paraphrased=0.3, multi-hop=0.2, unanswerable=0.1; kinds that are not named divide the rest; "
    "may be repeated.",
    name="shares",
    callback=_as_shares,
)
@option("--seed N", "Random seed for choosing passages.", low=0, default=0)
@option("--passage-tokens N", "How many tokens a passage has, at most.", low=1, default=300)
@judging.judged(
    about="Who writes and checks. One of: openai:MODEL, ollama:MODEL or another provider; local "
    "and others cannot.",
    verdicts=False,
)
@options.read("id_from")
@options.output_format(["table", "json", "markdown"])
@option("-o, --output FILE", "Write the questions to this file; - prints them.")
def command(*, how: str, output: str | None, judge: judging.JudgeChoice, **choices: Any) -> int:  # noqa: ANN401
    """Let a language model write questions about documents, and check each of them.

    \b
    findwell questions --corpus docs --judge openai:MODEL -n 90 -o questions.jsonl
    findwell questions --corpus docs/ --judge openai:MODEL -n 200 --dry-run
    findwell score run.jsonl --gold questions.jsonl --by spans --slice kind

    The questions are gold labels whose spans are characters of the documents, and are marked as
    synthetic in every result.
    """
    from findwell.loop.labels.synthetic.questions import check_output, forecast_questions, questions  # noqa: PLC0415

    chosen = {"judge": judge.asked, **choices}
    if judge.dry_run:
        estimate = forecast_questions(**chosen)
        judging.write_forecast(estimate, how, output)
        return 0
    if output is None:
        raise click.UsageError("no file for the questions: -o questions.jsonl, or -o - to print")
    if output != "-":
        check_output(output)
    with options.progress("writing questions") as progress:
        made = questions(**chosen, progress=progress)
    if output == "-":
        options.write(made.jsonl(), None)
    else:
        if made.records:
            made.write(output)
            envelope.wrote(output)
        if how == "json":
            envelope.keep(made.manifest, findings=made.findings)
        else:
            options.write(render_grids(_grids(made), how, width=options.width(None)), None)
    options.print_findings(made.findings)
    if made.records:
        return 0
    return options.print_unmeasured(["no question passed the checks: nothing was written"])


def _grids(made: SyntheticQuestions) -> Iterator[Grid]:
    rows = [[kind, *map(str, counts)] for kind, *counts in made.summary.rows()]
    title = f"synthetic questions · {len(made)} · {made.manifest['judge']['judge']}"
    yield Grid(title, ["kind", "wanted", "drafts", "kept"], rows)
    if made.dropped.height:
        dropped = [[kind, reason, str(count)] for kind, reason, count in made.dropped.rows()]
        yield Grid("drafts that were dropped", ["kind", "reason", "drafts"], dropped, left=2)
