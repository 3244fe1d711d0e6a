"""`karat judge-card`: how far a judge agrees with people."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import asking, options
from karat.report.agreement import CARD_FORMATS


@click.command("judge-card", short_help="Say how far a judge agrees with people.")
@click.argument("labels", metavar="LABELS")
@asking.judging
@click.option(
    "--aspect",
    type=click.Choice(["relevance", "claims", "statements"]),
    default="relevance",
    show_default=True,
    help="What the labels are about.",
)
@click.option("--corpus", metavar="FILE", help="Texts of the chunks, if LABELS has only ids.")
@click.option("--questions", metavar="FILE", help="Texts of the questions, if LABELS has only ids.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Slice by a column of the labels.")
@click.option(
    "--rel",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="The label from which people say yes.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "--recalibrate", is_flag=True, help="Also choose the local judge's threshold on these labels."
)
@click.option(
    "--save", metavar="FILE", help="Keep the card there; by default where results look for it."
)
@click.option("--no-save", is_flag=True, help="Do not keep the card.")
@click.option("--format", "how", type=click.Choice(CARD_FORMATS), default="table")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
def command(
    *,
    labels: str,
    recalibrate: bool,
    save: str | None,
    no_save: bool,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Let a judge label what people have labelled, and compare: kappa, precision, recall, bias.

    LABELS has records with question, chunk and label (0 to 3, or yes and no), as JSON lines, CSV,
    TSV or Parquet. Judgements by id (qrels) need the texts: --corpus and --questions.

    \b
    karat judge-card labels.jsonl --judge local
    karat judge-card labels.csv --judge local --by topic --recalibrate
    karat judge-card labels.jsonl --judge openai:MODEL --base-url URL --max-cost 2
    karat judge-card qrels.txt --corpus corpus.jsonl --questions queries.tsv
    """
    from karat.judges.cards.card import judge_card, verdicts  # noqa: PLC0415
    from karat.judges.cards.labels import load_labels  # noqa: PLC0415
    from karat.judges.cards.shelf import save_card  # noqa: PLC0415
    from karat.judges.find import find_judge  # noqa: PLC0415
    from karat.report.agreement import render_card  # noqa: PLC0415

    if save is not None and no_save:
        raise click.UsageError("--save and --no-save exclude each other")
    texts = {name: choices.pop(name) for name in ("corpus", "questions")}
    chosen = asking.take(choices)
    asked = find_judge(chosen["judge"], **chosen.get("judge_options", {}))
    again = None
    given = load_labels(options.paths((labels,), None)[0], **texts)
    if isinstance(asked, asking.Rehearsal):
        verdicts(asked, given, choices["aspect"])
        asking.rehearsed(chosen, how, output)
        return
    with options.progress("judging") as tell:
        card = judge_card(asked, given, progress=tell, **choices)
        if recalibrate:
            again = _again(asked, given, aspect=choices["aspect"], rel=choices["rel"])
    options.write(render_card(card, how, again), output)
    if not no_save:
        click.echo(f"note: card kept in {save_card(card, save)}", err=True)
    if given.blank:
        click.echo(f"note: {given.blank} pairs have no label and were left out", err=True)


def _again(judge: object, labels: object, **choices: Any) -> Any:  # noqa: ANN401
    from karat.judges.cards.recalibrate import recalibrate  # noqa: PLC0415
    from karat.judges.local import LocalJudge  # noqa: PLC0415

    if not isinstance(judge, LocalJudge):
        raise click.UsageError("only the judges local and local:text have a threshold to choose")
    return recalibrate(judge, labels, **choices)
